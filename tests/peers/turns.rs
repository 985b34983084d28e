//! A task that waits for somebody, and goes on.

use taskbell_tests::{PeerKind, When};

use crate::{
    stage::{PATIENCE, Stage, THREE_CHUNKS},
    with_every_peer,
};

with_every_peer!(
    a_question_is_answered_once_and_the_task_completes,
    a_task_that_waits_for_authorization_may_go_on_by_itself,
    a_question_survives_a_cut_while_it_waits,
    waiting_until_terminal_passes_over_a_question,
);

async fn a_question_is_answered_once_and_the_task_completes(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let task = stage.send("steps=6 interval=0.3 ask=4").await;
    stage.waits_with(&task, 6).await;
    let shown = stage.taskbell.show(&task).await;
    assert_eq!(shown.state(), "input-required");
    assert!(shown.0.to_string().contains("need input: continue?"), "the question is shown: {}", shown.0);
    let needs = stage.taskbell.cli(&["tasks", "--needs-you"]).await.items();
    assert_eq!(needs.len(), 1, "it is listed among those that need somebody: {needs:?}");

    stage.taskbell.cli(&["reply", task.as_str(), "yes, go on"]).await.exits(0);
    // The waiting state is older than our reply, so it does not count.
    stage.waits_with(&task, 0).await;
    stage.completes_with(&task, THREE_CHUNKS).await;
    stage.proxy.assert_sent_once_each(2);
    assert!(stage.taskbell.cli(&["tasks", "--needs-you"]).await.items().is_empty());
}

async fn a_task_that_waits_for_authorization_may_go_on_by_itself(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let task = stage.send("steps=6 interval=0.3 auth=3 authwait=3").await;
    stage.waits_with(&task, 7).await;
    assert_eq!(stage.taskbell.show(&task).await.state(), "auth-required");
    let output =
        stage.taskbell.cli(&["wait", task.as_str(), "--until", "terminal", "--timeout", "30s"]).await;
    output.exits(0);
    stage.completes_with(&task, THREE_CHUNKS).await;
    stage.proxy.assert_sent_once_each(1);
}

async fn a_question_survives_a_cut_while_it_waits(kind: PeerKind) {
    let mut stage = Stage::set(kind).await;
    let task = stage.send("steps=6 interval=0.3 ask=4").await;
    stage.waits_with(&task, 6).await;
    stage.proxy.down().await;
    stage.proxy.up().await;
    // Two of these agents say "not found" to subscribing to a task that waits.
    let before = stage.proxy.count(When::Gets);
    taskbell_tests::eventually(PATIENCE, "the task is read again", || stage.proxy.count(When::Gets) > before)
        .await;
    assert_eq!(stage.taskbell.show(&task).await.state(), "input-required", "it is not lost");
    stage.taskbell.cli(&["reply", task.as_str(), "yes"]).await.exits(0);
    stage.completes_with(&task, THREE_CHUNKS).await;
}

async fn waiting_until_terminal_passes_over_a_question(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let task = stage.send("steps=4 interval=0.3 ask=2").await;
    stage.waits_with(&task, 6).await;
    let output = stage.taskbell.cli(&["wait", task.as_str(), "--until", "terminal", "--timeout", "2s"]).await;
    output.exits(124);
    stage.taskbell.cli(&["reply", task.as_str(), "yes"]).await.exits(0);
    stage.completes_with(&task, THREE_CHUNKS).await;
}
