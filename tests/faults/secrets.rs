//! Where an agent's token is, and what happens when the place it is kept in fails.

use std::{fs, time::Duration};

use serde_json::Value;
use taskbell_tests::{
    Cut, FaultProxy, GatewayA, Taskbell, a2a::http, canary::Canary, eventually, session::Session,
};

use crate::{
    PATIENCE,
    support::{DemoAgent, command, health, trouble},
};

async fn session() -> Option<Session> {
    if !Session::is_possible() {
        println!("skipped: this machine has no dbus-daemon, dbus-send or gnome-keyring-daemon");
        return None;
    }
    Some(Session::start().await)
}

/// Every GET of the API that needs no more than names, as its text.
async fn api_answers(taskbell: &Taskbell, paths: &[&str]) -> String {
    let run = fs::read_to_string(taskbell.data_dir().join("runtime.json")).expect("a run file");
    let run: Value = serde_json::from_str(&run).expect("JSON");
    let mut all = String::new();
    for path in paths {
        let url = format!("{}/api/v1{path}", taskbell.ready().gateway);
        let request = http().get(&url).bearer_auth(run["token"].as_str().expect("a token"));
        let mut answer = request.send().await.unwrap_or_else(|error| panic!("{url}: {error}"));
        assert!(answer.status().is_success(), "{url}: {}", answer.status());
        while let Ok(Ok(Some(piece))) = tokio::time::timeout(Duration::from_millis(500), answer.chunk()).await
        {
            all.push_str(&String::from_utf8_lossy(&piece));
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_in_the_keyring_and_nowhere_else() {
    let Some(session) = session().await else { return };
    let token = Canary::new("token");
    let gateway = GatewayA::start(token.secret()).await;
    let proxy = FaultProxy::before(gateway.port()).await;
    let mut taskbell = session.engine().env("TASKBELL_LOG", "trace").start().await;
    // The probe's item comes and goes.
    taskbell_tests::wait_until(PATIENCE, "the keyring is probed", async || {
        (health(&taskbell, "keyring").await["state"] == "ok").then_some(())
    })
    .await;
    let kept = session.items().await;
    taskbell.add_agent_with_token("a", &proxy.url(), token.secret()).await;
    assert!(session.items().await > kept, "it is an item of the keyring");
    let task = taskbell.send("a", "a turn").await;
    eventually(PATIENCE, "attached", || proxy.open_streams() == 1).await;
    // Errors and reconnects are where secrets like to come out.
    gateway.expire(token.secret());
    proxy.cut_streams(Cut::Reset);
    taskbell.shows(&task, PATIENCE, "refused", |shown| trouble(shown) == Some("unauthorized")).await;
    gateway.accept(token.secret(), "alice");
    taskbell.cli(&["agent", "test", "a"]).await;
    let commands: [&[&str]; 8] = [
        &["agent", "show", "a"],
        &["agent", "list"],
        &["show", task.as_str()],
        &["tasks"],
        &["settings", "list"],
        &["doctor"],
        &["reconcile", "--all"],
        &["send", "nobody", "hello"],
    ];
    for arguments in commands {
        for output in [taskbell.cli(arguments).await, taskbell.cli_text(arguments).await] {
            token.assert_not_in(&output.command, &output.stdout);
            token.assert_not_in(&output.command, &output.stderr);
        }
    }
    let paths = [
        "/agents",
        "/agents/a",
        "/tasks",
        &format!("/tasks/{}", task.as_str()),
        "/changes?after=0",
        "/health",
        "/settings",
    ];
    token.assert_not_in("the API's answers", &api_answers(&taskbell, &paths).await);
    let pid = taskbell.engine().pid();
    for place in ["cmdline", "environ"] {
        let octets = fs::read(format!("/proc/{pid}/{place}")).expect("the engine runs");
        assert!(!token.is_in(&octets), "the token is in the engine's {place}");
    }
    token.assert_not_kept_by(&taskbell);
    taskbell.crash_and_restart().await;
    eventually(PATIENCE, "the kept token is used again", || proxy.open_streams() == 1).await;
    gateway.finish(task.id(), "the report");
    taskbell.wait(&task).await.exits(0);
    token.assert_not_kept_by(&taskbell);
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_locked_keyring_what_needs_no_secret_goes_on_and_the_rest_waits() {
    let Some(mut session) = session().await else { return };
    let token = Canary::new("locked");
    let gateway = GatewayA::start(token.secret()).await;
    let demo = DemoAgent::start().await;
    let mut taskbell = session.engine().start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), token.secret()).await;
    taskbell.add_agent("demo", &demo.url).await;
    let locked = taskbell.send("a", "a turn").await;
    let open = taskbell.send("demo", "steps=60 interval=0.2").await;
    eventually(PATIENCE, "attached", || gateway.open_streams() == 1).await;
    taskbell.kill9().await;
    session.lock().await;
    taskbell.come_up().await;
    let shown = taskbell.shows(&open, PATIENCE, "followed", |shown| shown.mode() == "stream").await;
    assert!(shown.has_gap(), "{}", shown.0);
    let shown = taskbell.shows(&locked, PATIENCE, "named", |shown| trouble(shown).is_some()).await;
    assert_eq!(shown.state(), "submitted", "a locked keyring says nothing of the task: {}", shown.0);
    assert!(
        trouble(&shown).is_some_and(|code| code == "credential_unavailable" || code.starts_with("keyring")),
        "{}",
        shown.0
    );
    assert_ne!(health(&taskbell, "keyring").await["state"], "ok", "doctor says so");
    session.kill_keyring().await;
    session.restart_keyring().await;
    taskbell.cli(&["agent", "test", "a"]).await;
    eventually(PATIENCE, "unlocked, it goes on", || gateway.open_streams() == 1).await;
    assert_eq!(health(&taskbell, "keyring").await["state"], "ok", "and that it is over");
    gateway.finish(locked.id(), "the report");
    taskbell.wait(&locked).await.exits(0);
    taskbell.wait(&open).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_no_keyring_at_all_nothing_falls_back_to_plain_text_and_follows_go_on() {
    let demo = DemoAgent::start().await;
    let token = Canary::new("no-bus");
    let gateway = GatewayA::start(token.secret()).await;
    let taskbell = Taskbell::setup()
        .os_keyring()
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus")
        .env("XDG_RUNTIME_DIR", "/nonexistent")
        .start()
        .await;
    taskbell.add_agent("demo", &demo.url).await;
    let task = taskbell.send("demo", "steps=3 interval=0.2").await;
    let arguments = ["agent", "add", &gateway.url(), "--name", "a", "--token-env", "TEST_AGENT_TOKEN"];
    let refused = taskbell.cli_env(&arguments, &[("TEST_AGENT_TOKEN", token.secret())]).await;
    let code = refused.error_code(1);
    assert!(code.starts_with("keyring"), "{code}");
    assert_eq!(taskbell.cli(&["agent", "list"]).await.items().len(), 1, "an agent without its token is none");
    token.assert_not_kept_by(&taskbell);
    taskbell.wait(&task).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_encrypted_file_outlives_a_restart_and_a_wrong_passphrase_is_named() {
    let token = Canary::new("file");
    let passphrase = Canary::new("passphrase");
    let gateway = GatewayA::start(token.secret()).await;
    let mut taskbell = Taskbell::setup().credential_file(passphrase.secret()).start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), token.secret()).await;
    let task = taskbell.send("a", "a turn").await;
    eventually(PATIENCE, "attached", || gateway.open_streams() == 1).await;
    let asked = gateway.calls().len();
    taskbell.crash_and_restart().await;
    eventually(PATIENCE, "attached with the kept token", || {
        gateway.calls()[asked..].iter().any(|call| call.method.contains("ubscribe") && call.owner.is_some())
    })
    .await;
    gateway.finish(task.id(), "the report");
    taskbell.wait(&task).await.exits(0);
    for secret in [&token, &passphrase] {
        secret.assert_not_kept_by(&taskbell);
    }
    taskbell.stop().await;
    let arguments =
        ["serve", "--gateway", "127.0.0.1:0", "--inbox", "127.0.0.1:0", "--credential-store", "file"];
    let wrong = taskbell.cli_env(&arguments, &[("TASKBELL_PASSPHRASE", "another")]).await;
    assert_eq!(wrong.error_code(1), "keyring_wrong_passphrase");
    let none = command(&taskbell.data_dir(), &arguments).await;
    assert_eq!(none.error_code(1), "keyring_no_passphrase");
    taskbell.come_up().await;
    let later = taskbell.send("a", "the right one still opens it").await;
    gateway.finish(later.id(), "done");
    taskbell.wait(&later).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyring_that_is_locked_later_is_told_and_so_is_its_return() {
    let Some(mut session) = session().await else { return };
    let gateway = GatewayA::start(crate::TOKEN).await;
    let taskbell = session.engine().start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), crate::TOKEN).await;
    assert_eq!(health(&taskbell, "keyring").await["state"], "ok");
    session.lock().await;
    let arguments = ["agent", "add", &gateway.url(), "--name", "late", "--token-env", "TEST_AGENT_TOKEN"];
    let refused = taskbell.cli_env(&arguments, &[("TEST_AGENT_TOKEN", crate::TOKEN)]).await;
    assert_eq!(refused.error_code(1), "keyring_locked");
    assert_eq!(health(&taskbell, "keyring").await["state"], "bad");
    session.kill_keyring().await;
    session.restart_keyring().await;
    taskbell.cli_env(&arguments, &[("TEST_AGENT_TOKEN", crate::TOKEN)]).await.exits(0);
    assert_eq!(health(&taskbell, "keyring").await["state"], "ok");
}
