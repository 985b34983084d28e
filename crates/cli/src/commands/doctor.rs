//! `doctor`: what works here and what does not, with and without an engine.

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use taskbell_core::text;
use taskbell_engine::api::views::{HealthState, UtcTime};
use taskbell_engine::data_dir::DataDir;
use taskbell_engine::health::DESCRIPTORS_WANTED;
use taskbell_engine::keychain::{Keychain, KeychainChoice, KeychainHealth};
use taskbell_engine::store::inspect::inspect;

use crate::engine::Engine;
use crate::failure::Failure;
use crate::session::{Session, chain};
use crate::term::marks::{AMBER, DIM, GREEN, RED};
use crate::term::out::Out;

/// A stopped Secret Service never answers.
const KEYRING_WITHIN: Duration = Duration::from_secs(5);

/// Say what works here and what does not
///
/// Exit 1 when something is bad.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  taskbell doctor --self-test")]
pub struct Doctor {
    /// Try each part of the running engine as well: keyring, store, gateway, inbox, public address, a notice
    #[arg(long)]
    self_test: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    check: String,
    state: HealthState,
    /// One line for people.
    detail: String,
    /// What to do about it.
    fix: Option<String>,
    /// Since when, where the engine says.
    since: Option<UtcTime>,
}

impl Finding {
    fn new(check: &str, state: HealthState, detail: impl Into<String>) -> Self {
        Self { check: check.to_owned(), state, detail: detail.into(), fix: None, since: None }
    }

    fn with_fix(self, fix: &str) -> Self {
        Self { fix: Some(fix.to_owned()), ..self }
    }
}

impl Doctor {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let dir = session.data_dir()?;
        let mut findings = vec![folder(&dir), lock(&dir)];
        let engine = Engine::connect(&dir).await;
        findings.push(match &engine {
            Ok(_) => Finding::new("engine", HealthState::Ok, "answers, and has proved that it is the one"),
            Err(error) if error.code == "no_engine" => {
                Finding::new("engine", HealthState::Warn, "none runs on this folder")
                    .with_fix("start one with 'taskbell serve'")
            }
            Err(error) => Finding::new("engine", HealthState::Bad, chain(error)),
        });
        findings.push(database(&dir));
        findings.push(descriptors());
        if cfg!(target_os = "linux") {
            findings.push(session_bus());
        }
        // A running engine has its own keyring choice, and says how it fares.
        match &engine {
            Ok(engine) => {
                findings.extend(health(engine).await);
                if self.self_test {
                    findings.extend(self_test(engine).await?);
                }
            }
            Err(_) if self.self_test => {
                return Err(Failure::new(
                    "no_engine",
                    "failed to test: no engine runs; start one with 'taskbell serve'",
                ));
            }
            Err(_) => findings.push(keyring().await),
        }
        let bad = findings.iter().any(|finding| finding.state == HealthState::Bad);
        if session.out.is_json() {
            session.out.json(&serde_json::json!({"items": findings, "next": null}))?;
        } else {
            session.out.lines(findings.iter().flat_map(|finding| lines(finding, session.out)))?;
        }
        Ok(u8::from(bad))
    }
}

fn lines(finding: &Finding, out: Out) -> Vec<String> {
    let (style, mark) = match finding.state {
        HealthState::Ok => (GREEN, "✓ ok  "),
        HealthState::Warn => (AMBER, "▲ look"),
        HealthState::Bad => (RED, "✗ bad "),
    };
    let (check, detail) = (text::plain(&finding.check), text::plain(&finding.detail));
    let mut lines = vec![format!("{}  {check:12}  {detail}", out.paint(style, mark))];
    if let Some(fix) = &finding.fix {
        lines.push(out.paint(DIM, &format!("{:22}→ {}", "", text::plain(fix))));
    }
    lines
}

fn folder(dir: &DataDir) -> Finding {
    let path = dir.path().display();
    match std::fs::metadata(dir.path()) {
        Ok(found) if !found.is_dir() => {
            Finding::new("data folder", HealthState::Bad, format!("{path} is not a folder"))
                .with_fix("name another with --data-dir")
        }
        Ok(found) if found.permissions().readonly() => {
            Finding::new("data folder", HealthState::Bad, format!("{path} is not writable"))
        }
        Ok(found) if is_open_to_others(&found) => {
            Finding::new("data folder", HealthState::Warn, format!("{path} is open to other users"))
                .with_fix("an engine closes it to them when it starts")
        }
        Ok(_) => Finding::new("data folder", HealthState::Ok, path.to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::new("data folder", HealthState::Ok, format!("{path} is made when an engine starts"))
        }
        Err(error) => {
            Finding::new("data folder", HealthState::Bad, format!("failed to look at {path}: {error}"))
        }
    }
}

fn is_open_to_others(found: &std::fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        found.permissions().mode() & 0o077 != 0
    }
    #[cfg(not(unix))]
    {
        let _ = found;
        false
    }
}

fn lock(dir: &DataDir) -> Finding {
    match (dir.is_held(), dir.runtime()) {
        (Ok(false), _) => Finding::new("lock", HealthState::Ok, "free"),
        (Ok(true), Ok(Some(runtime))) => {
            let at = |address: &Option<String>| address.clone().unwrap_or_else(|| "no port".to_owned());
            let (gateway, inbox) = (at(&runtime.gateway), at(&runtime.inbox));
            let detail = format!("held by process {}, gateway {gateway}, inbox {inbox}", runtime.pid);
            Finding::new("lock", HealthState::Ok, detail)
        }
        (Ok(true), Ok(None)) => {
            Finding::new("lock", HealthState::Warn, "held by a process that is not ready, or stops just now")
        }
        (Err(error), _) | (_, Err(error)) => Finding::new("lock", HealthState::Bad, chain(&error)),
    }
}

fn database(dir: &DataDir) -> Finding {
    match inspect(dir.path()) {
        Ok(None) => Finding::new("database", HealthState::Ok, "none yet; made when an engine starts"),
        Ok(Some(found)) if found.version > found.known => {
            let (version, known) = (found.version, found.known);
            let detail = format!("has version {version}, and this program knows up to {known}");
            Finding::new("database", HealthState::Bad, detail)
                .with_fix("use the Taskbell that wrote it, or a newer one")
        }
        Ok(Some(found)) => match found.fault {
            Some(fault) => Finding::new("database", HealthState::Bad, format!("damaged: {fault}"))
                .with_fix("an engine that starts sets it aside and restores the newest backup"),
            None => Finding::new("database", HealthState::Ok, format!("readable, version {}", found.version)),
        },
        Err(error) => Finding::new("database", HealthState::Bad, chain(&error)),
    }
}

fn descriptors() -> Finding {
    #[cfg(unix)]
    match rlimit::Resource::NOFILE.get() {
        Ok((_, hard)) if hard < DESCRIPTORS_WANTED => {
            let detail = format!("{hard} at most, which is little for many followed tasks");
            Finding::new("descriptors", HealthState::Warn, detail)
                .with_fix("raise the hard limit (ulimit -Hn)")
        }
        Ok((soft, hard)) => Finding::new(
            "descriptors",
            HealthState::Ok,
            format!("{soft} now, {hard} once an engine raises it"),
        ),
        Err(error) => {
            Finding::new("descriptors", HealthState::Warn, format!("the limit is not known: {error}"))
        }
    }
    #[cfg(not(unix))]
    {
        let _ = DESCRIPTORS_WANTED;
        Finding::new("descriptors", HealthState::Ok, "no limit of this kind here")
    }
}

fn session_bus() -> Finding {
    let named = std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some_and(|address| !address.is_empty());
    let socket = std::env::var_os("XDG_RUNTIME_DIR")
        .map(|folder| std::path::Path::new(&folder).join("bus"))
        .is_some_and(|bus| bus.exists());
    if named || socket {
        Finding::new("session bus", HealthState::Ok, "there")
    } else {
        Finding::new(
            "session bus",
            HealthState::Warn,
            "none: no keyring and no desktop notices in this session",
        )
        .with_fix("for secrets use 'taskbell serve --credential-store file'")
    }
}

async fn keyring() -> Finding {
    let nonce = format!("{}-{:?}", std::process::id(), std::time::SystemTime::now());
    let health = match Keychain::start(KeychainChoice::Os, "doctor", KEYRING_WITHIN) {
        Ok(keychain) => keychain.probe(&nonce).await,
        Err(error) => KeychainHealth::Failing(error),
    };
    match health {
        KeychainHealth::Kept => {
            Finding::new("keyring", HealthState::Ok, "a value was written, read back and deleted")
        }
        KeychainHealth::SessionOnly | KeychainHealth::Unknown => {
            Finding::new("keyring", HealthState::Warn, "it is not known whether it keeps anything")
        }
        KeychainHealth::Failing(error) => {
            let detail = format!("keeps no secret: {} ({})", chain(&error), error.code());
            Finding::new("keyring", HealthState::Warn, detail)
                .with_fix("unlock or start it, or use 'taskbell serve --credential-store file'")
        }
    }
}

async fn self_test(engine: &Engine) -> Result<Vec<Finding>, Failure> {
    let tested = engine.self_test().await?.items.into_iter().map(|item| {
        let state = if item.ok { HealthState::Ok } else { HealthState::Bad };
        Finding::new(
            &format!("test of {}", item.component),
            state,
            format!("{} ({} ms)", item.detail, item.took_ms),
        )
    });
    Ok(tested.collect())
}

async fn health(engine: &Engine) -> Vec<Finding> {
    match engine.health().await {
        Ok(health) => health
            .items
            .into_iter()
            .map(|item| Finding {
                check: item.component,
                state: item.state,
                detail: item.detail,
                fix: item.fix,
                since: Some(item.since),
            })
            .collect(),
        Err(error) => vec![Finding::new("health", HealthState::Bad, chain(&error))],
    }
}
