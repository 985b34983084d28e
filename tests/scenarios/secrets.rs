//! Planted secrets must not come out anywhere.

use taskbell_tests::{FaultProxy, GatewayB, Taskbell, canary::Canary, eventually};

use crate::PATIENCE;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_s_token_is_nowhere_but_on_the_wire_to_the_agent() {
    let token = Canary::new("agent-token");
    let gateway = GatewayB::start(token.secret()).await;
    let proxy = FaultProxy::before(gateway.port()).await;
    let mut taskbell = Taskbell::setup().env("RUST_LOG", "trace").start().await;
    taskbell.add_agent_with_token("b", &proxy.url(), token.secret()).await;
    let task = taskbell.send("b", "a run").await;
    eventually(PATIENCE, "attached", || gateway.open_streams() == 1).await;
    gateway.finish(task.id(), "done");
    taskbell.wait(&task).await.exits(0);
    // Errors are where secrets like to come out.
    gateway.expire(token.secret());
    let refused = taskbell.cli(&["send", "b", "another"]).await;
    assert_ne!(refused.code, Some(0));
    for arguments in [
        &["agent", "show", "b"][..],
        &["agent", "list"],
        &["agent", "test", "b"],
        &["show", task.as_str()],
        &["tasks"],
        &["settings", "list"],
        &["doctor"],
    ] {
        let output = taskbell.cli(arguments).await;
        token.assert_not_in(&output.command, &output.stdout);
        token.assert_not_in(&output.command, &output.stderr);
    }
    token.assert_not_in("the refusal", &format!("{refused:?}"));
    token.assert_not_kept_by(&taskbell);
    let sent = proxy
        .seen()
        .iter()
        .any(|seen| seen.authorization.as_deref().is_some_and(|value| token.is_in(value.as_bytes())));
    assert!(sent, "the agent itself did get it");
    taskbell.kill9().await;
    assert!(token.files_with_it(&taskbell.data_dir()).is_empty(), "nor is it in what a crash leaves");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_s_own_token_is_in_the_run_file_alone() {
    let taskbell = Taskbell::setup().env("RUST_LOG", "trace").start().await;
    let run_file = taskbell.data_dir().join("runtime.json");
    let run: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&run_file).expect("a run file")).expect("JSON");
    let token = Canary::known(run["token"].as_str().expect("a token"));
    taskbell.cli(&["tasks"]).await.exits(0);
    let files = token.files_with_it(&taskbell.data_dir());
    assert_eq!(files, [run_file.display().to_string()]);
    token.assert_not_in("the engine's output", &taskbell.log());
}
