//! Who may call: the token of this run, sign-in links for a browser, and the sessions they become.
//!
//! Only digests are kept, compared in constant time. Nothing here outlives the process.

use std::collections::VecDeque;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use taskbell_core::credential::Secret;

use super::proof;
use crate::rate::Bucket;

/// How long a sign-in link is good.
pub const NONCE_LASTS: Duration = Duration::from_secs(60);

/// Links not used yet; an older one gives way.
const MAX_NONCES: usize = 64;

/// Browsers signed in; the oldest is signed out.
const MAX_SESSIONS: usize = 64;

type Sha = [u8; 32];

/// What guards the API of one run.
pub struct Access {
    token: Secret,
    token_digest: Sha,
    /// Set once the listener has its port; the hosts that name us follow from it.
    port: OnceLock<u16>,
    logins: Mutex<Logins>,
    misdirected: Mutex<Option<Misdirected>>,
    port_taken: Mutex<Option<PortTaken>>,
    pub(super) by_token: Bucket,
    pub(super) by_session: Bucket,
    pub(super) unknown: Bucket,
}

/// Why the listener is not there: another program has its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortTaken {
    /// "127.0.0.1:7420 is taken by process 12 (nginx)"
    pub told: String,
    pub since: Instant,
}

/// Requests for a host that is not ours: a tunnel that points at this port, or a page that tries to get in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Misdirected {
    pub count: u64,
    pub first: Instant,
    pub last: Instant,
}

/// After this long without another, it counts as mended.
const MISDIRECTED_LASTS: Duration = Duration::from_secs(600);

/// Proved by what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    Token,
    Session,
}

impl Access {
    /// The token of this run. The port is told later, with [`Self::set_port`].
    pub fn new(token: Secret) -> Self {
        let now = Instant::now();
        Self {
            token_digest: digest(token.expose()),
            token,
            port: OnceLock::new(),
            logins: Mutex::new(Logins::default()),
            misdirected: Mutex::new(None),
            port_taken: Mutex::new(None),
            by_token: Bucket::new(2_000, 4_000, now),
            by_session: Bucket::new(2_000, 4_000, now),
            unknown: Bucket::new(500, 1_000, now),
        }
    }

    /// Tells the port once it is bound. Until then nobody is let in by HTTP.
    pub fn set_port(&self, port: u16) {
        // A listener that is bound again has the port it had.
        let _ = self.port.set(port);
        *self.port_taken.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Notes that another program has the port, in words that name it.
    pub fn note_port_taken(&self, told: String, now: Instant) {
        let mut taken = self.port_taken.lock().unwrap_or_else(PoisonError::into_inner);
        let since = taken.as_ref().map_or(now, |earlier| earlier.since);
        *taken = Some(PortTaken { told, since });
    }

    /// Who has the port instead of us, as long as that is so.
    pub(crate) fn port_taken(&self) -> Option<PortTaken> {
        self.port_taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn port(&self) -> Option<u16> {
        self.port.get().copied()
    }

    /// `http://127.0.0.1:7420`: literally, since `localhost` may lead to another program on `[::1]`.
    pub(crate) fn address(&self) -> Option<String> {
        self.port().map(|port| format!("http://127.0.0.1:{port}"))
    }

    pub(super) fn note_misdirected(&self, now: Instant) {
        let mut noted = self.misdirected.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = noted.filter(|earlier| is_recent(earlier, now));
        let (count, first) = earlier.map_or((0, now), |earlier| (earlier.count, earlier.first));
        *noted = Some(Misdirected { count: count + 1, first, last: now });
    }

    /// What came for other hosts, where some came lately.
    pub(crate) fn misdirected(&self, now: Instant) -> Option<Misdirected> {
        let noted = *self.misdirected.lock().unwrap_or_else(PoisonError::into_inner);
        noted.filter(|noted| is_recent(noted, now))
    }

    /// The answer to a challenge.
    pub(crate) fn prove(&self, challenge: &str) -> String {
        proof::prove(&self.token, challenge)
    }

    pub(super) fn is_token(&self, given: &str) -> bool {
        digest(given).ct_eq(&self.token_digest).into()
    }

    pub(super) fn is_session(&self, given: &str) -> bool {
        self.logins().is_session(&digest(given))
    }

    /// A new nonce for a sign-in link, good once and for [`NONCE_LASTS`].
    pub(super) fn new_nonce(&self, now: Instant) -> Result<String, getrandom::Error> {
        let nonce = proof::random_text()?;
        self.logins().add_nonce(digest(&nonce), now);
        Ok(nonce)
    }

    /// Turns a nonce into a session; `None`: unknown, used or too old.
    pub(super) fn log_in(&self, nonce: &str, now: Instant) -> Result<Option<String>, getrandom::Error> {
        let session = proof::random_text()?;
        let taken = self.logins().take_nonce(&digest(nonce), digest(&session), now);
        Ok(taken.then_some(session))
    }

    fn logins(&self) -> std::sync::MutexGuard<'_, Logins> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_recent(noted: &Misdirected, now: Instant) -> bool {
    now.saturating_duration_since(noted.last) < MISDIRECTED_LASTS
}

fn digest(text: &str) -> Sha {
    Sha256::digest(text).into()
}

/// Nonces and sessions by their digests.
#[derive(Default)]
struct Logins {
    nonces: VecDeque<(Sha, Instant)>,
    sessions: VecDeque<Sha>,
}

impl Logins {
    fn add_nonce(&mut self, nonce: Sha, now: Instant) {
        self.forget_old(now);
        if self.nonces.len() == MAX_NONCES {
            self.nonces.pop_front();
        }
        self.nonces.push_back((nonce, now));
    }

    fn take_nonce(&mut self, nonce: &Sha, session: Sha, now: Instant) -> bool {
        self.forget_old(now);
        let Some(place) = self.nonces.iter().position(|(known, _)| bool::from(known.ct_eq(nonce))) else {
            return false;
        };
        self.nonces.remove(place);
        if self.sessions.len() == MAX_SESSIONS {
            self.sessions.pop_front();
        }
        self.sessions.push_back(session);
        true
    }

    fn is_session(&self, session: &Sha) -> bool {
        self.sessions.iter().fold(false, |found, known| found | bool::from(known.ct_eq(session)))
    }

    fn forget_old(&mut self, now: Instant) {
        self.nonces.retain(|(_, made)| now.saturating_duration_since(*made) < NONCE_LASTS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        Access::new(Secret::new("t"))
    }

    #[test]
    fn a_nonce_is_good_once() {
        let (access, now) = (access(), Instant::now());
        let nonce = access.new_nonce(now).unwrap();
        let session = access.log_in(&nonce, now).unwrap().unwrap();
        assert!(access.is_session(&session));
        assert_eq!(access.log_in(&nonce, now).unwrap(), None, "a link that was seen is of no use to others");
        assert!(access.is_session(&session), "the one who came first stays in");
    }

    #[test]
    fn a_nonce_is_good_for_a_minute() {
        let (access, now) = (access(), Instant::now());
        let early = access.new_nonce(now).unwrap();
        let late = access.new_nonce(now).unwrap();
        assert!(access.log_in(&early, now + NONCE_LASTS - Duration::from_millis(1)).unwrap().is_some());
        assert_eq!(access.log_in(&late, now + NONCE_LASTS).unwrap(), None);
    }

    #[test]
    fn neither_nonce_nor_token_is_a_session() {
        let (access, now) = (access(), Instant::now());
        let nonce = access.new_nonce(now).unwrap();
        assert!(!access.is_session(&nonce) && !access.is_session("t") && !access.is_session(""));
        assert!(access.is_token("t") && !access.is_token("") && !access.is_token("t "));
    }

    #[test]
    fn links_and_sessions_do_not_pile_up() {
        let (access, now) = (access(), Instant::now());
        let mut sessions = Vec::new();
        for _ in 0..MAX_SESSIONS + 1 {
            let nonce = access.new_nonce(now).unwrap();
            sessions.push(access.log_in(&nonce, now).unwrap().unwrap());
        }
        assert!(!access.is_session(&sessions[0]) && access.is_session(&sessions[MAX_SESSIONS]));
        let first = access.new_nonce(now).unwrap();
        for _ in 0..MAX_NONCES {
            access.new_nonce(now).unwrap();
        }
        assert_eq!(access.log_in(&first, now).unwrap(), None);
    }

    #[test]
    fn wrong_hosts_are_counted_until_none_comes_for_a_while() {
        let (access, now) = (access(), Instant::now());
        assert_eq!(access.misdirected(now), None);
        access.note_misdirected(now);
        let later = now + Duration::from_secs(60);
        access.note_misdirected(later);
        let noted = access.misdirected(later).unwrap();
        assert_eq!((noted.count, noted.first, noted.last), (2, now, later));
        let mended = later + MISDIRECTED_LASTS;
        assert_eq!(access.misdirected(mended), None);
        access.note_misdirected(mended);
        assert_eq!(access.misdirected(mended).unwrap().count, 1, "a new case, counted anew");
    }
}
