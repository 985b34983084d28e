use serde_json::json;

use super::*;
use crate::dialect::read;
use crate::merge::TaskRecord;

fn task(state: &str) -> Task {
    read::task(json!({"id":"t","contextId":"c","status":{"state":state}})).unwrap()
}

fn event(value: Value) -> StreamEvent {
    read::stream_event(value).unwrap()
}

#[test]
fn an_event_id_is_read_as_it_was_written_and_no_other_way() {
    let id = EventId { start_ms: 1_796_000_000_000, n: 7 };
    assert_eq!(id.to_string().parse(), Ok(id));
    for text in
        ["", "7", "-", "a-1", "1-a", "1-+7", "1-07", "1-7 ", "1-7-8", "1--7", "99999999999999999999-1"]
    {
        assert_eq!(text.parse::<EventId>(), Err(NotAnEventId), "{text:?}");
    }
}

#[test]
fn a_question_ends_a_turn_an_end_ends_all_and_a_sign_in_ends_nothing() {
    for (state, expected) in [
        ("submitted", After::Goes),
        ("working", After::Goes),
        ("auth-required", After::Goes),
        ("unknown", After::Goes),
        ("input-required", After::TurnOver),
        ("completed", After::TaskOver),
        ("failed", After::TaskOver),
        ("canceled", After::TaskOver),
        ("rejected", After::TaskOver),
    ] {
        let update = event(json!({"kind":"status-update","taskId":"t","status":{"state":state}}));
        assert_eq!(after(&update), expected, "{state}");
    }
}

#[test]
fn an_old_client_always_gets_context_and_final_whatever_the_agent_left_out() {
    let mut update = event(json!({"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"}}}));
    complete(&mut update, &TaskId::new("t"), Some(&ContextId::new("c")));
    let line = event_line(&update, Dialect::V03);
    assert_eq!(
        serde_json::from_str::<Value>(&line).unwrap(),
        json!({"kind":"status-update","taskId":"t","contextId":"c","status":{"state":"completed"},"final":true})
    );
}

#[test]
fn final_is_said_by_us_and_not_by_the_agent() {
    // An agent that says so at every step would end its clients' streams at the first.
    let mut update = event(
        json!({"kind":"status-update","taskId":"t","contextId":"c","status":{"state":"working"},"final":true}),
    );
    complete(&mut update, &TaskId::new("t"), None);
    assert!(event_line(&update, Dialect::V03).contains("\"final\":false"));
}

#[test]
fn an_event_is_in_one_vocabulary_whatever_it_came_in() {
    let mixed = event(json!({"statusUpdate":{"taskId":"t","contextId":"c","final":true,
        "status":{"state":"input-required","message":{"kind":"message","role":"agent","messageId":"m",
            "parts":[{"kind":"text","text":"?"}]}}}}));
    assert_eq!(
        serde_json::from_str::<Value>(&event_line(&mixed, Dialect::V1)).unwrap(),
        json!({"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED",
            "message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"?"}]}}}})
    );
    assert!(event_line(&mixed, Dialect::V03).contains("\"input-required\""));
}

#[test]
fn unknown_members_reach_old_clients_and_never_new_ones() {
    let odd = event(json!({"kind":"status-update","taskId":"t","contextId":"c","generation":"7",
        "status":{"state":"working"}}));
    assert!(event_line(&odd, Dialect::V03).contains("\"generation\":\"7\""));
    assert!(!event_line(&odd, Dialect::V1).contains("generation"));
}

#[test]
fn a_part_of_no_version_reaches_both_as_data() {
    let odd = event(json!({"artifactUpdate":{"taskId":"t","contextId":"c",
        "artifact":{"artifactId":"a","parts":[{"hologram":1}]}}}));
    assert!(event_line(&odd, Dialect::V03).contains(r#""parts":[{"data":{"hologram":1},"kind":"data"}]"#));
    assert!(event_line(&odd, Dialect::V1).contains(r#""parts":[{"data":{"hologram":1}}]"#));
}

#[test]
fn what_a_read_found_is_told_as_whole_artifacts_and_then_the_status() {
    let mut record = TaskRecord::new(task("working"), 1);
    let answer = read::task(json!({"id":"t","contextId":"c","status":{"state":"completed"},
        "artifacts":[{"artifactId":"a","parts":[{"text":"x"}]},{"artifactId":"b","parts":[{"text":"y"}]}]}))
    .unwrap();
    let outcome = record.apply_read(answer, 2);
    let events = news(&record.task, &outcome.changes);
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| match event {
            StreamEvent::Artifact(update) => update.artifact.artifact_id.as_str(),
            StreamEvent::Status(_) => "status",
            StreamEvent::Task(_) | StreamEvent::Message(_) => "other",
        })
        .collect();
    assert_eq!(kinds, ["a", "b", "status"]);
    assert_eq!(after(&events[2]), After::TaskOver);
}

#[test]
fn a_read_that_found_nothing_new_tells_nothing() {
    let mut record = TaskRecord::new(task("working"), 1);
    let outcome = record.apply_read(task("working"), 2);
    assert!(news(&record.task, &outcome.changes).is_empty());
}

#[test]
fn instants_are_in_utc_with_a_zone_for_new_clients() {
    for (given, written) in [
        ("2026-01-05T10:00:05.123456Z", Some("2026-01-05T10:00:05.123456Z")),
        ("2026-01-05T10:00:05+02:00", Some("2026-01-05T08:00:05Z")),
        ("2026-01-05T10:00:05.5", Some("2026-01-05T10:00:05.5Z")),
        ("yesterday", None),
    ] {
        let told = read::task(json!({"id":"t","status":{"state":"working","timestamp":given}})).unwrap();
        let value = task_value(&told, Dialect::V1);
        assert_eq!(value["status"].get("timestamp").and_then(Value::as_str), written, "{given}");
        assert_eq!(task_value(&told, Dialect::V03)["status"]["timestamp"], json!(given), "as received");
    }
}

#[test]
fn history_is_cut_to_its_last_messages() {
    let messages = |count: usize| -> Vec<Message> {
        (0..count)
            .map(|n| {
                let id = crate::ids::MessageId::new(n.to_string());
                Message::new(id, crate::task::Role::User, Vec::new())
            })
            .collect()
    };
    for (length, left) in [
        (None, vec!["0", "1", "2"]),
        (Some(2), vec!["1", "2"]),
        (Some(0), vec![]),
        (Some(9), vec!["0", "1", "2"]),
    ] {
        let mut history = messages(3);
        cut_history(&mut history, length);
        let ids: Vec<&str> = history.iter().map(|message| message.message_id.as_str()).collect();
        assert_eq!(ids, left, "{length:?}");
    }
}
