//! Real agents: small programs of ours on SDKs that nobody here wrote.
//!
//! Their code lies in `peers/`, the SDKs are installed outside the repository
//! by `peers/setup`, which the first test that needs them runs if nobody has.

use std::{
    collections::HashSet,
    fs::File,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
    time::Duration,
};

use crate::{
    a2a::{Dialect, Direct, http},
    ports::free_port,
    process::Process,
    wait::wait_until,
};

/// Which SDK an agent stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PeerKind {
    /// PyPI a2a-sdk 0.3: no snapshot on reattach.
    Py03,
    /// PyPI a2a-sdk 1.x.
    Py1,
    /// npm @a2a-js/sdk 0.3: no keep-alive.
    Js03,
    /// npm @a2a-js/sdk 1.x: no keep-alive either.
    Js1,
    /// The reference Rust server; built on demand, takes minutes.
    Rs,
}

impl PeerKind {
    /// The dialect its card puts first.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::Py03 | Self::Js03 => Dialect::V03,
            Self::Py1 | Self::Js1 | Self::Rs => Dialect::V1,
        }
    }

    fn install(self) -> &'static str {
        match self {
            Self::Py03 => "py03",
            Self::Py1 => "py1",
            Self::Js03 | Self::Js1 => "js",
            Self::Rs => "rs",
        }
    }
}

/// A running agent on a port of its own.
pub struct Peer {
    kind: PeerKind,
    port: u16,
    flags: Vec<String>,
    tokens: Option<String>,
    process: Option<Process>,
}

impl Peer {
    /// Starts an agent and waits until its card answers.
    pub async fn start(kind: PeerKind) -> Self {
        Self::with(kind, &[], None).await
    }

    /// The same with command-line flags and, separated by commas, the bearer tokens it accepts.
    ///
    /// # Panics
    /// When its SDK cannot be installed or the agent does not come up.
    pub async fn with(kind: PeerKind, flags: &[&str], tokens: Option<&str>) -> Self {
        tokio::task::spawn_blocking(move || ensure_installed(kind.install()))
            .await
            .expect("the setup says itself why it failed");
        let mut peer = Self {
            kind,
            port: free_port(),
            flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
            tokens: tokens.map(str::to_owned),
            process: None,
        };
        // Somebody may take the port between the look and the agent's bind.
        for _ in 0..3 {
            if peer.try_to_come_up().await {
                return peer;
            }
            peer.port = free_port();
        }
        panic!("{kind:?} did not come up on three ports; see what it wrote above");
    }

    pub fn kind(&self) -> PeerKind {
        self.kind
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// The test's own line to the agent, in the dialect it prefers.
    pub fn direct(&self) -> Direct {
        Direct::new(&self.url(), self.kind.dialect())
    }

    /// SIGKILL. The port stays free for [`Peer::come_back`].
    pub async fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().await;
        }
    }

    /// Starts again on the same port. These agents keep tasks in memory only,
    /// so all of them are forgotten.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn come_back(&mut self) {
        assert!(self.process.is_none(), "kill it first");
        assert!(self.try_to_come_up().await, "{:?} did not come back on port {}", self.kind, self.port);
    }

    async fn try_to_come_up(&mut self) -> bool {
        let (program, script) = command(self.kind);
        let (port, flags, tokens) = (self.port.to_string(), self.flags.clone(), self.tokens.clone());
        let mut process = Process::start(&format!("{:?}", self.kind), program, |command| {
            command.args(script).args(["--port", &port]).args(flags).env("PEERS_JS", home().join("js"));
            command.env_remove("AGENT_PRESETS").env_remove("AGENT_TOKEN");
            if let Some(tokens) = tokens {
                command.env("AGENT_TOKEN", tokens);
            }
        });
        let card = format!("http://127.0.0.1:{}/.well-known/agent-card.json", self.port);
        let client = http();
        let up = wait_until(Duration::from_secs(40), "the card of an agent", async || {
            if !process.is_running() {
                return Some(false);
            }
            let answer = client.get(&card).send().await.ok()?;
            answer.status().is_success().then_some(true)
        })
        .await;
        if up {
            self.process = Some(process);
        } else {
            eprintln!("{:?} ended at once:\n{}", self.kind, process.log().text());
        }
        up
    }
}

fn command(kind: PeerKind) -> (PathBuf, Option<PathBuf>) {
    let code = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let home = home();
    match kind {
        PeerKind::Py03 => (home.join("py03/bin/python"), Some(code.join("py03/agent.py"))),
        PeerKind::Py1 => (home.join("py1/bin/python"), Some(code.join("py1/agent.py"))),
        PeerKind::Js03 => ("node".into(), Some(code.join("js/agent03.mjs"))),
        PeerKind::Js1 => ("node".into(), Some(code.join("js/agent1.mjs"))),
        PeerKind::Rs => (home.join("rs/target/debug/peer-rs"), None),
    }
}

/// Where the SDKs are installed: `TASKBELL_PEERS`, or a folder in the user's cache.
///
/// # Panics
/// When neither `TASKBELL_PEERS` nor `HOME` is set.
pub fn home() -> PathBuf {
    if let Some(chosen) = std::env::var_os("TASKBELL_PEERS") {
        return chosen.into();
    }
    let home = std::env::var_os("HOME").expect("HOME or TASKBELL_PEERS is set");
    Path::new(&home).join(".cache/taskbell/peers")
}

/// Runs `peers/setup` for one SDK, once in this process and one process at a time.
///
/// # Panics
/// When the setup fails: a real peer that is silently left out proves nothing.
pub fn ensure_installed(what: &str) {
    static DONE: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    // A setup that failed in one test fails the others in the same words.
    let mut done = DONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let done = done.get_or_insert_default();
    if done.contains(what) {
        return;
    }
    let home = home();
    std::fs::create_dir_all(&home)
        .unwrap_or_else(|error| panic!("cannot create {}: {error}", home.display()));
    let lock = File::create(home.join("setup.lock")).expect("the folder was just created");
    lock.lock().expect("a file of our own can be locked");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/setup");
    let status = Command::new("sh").arg(&script).arg(what).env("TASKBELL_PEERS", &home).status();
    assert!(
        status.as_ref().is_ok_and(std::process::ExitStatus::success),
        "{} {what} failed: {status:?}",
        script.display()
    );
    done.insert(what.to_owned());
}
