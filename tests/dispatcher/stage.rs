//! An engine, an agent behind it, a client of its gateway.

use std::time::Duration;

use serde_json::{Value, json};
use taskbell_tests::taskbell::{Setup, binary};
use taskbell_tests::{Taskbell, ports::free_port, process::Process, wait_until};
use tempfile::TempDir;

/// For what is waited for: a loaded machine may take long.
pub const PATIENCE: Duration = Duration::from_secs(90);

pub struct Stage {
    pub taskbell: Taskbell,
    pub key: String,
    /// Outlives the engine's kills.
    _agent: Process,
    _state: TempDir,
    http: reqwest::Client,
}

impl Stage {
    pub async fn start(setup: Setup) -> Self {
        let state = TempDir::with_prefix("taskbell-test-").expect("a folder");
        let port = free_port();
        let agent = Process::start("demo agent", binary(), |command| {
            command.args(["demo-agent", "--addr", &format!("127.0.0.1:{port}"), "--state"]);
            command.arg(state.path().join("tasks"));
        });
        let http = taskbell_tests::a2a::http();
        let url = format!("http://127.0.0.1:{port}/");
        let card = format!("{url}.well-known/agent-card.json");
        wait_until(PATIENCE, "the agent answers", async || http.get(&card).send().await.ok()).await;
        let taskbell = setup.start().await;
        taskbell.add_agent("demo", &url).await;
        let client = taskbell.cli(&["client", "add", "editor"]).await.json();
        let key = client["key"].as_str().expect("a key").to_owned();
        Self { taskbell, key, _agent: agent, _state: state, http }
    }

    /// The result of a call to the gateway.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params).await;
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// The whole answer of the gateway.
    pub async fn ask(&self, method: &str, params: Value) -> Value {
        let url = format!("{}/agents/demo/", self.taskbell.ready().gateway);
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = self.http.post(&url).bearer_auth(&self.key).json(&body).send().await.expect("an answer");
        answer.json().await.expect("JSON")
    }

    pub async fn allow(&self, port: u16) {
        self.taskbell.cli(&["target", "allow", "editor", &port.to_string()]).await.exits(0);
    }

    /// Starts a task, and has these addresses called back about it.
    pub async fn task(&self, text: &str, urls: &[String]) -> String {
        let message = json!({ "role": "ROLE_USER", "messageId": "m", "parts": [{ "text": text }] });
        let params = json!({ "message": message, "configuration": { "returnImmediately": true } });
        let sent = self.call("SendMessage", params).await;
        let id = sent["task"]["id"].as_str().expect("an id").to_owned();
        for (index, url) in urls.iter().enumerate() {
            let config = json!({ "taskId": id, "id": format!("p-{index}"), "url": url, "token": "tok-1",
                "authentication": { "scheme": "bearer", "credentials": "cred-1" } });
            self.call("CreateTaskPushNotificationConfig", config).await;
        }
        id
    }

    pub async fn cancel(&self, task: &str) {
        self.call("CancelTask", json!({ "id": task })).await;
    }

    /// Reserved deliveries of a task, the oldest first.
    pub async fn deliveries(&self, task: &str) -> Vec<Value> {
        let task = format!("demo/{task}");
        let arguments = ["delivery", "list", "--task", &task, "--lane", "reserved", "--limit", "1000"];
        let listed = self.taskbell.cli(&arguments).await.json();
        let mut items = listed["items"].as_array().expect("items").clone();
        items.reverse();
        items
    }

    /// The one delivery to that address of the task, once `look` finds something in it.
    pub async fn delivery<T>(
        &self,
        task: &str,
        config: &str,
        what: &str,
        mut look: impl FnMut(&Value) -> Option<T>,
    ) -> T {
        wait_until(PATIENCE, what, async || {
            let all = self.deliveries(task).await;
            all.iter().find(|item| item["configId"] == config).and_then(&mut look)
        })
        .await
    }
}

/// That it is in this state.
pub fn is(state: &'static str) -> impl FnMut(&Value) -> Option<Value> {
    move |delivery| (delivery["state"] == state).then(|| delivery.clone())
}

/// That its last attempt ended so.
pub fn failed_by(code: &'static str) -> impl FnMut(&Value) -> Option<Value> {
    move |delivery| (delivery["lastError"] == code).then(|| delivery.clone())
}
