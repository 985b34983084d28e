//! What the fault tests share: an agent behind a proxy, commands beside a running engine, a look at the
//! database and at processes.

use std::{path::Path, process::Stdio, time::Duration};

use serde_json::{Value, json};
use taskbell_tests::{
    Fault, FaultProxy, GatewayA, Output, Taskbell, eventually,
    process::{Process, guarded},
    taskbell::{Setup, TaskName, binary},
};
use tokio::{process::Command, time::timeout};

use crate::{PATIENCE, TOKEN};

/// An agent, a proxy before it, and an engine that follows through the proxy.
pub struct Scene {
    pub gateway: GatewayA,
    pub proxy: FaultProxy,
    pub taskbell: Taskbell,
}

impl Scene {
    pub async fn start() -> Self {
        Self::with(Taskbell::setup().credential_file("of these tests")).await
    }

    /// The agent is named `a`, its token comes from a command.
    pub async fn with(setup: Setup) -> Self {
        let gateway = GatewayA::start(TOKEN).await;
        let proxy = FaultProxy::before(gateway.port()).await;
        let taskbell = setup.start().await;
        add_agent(&taskbell, "a", &proxy).await;
        Self { gateway, proxy, taskbell }
    }

    /// Sends so many tasks and waits until all streams flow.
    pub async fn attached(&self, tasks: usize) -> Vec<TaskName> {
        let mut names = Vec::new();
        for turn in 0..tasks {
            names.push(self.taskbell.send("a", &format!("turn {turn}")).await);
        }
        eventually(PATIENCE, "all are attached", || self.proxy.open_streams() == tasks).await;
        names
    }
}

/// Adds the agent behind the proxy.
pub async fn add_agent(taskbell: &Taskbell, name: &str, proxy: &FaultProxy) {
    let command = format!("echo {TOKEN}");
    taskbell.cli(&["agent", "add", &proxy.url(), "--name", name, "--token-command", &command]).await.ok();
    // What the agent is asked is counted here, and callbacks are another matter.
    taskbell.cli(&["settings", "set", &format!("push.{name}"), "off"]).await.exits(0);
}

/// An answer of JSON-RPC to whatever was asked.
pub fn result(value: Value) -> Fault {
    let body = json!({"jsonrpc": "2.0", "id": "$id", "result": value});
    Fault::answer(200, "application/json", &body.to_string())
}

/// A stream of these results, and its end.
pub fn stream_of(results: &[Value]) -> Fault {
    let frame =
        |value: &Value| format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": "$id", "result": value}));
    Fault::answer(200, "text/event-stream", &results.iter().map(frame).collect::<String>())
}

/// A task as 0.3 tells it.
pub fn told(id: &str, state: &str) -> Value {
    json!({"kind": "task", "id": id, "contextId": "c", "status": {"state": state}})
}

/// A status update as 0.3 tells it.
pub fn update(id: &str, state: &str) -> Value {
    json!({"kind": "status-update", "taskId": id, "contextId": "c", "status": {"state": state}, "final": false})
}

/// The kinds on the agent's report card.
pub async fn oddities(taskbell: &Taskbell, agent: &str) -> Vec<String> {
    let shown = taskbell.cli(&["agent", "show", agent]).await.ok();
    let oddities = shown["oddities"].as_array().cloned().unwrap_or_default();
    oddities.iter().filter_map(|oddity| oddity["kind"].as_str().map(str::to_owned)).collect()
}

/// What `doctor` finds about one thing.
pub async fn health(taskbell: &Taskbell, check: &str) -> Value {
    let doctor = taskbell.cli(&["doctor"]).await.json();
    let items = doctor["items"].as_array().cloned().unwrap_or_default();
    items.into_iter().find(|item| item["check"] == check).unwrap_or_else(|| panic!("no {check} in {doctor}"))
}

/// The word for why a task is not heard of; none where all is well.
pub fn trouble(shown: &taskbell_tests::taskbell::Shown) -> Option<&str> {
    shown.0["following"]["trouble"].as_str()
}

/// A command on a data folder, for moments when the engine's owner is busy with the engine.
pub async fn command(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = guarded(&binary());
    command.args(arguments).arg("--json").env("TASKBELL_DATA_DIR", folder);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let shown = format!("taskbell {}", arguments.join(" "));
    let output = timeout(Duration::from_secs(40), command.output())
        .await
        .unwrap_or_else(|_| panic!("`{shown}` did not end"))
        .unwrap_or_else(|error| panic!("cannot run `{shown}`: {error}"));
    Output {
        command: shown,
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs Python with its SQLite on the engine's database and returns what it printed.
pub async fn database(folder: &Path, statements: &str) -> String {
    let program = format!(
        "import sqlite3\nd = sqlite3.connect({:?}, timeout=10, isolation_level=None)\n{statements}",
        folder.join("taskbell.db").display().to_string()
    );
    let output = Command::new("python3").args(["-c", &program]).output().await.expect("python3 is installed");
    assert!(output.status.success(), "{statements}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// What SQLite's full check says of a database that no engine holds.
pub async fn integrity(folder: &Path) -> String {
    database(folder, "print(d.execute('PRAGMA integrity_check').fetchone()[0])").await
}

/// Kibibytes of a process, by the name of a line in its status: `VmRSS`, `VmHWM`.
pub fn memory(pid: i32, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let found = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
    found.and_then(|text| text.trim().trim_end_matches("kB").trim().parse().ok()).expect("a number")
}

/// The built-in agent as a process of its own. It wants no credential.
pub struct DemoAgent {
    pub url: String,
    _process: Process,
}

impl DemoAgent {
    pub async fn start() -> Self {
        let mut process = Process::start("taskbell demo-agent", binary(), |command| {
            command.args(["demo-agent", "--addr", "127.0.0.1:0", "--json"]);
        });
        let line = process.next_line(PATIENCE).await.expect("a ready line");
        let ready: Value = serde_json::from_str(&line).expect("JSON");
        let url = ready["url"].as_str().expect("its address").to_owned();
        Self { url, _process: process }
    }
}

/// Runs the calling test once more in a mount namespace of its own, with a small file system on a folder.
///
/// Gives the folder inside, and none outside, where the test then has nothing left to do. `name` is the test's
/// whole name.
pub fn small_disk(name: &str, megabytes: u32) -> Option<std::path::PathBuf> {
    const FOLDER: &str = "TASKBELL_TEST_SMALL_DISK";
    if let Some(folder) = std::env::var_os(FOLDER) {
        return Some(folder.into());
    }
    let may = std::process::Command::new("unshare").args(["-m", "true"]).stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        println!("skipped: {name} needs root and unshare for a mount namespace");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!(r#"mount -t tmpfs -o size={megabytes}m tmpfs "$0" && exec "$@""#);
    let output = std::process::Command::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .arg(folder.path())
        .arg(std::env::current_exe().expect("a test knows its own path"))
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder.path())
        .output()
        .expect("unshare was there a moment ago");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "the test must have run inside: {said}");
    None
}
