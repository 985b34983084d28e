/** What the gateway's screen says, in words. Pure. */
import type { Client, Delivery, Target, Traffic } from "../api/types";
import { span } from "../time/relative";
import type { Weight } from "./inbox";
import { STATES, stateWord } from "./words";

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

/** `AGENT/TASKID` of a request, or null where it was about none that is here. */
export function taskOf(row: Traffic): string | null {
  return row.taskId == null || !row.taskKnown ? null : `${row.agent}/${row.taskId}`;
}

/** What was answered: an error's code, or the task's state; or that nobody waited for it. */
export function outcomeOf(row: Traffic): string {
  if (row.errorCode != null) return `error ${String(row.errorCode)}`;
  // Nothing left: whoever asked was gone before there was an answer.
  if (row.octetsOut === 0) return "left before the answer";
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

/** How much a delivery wants to be looked at. */
export function weightOfDelivery(state: string): Weight {
  switch (state) {
    case "delivered":
      return "done";
    case "failed":
    case "outcome-unknown":
    case "dropped":
      return "waiting";
    case "exhausted":
    case "rejected":
    case "refused-by-policy":
      return "failed";
    default:
      return "quiet";
  }
}

export function deliveryMeaning(state: string): string {
  switch (state) {
    case "queued":
      return "It has not left yet.";
    case "sending":
      return "It is on its way.";
    case "delivered":
      return "The receiver said that it has it.";
    case "failed":
      return "The receiver did not take it. It is tried again.";
    case "outcome-unknown":
      return "Taskbell stopped between sending and the answer. It is sent again under the same id.";
    case "exhausted":
      return "It was tried as often as is planned. It is not tried again by itself.";
    case "rejected":
      return "The receiver does not want it. It is not tried again by itself.";
    case "refused-by-policy":
      return "The receiver's address is none that is called from here.";
    case "superseded":
      return "A newer one about the same task arrived first.";
    case "dropped":
      return "Only the newest are sent where one try is promised, and this was not among them.";
    case "cancelled":
      return "Its registration was taken away.";
    default:
      return "";
  }
}

/** What is still to arrive, or did not, can be sent again. The engine has the last word. */
export function canRetry(delivery: Delivery): boolean {
  return [
    "queued",
    "sending",
    "failed",
    "outcome-unknown",
    "exhausted",
    "rejected",
    "refused-by-policy",
  ].includes(delivery.state);
}

/** Codes as words: `http_500`, `tls_expired`. */
export function faultWords(code: string): string {
  const status = /^http_(\d{3})$/.exec(code)?.[1];
  return status ? `answered ${status}` : code.replaceAll("_", " ");
}

/** How far a delivery is: tries, why it waits, and when it is tried next. */
export function triesLine(delivery: Delivery, now: number): string {
  const parts = [
    delivery.tries === 0
      ? "not tried yet"
      : `attempt ${String(delivery.tries)} of ${String(delivery.triesMax)}`,
  ];
  if (delivery.waitsFor) parts.push(`waits: ${faultWords(delivery.waitsFor)}`);
  else if (delivery.lastError && delivery.state !== "delivered") parts.push(faultWords(delivery.lastError));
  if (delivery.dueAt && !delivery.doneAt) {
    const wait = Date.parse(delivery.dueAt) - now;
    parts.push(wait > 0 ? `next in ${span(wait)}` : "next at once");
  }
  return parts.join(" · ");
}

/** How a receiver stands. */
export function targetLine(target: Target): string {
  const parts = [
    target.state === "paused" && target.pauseReason === "failing"
      ? "paused: it failed for days"
      : target.state.replaceAll("-", " "),
  ];
  if (target.state === "failing" && target.lastError) parts.push(faultWords(target.lastError));
  if (target.waiting > 0) parts.push(`${String(target.waiting)} waiting`);
  if (target.dropped > 0)
    parts.push(`${String(target.dropped)} of ${String(target.updates)} updates dropped`);
  return parts.join(" · ");
}

/** A port as typed, or why it is none. */
export function portOf(text: string): number | null {
  const port = /^\d{1,5}$/.test(text.trim()) ? Number(text.trim()) : 0;
  return port >= 1 && port <= 65_535 ? port : null;
}
