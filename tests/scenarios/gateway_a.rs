//! Gateway A: start, lose the connection, reattach, read the answer as a text artifact.

use taskbell_tests::{Cut, FaultProxy, GatewayA, Taskbell, When, eventually, taskbell::TaskName};

use crate::{PATIENCE, TOKEN};

struct Scene {
    gateway: GatewayA,
    proxy: FaultProxy,
    taskbell: Taskbell,
}

async fn scene() -> Scene {
    let gateway = GatewayA::start(TOKEN).await;
    let proxy = FaultProxy::before(gateway.port()).await;
    let taskbell = Taskbell::setup().silence(2).start().await;
    taskbell.add_agent_with_token("a", &proxy.url(), TOKEN).await;
    Scene { gateway, proxy, taskbell }
}

impl Scene {
    async fn flowing_task(&self) -> TaskName {
        let task = self.taskbell.send("a", "write the report").await;
        eventually(PATIENCE, "the task is attached to", || self.gateway.open_streams() == 1).await;
        task
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reply_is_read_as_a_text_artifact_of_the_completed_task() {
    let scene = scene().await;
    let task = scene.flowing_task().await;
    scene.gateway.work(task.id(), "thinking");
    scene.gateway.finish(task.id(), "the report");
    scene.taskbell.wait(&task).await.exits(0);
    let shown = scene.taskbell.show(&task).await;
    assert_eq!((shown.state(), shown.text().as_str()), ("completed", "the report"));
    assert_eq!(scene.gateway.messages().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_while_nobody_listened_is_found_on_reattaching() {
    for cut in [Cut::CleanEnd, Cut::Reset, Cut::Silence] {
        let scene = scene().await;
        let task = scene.flowing_task().await;
        scene.gateway.work(task.id(), "thinking");
        scene.proxy.cut_streams(cut);
        scene.gateway.work(task.id(), "said while nobody listened");
        scene.gateway.finish(task.id(), "the report");
        scene.taskbell.wait(&task).await.exits(0);
        let shown = scene.taskbell.show(&task).await;
        assert_eq!(shown.text(), "the report", "after {cut:?}");
        assert!(shown.has_gap(), "after {cut:?}, as nothing is replayed: {}", shown.0);
        scene.proxy.assert_sent_once_each(1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_the_gateway_ends_early_is_attached_again_and_goes_on() {
    let scene = scene().await;
    let task = scene.flowing_task().await;
    scene.gateway.cut_streams();
    eventually(PATIENCE, "attached again", || {
        scene.proxy.count(When::Subscribes) >= 2 && scene.gateway.open_streams() == 1
    })
    .await;
    scene.gateway.work(task.id(), "after the cut");
    scene
        .taskbell
        .shows(&task, PATIENCE, "the words after the cut", |shown| {
            shown.0.to_string().contains("after the cut")
        })
        .await;
    scene.gateway.finish(task.id(), "the report");
    scene.taskbell.wait(&task).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_asks_as_the_document_says() {
    let scene = scene().await;
    let task = scene.flowing_task().await;
    scene.gateway.cut_streams();
    eventually(PATIENCE, "attached again", || scene.proxy.count(When::Subscribes) >= 2).await;
    scene.gateway.finish(task.id(), "the report");
    scene.taskbell.wait(&task).await.exits(0);
    let calls = scene.gateway.calls();
    for call in calls.iter().filter(|call| call.method == "tasks/resubscribe") {
        let accept = call.accept.as_deref().unwrap_or_default();
        assert!(accept.contains("text/event-stream"), "a stream is asked for: {call:?}");
        assert_eq!(call.last_event_id, None, "the gateway is never asked to replay: {call:?}");
    }
    assert!(calls.iter().all(|call| call.owner.is_some()), "each call carries the owner's token: {calls:?}");
    assert!(
        calls.iter().all(|call| call.method != "SendMessage"),
        "the card's dialect starts turns: {calls:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_is_answered_at_once_is_no_task() {
    let scene = scene().await;
    let answer = scene.taskbell.cli(&["send", "a", "direct:forty-two"]).await.ok();
    assert!(answer["message"].to_string().contains("forty-two"), "{answer}");
    assert!(answer["task"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_pause_is_answered_and_the_same_task_goes_on() {
    let scene = scene().await;
    let task = scene.flowing_task().await;
    scene.gateway.ask(task.id(), "publish it?");
    scene.taskbell.wait(&task).await.exits(6);
    scene.taskbell.cli(&["reply", task.as_str(), "yes"]).await.exits(0);
    scene.gateway.finish(task.id(), "published");
    scene.taskbell.wait(&task).await.exits(0);
    assert_eq!(scene.taskbell.show(&task).await.text(), "published");
    scene.proxy.assert_sent_once_each(2);
}
