// A task's script is key=value words in the text of its first message; py1/agent.py --help lists them.
// Shared by both agents: script parsing, token gate, module lookup, flags.
import { fileURLToPath, pathToFileURL } from 'node:url';
import fs from 'node:fs';
import path from 'node:path';

// PEERS_JS names a directory that holds node_modules (made by `npm install`
// of this package.json somewhere outside the repository); default: next to us.
// The ES module build is picked on purpose: in the 0.3.14 SDK's CommonJS build
// every subpath bundles its own error class, `instanceof` fails between them,
// and each A2A error leaves the server as -32603.
const root = path.resolve(process.env.PEERS_JS ?? path.dirname(fileURLToPath(import.meta.url)));
export async function load(name) {
  const [pkg, ...rest] = name.split('/');
  const dir = path.join(root, 'node_modules', pkg);
  const { exports: map, main } = JSON.parse(fs.readFileSync(path.join(dir, 'package.json'), 'utf8'));
  const entry = map?.[rest.length ? './' + rest.join('/') : '.'];
  const file = process.env.PEERS_CJS ? entry?.require : entry?.import;
  return import(pathToFileURL(path.join(dir, (file?.default ?? file) ?? main ?? 'index.js')).href);
}

const DEFAULTS = {
  steps: 5, interval: 0.2, ask: 0, auth: 0, authwait: 2, fail: 'no', reject: 'no',
  artifact: 'yes', chunks: 3, reply: 'task', first: 'task', pad: 0, hold: 0,
  final: 'yes', nocancel: 'no', kind: 'text', body: '', say: '',
};

// JSON object messageId prefix -> script; the longest matching prefix wins.
const presets = process.env.AGENT_PRESETS ? JSON.parse(fs.readFileSync(process.env.AGENT_PRESETS, 'utf8')) : {};
const prefixes = Object.keys(presets).sort((a, b) => b.length - a.length);

export function parseScript(text, messageId = '') {
  const hit = prefixes.find((p) => messageId.startsWith(p));
  if (hit !== undefined) text = presets[hit];
  const s = { ...DEFAULTS, done: 0, asked: false, authed: false, canceled: false };
  for (const word of text.split(/\s+/)) {
    const i = word.indexOf('=');
    if (i < 0) continue;
    const key = word.slice(0, i), val = word.slice(i + 1);
    if (!(key in DEFAULTS)) continue;
    if (typeof DEFAULTS[key] === 'number') {
      const n = Number(val);
      if (Number.isFinite(n)) s[key] = n;
    } else s[key] = decodeURIComponent(val);
  }
  return s;
}

export const sleep = (sec) => new Promise((r) => setTimeout(r, sec * 1000));

export function stepText(s) {
  let body = `step ${s.done}/${s.steps}`;
  if (body.length < s.pad) body += ' ' + 'x'.repeat(s.pad - body.length - 1);
  return body;
}

export function flags(defaultPort) {
  const out = { port: defaultPort, path: '/', push: true, streaming: true, compat: true, rest: false, pushTimeout: 5 };
  const argv = process.argv.slice(2);
  while (argv.length) {
    const a = argv.shift();
    if (a === '--port') out.port = Number(argv.shift());
    else if (a === '--path') out.path = argv.shift();
    else if (a === '--push-timeout') out.pushTimeout = Number(argv.shift());
    else if (a === '--no-push') out.push = false;
    else if (a === '--no-streaming') out.streaming = false;
    else if (a === '--no-compat') out.compat = false;
    else if (a === '--rest') out.rest = true;
    else { console.error(`unknown flag ${a}`); process.exit(2); }
  }
  return out;
}

export const tokens = (process.env.AGENT_TOKEN ?? '').split(',').filter(Boolean);

// 401 for anything but the card when AGENT_TOKEN is set; each token is a user.
export function gate(req, res, next) {
  if (!tokens.length || req.path.startsWith('/.well-known/')) return next();
  const [scheme, token] = (req.get('authorization') ?? '').split(' ');
  const i = tokens.indexOf(token);
  if ((scheme ?? '').toLowerCase() !== 'bearer' || i < 0) {
    return res.status(401).set('WWW-Authenticate', 'Bearer realm="a2a"').json({ error: 'unauthorized' });
  }
  req.peerUser = { isAuthenticated: true, userName: `user-${i}` };
  next();
}
