"""The client of PyPI a2a-sdk 1.x, doing what it is told.

  py1.py URL [0.3|1.0]    the version narrows the card to the interfaces of that one, so that the SDK's
                          compatibility client is used where both are offered.

Input and output as in py03.py; one step more: list.
"""
import asyncio
import json
import os
import sys
import uuid

import httpx
from google.protobuf.json_format import MessageToDict, ParseDict

from a2a import types
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory


def plain(thing):
    return MessageToDict(thing) if hasattr(thing, 'DESCRIPTOR') else thing


def failure(error):
    code = getattr(error, 'code', None)
    return {'type': type(error).__name__, 'message': str(error)[:500], 'code': code if isinstance(code, int) else None}


class Client:
    def __init__(self, url, version, http):
        self.url, self.version, self.http = url, version, http
        self.client = self.task = self.context = None

    async def connect(self):
        card = await A2ACardResolver(self.http, self.url).get_agent_card()
        shown = plain(card)
        if self.version:
            kept = [known for known in card.supported_interfaces if known.protocol_version.startswith(self.version)]
            del card.supported_interfaces[:]
            card.supported_interfaces.extend(kept)
        self.client = ClientFactory(ClientConfig(httpx_client=self.http)).create(card)
        return shown

    def remember(self, thing):
        kind = thing.WhichOneof('payload')
        inner = getattr(thing, kind)
        self.task = (inner.id if kind == 'task' else inner.task_id) or self.task
        self.context = inner.context_id or self.context
        return thing

    def params(self, step):
        message = {'role': 'ROLE_USER', 'messageId': str(uuid.uuid4()), 'parts': [{'text': step['text']}]}
        if step.get('reply'):
            message |= {'taskId': self.task, 'contextId': self.context}
        at_once = step.get('blocking') is False
        request = {'message': message, 'configuration': {'returnImmediately': at_once}}
        return ParseDict(request, types.SendMessageRequest())

    async def unary(self, step):
        do, call = step['do'], self.client
        names = {'task_id': self.task, 'id': step.get('config')}
        if do == 'send':
            return self.remember(await call._transport.send_message(self.params(step)))
        if do == 'get':
            return await call.get_task(types.GetTaskRequest(id=self.task, history_length=step.get('history')))
        if do == 'list':
            return await call.list_tasks(types.ListTasksRequest())
        if do == 'cancel':
            return await call.cancel_task(types.CancelTaskRequest(id=self.task))
        if do == 'push-set':
            given = dict(step['push'])
            authentication = given.pop('authentication')
            given['authentication'] = {'scheme': authentication['schemes'][0], 'credentials': authentication['credentials']}
            return await call.create_task_push_notification_config(
                ParseDict({'taskId': self.task, **given}, types.TaskPushNotificationConfig()))
        if do == 'push-get':
            return await call.get_task_push_notification_config(types.GetTaskPushNotificationConfigRequest(**names))
        if do == 'push-list':
            return await call.list_task_push_notification_configs(
                types.ListTaskPushNotificationConfigsRequest(task_id=self.task))
        if do == 'push-delete':
            return await call.delete_task_push_notification_config(
                types.DeleteTaskPushNotificationConfigRequest(**names))
        raise ValueError(f'no step {do}')

    def events(self, step):
        if step['do'] == 'stream':
            return self.client._transport.send_message_streaming(self.params(step))
        return self.client.subscribe(types.SubscribeToTaskRequest(id=self.task))


async def main():
    key = os.environ.get('CLIENT_KEY')
    headers = {'Authorization': f'Bearer {key}'} if key else {}
    async with httpx.AsyncClient(headers=headers, timeout=90) as http:
        client = Client(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None, http)
        for number, step in enumerate(json.load(sys.stdin)):
            def say(**line):
                print(json.dumps({'step': number, **line}), flush=True)
            try:
                client.task = step.get('task', client.task)
                if step['do'] == 'card':
                    say(result=await client.connect())
                elif step['do'] in ('stream', 'subscribe'):
                    async for event in client.events(step):
                        say(event=plain(client.remember(event)))
                    say(result=None)
                else:
                    say(result=plain(await client.unary(step)))
            except Exception as error:  # whatever the SDK raises is what its user would see
                say(error=failure(error))


asyncio.run(main())
