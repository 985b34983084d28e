//! What a restart keeps and what it forgets.

use std::path::Path;

use serde_json::json;
use taskbell_core::dialect::Dialect;
use taskbell_core::fault::FaultKind;
use taskbell_core::state::TaskState;
use taskbell_demo_agent::{DemoAgent, DemoAgentError, Options, start};

use crate::support::{Client, Frame, Method, agent, wait_until};

async fn kept(path: &Path) -> DemoAgent {
    start(Options { state: Some(path.to_owned()), ..Options::default() }).await.unwrap()
}

#[tokio::test]
async fn with_a_state_file_tasks_go_on_where_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.jsonl");
    let agent = kept(&path).await;
    let client = Client::of(&agent, Dialect::V1);
    let finished = client.send_blocking("steps=1 interval=0 body=x chunks=1").await;
    let asking = client.send_blocking("steps=2 interval=0 ask=1").await;
    let running = client.send("steps=3 interval=0.3").await;
    client.wait_for(&running, TaskState::Working).await;
    agent.stop().await.unwrap();

    let agent = kept(&path).await;
    let client = Client::of(&agent, Dialect::V1);
    assert_eq!(client.get(&finished).await, finished);
    assert_eq!(client.get(&asking).await.status, asking.status);
    let done = client.wait_for(&running, TaskState::Completed).await;
    let steps = done.history.iter().filter(|message| message.text().starts_with("step 1/")).count();
    assert_eq!(steps, 1, "a step that was kept is not done again");
    client.reply(&asking, "go on").await.unwrap();
    client.wait_for(&asking, TaskState::Completed).await;
    agent.stop().await.unwrap();

    let agent = kept(&path).await;
    let client = Client::of(&agent, Dialect::V03);
    assert_eq!(client.get(&asking).await.status.state, TaskState::Completed);
}

#[tokio::test]
async fn an_end_reaches_the_file_without_a_clean_stop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.jsonl");
    let agent = kept(&path).await;
    let client = Client::of(&agent, Dialect::V1);
    let task = client.send_blocking("steps=0 artifact=no").await;
    wait_until("the end is in the file", || {
        std::fs::read_to_string(&path).unwrap().contains("TASK_STATE_COMPLETED")
    })
    .await;
    // Dropped, not stopped, and the last line torn as by a kill.
    drop(agent);
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str(r#"{"owner":0,"script":"st"#);
    std::fs::write(&path, text).unwrap();
    let agent = kept(&path).await;
    assert_eq!(Client::of(&agent, Dialect::V1).get(&task).await.status.state, TaskState::Completed);
}

#[tokio::test]
async fn a_file_that_is_something_else_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letter.txt");
    std::fs::write(&path, "Dear diary").unwrap();
    let refused = start(Options { state: Some(path.clone()), ..Options::default() }).await;
    assert!(matches!(refused, Err(DemoAgentError::State { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "Dear diary");
}

#[tokio::test]
async fn without_a_state_file_a_restart_on_the_same_port_forgets_and_breaks_streams() {
    let first = agent().await;
    let addr = first.local_addr();
    let client = Client::of(&first, Dialect::V1);
    let mut stream = client.stream("steps=1 interval=3600", None).await;
    let task = stream.task().await;
    first.stop().await.unwrap();
    assert!(matches!(stream.next().await, Frame::Broken));
    let second = start(Options { addr, ..Options::default() }).await.unwrap();
    assert_eq!(second.local_addr(), addr);
    let forgotten = client.call(Method::Get, json!({"id": task.id})).await.unwrap_err();
    assert_eq!(forgotten.kind(), FaultKind::TaskNotFound);
    assert_eq!(second.counters().gets(), 1);
    let taken = start(Options { addr, ..Options::default() }).await;
    assert!(matches!(taken, Err(DemoAgentError::Listen { .. })));
}
