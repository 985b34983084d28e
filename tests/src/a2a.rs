//! A direct A2A client: what the agent itself says, without Taskbell between.
//!
//! It is deliberately small and shares no code with the product.

use std::time::Duration;

use serde_json::{Value, json};

/// Which vocabulary a call uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Method names with slashes, lowercase states.
    V03,
    /// `SendMessage` and the like, `TASK_STATE_*`.
    V1,
}

/// Talks JSON-RPC to one agent.
#[derive(Clone)]
pub struct Direct {
    url: String,
    dialect: Dialect,
    token: Option<String>,
    http: reqwest::Client,
}

/// A task as the agent tells it, states folded to the lowercase words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub state: String,
    /// Text parts of all artifacts, joined without a separator.
    pub text: String,
}

impl Direct {
    pub fn new(url: &str, dialect: Dialect) -> Self {
        Self { url: url.to_owned(), dialect, token: None, http: http() }
    }

    pub fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// The answer of one call, `result` or `error` inside.
    ///
    /// # Panics
    /// When the agent does not answer with JSON.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        let mut request = self
            .http
            .post(&self.url)
            .json(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        if self.dialect == Dialect::V1 {
            request = request.header("A2A-Version", "1.0");
        }
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let answer = request.send().await.unwrap_or_else(|error| panic!("{method} to {}: {error}", self.url));
        answer.json().await.unwrap_or_else(|error| panic!("{method} to {}: {error}", self.url))
    }

    /// Starts a task without waiting for it and returns its id.
    ///
    /// # Panics
    /// When the agent answers anything but a task.
    pub async fn send(&self, text: &str) -> String {
        let id = uuid::Uuid::new_v4().to_string();
        let answer = match self.dialect {
            Dialect::V03 => {
                let message = json!({"kind": "message", "role": "user", "messageId": id,
                    "parts": [{"kind": "text", "text": text}]});
                self.call("message/send", json!({"message": message, "configuration": {"blocking": false}}))
                    .await
            }
            Dialect::V1 => {
                let message = json!({"role": "ROLE_USER", "messageId": id, "parts": [{"text": text}]});
                let configuration = json!({"returnImmediately": true});
                self.call("SendMessage", json!({"message": message, "configuration": configuration})).await
            }
        };
        let result = &answer["result"];
        let task = if self.dialect == Dialect::V1 { &result["task"] } else { result };
        task["id"].as_str().unwrap_or_else(|| panic!("no task: {answer}")).to_owned()
    }

    /// GetTask.
    ///
    /// # Panics
    /// When the agent answers an error.
    pub async fn get(&self, task: &str) -> Told {
        let method = match self.dialect {
            Dialect::V03 => "tasks/get",
            Dialect::V1 => "GetTask",
        };
        let answer = self.call(method, json!({"id": task, "historyLength": 10})).await;
        let told = &answer["result"];
        let state = told["status"]["state"].as_str().unwrap_or_else(|| panic!("no task: {answer}"));
        Told { state: lowercase_state(state), text: artifact_text(&told["artifacts"]) }
    }
}

/// `TASK_STATE_INPUT_REQUIRED` and `input-required` are one word.
pub fn lowercase_state(state: &str) -> String {
    state.trim_start_matches("TASK_STATE_").to_lowercase().replace('_', "-")
}

/// All text of a list of artifacts in either dialect.
pub fn artifact_text(artifacts: &Value) -> String {
    let artifacts = artifacts.as_array().map(Vec::as_slice).unwrap_or_default();
    let parts = artifacts.iter().filter_map(|artifact| artifact["parts"].as_array()).flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

/// An HTTP client that follows nothing and uses no proxy.
///
/// # Panics
/// Never in practice: building it cannot fail with the provider installed here.
pub fn http() -> reqwest::Client {
    // The second call in one process finds it installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_secs(20))
        .build()
        .expect("a client without special settings can be built")
}
