//! Against agents that misbehave, down to the octet, on real loopback sockets.

mod calls;
mod discovery;
mod push;
mod raw;
mod streams;
mod tls;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use taskbell_core::agent::PlainHttp;
use taskbell_core::credential::{BoundCredential, Credential, Origin, Secret};
use taskbell_core::dialect::call::{SendMode, SendRequest};
use taskbell_core::dialect::{Binding, Dialect};
use taskbell_core::ids::{AgentName, MessageId, TaskId};
use taskbell_core::task::{Message, Part, Role};
use url::Url;

use super::{
    AgentClient, AgentEndpoint, CredentialSource, FixedCredential, Http, HttpSettings, Limits, Quirks,
};

fn endpoint(url: &str) -> AgentEndpoint {
    let url = Url::parse(url).unwrap();
    AgentEndpoint {
        agent: AgentName::new("builder").unwrap(),
        registered_url: url.clone(),
        interface_url: url,
        binding: Binding::JsonRpc,
        dialect: Dialect::V1,
        tenant: None,
        plain_http: PlainHttp::LoopbackOnly,
        quirks: Quirks::default(),
    }
}

fn short_limits() -> Limits {
    Limits {
        connect: Duration::from_millis(500),
        unary: Duration::from_secs(1),
        look: Duration::from_secs(1),
        stream_open: Duration::from_secs(1),
        token_command: Duration::from_secs(5),
        ..Limits::default()
    }
}

fn client_with(url: &str, limits: Limits, source: Arc<dyn CredentialSource>) -> AgentClient {
    let http = Http::new(HttpSettings { limits, proxy: None }).unwrap();
    AgentClient::new(http, endpoint(url), source)
}

fn client(url: &str) -> AgentClient {
    client_with(url, Limits::default(), Arc::new(FixedCredential(None)))
}

fn hasty_client(url: &str) -> AgentClient {
    client_with(url, short_limits(), Arc::new(FixedCredential(None)))
}

fn bound(origin: &str, credential: Credential) -> Arc<dyn CredentialSource> {
    let origin: Origin = Origin::of(&Url::parse(origin).unwrap()).unwrap();
    Arc::new(FixedCredential(Some(BoundCredential::new(origin, credential).unwrap())))
}

fn bearer(origin: &str, token: &str) -> Arc<dyn CredentialSource> {
    bound(origin, Credential::Bearer(Secret::new(token)))
}

fn task_id() -> TaskId {
    TaskId::new("t-1")
}

fn working() -> Value {
    json!({"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_WORKING"}})
}

fn hello() -> SendRequest {
    SendRequest {
        message: Message::new(MessageId::new("m-1"), Role::User, vec![Part::text("hi")]),
        mode: SendMode::NonBlocking,
        history_length: None,
        accepted_output_modes: Vec::new(),
        metadata: Map::new(),
    }
}

/// Waits for a state, not for a moment.
async fn wait_until(limit: Duration, mut reached: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + limit;
    while !reached() {
        assert!(tokio::time::Instant::now() < deadline, "not reached within {limit:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
