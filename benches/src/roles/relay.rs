//! The least a relay can do: one request to the agent for each of a client's, and octets passed on as they come.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode};
use serde_json::{Value, json};

use super::{answer_all, say};
use crate::{Failure, wire};

struct Relay {
    client: reqwest::Client,
    agent: String,
}

pub async fn run(agent: String) -> Result<(), Failure> {
    let relay = Arc::new(Relay { client: wire::client()?, agent });
    let router = Router::new().fallback(pass_on).with_state(relay);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    say(&json!({ "url": format!("http://{}/", listener.local_addr()?) }));
    tokio::select! {
        served = async { axum::serve(listener, router).await } => Ok(served?),
        ended = answer_all(async |_: Value| Ok(json!({}))) => ended,
    }
}

async fn pass_on(
    State(relay): State<Arc<Relay>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response<Body>, StatusCode> {
    let mut request = relay.client.post(&relay.agent).body(body);
    for name in ["content-type", "accept", "a2a-version"] {
        if let Some(value) = headers.get(name) {
            request = request.header(name, value);
        }
    }
    let answer = request.send().await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    let mut response = Response::builder().status(answer.status());
    if let Some(kind) = answer.headers().get("content-type") {
        response = response.header("content-type", kind);
    }
    let chunks = futures::stream::try_unfold(answer, async |mut answer| {
        Ok::<_, reqwest::Error>(answer.chunk().await?.map(|chunk| (chunk, answer)))
    });
    response.body(Body::from_stream(chunks)).map_err(|_| StatusCode::BAD_GATEWAY)
}
