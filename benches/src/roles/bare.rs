//! What a reqwest client costs that does nothing with what it hears but parse it: the floor to stand on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{answer_all, say};
use crate::{Failure, wire};

/// The pause of a client that just tries again.
const RETRY: Duration = Duration::from_millis(250);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
pub enum Question {
    /// Attaches to each task, again and again.
    Subscribe { url: String, tasks: Vec<String> },
    /// Frames heard and attempts made so far.
    Counts,
    /// Reads each task, so many at a time.
    Get { url: String, tasks: Vec<String>, at_once: usize },
}

#[derive(Default)]
struct Counts {
    frames: AtomicU64,
    attempts: AtomicU64,
}

pub async fn run() -> Result<(), Failure> {
    let client = wire::client()?;
    let counts = Arc::new(Counts::default());
    say(&json!({ "ready": true }));
    answer_all(async |question: Question| match question {
        Question::Subscribe { url, tasks } => {
            for task in tasks {
                let (client, counts, url) = (client.clone(), Arc::clone(&counts), url.clone());
                tokio::spawn(async move {
                    loop {
                        counts.attempts.fetch_add(1, Ordering::Relaxed);
                        // However it ended, a client of this kind tries again.
                        let _ended = listen(&client, &url, &task, &counts.frames).await;
                        tokio::time::sleep(RETRY).await;
                    }
                });
            }
            Ok(json!({}))
        }
        Question::Counts => Ok(json!({
            "frames": counts.frames.load(Ordering::Relaxed),
            "attempts": counts.attempts.load(Ordering::Relaxed),
        })),
        Question::Get { url, tasks, at_once } => {
            let began = Instant::now();
            let gets = tasks.iter().map(|task| wire::get(&client, &url, task));
            let got: Vec<Result<Value, Failure>> =
                futures::stream::iter(gets).buffer_unordered(at_once).collect().await;
            let ms = began.elapsed().as_secs_f64() * 1e3;
            let read = got.iter().filter(|answer| answer.is_ok()).count();
            Ok(json!({ "ms": ms, "read": read }))
        }
    })
    .await
}

async fn listen(client: &reqwest::Client, url: &str, task: &str, frames: &AtomicU64) -> Result<(), Failure> {
    let params = json!({ "id": task });
    let mut response = wire::call(client, url, "SubscribeToTask", params)
        .header("Accept", "text/event-stream")
        .send()
        .await?
        .error_for_status()?;
    let mut kept: Vec<u8> = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        kept.extend_from_slice(&chunk);
        while let Some(end) = kept.windows(2).position(|pair| pair == b"\n\n") {
            let event: Vec<u8> = kept.drain(..end + 2).collect();
            if let Some(data) = event.strip_prefix(b"data: ") {
                std::hint::black_box(serde_json::from_slice::<Value>(data)?);
                frames.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    Ok(())
}
