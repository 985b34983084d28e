// The clients of npm @a2a-js/sdk 0.3 and 1.x, doing what they are told.
//
//   PEERS_JS=DIR js.mjs URL 03|1 [0.3|1.0]    DIR holds node_modules; the last word narrows the card to
//                                             the interfaces of that version.
//
// Input and output as in py03.py; 1.x has one step more: list.
import { randomUUID } from 'node:crypto';
import { text as readAll } from 'node:stream/consumers';
import { load } from '../js/common.mjs';

const [url, sdk, version] = process.argv.slice(2);
const key = process.env.CLIENT_KEY;
const fetchImpl = (address, init = {}) => {
  const headers = new Headers(init.headers);
  if (key) headers.set('Authorization', `Bearer ${key}`);
  return fetch(address, { ...init, headers });
};

let task;
let context;
const named = (step) => (step.reply ? { taskId: task, contextId: context } : {});

async function old() {
  const { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } = await load('a2a-js-03/client');
  const card = await new DefaultAgentCardResolver({ fetchImpl }).resolve(url);
  const factory = new ClientFactory({ transports: [new JsonRpcTransportFactory({ fetchImpl })] });
  const client = await factory.createFromAgentCard(card);
  const params = (step) => ({
    message: { kind: 'message', role: 'user', messageId: randomUUID(), parts: [{ kind: 'text', text: step.text }], ...named(step) },
    configuration: { ...(step.blocking !== undefined && { blocking: step.blocking }) },
  });
  const config = (step) => ({ id: task, pushNotificationConfigId: step.config });
  return {
    card,
    plain: (thing) => thing,
    ids: (thing) => [thing.kind === 'task' ? thing.id : thing.taskId, thing.contextId],
    send: (step) => client.sendMessage(params(step)),
    stream: (step) => client.sendMessageStream(params(step)),
    get: (step) => client.getTask({ id: task, historyLength: step.history }),
    cancel: () => client.cancelTask({ id: task }),
    subscribe: () => client.resubscribeTask({ id: task }),
    'push-set': (step) => client.setTaskPushNotificationConfig({ taskId: task, pushNotificationConfig: step.push }),
    'push-get': (step) => client.getTaskPushNotificationConfig(config(step)),
    'push-list': () => client.listTaskPushNotificationConfig({ id: task }),
    'push-delete': (step) => client.deleteTaskPushNotificationConfig(config(step)),
  };
}

async function current() {
  const { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } = await load('a2a-js-1/client');
  const types = await load('a2a-js-1');
  const legacyCompat = { enabled: true };
  const cardResolver = new DefaultAgentCardResolver({ fetchImpl, legacyCompat });
  const card = await cardResolver.resolve(url);
  const shown = types.AgentCard.toJSON(card);
  if (version) card.supportedInterfaces = card.supportedInterfaces.filter((known) => known.protocolVersion.startsWith(version));
  const transports = [new JsonRpcTransportFactory({ fetchImpl, legacyCompat })];
  const client = await new ClientFactory({ transports, cardResolver }).createFromAgentCard(card);
  const params = (step) => types.SendMessageRequest.fromJSON({
    message: { role: 'ROLE_USER', messageId: randomUUID(), parts: [{ text: step.text }], ...named(step) },
    configuration: { returnImmediately: step.blocking === false },
  });
  const pushConfig = ({ authentication: { schemes: [scheme], credentials }, ...rest }) =>
    types.TaskPushNotificationConfig.fromJSON({ taskId: task, ...rest, authentication: { scheme, credentials } });
  // The SDK gives its own objects; which they are shows by what they hold.
  const plain = (thing) => {
    if (!thing || typeof thing !== 'object') return thing ?? null;
    if (thing.payload?.$case) return types.StreamResponse.toJSON(thing);
    if ('messageId' in thing) return types.Message.toJSON(thing);
    if ('status' in thing && 'id' in thing) return types.Task.toJSON(thing);
    if ('configs' in thing) return types.ListTaskPushNotificationConfigsResponse.toJSON(thing);
    if ('tasks' in thing) return types.ListTasksResponse.toJSON(thing);
    if ('url' in thing && 'taskId' in thing) return types.TaskPushNotificationConfig.toJSON(thing);
    return thing;
  };
  return {
    card: shown,
    plain,
    ids(thing) {
      const inner = thing.payload?.value ?? thing;
      return ['status' in inner && 'id' in inner ? inner.id : inner.taskId, inner.contextId];
    },
    send: (step) => client.sendMessage(params(step)),
    stream: (step) => client.sendMessageStream(params(step)),
    get: (step) => client.getTask({ id: task, tenant: '', historyLength: step.history }),
    list: () => client.listTasks(types.ListTasksRequest.fromJSON({})),
    cancel: () => client.cancelTask({ id: task, tenant: '', metadata: {} }),
    subscribe: () => client.resubscribeTask({ id: task, tenant: '' }),
    'push-set': (step) => client.createTaskPushNotificationConfig(pushConfig(step.push)),
    'push-get': (step) => client.getTaskPushNotificationConfig({ taskId: task, id: step.config, tenant: '' }),
    'push-list': () => client.listTaskPushNotificationConfig({ taskId: task, tenant: '', pageSize: 0, pageToken: '' }),
    'push-delete': (step) => client.deleteTaskPushNotificationConfig({ taskId: task, id: step.config, tenant: '' }),
  };
}

let client;
const remember = (thing) => {
  const [id, contextId] = client.ids(thing);
  task = id || task;
  context = contextId || context;
  return client.plain(thing);
};
for (const [number, step] of JSON.parse(await readAll(process.stdin)).entries()) {
  const say = (line) => console.log(JSON.stringify({ step: number, ...line }));
  try {
    task = step.task ?? task;
    if (step.do === 'card') {
      client = await (sdk === '03' ? old() : current());
      say({ result: client.card });
    } else if (step.do === 'stream' || step.do === 'subscribe') {
      for await (const event of client[step.do](step)) say({ event: remember(event) });
      say({ result: null });
    } else {
      const result = (await client[step.do](step)) ?? null;
      say({ result: step.do === 'send' ? remember(result) : client.plain(result) });
    }
  } catch (error) {
    const code = error?.code ?? error?.errorResponse?.error?.code ?? null;
    say({ error: { type: error?.constructor?.name, code, message: String(error?.message ?? error).slice(0, 500) } });
  }
}
process.exit(0);
