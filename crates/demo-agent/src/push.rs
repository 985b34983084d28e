//! Callbacks as an ordinary agent sends them: one POST for each event, in order, tried once.
//!
//! No target is judged here: this agent runs on loopback for its own user. It follows no redirect and
//! uses no proxy. A receiver that hangs holds up nothing but its own queue; when that is full, events
//! that are neither terminal nor a question are left out.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use taskbell_core::dialect::Dialect;
use taskbell_core::dialect::errors::{ErrorAnswer, ErrorKind};
use taskbell_core::push_config::PushConfig;
use tokio::sync::mpsc;
use url::Url;

const TIMEOUT: Duration = Duration::from_secs(5);
/// Ordinary events beyond this many waiting ones are dropped.
const QUEUE: usize = 256;
const TOKEN_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-a2a-notification-token"), HeaderName::from_static("a2a-notification-token")];

/// A config that was accepted: its target and headers are known to be usable.
pub struct Registration {
    pub config: PushConfig,
    pub dialect: Dialect,
    queue: mpsc::UnboundedSender<String>,
    waiting: Arc<AtomicUsize>,
}

/// Whether an event may be left out when a receiver is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    Ordinary,
    /// Terminal, or a question.
    Reserved,
}

impl Registration {
    /// Accepts a config and starts its queue. Dropping the registration ends it after what is queued.
    pub fn accept(config: PushConfig, dialect: Dialect, sender: &PushSender) -> Result<Self, ErrorAnswer> {
        let (url, headers) = target(&config, dialect)?;
        let (queue, mut bodies) = mpsc::unbounded_channel::<String>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (client, counted) = (sender.client()?, Arc::clone(&waiting));
        let worker = tokio::spawn(async move {
            while let Some(body) = bodies.recv().await {
                counted.fetch_sub(1, Ordering::Relaxed);
                let answer = client.post(url.clone()).headers(headers.clone()).body(body).send().await;
                match answer {
                    Ok(answer) => tracing::debug!(status = answer.status().as_u16(), "callback answered"),
                    // The error's text would hold the URL, which may be a secret.
                    Err(error) => tracing::debug!(timeout = error.is_timeout(), "callback failed"),
                }
            }
        });
        sender.keep(worker);
        Ok(Self { config, dialect, queue, waiting })
    }

    pub fn push(&self, body: String, weight: Weight) {
        if weight == Weight::Ordinary && self.waiting.load(Ordering::Relaxed) >= QUEUE {
            tracing::debug!("callback left out: its receiver is slow");
            return;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if self.queue.send(body).is_err() {
            tracing::debug!("callback left out: the agent is stopping");
        }
    }
}

fn target(config: &PushConfig, dialect: Dialect) -> Result<(Url, HeaderMap), ErrorAnswer> {
    let refuse = |text: &str| ErrorAnswer::new(ErrorKind::InvalidParams, text);
    let url = Url::parse(&config.url).map_err(|_| refuse("push config: url is no URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refuse("push config: url must be http or https"));
    }
    let mut headers = HeaderMap::new();
    // 0.3 knows no media type of its own.
    let media_type = match dialect {
        Dialect::V03 => "application/json",
        Dialect::V1 => "application/a2a+json",
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    if let Some(token) = &config.notification_token {
        let value =
            secret_value(token.expose()).ok_or_else(|| refuse("push config: token fits no header"))?;
        for name in TOKEN_HEADERS {
            headers.insert(name, value.clone());
        }
    }
    if let Some(authentication) = &config.authentication {
        let scheme = ["Bearer", "Basic"]
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(&authentication.scheme))
            .ok_or_else(|| refuse("push config: authentication scheme must be Bearer or Basic"))?;
        if let Some(credentials) = &authentication.credentials {
            let value = secret_value(&format!("{scheme} {}", credentials.expose()))
                .ok_or_else(|| refuse("push config: credentials fit no header"))?;
            headers.insert(AUTHORIZATION, value);
        }
    }
    Ok((url, headers))
}

fn secret_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The client behind all registrations, made when the first one comes: reading the system's
/// certificates takes a while, and most runs never push.
#[derive(Default)]
pub struct PushSender {
    client: OnceLock<Option<reqwest::Client>>,
    workers: Mutex<Vec<tokio::task::JoinHandle<()>>>,
}

impl PushSender {
    fn client(&self) -> Result<reqwest::Client, ErrorAnswer> {
        let client = self.client.get_or_init(|| {
            // reqwest is built without a provider of its own. One that is installed already is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
            reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                .timeout(TIMEOUT)
                .build()
                .inspect_err(|error| tracing::warn!(%error, "no HTTP client for callbacks"))
                .ok()
        });
        client.clone().ok_or_else(|| {
            ErrorAnswer::new(ErrorKind::PushNotSupported, "callbacks cannot be sent from here")
        })
    }

    fn keep(&self, worker: tokio::task::JoinHandle<()>) {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        // Swept now and then, so that many registrations do not make each one slow.
        if workers.len().is_power_of_two() {
            workers.retain(|worker| !worker.is_finished());
        }
        workers.push(worker);
    }

    /// Stops every delivery, also one under way.
    pub fn stop(&self) {
        for worker in self.workers.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            worker.abort();
        }
    }
}
