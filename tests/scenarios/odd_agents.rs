//! Agents that are nearly agents.

use serde_json::json;
use taskbell_tests::{Fault, FaultProxy, GatewayB, Taskbell, When, eventually, odd_servers::Monotone};

use crate::{PATIENCE, TOKEN};

async fn scene() -> (GatewayB, FaultProxy, Taskbell) {
    let gateway = GatewayB::start(TOKEN).await;
    let proxy = FaultProxy::before(gateway.port()).await;
    let taskbell = Taskbell::setup().silence(2).start().await;
    taskbell.add_agent_with_token("b", &proxy.url(), TOKEN).await;
    (gateway, proxy, taskbell)
}

fn result(value: serde_json::Value) -> Fault {
    Fault::answer(
        200,
        "application/json",
        &json!({"jsonrpc": "2.0", "id": "$id", "result": value}).to_string(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed_and_nothing_goes_to_its_target() {
    let (_gateway, proxy, taskbell) = scene().await;
    let elsewhere = GatewayB::start(TOKEN).await;
    proxy.set(
        When::Sends,
        Fault::Answer {
            status: 307,
            content_type: "text/plain".to_owned(),
            headers: vec![("Location".to_owned(), elsewhere.url())],
            body: String::new(),
        },
    );
    let code = taskbell.cli(&["send", "b", "a run"]).await.error_code(1);
    assert_eq!(code, "upstream_redirect");
    assert!(elsewhere.calls().is_empty(), "the token is sent to the first origin only");
    proxy.assert_sent_once_each(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_about_another_task_is_thrown_away() {
    let (gateway, proxy, taskbell) = scene().await;
    let task = taskbell.send("b", "a run").await;
    eventually(PATIENCE, "attached", || gateway.open_streams() == 1).await;
    let other = json!({"id": "another-task", "contextId": "c", "status": {"state": "TASK_STATE_FAILED"}});
    proxy.set(When::Gets, result(other));
    taskbell.cli(&["reconcile", task.as_str()]).await;
    let shown = taskbell.show(&task).await;
    assert_ne!(shown.state(), "failed", "that was about another task: {}", shown.0);
    proxy.heal();
    gateway.finish(task.id(), "the result");
    taskbell.wait(&task).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_task_does_not_begin_to_work_again() {
    let (gateway, proxy, taskbell) = scene().await;
    let task = taskbell.send("b", "a run").await;
    gateway.finish(task.id(), "the result");
    taskbell.wait(&task).await.exits(0);
    let again = json!({"id": task.id(), "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}});
    proxy.set(When::Gets, result(again));
    taskbell.cli(&["reconcile", task.as_str()]).await;
    let shown = taskbell.show(&task).await;
    assert_eq!((shown.state(), shown.text().as_str()), ("completed", "the result"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_is_no_state_is_unknown_and_followed_on() {
    let (gateway, proxy, taskbell) = scene().await;
    let task = taskbell.send("b", "a run").await;
    eventually(PATIENCE, "attached", || gateway.open_streams() == 1).await;
    let odd = json!({"id": task.id(), "contextId": "c", "status": {"state": "TASK_STATE_DAYDREAMING"}});
    proxy.set_times(When::Gets, result(odd), 1);
    taskbell.cli(&["reconcile", task.as_str()]).await;
    gateway.finish(task.id(), "the result");
    taskbell.wait(&task).await.exits(0);
    assert_eq!(taskbell.show(&task).await.text(), "the result");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_end_is_stopped() {
    let (gateway, proxy, taskbell) = scene().await;
    let task = taskbell.send("b", "a run").await;
    eventually(PATIENCE, "attached", || gateway.open_streams() == 1).await;
    let huge = format!(
        r#"{{"jsonrpc":"2.0","id":"$id","result":{{"id":"{}","pad":"{}"}}}}"#,
        task.id(),
        "x".repeat(20 << 20)
    );
    proxy.set_times(When::Gets, Fault::answer(200, "application/json", &huge), 1);
    taskbell.cli(&["reconcile", task.as_str()]).await;
    assert_ne!(taskbell.show(&task).await.state(), "failed");
    gateway.finish(task.id(), "the result");
    taskbell.wait(&task).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn not_found_from_subscribing_alone_loses_nothing() {
    let (gateway, proxy, taskbell) = scene().await;
    let error =
        json!({"jsonrpc": "2.0", "id": "$id", "error": {"code": -32001, "message": "Task not found"}});
    proxy.set(When::Subscribes, Fault::answer(200, "application/json", &error.to_string()));
    let task = taskbell.send("b", "a run").await;
    gateway.work(task.id(), "well and alive");
    taskbell.shows(&task, PATIENCE, "it works", |shown| shown.state() == "working").await;
    gateway.finish(task.id(), "the result");
    taskbell.wait(&task).await.exits(0);
    assert_eq!(taskbell.show(&task).await.text(), "the result");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_json_answer_in_the_middle_of_an_html_outage_is_not_made_up() {
    let (gateway, proxy, taskbell) = scene().await;
    let task = taskbell.send("b", "a run").await;
    eventually(PATIENCE, "attached", || gateway.open_streams() == 1).await;
    // 200 with a sign-in page, as a captive portal gives.
    proxy.set(When::Always, Fault::answer(200, "text/html", "<title>Sign in</title>"));
    gateway.cut_streams();
    let before = proxy.seen().len();
    eventually(PATIENCE, "the page was met", || proxy.seen().len() >= before + 2).await;
    let shown = taskbell.show(&task).await;
    assert_eq!(shown.state(), "submitted", "a sign-in page says nothing: {}", shown.0);
    proxy.heal();
    gateway.finish(task.id(), "the result");
    taskbell.wait(&task).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_forbids_reading_says_nothing_about_the_task() {
    let (gateway, proxy, taskbell) = scene().await;
    let task = taskbell.send("b", "a run").await;
    eventually(PATIENCE, "attached", || gateway.open_streams() == 1).await;
    proxy.set(When::Calls, Fault::answer(403, "application/json", "{}"));
    gateway.cut_streams();
    let before = proxy.seen().len();
    eventually(PATIENCE, "it was refused", || proxy.seen().len() > before).await;
    let shown = taskbell.show(&task).await;
    assert_ne!(shown.state(), "failed", "{}", shown.0);
    proxy.heal();
    gateway.finish(task.id(), "the result");
    taskbell.wait(&task).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_names_another_origin_moves_nothing_without_consent() {
    let elsewhere = GatewayB::start(TOKEN).await;
    let card = json!({
        "name": "mover", "description": "names somebody else", "version": "1",
        "supportedInterfaces": [{"url": elsewhere.url(), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [],
    });
    let server = Monotone::start(200, "application/json", card.to_string()).await;
    let taskbell = Taskbell::start().await;
    let arguments = ["agent", "add", &server.url(), "--name", "mover", "--token-env", "TEST_AGENT_TOKEN"];
    taskbell.cli_env(&arguments, &[("TEST_AGENT_TOKEN", TOKEN)]).await;
    let _ = taskbell.cli(&["send", "mover", "a run"]).await;
    assert!(elsewhere.calls().is_empty(), "no call, and no credential, to an origin that a card names");
}
