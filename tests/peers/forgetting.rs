//! These agents keep tasks in memory: started again, they know nothing.

use taskbell_tests::PeerKind;

use crate::{
    stage::{PATIENCE, Stage, THREE_CHUNKS, THREE_SECONDS},
    with_every_peer,
};

with_every_peer!(
    a_task_that_the_agent_forgot_is_lost_and_not_failed,
    a_finished_task_that_the_agent_forgot_stays_finished,
);

async fn a_task_that_the_agent_forgot_is_lost_and_not_failed(kind: PeerKind) {
    let mut stage = Stage::set(kind).await;
    let task = stage.send("steps=200 interval=0.3").await;
    stage.flows(&task).await;
    stage.peer.kill().await;
    stage.peer.come_back().await;
    stage.waits_with(&task, 8).await;
    let shown = stage.taskbell.show(&task).await;
    assert_eq!(shown.state(), "lost", "{}", shown.0);
    assert!(!shown.timeline("status").is_empty(), "what was known is still shown: {}", shown.0);
    // The agent itself is well.
    let next = stage.send(THREE_SECONDS).await;
    stage.completes_with(&next, THREE_CHUNKS).await;
}

async fn a_finished_task_that_the_agent_forgot_stays_finished(kind: PeerKind) {
    let mut stage = Stage::set(kind).await;
    let task = stage.send(THREE_SECONDS).await;
    stage.completes_with(&task, THREE_CHUNKS).await;
    stage.peer.kill().await;
    stage.peer.come_back().await;
    // Reading it again finds nothing; whatever that is called, the result stays.
    let _ = stage.taskbell.cli(&["reconcile", task.as_str()]).await;
    let shown = stage.taskbell.shows(&task, PATIENCE, "still there", |_| true).await;
    assert_eq!((shown.state(), shown.text().as_str()), ("completed", THREE_CHUNKS));
}
