//! Ends beside a flood of progress, and a receiver that is away.

use serde_json::json;
use taskbell_tests::{Taskbell, long_run, wait_until};

use crate::stage::{PATIENCE, Stage, is};
use crate::world::{Receiver, state_of};

/// `tasks` tasks flood a slow receiver with `updates` updates in all and end.
async fn flood(tasks: usize, updates: usize) {
    let stage = Stage::start(Taskbell::setup()).await;
    let mut receiver = Receiver::python().await;
    stage.allow(receiver.port).await;
    let url = format!("http://127.0.0.1:{}/slow", receiver.port);
    let chunks = updates / tasks;
    for _ in 0..tasks {
        stage
            .task(&format!("steps={chunks} interval=0.01 chunks={chunks}"), std::slice::from_ref(&url))
            .await;
    }
    let list = ["delivery", "list", "--lane", "reserved", "--limit", "1000"];
    let ends = wait_until(PATIENCE * 4, "every end is delivered", async || {
        let listed = stage.taskbell.cli(&list).await.json();
        let items = listed["items"].as_array().expect("items").clone();
        (items.len() == tasks && items.iter().all(|item| item["state"] == "delivered")).then_some(items)
    })
    .await;
    assert!(ends.iter().all(|item| item["taskState"] == "completed"));
    // What the receiver got beyond the ends is the progress that was not dropped, one by one.
    let target = wait_until(PATIENCE, "all is counted", async || {
        let target = stage.taskbell.cli(&["target", "list"]).await.json()["items"][0].clone();
        let told = receiver.seen().await.iter().filter(|seen| state_of(seen) == "TASK_STATE_WORKING").count();
        let count = |name: &str| target[name].as_u64().expect("a count");
        let settled = count("updates") - count("dropped") == u64::try_from(told).expect("a count");
        (settled && count("updates") > 0).then_some(target)
    })
    .await;
    println!("{tasks} ends delivered; {} of {} updates dropped", target["dropped"], target["updates"]);
    let told = receiver.seen().await.iter().filter(|seen| state_of(seen) == "TASK_STATE_COMPLETED").count();
    assert_eq!(told, tasks, "each end once");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_end_arrives_beside_a_flood_of_progress_and_drops_are_counted_exactly() {
    flood(20, 2_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_ends_arrive_beside_fifty_thousand_updates() {
    if long_run("two_hundred_ends_arrive_beside_fifty_thousand_updates") {
        flood(200, 50_000).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_down_over_the_end_of_a_task_gets_it_when_it_is_back() {
    let stage = Stage::start(Taskbell::setup()).await;
    let port = taskbell_tests::ports::free_port();
    stage.allow(port).await;
    let task = stage.task("steps=3 interval=1", &[format!("http://127.0.0.1:{port}/ok")]).await;
    let failed = stage.delivery(&task, "p-0", "it fails", is("failed")).await;
    assert_eq!(failed["lastError"], json!("connect_refused"));
    let state = stage.call("GetTask", json!({ "id": task })).await["status"]["state"].take();
    assert_eq!(state, json!("TASK_STATE_COMPLETED"), "the task's own state was never in doubt");
    let mut receiver = Receiver::python_at(port).await;
    stage.delivery(&task, "p-0", "it is delivered", is("delivered")).await;
    receiver.until("the end", |seen| state_of(seen) == "TASK_STATE_COMPLETED").await;
}
