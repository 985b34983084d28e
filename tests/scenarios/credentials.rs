//! Tokens run out in the middle of a task.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use taskbell_tests::{FaultProxy, GatewayA, Taskbell, When, eventually};

use crate::{PATIENCE, TOKEN};

/// A command that prints what a file holds and counts its own runs.
fn token_command(folder: &std::path::Path, token: &str) -> String {
    let script = folder.join("token.sh");
    let shown = folder.display();
    fs::write(folder.join("token"), token).expect("a file");
    fs::write(&script, format!("#!/bin/sh\necho run >> '{shown}/runs'\ncat '{shown}/token'\n"))
        .expect("a file");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).expect("a mode");
    script.display().to_string()
}

fn runs(folder: &std::path::Path) -> usize {
    fs::read_to_string(folder.join("runs")).unwrap_or_default().lines().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_command_is_run_again_once_when_the_token_ran_out() {
    let gateway = GatewayA::start(TOKEN).await;
    let proxy = FaultProxy::before(gateway.port()).await;
    let taskbell = Taskbell::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let command = token_command(folder.path(), TOKEN);
    taskbell.cli(&["agent", "add", &proxy.url(), "--name", "a", "--token-command", &command]).await.ok();
    let tasks =
        [taskbell.send("a", "one").await, taskbell.send("a", "two").await, taskbell.send("a", "three").await];
    eventually(PATIENCE, "attached", || gateway.open_streams() == 3).await;

    fs::write(folder.path().join("token"), "second-token").expect("a file");
    gateway.accept("second-token", "alice");
    gateway.expire(TOKEN);
    let (before, subscribed) = (runs(folder.path()), proxy.count(When::Subscribes));
    gateway.cut_streams();
    eventually(PATIENCE, "all three are attached again", || {
        proxy.count(When::Subscribes) >= subscribed + 3 && gateway.open_streams() == 3
    })
    .await;
    eventually(PATIENCE, "the command ran again", || runs(folder.path()) > before).await;
    eventually(PATIENCE, "all three are attached again", || gateway.open_streams() == 3).await;
    let again = runs(folder.path()) - before;
    assert_eq!(again, 1, "three streams met one 401 together and asked once");
    for task in &tasks {
        gateway.finish(task.id(), "done");
        taskbell.wait(task).await.exits(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_refused_even_when_fresh_does_not_loop() {
    let gateway = GatewayA::start(TOKEN).await;
    let proxy = FaultProxy::before(gateway.port()).await;
    let taskbell = Taskbell::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let command = token_command(folder.path(), TOKEN);
    taskbell.cli(&["agent", "add", &proxy.url(), "--name", "a", "--token-command", &command]).await.ok();
    let task = taskbell.send("a", "one").await;
    eventually(PATIENCE, "attached", || gateway.open_streams() == 1).await;
    gateway.expire(TOKEN);
    let (before, calls) = (runs(folder.path()), proxy.seen().len());
    gateway.cut_streams();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(runs(folder.path()) - before <= 2, "the command is not run over and over");
    assert!(proxy.seen().len() - calls <= 8, "nor is the agent asked over and over");
    let shown = taskbell.show(&task).await;
    assert!(
        ["submitted", "working"].contains(&shown.state()),
        "a 401 says nothing about the task: {}",
        shown.0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_command_the_task_waits_for_a_new_token_and_goes_on() {
    let gateway = GatewayA::start(TOKEN).await;
    let taskbell = Taskbell::start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), TOKEN).await;
    let task = taskbell.send("a", "one").await;
    eventually(PATIENCE, "attached", || gateway.open_streams() == 1).await;
    gateway.expire(TOKEN);
    gateway.accept("second-token", "alice");
    gateway.cut_streams();
    taskbell.shows(&task, PATIENCE, "following stops", |shown| shown.mode() != "stream").await;
    gateway.finish(task.id(), "done");
    taskbell.cli(&["wait", task.as_str(), "--timeout", "2s"]).await.exits(124);
    let arguments = ["agent", "set-credential", "a", "--token-env", "TEST_AGENT_TOKEN"];
    taskbell.cli_env(&arguments, &[("TEST_AGENT_TOKEN", "second-token")]).await.exits(0);
    taskbell.wait(&task).await.exits(0);
    assert_eq!(taskbell.show(&task).await.text(), "done", "the same identity, only a new value");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_goes_to_the_registered_origin_only() {
    let gateway = GatewayA::start(TOKEN).await;
    // The gateway's card names its own port, which is another origin than the proxy's.
    let proxy = FaultProxy::before(gateway.port()).await;
    let taskbell = Taskbell::start().await;
    taskbell.add_agent_with_token("a", &proxy.url(), TOKEN).await;
    taskbell.send("a", "one").await;
    // The task is being followed meanwhile: what arrived by now has passed the proxy before.
    let arrived = gateway.calls().len();
    let passed = proxy.seen().iter().filter(|seen| seen.method.is_some()).count();
    assert!(
        (1..=passed).contains(&arrived),
        "{arrived} calls arrived, {passed} came by the registered origin"
    );
}
