//! From sending to the end without a fault.

use taskbell_tests::{PeerKind, When, artifact_text_of_lines};

use crate::{
    stage::{Stage, THREE_CHUNKS, THREE_SECONDS},
    with_every_peer,
};

with_every_peer!(
    a_task_is_followed_to_its_end_and_shown_as_the_agent_tells_it,
    follow_prints_every_step_and_ends_with_the_task,
    an_agent_without_streams_is_polled,
    a_direct_answer_is_a_message_and_no_task,
    a_finished_task_of_somebody_else_is_finished_whatever_subscribing_says,
    a_running_task_of_somebody_else_is_followed,
    one_task_has_one_stream_and_one_send,
);

async fn a_task_is_followed_to_its_end_and_shown_as_the_agent_tells_it(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let task = stage.send(THREE_SECONDS).await;
    let shown = stage.completes_with(&task, THREE_CHUNKS).await;
    assert_eq!(shown.mode(), "ended", "a finished task is followed no longer");
    assert!(!shown.has_gap(), "nothing was cut: {}", shown.0);
    assert!(shown.0["lastConfirmed"]["at"].is_string() || shown.0["lastConfirmed"]["at"].is_number());
    assert!(shown.0["lastConfirmed"]["by"].is_string(), "{}", shown.0);
}

async fn follow_prints_every_step_and_ends_with_the_task(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let task = stage.send(THREE_SECONDS).await;
    let output = stage.taskbell.cli(&["follow", task.as_str()]).await;
    let lines = output.exits(0).lines();
    let mut last = 0;
    for line in &lines {
        let seq = line["seq"].as_u64().unwrap_or_else(|| panic!("no seq: {line}"));
        assert!(seq > last, "the sequence only rises: {line}");
        last = seq;
        assert!(!line["at"].is_null(), "no time: {line}");
        let source = line["source"].as_str().unwrap_or_default();
        assert!(["stream", "push", "poll", "manual", "gateway"].contains(&source), "odd source: {line}");
        let kind = line["kind"].as_str().unwrap_or_default();
        let known = [
            "task",
            "status",
            "artifact",
            "message",
            "gap",
            "following",
            "notice",
            "registration",
            "callback",
        ];
        assert!(known.contains(&kind), "odd kind: {line}");
    }
    assert!(output.stdout.contains("completed"), "the end is among the lines: {lines:?}");
    assert!(artifact_text_of_lines(&lines).contains("chunk 3/3;"), "so is the artifact: {lines:?}");
    stage.completes_with(&task, THREE_CHUNKS).await;
}

async fn an_agent_without_streams_is_polled(kind: PeerKind) {
    if kind == PeerKind::Rs {
        println!("skipped: the reference server always has streams");
        return;
    }
    let stage = Stage::with(kind, &["--no-streaming"]).await;
    let task = stage.send("steps=4 interval=0.3").await;
    stage.completes_with(&task, THREE_CHUNKS).await;
    assert_eq!(stage.proxy.count(When::Subscribes), 0, "its card says that it has none");
}

async fn a_direct_answer_is_a_message_and_no_task(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let answer = stage.taskbell.cli(&["send", "peer", "reply=message say=good%20day"]).await.ok();
    assert!(answer["task"].is_null(), "a message is no task: {answer}");
    assert!(answer["message"].to_string().contains("good day"), "{answer}");
    let tasks = stage.taskbell.cli(&["tasks"]).await.items();
    assert!(tasks.is_empty(), "nothing is left to follow: {tasks:?}");
    stage.proxy.assert_sent_once_each(1);
}

async fn a_finished_task_of_somebody_else_is_finished_whatever_subscribing_says(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let direct = stage.peer.direct();
    let id = direct.send("steps=1 interval=0.05").await;
    taskbell_tests::wait_until(crate::stage::PATIENCE, "the agent is done", async || {
        (direct.get(&id).await.state == "completed").then_some(())
    })
    .await;
    stage.taskbell.cli(&["watch", "peer", &id]).await.ok();
    let task = taskbell_tests::taskbell::TaskName::new("peer", &id);
    stage.completes_with(&task, THREE_CHUNKS).await;
}

async fn a_running_task_of_somebody_else_is_followed(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let id = stage.peer.direct().send(THREE_SECONDS).await;
    stage.taskbell.cli(&["watch", "peer", &id]).await.ok();
    let task = taskbell_tests::taskbell::TaskName::new("peer", &id);
    stage.completes_with(&task, THREE_CHUNKS).await;
    assert!(stage.proxy.sends().is_empty(), "watching sends nothing");
}

async fn one_task_has_one_stream_and_one_send(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let task = stage.send(THREE_SECONDS).await;
    let (one, other) = (["follow", task.as_str()], ["follow", task.as_str()]);
    let (one, other) = tokio::join!(stage.taskbell.cli(&one), stage.taskbell.cli(&other));
    one.exits(0);
    other.exits(0);
    stage.completes_with(&task, THREE_CHUNKS).await;
    stage.proxy.assert_sent_once_each(1);
    assert!(stage.proxy.most_streams() <= 1, "{} streams of one task at once", stage.proxy.most_streams());
    if kind == PeerKind::Py03 {
        assert!(stage.proxy.count(When::Subscribes) <= 1, "each subscriber damages its tasks");
    }
}
