import { describe, expect, it } from "vitest";
import type { Health, Traffic } from "../api/types";
import { agentAddress, gatewayAddress, octets, outcomeOf, snippet, taskOf, took, useOf } from "./gateway";

const row = (more: Partial<Traffic> = {}): Traffic => ({
  id: 1,
  at: "2026-11-30T10:00:00.000Z",
  client: "editor",
  agent: "demo",
  dialect: "1.0",
  binding: "JSONRPC",
  method: "SendMessage",
  taskId: "t-1",
  state: "completed",
  octetsIn: 10,
  octetsOut: 20,
  tookMs: 5,
  ...more,
});

describe("the gateway's screen", () => {
  it("takes the address from what the engine says, else from the page's own", () => {
    const health = {
      items: [{ component: "gateway", detail: "listens on http://127.0.0.1:7433, and page" }],
    } as unknown as Health;
    expect(gatewayAddress(health, "tauri://localhost")).toBe("http://127.0.0.1:7433");
    expect(gatewayAddress(null, "http://127.0.0.1:7420")).toBe("http://127.0.0.1:7420");
    expect(agentAddress("http://127.0.0.1:7420", "demo")).toBe("http://127.0.0.1:7420/agents/demo/");
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
    expect(taskOf(row())).toBe("demo/t-1");
    expect(taskOf(row({ taskId: null }))).toBeNull();
  });

  it("writes sizes and lengths in one unit", () => {
    expect([octets(999), octets(2_140), octets(4_000_000)]).toEqual(["999 B", "2.1 kB", "4.0 MB"]);
    expect([took(40), took(1_240), took(190_000)]).toEqual(["40 ms", "1.2 s", "3 min"]);
  });
});
