//! The keyring and the secrets of registrations: one item an agent, and what happens while it is locked, frozen
//! or gone.

use std::time::Duration;

use serde_json::json;
use taskbell_tests::gateways::Tunnel;
use taskbell_tests::session::Session;
use taskbell_tests::{GatewayB, Taskbell, eventually, taskbell::TaskName, wait_until};

use crate::stage::{PATIENCE, callbacks, list, registration, token};

const TOKEN: &str = "token-of-alice";
const PUBLIC: &str = "https://hooks.example.com";

struct Scene {
    session: Session,
    taskbell: Taskbell,
    gateway: GatewayB,
}

async fn scene() -> Option<Scene> {
    if !Session::is_possible() {
        println!("skipped: this machine has no dbus-daemon, dbus-send or gnome-keyring-daemon");
        return None;
    }
    let session = Session::start().await;
    let mut gateway = GatewayB::start(TOKEN).await;
    let taskbell = session.engine().silence(2).arg("--public-url").arg(PUBLIC).start().await;
    gateway.set_tunnel(Tunnel { public: PUBLIC.to_owned(), local: taskbell.ready().inbox.clone() });
    taskbell.add_agent_with_token("b", &gateway.url(), TOKEN).await;
    Some(Scene { session, taskbell, gateway })
}

impl Scene {
    /// An agent that has no key yet.
    async fn another_agent(&self) -> GatewayB {
        let mut gateway = GatewayB::start(TOKEN).await;
        gateway.set_tunnel(Tunnel { public: PUBLIC.to_owned(), local: self.taskbell.ready().inbox.clone() });
        self.taskbell.add_agent_with_token("other", &gateway.url(), TOKEN).await;
        gateway
    }

    async fn is_called_back_about(&self, task: &TaskName) {
        let before = callbacks(&self.taskbell, task).await.len();
        self.gateway.work(task.id(), &format!("step after {before}"));
        wait_until(PATIENCE, "another callback is taken", async || {
            (callbacks(&self.taskbell, task).await.len() > before).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_number_of_registrations_is_one_item_an_agent() {
    let Some(scene) = scene().await else { return };
    let before = scene.session.items().await;
    let many = if taskbell_tests::long_run("2,000 registrations") { 2_000 } else { 120 };
    send_many(&scene.taskbell, many).await;
    let registered = wait_until(Duration::from_secs(240), "all are registered", async || {
        let view = scene.taskbell.cli(&["push", "list"]).await.ok();
        let items = view["items"].as_array().cloned().unwrap_or_default();
        let active = items.iter().filter(|item| item["state"] == "active").count();
        (active == many).then_some(active)
    });
    assert_eq!(registered.await, many);
    assert_eq!(scene.session.items().await, before + 1, "the agent's key, and nothing for each registration");
    scene.taskbell.cli(&["agent", "remove", "b"]).await.exits(0);
    assert_eq!(scene.session.items().await, before - 1, "its key goes with its credential");
}

/// As the command line does it, without a process for each.
async fn send_many(taskbell: &Taskbell, many: usize) {
    let token = token(taskbell);
    let url = format!("{}/api/v1/agents/b/send", taskbell.ready().gateway);
    let http = taskbell_tests::a2a::http();
    for chunk in (0..many).collect::<Vec<_>>().chunks(20) {
        let sends = chunk.iter().map(|number| {
            let body = json!({"text": format!("run {number}")});
            http.post(&url).bearer_auth(&token).json(&body).send()
        });
        for answer in futures::future::join_all(sends).await {
            assert!(answer.expect("the engine answers").status().is_success());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_keyring_delays_new_registrations_by_name_and_stops_no_callback() {
    let Some(mut scene) = scene().await else { return };
    let task = scene.taskbell.send("b", "a long run").await;
    registration(&scene.taskbell, &task, "active").await;
    let other = scene.another_agent().await;
    let waiting = scene.taskbell.cli(&["send", "other", "a long run", "--no-push"]).await.ok();
    let waiting = TaskName::of(&waiting["task"]);
    scene.session.lock().await;
    let refused = scene.taskbell.cli(&["push", "register", waiting.as_str()]).await;
    assert_eq!(refused.error_code(1), "keyring_locked");
    let items = list(&scene.taskbell, &waiting).await;
    assert_eq!(items[0]["failure"]["code"], "keyring_locked", "{items:?}");
    assert!(items[0]["nextTryAt"].is_string(), "it is tried again by itself: {items:?}");
    scene.is_called_back_about(&task).await;
    // Unlocked again; whoever uses the keyring next finds out, and what waits goes on by itself.
    scene.session.kill_keyring().await;
    scene.session.restart_keyring().await;
    scene.taskbell.add_agent_with_token("third", &other.url(), TOKEN).await;
    registration(&scene.taskbell, &waiting, "active").await;
    assert_eq!(other.callbacks(waiting.id()), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_keyring_is_given_up_and_a_thawed_one_heals_what_waits() {
    let Some(scene) = scene().await else { return };
    let task = scene.taskbell.send("b", "a long run").await;
    registration(&scene.taskbell, &task, "active").await;
    let other = scene.another_agent().await;
    let waiting = scene.taskbell.cli(&["send", "other", "a long run", "--no-push"]).await.ok();
    let waiting = TaskName::of(&waiting["task"]);
    scene.session.freeze_keyring();
    let refused = scene.taskbell.cli(&["push", "register", waiting.as_str()]).await;
    assert_eq!(refused.error_code(1), "keyring_timed_out");
    scene.is_called_back_about(&task).await;
    scene.session.thaw_keyring();
    wait_until(PATIENCE, "registering by hand succeeds", async || {
        let made = scene.taskbell.cli(&["push", "register", waiting.as_str()]).await;
        (made.code == Some(0)).then_some(())
    })
    .await;
    eventually(PATIENCE, "the agent has it", || other.callbacks(waiting.id()) == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_keyring_callbacks_go_on_and_new_registrations_say_why_they_wait() {
    let Some(mut scene) = scene().await else { return };
    let task = scene.taskbell.send("b", "a long run").await;
    registration(&scene.taskbell, &task, "active").await;
    let _other = scene.another_agent().await;
    let waiting = scene.taskbell.cli(&["send", "other", "a long run", "--no-push"]).await.ok();
    let waiting = TaskName::of(&waiting["task"]);
    scene.session.kill_keyring().await;
    let refused = scene.taskbell.cli(&["push", "register", waiting.as_str()]).await;
    assert!(refused.error_code(1).starts_with("keyring_"), "{refused:?}");
    scene.is_called_back_about(&task).await;
    scene.gateway.finish(task.id(), "done");
    scene.taskbell.wait(&task).await.exits(0);
}
