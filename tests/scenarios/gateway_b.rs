//! Gateway B: callbacks are the fast path, GetTask is what is believed.

use taskbell_tests::{
    Cut, FaultProxy, GatewayB, Taskbell, When, eventually, gateways::Tunnel, taskbell::TaskName,
};

use crate::{PATIENCE, TOKEN};

const PUBLIC: &str = "https://hooks.example.com";

struct Scene {
    gateway: GatewayB,
    proxy: FaultProxy,
    taskbell: Taskbell,
}

async fn scene() -> Scene {
    let mut gateway = GatewayB::start(TOKEN).await;
    let proxy = FaultProxy::before(gateway.port()).await;
    let taskbell = Taskbell::setup().arg("--public-url").arg(PUBLIC).silence(2).start().await;
    gateway.set_tunnel(Tunnel { public: PUBLIC.to_owned(), local: taskbell.ready().inbox.clone() });
    taskbell.add_agent_with_token("b", &proxy.url(), TOKEN).await;
    Scene { gateway, proxy, taskbell }
}

impl Scene {
    async fn pushed_task(&self) -> TaskName {
        let output = self.taskbell.cli(&["send", "b", "a long run", "--push"]).await;
        let task = TaskName::of(&output.ok()["task"]);
        eventually(PATIENCE, "our callback is registered", || self.gateway.callbacks(task.id()) == 1).await;
        task
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_followed_through_cuts_without_any_callback() {
    let scene = scene().await;
    let output = scene.taskbell.cli(&["send", "b", "a long run", "--no-push"]).await;
    let task = TaskName::of(&output.ok()["task"]);
    eventually(PATIENCE, "attached", || scene.gateway.open_streams() == 1).await;
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
async fn a_callback_is_confirmed_by_reading_the_task() {
    let scene = scene().await;
    let task = scene.pushed_task().await;
    scene.gateway.finish(task.id(), "the result");
    scene.taskbell.wait(&task).await.exits(0);
    let shown = scene.taskbell.show(&task).await;
    assert_eq!(shown.text(), "the result");
    let listed = taskbell_tests::wait_until(PATIENCE, "the callback has a verdict", async || {
        let items = scene.taskbell.cli(&["inbox", "list"]).await.items();
        items.into_iter().find(|item| item["verdict"] == "confirmed" && item["claimed"] == "completed")
    })
    .await;
    assert_eq!(listed["confirmed"], "completed", "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_callback_is_made_up_for_by_reading() {
    let mut scene = scene().await;
    let task = scene.pushed_task().await;
    // The receiver is away for the whole of the final notification.
    scene.gateway.set_tunnel(Tunnel { public: PUBLIC.to_owned(), local: "http://127.0.0.1:9".to_owned() });
    scene.proxy.cut_streams(Cut::CleanEnd);
    scene.gateway.finish(task.id(), "the result");
    scene.taskbell.wait(&task).await.exits(0);
    assert_eq!(scene.taskbell.show(&task).await.text(), "the result");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_progress_changes_nothing_about_the_end() {
    let scene = scene().await;
    scene.gateway.drop_progress();
    let task = scene.pushed_task().await;
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
    let output = scene.taskbell.cli(&["send", "b", "a long run", "--no-push"]).await;
    let task = TaskName::of(&output.ok()["task"]);
    eventually(PATIENCE, "attached", || scene.gateway.open_streams() == 1).await;
    scene.proxy.cut_streams(Cut::Reset);
    scene.gateway.finish(task.id(), "the result");
    scene.taskbell.wait(&task).await.exits(0);
    assert_eq!(scene.taskbell.show(&task).await.state(), "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_fields_of_the_protocol_are_sent_and_the_version_always() {
    let scene = scene().await;
    let task = scene.pushed_task().await;
    scene.taskbell.cli(&["push", "list", task.as_str()]).await.ok();
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

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_is_removed_again_when_its_user_asks() {
    let scene = scene().await;
    let task = scene.pushed_task().await;
    let listed = scene.taskbell.cli(&["push", "list", task.as_str()]).await.items();
    assert_eq!(listed.len(), 1, "{listed:?}");
    scene.taskbell.cli(&["push", "remove", task.as_str()]).await.exits(0);
    eventually(PATIENCE, "it is gone at the gateway", || scene.gateway.callbacks(task.id()) == 0).await;
}
