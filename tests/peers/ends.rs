//! Tasks that do not complete.

use taskbell_tests::{PeerKind, taskbell::Shown};

use crate::{
    stage::{PATIENCE, Stage},
    with_every_peer,
};

with_every_peer!(
    a_failed_task_is_failed,
    a_rejected_task_is_rejected,
    a_canceled_task_is_canceled,
    a_cancel_that_is_refused_leaves_the_task_running,
    a_crash_of_the_worker_is_whatever_the_agent_says_of_it,
);

async fn a_failed_task_is_failed(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let task = stage.send("steps=2 interval=0.2 fail=yes").await;
    stage.waits_with(&task, 3).await;
    let shown = stage.taskbell.show(&task).await;
    assert_eq!(shown.state(), "failed");
    assert!(shown.0.to_string().contains("failed by script"), "the agent's reason is shown: {}", shown.0);
}

async fn a_rejected_task_is_rejected(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let task = stage.send("reject=yes").await;
    stage.waits_with(&task, 4).await;
    assert_eq!(stage.taskbell.show(&task).await.state(), "rejected");
}

async fn a_canceled_task_is_canceled(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let task = stage.send("steps=100 interval=0.2").await;
    stage.works(&task).await;
    stage.taskbell.cli(&["cancel", task.as_str()]).await.exits(0);
    let shown = stage.taskbell.shows(&task, PATIENCE, "the cancel is shown", Shown::is_terminal).await;
    assert_eq!(shown.state(), "canceled");
    stage.waits_with(&task, 5).await;
    assert_eq!(stage.peer.direct().get(task.id()).await.state, "canceled", "the agent says the same");
}

async fn a_cancel_that_is_refused_leaves_the_task_running(kind: PeerKind) {
    if kind == PeerKind::Rs {
        println!("skipped: the reference server cancels without asking its worker");
        return;
    }
    let stage = Stage::set(kind).await;
    let task = stage.send("steps=15 interval=0.3 nocancel=yes").await;
    stage.works(&task).await;
    let refused = stage.taskbell.cli(&["cancel", task.as_str()]).await;
    assert_ne!(refused.code, Some(0), "a refused cancel is not reported as done: {refused:?}");
    assert_ne!(stage.taskbell.show(&task).await.state(), "canceled", "asking is not being canceled");
    // The refusal is the worker's error to Python's 1.x SDK, which fails the task for it.
    let told = if kind == PeerKind::Py1 { 3 } else { 0 };
    stage.waits_with(&task, told).await;
}

/// Some SDKs say that the task failed, others leave it working for ever; a
/// broken stream decides nothing.
async fn a_crash_of_the_worker_is_whatever_the_agent_says_of_it(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let task = stage.send("steps=3 interval=0.3 fail=raise").await;
    let told = match kind {
        PeerKind::Py03 | PeerKind::Js03 | PeerKind::Rs => "working",
        PeerKind::Py1 | PeerKind::Js1 => "failed",
    };
    let direct = stage.peer.direct();
    taskbell_tests::wait_until(PATIENCE, "the crash", async || {
        (direct.get(task.id()).await.state == told).then_some(())
    })
    .await;
    if told == "failed" {
        stage.waits_with(&task, 3).await;
    } else {
        let output = stage.taskbell.cli(&["wait", task.as_str(), "--timeout", "6s"]).await;
        output.exits(124);
    }
    let shown = stage.taskbell.show(&task).await;
    assert_eq!(shown.state(), direct.get(task.id()).await.state, "GetTask decides: {}", shown.0);
}
