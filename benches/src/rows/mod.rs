//! What is measured, a room a row of the table.

pub mod dispatcher;
pub mod gateway;
pub mod inbox;
pub mod restart;
pub mod search;
pub mod start;
pub mod store;
pub mod streams;
pub mod sweep;
pub mod window;

use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::process::Command;

use crate::program::{Program, text};
use crate::roles::{agent, bare, engine};
use crate::{Failure, program};

/// The agent with its tasks, and where it is.
struct Fed {
    agent: Program,
    url: String,
    tasks: Vec<String>,
}

impl Fed {
    async fn start(tasks: usize, script: &str) -> Result<Self, Failure> {
        Self::start_with(&["--tasks", &tasks.to_string(), "--script", script]).await
    }

    async fn start_with(arguments: &[&str]) -> Result<Self, Failure> {
        let mut agent = Program::role(&[&["agent"], arguments].concat())?;
        let answer = agent.answer().await?;
        let url = answer["url"].as_str().ok_or("the agent has no address")?.to_owned();
        let tasks = answer["tasks"].as_array().into_iter().flatten();
        let tasks = tasks.filter_map(Value::as_str).map(str::to_owned).collect();
        Ok(Self { agent, url, tasks })
    }

    /// Milliseconds from when the agent began to listen until all its tasks have a stream.
    async fn attached(&mut self, wanted: usize) -> Result<f64, Failure> {
        let answer = self.agent.ask(&agent::Question::Streams { wanted }).await?;
        number(&answer, "ms")
    }
}

/// Whoever follows the tasks, with what it needs on the disk.
struct Client {
    program: Program,
    kind: Kind,
    _folder: tempfile::TempDir,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ours,
    Bare,
}

impl Client {
    async fn start(kind: Kind) -> Result<Self, Failure> {
        let folder = program::folder()?;
        let mut program = match kind {
            Kind::Ours => Program::role(&["engine", text(folder.path())?])?,
            Kind::Bare => Program::role(&["bare"])?,
        };
        program.answer().await?;
        Ok(Self { program, kind, _folder: folder })
    }

    /// Learns where the agent is. What that takes is no part of what a task takes.
    async fn meet(&mut self, fed: &Fed) -> Result<(), Failure> {
        if self.kind == Kind::Ours {
            self.program.ask(&engine::Question::Add { url: fed.url.clone() }).await?;
        }
        Ok(())
    }

    async fn follow(&mut self, fed: &Fed) -> Result<(), Failure> {
        let tasks = fed.tasks.clone();
        match self.kind {
            Kind::Ours => self.program.ask(&engine::Question::Watch { tasks }).await?,
            Kind::Bare => {
                self.program.ask(&bare::Question::Subscribe { url: fed.url.clone(), tasks }).await?
            }
        };
        Ok(())
    }

    /// Events heard so far: frames, or changes stored, which is the same number where every frame
    /// changes a state.
    async fn heard(&mut self) -> Result<f64, Failure> {
        match self.kind {
            Kind::Ours => number(&self.program.ask(&engine::Question::Changes).await?, "changes"),
            Kind::Bare => number(&self.program.ask(&bare::Question::Counts).await?, "frames"),
        }
    }
}

/// The Python of a peer's environment, which is installed where it is missing.
async fn python_peer(name: &str) -> Result<PathBuf, Failure> {
    let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/peers/setup");
    let installed = Command::new(&setup).arg(name).stdout(std::process::Stdio::null()).status().await?;
    if !installed.success() {
        return Err(format!("{} failed", setup.display()).into());
    }
    let peers = match std::env::var_os("TASKBELL_PEERS") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME").ok_or("no HOME")?).join(".cache/taskbell/peers"),
    };
    Ok(peers.join(name).join("bin/python"))
}

fn number(answer: &Value, name: &str) -> Result<f64, Failure> {
    answer[name].as_f64().ok_or_else(|| format!("no number {name} in {answer}").into())
}

fn numbers(answer: &Value, name: &str) -> Vec<f64> {
    answer[name].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}
