//! The engine is killed, stopped and started again.

use std::time::Duration;

use taskbell_tests::{FaultProxy, GatewayA, Taskbell, When, eventually};

use crate::{PATIENCE, TOKEN};

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_engine_follows_again_after_its_restart_and_draws_the_gap() {
    let gateway = GatewayA::start(TOKEN).await;
    let proxy = FaultProxy::before(gateway.port()).await;
    let mut taskbell = Taskbell::setup().credential_file("of these tests").start().await;
    let command = format!("echo {TOKEN}");
    taskbell.cli(&["agent", "add", &proxy.url(), "--name", "a", "--token-command", &command]).await.ok();
    let task = taskbell.send("a", "a turn").await;
    eventually(PATIENCE, "attached", || gateway.open_streams() == 1).await;
    gateway.work(task.id(), "before the crash");
    taskbell
        .shows(&task, PATIENCE, "it is stored", |shown| shown.0.to_string().contains("before the crash"))
        .await;
    taskbell.kill9().await;
    gateway.work(task.id(), "while the engine was away");
    taskbell.come_up().await;
    let before = proxy.count(When::Subscribes);
    eventually(Duration::from_secs(10), "the watch is back", || {
        proxy.count(When::Subscribes) > before || gateway.open_streams() == 1
    })
    .await;
    gateway.finish(task.id(), "the report");
    taskbell.wait(&task).await.exits(0);
    let shown = taskbell.show(&task).await;
    assert_eq!(shown.text(), "the report");
    assert!(shown.has_gap(), "nobody listened while the engine was away: {}", shown.0);
    assert!(shown.0.to_string().contains("before the crash"), "what was known is kept: {}", shown.0);
    proxy.assert_sent_once_each(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_ended_while_the_engine_was_away_is_found_ended() {
    let gateway = GatewayA::start(TOKEN).await;
    let mut taskbell = Taskbell::setup().credential_file("of these tests").start().await;
    let command = format!("echo {TOKEN}");
    taskbell.cli(&["agent", "add", &gateway.url(), "--name", "a", "--token-command", &command]).await.ok();
    let task = taskbell.send("a", "a turn").await;
    taskbell.stop().await;
    gateway.finish(task.id(), "the report");
    taskbell.come_up().await;
    taskbell.wait(&task).await.exits(0);
    assert_eq!(taskbell.show(&task).await.text(), "the report");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_stop_is_quick_and_takes_the_run_file_with_it() {
    let gateway = GatewayA::start(TOKEN).await;
    let mut taskbell = Taskbell::start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), TOKEN).await;
    taskbell.send("a", "a turn").await;
    eventually(PATIENCE, "attached", || gateway.open_streams() == 1).await;
    assert!(taskbell.data_dir().join("runtime.json").exists());
    taskbell.stop().await;
    assert!(!taskbell.data_dir().join("runtime.json").exists(), "it names an engine that is gone");
    let code = taskbell.cli(&["tasks"]).await.error_code(1);
    assert_eq!(code, "no_engine");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_run_file_of_a_killed_engine_gives_nothing_to_whoever_sits_on_its_port() {
    let mut taskbell = Taskbell::start().await;
    let gateway = taskbell.ready().gateway.clone();
    taskbell.kill9().await;
    let port = gateway.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let squatter = std::net::TcpListener::bind(("127.0.0.1", port)).expect("the port is free again");
    squatter.set_nonblocking(true).expect("a socket option");
    let code = taskbell.cli(&["tasks"]).await.error_code(1);
    assert_eq!(code, "no_engine", "nobody holds the folder, whatever the run file says");
    let asked = squatter.accept().is_ok();
    assert!(!asked, "a squatter is not even spoken to while nobody holds the folder");
}
