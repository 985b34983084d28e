//! The gateways of both documents, to the letter, behind a public address.

use serde_json::{Value, json};
use taskbell_tests::gateways::Tunnel;
use taskbell_tests::{GatewayA, GatewayB, Taskbell, eventually, taskbell::TaskName, wait_until};

use crate::stage::{PATIENCE, callbacks, registration};

const TOKEN: &str = "token-of-alice";
const PUBLIC: &str = "https://hooks.example.com";

async fn engine() -> (Taskbell, Tunnel) {
    let taskbell = Taskbell::setup().silence(2).arg("--public-url").arg(PUBLIC).start().await;
    let tunnel = Tunnel { public: PUBLIC.to_owned(), local: taskbell.ready().inbox.clone() };
    (taskbell, tunnel)
}

async fn confirmed(taskbell: &Taskbell, task: &TaskName, state: &str) -> Value {
    wait_until(PATIENCE, &format!("a callback says {state} and is confirmed"), async || {
        let found = callbacks(taskbell, task).await;
        found.into_iter().find(|one| one["claimed"] == state && one["verdict"] == "confirmed")
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_a_takes_the_flat_form_under_the_old_name_and_tells_the_status_only() {
    let mut gateway = GatewayA::start(TOKEN).await;
    let (taskbell, tunnel) = engine().await;
    gateway.set_tunnel(tunnel);
    taskbell.add_agent_with_token("a", &gateway.url(), TOKEN).await;
    let task = taskbell.send("a", "a turn").await;
    let made = registration(&taskbell, &task, "active").await;
    assert!(made["url"].as_str().is_some_and(|url| url.starts_with(PUBLIC)), "{made}");
    assert_eq!(made["echoed"], false, "this gateway keeps secrets to itself: {made}");
    assert_eq!(gateway.callbacks(task.id()), 1);
    gateway.work(task.id(), "half of it");
    confirmed(&taskbell, &task, "working").await;
    gateway.finish(task.id(), "the reply");
    taskbell.wait(&task).await.exits(0);
    let last = confirmed(&taskbell, &task, "completed").await;
    assert_eq!(
        (&last["proofs"]["authorization"], &last["shape"]),
        (&json!("valid"), &json!("status")),
        "{last}"
    );
    assert_eq!(taskbell.show(&task).await.text(), "the reply", "which no callback carried");
    eventually(PATIENCE, "it is taken back", || gateway.callbacks(task.id()) == 0).await;
    let agent = taskbell.cli(&["agent", "show", "a"]).await.ok();
    assert!(!agent.to_string().contains("echoed_secret"), "{agent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_b_takes_token_and_bearer_and_sends_snapshots() {
    let mut gateway = GatewayB::start(TOKEN).await;
    let (taskbell, tunnel) = engine().await;
    gateway.set_tunnel(tunnel);
    taskbell.add_agent_with_token("b", &gateway.url(), TOKEN).await;
    let task = taskbell.send("b", "a long run").await;
    registration(&taskbell, &task, "active").await;
    gateway.ask(task.id(), "which one?");
    taskbell.wait(&task).await.exits(6);
    confirmed(&taskbell, &task, "input-required").await;
    taskbell.cli(&["reply", task.as_str(), "the second"]).await.exits(0);
    gateway.finish(task.id(), "the result");
    taskbell.wait(&task).await.exits(0);
    let last = confirmed(&taskbell, &task, "completed").await;
    assert_eq!(last["proofs"], json!({"token": "valid", "authorization": "valid"}), "{last}");
    eventually(PATIENCE, "it is taken back", || gateway.callbacks(task.id()) == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_b_sends_a_basic_credential_where_it_was_asked_to() {
    let mut gateway = GatewayB::start(TOKEN).await;
    let (taskbell, tunnel) = engine().await;
    gateway.set_tunnel(tunnel);
    taskbell.add_agent_with_token("b", &gateway.url(), TOKEN).await;
    taskbell.cli(&["settings", "set", "push.b", "off"]).await.exits(0);
    taskbell.cli(&["settings", "set", "proof.b", "all"]).await.exits(0);
    let task = taskbell.send("b", "a long run").await;
    let made = taskbell.cli(&["push", "register", task.as_str(), "--basic"]).await.ok();
    assert_eq!((&made["scheme"], &made["policy"]), (&json!("basic"), &json!("all")), "{made}");
    gateway.finish(task.id(), "the result");
    taskbell.wait(&task).await.exits(0);
    let last = confirmed(&taskbell, &task, "completed").await;
    assert_eq!(last["proofs"], json!({"token": "valid", "authorization": "valid"}), "{last}");
}
