//! Gateway B: 1.0 names on its root, strict about fields; GetTask is what is believed.

use taskbell_tests::{Cut, FaultProxy, GatewayB, Taskbell, When, eventually, taskbell::TaskName};

use crate::{PATIENCE, TOKEN};

struct Scene {
    gateway: GatewayB,
    proxy: FaultProxy,
    taskbell: Taskbell,
}

async fn scene() -> Scene {
    let gateway = GatewayB::start(TOKEN).await;
    let proxy = FaultProxy::before(gateway.port()).await;
    let taskbell = Taskbell::setup().silence(2).start().await;
    taskbell.add_agent_with_token("b", &proxy.url(), TOKEN).await;
    Scene { gateway, proxy, taskbell }
}

impl Scene {
    async fn flowing_task(&self) -> TaskName {
        let task = self.taskbell.send("b", "a long run").await;
        eventually(PATIENCE, "attached", || self.gateway.open_streams() == 1).await;
        task
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_followed_through_cuts_without_any_callback() {
    let scene = scene().await;
    let task = scene.flowing_task().await;
    scene.gateway.work(task.id(), "one");
    scene.proxy.cut_streams(Cut::Reset);
    scene.gateway.work(task.id(), "two");
    scene.gateway.finish(task.id(), "the result");
    scene.taskbell.wait(&task).await.exits(0);
    let shown = scene.taskbell.show(&task).await;
    assert_eq!(shown.text(), "the result");
    assert!(shown.has_gap(), "{}", shown.0);
    assert_eq!(scene.gateway.callbacks(task.id()), 0, "none was asked for");
    scene.proxy.assert_sent_once_each(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_progress_changes_nothing_about_the_end() {
    let scene = scene().await;
    scene.gateway.drop_progress();
    let task = scene.flowing_task().await;
    for step in 0..20 {
        scene.gateway.work(task.id(), &format!("step {step}"));
    }
    scene.gateway.ask(task.id(), "which one?");
    scene.taskbell.wait(&task).await.exits(6);
    scene.taskbell.cli(&["reply", task.as_str(), "the second"]).await.exits(0);
    scene.gateway.finish(task.id(), "the result");
    scene.taskbell.wait(&task).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_run_that_subscribing_calls_unknown_is_not_lost() {
    let scene = scene().await;
    scene.gateway.forget_finished_runs();
    let task = scene.flowing_task().await;
    scene.proxy.cut_streams(Cut::Reset);
    scene.gateway.finish(task.id(), "the result");
    scene.taskbell.wait(&task).await.exits(0);
    assert_eq!(scene.taskbell.show(&task).await.state(), "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_fields_of_the_protocol_are_sent_and_the_version_always() {
    let scene = scene().await;
    let task = scene.flowing_task().await;
    scene.gateway.finish(task.id(), "the result");
    scene.taskbell.wait(&task).await.exits(0);
    let calls = scene.gateway.calls();
    for call in calls.iter().filter(|call| !call.method.contains('/')) {
        assert_eq!(call.version.as_deref(), Some("1.0"), "{call:?}");
    }
    // The gateway refuses unknown fields, so the run would not have got here with any.
    assert!(calls.iter().any(|call| call.method == "SendMessage"), "{calls:?}");
    assert_eq!(scene.proxy.count(When::Sends), 1);
}
