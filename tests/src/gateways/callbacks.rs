//! Registered callbacks: the rules for their addresses, and delivery.

use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use crate::a2a::http;

/// Where a public name leads in a test: nothing leaves this machine.
///
/// The gateway accepts only public HTTPS addresses, as documented; a delivery
/// to the public origin is made to the loopback origin, with the public `Host`.
#[derive(Debug, Clone, Default)]
pub struct Tunnel {
    /// For example `https://hooks.example.com`.
    pub public: String,
    /// For example `http://127.0.0.1:7421`.
    pub local: String,
}

/// One registration.
#[derive(Debug, Clone)]
pub struct Callback {
    pub id: String,
    pub url: String,
    pub token: Option<String>,
    /// Scheme as it is sent, and credentials.
    pub authentication: Option<(&'static str, String)>,
}

impl Callback {
    /// Reads a flat registration, refusing what the documents refuse.
    pub fn register(params: &Value) -> Result<Self, String> {
        let url = params["url"].as_str().ok_or("url is missing")?;
        check_target(url)?;
        let authentication = match &params["authentication"] {
            Value::Null => None,
            given => {
                let scheme = given["scheme"].as_str().ok_or("authentication.scheme is missing")?;
                let scheme = match scheme.to_lowercase().as_str() {
                    "bearer" => "Bearer",
                    "basic" => "Basic",
                    other => return Err(format!("authentication scheme {other} is not supported")),
                };
                Some((scheme, given["credentials"].as_str().unwrap_or_default().to_owned()))
            }
        };
        let id = params["id"].as_str().map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned);
        let token = params["token"].as_str().map(str::to_owned);
        Ok(Self { id, url: url.to_owned(), token, authentication })
    }
}

/// HTTPS, no userinfo, no loopback or private host.
fn check_target(url: &str) -> Result<(), String> {
    let parsed = reqwest::Url::parse(url).map_err(|error| error.to_string())?;
    if parsed.scheme() != "https" {
        return Err("callback url must be https".to_owned());
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("callback url must not carry credentials".to_owned());
    }
    let host = parsed.host_str().unwrap_or_default();
    let literal = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
    if literal || host == "localhost" || host.ends_with(".local") || !host.contains('.') {
        return Err("callback host must be public".to_owned());
    }
    Ok(())
}

/// Posts `body`, at most `tries` times a second apart, until a 2xx.
/// Returns the last status; none when nobody answered.
pub async fn deliver(callback: Callback, tunnel: Tunnel, body: String, tries: usize) -> Option<u16> {
    let client = http();
    let path = callback.url.strip_prefix(tunnel.public.trim_end_matches('/'))?;
    let host = tunnel.public.trim_start_matches("https://").trim_end_matches('/');
    let mut last = None;
    for attempt in 0..tries {
        if attempt > 0 {
            sleep(Duration::from_secs(1)).await;
        }
        let mut request = client
            .post(format!("{}{path}", tunnel.local.trim_end_matches('/')))
            .header("Host", host)
            .header("Content-Type", "application/json")
            .body(body.clone());
        if let Some(token) = &callback.token {
            request = request.header("A2A-Notification-Token", token);
        }
        if let Some((scheme, credentials)) = &callback.authentication {
            request = request.header("Authorization", format!("{scheme} {credentials}"));
        }
        match request.send().await {
            Ok(answer) if answer.status().is_success() => return Some(answer.status().as_u16()),
            Ok(answer) => last = Some(answer.status().as_u16()),
            // A receiver's outage says nothing about the task.
            Err(_) => last = None,
        }
    }
    last
}
