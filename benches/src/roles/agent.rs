//! The demo agent as a process, with the tasks that a measurement needs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::json;
use taskbell_demo_agent::{Options, start};

use super::{answer_all, say};
use crate::{Failure, wire};

const SENDS_AT_ONCE: usize = 16;
const ATTACHED_WITHIN: Duration = Duration::from_secs(120);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
pub enum Question {
    /// Answers once so many event streams are open: milliseconds since the agent began to listen.
    Streams {
        wanted: usize,
    },
    Counts,
}

pub async fn run(
    addr: SocketAddr,
    state: Option<PathBuf>,
    tasks: usize,
    script: &str,
) -> Result<(), Failure> {
    let listening = Instant::now();
    let agent = start(Options { addr, state, ..Options::default() }).await?;
    let client = wire::client()?;
    let url = agent.base_url().to_owned();
    let sends = (0..tasks).map(|number| wire::send(&client, &url, number, script));
    let sent: Vec<Result<String, Failure>> =
        futures::stream::iter(sends).buffered(SENDS_AT_ONCE).collect().await;
    let sent = sent.into_iter().collect::<Result<Vec<String>, Failure>>()?;
    drop(client);
    say(&json!({ "url": url, "addr": agent.local_addr(), "tasks": sent }));
    let counters = agent.counters();
    answer_all(async |question: Question| match question {
        Question::Streams { wanted } => {
            let deadline = Instant::now() + ATTACHED_WITHIN;
            while counters.open_streams() < wanted {
                if Instant::now() > deadline {
                    return Err(format!("{} of {wanted} streams are open", counters.open_streams()).into());
                }
                // The agent has no bell for this, and a closer look would take its CPU time.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok(json!({ "ms": listening.elapsed().as_secs_f64() * 1e3 }))
        }
        Question::Counts => Ok(json!({
            "gets": counters.gets(), "subscribes": counters.subscribes(), "open": counters.open_streams(),
        })),
    })
    .await?;
    agent.stop().await?;
    Ok(())
}
