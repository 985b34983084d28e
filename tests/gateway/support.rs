//! An engine with its demo agent and one client's key.

use std::time::Duration;

use serde_json::{Value, json};
use taskbell_tests::Taskbell;
use taskbell_tests::raw_http::{RawAnswer, exchange, post};

pub const PATH: &str = "/agents/demo/";
/// For what is waited for: a loaded machine may take long.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Scene {
    pub taskbell: Taskbell,
    pub key: String,
}

impl Scene {
    pub async fn start() -> Self {
        let taskbell = Taskbell::setup().arg("--demo").start().await;
        let key = new_key(&taskbell, "tester").await;
        Self { taskbell, key }
    }

    /// `HOST:PORT` of the gateway.
    pub fn address(&self) -> &str {
        self.taskbell.ready().gateway.trim_start_matches("http://")
    }

    pub fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.key)
    }

    /// Posts these octets with the client's key.
    pub async fn post(&self, body: &[u8]) -> RawAnswer {
        self.post_with(&[], body).await
    }

    /// The same with further header lines.
    pub async fn post_with(&self, headers: &[&str], body: &[u8]) -> RawAnswer {
        let bearer = self.bearer();
        let mut all = vec![bearer.as_str()];
        all.extend(headers);
        exchange(self.address(), &post(self.address(), PATH, &all, body)).await
    }

    /// One JSON-RPC call with the client's key.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        self.call_as(&self.key, method, params).await
    }

    /// The same with another key.
    pub async fn call_as(&self, key: &str, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let bearer = format!("Authorization: Bearer {key}");
        let answer = exchange(self.address(), &post(self.address(), PATH, &[&bearer], body.as_bytes())).await;
        assert_eq!(answer.status, 200, "{method}: {answer:?}");
        answer.json()
    }

    /// Asserts that the gateway answers an honest call, and that nothing panicked.
    pub async fn is_well(&self) {
        let answer = self.call("tasks/get", json!({"id": "nobody"})).await;
        assert_eq!(answer["error"]["code"], -32001, "{answer}");
        let log = self.taskbell.log();
        assert!(!log.contains("panicked"), "{log}");
    }

    /// Asserts that no task was ever begun.
    pub async fn nothing_ran(&self) {
        let tasks = self.taskbell.cli(&["tasks"]).await.items();
        assert!(tasks.is_empty(), "{tasks:?}");
    }
}

pub async fn new_key(taskbell: &Taskbell, name: &str) -> String {
    let added = taskbell.cli(&["client", "add", name]).await.ok();
    added["key"].as_str().unwrap_or_else(|| panic!("no key: {added}")).to_owned()
}

/// A message of 0.3 that would start a task.
pub fn message() -> Value {
    let id = uuid::Uuid::new_v4().to_string();
    let parts = json!([{"kind": "text", "text": "steps=1 interval=900"}]);
    json!({"kind": "message", "role": "user", "messageId": id, "parts": parts})
}
