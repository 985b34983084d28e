import { expect, test } from "vitest";
import type { Agent } from "../api/types";
import { readPasted, taskAsCurl, words } from "./curl";

test("an address alone is an address, with or without its scheme", () => {
  expect(readPasted(" https://agent.example/.well-known/agent-card.json ")).toEqual({
    url: "https://agent.example/.well-known/agent-card.json",
    name: "agent",
  });
  expect(readPasted("ledger.example.com/a2a")).toMatchObject({
    url: "https://ledger.example.com/a2a",
    name: "ledger",
  });
  expect(readPasted("http://127.0.0.1:9999")).toMatchObject({ name: "agent-9999" });
});

test("a curl line gives its address and its bearer token", () => {
  const line = `$ curl -s -X POST 'https://agents.example.com/rpc' \\
    -H "Content-Type: application/json" -H 'Authorization: Bearer abc.def' \\
    --data-raw '{"url":"https://other.example"}'`;
  expect(readPasted(line)).toMatchObject({
    url: "https://agents.example.com/rpc",
    credential: { kind: "bearer", token: "abc.def" },
  });
});

test("the other ways of curl to say who calls are read too", () => {
  expect(readPasted("curl -u ann:s3cret https://a.example")?.credential).toEqual({
    kind: "basic",
    user: "ann",
    password: "s3cret",
  });
  expect(
    readPasted("curl -Hauthorization:\\ Basic\\ YW5uOnMzY3JldA== https://a.example")?.credential,
  ).toEqual({
    kind: "basic",
    user: "ann",
    password: "s3cret",
  });
  expect(readPasted("curl --header=X-Api-Key:k1 --url https://a.example")?.credential).toEqual({
    kind: "headers",
    headers: { "x-api-key": "k1" },
  });
  expect(readPasted("curl --oauth2-bearer t1 https://a.example")?.credential).toEqual({
    kind: "bearer",
    token: "t1",
  });
});

test("a password in the address moves to the credential", () => {
  expect(readPasted("https://ann:p%40ss@a.example/x")).toEqual({
    url: "https://a.example/x",
    name: "a",
    credential: { kind: "basic", user: "ann", password: "p@ss" },
  });
});

test("what names no http address is refused", () => {
  for (const line of [
    "",
    "curl",
    "curl -H 'X: y'",
    "ftp://a.example",
    "javascript:alert(1)",
    "file:///etc/passwd",
  ]) {
    expect(readPasted(line), line).toBeNull();
  }
});

test("quotes and continued lines are read as a shell does", () => {
  expect(words(`a 'b "c' "d\\"e" f\\ g \\\n h ''`)).toEqual(["a", 'b "c', 'd"e', "f g", "h", ""]);
});

test("the line that reads a task speaks the agent's version, and its secret is masked", () => {
  const agent = {
    url: "https://agent.example/",
    interfaceUrl: "https://agent.example/a2a",
    binding: "JSONRPC",
    dialect: "0.3",
    pinnedDialect: null,
    credential: { kind: "bearer", changedAt: null },
  } as unknown as Agent;
  const old = taskAsCurl({ id: "it's" }, agent);
  expect(words(old)).toEqual([
    ..."curl -X POST -H".split(" "),
    "Content-Type: application/json",
    "-H",
    "Authorization: Bearer ***",
    "--data-raw",
    '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"it\'s"}}',
    "https://agent.example/a2a",
  ]);
  const now = taskAsCurl({ id: "t" }, { ...agent, dialect: "1.0", credential: null } as unknown as Agent);
  expect(now).toContain("A2A-Version: 1.0");
  expect(now).toContain('"GetTask"');
  expect(now).not.toContain("***");
  const rest = { ...agent, dialect: "1.0", binding: "HTTP+JSON" } as unknown as Agent;
  expect(words(taskAsCurl({ id: "a/b" }, rest)).at(-1)).toBe("https://agent.example/a2a/tasks/a%2Fb");
});
