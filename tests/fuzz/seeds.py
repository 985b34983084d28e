#!/usr/bin/env python3
"""Writes the first inputs of each fuzz target into FOLDER/TARGET: the rows of tests/hostile, one example a shape, and what
corpus/ keeps of earlier runs, an input a line in base64.

  seeds.py FOLDER         writes them
  seeds.py FOLDER --keep  puts what is in FOLDER/TARGET into corpus/ in their place
"""

import base64
import hashlib
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
HOSTILE = HERE.parent / "hostile"
CARDS = HERE.parent.parent / "crates/core/tests/cards"


def rows(name):
    return [json.loads(line) for line in (HOSTILE / f"{name}.jsonl").read_text().splitlines() if line]


def event_stream():
    for row in rows("sse_streams"):
        if "bytes_b64" in row:
            yield b"\3" + base64.b64decode(row["bytes_b64"])


def bodies():
    for row in rows("callbacks"):
        _, _, body = row.get("raw", "").partition("\r\n\r\n")
        yield body.encode()


TASKS = [
    {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING", "timestamp": "2026-01-01T00:00:00Z"}},
    {
        "kind": "task", "id": "t", "contextId": "c",
        "status": {"state": "input-required", "message": {
            "kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "Which?"}]}},
        "artifacts": [{"artifactId": "a", "name": "n", "parts": [
            {"kind": "file", "file": {"bytes": "aGk=", "mimeType": "text/plain", "name": "f"}},
            {"kind": "file", "file": {"uri": "https://h.test/x"}}, {"kind": "data", "data": {"k": [1, None]}}]}],
        "history": [{"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}],
    },
]
EVENTS = [
    {"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}},
    {"kind": "status-update", "taskId": "t", "contextId": "c", "status": {"state": "failed"}, "final": True},
    {"artifactUpdate": {"taskId": "t", "append": True, "lastChunk": True, "artifact": {
        "artifactId": "a", "parts": [{"raw": "aGk=", "mediaType": "text/plain", "filename": "f"}, {"data": [1]}]}}},
    {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hello"}], "metadata": {"k": 1}}},
    {"task": TASKS[0]},
]


def line(value):
    return json.dumps(value, separators=(",", ":")).encode()


def dialects():
    yield from map(line, TASKS + EVENTS)
    yield from bodies()


def callback():
    for body in bodies():
        yield body + b"\n" + line(TASKS[1])
    for event in EVENTS:
        yield line(event) + b"\n" + line(TASKS[0])


def merge():
    events = [line(event) for event in EVENTS]
    reads = [digit + line(task) for digit, task in zip((b"0", b"2"), TASKS)]
    yield b"\n".join([line(TASKS[0])] + events + reads)
    yield b"\n".join([line(TASKS[1])] + reads + events[::-1])


def card():
    for path in sorted(CARDS.rglob("*.json")):
        yield path.read_bytes()


def request():
    message = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
    config = {"url": "https://h.test/x", "token": "t", "authentication": {"schemes": ["Bearer"], "credentials": "c"}}
    for method, params in [
        ("message/send", {"message": message, "configuration": {"blocking": False, "pushNotificationConfig": config}}),
        ("SendStreamingMessage", {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}),
        ("tasks/resubscribe", {"id": "t"}),
        ("GetTask", {"id": "t", "historyLength": 3}),
        ("ListTasks", {"pageSize": 5, "status": "TASK_STATE_WORKING", "pageToken": "x"}),
        ("tasks/pushNotificationConfig/set", {"taskId": "t", "pushNotificationConfig": config}),
        ("CreateTaskPushNotificationConfig", {"taskId": "t", "id": "c", "url": "https://h.test/x"}),
    ]:
        yield line({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    for verb, path, query in [
        ("POST", "/message:send", ""), ("GET", "/tasks/t", "historyLength=2"), ("POST", "/tasks/t:subscribe", ""),
        ("GET", "/tasks", "pageSize=2&contextId=c"), ("DELETE", "/tasks/t/pushNotificationConfigs/c", ""),
        ("1767225600000-7", "1.0", ""),
    ]:
        yield "\n".join([verb, path, query]).encode() + b"\n" + line({"message": message})


def target_url():
    for row in rows("webhook_targets"):
        yield row["url"].encode()
    yield from (b"120", b"Wed, 21 Oct 2026 07:28:00 GMT", b"your url is: https://a-b.lhr.life", b"http://127.0.0.1:9000/cb")


def agent_text():
    for row in rows("agent_output"):
        yield row.get("text", "").encode("utf-8", "surrogatepass")


def follow():
    """Octets that are read as happenings: any will do."""
    for number in range(16):
        yield hashlib.shake_128(bytes([number])).digest(200)


TARGETS = [agent_text, callback, card, dialects, event_stream, follow, merge, request, target_url]

def kept(target):
    return HERE / "corpus" / f"{target}.b64"


def keep(folder):
    for target in TARGETS:
        inputs = {path.read_bytes() for path in (folder / target.__name__).iterdir()}
        lines = [base64.b64encode(octets).decode() for octets in sorted(inputs, key=lambda octets: (len(octets), octets))]
        kept(target.__name__).write_text("".join(line + "\n" for line in lines if line))


def write(folder):
    for target in TARGETS:
        into = folder / target.__name__
        into.mkdir(parents=True, exist_ok=True)
        earlier = map(base64.b64decode, kept(target.__name__).read_text().split())
        for octets in (*target(), *earlier):
            (into / hashlib.sha1(octets).hexdigest()).write_bytes(octets)


if __name__ == "__main__":
    (keep if "--keep" in sys.argv else write)(pathlib.Path(sys.argv[1]))
