use serde_json::{Value, json};
use taskbell_core::state::TaskState;

use super::*;

fn round_trip<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> Value {
    let json = serde_json::to_value(value).unwrap();
    let back: T = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(serde_json::to_value(&back).unwrap(), json, "the client must read what the server wrote");
    json
}

fn summary() -> TaskSummary {
    TaskSummary {
        task: "demo/a/b".parse().unwrap(),
        agent: "demo".to_owned().try_into().unwrap(),
        id: taskbell_core::ids::TaskId::new("a/b"),
        context_id: None,
        title: "Build".into(),
        state: ShownState::InputRequired,
        raw_state: "TASK_STATE_INPUT_REQUIRED".into(),
        question: Some("Which branch?".into()),
        words: None,
        following: FollowingView {
            mode: FollowingMode::PushPoll,
            since: UtcTime::from_ms(0),
            attempt: 2,
            trouble: None,
        },
        last_confirmed: Some(ConfirmedView { at: UtcTime::from_ms(1_700_000_000_123), by: "stream".into() }),
        needs_you: true,
        needs_sign_in: false,
        settled: false,
        created_at: UtcTime::from_ms(0),
        updated_at: UtcTime::from_ms(1),
        terminal_at: None,
        waiting_since: Some(UtcTime::from_ms(5)),
        replied_at: None,
        pinned: false,
        archived: false,
        muted: false,
        snoozed_until: None,
        has_note: false,
        hit: None,
        source: "send".into(),
    }
}

#[test]
fn times_are_utc_with_milliseconds_and_survive_any_number() {
    for (ms, text) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_120, "2023-11-14T22:13:20.120Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
    ] {
        let time = UtcTime::from_ms(ms);
        assert_eq!(time.to_string(), text);
        let back: UtcTime = serde_json::from_value(json!(text)).unwrap();
        assert_eq!(back, time);
    }
    for far in [i64::MAX, i64::MIN] {
        assert!(UtcTime::from_ms(far).to_string().ends_with('Z'));
    }
}

#[test]
fn a_detail_is_its_summary_with_more_beside() {
    let detail = TaskDetail {
        note: None,
        summary: summary(),
        artifacts: vec![],
        history: vec![],
        status: json!({"state": "TASK_STATE_INPUT_REQUIRED"}),
        timeline: vec![],
        callbacks: vec![],
        registrations: vec![],
        metadata: serde_json::Map::new(),
    };
    let json = round_trip(&detail);
    assert_eq!(json["task"], "demo/a/b");
    assert_eq!(json["state"], "input-required");
    assert_eq!(
        json["following"],
        json!({"mode": "push+poll", "since": "1970-01-01T00:00:00.000Z", "attempt": 2, "trouble": null})
    );
    assert_eq!(json["lastConfirmed"]["at"], "2023-11-14T22:13:20.123Z");
    assert_eq!(json["terminalAt"], Value::Null, "absent members are null and not missing");
}

#[test]
fn words_and_json_agree_for_every_state_and_mode() {
    for state in ShownState::ALL {
        assert_eq!(serde_json::to_value(state).unwrap(), state.word());
        assert_eq!(ShownState::from_word(state.word()), Some(state));
    }
    for mode in FollowingMode::ALL {
        assert_eq!(serde_json::to_value(mode).unwrap(), mode.word());
        assert_eq!(FollowingMode::from_word(mode.word()), Some(mode));
    }
    for state in TaskState::ALL {
        assert_eq!(ShownState::from(state).word(), state.word());
        assert_eq!(ShownState::from(state).is_terminal(), state.is_terminal());
        assert_eq!(ShownState::from(state).is_waiting(), state.is_interrupted());
    }
}

#[test]
fn a_send_has_one_of_three_outcomes_told_apart_by_shape() {
    let task = SendOutcome::Task(SentTask { task: "demo/1".parse().unwrap(), state: ShownState::Working });
    assert_eq!(round_trip(&task), json!({"task": "demo/1", "state": "working"}));
    let message = SendOutcome::Message { message: json!({"messageId": "m"}) };
    assert_eq!(round_trip(&message), json!({"message": {"messageId": "m"}}));
    let message_id = taskbell_core::ids::MessageId::new("m1");
    let unknown = SendOutcome::Unknown { unknown: UnknownOutcome { message_id } };
    assert_eq!(round_trip(&unknown), json!({"unknown": {"messageId": "m1"}}));
}

#[test]
fn a_change_keeps_its_own_members_whatever_its_body_names() {
    let change = ChangeView {
        seq: 7,
        at: UtcTime::from_ms(0),
        task: Some("demo/1".parse().unwrap()),
        agent: Some("demo".to_owned().try_into().unwrap()),
        source: "stream".into(),
        kind: "status".into(),
        body: ChangeView::body_of(r#"{"state":"working","seq":1,"kind":"x"}"#),
    };
    let json = round_trip(&change);
    assert_eq!((&json["seq"], &json["kind"]), (&json!(7), &json!("status")));
    assert_eq!((&json["seq_"], &json["state"]), (&json!(1), &json!("working")));
    let text = serde_json::to_string(&change).unwrap();
    assert_eq!(text.matches("\"seq\"").count(), 1, "no member may come twice: {text}");
    for (stored, body) in [("3", json!({"body": 3})), ("null", json!({})), ("{", json!({"body": "{"}))] {
        assert_eq!(Value::Object(ChangeView::body_of(stored)), body);
    }
}

#[test]
fn a_credential_request_prints_redacted() {
    let all = [
        json!({"kind": "bearer", "token": "canary-1"}),
        json!({"kind": "basic", "user": "u", "password": "canary-1"}),
        json!({"kind": "headers", "headers": {"x-key": "canary-1"}}),
    ];
    for json in all {
        let credential: CredentialRequest = serde_json::from_value(json.clone()).unwrap();
        let text = format!("{credential:?}");
        assert!(text.contains("REDACTED") && !text.contains("canary"), "{text}");
        assert_eq!(serde_json::to_value(&credential).unwrap(), json, "the client has to send it");
    }
}

#[test]
fn a_misspelt_member_of_a_request_is_refused() {
    let bad = json!({"url": "http://127.0.0.1:1", "name": "a", "useCardURL": true});
    assert!(serde_json::from_value::<NewAgentRequest>(bad).is_err());
    let bad = json!({"text": "x", "contextID": "c"});
    assert!(serde_json::from_value::<SendRequestView>(bad).is_err());
}
