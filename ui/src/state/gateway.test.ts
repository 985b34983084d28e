import { describe, expect, it } from "vitest";
import type { Delivery, Traffic } from "../api/types";
import {
  agentAddress,
  canRetry,
  deliveryMeaning,
  octets,
  outcomeOf,
  portOf,
  snippet,
  targetLine,
  taskOf,
  took,
  triesLine,
  useOf,
  weightOfDelivery,
} from "./gateway";

const row = (more: Partial<Traffic> = {}): Traffic => ({
  id: 1,
  at: "2026-11-30T10:00:00.000Z",
  client: "editor",
  agent: "demo",
  dialect: "1.0",
  binding: "JSONRPC",
  method: "SendMessage",
  taskId: "t-1",
  taskKnown: true,
  state: "completed",
  octetsIn: 10,
  octetsOut: 20,
  tookMs: 5,
  ...more,
});

describe("the gateway's screen", () => {
  it("gives each agent an address of its own, whatever its name", () => {
    expect(agentAddress("http://127.0.0.1:7420", "demo")).toBe("http://127.0.0.1:7420/agents/demo/");
    expect(agentAddress("http://127.0.0.1:7420", "a b/c")).toBe("http://127.0.0.1:7420/agents/a%20b%2Fc/");
  });

  it("keeps the key out of the lines to start with", () => {
    for (const language of ["curl", "python"] as const) {
      const lines = snippet(language, "http://127.0.0.1:7420/agents/demo/");
      expect(lines).toContain("http://127.0.0.1:7420/agents/demo/");
      expect(lines).toContain("TASKBELL_KEY");
    }
  });

  it("counts a client's requests and tasks, and not those of an earlier key of its name", () => {
    const traffic = [
      row({ id: 4, at: "2026-11-30T10:03:00.000Z" }),
      row({ id: 3, taskId: "t-2" }),
      row({ id: 2, client: "other" }),
      row({ id: 1, at: "2026-11-29T10:00:00.000Z", taskId: "t-0" }),
    ];
    const use = useOf({ name: "editor", createdAt: "2026-11-30T09:00:00.000Z" }, traffic);
    expect(use).toEqual({ lastAt: "2026-11-30T10:03:00.000Z", requests: 2, tasks: 1 + 1 });
    expect(useOf({ name: "new", createdAt: "2026-11-30T09:00:00.000Z" }, traffic).lastAt).toBeNull();
  });

  it("says what a request came to", () => {
    expect(outcomeOf(row())).toBe("finished");
    expect(outcomeOf(row({ errorCode: -32001, state: null }))).toBe("error -32001");
    expect(outcomeOf(row({ state: null }))).toBe("answered");
    expect(outcomeOf(row({ octetsOut: 0 }))).toBe("left before the answer");
    expect(taskOf(row())).toBe("demo/t-1");
    expect(taskOf(row({ taskId: null }))).toBeNull();
    expect(taskOf(row({ taskKnown: false }))).toBeNull();
  });

  it("writes sizes and lengths in one unit", () => {
    expect([octets(999), octets(2_140), octets(4_000_000)]).toEqual(["999 B", "2.1 kB", "4.0 MB"]);
    expect([took(40), took(1_240), took(190_000)]).toEqual(["40 ms", "1.2 s", "3 min"]);
  });
});

const delivery = (more: Partial<Delivery> = {}): Delivery => ({
  id: 1,
  attempts: [],
  client: "editor",
  createdAt: "2026-11-30T10:00:00.000Z",
  lane: "reserved",
  state: "queued",
  target: "http://127.0.0.1:9000",
  task: "demo/t-1",
  taskState: "completed",
  tries: 0,
  triesMax: 9,
  webhookId: "w-1",
  ...more,
});

describe("what leaves for clients", () => {
  const now = Date.parse("2026-11-30T10:01:00.000Z");

  it("says how often a delivery was tried, why, and when it is tried next", () => {
    expect(triesLine(delivery(), now)).toBe("not tried yet");
    const failed = delivery({
      state: "failed",
      tries: 2,
      lastError: "http_503",
      dueAt: "2026-11-30T10:06:00.000Z",
    });
    expect(triesLine(failed, now)).toBe("attempt 2 of 9 · answered 503 · next in 5 min");
    expect(triesLine({ ...failed, waitsFor: "keyring_locked" }, now)).toContain("waits: keyring locked");
    expect(triesLine({ ...failed, dueAt: "2026-11-30T10:00:30.000Z" }, now)).toContain("next at once");
  });

  it("is silent about the failures of one that arrived, and plans nothing for it", () => {
    const arrived = delivery({
      state: "delivered",
      tries: 2,
      lastError: "http_503",
      dueAt: "2026-11-30T10:06:00.000Z",
      doneAt: "2026-11-30T10:00:09.000Z",
    });
    expect(triesLine(arrived, now)).toBe("attempt 2 of 9");
    expect(canRetry(arrived)).toBe(false);
    expect(canRetry(delivery({ state: "exhausted" }))).toBe(true);
  });

  it("has a meaning for each state, and weighs what is not known lightly", () => {
    const states = ["queued", "sending", "delivered", "failed", "outcome-unknown", "exhausted", "rejected"];
    for (const state of [...states, "refused-by-policy", "superseded", "dropped", "cancelled"]) {
      expect(deliveryMeaning(state)).not.toBe("");
    }
    expect(weightOfDelivery("rejected")).toBe("failed");
    expect(weightOfDelivery("a-word-of-later")).toBe("quiet");
  });

  it("says how a receiver stands", () => {
    const target = {
      id: 1,
      client: "editor",
      target: "http://127.0.0.1:9000",
      kind: "loopback",
      state: "failing",
      lastError: "http_500",
      failures: 3,
      waiting: 2,
      updates: 10,
      dropped: 4,
    };
    expect(targetLine(target)).toBe("failing · answered 500 · 2 waiting · 4 of 10 updates dropped");
    expect(targetLine({ ...target, state: "paused", pauseReason: "failing", waiting: 0, dropped: 0 })).toBe(
      "paused: it failed for days",
    );
  });

  it("takes ports and nothing else", () => {
    expect([portOf(" 8080 "), portOf("65535")]).toEqual([8080, 65_535]);
    expect(["0", "65536", "-1", "80a", "", "1e3"].map(portOf)).toEqual([null, null, null, null, null, null]);
  });
});
