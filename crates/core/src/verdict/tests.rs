use serde_json::json;

use super::*;
use crate::dialect::read;

fn event(value: Value) -> StreamEvent {
    read::stream_event(value).expect("an event")
}

fn task(value: Value) -> Task {
    read::task(value).expect("a task")
}

fn status(word: &str) -> StreamEvent {
    event(json!({"statusUpdate":{"taskId":"t","status":{"state":word}}}))
}

fn in_state(word: &str) -> Task {
    task(json!({"id":"t","status":{"state":word}}))
}

fn verdict(claim: &StreamEvent, task: &Task) -> Verdict {
    judge(claim, Fact { task, was_in: &[] }, false).verdict
}

#[test]
fn a_claim_that_the_task_bears_out_is_confirmed_in_either_vocabulary() {
    for word in ["completed", "TASK_STATE_COMPLETED"] {
        assert_eq!(verdict(&status(word), &in_state("TASK_STATE_COMPLETED")), Verdict::Confirmed);
        assert_eq!(verdict(&status(word), &in_state("completed")), Verdict::Confirmed);
    }
}

#[test]
fn an_end_that_the_task_does_not_show_is_ahead() {
    for word in ["completed", "failed", "canceled", "rejected"] {
        let judged =
            judge(&status(word), Fact { task: &in_state("working"), was_in: &[TaskState::Completed] }, false);
        assert_eq!(judged, Judgement { verdict: Verdict::Ahead, reason: Reason::NotEnded });
    }
}

#[test]
fn work_told_of_a_task_that_has_ended_is_behind() {
    for word in ["submitted", "working", "input-required", "auth-required", "whatever"] {
        assert_eq!(verdict(&status(word), &in_state("failed")), Verdict::Behind, "{word}");
    }
}

#[test]
fn another_end_than_the_confirmed_one_does_not_match() {
    let judged = judge(&status("completed"), Fact { task: &in_state("failed"), was_in: &[] }, false);
    assert_eq!(judged, Judgement { verdict: Verdict::Unmatched, reason: Reason::AnotherEnd });
}

#[test]
fn another_tasks_claim_does_not_match_whatever_it_says() {
    let claim = event(json!({"task":{"id":"other","status":{"state":"completed"}}}));
    let judged = judge(&claim, Fact { task: &in_state("completed"), was_in: &[] }, true);
    assert_eq!(judged, Judgement { verdict: Verdict::Unmatched, reason: Reason::OtherTask });
}

#[test]
fn submitted_is_behind_everything_and_work_is_behind_a_question() {
    assert_eq!(verdict(&status("submitted"), &in_state("working")), Verdict::Behind);
    assert_eq!(verdict(&status("working"), &in_state("input-required")), Verdict::Behind);
    assert_eq!(verdict(&status("working"), &in_state("submitted")), Verdict::Ahead);
}

#[test]
fn a_question_is_behind_once_the_task_was_seen_asking_and_ahead_before() {
    let (claim, working) = (status("input-required"), in_state("working"));
    assert_eq!(verdict(&claim, &working), Verdict::Ahead);
    let seen = Fact { task: &working, was_in: &[TaskState::InputRequired] };
    assert_eq!(judge(&claim, seen, false).verdict, Verdict::Behind);
}

#[test]
fn a_word_of_no_version_is_confirmed_by_the_same_word_only() {
    assert_eq!(verdict(&status("paused"), &in_state("paused")), Verdict::Confirmed);
    assert_eq!(verdict(&status("paused"), &in_state("running")), Verdict::Ahead);
    assert_eq!(verdict(&status("paused"), &in_state("working")), Verdict::Ahead);
    assert_eq!(verdict(&status("working"), &in_state("paused")), Verdict::Ahead);
    assert_eq!(verdict(&status("completed"), &in_state("paused")), Verdict::Ahead);
}

#[test]
fn a_status_alone_claims_nothing_of_artifacts() {
    let read = task(json!({"id":"t","status":{"state":"completed"},
        "artifacts":[{"artifactId":"a","parts":[{"text":"the answer"}]}]}));
    assert_eq!(verdict(&status("completed"), &read), Verdict::Confirmed);
    let snapshot = event(json!({"task":{"id":"t","status":{"state":"completed"}}}));
    assert_eq!(verdict(&snapshot, &read), Verdict::Confirmed);
}

#[test]
fn the_senders_clock_decides_nothing() {
    let claim = event(
        json!({"statusUpdate":{"taskId":"t","status":{"state":"working","timestamp":"2099-01-01T00:00:00Z"}}}),
    );
    let read = task(json!({"id":"t","status":{"state":"working","timestamp":"2001-01-01T00:00:00Z"}}));
    assert_eq!(verdict(&claim, &read), Verdict::Confirmed);
}

#[test]
fn other_words_in_the_same_state_are_behind_while_the_task_goes_on() {
    let claim = |state: &str| {
        event(json!({"statusUpdate":{"taskId":"t","status":{"state":state,
            "message":{"messageId":"m1","role":"agent","parts":[{"text":"step 1"}]}}}}))
    };
    let read = |state: &str, id: &str, text: &str| {
        task(json!({"id":"t","status":{"state":state,
            "message":{"messageId":id,"role":"ROLE_AGENT","parts":[{"text":text}]}}}))
    };
    assert_eq!(verdict(&claim("working"), &read("working", "m2", "step 2")), Verdict::Behind);
    assert_eq!(verdict(&claim("working"), &read("working", "m9", "step 1")), Verdict::Confirmed);
    assert_eq!(verdict(&claim("completed"), &read("completed", "m2", "done")), Verdict::Confirmed);
}

#[test]
fn a_snapshot_with_less_of_a_text_is_behind_and_with_an_unknown_artifact_ahead() {
    let snapshot = |id: &str, text: &str| {
        event(json!({"kind":"task","id":"t","status":{"state":"working"},
            "artifacts":[{"artifactId":id,"parts":[{"kind":"text","text":text}]}]}))
    };
    let read = task(json!({"id":"t","status":{"state":"working"},
        "artifacts":[{"artifactId":"a","parts":[{"text":"one "},{"text":"two"}]}]}));
    assert_eq!(verdict(&snapshot("a", "one two"), &read), Verdict::Confirmed, "however it is cut");
    assert_eq!(verdict(&snapshot("a", "one "), &read), Verdict::Behind);
    assert_eq!(verdict(&snapshot("b", "x"), &read), Verdict::Ahead);
}

#[test]
fn a_finished_task_whose_result_differs_is_not_confirmed() {
    let claim = event(json!({"task":{"id":"t","status":{"state":"completed"},
        "artifacts":[{"artifactId":"a","parts":[{"text":"forged"}]}]}}));
    let read = task(json!({"id":"t","status":{"state":"completed"},
        "artifacts":[{"artifactId":"a","parts":[{"text":"true"}]}]}));
    let judged = judge(&claim, Fact { task: &read, was_in: &[] }, false);
    assert_eq!(judged, Judgement { verdict: Verdict::Ahead, reason: Reason::NotShown });
}

#[test]
fn a_chunk_is_confirmed_where_the_artifact_has_it() {
    let chunk = |id: &str, text: &str, append: bool| {
        event(json!({"artifactUpdate":{"taskId":"t","append":append,
            "artifact":{"artifactId":id,"parts":[{"text":text}]}}}))
    };
    let read = task(json!({"id":"t","status":{"state":"working"},
        "artifacts":[{"artifactId":"a","parts":[{"text":"one two three"}]}]}));
    assert_eq!(verdict(&chunk("a", " two", true), &read), Verdict::Confirmed);
    assert_eq!(verdict(&chunk("a", " four", true), &read), Verdict::Ahead);
    assert_eq!(verdict(&chunk("a", "zero", false), &read), Verdict::Behind, "replaced since");
    assert_eq!(verdict(&chunk("b", "one", false), &read), Verdict::Ahead);
}

#[test]
fn a_message_is_confirmed_by_its_words_in_the_status_or_the_history() {
    let claim =
        event(json!({"message":{"messageId":"m","taskId":"t","role":"agent","parts":[{"text":"hi"}]}}));
    let told = task(json!({"id":"t","status":{"state":"working"},
        "history":[{"messageId":"x","role":"ROLE_AGENT","parts":[{"text":"hi"}]}]}));
    assert_eq!(verdict(&claim, &told), Verdict::Confirmed);
    assert_eq!(verdict(&claim, &in_state("working")), Verdict::Ahead);
    assert_eq!(verdict(&claim, &in_state("completed")), Verdict::Behind, "not every agent keeps its words");
}

#[test]
fn a_claim_told_before_is_a_duplicate() {
    let judged = judge(&status("completed"), Fact { task: &in_state("completed"), was_in: &[] }, true);
    assert_eq!(judged, Judgement { verdict: Verdict::Duplicate, reason: Reason::ToldBefore });
}

#[test]
fn an_end_told_again_is_the_same_whatever_its_clock_says() {
    let told = |state: &str, at: &str| {
        sameness(&event(json!({"statusUpdate":{"taskId":"t","status":{"state":state,"timestamp":at}}})))
    };
    assert_eq!(told("completed", "1"), told("TASK_STATE_COMPLETED", "2"));
    assert_ne!(told("working", "1"), told("working", "2"), "a task may come back to work");
    assert_ne!(told("completed", "1"), told("failed", "1"));
}

#[test]
fn chunks_that_append_are_never_the_same() {
    let chunk = event(json!({"artifactUpdate":{"taskId":"t","append":true,
        "artifact":{"artifactId":"a","parts":[{"text":"."}]}}}));
    assert_eq!(sameness(&chunk), None);
}

#[test]
fn what_comes_after_an_end_or_before_a_beginning_is_out_of_order() {
    use TaskState::{Completed, InputRequired, Submitted, Unknown, Working};
    assert!(is_out_of_order(Working, &[Submitted, Completed]));
    assert!(is_out_of_order(Submitted, &[Working]));
    assert!(!is_out_of_order(Working, &[Submitted, InputRequired]), "after an answer");
    assert!(!is_out_of_order(Completed, &[Completed]));
    assert!(!is_out_of_order(Submitted, &[Unknown]));
    assert!(!is_out_of_order(Working, &[]));
}

#[test]
fn differences_are_named_by_pointers_into_what_was_claimed() {
    let claim = event(json!({"task":{"id":"t","contextId":"c","status":{"state":"completed"},
        "artifacts":[{"artifactId":"b","parts":[{"text":"forged"}]}],"metadata":{"a/b":1}}}));
    let read = task(json!({"id":"t","contextId":"c","status":{"state":"working"},
        "artifacts":[{"artifactId":"a","parts":[{"text":"x"}]},{"artifactId":"b","parts":[{"text":"true"}]}],
        "metadata":{"a/b":2}}));
    let found: Vec<(String, Value, Option<Value>)> = differences(&claim, &read)
        .into_iter()
        .map(|difference| (difference.pointer, difference.claimed, difference.confirmed))
        .collect();
    assert_eq!(
        found,
        [
            ("/artifacts/0/parts/0/text".to_owned(), json!("forged"), Some(json!("true"))),
            ("/metadata/a~1b".to_owned(), json!(1), Some(json!(2))),
            ("/status/state".to_owned(), json!("TASK_STATE_COMPLETED"), Some(json!("TASK_STATE_WORKING"))),
        ]
    );
}

#[test]
fn what_only_the_task_says_is_no_difference() {
    let read = task(json!({"id":"t","contextId":"c","status":{"state":"completed"},
        "artifacts":[{"artifactId":"a","parts":[{"text":"x"}]}]}));
    assert_eq!(differences(&status("completed"), &read), []);
}

#[test]
fn a_claim_of_thousands_of_differences_lists_only_so_many() {
    let artifacts: Vec<Value> =
        (0..5_000).map(|index| json!({"artifactId":format!("a{index}"),"parts":[{"text":"x"}]})).collect();
    let claim = event(json!({"task":{"id":"t","status":{"state":"working"},"artifacts":artifacts}}));
    let read =
        task(json!({"id":"t","status":{"state":"working"},"artifacts":[{"artifactId":"z","parts":[]}]}));
    assert_eq!(differences(&claim, &read).len(), DIFFERENCES_MAX);
}

#[test]
fn every_word_is_read_back() {
    for verdict in Verdict::ALL {
        assert_eq!(Verdict::from_word(verdict.word()), Some(verdict));
    }
    for reason in Reason::ALL {
        assert_eq!(Reason::from_word(reason.word()), Some(reason));
    }
}
