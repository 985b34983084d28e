import { expect, test } from "vitest";
import type { Callback, CallbackDetail } from "../api/types";
import {
  asCurl,
  hex,
  lines,
  LINES_MAX,
  notable,
  statesLine,
  VERDICTS,
  verdictMeaning,
  weightOf,
} from "./inbox";

const NOW = Date.parse("2026-01-05T10:00:00Z");

function callback(more: Partial<Callback> = {}): Callback {
  return {
    id: "1",
    at: "2026-01-05T09:59:00.000Z",
    lastAt: "2026-01-05T09:59:00.000Z",
    count: 1,
    task: "demo/t",
    agent: "demo",
    shape: "status",
    claimed: "completed",
    claimedRaw: "completed",
    confirmed: "working",
    verdict: "ahead",
    verdictAt: null,
    reason: "not_ended",
    text: "it tells an end, and the task as read goes on",
    proofs: { token: "valid", authorization: "missing" },
    size: 10,
    outOfOrder: false,
    registration: "abcdef…",
    ...more,
  };
}

test("every verdict has a meaning and a weight", () => {
  for (const verdict of VERDICTS) {
    expect(verdictMeaning(verdict)).toMatch(/\.$/);
    expect(["done", "quiet", "waiting", "failed"]).toContain(weightOf(verdict));
  }
});

test("a row says what was claimed and what the task is", () => {
  expect(statesLine(callback())).toBe("finished → working");
  expect(statesLine(callback({ claimed: null, shape: "artifact", confirmed: null }))).toBe(
    "artifact → not confirmed",
  );
});

test("only what is doubtful or wrong and of the last day counts", () => {
  const old = "2026-01-03T09:59:00.000Z";
  expect(
    notable(
      [
        callback(),
        callback({ verdict: "confirmed" }),
        callback({ verdict: "rejected" }),
        callback({ lastAt: old }),
      ],
      NOW,
    ),
  ).toBe(2);
});

test("the lines of a document are marked where the other one differs", () => {
  const differences = [{ pointer: "/status/state", claimed: "a", confirmed: "b" }];
  const claimed = lines({ id: "t", status: { state: "a", timestamp: "1" } }, differences, "claimed") ?? [];
  expect(claimed.map((line) => line.text)).toEqual([
    "{",
    '  "id": "t",',
    '  "status": {',
    '    "state": "a",',
    '    "timestamp": "1"',
    "  }",
    "}",
  ]);
  expect(claimed.filter((line) => line.differs).map((line) => line.pointer)).toEqual(["/status/state"]);
  const confirmed = lines({ status: { state: "b" } }, differences, "confirmed") ?? [];
  expect(confirmed.filter((line) => line.differs).map((line) => line.text.trim())).toEqual(['"state": "b"']);
});

test("what differs as a whole is marked with all its lines", () => {
  const differences = [{ pointer: "/artifacts/0", claimed: {}, confirmed: null }];
  const found = lines({ artifacts: [{ parts: [{ text: "x" }] }] }, differences, "claimed") ?? [];
  expect(found.filter((line) => line.differs)).toHaveLength(7);
});

test("a document of too many lines is not drawn line by line", () => {
  expect(
    lines(
      Array.from({ length: LINES_MAX + 1 }, () => 1),
      [],
      "claimed",
    ),
  ).toBeNull();
});

test("octets are shown with their place, and what cannot be printed as a dot", () => {
  expect(hex("hé\n")).toBe(`000000  68 c3 a9 0a${" ".repeat(36)}  h···`);
  expect(hex("x".repeat(20_000))).toContain("octets more");
});

test("a curl line quotes what a shell would take for its own", () => {
  const detail = {
    ...callback(),
    headers: { "content-type": "application/json", authorization: "Bearer ***" },
    body: '{"it\'s":1}',
    claim: null,
    confirmation: null,
    differences: [],
    url: "https://h/a2a/callbacks/abcdef…",
    policy: "any",
  } as unknown as CallbackDetail;
  expect(asCurl(detail)).toBe(
    [
      "curl -X POST \\",
      "  -H 'content-type: application/json' \\",
      "  -H 'authorization: Bearer ***' \\",
      "  --data-raw '{\"it'\\''s\":1}' \\",
      "  'https://h/a2a/callbacks/abcdef…'",
    ].join("\n"),
  );
});
