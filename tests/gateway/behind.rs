//! A client of the gateway, and a proxy between the gateway and its agent.

use serde_json::{Value, json};
use taskbell_tests::raw_http::{RawAnswer, exchange, post};
use taskbell_tests::{FaultProxy, GatewayA, Taskbell};

use crate::support::{message, new_key};

pub const TOKEN: &str = "token-of-the-agent-itself";
const PATH: &str = "/agents/a/";

/// An agent that wants a token, a proxy before it, and a client of the gateway.
pub struct Behind {
    pub agent: GatewayA,
    pub proxy: FaultProxy,
    pub taskbell: Taskbell,
    pub key: String,
}

impl Behind {
    pub async fn start() -> Self {
        let agent = GatewayA::start(TOKEN).await;
        let proxy = FaultProxy::before(agent.port()).await;
        let taskbell = Taskbell::start().await;
        taskbell.add_agent_with_token("a", &proxy.url(), TOKEN).await;
        let key = new_key(&taskbell, "tester").await;
        Self { agent, proxy, taskbell, key }
    }

    /// `HOST:PORT` of the gateway.
    pub fn address(&self) -> &str {
        self.taskbell.ready().gateway.trim_start_matches("http://")
    }

    /// A call with the client's key, as it goes over the wire.
    pub fn octets(&self, headers: &[&str], method: &str, params: &Value) -> Vec<u8> {
        let bearer = format!("Authorization: Bearer {}", self.key);
        let mut all = vec![bearer.as_str()];
        all.extend(headers);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        post(self.address(), PATH, &all, body.as_bytes())
    }

    pub async fn ask(&self, headers: &[&str], method: &str, params: &Value) -> RawAnswer {
        let answer = exchange(self.address(), &self.octets(headers, method, params)).await;
        for text in [&answer.head, &answer.body] {
            assert!(!text.contains(TOKEN), "the agent's token reaches a client: {answer:?}");
        }
        answer
    }

    /// A send that waits for nothing.
    pub async fn send(&self) -> Value {
        let params = json!({"message": message(), "configuration": {"blocking": false}});
        let answer = self.ask(&[], "message/send", &params).await;
        assert_eq!(answer.status, 200, "our key is right, whatever the agent says of ours: {answer:?}");
        answer.json()
    }

    /// The same with a stream, whose first frame or refusal is returned.
    pub async fn stream(&self) -> Value {
        let answer = self.ask(&[], "message/stream", &json!({"message": message()})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let first = answer.body.lines().find_map(|line| line.strip_prefix("data: "));
        serde_json::from_str(first.unwrap_or(&answer.body)).unwrap_or_else(|_| panic!("no JSON: {answer:?}"))
    }
}

/// The code of an error.
///
/// # Panics
/// When it is none.
pub fn code(document: &Value) -> i64 {
    document["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {document}"))
}
