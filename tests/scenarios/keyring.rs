//! The keyring of a desktop session: kept there, locked, stopped, gone.

use std::time::{Duration, Instant};

use taskbell_tests::{GatewayA, Taskbell, canary::Canary, eventually, session::Session};

use crate::PATIENCE;

async fn session() -> Option<Session> {
    if !Session::is_possible() {
        println!("skipped: this machine has no dbus-daemon, dbus-send or gnome-keyring-daemon");
        return None;
    }
    Some(Session::start().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_outlives_the_engine_in_the_keyring_and_nowhere_else() {
    let Some(session) = session().await else { return };
    let token = Canary::new("keyring");
    let gateway = GatewayA::start(token.secret()).await;
    let mut taskbell = session.engine().start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), token.secret()).await;
    let task = taskbell.send("a", "a turn").await;
    taskbell.crash_and_restart().await;
    eventually(PATIENCE, "attached again with the kept token", || gateway.open_streams() == 1).await;
    gateway.finish(task.id(), "done");
    taskbell.wait(&task).await.exits(0);
    token.assert_not_kept_by(&taskbell);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_agent_leaves_nothing_in_the_keyring() {
    let Some(session) = session().await else { return };
    let token = Canary::new("removed");
    let gateway = GatewayA::start(token.secret()).await;
    let taskbell = session.engine().start().await;
    let before = session.items().await;
    taskbell.add_agent_with_token("a", &gateway.url(), token.secret()).await;
    assert!(session.items().await > before, "its credential is an item");
    taskbell.cli(&["agent", "remove", "a"]).await.exits(0);
    assert_eq!(session.items().await, before, "and gone with it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_keyring_is_named_and_stops_nothing_that_runs() {
    let Some(session) = session().await else { return };
    let gateway = GatewayA::start(crate::TOKEN).await;
    let taskbell = session.engine().start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), crate::TOKEN).await;
    let task = taskbell.send("a", "a turn").await;
    eventually(PATIENCE, "attached", || gateway.open_streams() == 1).await;
    session.lock().await;
    assert_named(&taskbell, &gateway).await;
    gateway.finish(task.id(), "done");
    taskbell.wait(&task).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyring_that_never_answers_is_given_up_and_quitting_stays_quick() {
    let Some(session) = session().await else { return };
    let gateway = GatewayA::start(crate::TOKEN).await;
    let mut taskbell = session.engine().start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), crate::TOKEN).await;
    let task = taskbell.send("a", "a turn").await;
    eventually(PATIENCE, "attached", || gateway.open_streams() == 1).await;
    session.freeze_keyring();
    let start = Instant::now();
    assert_named(&taskbell, &gateway).await;
    assert!(start.elapsed() < Duration::from_secs(25), "given up after {:?}", start.elapsed());
    gateway.finish(task.id(), "done");
    taskbell.wait(&task).await.exits(0);
    taskbell.stop().await;
    session.thaw_keyring();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyring_that_came_back_is_used_again() {
    let Some(mut session) = session().await else { return };
    let gateway = GatewayA::start(crate::TOKEN).await;
    let taskbell = session.engine().start().await;
    session.kill_keyring().await;
    assert_named(&taskbell, &gateway).await;
    session.restart_keyring().await;
    taskbell_tests::wait_until(PATIENCE, "it takes secrets again", async || {
        let arguments =
            ["agent", "add", &gateway.url(), "--name", "again", "--token-env", "TEST_AGENT_TOKEN"];
        let output = taskbell.cli_env(&arguments, &[("TEST_AGENT_TOKEN", crate::TOKEN)]).await;
        (output.code == Some(0)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_session_bus_the_engine_says_so_and_runs() {
    let gateway = GatewayA::start(crate::TOKEN).await;
    let taskbell = Taskbell::setup()
        .os_keyring()
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus")
        .env("XDG_RUNTIME_DIR", "/nonexistent")
        .start()
        .await;
    assert_named(&taskbell, &gateway).await;
    taskbell.cli(&["tasks"]).await.exits(0);
}

/// A new secret cannot be kept, and the error says why; nothing falls back to plain text.
async fn assert_named(taskbell: &Taskbell, gateway: &GatewayA) {
    let token = Canary::new("not-kept");
    gateway.accept(token.secret(), "alice");
    let arguments = ["agent", "add", &gateway.url(), "--name", "late", "--token-env", "TEST_AGENT_TOKEN"];
    let output = taskbell.cli_env(&arguments, &[("TEST_AGENT_TOKEN", token.secret())]).await;
    let code = output.error_code(1);
    assert!(code.starts_with("keyring"), "{code}");
    token.assert_not_kept_by(taskbell);
}
