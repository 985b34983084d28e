//! An engine, an agent behind a proxy, and what was registered there.

use std::time::Duration;

use serde_json::Value;
use taskbell_tests::taskbell::TaskName;
use taskbell_tests::{Fault, FaultProxy, Peer, PeerKind, Taskbell, When, wait_until};

pub const PATIENCE: Duration = Duration::from_secs(40);

pub struct Stage {
    pub taskbell: Taskbell,
    pub proxy: FaultProxy,
    _peer: Peer,
}

impl Stage {
    pub async fn set(kind: PeerKind) -> Self {
        let peer = Peer::start(kind).await;
        let proxy = FaultProxy::before(peer.port()).await;
        let taskbell = Taskbell::setup().silence(2).start().await;
        taskbell.add_agent("peer", &proxy.url()).await;
        Self { taskbell, proxy, _peer: peer }
    }

    /// No stream can be had from the agent, in the words of an agent that has none.
    pub fn forbid_streams(&self) {
        let body = r#"{"jsonrpc":"2.0","id":"$id","error":{"code":-32601,"message":"Method not found"}}"#;
        self.proxy.set(When::Subscribes, Fault::answer(200, "application/json", body));
    }
}

/// The one registration of a task once it is in this state.
pub async fn registration(taskbell: &Taskbell, task: &TaskName, state: &str) -> Value {
    wait_until(PATIENCE, &format!("the registration of {} is {state}", task.as_str()), async || {
        list(taskbell, task).await.into_iter().find(|item| item["state"] == state)
    })
    .await
}

pub async fn list(taskbell: &Taskbell, task: &TaskName) -> Vec<Value> {
    taskbell.cli(&["push", "list", task.as_str()]).await.items()
}

/// The callbacks that were received for a task, once there are enough.
pub async fn callbacks(taskbell: &Taskbell, task: &TaskName) -> Vec<Value> {
    let shown = taskbell.show(task).await;
    shown.0["callbacks"].as_array().cloned().unwrap_or_default()
}

/// The secrets that the agent was given, as the proxy saw them leave: token and credential.
pub fn secrets(proxy: &FaultProxy) -> Vec<String> {
    let mut found: Vec<String> = proxy
        .seen()
        .iter()
        .filter(|seen| seen.method.as_deref().is_some_and(is_create))
        .filter_map(|seen| seen.body.as_ref())
        .flat_map(|body| {
            let params = &body["params"];
            [params["token"].as_str(), params["authentication"]["credentials"].as_str()]
                .into_iter()
                .flatten()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

pub fn is_create(method: &str) -> bool {
    matches!(method, "tasks/pushNotificationConfig/set" | "CreateTaskPushNotificationConfig")
}

pub fn is_delete(method: &str) -> bool {
    matches!(method, "tasks/pushNotificationConfig/delete" | "DeleteTaskPushNotificationConfig")
}

/// How many calls of these methods the agent got.
pub fn count(proxy: &FaultProxy, is: fn(&str) -> bool) -> usize {
    proxy.seen().iter().filter(|seen| seen.method.as_deref().is_some_and(is)).count()
}

/// Asks the API as the command line does.
pub async fn api(taskbell: &Taskbell, path: &str) -> Value {
    let answer = taskbell_tests::a2a::http()
        .get(format!("{}/api/v1/{path}", taskbell.ready().gateway))
        .bearer_auth(token(taskbell))
        .send()
        .await;
    answer.expect("the engine answers").json().await.expect("it answers JSON")
}

/// The API's token of this run.
pub fn token(taskbell: &Taskbell) -> String {
    let runtime = std::fs::read(taskbell.data_dir().join("runtime.json")).expect("it is running");
    let runtime: Value = serde_json::from_slice(&runtime).expect("it is JSON");
    runtime["token"].as_str().expect("it has a token").to_owned()
}
