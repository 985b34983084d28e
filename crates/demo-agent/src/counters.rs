//! What a test wants to know of the agent's side: how often it was asked, and who listens.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Sends are counted for this many message ids; later ones are not told apart any more.
const MAX_MESSAGE_IDS: usize = 100_000;

#[derive(Default)]
pub struct Counters {
    sends: Mutex<HashMap<String, u64>>,
    subscribes: AtomicU64,
    gets: AtomicU64,
    open_streams: AtomicUsize,
    streams: AtomicU64,
}

impl Counters {
    /// How often a message of this id was sent: more than 1 is a duplicate.
    pub fn sends(&self, message_id: &str) -> u64 {
        let sends = self.sends.lock().unwrap_or_else(PoisonError::into_inner);
        sends.get(message_id).copied().unwrap_or_default()
    }

    /// Sends of every message id together.
    pub fn all_sends(&self) -> u64 {
        self.sends.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    /// Calls of `tasks/resubscribe` and `SubscribeToTask`, refused ones included.
    pub fn subscribes(&self) -> u64 {
        self.subscribes.load(Ordering::Relaxed)
    }

    /// Calls of `tasks/get` and `GetTask`, refused ones included.
    pub fn gets(&self) -> u64 {
        self.gets.load(Ordering::Relaxed)
    }

    /// Event streams open now.
    pub fn open_streams(&self) -> usize {
        self.open_streams.load(Ordering::Relaxed)
    }

    /// Event streams ever opened.
    pub fn streams(&self) -> u64 {
        self.streams.load(Ordering::Relaxed)
    }

    pub(crate) fn count_send(&self, message_id: &str) {
        let mut sends = self.sends.lock().unwrap_or_else(PoisonError::into_inner);
        if sends.len() < MAX_MESSAGE_IDS || sends.contains_key(message_id) {
            *sends.entry(message_id.to_owned()).or_default() += 1;
        }
    }

    pub(crate) fn count_subscribe(&self) {
        self.subscribes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_get(&self) {
        self.gets.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts one open stream until it is dropped.
pub struct OpenStream(Arc<Counters>);

impl OpenStream {
    pub fn new(counters: &Arc<Counters>) -> Self {
        counters.open_streams.fetch_add(1, Ordering::Relaxed);
        counters.streams.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(counters))
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.open_streams.fetch_sub(1, Ordering::Relaxed);
    }
}
