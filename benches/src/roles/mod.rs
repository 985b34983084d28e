//! What the child processes do: the agent that feeds, the engine, and the clients it is measured beside.

pub mod agent;
pub mod bare;
pub mod engine;
pub mod listeners;
pub mod receiver;
pub mod relay;
pub mod ticker;

use std::path::PathBuf;

use clap::Subcommand;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::Failure;

#[derive(Subcommand)]
pub enum Role {
    /// The demo agent with some tasks
    Agent {
        /// Where to listen; port 0 picks one
        #[arg(long, default_value = "127.0.0.1:0")]
        addr: std::net::SocketAddr,
        #[arg(long)]
        state: Option<PathBuf>,
        #[arg(long, default_value_t = 0)]
        tasks: usize,
        #[arg(long, default_value = "")]
        script: String,
    },
    /// The engine on a data folder
    Engine { folder: PathBuf },
    /// A bare reqwest client
    Bare,
    /// A receiver of callbacks
    Receiver { kind: receiver::Receiver, folder: PathBuf },
    /// A relay that passes octets on
    Relay { agent: String },
    /// An agent that tells the time
    Ticker,
    /// Clients that note how old events are
    Listeners,
}

impl Role {
    pub async fn run(self) -> Result<(), Failure> {
        rlimit::increase_nofile_limit(u64::MAX)?;
        match self {
            Self::Agent { addr, state, tasks, script } => agent::run(addr, state, tasks, &script).await,
            Self::Engine { folder } => engine::run(&folder).await,
            Self::Bare => bare::run().await,
            Self::Receiver { kind, folder } => receiver::run(kind, &folder).await,
            Self::Relay { agent } => relay::run(agent).await,
            Self::Ticker => ticker::run().await,
            Self::Listeners => listeners::run().await,
        }
    }
}

fn say(answer: &Value) {
    println!("{answer}");
}

/// Answers questions until there are no more.
async fn answer_all<Q, F>(mut answer: impl FnMut(Q) -> F) -> Result<(), Failure>
where
    Q: DeserializeOwned,
    F: Future<Output = Result<Value, Failure>>,
{
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        match answer(serde_json::from_str(&line)?).await {
            Ok(value) => say(&value),
            Err(error) => say(&json!({ "failed": error.to_string() })),
        }
    }
    Ok(())
}
