//! A2A 1.0 over JSON-RPC as a bare client writes it: no more than the measured calls need.

use serde_json::{Value, json};

use crate::Failure;

/// As many messages as the engine asks for, so that both read the same answers.
const HISTORY: u32 = 100;

/// A client with nothing but its defaults, and TLS set up but unused.
pub fn client() -> Result<reqwest::Client, Failure> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    Ok(reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build()?)
}

pub fn call(client: &reqwest::Client, url: &str, method: &str, params: Value) -> reqwest::RequestBuilder {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    client.post(url).header("A2A-Version", "1.0").json(&body)
}

/// Starts a task and answers with its id.
pub async fn send(client: &reqwest::Client, url: &str, number: usize, text: &str) -> Result<String, Failure> {
    let params = json!({
        "message": { "messageId": format!("m-{number}"), "role": "ROLE_USER", "parts": [{ "text": text }] },
        "configuration": { "returnImmediately": true },
    });
    let answer: Value = call(client, url, "SendMessage", params).send().await?.json().await?;
    let id = answer["result"]["task"]["id"].as_str();
    Ok(id.ok_or_else(|| format!("no task in {answer}"))?.to_owned())
}

pub async fn get(client: &reqwest::Client, url: &str, task: &str) -> Result<Value, Failure> {
    let params = json!({ "id": task, "historyLength": HISTORY });
    let answer = call(client, url, "GetTask", params).send().await?.bytes().await?;
    let answer: Value = serde_json::from_slice(&answer)?;
    if answer["result"]["id"] == task { Ok(answer) } else { Err(format!("no task in {answer}").into()) }
}
