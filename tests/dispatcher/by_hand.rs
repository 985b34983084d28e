//! What a person does about callbacks: try one again now, pause a receiver and let it go on.

use serde_json::{Value, json};
use taskbell_tests::{Taskbell, ports::free_port};

use crate::stage::{PATIENCE, Stage, is};
use crate::world::{Receiver, state_of};

const LONG: &str = "steps=3000 interval=0.5";

fn number(of: &Value) -> String {
    of["id"].as_u64().unwrap_or_else(|| panic!("no id: {of}")).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_that_failed_goes_at_once_when_its_user_says_so_under_the_same_id() {
    let stage = Stage::start(Taskbell::setup()).await;
    let port = free_port();
    stage.allow(port).await;
    let task = stage.task(LONG, &[format!("http://127.0.0.1:{port}/ok")]).await;
    stage.cancel(&task).await;
    // After its second try it waits for a minute or more.
    let tried_twice = |delivery: &Value| {
        (delivery["tries"] == 2 && delivery["state"] == "failed").then(|| delivery.clone())
    };
    let failed = stage.delivery(&task, "p-0", "two tries fail", tried_twice).await;
    let mut receiver = Receiver::python_at(port).await;
    let pressed = stage.taskbell.cli(&["delivery", "retry", &number(&failed)]).await.ok();
    assert_eq!(pressed["webhookId"], failed["webhookId"], "{pressed}");
    let delivered = stage.delivery(&task, "p-0", "it is delivered", is("delivered")).await;
    let seen = receiver.until("the end", |seen| state_of(seen) == "TASK_STATE_CANCELED").await;
    assert_eq!(seen["headers"]["webhook-id"], failed["webhookId"]);
    let last = delivered["attempts"].as_array().and_then(|attempts| attempts.last()).expect("attempts");
    let at = |value: &Value| value.as_str().unwrap_or_else(|| panic!("no time: {delivered}")).to_owned();
    assert!(at(&last["startedAt"]) < at(&failed["dueAt"]), "not before it was due by itself: {delivered}");
    let unknown = stage.taskbell.cli(&["delivery", "retry", "999999"]).await;
    assert_ne!(unknown.code, Some(0), "there is no such callback");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_receiver_is_sent_nothing_and_everything_once_it_goes_on() {
    let stage = Stage::start(Taskbell::setup()).await;
    let mut receiver = Receiver::python().await;
    stage.allow(receiver.port).await;
    let task = stage.task(LONG, &[receiver.url()]).await;
    let targets = stage.taskbell.cli(&["target", "list"]).await.ok();
    let target = number(&targets["items"][0]);
    stage.taskbell.cli(&["target", "pause", &target]).await.exits(0);
    stage.cancel(&task).await;
    let waiting = stage
        .delivery(&task, "p-0", "it waits", |delivery| {
            (delivery["waitsFor"] == "target_paused").then(|| delivery.clone())
        })
        .await;
    assert_eq!((&waiting["state"], &waiting["tries"]), (&json!("queued"), &json!(0)), "{waiting}");
    let ends = |seen: &[Value]| seen.iter().filter(|seen| state_of(seen) == "TASK_STATE_CANCELED").count();
    assert_eq!(ends(receiver.seen().await), 0, "a paused receiver is sent nothing");
    stage.taskbell.cli(&["target", "resume", &target]).await.exits(0);
    stage.delivery(&task, "p-0", "it is delivered", is("delivered")).await;
    taskbell_tests::wait_until(PATIENCE, "the end came", async || {
        (ends(receiver.seen().await) == 1).then_some(())
    })
    .await;
}
