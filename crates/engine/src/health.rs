//! How the parts of the engine are, in words, with what helps.
//!
//! | question | room |
//! |---|---|
//! | the store, its copies, the keyring, the ports, the public address, the agents | here |
//! | what is round the engine: notices, receivers, descriptors, the clock | `around` |
//! | since when a part is as it is, and how it was before | [`watch`] |
//! | trying everything once | `self_test` |

mod around;
pub(crate) mod self_test;
pub mod watch;

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::api::access::Access;
use crate::api::views::{AgentView, HealthAction, HealthState, LinkView};
use crate::inbox::{Inbox, Standing};
use crate::keychain::{Keychain, KeychainHealth};
use crate::reachability::{ProbeState, ReachState, TunnelState};
use crate::store::notices::NoticeRow;
use crate::store::targets::TargetRow;
use crate::store::{OpenReport, Store};

pub use around::DESCRIPTORS_WANTED;

/// How one part is found when it is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub component: String,
    pub state: HealthState,
    /// One line for people.
    pub detail: String,
    pub fix: Option<String>,
    pub action: Option<HealthAction>,
    /// Since when, where the part itself knows.
    pub since_ms: Option<i64>,
}

impl Finding {
    pub fn new(component: impl Into<String>, state: HealthState, detail: impl Into<String>) -> Self {
        Self {
            component: component.into(),
            state,
            detail: detail.into(),
            fix: None,
            action: None,
            since_ms: None,
        }
    }

    pub(crate) fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }

    fn action(self, label: &str, operation: &str, method: &str, path: &str) -> Self {
        let action = HealthAction {
            label: label.to_owned(),
            operation: operation.to_owned(),
            method: method.to_owned(),
            path: format!("/api/v1/{path}"),
        };
        Self { action: Some(action), ..self }
    }

    fn since(self, since_ms: i64) -> Self {
        Self { since_ms: Some(since_ms), ..self }
    }
}

/// What happened and is remembered for Health alone.
#[derive(Debug, Default)]
pub struct Notes(Mutex<Noted>);

#[derive(Debug, Clone, Default)]
struct Noted {
    /// When the clock jumped last, and how far in milliseconds; back below 0.
    jump: Option<(i64, i64)>,
    backup_fault: Option<String>,
}

impl Notes {
    pub fn note_jump(&self, at_ms: i64, ahead_ms: i64) {
        self.noted().jump = Some((at_ms, ahead_ms));
    }

    /// What came of the last daily copy; none: it is there.
    pub fn note_backup(&self, fault: Option<String>) {
        self.noted().backup_fault = fault;
    }

    fn read(&self) -> Noted {
        self.noted().clone()
    }

    fn noted(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is looked at.
pub struct Subjects<'a> {
    pub store: &'a Store,
    pub opened: &'a OpenReport,
    pub keychain: &'a Keychain,
    pub inbox: &'a Inbox,
    /// None where nothing listens, as in tests of the engine alone.
    pub access: Option<&'a Access>,
    pub reach: ReachState,
    pub agents: &'a [AgentView],
    /// What the store says of these; empty where it cannot be read, of which its own finding tells.
    pub notices: &'a [NoticeRow],
    pub targets: &'a [TargetRow],
    pub notes: &'a Notes,
    /// When the newest copy was made, or why that cannot be told.
    pub backup_ms: Result<Option<i64>, String>,
    /// Why the store cannot be read.
    pub read_fault: Option<String>,
    pub now_ms: i64,
}

impl Subjects<'_> {
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = vec![self.store_found(), self.backup_found(), self.keychain_found()];
        if let Some(access) = self.access {
            found.extend(gateway_found(access, self.now_ms));
        }
        found.extend(self.inbox_found());
        found.extend(reach_found(&self.reach));
        found.extend(self.agents.iter().map(agent_found));
        found.push(around::notices(self.notices));
        found.extend(around::targets(self.targets));
        found.push(around::descriptors());
        found.extend(crate::logs::LOG.look());
        found.push(around::clock(self.notes.read().jump, self.now_ms));
        found.push(Finding::new(
            "version",
            HealthState::Ok,
            concat!("Taskbell ", env!("CARGO_PKG_VERSION"), ", with its page"),
        ));
        found
    }

    fn store_found(&self) -> Finding {
        const NAME: &str = "store";
        let counts = self.store.counts();
        let checked = |finding: Finding| {
            finding.action("Check the database", "check_store", "POST", "health/store/check")
        };
        if let Some(fault) = &self.read_fault {
            let detail = format!("the database cannot be read: {fault}");
            let fix = "start the engine again: a damaged database is set aside and the newest copy restored";
            return checked(Finding::new(NAME, HealthState::Bad, detail).fix(fix));
        }
        match (self.store.fault(), &self.opened.damage) {
            (Some(fault), _) => {
                let detail = format!("nothing was stored the last time it was tried: {fault}");
                let fix = match fault.code() {
                    "disk_full" => "free disk space; what was not stored is read again from the agents",
                    _ => "what was not stored is read again from the agents once it can be",
                };
                checked(Finding::new(NAME, HealthState::Bad, detail).fix(fix))
            }
            (None, Some(damage)) => {
                let aside = damage.moved_to.display();
                let detail = format!("the database was damaged at the start and set aside as {aside}");
                let fix = "look through `taskbell tasks`, and watch what is missing again";
                checked(Finding::new(NAME, HealthState::Warn, detail).fix(fix))
            }
            (None, None) if counts.failed_posts > 0 => {
                let detail = format!("{} changes could not be stored", counts.failed_posts);
                checked(
                    Finding::new(NAME, HealthState::Warn, detail)
                        .fix("free disk space; the tasks are read again"),
                )
            }
            (None, None) => Finding::new(NAME, HealthState::Ok, "the database is open and sound"),
        }
    }

    fn backup_found(&self) -> Finding {
        const NAME: &str = "backup";
        const OLD_MS: i64 = 2 * 86_400_000;
        let fix = |finding: Finding| {
            finding.fix("free disk space and see that the folder backups can be written").action(
                "Copy the store now",
                "back_up_store",
                "POST",
                "health/store/backup",
            )
        };
        match (&self.backup_ms, self.notes.read().backup_fault) {
            (_, Some(fault)) => {
                fix(Finding::new(NAME, HealthState::Warn, format!("the daily copy failed: {fault}")))
            }
            (Err(error), None) => {
                fix(Finding::new(NAME, HealthState::Warn, format!("the copies cannot be listed: {error}")))
            }
            (Ok(None), None) => {
                Finding::new(NAME, HealthState::Ok, "there is no copy yet; one is made each day")
            }
            (Ok(Some(at_ms)), None) if self.now_ms.saturating_sub(*at_ms) > OLD_MS => {
                let at = crate::api::views::UtcTime::from_ms(*at_ms);
                fix(Finding::new(NAME, HealthState::Warn, format!("the newest copy is of {at}")))
            }
            (Ok(Some(at_ms)), None) => {
                let at = crate::api::views::UtcTime::from_ms(*at_ms);
                Finding::new(NAME, HealthState::Ok, format!("the store was copied at {at}"))
            }
        }
    }

    fn keychain_found(&self) -> Finding {
        const NAME: &str = "keyring";
        let found = match self.keychain.health() {
            KeychainHealth::Unknown => {
                Finding::new(NAME, HealthState::Warn, "the keyring has not answered yet")
                    .fix("unlock it if it asks for that")
            }
            KeychainHealth::Kept => {
                return Finding::new(NAME, HealthState::Ok, "the keyring keeps credentials");
            }
            KeychainHealth::SessionOnly => {
                let detail = "credentials are kept in memory and gone when the engine stops";
                return Finding::new(NAME, HealthState::Warn, detail)
                    .fix("start with `--credential-store os` or `file`");
            }
            KeychainHealth::Failing(error) => {
                let fix = "unlock or start the keyring, or start with `--credential-store file`";
                Finding::new(NAME, HealthState::Bad, error.to_string()).fix(fix)
            }
        };
        found.action("Try the keyring again", "probe_keyring", "POST", "health/keyring/probe")
    }

    /// None where this program has no inbox at all.
    fn inbox_found(&self) -> Option<Finding> {
        const NAME: &str = "inbox";
        Some(match self.inbox.standing() {
            Standing::Nowhere => return None,
            Standing::At(address) => {
                let taken = self.inbox.taken();
                let detail = format!("listens for callbacks at {address}; {taken} taken since the start");
                Finding::new(NAME, HealthState::Ok, detail)
            }
            Standing::Taken { told, since } => Finding::new(NAME, HealthState::Bad, told)
                .fix("end that program, or choose another port; it is tried again each 10 s")
                .since(before(self.now_ms, since)),
        })
    }
}

/// The wall clock's time of a moment that is past.
fn before(now_ms: i64, since: Instant) -> i64 {
    now_ms.saturating_sub(i64::try_from(since.elapsed().as_millis()).unwrap_or(0))
}

/// Following goes on without the listener; only the command line, the browser and clients cannot get in.
fn gateway_found(access: &Access, now_ms: i64) -> Vec<Finding> {
    const NAME: &str = "gateway";
    let mut found = Vec::new();
    found.push(match (access.port_taken(), access.address()) {
        (Some(taken), _) => Finding::new(NAME, HealthState::Bad, taken.told)
            .fix("end that program, or choose another port; it is tried again each 10 s")
            .since(before(now_ms, taken.since)),
        (None, Some(address)) => {
            Finding::new(NAME, HealthState::Ok, format!("programs of this machine are served at {address}"))
        }
        (None, None) => Finding::new(NAME, HealthState::Ok, "it is not served over HTTP"),
    });
    // The usual cause is a tunnel set up for the wrong port. Who it was for is a stranger's text and not shown.
    if let Some(noted) = access.misdirected(Instant::now()) {
        let detail = format!("{} requests named another host and were refused", noted.count);
        found.push(
            Finding::new("gateway host", HealthState::Warn, detail)
                .fix("if a tunnel points at this port, point it at the inbox port instead")
                .since(before(now_ms, noted.first)),
        );
    }
    found
}

/// Whether agents elsewhere can call back, and the tunnel where there is one.
fn reach_found(reach: &ReachState) -> Vec<Finding> {
    let mut found = Vec::new();
    let show = |finding: Finding, key: &str| {
        finding.action("Open the setting", "show_setting", "GET", &format!("settings/{key}"))
    };
    match &reach.tunnel {
        TunnelState::Off => (),
        TunnelState::Starting => {
            let detail = "it runs and has not named an address yet";
            let fix = "its command is to print the https address; see the setting tunnel.command";
            found.push(show(Finding::new("tunnel", HealthState::Warn, detail).fix(fix), "tunnel.command"));
        }
        TunnelState::Up => found.push(Finding::new("tunnel", HealthState::Ok, "it runs")),
        TunnelState::Down { detail } => {
            let detail = format!("it ended and is started again ({detail})");
            let fix = "run the command of the setting tunnel.command by hand to see what it says";
            found.push(show(Finding::new("tunnel", HealthState::Bad, detail).fix(fix), "tunnel.command"));
        }
    }
    const NAME: &str = "public address";
    let test = |finding: Finding| {
        finding.action("Test the address", "test_reachability", "POST", "reachability/test")
    };
    found.push(match (&reach.public, &reach.probe) {
        (None, _) => {
            let detail = "there is no public address: agents elsewhere are followed by stream and poll, which is enough";
            let finding = Finding::new(NAME, HealthState::Ok, detail);
            show(finding.fix("for quicker news set public_url or tunnel.command"), "public_url")
        }
        (Some(public), ProbeState::Never) => {
            let detail = format!("{} has not been tested yet", public.url);
            test(Finding::new(NAME, HealthState::Warn, detail).fix("it is tested by itself within a minute"))
        }
        (Some(public), ProbeState::Reached { .. }) => {
            let detail = format!("a callback of our own arrived through {}", public.url);
            Finding::new(NAME, HealthState::Ok, detail)
        }
        (Some(public), ProbeState::Failing { since_ms, detail, .. }) => {
            let detail = format!("callbacks through {} do not arrive: {detail}", public.url);
            let fix = "tasks are followed by stream and poll meanwhile; test with `taskbell push test`";
            test(Finding::new(NAME, HealthState::Bad, detail).fix(fix).since(*since_ms))
        }
    });
    found
}

fn agent_found(agent: &AgentView) -> Finding {
    let name = format!("agent {}", agent.name);
    match agent.link {
        LinkView::Up => {
            Finding::new(name, HealthState::Ok, format!("answers; {} open tasks", agent.open_tasks))
        }
        LinkView::Unknown => Finding::new(name, HealthState::Ok, "not called since the start"),
        LinkView::Down => {
            let detail = format!("cannot be reached; {} open tasks wait for it", agent.open_tasks);
            Finding::new(name, HealthState::Bad, detail)
                .fix(format!("check that it runs, then `taskbell agent test {}`", agent.name))
                .action("Test the agent", "test_agent", "POST", &format!("agents/{}/test", agent.name))
        }
    }
}
