//! The registrations there are, at hand: a stranger's request costs no look into the database.
//!
//! Rows that changed since the last look are read before a request is judged, so whoever has written a
//! registration may hand out its address at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use taskbell_core::callback::{Registered, RegistrationPath};
use taskbell_core::ids::TaskId;

use crate::rate::Bucket;
use crate::store::registrations::{self, InboxRow, RegistrationState};
use crate::store::{RegistrationKey, Store, StoreError};

/// Callbacks a second that are taken of one registration, and how many at once.
const PER_SECOND: u32 = 50;
const BURST: u32 = 200;

/// A registration takes some 400 octets; those that are gone need not stay for long.
const REBUILT_EVERY: Duration = Duration::from_secs(3_600);

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

    /// Reads all again now and then.
    pub async fn keep(&self, store: &Store) {
        loop {
            tokio::time::sleep(REBUILT_EVERY).await;
            if let Err(error) = self.rebuild(store).await {
                tracing::warn!(%error, "the registrations could not be read again");
            }
        }
    }

    /// Reads all of them again: what was deleted with its task leaves no news behind.
    pub async fn rebuild(&self, store: &Store) -> Result<(), StoreError> {
        let mut last_row = self.last_row.lock().await;
        let revision = store.registrations_revision();
        let rows = store.read(|connection| registrations::inbox_rows(connection, 0)).await?;
        let now = Instant::now();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut earlier = std::mem::take(&mut *known);
        for row in rows {
            *last_row = (*last_row).max(row.revision);
            let bucket = earlier.remove(&row.path).map(|earlier| Arc::clone(&earlier.bucket));
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

#[cfg(test)]
mod tests {
    use taskbell_core::callback::{Digest, ProofPolicy};

    use super::*;
    use crate::store::registrations::{NewRegistration, Purpose};
    use crate::store::{WriteContext, wall_clock};

    fn path(number: u8) -> RegistrationPath {
        RegistrationPath::of_random([number; 26])
    }

    fn insert(context: &mut WriteContext<'_>, number: u8) -> Result<RegistrationKey, StoreError> {
        let path = path(number);
        let new = NewRegistration {
            path: &path,
            purpose: Purpose::SelfTest,
            agent: None,
            task: None,
            config_id: "c",
            url: "http://127.0.0.1/",
            policy: ProofPolicy::Any,
            key_version: 1,
            token: Some(Digest::of(b"t")),
            credential: None,
        };
        registrations::insert(context, &new)
    }

    #[tokio::test]
    async fn what_was_written_is_known_at_the_next_look_and_what_was_deleted_after_a_rebuild() {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(folder.path(), wall_clock()).unwrap();
        let registry = Registry::default();
        let first = store.write(|context| insert(context, 1)).await.unwrap();
        registry.refresh(&store).await.unwrap();
        assert_eq!(registry.find(&path(1)).unwrap().key, first);
        assert!(registry.find(&path(2)).is_none());
        store.write(|context| insert(context, 2)).await.unwrap();
        store.write(move |context| registrations::set_removed(context, first)).await.unwrap();
        let bucket = Arc::clone(&registry.find(&path(1)).unwrap().bucket);
        registry.refresh(&store).await.unwrap();
        assert!(registry.find(&path(2)).is_some());
        let removed = registry.find(&path(1)).unwrap();
        assert_eq!(removed.state, RegistrationState::Removed);
        assert!(Arc::ptr_eq(&removed.bucket, &bucket), "a change gives nobody a new allowance");
        store.write(move |context| registrations::delete(context, first)).await.unwrap();
        registry.rebuild(&store).await.unwrap();
        assert!(registry.find(&path(1)).is_none() && registry.find(&path(2)).is_some());
    }
}
