//! A program under measurement: started as a child, asked over its standard streams, weighed from outside.
//!
//! One JSON document a line each way. A child ends when its standard input does, so none outlives a
//! measurement that was killed.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::Failure;

/// The longest that any question may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(180);
/// The unit of times in `/proc/PID/stat`: `USER_HZ`, 100 on every Linux there is.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running child; killed when dropped.
pub struct Program {
    name: String,
    child: Child,
    pid: u32,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Program {
    /// This binary in one of its roles, as its command line names it.
    pub fn role(arguments: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("role").args(arguments);
        Self::start(arguments.first().copied().unwrap_or_default(), command)
    }

    pub fn start(name: &str, mut command: Command) -> Result<Self, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| format!("failed to start {name}: {error}"))?;
        let pid = child.id().ok_or("a child that was not awaited has an id")?;
        let stdin = child.stdin.take().ok_or("standard input is piped")?;
        let stdout = BufReader::new(child.stdout.take().ok_or("standard output is piped")?).lines();
        Ok(Self { name: name.to_owned(), child, pid, stdin, stdout })
    }

    /// What it says next.
    pub async fn answer(&mut self) -> Result<Value, Failure> {
        let line = tokio::time::timeout(ANSWERS_WITHIN, self.stdout.next_line())
            .await
            .map_err(|_| format!("{} did not answer within {ANSWERS_WITHIN:?}", self.name))??
            .ok_or_else(|| format!("{} ended before it answered", self.name))?;
        let answer: Value = serde_json::from_str(&line)?;
        match answer.get("failed") {
            Some(why) => Err(format!("{}: {why}", self.name).into()),
            None => Ok(answer),
        }
    }

    pub async fn ask(&mut self, question: &impl Serialize) -> Result<Value, Failure> {
        let mut line = serde_json::to_vec(question)?;
        line.push(b'\n');
        self.stdin.write_all(&line).await?;
        self.stdin.flush().await?;
        self.answer().await
    }

    /// Lets it end by itself: its standard input is closed.
    pub async fn end(mut self) -> Result<(), Failure> {
        drop(self.stdin);
        let ended = tokio::time::timeout(Duration::from_secs(20), self.child.wait()).await;
        ended.map_err(|_| format!("{} did not end", self.name))??;
        Ok(())
    }

    pub async fn kill(mut self) -> Result<(), Failure> {
        Ok(self.child.kill().await?)
    }

    /// Proportional set size, KiB: shared pages are divided among those who share them.
    pub fn memory_kib(&self) -> Result<f64, Failure> {
        pss_kib(self.pid)
    }

    /// Seconds of CPU time since its start, in user space and in the kernel.
    pub fn cpu_seconds(&self) -> Result<f64, Failure> {
        let ticks = stat_field(self.pid, 11)? + stat_field(self.pid, 12)?;
        Ok(ticks / TICKS_PER_SECOND)
    }
}

/// Proportional set size of a process, KiB.
pub fn pss_kib(pid: u32) -> Result<f64, Failure> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).ok_or("no Pss line")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// A process, what it started, and what that started.
pub fn family(pid: u32) -> Result<Vec<u32>, Failure> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // One that has just ended has no parent.
        if let Ok(parent) = stat_field(pid, 1) {
            parents.push((pid, parent as u32));
        }
    }
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    Ok(found)
}

/// A number of `/proc/PID/stat`, counted from the state, which is 0.
fn stat_field(pid: u32, at: usize) -> Result<f64, Failure> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name stands in parentheses and may hold anything.
    let (_, rest) = text.rsplit_once(')').ok_or("no name in stat")?;
    Ok(rest.split_whitespace().nth(at).ok_or("stat is too short")?.parse()?)
}

/// A folder for one program's data, gone afterwards.
pub fn folder() -> Result<tempfile::TempDir, Failure> {
    Ok(tempfile::Builder::new().prefix("taskbell-bench-").tempdir()?)
}

/// A path as an argument.
pub fn text(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| "a path that is not Unicode".into())
}
