"""The client of PyPI a2a-sdk 0.3, doing what it is told.

  py03.py URL    the base URL of an agent; CLIENT_KEY in the environment is sent as bearer token.

Standard input is a JSON array of steps, `{"do": NAME, ...}`, taken in their order; a step that names no
task is about the last one. Standard output has a JSON line for each event of a stream and for the end of
each step: `{"step": N, "event": {...}}`, `{"step": N, "result": ...}`, `{"step": N, "error": {...}}`.
Objects are printed as the SDK gives them to its user. Steps: card, send, stream, get, cancel, subscribe,
push-set, push-get, push-list, push-delete.

This SDK has no call for listing and deleting push configs: its request types go out by its transport.
"""
import asyncio
import json
import os
import sys
import uuid

import httpx

from a2a import types
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client_factory import TransportProtocol


def plain(thing):
    return thing.model_dump(mode='json', exclude_none=True) if hasattr(thing, 'model_dump') else thing


def failure(error):
    told = plain(getattr(error, 'error', None)) or {}
    return {'type': type(error).__name__, 'message': str(error)[:500], 'code': told.get('code')}


class Client:
    def __init__(self, url, http):
        self.url, self.http = url, http
        self.transport = self.task = self.context = None

    async def connect(self):
        card = await A2ACardResolver(self.http, self.url).get_agent_card()
        config = ClientConfig(httpx_client=self.http, supported_transports=[TransportProtocol.jsonrpc])
        self.transport = ClientFactory(config).create(card)._transport
        return card

    def remember(self, thing):
        kind = getattr(thing, 'kind', '')
        self.task = thing.id if kind == 'task' else getattr(thing, 'task_id', None) or self.task
        self.context = getattr(thing, 'context_id', None) or self.context
        return thing

    def params(self, step):
        goes_on = {'task_id': self.task, 'context_id': self.context} if step.get('reply') else {}
        part = types.Part(root=types.TextPart(text=step['text']))
        message = types.Message(role=types.Role.user, message_id=str(uuid.uuid4()), parts=[part], **goes_on)
        configuration = types.MessageSendConfiguration(blocking=step.get('blocking'))
        return types.MessageSendParams(message=message, configuration=configuration)

    async def raw(self, request):
        answer = await self.transport._send_request(plain(request))
        if 'error' in answer:
            raise RuntimeError(json.dumps(answer['error']))
        return answer.get('result')

    async def unary(self, step):
        do, call, request = step['do'], self.transport, str(uuid.uuid4())
        names = {'id': self.task, 'push_notification_config_id': step.get('config')}
        if do == 'send':
            return self.remember(await call.send_message(self.params(step)))
        if do == 'get':
            return await call.get_task(types.TaskQueryParams(id=self.task, history_length=step.get('history')))
        if do == 'cancel':
            return await call.cancel_task(types.TaskIdParams(id=self.task))
        if do == 'push-set':
            config = types.PushNotificationConfig(**step['push'])
            return await call.set_task_callback(
                types.TaskPushNotificationConfig(task_id=self.task, push_notification_config=config))
        if do == 'push-get':
            return await call.get_task_callback(types.GetTaskPushNotificationConfigParams(**names))
        if do == 'push-list':
            params = types.ListTaskPushNotificationConfigParams(id=self.task)
            return await self.raw(types.ListTaskPushNotificationConfigRequest(id=request, params=params))
        if do == 'push-delete':
            params = types.DeleteTaskPushNotificationConfigParams(**names)
            return await self.raw(types.DeleteTaskPushNotificationConfigRequest(id=request, params=params))
        raise ValueError(f'no step {do}')

    def events(self, step):
        if step['do'] == 'stream':
            return self.transport.send_message_streaming(self.params(step))
        return self.transport.resubscribe(types.TaskIdParams(id=self.task))


async def main():
    key = os.environ.get('CLIENT_KEY')
    headers = {'Authorization': f'Bearer {key}'} if key else {}
    async with httpx.AsyncClient(headers=headers, timeout=90) as http:
        client = Client(sys.argv[1], http)
        for number, step in enumerate(json.load(sys.stdin)):
            def say(**line):
                print(json.dumps({'step': number, **line}), flush=True)
            try:
                client.task = step.get('task', client.task)
                if step['do'] == 'card':
                    say(result=plain(await client.connect()))
                elif step['do'] in ('stream', 'subscribe'):
                    async for event in client.events(step):
                        say(event=plain(client.remember(event)))
                    say(result=None)
                else:
                    result = await client.unary(step)
                    say(result=[plain(one) for one in result] if isinstance(result, list) else plain(result))
            except Exception as error:  # whatever the SDK raises is what its user would see
                say(error=failure(error))


asyncio.run(main())
