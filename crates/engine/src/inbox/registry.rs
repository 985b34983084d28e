//! The registrations there are, at hand: a stranger's request costs no look into the database.
//!
//! Rows that changed since the last look are read before a request is judged, so whoever has written a
//! registration may hand out its address at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use taskbell_core::callback::{Registered, RegistrationPath};
use taskbell_core::ids::TaskId;

use crate::rate::Bucket;
use crate::store::registrations::{self, InboxRow, RegistrationState};
use crate::store::{RegistrationKey, Store, StoreError};

/// Callbacks a second that are taken of one registration, and how many at once.
const PER_SECOND: u32 = 50;
const BURST: u32 = 200;

#[derive(Default)]
pub(super) struct Registry {
    /// The store's revision that the map is of, one up; 0 before the first look.
    seen: AtomicU64,
    /// The highest revision of a row.
    last_row: tokio::sync::Mutex<i64>,
    known: RwLock<HashMap<RegistrationPath, Arc<Registration>>>,
}

/// What decides about a callback.
pub(super) struct Registration {
    pub key: RegistrationKey,
    /// `None`: not known yet, or any (for our own tests).
    pub task_id: Option<TaskId>,
    pub proof: Registered,
    pub state: RegistrationState,
    answers_until_ms: Option<i64>,
    pub bucket: Arc<Bucket>,
}

impl Registration {
    /// It has ended so long ago that it is as unknown.
    pub fn is_over(&self, now_ms: i64) -> bool {
        self.state == RegistrationState::Ended && self.answers_until_ms.is_none_or(|until| now_ms >= until)
    }
}

impl Registry {
    /// Reads what changed since the last look.
    pub async fn refresh(&self, store: &Store) -> Result<(), StoreError> {
        if self.seen.load(Ordering::Acquire) == store.registrations_revision() + 1 {
            return Ok(());
        }
        let mut last_row = self.last_row.lock().await;
        let revision = store.registrations_revision();
        if self.seen.load(Ordering::Acquire) == revision + 1 {
            return Ok(());
        }
        let after = *last_row;
        let rows = store.read(move |connection| registrations::inbox_rows(connection, after)).await?;
        let now = Instant::now();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            *last_row = (*last_row).max(row.revision);
            let bucket = known.get(&row.path).map(|earlier| Arc::clone(&earlier.bucket));
            let bucket = bucket.unwrap_or_else(|| Arc::new(Bucket::new(PER_SECOND, BURST, now)));
            let (path, registration) = registration(row, bucket);
            known.insert(path, Arc::new(registration));
        }
        drop(known);
        self.seen.store(revision + 1, Ordering::Release);
        Ok(())
    }

    pub fn find(&self, path: &RegistrationPath) -> Option<Arc<Registration>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    /// Its row is gone, with its task.
    pub fn forget(&self, path: &RegistrationPath) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).remove(path);
    }
}

fn registration(row: InboxRow, bucket: Arc<Bucket>) -> (RegistrationPath, Registration) {
    let registration = Registration {
        key: row.key,
        task_id: row.task_id,
        proof: row.proof,
        state: row.state,
        answers_until_ms: row.answers_until_ms,
        bucket,
    };
    (row.path, registration)
}
