//! How the parts of the engine are, in words, with what helps.

use crate::api::views::{AgentView, HealthItem, HealthState, LinkView, UtcTime};
use crate::inbox::{Inbox, Standing};
use crate::keychain::{Keychain, KeychainHealth};
use crate::reachability::{ProbeState, ReachState, TunnelState};
use crate::store::{OpenReport, Store};

/// What is looked at.
pub struct Subjects<'a> {
    pub store: &'a Store,
    pub opened: &'a OpenReport,
    pub keychain: &'a Keychain,
    pub inbox: &'a Inbox,
    pub reach: ReachState,
    pub agents: &'a [AgentView],
    pub started: UtcTime,
}

impl Subjects<'_> {
    pub fn items(&self) -> Vec<HealthItem> {
        let since = self.started;
        let mut items = vec![self.store_item(since), self.keychain_item(since)];
        items.extend(self.inbox_item(since));
        items.extend(reach_items(&self.reach, since));
        items.extend(self.agents.iter().map(|agent| agent_item(agent, since)));
        items
    }

    fn store_item(&self, since: UtcTime) -> HealthItem {
        let counts = self.store.counts();
        let (state, detail, fix) = match (self.store.fault(), &self.opened.damage) {
            (Some(fault), _) => (
                HealthState::Bad,
                format!("nothing was stored the last time it was tried: {fault}"),
                Some("what was not stored is read again from the agents once it can be".to_owned()),
            ),
            (None, Some(damage)) => (
                HealthState::Warn,
                format!(
                    "the database was damaged at the start and set aside as {}",
                    damage.moved_to.display()
                ),
                Some("look through `taskbell tasks`, and watch what is missing again".to_owned()),
            ),
            (None, None) if counts.failed_posts > 0 => (
                HealthState::Warn,
                format!("{} changes could not be stored", counts.failed_posts),
                Some("free disk space; the tasks are read again".to_owned()),
            ),
            (None, None) => (HealthState::Ok, "the database is open and sound".to_owned(), None),
        };
        HealthItem { component: "store".to_owned(), state, since, detail, fix }
    }

    fn keychain_item(&self, since: UtcTime) -> HealthItem {
        let (state, detail, fix) = match self.keychain.health() {
            KeychainHealth::Unknown => {
                (HealthState::Warn, "the keyring has not answered yet".to_owned(), None)
            }
            KeychainHealth::Kept => (HealthState::Ok, "the keyring keeps credentials".to_owned(), None),
            KeychainHealth::SessionOnly => (
                HealthState::Warn,
                "credentials are kept in memory and gone when the engine stops".to_owned(),
                Some("start with `--credential-store os` or `file`".to_owned()),
            ),
            KeychainHealth::Failing(error) => (
                HealthState::Bad,
                error.to_string(),
                Some("unlock or start the keyring, or start with `--credential-store file`".to_owned()),
            ),
        };
        HealthItem { component: "keyring".to_owned(), state, since, detail, fix }
    }

    /// None where this program has no inbox at all.
    fn inbox_item(&self, started: UtcTime) -> Option<HealthItem> {
        let (state, since, detail, fix) = match self.inbox.standing() {
            Standing::Nowhere => return None,
            Standing::At(address) => {
                let taken = self.inbox.taken();
                let detail = format!("listens for callbacks at {address}; {taken} taken since the start");
                (HealthState::Ok, started, detail, None)
            }
            Standing::Taken { told, since } => {
                let fix = "end that program, or choose another port; it is tried again each 10 s".to_owned();
                let ago = i64::try_from(since.elapsed().as_millis()).unwrap_or(0);
                let since = UtcTime::from_ms(crate::store::wall_clock()().saturating_sub(ago));
                (HealthState::Bad, since, told, Some(fix))
            }
        };
        Some(HealthItem { component: "inbox".to_owned(), state, since, detail, fix })
    }
}

/// Whether agents elsewhere can call back, and the tunnel where there is one.
fn reach_items(reach: &ReachState, started: UtcTime) -> Vec<HealthItem> {
    let mut items = Vec::new();
    let tunnel = match &reach.tunnel {
        TunnelState::Off => None,
        TunnelState::Starting => {
            Some((HealthState::Warn, "it runs and has not named an address yet".to_owned()))
        }
        TunnelState::Up => Some((HealthState::Ok, "it runs".to_owned())),
        TunnelState::Down { detail } => {
            Some((HealthState::Bad, format!("it ended and is started again ({detail})")))
        }
    };
    if let Some((state, detail)) = tunnel {
        let fix = (state == HealthState::Bad)
            .then(|| "run the command of the setting tunnel.command by hand to see what it says".to_owned());
        items.push(HealthItem { component: "tunnel".to_owned(), state, since: started, detail, fix });
    }
    let (state, since, detail, fix) = match (&reach.public, &reach.probe) {
        (None, _) => (
            HealthState::Ok,
            started,
            "there is no public address: agents elsewhere are followed by stream and poll, which is enough"
                .to_owned(),
            Some("for quicker news set public_url or tunnel.command".to_owned()),
        ),
        (Some(public), ProbeState::Never) => {
            (HealthState::Warn, started, format!("{} has not been tested yet", public.url), None)
        }
        (Some(public), ProbeState::Reached { at_ms }) => (
            HealthState::Ok,
            UtcTime::from_ms(*at_ms),
            format!("a callback of our own arrived through {}", public.url),
            None,
        ),
        (Some(public), ProbeState::Failing { since_ms, detail, .. }) => (
            HealthState::Bad,
            UtcTime::from_ms(*since_ms),
            format!("callbacks through {} do not arrive: {detail}", public.url),
            Some(
                "tasks are followed by stream and poll meanwhile; test with `taskbell push test`".to_owned(),
            ),
        ),
    };
    items.push(HealthItem { component: "public address".to_owned(), state, since, detail, fix });
    items
}

fn agent_item(agent: &AgentView, since: UtcTime) -> HealthItem {
    let (state, detail, fix) = match agent.link {
        LinkView::Up => (HealthState::Ok, format!("answers; {} open tasks", agent.open_tasks), None),
        LinkView::Unknown => (HealthState::Ok, "not called since the start".to_owned(), None),
        LinkView::Down => (
            HealthState::Bad,
            format!("cannot be reached; {} open tasks wait for it", agent.open_tasks),
            Some(format!("check that it runs, then `taskbell agent test {}`", agent.name)),
        ),
    };
    HealthItem { component: format!("agent {}", agent.name), state, since, detail, fix }
}
