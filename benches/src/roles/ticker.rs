//! An agent whose tasks do nothing but tell the time, so that whoever hears an event knows how old it is.
//!
//! It keeps nothing and speaks just enough of 1.0 to be followed: what a relay costs is what is measured,
//! not what an agent does.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::{answer_all, say};
use crate::Failure;

/// Events of one write while the pace is [`Pace::Flood`].
const AT_ONCE: u64 = 32;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
pub enum Question {
    /// From now on every stream goes at this pace.
    Pace {
        pace: Pace,
    },
    Streams,
}

/// How often each stream tells the time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    Quiet,
    EveryMs(u64),
    /// As fast as it is read.
    Flood,
}

struct Ticker {
    url: String,
    tasks: AtomicU64,
    streams: AtomicUsize,
    pace: watch::Sender<Pace>,
}

/// Nanoseconds of the clock that all programs of this machine share.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

pub async fn run() -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let ticker = Arc::new(Ticker {
        url: url.clone(),
        tasks: AtomicU64::new(0),
        streams: AtomicUsize::new(0),
        pace: watch::channel(Pace::Quiet).0,
    });
    let router = Router::new()
        .route("/.well-known/agent-card.json", get(card))
        .fallback(call)
        .with_state(Arc::clone(&ticker));
    tokio::spawn(async move { axum::serve(listener, router).await });
    say(&json!({ "url": url }));
    answer_all(async |question: Question| match question {
        Question::Pace { pace } => {
            ticker.pace.send_replace(pace);
            Ok(json!({}))
        }
        Question::Streams => Ok(json!({ "streams": ticker.streams.load(Ordering::Relaxed) })),
    })
    .await
}

async fn card(State(ticker): State<Arc<Ticker>>) -> Json<Value> {
    Json(json!({
        "name": "ticker", "description": "tells the time", "version": "1",
        "supportedInterfaces": [
            { "url": format!("{}/", ticker.url), "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
        ],
        "capabilities": { "streaming": true, "pushNotifications": false },
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [],
    }))
}

async fn call(State(ticker): State<Arc<Ticker>>, request: Request) -> Response {
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap_or_default();
    let Ok(asked) = serde_json::from_slice::<Value>(&body) else {
        return (axum::http::StatusCode::BAD_REQUEST, "no JSON").into_response();
    };
    let (id, params) = (asked["id"].clone(), &asked["params"]);
    let result =
        |result: Value| Json(json!({ "jsonrpc": "2.0", "id": id, "result": result })).into_response();
    match asked["method"].as_str().unwrap_or_default() {
        "SendMessage" => {
            let number = ticker.tasks.fetch_add(1, Ordering::Relaxed);
            result(json!({ "task": task(&format!("t-{number}"), "TASK_STATE_SUBMITTED") }))
        }
        "GetTask" => result(task(params["id"].as_str().unwrap_or_default(), "TASK_STATE_WORKING")),
        "SubscribeToTask" => events(ticker, &id, params["id"].as_str().unwrap_or_default()),
        _ => {
            let error = json!({ "code": -32601, "message": "method not found" });
            Json(json!({ "jsonrpc": "2.0", "id": id, "error": error })).into_response()
        }
    }
}

fn task(id: &str, state: &str) -> Value {
    json!({ "id": id, "contextId": "c", "status": { "state": state } })
}

/// A stream's place, given back when it ends.
struct Open(Arc<Ticker>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

fn events(ticker: Arc<Ticker>, id: &Value, task_id: &str) -> Response {
    ticker.streams.fetch_add(1, Ordering::Relaxed);
    let snapshot =
        json!({ "jsonrpc": "2.0", "id": id, "result": { "task": task(task_id, "TASK_STATE_WORKING") } });
    let first = Bytes::from(format!("data: {snapshot}\n\n"));
    // Everything but the time and a number stays what it is.
    let head = format!(
        "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"statusUpdate\":{{\"taskId\":\"{task_id}\",\
         \"contextId\":\"c\",\"status\":{{\"state\":\"TASK_STATE_WORKING\",\"message\":{{\"role\":\"ROLE_AGENT\",\
         \"messageId\":\"{task_id}-"
    );
    let stream = Ticks { pace: ticker.pace.subscribe(), _open: Open(ticker), head, number: 0, timer: None };
    let rest = futures::stream::unfold(stream, |mut ticks| async move {
        let octets = ticks.next().await?;
        Some((octets, ticks))
    });
    let stream = futures::stream::once(async move { first }).chain(rest);
    let mut response = Response::new(Body::from_stream(stream.map(Ok::<_, Infallible>)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

/// One stream after its first event.
struct Ticks {
    pace: watch::Receiver<Pace>,
    _open: Open,
    head: String,
    number: u64,
    /// For the pace of so many milliseconds.
    timer: Option<(u64, Interval)>,
}

impl Ticks {
    /// The next events; none when the agent ends.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let pace = *self.pace.borrow_and_update();
            match pace {
                Pace::Quiet => {
                    self.timer = None;
                    self.pace.changed().await.ok()?;
                }
                Pace::EveryMs(ms) => {
                    if self.timer.as_ref().is_none_or(|(known, _)| *known != ms) {
                        self.timer = Some((ms, spread(ms)));
                    }
                    let (_, timer) = self.timer.as_mut()?;
                    tokio::select! {
                        _ = timer.tick() => return Some(self.events(1)),
                        changed = self.pace.changed() => changed.ok()?,
                    }
                }
                Pace::Flood => return Some(self.events(AT_ONCE)),
            }
        }
    }

    fn events(&mut self, count: u64) -> Bytes {
        let mut text = String::with_capacity((self.head.len() + 80) * usize::try_from(count).unwrap_or(1));
        for number in self.number..self.number + count {
            text += &self.head;
            text += &format!("{number}\",\"parts\":[{{\"text\":\"{}\"}}]}}}}}}}}}}\n\n", now());
        }
        self.number += count;
        text.into()
    }
}

/// A timer somewhere within its period, or all streams would tick at once.
fn spread(ms: u64) -> Interval {
    let phase = Duration::from_nanos(now() % (ms * 1_000_000).max(1));
    let mut timer = interval_at(Instant::now() + phase, Duration::from_millis(ms));
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    timer
}
