// Scripted A2A v0.3 test agent: our code on top of npm @a2a-js/sdk 0.3.x.
// The first message's text is a script (see common.mjs). Binds 127.0.0.1 only.
import { randomUUID } from 'node:crypto';
import { flags, gate, load, parseScript, sleep, stepText, tokens } from './common.mjs';

const { DefaultRequestHandler, InMemoryTaskStore, InMemoryPushNotificationStore, DefaultPushNotificationSender, UnauthenticatedUser, A2AError } =
  await load('a2a-js-03/server');
const { jsonRpcHandler, agentCardHandler, restHandler } = await load('a2a-js-03/server/express');
const express = (await load('express')).default;

const opt = flags(9203);

function part(s, i) {
  const n = s.chunks;
  if (s.kind === 'file') return { kind: 'file', file: { bytes: Buffer.from(s.body || `file ${i}/${n}`).toString('base64'), mimeType: 'text/plain', name: 'output.txt' } };
  if (s.kind === 'url') return { kind: 'file', file: { uri: 'https://example.com/output.txt', mimeType: 'text/plain', name: 'output.txt' } };
  if (s.kind === 'data') return { kind: 'data', data: s.body ? JSON.parse(s.body) : { key: 'value', chunk: i, of: n } };
  return { kind: 'text', text: s.body || `chunk ${i}/${n};` };
}

class ScriptedExecutor {
  scripts = new Map();

  async execute(ctx, bus) {
    const { taskId, contextId, userMessage, task } = ctx;
    const text = userMessage.parts.filter((p) => p.kind === 'text').map((p) => p.text).join(' ');
    let s = task ? this.scripts.get(taskId) : undefined;
    const resumed = s !== undefined;
    if (!s) { s = parseScript(text, userMessage.messageId); this.scripts.set(taskId, s); }
    const msg = (t) => ({ kind: 'message', role: 'agent', messageId: randomUUID(), taskId, contextId, parts: [{ kind: 'text', text: t }] });
    const status = (state, t, final = false) => bus.publish({
      kind: 'status-update', taskId, contextId, final,
      status: { state, message: t ? msg(t) : undefined, timestamp: new Date().toISOString() },
    });

    if (s.reply === 'message') {
      bus.publish(msg(s.say || 'plain reply: ' + text));
      bus.finished();
      return;
    }
    if (s.hold && !resumed) await sleep(s.hold);
    if (!task && s.first === 'task') {
      bus.publish({ kind: 'task', id: taskId, contextId, status: { state: 'submitted', timestamp: new Date().toISOString() }, history: [userMessage] });
    }
    if (s.reject === 'yes') { status('rejected', 'rejected by script', true); bus.finished(); return; }
    if (resumed) status('working', 'resumed with: ' + text);
    while (s.done < s.steps) {
      await sleep(s.interval);
      if (s.canceled) return;
      s.done += 1;
      status('working', stepText(s));
      if (s.ask === s.done && !s.asked) {
        s.asked = true;
        status('input-required', 'need input: continue?', s.final === 'yes');
        bus.finished();
        return;
      }
      if (s.auth === s.done && !s.authed) {
        s.authed = true;
        status('auth-required', 'need auth', s.authwait === 0);
        if (s.authwait === 0) { bus.finished(); return; }
        await sleep(s.authwait);
        if (s.canceled) return;
        status('working', 'auth obtained out of band');
      }
    }
    if (s.fail === 'raise') throw new Error('scripted executor crash');
    if (s.fail === 'yes') { status('failed', 'failed by script', true); bus.finished(); return; }
    if (s.artifact === 'yes') {
      for (let i = 0; i < s.chunks; i++) {
        if (s.canceled) return;
        bus.publish({
          kind: 'artifact-update', taskId, contextId, append: i > 0, lastChunk: i === s.chunks - 1,
          artifact: { artifactId: `art-${taskId}`, name: 'result.txt', parts: [part(s, i + 1)] },
        });
        await sleep(Math.min(s.interval, 0.1));
      }
    }
    if (s.canceled) return;
    status('completed', s.say || 'done', true);
    bus.finished();
  }

  cancelTask = async (taskId, bus) => {
    const s = this.scripts.get(taskId);
    if (s?.nocancel === 'yes') throw A2AError.taskNotCancelable(taskId);
    if (s) s.canceled = true;
    const contextId = (await store.load(taskId))?.contextId;
    bus.publish({ kind: 'status-update', taskId, contextId, final: true, status: { state: 'canceled', timestamp: new Date().toISOString() } });
    bus.finished();
  };
}

const store = new InMemoryTaskStore();
const pushStore = new InMemoryPushNotificationStore();
const card = {
  name: 'peer-js03', description: 'Scripted test agent on @a2a-js/sdk 0.3.x', version: '1.0.0',
  protocolVersion: '0.3.0', url: `http://127.0.0.1:${opt.port}${opt.path}`, preferredTransport: 'JSONRPC',
  capabilities: { streaming: opt.streaming, pushNotifications: opt.push },
  defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
  skills: [{ id: 'script', name: 'script', description: 'runs a scripted task', tags: ['test'] }],
  ...(opt.rest ? { additionalInterfaces: [
    { url: `http://127.0.0.1:${opt.port}${opt.path}`, transport: 'JSONRPC' },
    { url: `http://127.0.0.1:${opt.port}/rest`, transport: 'HTTP+JSON' }] } : {}),
  ...(tokens.length ? { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } }, security: [{ bearer: [] }] } : {}),
};
const handler = new DefaultRequestHandler(card, store, new ScriptedExecutor(), undefined, pushStore,
  new DefaultPushNotificationSender(pushStore, { timeout: opt.pushTimeout * 1000 }));
const userBuilder = async (req) => req.peerUser ?? new UnauthenticatedUser();
const app = express();
app.use(gate);
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: handler }));
if (opt.rest) app.use('/rest', restHandler({ requestHandler: handler, userBuilder }));
app.use(opt.path, jsonRpcHandler({ requestHandler: handler, userBuilder }));
app.listen(opt.port, '127.0.0.1', () => console.log(`peer-js03 on http://127.0.0.1:${opt.port}${opt.path}`));
