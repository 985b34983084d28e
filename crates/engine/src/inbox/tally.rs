//! What was refused, counted in memory and written down now and then; and tasks made due by what was not kept.
//!
//! A stranger must not make us write: a flood of wrong secrets is one row, some seconds late. What proved itself
//! and could not be taken makes its task due at once, and again until that is stored.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::parts::Bells;
use crate::store::refused::{self, Refusals};
use crate::store::{RegistrationKey, Store, StoreError, callbacks};

/// Between two rounds of making tasks due, and after one that failed.
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_FAILED: Duration = Duration::from_secs(2);
/// How late a count may be.
const COUNTS_EVERY: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Tally {
    open: Mutex<Open>,
    bell: Notify,
}

#[derive(Default)]
struct Open {
    refusals: HashMap<(RegistrationKey, &'static str), (u32, String)>,
    due: HashSet<RegistrationKey>,
    /// Refused of registrations that there are not.
    unknown: u64,
}

impl Tally {
    /// Counts a refusal. `None`: of a registration that there is not.
    pub fn count(&self, registration: Option<RegistrationKey>, reason: &'static str, detail: String) {
        let mut open = self.open();
        match registration {
            Some(key) => {
                let counted = open.refusals.entry((key, reason)).or_default();
                *counted = (counted.0.saturating_add(1), detail);
            }
            None => open.unknown += 1,
        }
        let first = open.refusals.len() == 1;
        drop(open);
        if first {
            self.bell.notify_one();
        }
    }

    /// Makes the registration's task due.
    pub fn make_due(&self, registration: RegistrationKey) {
        self.open().due.insert(registration);
        self.bell.notify_one();
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what comes, for as long as it is polled. What is left is for [`Self::write_down`].
    pub async fn keep(&self, store: &Store, bells: &Bells) {
        let mut counted = Instant::now();
        loop {
            tokio::select! {
                () = self.bell.notified() => (),
                () = tokio::time::sleep(COUNTS_EVERY) => (),
            }
            let counts = counted.elapsed() >= COUNTS_EVERY;
            let pause = match self.write_down(store, bells, counts).await {
                Ok(()) => PAUSE,
                Err(error) => {
                    tracing::warn!(%error, "what was refused at the inbox could not be written down yet");
                    PAUSE_FAILED
                }
            };
            if counts {
                counted = Instant::now();
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Makes tasks due, and with `counts` adds to the counts of refusals.
    pub async fn write_down(&self, store: &Store, bells: &Bells, counts: bool) -> Result<(), StoreError> {
        let (due, refusals, unknown) = {
            let mut open = self.open();
            let due: Vec<RegistrationKey> = open.due.drain().collect();
            let (refusals, unknown) = match counts {
                true => (std::mem::take(&mut open.refusals), std::mem::take(&mut open.unknown)),
                false => (HashMap::new(), 0),
            };
            (due, refusals, unknown)
        };
        if unknown > 0 {
            tracing::info!(unknown, "callbacks for addresses that are not ours were refused");
        }
        if due.is_empty() && refusals.is_empty() {
            return Ok(());
        }
        let (wanted, counted) = (due.clone(), refusals.clone());
        let written = store.write(move |context| {
            for ((registration, reason), (count, detail)) in counted {
                refused::count(context, &Refusals { registration, reason, count, detail })?;
            }
            let mut tasks = Vec::new();
            for registration in wanted {
                match callbacks::poke(context, registration) {
                    Ok(task) => tasks.extend(task),
                    Err(StoreError::Missing { .. }) => (), // Gone with its task.
                    Err(error) => return Err(error),
                }
            }
            Ok(tasks)
        });
        match written.await {
            Ok(tasks) => {
                for task in tasks {
                    bells.ring_due(task);
                }
                Ok(())
            }
            Err(error) => {
                let mut open = self.open();
                open.due.extend(due);
                for (key, (count, detail)) in refusals {
                    let counted = open.refusals.entry(key).or_insert((0, detail));
                    counted.0 = counted.0.saturating_add(count);
                }
                drop(open);
                self.bell.notify_one();
                Err(error)
            }
        }
    }
}
