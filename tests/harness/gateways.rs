//! The documented request and response bodies, sent to the fixtures.

use std::time::Duration;

use serde_json::{Value, json};
use taskbell_tests::{
    GatewayA, GatewayB,
    a2a::{Dialect, Direct, http},
    eventually,
};

const TOKEN: &str = "token-of-alice";

fn to_a(gateway: &GatewayA) -> Direct {
    Direct::new(&format!("{}a2a/coder", gateway.url()), Dialect::V03).with_token(TOKEN)
}

fn to_b(gateway: &GatewayB) -> Direct {
    Direct::new(&gateway.url(), Dialect::V1).with_token(TOKEN)
}

/// The events of a subscription up to its end.
async fn events(url: &str, method: &str, task: &str) -> Vec<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 12, "method": method, "params": {"id": task}});
    let answer = http().post(url).bearer_auth(TOKEN).json(&body).send().await.expect("an answer");
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let text = answer.text().await.expect("an end");
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str::<Value>(data).expect("JSON")["result"].clone())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_a_keeps_the_vocabulary_of_the_method_in_every_frame() {
    let gateway = GatewayA::start(TOKEN).await;
    let direct = to_a(&gateway);
    let task = direct.send("a turn").await;
    let url = format!("{}a2a/coder", gateway.url());
    let (old, new) = (
        {
            let (url, task) = (url.clone(), task.clone());
            tokio::spawn(async move { events(&url, "tasks/resubscribe", &task).await })
        },
        {
            let (url, task) = (url.clone(), task.clone());
            tokio::spawn(async move { events(&url, "SubscribeToTask", &task).await })
        },
    );
    eventually(Duration::from_secs(5), "both subscribed", || gateway.open_streams() == 2).await;
    gateway.work(&task, "thinking");
    eventually(Duration::from_secs(5), "still subscribed", || gateway.open_streams() == 2).await;
    gateway.finish(&task, "the reply");
    let (old, new) = (old.await.expect("old"), new.await.expect("new"));
    let old = serde_json::to_string(&old).expect("JSON");
    let new = serde_json::to_string(&new).expect("JSON");
    assert!(
        old.contains("\"completed\"") && old.contains("\"final\":true") && !old.contains("TASK_STATE"),
        "{old}"
    );
    assert!(
        new.contains("TASK_STATE_COMPLETED") && !new.contains("\"completed\"") && !new.contains("\"final\""),
        "{new}"
    );
    assert!(old.contains("the reply") && new.contains("the reply"), "both see the text artifact");
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_a_reports_a_terminal_task_and_closes_but_refuses_the_later_method() {
    let gateway = GatewayA::start(TOKEN).await;
    let direct = to_a(&gateway);
    let task = direct.send("a turn").await;
    gateway.finish(&task, "the reply");
    let told = events(&format!("{}a2a/coder", gateway.url()), "tasks/resubscribe", &task).await;
    assert_eq!(told.len(), 1, "no replay: {told:?}");
    assert_eq!(told[0]["status"]["state"], "completed");
    let refused = direct.call("SubscribeToTask", json!({"id": task})).await;
    assert_eq!(refused["error"]["code"], -32004);
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_a_binds_a_task_to_its_owner_and_a_token_to_its_audience() {
    let gateway = GatewayA::start(TOKEN).await;
    gateway.accept("token-of-bob", "bob");
    let task = to_a(&gateway).send("a turn").await;
    let bob = Direct::new(&format!("{}a2a/coder", gateway.url()), Dialect::V03).with_token("token-of-bob");
    let answer = bob.call("tasks/get", json!({"id": task})).await;
    assert_eq!(answer["error"]["code"], -32001, "somebody else's task looks like none");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": task}});
    let url = format!("{}a2a/coder", gateway.url());
    let refused =
        http().post(url).bearer_auth("for-another-audience").json(&body).send().await.expect("an answer");
    assert_eq!(refused.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_a_registers_the_documented_flat_body_and_echoes_no_secret() {
    let gateway = GatewayA::start(TOKEN).await;
    let direct = to_a(&gateway);
    let task = direct.send("a turn").await;
    let params = json!({"taskId": task, "url": "https://integration.example.com/agent-updates",
        "authentication": {"scheme": "Bearer", "credentials": "callback-secret"}});
    let answer = direct.call("tasks/pushNotificationConfig/set", params).await;
    assert!(answer["result"]["id"].is_string(), "{answer}");
    assert!(!answer.to_string().contains("callback-secret"), "{answer}");
    let private = json!({"taskId": task, "url": "https://10.0.0.1/x"});
    let refused = direct.call("tasks/pushNotificationConfig/set", private).await;
    assert_eq!(refused["error"]["code"], -32602);
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_b_refuses_fields_the_protocol_does_not_have_and_other_schemes() {
    let gateway = GatewayB::start(TOKEN).await;
    let direct = to_b(&gateway);
    let task = direct.send("a run").await;
    let answer = direct.call("GetTask", json!({"id": task, "kind": "task"})).await;
    assert_eq!(answer["error"]["code"], -32602);
    let digest = json!({"taskId": task, "url": "https://hooks.example.com/x",
        "authentication": {"scheme": "digest", "credentials": "c"}});
    let answer = direct.call("CreateTaskPushNotificationConfig", digest).await;
    assert_eq!(answer["error"]["code"], -32602, "refused rather than guessed at");
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_b_refuses_to_subscribe_to_a_finished_task_in_the_chosen_words() {
    let gateway = GatewayB::start(TOKEN).await;
    let direct = to_b(&gateway);
    let task = direct.send("a run").await;
    gateway.finish(&task, "the answer");
    assert_eq!(direct.get(&task).await.text, "the answer");
    assert_eq!(direct.call("SubscribeToTask", json!({"id": task})).await["error"]["code"], -32004);
    gateway.forget_finished_runs();
    assert_eq!(direct.call("SubscribeToTask", json!({"id": task})).await["error"]["code"], -32001);
}
