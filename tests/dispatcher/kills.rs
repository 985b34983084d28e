//! Kills between a change, its attempt and its record.

use taskbell_tests::{Taskbell, long_run, wait_until};

use crate::stage::{PATIENCE, Stage};
use crate::world::{Receiver, state_of};

/// A task ends, and the engine is killed at that place on the way to its receiver. What the receiver got.
async fn killed_at(stage: &mut Stage, receiver: &mut Receiver, place: &str) {
    let task = stage.task("steps=3000 interval=0.5", &[receiver.url()]).await;
    stage.taskbell.stop().await;
    stage.taskbell.set_env("TASKBELL_CRASH_AT", Some(place));
    stage.taskbell.come_up().await;
    // The kill may come before the answer.
    let gateway = stage.taskbell.ready().gateway.clone();
    let body =
        serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "CancelTask", "params": { "id": task } });
    let asked = taskbell_tests::a2a::http().post(format!("{gateway}/agents/demo/"));
    let _ = asked.bearer_auth(&stage.key).json(&body).send().await;
    assert_eq!(stage.taskbell.ended(PATIENCE).await, None, "{place}: it was killed");
    stage.taskbell.set_env("TASKBELL_CRASH_AT", None);
    stage.taskbell.come_up().await;
    let delivery = wait_until(PATIENCE, "it is delivered after the restart", async || {
        let all = stage.deliveries(&task).await;
        all.into_iter().find(|item| item["state"] == "delivered")
    })
    .await;
    let id = delivery["webhookId"].clone();
    let of_task = |seen: &serde_json::Value| {
        seen["body"].as_str().is_some_and(|body| body.contains(&task))
            && state_of(seen) == "TASK_STATE_CANCELED"
    };
    receiver.until("the end", of_task).await;
    let all: Vec<_> = receiver.seen().await.iter().filter(|seen| of_task(seen)).cloned().collect();
    assert!(all.iter().all(|seen| seen["headers"]["webhook-id"] == id), "{place}: one id for every attempt");
    let attempts = delivery["attempts"].as_array().expect("attempts");
    let unknown = attempts.iter().filter(|attempt| attempt["error"] == "outcome_unknown").count();
    let (sent, interrupted) = match place {
        "before-intent" => (1, 0),
        "after-intent" => (1, 1),
        _ => (2, 1),
    };
    assert_eq!((all.len(), unknown), (sent, interrupted), "{place}: {delivery}");
}

async fn rounds(count: usize) {
    let mut stage = Stage::start(Taskbell::setup().rehearsal().credential_file("passphrase")).await;
    let mut receiver = Receiver::python().await;
    stage.allow(receiver.port).await;
    let places = ["before-intent", "after-intent", "after-send", "before-result"];
    for place in places.iter().cycle().take(count) {
        killed_at(&mut stage, &mut receiver, place).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_kills_between_a_change_its_attempt_and_its_record_lose_nothing() {
    rounds(10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_kills_lose_nothing() {
    if long_run("fifty_kills_lose_nothing") {
        rounds(50).await;
    }
}
