//! The inbox: the one listener that strangers reach, through a tunnel or a reverse proxy.
//!
//! Nothing but `POST /a2a/callbacks/{registration}` answers, and whoever asks proves himself before any of the
//! body is read. A callback is answered with 200 once its row is on the disk; what it claims makes its task due
//! and changes nothing else. No decision is made by an address: through a tunnel every peer is this machine.
//!
//! | question | room |
//! |---|---|
//! | connections: how many, how long, who goes first | [`door`], [`peer`], [`framing`] |
//! | the head of a request | [`head`] |
//! | which registrations there are | [`registry`] |
//! | from a proven head to a stored callback | [`take`] |
//! | what is answered | [`answer`] |
//! | what was refused, counted; tasks made due by it | [`tally`] |
//!
//! There is one route, so there is no router: a request is matched to it exactly.

mod answer;
mod door;
mod framing;
mod head;
mod peer;
mod registry;
mod take;
mod tally;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, watch};

use crate::listen::{Bound, ListenError};
use crate::parts::Parts;
use crate::reachability::ReachState;

pub use door::Limits;
use head::Place;
use registry::Registry;
use tally::Tally;

/// Where the inbox listens if nothing else is asked for.
pub const DEFAULT_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7421);

/// How often a taken port is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// KiB of bodies that are read or being stored at once.
const BODIES_KIB: usize = 64 * 1024;

/// The inbox. Clones share it.
#[derive(Clone)]
pub struct Inbox(Arc<Inner>);

struct Inner {
    parts: Parts,
    registry: Registry,
    tally: Tally,
    place: Mutex<(watch::Receiver<ReachState>, Arc<Place>)>,
    standing: Mutex<Standing>,
    bodies: Semaphore,
    taken: AtomicU64,
}

/// Where the listener stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Not opened.
    Nowhere,
    At(SocketAddr),
    /// Another program has the port: "127.0.0.1:7421 is taken by process 12 (nginx)", since then.
    Taken {
        told: String,
        since: Instant,
    },
}

impl Inbox {
    pub fn new(parts: Parts) -> Self {
        let reach = parts.reach().changes();
        let place = Arc::new(Place::of(&reach.borrow()));
        Self(Arc::new(Inner {
            parts,
            registry: Registry::default(),
            tally: Tally::default(),
            place: Mutex::new((reach, place)),
            standing: Mutex::new(Standing::Nowhere),
            bodies: Semaphore::new(BODIES_KIB),
            taken: AtomicU64::new(0),
        }))
    }

    pub fn standing(&self) -> Standing {
        self.0.standing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where it listens, once it does.
    pub fn address(&self) -> Option<SocketAddr> {
        match self.standing() {
            Standing::At(address) => Some(address),
            Standing::Nowhere | Standing::Taken { .. } => None,
        }
    }

    /// Callbacks answered with 200 since the start.
    pub fn taken(&self) -> u64 {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// The port is ours: from now on agents may be told of it.
    pub(crate) fn stands_at(&self, address: SocketAddr) {
        *self.0.standing.lock().unwrap_or_else(PoisonError::into_inner) = Standing::At(address);
        self.0.parts.reach().set_inbox(Some(address));
    }

    /// For Health, which names the holder.
    pub(crate) fn note_taken(&self, error: &ListenError, now: Instant) {
        let told = error.to_string();
        let mut standing = self.0.standing.lock().unwrap_or_else(PoisonError::into_inner);
        let since = match &*standing {
            Standing::Taken { since, .. } => *since,
            Standing::Nowhere | Standing::At(_) => now,
        };
        *standing = Standing::Taken { told, since };
    }

    /// Under which names we answer, by what is known this moment.
    fn place(&self) -> Arc<Place> {
        let mut place = self.0.place.lock().unwrap_or_else(PoisonError::into_inner);
        let (reach, known) = &mut *place;
        // An error means that nothing will change any more.
        if reach.has_changed().unwrap_or(false) {
            *known = Arc::new(Place::of(&reach.borrow_and_update()));
        }
        Arc::clone(known)
    }

    /// Waits for a port that another program has; `None`: a stop was asked for before it was free.
    pub(crate) async fn wait_for_port(
        &self,
        wanted: SocketAddr,
        mut stop: watch::Receiver<bool>,
    ) -> Option<Bound> {
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return None,
                () = tokio::time::sleep(TRY_AGAIN) => (),
            }
            match Bound::bind(wanted).await {
                Ok(bound) => {
                    self.stands_at(bound.address());
                    tracing::info!(address = %bound.address(), "the inbox's port is free now, and ours");
                    return Some(bound);
                }
                Err(error) => self.note_taken(&error, Instant::now()),
            }
        }
    }

    /// Takes callbacks until `stop` turns true; writes down meanwhile, and at last, what was refused.
    pub async fn run(self, bound: Bound, limits: Limits, stop: watch::Receiver<bool>) {
        let (store, bells) = (self.0.parts.store(), self.0.parts.bells());
        tokio::select! {
            () = self.serve(bound, limits, stop) => (),
            () = self.0.tally.keep(store, bells) => (),
            () = self.0.registry.keep(store) => (),
        }
        if let Err(error) = self.0.tally.write_down(store, bells, true).await {
            tracing::warn!(%error, "what was refused at last is not counted");
        }
    }
}
