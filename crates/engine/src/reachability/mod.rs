//! Where agents reach the inbox: this machine's own address, and a public one where there is one.
//!
//! What is known is kept in [`Reach`], which every worker reads and the few that learn something write. Without
//! a public address everything works by stream and poll; push only makes it quicker.

pub mod self_test;
pub mod tunnel;

use std::net::SocketAddr;
use std::sync::Arc;

use taskbell_core::public_url::PublicUrl;
use tokio::sync::watch;

/// What is known of our addresses. Clones share it.
#[derive(Clone)]
pub struct Reach(Arc<watch::Sender<ReachState>>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReachState {
    /// Where the inbox listens; none while another program has its port.
    pub inbox: Option<SocketAddr>,
    /// The first of the known ones.
    pub public: Option<PublicAddress>,
    /// By source, in their order.
    pub(crate) known: [Option<PublicUrl>; 3],
    pub tunnel: TunnelState,
    pub probe: ProbeState,
}

/// The address that agents elsewhere are given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicAddress {
    pub url: PublicUrl,
    pub source: AddressSource,
}

/// Who said so. The earlier one counts where there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressSource {
    /// `serve --public-url`.
    Start,
    /// The setting `public_url`.
    Setting,
    /// The tunnel's own words.
    Tunnel,
}

impl AddressSource {
    const ALL: [Self; 3] = [Self::Start, Self::Setting, Self::Tunnel];

    pub fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Setting => "setting",
            Self::Tunnel => "tunnel",
        }
    }
}

/// The tunnel program, where one is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TunnelState {
    #[default]
    Off,
    /// It runs and has not named an address yet.
    Starting,
    Up,
    /// It ended, and is started again.
    Down {
        detail: String,
    },
}

/// What the last test through the public address found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProbeState {
    #[default]
    Never,
    Reached {
        at_ms: i64,
    },
    Failing {
        since_ms: i64,
        code: &'static str,
        detail: String,
    },
}

impl Default for Reach {
    fn default() -> Self {
        Self(Arc::new(watch::channel(ReachState::default()).0))
    }
}

impl Reach {
    pub fn state(&self) -> ReachState {
        self.0.borrow().clone()
    }

    pub fn changes(&self) -> watch::Receiver<ReachState> {
        self.0.subscribe()
    }

    /// Where the inbox listens, or that it listens nowhere.
    pub fn set_inbox(&self, inbox: Option<SocketAddr>) {
        self.change(|state| state.inbox = inbox);
    }

    /// What a source says of the public address. The last address of a tunnel stays until it has another.
    pub fn set_source(&self, source: AddressSource, url: Option<PublicUrl>) {
        self.change(|state| {
            if let Some(known) = state.known.get_mut(source as usize) {
                *known = url;
            }
            state.public = AddressSource::ALL.into_iter().find_map(|source| {
                let url = state.known.get(source as usize)?.clone()?;
                Some(PublicAddress { url, source })
            });
        });
    }

    /// Whether an address is known that counts before this source's.
    pub fn has_source_before(&self, source: AddressSource) -> bool {
        self.0.borrow().known.iter().take(source as usize).any(Option::is_some)
    }

    /// The public host as requests name it: the inbox answers to it beside its own address.
    pub fn public_authority(&self) -> Option<String> {
        self.0.borrow().public.as_ref().map(|public| public.url.authority())
    }

    /// What an agent is given: the inbox itself on this machine, the public address elsewhere.
    pub fn address_for(&self, agent_is_local: bool) -> Option<PublicUrl> {
        let state = self.0.borrow();
        match (agent_is_local, state.inbox, &state.public) {
            (true, Some(inbox), _) => Some(PublicUrl::local(inbox)),
            (false, _, Some(public)) => Some(public.url.clone()),
            (true, None, _) | (false, _, None) => None,
        }
    }

    /// Whether callbacks of such an agent are known to arrive here, or not known to fail.
    pub fn is_well(&self, agent_is_local: bool) -> bool {
        let state = self.0.borrow();
        let of_tunnel = state.public.as_ref().is_some_and(|public| public.source == AddressSource::Tunnel);
        let tunnel_is_up = !of_tunnel || state.tunnel == TunnelState::Up;
        let is_reached = !matches!(state.probe, ProbeState::Failing { .. }) && tunnel_is_up;
        state.inbox.is_some() && (agent_is_local || is_reached)
    }

    /// Nobody is woken where nothing is different.
    pub(crate) fn change(&self, change: impl FnOnce(&mut ReachState)) {
        self.0.send_if_modified(|state| {
            let before = state.clone();
            change(state);
            *state != before
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_on_this_machine_gets_the_inbox_and_another_the_public_address() {
        let reach = Reach::default();
        assert_eq!(reach.address_for(true), None);
        reach.set_inbox(Some("127.0.0.1:7421".parse().unwrap()));
        assert_eq!(reach.address_for(true).unwrap().to_string(), "http://127.0.0.1:7421");
        assert_eq!(reach.address_for(false), None, "loopback is of no use to an agent elsewhere");
        let url = "https://h.example/tb".parse().unwrap();
        reach.set_source(AddressSource::Setting, Some(url));
        assert_eq!(reach.address_for(false).unwrap().to_string(), "https://h.example/tb");
        assert_eq!(reach.public_authority().as_deref(), Some("h.example"));
    }

    #[test]
    fn an_address_given_at_the_start_counts_before_a_setting_and_a_setting_before_a_tunnel() {
        let reach = Reach::default();
        let public = |reach: &Reach| reach.state().public.map(|public| public.url.to_string());
        reach.set_source(AddressSource::Tunnel, Some("https://tunnel.example".parse().unwrap()));
        assert_eq!(public(&reach).as_deref(), Some("https://tunnel.example"));
        reach.set_source(AddressSource::Setting, Some("https://set.example".parse().unwrap()));
        reach.set_source(AddressSource::Start, Some("https://start.example".parse().unwrap()));
        assert_eq!(public(&reach).as_deref(), Some("https://start.example"));
        reach.set_source(AddressSource::Start, None);
        assert_eq!(public(&reach).as_deref(), Some("https://set.example"));
        assert!(reach.has_source_before(AddressSource::Tunnel));
    }

    #[test]
    fn only_what_is_different_wakes_anybody() {
        let reach = Reach::default();
        let mut changes = reach.changes();
        changes.mark_unchanged();
        reach.set_inbox(None);
        assert!(!changes.has_changed().unwrap());
        reach.set_inbox(Some("127.0.0.1:1".parse().unwrap()));
        assert!(changes.has_changed().unwrap());
    }
}
