//! An agent that goes away behind a listening client: one unbroken stream, with the right end.

use std::time::Duration;

use serde_json::json;
use taskbell_core::dialect::Dialect;

use crate::support::{BOTH, Heard, Memory, Next, Words, World, artifact_text};

#[tokio::test]
async fn an_agent_killed_and_restarted_with_its_state_is_one_unbroken_stream() {
    let mut world = World::new().await;
    let client = world.client("editor").await;
    for (words, agents) in [(BOTH[0], Dialect::V1), (BOTH[1], Dialect::V03)] {
        world.pin(agents).await;
        let method = words.method("message/stream", "SendStreamingMessage");
        let params = json!({"message": words.message("steps=10 interval=0.2 chunks=3")});
        let mut events = client.stream(method, params, None).await;
        let mut heard = vec![events.event().await, events.event().await];
        let port = world.stop_agent().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        world.start_agent(port, Memory::Kept).await;
        heard.extend(events.rest().await);
        assert_eq!(heard.last().unwrap().state(), Some(words.state("completed")), "{words:?} {agents:?}");
        assert_eq!(artifact_text(&heard), "chunk 1/3;chunk 2/3;chunk 3/3;");
        assert_eq!(
            heard.iter().filter(|event| event.kind() == "task").count(),
            1,
            "the task once, then changes"
        );
    }
}

#[tokio::test]
async fn a_task_that_its_agent_forgot_ends_with_not_found_and_what_was_known() {
    let mut world = World::new().await;
    let client = world.client("editor").await;
    for words in BOTH {
        let task = client.start(words, "steps=1000 interval=0.1").await;
        let mut events = client.subscribe(words, &task, None).await;
        let first = events.event().await;
        assert_eq!(events.event().await.kind(), "status");
        let port = world.stop_agent().await;
        world.start_agent(port, Memory::Lost).await;
        let mut last: Option<Heard> = None;
        loop {
            match events.next().await {
                Next::Event(event) => last = Some(event),
                Next::End => break,
                Next::Broken => panic!("it ends well"),
            }
        }
        let error = last.unwrap().value();
        assert_eq!(error["error"]["code"], json!(-32001), "{error}");
        let known = &error["error"]["data"][0]["metadata"]["lastKnownState"];
        assert!(known.is_string(), "{error}");
        let get = words.method("tasks/get", "GetTask");
        let error = client.ask(get, json!({"id": task})).await;
        assert_eq!(error["error"]["code"], json!(-32001));
        assert_eq!(error["error"]["data"][0]["metadata"]["lastKnownState"], json!(words.state("working")));
        // Who missed something is told it, and then the same.
        let mut again = client.subscribe(words, &task, Some(&first.id)).await;
        assert_eq!(again.event().await.kind(), "status");
        world.stop_agent().await;
        world.start_agent(port, Memory::Kept).await;
    }
}

#[tokio::test]
async fn an_agent_that_cannot_be_reached_leaves_what_it_said_last_and_refuses_new_work() {
    let mut world = World::new().await;
    let client = world.client("editor").await;
    let words = Words(Dialect::V1);
    let task = client.start(words, "steps=1000 interval=0.1").await;
    let mut events = client.subscribe(words, &task, None).await;
    events.event().await;
    events.event().await;
    let port = world.stop_agent().await;
    let result = client.call("GetTask", json!({"id": task})).await;
    assert_eq!(result["status"]["state"], json!("TASK_STATE_WORKING"));
    let answer = client.ask("SendMessage", json!({"message": words.message("more")})).await;
    assert_eq!(answer["error"]["code"], json!(-32603), "{answer}");
    assert_eq!(answer["error"]["data"][0]["metadata"].get("outcome"), None, "certainly not sent: {answer}");
    let sends = client.call("ListTasks", json!({})).await["totalSize"].clone();
    assert_eq!(sends, json!(1));
    world.start_agent(port, Memory::Kept).await;
    assert_eq!(events.event().await.kind(), "status");
}

#[tokio::test]
async fn an_agent_that_the_user_removes_ends_the_streams_of_its_tasks() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let words = Words(Dialect::V1);
    let task = client.start(words, "steps=1000 interval=0.1").await;
    let mut events = client.subscribe(words, &task, None).await;
    events.event().await;
    world.engine().engine().remove_agent(&crate::support::agent_name()).await.unwrap();
    let mut last = None;
    while let Next::Event(event) = events.next().await {
        last = Some(event.value());
    }
    assert_eq!(last.unwrap()["error"]["code"], json!(-32001));
    assert_eq!(client.post().json(&json!({})).send().await.unwrap().status(), 404);
}
