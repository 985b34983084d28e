//! `serve`: the headless engine.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::json;
use taskbell_core::credential::Secret;
use taskbell_core::public_url::PublicUrl;
use taskbell_engine::api::window::Windows;
use taskbell_engine::notifier::Notices;
use taskbell_engine::reachability::AddressSource;
use taskbell_engine::running::{CredentialStore, EngineOptions, PortsTaken, RunningEngine};

use crate::failure::Failure;
use crate::log;
use crate::session::{Session, chain};
use crate::signals::Signals;
use crate::term::marks::{BOLD, DIM};
use crate::term::out::Out;

/// A clean stop takes less; a keyring that hangs takes for ever.
const STOP_WITHIN: Duration = Duration::from_secs(3);

/// Run the engine without a window, in the foreground
///
/// Stops cleanly on SIGINT and SIGTERM; a second signal stops it at once. TASKBELL_LOG says what is logged on
/// stderr (a level, or a filter such as taskbell_engine::follower=debug).
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  taskbell serve --demo")]
pub struct Serve {
    /// Where local programs find the gateway, the API and the page; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7420")]
    gateway: SocketAddr,
    /// Where callbacks arrive, through a tunnel or proxy of yours; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7421")]
    inbox: SocketAddr,
    /// The https address under which agents elsewhere reach the inbox; it may have a path
    #[arg(long, value_name = "URL")]
    public_url: Option<PublicUrl>,
    /// Run the built-in agent too, named demo
    #[arg(long)]
    demo: bool,
    /// Where secrets are kept: the system's keyring, an encrypted file, or memory (gone at the end)
    ///
    /// The passphrase of the file is asked for, or taken from TASKBELL_PASSPHRASE.
    #[arg(long, value_name = "WHERE", value_enum, default_value_t)]
    credential_store: Store,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Store {
    #[default]
    Os,
    File,
    Memory,
}

impl Serve {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let out = session.out;
        log::start(out)?;
        raise_descriptor_limit();
        let options = EngineOptions {
            data_dir: session.data_dir()?,
            gateway: self.gateway,
            inbox: self.inbox,
            ports_taken: PortsTaken::Refuse,
            credential_store: match self.credential_store {
                Store::Os => CredentialStore::Os,
                Store::File => CredentialStore::File { passphrase: passphrase()? },
                Store::Memory => CredentialStore::Memory,
            },
            demo: self.demo,
            windows: Windows::new(),
            // A click would have no window to open.
            notices: Notices::Recorded,
        };
        // Not before: whoever is asked for a passphrase can leave with Ctrl-C.
        let mut signals = Signals::listen()?;
        let engine = tokio::select! {
            started = RunningEngine::start(options) => {
                started.map_err(|error| Failure::new(error.code(), chain(&error)))?
            }
            () = signals.next() => return Ok(0),
        };
        let reach = engine.engine().parts().reach().clone();
        reach.set_source(AddressSource::Start, self.public_url);
        let ready = engine.ready().expect("a taken port was refused");
        let told = if out.is_json() {
            let (gateway, page) = (&ready.gateway, &ready.page);
            let inbox = engine.inbox();
            out.json(
                &json!({"ready": true, "pid": ready.pid, "gateway": gateway, "inbox": inbox, "page": page}),
            )
        } else {
            let inbox = engine.inbox().unwrap_or_default();
            out.lines(greeting(&ready.gateway, &inbox, &ready.page, self.demo, out))
        };
        // Whoever started it may not read on; that is no reason to stop following.
        if let Err(failure) = told
            && !failure.is_closed_pipe()
        {
            tracing::warn!(code = failure.code(), "the ready line could not be written");
        }
        let stopped_by_itself = tokio::select! {
            () = signals.next() => None,
            failed = engine.failed() => Some(failed),
        };
        signals.second_leaves_at_once();
        if tokio::time::timeout(STOP_WITHIN, engine.stop()).await.is_err() {
            tracing::warn!("the clean stop took longer than 3 s and was given up");
        }
        match stopped_by_itself {
            None => Ok(0),
            // Nothing can be acknowledged any more: a fault of ours, and whoever watches over us starts us again.
            Some(error) => Err(Failure::new(error.code(), chain(&error)).with_exit(crate::outcome::PANICKED)),
        }
    }
}

fn greeting(gateway: &str, inbox: &str, page: &str, demo: bool, out: Out) -> Vec<String> {
    let label = |name: &str| out.paint(DIM, &format!("{name:9}"));
    let mut lines = vec![
        format!("{}{gateway}", label("gateway")),
        format!("{}{inbox}", label("inbox")),
        format!("{}{page}", label("page")),
        format!(
            "{}(the page's address signs in once, within a minute; 'taskbell open' prints another)",
            label("")
        ),
        String::new(),
        "try, from another terminal:".to_owned(),
    ];
    let next = if demo {
        ["taskbell send demo 'steps=12 interval=0.5 cut=5' --follow", "taskbell tasks"]
    } else {
        ["taskbell agent add URL --name NAME", "taskbell send NAME TEXT --follow"]
    };
    lines.extend(next.map(|command| format!("  {}", out.paint(BOLD, command))));
    lines
}

/// From TASKBELL_PASSPHRASE, or asked for where somebody can answer.
fn passphrase() -> Result<Secret, Failure> {
    match taskbell_engine::keychain::passphrase_from_environment() {
        Ok(passphrase) => Ok(passphrase),
        Err(_) if std::io::stdin().is_terminal() => {
            let read = rpassword::prompt_password("Passphrase of the credential file (not shown): ");
            let read = read.map_err(|error| {
                Failure::new("stdin_failed", format!("failed to read the passphrase: {error}"))
            })?;
            if read.is_empty() {
                Err(Failure::usage("an empty passphrase protects nothing"))
            } else {
                Ok(Secret::new(read))
            }
        }
        Err(error) => Err(Failure::new(error.code(), error.to_string())),
    }
}

/// A followed stream is a descriptor, and the usual soft limit is 1024.
fn raise_descriptor_limit() {
    #[cfg(unix)]
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => tracing::debug!(limit, "descriptor limit raised"),
        Err(error) => tracing::warn!(%error, "the descriptor limit could not be raised"),
    }
}
