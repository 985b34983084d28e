/** What the gateway's screen says, in words. Pure. */
import type { Client, Health, Traffic } from "../api/types";
import { STATES, stateWord } from "./words";

/** Where clients reach the gateway: as the engine says, else where this page came from. */
export function gatewayAddress(health: Health | null, origin: string): string {
  const detail = health?.items.find((item) => item.component === "gateway")?.detail ?? "";
  return /https?:\/\/[^\s,;/]+/.exec(detail)?.[0] ?? origin;
}

/** What an agent's name becomes under the gateway. Ends with a slash, which clients need. */
export function agentAddress(gateway: string, agent: string): string {
  return `${gateway}/agents/${encodeURIComponent(agent)}/`;
}

export type Language = "curl" | "python";

/** A first message in 1.0. The key comes from the environment, so that it stands in no history and no file. */
export function snippet(language: Language, address: string): string {
  if (language === "curl") {
    return [
      `curl ${address} \\`,
      `  -H "Authorization: Bearer $TASKBELL_KEY" \\`,
      `  -H 'A2A-Version: 1.0' -H 'Content-Type: application/json' \\`,
      `  -d '{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message":`,
      `       {"messageId": "'$(date +%s)'", "role": "ROLE_USER", "parts": [{"text": "Hello"}]}}}'`,
    ].join("\n");
  }
  return [
    "# pip install a2a-sdk",
    "import asyncio, os, uuid",
    "import httpx",
    "from a2a.client import A2ACardResolver, ClientConfig, ClientFactory",
    "from a2a.types import Message, Part, Role, SendMessageRequest",
    "",
    "async def main():",
    `    headers = {"Authorization": "Bearer " + os.environ["TASKBELL_KEY"]}`,
    "    async with httpx.AsyncClient(headers=headers, timeout=90) as http:",
    `        card = await A2ACardResolver(http, "${address}").get_agent_card()`,
    "        client = ClientFactory(ClientConfig(httpx_client=http)).create(card)",
    '        message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text="Hello")])',
    "        async for event in client.send_message(SendMessageRequest(message=message)):",
    "            print(event)",
    "",
    "asyncio.run(main())",
  ].join("\n");
}

/** What is known of a client's use from the requests that are kept. */
export interface Use {
  lastAt: string | null;
  requests: number;
  tasks: number;
}

export function useOf(client: Client, traffic: readonly Traffic[]): Use {
  // A name may have belonged to a key that was revoked before this one was made.
  const own = traffic.filter((row) => row.client === client.name && row.at >= client.createdAt);
  const tasks = new Set(own.flatMap((row) => (row.taskId == null ? [] : [`${row.agent}/${row.taskId}`])));
  return { lastAt: own[0]?.at ?? null, requests: own.length, tasks: tasks.size };
}

/** `AGENT/TASKID` of a request, or null where it was about none. */
export function taskOf(row: Traffic): string | null {
  return row.taskId == null ? null : `${row.agent}/${row.taskId}`;
}

/** What was answered: an error's code, or the task's state. */
export function outcomeOf(row: Traffic): string {
  if (row.errorCode != null) return `error ${String(row.errorCode)}`;
  const state = STATES.find((one) => one === row.state);
  return state ? stateWord(state) : (row.state ?? "answered");
}

/** `320 B`, `2.1 kB`, `4.0 MB`. */
export function octets(count: number): string {
  if (count < 1000) return `${String(count)} B`;
  if (count < 1_000_000) return `${(count / 1000).toFixed(1)} kB`;
  return `${(count / 1_000_000).toFixed(1)} MB`;
}

/** `40 ms`, `1.2 s`, `3 min`. */
export function took(ms: number): string {
  if (ms < 1000) return `${String(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${String(Math.floor(ms / 60_000))} min`;
}
