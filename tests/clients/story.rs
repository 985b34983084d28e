//! What every client does, in one run, and what each of the tests looks at.

use serde_json::{Value, json};
use taskbell_tests::sdk_clients::{Seen, Step, Story, text_of_events};
use taskbell_tests::{SdkClient, a2a::Dialect};

/// What the scripts with two chunks leave behind.
const TWO_CHUNKS: &str = "chunk 1/2;chunk 2/2;";

/// Registered and deleted again before anything happens that would be told there.
const HOOK: &str = "https://hooks.example.com/hook";

pub const HOOK_TOKEN: &str = "token-of-a-callback";
pub const HOOK_CREDENTIALS: &str = "credentials-of-a-callback";

pub fn steps(client: SdkClient) -> Vec<Step> {
    let send = |text: &str, blocking: bool| json!({"do": "send", "text": text, "blocking": blocking});
    let authentication = json!({"schemes": ["Bearer"], "credentials": HOOK_CREDENTIALS});
    let push = json!({"id": "mine", "url": HOOK, "token": HOOK_TOKEN, "authentication": authentication});
    let mut steps = vec![
        ("card", json!({"do": "card"})),
        ("sent", send("steps=2 interval=0.1 chunks=2", true)),
        ("streamed", json!({"do": "stream", "text": "steps=2 interval=0.3 chunks=2"})),
        ("read", json!({"do": "get", "history": 10})),
        ("asked", send("steps=2 interval=0.2 chunks=2 ask=1", true)),
        ("registered", json!({"do": "push-set", "push": push})),
        ("registration", json!({"do": "push-get", "config": "mine"})),
        ("registrations", json!({"do": "push-list"})),
        ("taken back", json!({"do": "push-delete", "config": "mine"})),
        ("registrations left", json!({"do": "push-list"})),
        ("answered", json!({"do": "send", "text": "go on", "reply": true, "blocking": true})),
        ("left", send("steps=4 interval=1 chunks=2", false)),
        ("came back", json!({"do": "subscribe"})),
        ("found", json!({"do": "get"})),
        ("begun", send("steps=1 interval=900", false)),
        ("canceled", json!({"do": "cancel"})),
        ("read canceled", json!({"do": "get"})),
        ("came back too late", json!({"do": "subscribe"})),
    ];
    if client.dialect() == Dialect::V1 {
        steps.push(("listed", json!({"do": "list"})));
    }
    // From here on the steps are about a task that never was.
    steps.push(("read nothing", json!({"do": "get", "task": "no-such-task"})));
    steps.push(("canceled nothing", json!({"do": "cancel"})));
    steps.push(("came back to nothing", json!({"do": "subscribe"})));
    steps.into_iter().map(|(name, what)| Step { name, what }).collect()
}

pub fn sends_and_reads(story: &Story, client: SdkClient) {
    assert_eq!(story.task("sent").state(), "completed", "a send waits for the end");
    assert_eq!(story.task("sent").text(), TWO_CHUNKS);
    assert_eq!(story.task("read").state(), "completed");
    assert_eq!(story.task("read").text(), TWO_CHUNKS);
    let history = story.task("read").0["history"].as_array().map(Vec::len);
    assert!(history.is_some_and(|length| length >= 1), "{:?}", story.answer("read"));
    if client.dialect() == Dialect::V1 {
        let tasks = story.answer("listed")["tasks"].as_array().expect("tasks").clone();
        let sent = &story.task("sent").0["id"];
        assert!(tasks.iter().any(|task| &task["id"] == sent), "{tasks:?}");
    }
}

pub fn streams(story: &Story, client: SdkClient) {
    let events = story.events("streamed");
    assert!(Seen(&events[0]).is_task(), "the task comes first: {events:?}");
    assert_ends_completed(events, client);
}

pub fn asks_and_is_answered(story: &Story, _: SdkClient) {
    assert_eq!(story.task("asked").state(), "input-required", "a send waits until somebody is asked");
    assert_eq!(story.task("answered").state(), "completed");
    assert_eq!(story.task("answered").text(), TWO_CHUNKS);
    assert_eq!(story.task("answered").0["id"], story.task("asked").0["id"], "the same task goes on");
}

pub fn comes_back(story: &Story, client: SdkClient) {
    assert!(["submitted", "working"].contains(&story.task("left").state().as_str()), "a send that waits not");
    let events = story.events("came back");
    assert!(Seen(&events[0]).is_task(), "the task comes first: {events:?}");
    assert_ends_completed(events, client);
    assert_eq!(story.task("found").state(), "completed");
    assert_eq!(story.task("found").text(), TWO_CHUNKS);
}

pub fn cancels(story: &Story, client: SdkClient) {
    assert_eq!(story.task("canceled").state(), "canceled");
    assert_eq!(story.task("read canceled").state(), "canceled");
    match client.dialect() {
        // 0.3 reports the end and closes; 1.0 refuses.
        Dialect::V03 => {
            let events = story.events("came back too late");
            assert_eq!(events.len(), 1, "{events:?}");
            assert!(Seen(&events[0]).is_task());
            assert_eq!(Seen(&events[0]).state(), "canceled");
        }
        Dialect::V1 => assert_error(story, "came back too late", -32004, "UnsupportedOperation"),
    }
}

pub fn keeps_callbacks(story: &Story, _: SdkClient) {
    for name in ["registered", "registration"] {
        let config = story.answer(name);
        let config = config.get("pushNotificationConfig").unwrap_or(config);
        assert_eq!((&config["id"], &config["url"]), (&json!("mine"), &json!(HOOK)), "{name}");
    }
    assert_eq!(configs(story, "registrations"), 1);
    assert_eq!(configs(story, "registrations left"), 0);
    story.answer("taken back");
}

pub fn is_told_what_is_not_there(story: &Story, _: SdkClient) {
    for name in ["read nothing", "canceled nothing", "came back to nothing"] {
        assert_error(story, name, -32001, "TaskNotFound");
    }
}

fn configs(story: &Story, name: &str) -> usize {
    let answer = story.answer(name);
    let list = answer.get("configs").unwrap_or(answer);
    list.as_array().map_or(0, Vec::len)
}

/// States only go forward, the last event is the end, and the events together are the result.
fn assert_ends_completed(events: &[Value], client: SdkClient) {
    let rank = |state: &str| match state {
        "submitted" => 0,
        "working" => 1,
        "completed" => 2,
        other => panic!("no state of this script: {other} in {events:?}"),
    };
    let states: Vec<u8> =
        events.iter().filter_map(|event| Seen(event).state_if_any()).map(|state| rank(&state)).collect();
    assert!(states.is_sorted(), "a task goes back: {events:?}");
    let last = events.last().expect("events");
    assert_eq!(Seen(last).state(), "completed", "{events:?}");
    if client == SdkClient::Py03 || client == SdkClient::Js03 {
        assert_eq!(last["final"], true, "0.3 marks the last event: {last}");
    }
    assert_eq!(text_of_events(events), TWO_CHUNKS, "{events:?}");
}

/// The error as its user gets it: a code or, where the SDK keeps it to itself, an exception of that name.
fn assert_error(story: &Story, step: &str, code: i64, name: &str) {
    let told = story.told(step);
    let error = told.error.as_ref().unwrap_or_else(|| panic!("{step} went well: {told:?}"));
    let message = error["message"].as_str().unwrap_or_default();
    let says_so = error["code"] == code
        || error["type"].as_str().is_some_and(|kind| kind.contains(name))
        || message.contains(&code.to_string());
    assert!(says_so, "{step}: {error}");
}
