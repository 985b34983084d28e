//! Receivers that others might write, and another Taskbell.

use serde_json::{Value, json};
use taskbell_tests::{Taskbell, wait_until};

use crate::stage::{PATIENCE, Stage, is};
use crate::world::{Receiver, state_of};

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_python_receiver_and_one_on_node_are_told_of_every_end() {
    let stage = Stage::start(Taskbell::setup()).await;
    for mut receiver in [Receiver::python().await, Receiver::node().await] {
        stage.allow(receiver.port).await;
        let task = stage.task("steps=3 interval=1 chunks=2", &[receiver.url()]).await;
        let seen = receiver.until("the end", |seen| state_of(seen) == "TASK_STATE_COMPLETED").await;
        let headers = &seen["headers"];
        assert_eq!(headers["content-type"], json!("application/a2a+json"));
        for name in ["a2a-notification-token", "x-a2a-notification-token"] {
            assert_eq!(headers[name], json!("tok-1"));
        }
        assert_eq!(headers["authorization"], json!("Bearer cred-1"));
        let read = stage.call("GetTask", json!({ "id": task })).await;
        let body: Value = serde_json::from_str(seen["body"].as_str().expect("a body")).expect("JSON");
        assert_eq!(body, json!({ "task": read }));
        stage.delivery(&task, "p-0", "it is recorded", is("delivered")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_taskbell_gets_a_callback_and_confirms_it_here() {
    let stage = Stage::start(Taskbell::setup()).await;
    let other = Taskbell::start().await;
    let inbox =
        other.ready().inbox.rsplit(':').next().and_then(|port| port.trim_matches('/').parse::<u16>().ok());
    stage.allow(inbox.expect("the inbox has a port")).await;
    let url = format!("{}/agents/demo/", stage.taskbell.ready().gateway);
    other.add_agent_with_token("upstream", &url, &stage.key).await;
    let task = other.send("upstream", "steps=10 interval=0.2").await;
    other.wait(&task).await.exits(0);
    wait_until(PATIENCE, "the end is confirmed in the other inbox", async || {
        let listed = other.cli(&["inbox", "list"]).await.json();
        let items = listed["items"].as_array().expect("items").clone();
        items.into_iter().find(|item| item["claimed"] == "completed" && item["verdict"] == "confirmed")
    })
    .await;
    let deliveries = stage.deliveries(task.id()).await;
    assert!(deliveries.iter().any(|item| item["state"] == "delivered"), "{deliveries:?}");
}
