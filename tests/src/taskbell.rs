//! The product under test: its engine as a process, its commands beside it.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    a2a::artifact_text,
    cli::Output,
    process::{Process, guarded},
};

/// How long a command may take that is not told otherwise.
const COMMAND_LIMIT: Duration = Duration::from_secs(45);

/// How long a start may take. Far above the promise of 150 ms: debug builds on
/// a busy machine are not what the figures are about.
const START_LIMIT: Duration = Duration::from_secs(20);

/// The promise of a clean stop.
const STOP_LIMIT: Duration = Duration::from_secs(3);

/// The first line of `serve --json`.
#[derive(Debug, Clone)]
pub struct Ready {
    pub pid: i64,
    /// Base URL of gateway, API and page.
    pub gateway: String,
    /// Base URL of the callback inbox; empty for an engine that has none.
    pub inbox: String,
    /// The page with its one-use login.
    pub page: String,
}

/// How to start an engine.
#[derive(Debug, Clone)]
pub struct Setup {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    credential_store: &'static str,
    silence: Option<u32>,
    /// A program and its arguments that start the engine for us.
    under: Vec<String>,
    below: Option<PathBuf>,
    rehearsal: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            arguments: Vec::new(),
            environment: Vec::new(),
            credential_store: "memory",
            silence: None,
            under: Vec::new(),
            below: None,
            rehearsal: false,
        }
    }
}

impl Setup {
    /// A further argument of `serve`.
    pub fn arg(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Uses the keyring of the session instead of memory.
    pub fn os_keyring(mut self) -> Self {
        self.credential_store = "os";
        self
    }

    /// Keeps secrets in the encrypted file, under this passphrase.
    pub fn credential_file(mut self, passphrase: &str) -> Self {
        self.credential_store = "file";
        self.env("TASKBELL_PASSPHRASE", passphrase)
    }

    /// Starts the engine by another program, such as `prlimit`.
    pub fn under(mut self, program: &[&str]) -> Self {
        self.under = program.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Makes the data folder below `folder`.
    pub fn below(mut self, folder: &Path) -> Self {
        self.below = Some(folder.to_owned());
        self
    }

    /// Starts the build that has faults on demand: `TASKBELL_CRASH_AT`, `TASKBELL_FAULT`.
    pub fn rehearsal(mut self) -> Self {
        self.rehearsal = true;
        self
    }

    /// Seconds without a byte after which a stream is doubted.
    pub fn silence(mut self, seconds: u32) -> Self {
        self.silence = Some(seconds);
        self
    }

    /// Starts the engine and waits for its ready line.
    pub async fn start(self) -> Taskbell {
        let folder = match &self.below {
            Some(below) => TempDir::with_prefix_in("taskbell-test-", below),
            None => TempDir::with_prefix("taskbell-test-"),
        };
        let folder = folder.expect("a temporary folder");
        let silence = self.silence;
        let mut taskbell = Taskbell { setup: self, folder, engine: None, ready: None };
        taskbell.come_up().await;
        if let Some(seconds) = silence {
            taskbell.cli(&["settings", "set", "follow.silence", &seconds.to_string()]).await.exits(0);
        }
        taskbell
    }
}

/// One data folder, and the engine that holds it.
pub struct Taskbell {
    setup: Setup,
    folder: TempDir,
    engine: Option<Process>,
    ready: Option<Ready>,
}

impl Taskbell {
    /// An engine with free ports and credentials in memory.
    pub async fn start() -> Self {
        Setup::default().start().await
    }

    pub fn setup() -> Setup {
        Setup::default()
    }

    /// A data folder without an engine, for commands that must say so.
    pub fn without_engine() -> Self {
        let folder = TempDir::with_prefix("taskbell-test-").expect("a temporary folder");
        Self { setup: Setup::default(), folder, engine: None, ready: None }
    }

    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// The ready line of the running engine.
    ///
    /// # Panics
    /// When none runs.
    pub fn ready(&self) -> &Ready {
        self.ready.as_ref().expect("the engine runs")
    }

    /// The engine's process.
    ///
    /// # Panics
    /// When none runs.
    pub fn engine(&mut self) -> &mut Process {
        self.engine.as_mut().expect("the engine runs")
    }

    /// Everything the running engine wrote.
    pub fn log(&self) -> String {
        self.engine.as_ref().map(|engine| engine.log().text()).unwrap_or_default()
    }

    /// Starts the engine on this folder again, on new ports.
    ///
    /// # Panics
    /// When one runs already or the start fails.
    pub async fn come_up(&mut self) {
        if let Err(died) = self.come_up_unless_it_dies().await {
            panic!("{died}");
        }
    }

    /// As `come_up`, for an engine that may be killed on its way: it can then be waited for with `ended`.
    ///
    /// # Errors
    /// What it wrote, where no ready line came.
    ///
    /// # Panics
    /// When one runs already.
    pub async fn come_up_unless_it_dies(&mut self) -> Result<(), String> {
        assert!(self.engine.is_none(), "one engine at a time");
        let mut engine = self.launch(&["--gateway", "127.0.0.1:0", "--inbox", "127.0.0.1:0"]);
        let line = engine.next_line(START_LIMIT).await;
        let ready = line.as_deref().and_then(|line| serde_json::from_str::<Value>(line).ok());
        let Some(ready) = ready.filter(|ready| ready["ready"] == true) else {
            let died = format!("no ready line but {line:?}; the engine wrote:\n{}", engine.log().text());
            self.engine = Some(engine);
            return Err(died);
        };
        let field = |name: &str| {
            let value =
                ready[name].as_str().unwrap_or_else(|| panic!("no {name} in the ready line: {ready}"));
            value.trim_end_matches('/').to_owned()
        };
        self.ready = Some(Ready {
            pid: ready["pid"].as_i64().unwrap_or_else(|| panic!("no pid in the ready line: {ready}")),
            gateway: field("gateway"),
            inbox: if ready["inbox"].is_null() { String::new() } else { field("inbox") },
            page: field("page"),
        });
        self.engine = Some(engine);
        Ok(())
    }

    /// A second `serve` on this folder, as a user would mistakenly start it.
    pub async fn serve_again(&self, arguments: &[&str]) -> Output {
        let mut all = vec!["serve", "--credential-store", "memory"];
        all.extend(arguments);
        self.cli(&all).await
    }

    fn launch(&self, ports: &[&str]) -> Process {
        let engine = if self.setup.rehearsal { rehearsal_binary() } else { binary() };
        let program = self.setup.under.first().map_or_else(|| engine.clone(), PathBuf::from);
        Process::start("taskbell serve", program, |command| {
            if let Some((_, arguments)) = self.setup.under.split_first() {
                command.args(arguments).arg(&engine);
            }
            command.args(["serve", "--json", "--credential-store", self.setup.credential_store]);
            command.args(ports).args(&self.setup.arguments);
            command.arg("--data-dir").arg(self.folder.path());
            command.envs(self.setup.environment.iter().map(|(name, value)| (name, value)));
            command.env_remove("TASKBELL_DATA_DIR");
        })
    }

    /// For the next start; `None` takes the variable away.
    pub fn set_env(&mut self, name: &str, value: Option<&str>) {
        self.setup.environment.retain(|(known, _)| known != name);
        self.setup.environment.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    }

    /// Waits until the engine has ended by itself; its exit code, `None` where a signal killed it.
    ///
    /// # Panics
    /// When it has not within `limit`.
    pub async fn ended(&mut self, limit: Duration) -> Option<i32> {
        let mut engine = self.engine.take().expect("the engine runs");
        self.ready = None;
        engine.ended(limit).await.code()
    }

    /// SIGKILL, as a crash or a power cut.
    pub async fn kill9(&mut self) {
        if let Some(mut engine) = self.engine.take() {
            engine.kill().await;
        }
        self.ready = None;
    }

    /// Kills and starts again.
    pub async fn crash_and_restart(&mut self) {
        self.kill9().await;
        self.come_up().await;
    }

    /// SIGTERM; the engine must leave with 0 within three seconds.
    ///
    /// # Panics
    /// When it does not.
    pub async fn stop(&mut self) {
        let mut engine = self.engine.take().expect("the engine runs");
        engine.signal(Signal::TERM);
        let status = engine.ended(STOP_LIMIT).await;
        assert!(
            status.success(),
            "a clean stop ended with {status}; the engine wrote:\n{}",
            engine.log().text()
        );
        self.ready = None;
    }

    /// Runs a command with `--json`.
    pub async fn cli(&self, arguments: &[&str]) -> Output {
        self.run(arguments, true, &[], COMMAND_LIMIT).await
    }

    /// Runs a command as people do, without `--json`.
    pub async fn cli_text(&self, arguments: &[&str]) -> Output {
        self.run(arguments, false, &[], COMMAND_LIMIT).await
    }

    /// Runs a command with `--json` and further environment.
    pub async fn cli_env(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        self.run(arguments, true, environment, COMMAND_LIMIT).await
    }

    async fn run(
        &self,
        arguments: &[&str],
        json: bool,
        environment: &[(&str, &str)],
        limit: Duration,
    ) -> Output {
        let mut command = guarded(&binary());
        command.args(arguments).env("TASKBELL_DATA_DIR", self.folder.path());
        if json {
            command.arg("--json");
        }
        let own = self.setup.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        command.envs(own.chain(environment.iter().copied()));
        command.stdin(std::process::Stdio::null()).kill_on_drop(true);
        let shown = format!("taskbell {}", arguments.join(" "));
        let output = match timeout(limit, command.output()).await {
            Ok(output) => output.unwrap_or_else(|error| panic!("cannot run `{shown}`: {error}")),
            Err(_) => panic!("`{shown}` did not end within {limit:?}"),
        };
        Output {
            command: shown,
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("error output is UTF-8"),
        }
    }

    /// `agent add`.
    pub async fn add_agent(&self, name: &str, url: &str) -> Value {
        self.cli(&["agent", "add", url, "--name", name]).await.ok()
    }

    /// `agent add` with a bearer token that is handed over in the environment.
    pub async fn add_agent_with_token(&self, name: &str, url: &str, token: &str) -> Value {
        let arguments = ["agent", "add", url, "--name", name, "--token-env", "TEST_AGENT_TOKEN"];
        self.cli_env(&arguments, &[("TEST_AGENT_TOKEN", token)]).await.ok()
    }

    /// `send`, and the task it started.
    ///
    /// # Panics
    /// When the agent answered without a task.
    pub async fn send(&self, agent: &str, text: &str) -> TaskName {
        TaskName::of(&self.cli(&["send", agent, text]).await.ok()["task"])
    }

    /// `show` of a task.
    pub async fn show(&self, task: &TaskName) -> Shown {
        Shown(self.cli(&["show", task.as_str()]).await.ok())
    }

    /// Waits until `show` satisfies `holds`, and returns it.
    pub async fn shows(
        &self,
        task: &TaskName,
        limit: Duration,
        what: &str,
        holds: impl Fn(&Shown) -> bool,
    ) -> Shown {
        let end = Instant::now() + limit;
        loop {
            let shown = self.show(task).await;
            if holds(&shown) {
                return shown;
            }
            assert!(Instant::now() < end, "not within {limit:?}: {what}; last shown: {}", shown.0);
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// `wait` until the end or a waiting state, at most 40 seconds.
    pub async fn wait(&self, task: &TaskName) -> Output {
        self.cli(&["wait", task.as_str(), "--timeout", "40s"]).await
    }
}

/// A task as commands name it, `AGENT/TASKID`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskName(String);

impl TaskName {
    /// Reads the name out of an answer.
    ///
    /// # Panics
    /// When it is not `AGENT/TASKID`.
    pub fn of(value: &Value) -> Self {
        let name = value.as_str().unwrap_or_else(|| panic!("no task name: {value}"));
        assert!(
            name.split_once('/').is_some_and(|(agent, id)| !agent.is_empty() && !id.is_empty()),
            "{name}"
        );
        Self(name.to_owned())
    }

    /// The name of a task known by its agent and id.
    pub fn new(agent: &str, id: &str) -> Self {
        Self(format!("{agent}/{id}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The agent's own id of the task.
    pub fn id(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, id)| id)
    }
}

/// What `show` says about a task.
#[derive(Debug, Clone)]
pub struct Shown(pub Value);

impl Shown {
    pub fn state(&self) -> &str {
        self.0["state"].as_str().unwrap_or_else(|| panic!("no state: {}", self.0))
    }

    /// How we hear of it: stream, poll, reconnecting and the like.
    pub fn mode(&self) -> &str {
        self.0["following"]["mode"].as_str().unwrap_or_else(|| panic!("no following mode: {}", self.0))
    }

    /// All text of the artifacts, joined without a separator.
    pub fn text(&self) -> String {
        artifact_text(&self.0["artifacts"])
    }

    /// Entries of the timeline of one kind.
    pub fn timeline(&self, kind: &str) -> Vec<&Value> {
        let entries = self.0["timeline"].as_array().unwrap_or_else(|| panic!("no timeline: {}", self.0));
        entries.iter().filter(|entry| entry["kind"] == kind).collect()
    }

    pub fn has_gap(&self) -> bool {
        !self.timeline("gap").is_empty()
    }

    pub fn is_terminal(&self) -> bool {
        matches!(self.state(), "completed" | "failed" | "canceled" | "rejected")
    }
}

/// The program: `TASKBELL_BIN`, or the one built beside this test.
///
/// # Panics
/// When there is none; cargo does not build the programs of another package
/// for a test, so it says how.
pub fn binary() -> PathBuf {
    if let Some(chosen) = std::env::var_os("TASKBELL_BIN") {
        return chosen.into();
    }
    program("taskbell")
}

/// The build that has faults on demand, beside this test whatever `TASKBELL_BIN` says.
///
/// # Panics
/// When it was not built.
pub fn rehearsal_binary() -> PathBuf {
    program("taskbell-rehearsal")
}

fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let built = test.parent().and_then(Path::parent).expect("tests lie in deps").join(name);
    assert!(built.exists(), "no {}; build it first: cargo build -p {name}", built.display());
    built
}
