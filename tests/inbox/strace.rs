//! `strace` on a running engine: faults at chosen system calls, and the order of calls.

use std::{path::Path, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

use crate::PATIENCE;

/// A tracer that is attached to every thread of a process.
pub struct Strace {
    child: Child,
    /// Read on, or the tracer would stop at a full pipe.
    _told: tokio::task::JoinHandle<()>,
}

impl Strace {
    /// Whether it can be used; says why not.
    pub fn is_here(test: &str) -> bool {
        let allowed = rustix::process::geteuid().is_root();
        let installed = std::process::Command::new("strace").arg("-V").stdout(Stdio::null()).status();
        if !allowed || !installed.is_ok_and(|status| status.success()) {
            println!("skipped: {test} needs strace and root");
            return false;
        }
        true
    }

    /// # Panics
    /// When it does not attach.
    pub async fn attach(pid: i64, arguments: &[&str]) -> Self {
        let mut command = Command::new("strace");
        command.args(["-f", "-p", &pid.to_string()]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("strace starts");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let attached = async {
            while let Some(line) = lines.next_line().await.expect("strace speaks UTF-8") {
                if line.contains("attached") {
                    return true;
                }
            }
            false
        };
        assert!(
            timeout(PATIENCE, attached).await.expect("strace attaches"),
            "strace did not attach to {pid}"
        );
        let _told = tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { child, _told }
    }

    /// Leaves the process as it is.
    pub async fn detach(mut self) {
        if let Some(pid) = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
            // It may have ended with the process.
            let _ = kill_process(pid, Signal::INT);
        }
        let ended = timeout(Duration::from_secs(10), self.child.wait()).await;
        ended.expect("strace ends").expect("it can be waited for");
    }
}

/// One finished call of a trace that was written with `-f -y -o`.
#[derive(Debug)]
pub struct Call {
    pub name: String,
    /// The whole text, of both parts where another thread came between.
    pub text: String,
}

/// The calls in the order of their ends.
pub fn calls(trace: &Path) -> Vec<Call> {
    let text = String::from_utf8_lossy(&std::fs::read(trace).expect("a trace")).into_owned();
    let mut begun: Vec<(String, String)> = Vec::new();
    let mut calls = Vec::new();
    for line in text.lines() {
        let Some((pid, rest)) = line.trim_start().split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(first) = rest.strip_suffix("<unfinished ...>") {
            begun.push((pid.to_owned(), first.to_owned()));
        } else if rest.starts_with("<... ") {
            let place = begun.iter().position(|(known, _)| known == pid);
            let first = place.map(|place| begun.remove(place).1).unwrap_or_default();
            push(&mut calls, format!("{first}{rest}"));
        } else {
            push(&mut calls, rest.to_owned());
        }
    }
    calls
}

fn push(calls: &mut Vec<Call>, text: String) {
    if let Some((name, _)) = text.split_once('(') {
        calls.push(Call { name: name.to_owned(), text });
    }
}
