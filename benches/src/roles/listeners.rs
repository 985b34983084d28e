//! Programs that listen to tasks and note how old each event is when it reaches them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{answer_all, say, ticker};
use crate::table::percentile;
use crate::{Failure, wire};

const STARTED_AT_ONCE: usize = 32;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
pub enum Question {
    /// Starts so many tasks and listens to each with so many listeners. Answers when all have their task.
    Listen { url: String, key: Option<String>, tasks: usize, listeners: usize, read: bool },
    /// What is heard from now on, for so long.
    Window { ms: u64 },
}

#[derive(Default)]
struct Heard {
    events: u64,
    /// Nanoseconds.
    ages: Vec<u32>,
}

type Shared = Arc<Mutex<Heard>>;

pub async fn run() -> Result<(), Failure> {
    let heard = Shared::default();
    say(&json!({ "ready": true }));
    answer_all(async |question: Question| match question {
        Question::Listen { url, key, tasks, listeners, read } => {
            let client = wire::client()?;
            let starts = (0..tasks).map(|number| start(&client, &url, key.as_deref(), number));
            let started: Vec<Result<String, Failure>> =
                futures::stream::iter(starts).buffer_unordered(STARTED_AT_ONCE).collect().await;
            let started = started.into_iter().collect::<Result<Vec<String>, Failure>>()?;
            let listens = started.iter().flat_map(|task| (0..listeners).map(move |_| task)).map(|task| {
                // A client of its own for each: no connection is shared.
                listen(url.clone(), key.clone(), task.clone(), read, Arc::clone(&heard))
            });
            let all: Vec<Result<(), Failure>> =
                futures::stream::iter(listens).buffer_unordered(STARTED_AT_ONCE).collect().await;
            all.into_iter().collect::<Result<Vec<()>, Failure>>()?;
            Ok(json!({}))
        }
        Question::Window { ms } => {
            *lock(&heard) = Heard::default();
            tokio::time::sleep(Duration::from_millis(ms)).await;
            let Heard { events, ages } = std::mem::take(&mut *lock(&heard));
            let mut micros: Vec<f64> = ages.into_iter().map(|age| f64::from(age) / 1e3).collect();
            micros.sort_by(f64::total_cmp);
            Ok(json!({
                "events": events, "p50": percentile(&micros, 0.5), "p99": percentile(&micros, 0.99),
            }))
        }
    })
    .await
}

fn lock(heard: &Shared) -> std::sync::MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn call(
    client: &reqwest::Client,
    url: &str,
    key: Option<&str>,
    method: &str,
    params: Value,
) -> reqwest::RequestBuilder {
    let request = wire::call(client, url, method, params);
    match key {
        Some(key) => request.bearer_auth(key),
        None => request,
    }
}

async fn start(
    client: &reqwest::Client,
    url: &str,
    key: Option<&str>,
    number: usize,
) -> Result<String, Failure> {
    let params = json!({
        "message": { "messageId": format!("m-{number}"), "role": "ROLE_USER", "parts": [{ "text": "tick" }] },
        "configuration": { "returnImmediately": true },
    });
    // A client may ask only so often: it waits, as it was told to.
    loop {
        let answer = call(client, url, key, "SendMessage", params.clone()).send().await?;
        if answer.status() == reqwest::StatusCode::TOO_MANY_REQUESTS {
            tokio::time::sleep(Duration::from_millis(200)).await;
            continue;
        }
        let answer: Value = answer.json().await?;
        let id = answer["result"]["task"]["id"].as_str();
        return Ok(id.ok_or_else(|| format!("no task in {answer}"))?.to_owned());
    }
}

/// Attaches and returns; the rest is heard by itself.
async fn listen(
    url: String,
    key: Option<String>,
    task: String,
    read: bool,
    heard: Shared,
) -> Result<(), Failure> {
    let client = wire::client()?;
    let mut response = loop {
        let asked = call(&client, &url, key.as_deref(), "SubscribeToTask", json!({ "id": task }));
        let response = asked.header("Accept", "text/event-stream").send().await?;
        if response.status() != reqwest::StatusCode::TOO_MANY_REQUESTS {
            break response.error_for_status()?;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let mut kept = response.chunk().await?.ok_or("a stream that ended at once")?.to_vec();
    tokio::spawn(async move {
        let _client = client;
        if !read {
            // Open, and never read again.
            std::future::pending::<()>().await;
        }
        while let Ok(Some(chunk)) = response.chunk().await {
            let arrived = ticker::now();
            kept.extend_from_slice(&chunk);
            note(&mut kept, arrived, &heard);
        }
    });
    Ok(())
}

/// Takes whole events out of what was kept.
fn note(kept: &mut Vec<u8>, arrived: u64, heard: &Shared) {
    let Ok(text) = std::str::from_utf8(kept) else { return kept.clear() };
    let mut ages = Vec::new();
    let mut done = 0;
    let mut events = 0;
    for (end, _) in text.match_indices("\n\n") {
        let event = text.get(done..end).unwrap_or_default();
        done = end + 2;
        let told = event.rsplit_once("\"text\":\"").and_then(|(_, rest)| rest.split('"').next());
        if let Some(told) = told.and_then(|digits| digits.parse::<u64>().ok()) {
            events += 1;
            ages.push(u32::try_from(arrived.saturating_sub(told)).unwrap_or(u32::MAX));
        }
    }
    kept.drain(..done);
    if events > 0 {
        let mut heard = lock(heard);
        heard.events += events;
        heard.ages.extend(ages);
    }
}
