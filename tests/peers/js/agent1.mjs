// Scripted A2A v1.0 test agent (also v0.3 on the same URL unless --no-compat):
// our code on top of npm @a2a-js/sdk 1.x. The first message's text is a script
// (see common.mjs). Binds 127.0.0.1 only.
import { randomUUID } from 'node:crypto';
import { flags, gate, load, parseScript, sleep, stepText, tokens } from './common.mjs';

const { TaskState, Role } = await load('a2a-js-1');
const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore, InMemoryPushNotificationStore, DefaultPushNotificationSender, UnauthenticatedUser } =
  await load('a2a-js-1/server');
const { jsonRpcHandler, agentCardHandler, restHandler } = await load('a2a-js-1/server/express');
const { TaskNotCancelableError } = await load('a2a-js-1/errors');
const { createLegacyAwarePushNotificationSender } = await load('a2a-js-1/compat/v0_3/server');
const express = (await load('express')).default;

const opt = flags(9210);

const part = (t) => ({ content: { $case: 'text', value: t }, mediaType: 'text/plain', filename: '', metadata: {} });

function artifactPart(s, i) {
  const n = s.chunks;
  const make = ($case, value, filename = '', mediaType = 'text/plain') => ({ content: { $case, value }, mediaType, filename, metadata: {} });
  if (s.kind === 'file') return make('raw', Buffer.from(s.body || `file ${i}/${n}`), 'output.txt');
  if (s.kind === 'url') return make('url', 'https://example.com/output.txt', 'output.txt');
  if (s.kind === 'data') return make('data', s.body ? JSON.parse(s.body) : { key: 'value', chunk: i, of: n }, '', 'application/json');
  return part(s.body || `chunk ${i}/${n};`);
}

class ScriptedExecutor {
  scripts = new Map();

  async execute(ctx, bus) {
    const { taskId, contextId, userMessage, task } = ctx;
    const text = userMessage.parts.filter((p) => p.content?.$case === 'text').map((p) => p.content.value).join(' ');
    let s = task ? this.scripts.get(taskId) : undefined;
    const resumed = s !== undefined;
    if (!s) { s = parseScript(text, userMessage.messageId); s.contextId = contextId; this.scripts.set(taskId, s); }
    const msg = (t) => ({
      role: Role.ROLE_AGENT, messageId: randomUUID(), taskId, contextId, parts: [part(t)],
      metadata: {}, extensions: [], referenceTaskIds: [],
    });
    const status = (state, t) => bus.publish(AgentEvent.statusUpdate({
      taskId, contextId, metadata: {},
      status: { state, message: t ? msg(t) : undefined, timestamp: new Date().toISOString() },
    }));

    if (s.reply === 'message') { bus.publish(AgentEvent.message(msg(s.say || 'plain reply: ' + text))); return; }
    if (s.hold && !resumed) await sleep(s.hold);
    if (task) bus.publish(AgentEvent.task(task));   // this SDK demands a task or message first on every turn
    else if (s.first === 'task') {
      bus.publish(AgentEvent.task({
        id: taskId, contextId, status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: new Date().toISOString() },
        artifacts: [], history: [userMessage], metadata: {},
      }));
    }
    if (s.reject === 'yes') { status(TaskState.TASK_STATE_REJECTED, 'rejected by script'); return; }
    if (resumed) status(TaskState.TASK_STATE_WORKING, 'resumed with: ' + text);
    while (s.done < s.steps) {
      await sleep(s.interval);
      if (s.canceled) return;
      s.done += 1;
      status(TaskState.TASK_STATE_WORKING, stepText(s));
      if (s.ask === s.done && !s.asked) {
        s.asked = true;
        status(TaskState.TASK_STATE_INPUT_REQUIRED, 'need input: continue?');
        return;
      }
      if (s.auth === s.done && !s.authed) {
        s.authed = true;
        status(TaskState.TASK_STATE_AUTH_REQUIRED, 'need auth');
        if (s.authwait === 0) return;
        await sleep(s.authwait);
        if (s.canceled) return;
        status(TaskState.TASK_STATE_WORKING, 'auth obtained out of band');
      }
    }
    if (s.fail === 'raise') throw new Error('scripted executor crash');
    if (s.fail === 'yes') { status(TaskState.TASK_STATE_FAILED, 'failed by script'); return; }
    if (s.artifact === 'yes') {
      for (let i = 0; i < s.chunks; i++) {
        if (s.canceled) return;
        bus.publish(AgentEvent.artifactUpdate({
          taskId, contextId, append: i > 0, lastChunk: i === s.chunks - 1, metadata: {},
          artifact: { artifactId: `art-${taskId}`, name: 'result.txt', description: '', parts: [artifactPart(s, i + 1)], metadata: {}, extensions: [] },
        }));
        await sleep(Math.min(s.interval, 0.1));
      }
    }
    if (s.canceled) return;
    status(TaskState.TASK_STATE_COMPLETED, s.say || 'done');
  }

  cancelTask = async (taskId, bus) => {
    const s = this.scripts.get(taskId);
    if (s?.nocancel === 'yes') throw new TaskNotCancelableError(`Task not cancelable: ${taskId}`);
    if (s) s.canceled = true;
    bus.publish(AgentEvent.statusUpdate({
      taskId, contextId: s?.contextId ?? '', metadata: {},
      status: { state: TaskState.TASK_STATE_CANCELED, message: undefined, timestamp: new Date().toISOString() },
    }));
  };
}

const url = `http://127.0.0.1:${opt.port}${opt.path}`;
const supportedInterfaces = [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }];
if (opt.compat) supportedInterfaces.push({ url, protocolBinding: 'JSONRPC', protocolVersion: '0.3', tenant: '' });
if (opt.rest) supportedInterfaces.push({ url: `http://127.0.0.1:${opt.port}/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0', tenant: '' });
const card = {
  name: 'peer-js1', description: 'Scripted test agent on @a2a-js/sdk 1.x', version: '1.0.0', supportedInterfaces,
  capabilities: { streaming: opt.streaming, pushNotifications: opt.push, extendedAgentCard: false, extensions: [] },
  defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
  skills: [{ id: 'script', name: 'script', description: 'runs a scripted task', tags: ['test'], examples: [], inputModes: [], outputModes: [], securityRequirements: [] }],
  securitySchemes: tokens.length ? { bearer: { scheme: { $case: 'httpAuthSecurityScheme', value: { description: '', scheme: 'bearer', bearerFormat: '' } } } } : {},
  securityRequirements: tokens.length ? [{ schemes: { bearer: { list: [] } } }] : [],
  signatures: [],
};
const legacyCompat = { enabled: opt.compat };
const pushStore = new InMemoryPushNotificationStore();
const sender = opt.compat
  ? createLegacyAwarePushNotificationSender(pushStore, { timeout: opt.pushTimeout * 1000 })
  : new DefaultPushNotificationSender(pushStore, { timeout: opt.pushTimeout * 1000 });
const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new ScriptedExecutor(), undefined, pushStore, sender);
const userBuilder = async (req) => req.peerUser ?? new UnauthenticatedUser();
const app = express();
app.use(gate);
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: handler, legacyCompat }));
if (opt.rest) app.use('/rest', restHandler({ requestHandler: handler, userBuilder }));
app.use(opt.path, jsonRpcHandler({ requestHandler: handler, userBuilder, legacyCompat }));
app.listen(opt.port, '127.0.0.1', () => console.log(`peer-js1 on ${url}`));
