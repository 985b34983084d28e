//! Reads the tasks that callbacks made due: one read of a task at a time, and again while there is something newer
//! than the last one.
//!
//! Level-triggered: the commit of a callback raises its task's number, and only the transaction that applies a
//! read which began after it takes it down again. A ring is a hint; what a killed engine left due is found in the
//! rows at the start, and now and then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use taskbell_core::follow::ReadFailure;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

use crate::agents::{Agent, READS_AT_ONCE};
use crate::link::LinkState;
use crate::parts::Parts;
use crate::reconciler::{ReconcileVerdict, Reconciler};
use crate::rehearsal::{self, Place};
use crate::store::callbacks::Due;
use crate::store::tasks::{self, Channel, TaskRow};
use crate::store::verdicts::{self, Waiting};
use crate::store::{StoreError, TaskKey, callbacks};

/// Between the starts of two reads of a task: whatever comes meanwhile is told by one.
const COALESCE: Duration = Duration::from_millis(200);
/// The same where nothing came but repeats of what has its verdict. A worker is kept for so long.
const COALESCE_REPEATS: Duration = Duration::from_secs(5);
/// A claim ahead of its task is held against it once more: some agents call back before they store.
const LOOK_AGAIN: Duration = Duration::from_secs(3);
/// After a read that failed for another reason than an outage; doubles up to the second.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// A task whose agent refuses our credential is tried again by itself.
const SIGN_IN_RETRY: Duration = Duration::from_secs(300);
/// Every so often the rows are looked at even if nothing rang.
const LOOK: Duration = Duration::from_secs(30);
/// Reads at once over all agents; each agent has its own limit as well.
const AT_ONCE: usize = 4 * READS_AT_ONCE;

type Bells = Arc<Mutex<HashMap<TaskKey, Arc<Notify>>>>;

/// Starts a small worker for each task that is due, which leaves when it is not any more.
pub struct DueReads {
    parts: Parts,
    reconciler: Reconciler,
    places: Arc<Semaphore>,
    /// Of the workers there are.
    bells: Bells,
    workers: tokio::task::JoinSet<()>,
}

impl DueReads {
    pub fn new(parts: Parts, reconciler: Reconciler) -> Self {
        Self {
            parts,
            reconciler,
            places: Arc::new(Semaphore::new(AT_ONCE)),
            bells: Bells::default(),
            workers: tokio::task::JoinSet::new(),
        }
    }

    /// Runs for ever. Its workers end with it.
    pub async fn run(mut self) {
        match self.parts.store().read(verdicts::tasks_with_open_claims).await {
            Ok(keys) => keys.into_iter().for_each(|key| self.parts.bells().due.watch(key)),
            Err(error) => tracing::warn!(%error, "failed to look up which claims are open"),
        }
        loop {
            if let Err(error) = self.ring_for_rows().await {
                tracing::warn!(%error, "failed to look up which tasks are due");
            }
            let next_look = Instant::now() + LOOK;
            while let Ok(rung) = tokio::time::timeout_at(next_look, self.parts.bells().due.rung()).await {
                for key in rung {
                    self.ring(key);
                }
                while self.workers.try_join_next().is_some() {}
            }
        }
    }

    async fn ring_for_rows(&self) -> Result<(), StoreError> {
        for key in self.parts.store().read(callbacks::due_tasks).await? {
            self.parts.bells().ring_due(key);
        }
        Ok(())
    }

    fn ring(&mut self, key: TaskKey) {
        let mut bells = lock(&self.bells);
        if let Some(bell) = bells.get(&key) {
            bell.notify_one();
            return;
        }
        let bell = Arc::new(Notify::new());
        bells.insert(key, Arc::clone(&bell));
        drop(bells);
        let worker = Worker {
            parts: self.parts.clone(),
            reconciler: self.reconciler.clone(),
            places: Arc::clone(&self.places),
            key,
            bell,
            last_read: None,
            failures: 0,
            look_again: None,
            looked_again: false,
        };
        let bells = Arc::clone(&self.bells);
        self.workers.spawn(worker.run(bells));
    }
}

fn lock(bells: &Bells) -> std::sync::MutexGuard<'_, HashMap<TaskKey, Arc<Notify>>> {
    bells.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads one task while it is due.
struct Worker {
    parts: Parts,
    reconciler: Reconciler,
    places: Arc<Semaphore>,
    key: TaskKey,
    bell: Arc<Notify>,
    last_read: Option<Instant>,
    failures: u32,
    /// When to hold a claim ahead of its task against it once more.
    look_again: Option<Instant>,
    looked_again: bool,
}

/// What there is to do.
enum Step {
    Read,
    /// Something is known to be due then; rings change nothing.
    SleepUntil(Instant),
    /// Until then, or a ring.
    WaitUntil(Instant),
    /// Nothing, unless somebody rings by then.
    LeaveAt(Instant),
}

impl Worker {
    async fn run(mut self, bells: Bells) {
        loop {
            match self.step().await {
                Ok(Some(Step::Read)) => match self.read().await {
                    Ok(pause) => tokio::time::sleep(pause).await,
                    Err(error) => {
                        tracing::warn!(%error, "a task that is due was not read");
                        tokio::time::sleep(RETRY_MIN).await;
                    }
                },
                Ok(Some(Step::SleepUntil(at))) => sleep_until(at).await,
                Ok(Some(Step::WaitUntil(at))) => {
                    let _ = tokio::time::timeout_at(at, self.bell.notified()).await;
                }
                Ok(Some(Step::LeaveAt(at))) => {
                    if tokio::time::timeout_at(at, self.bell.notified()).await.is_ok() {
                        continue;
                    }
                    let mut bells = lock(&bells);
                    // Rung since, under this lock or before it?
                    if self.bell.notified().now_or_never().is_none() {
                        bells.remove(&self.key);
                        return;
                    }
                }
                // The task is gone.
                Ok(None) => {
                    lock(&bells).remove(&self.key);
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "a task that may be due could not be looked up");
                    tokio::time::sleep(RETRY_MIN).await;
                }
            }
        }
    }

    async fn rows(&self) -> Result<Option<(TaskRow, Due, Waiting)>, StoreError> {
        let key = self.key;
        let rows = self.parts.store().read(move |connection| {
            let row = tasks::get(connection, key)?;
            Ok((row, callbacks::due(connection, key)?, verdicts::waiting(connection, key)?))
        });
        match rows.await {
            Ok(rows) => Ok(Some(rows)),
            Err(StoreError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn step(&mut self) -> Result<Option<Step>, StoreError> {
        let Some((_, due, waiting)) = self.rows().await? else { return Ok(None) };
        let now = Instant::now();
        let after = |pause: Duration| self.last_read.map_or(now, |read| read + pause);
        if due.is_due() {
            let at = after(if waiting.first_verdict { COALESCE } else { COALESCE_REPEATS });
            return Ok(Some(if at <= now {
                Step::Read
            } else if waiting.first_verdict {
                Step::SleepUntil(at)
            } else {
                Step::WaitUntil(at)
            }));
        }
        self.failures = 0;
        match self.look_again {
            Some(_) if !waiting.ahead => self.look_again = None,
            Some(at) if at <= now => {
                self.looked_again = true;
                self.look_again = None;
                return Ok(Some(Step::Read));
            }
            Some(at) => return Ok(Some(Step::WaitUntil(at))),
            None => {}
        }
        Ok(Some(Step::LeaveAt(after(COALESCE_REPEATS).max(now))))
    }

    /// One read; how long to pause before the next look.
    async fn read(&mut self) -> Result<Duration, StoreError> {
        let Some((row, due, _)) = self.rows().await? else { return Ok(Duration::ZERO) };
        let key = self.key;
        let Some(agent) = self.parts.agents().get(row.agent_key) else {
            self.parts.store().write(move |context| verdicts::set_unreachable(context, key)).await?;
            return Ok(LOOK);
        };
        if agent.link.state() == LinkState::Down {
            self.wait_for_link(&agent).await?;
            return Ok(Duration::ZERO);
        }
        let found = {
            let _place = self.places.acquire().await;
            self.last_read = Some(Instant::now());
            rehearsal::reach(Place::BeforeRead);
            self.reconciler.reconcile_one(row, Channel::Push).await
        };
        match found.verdict {
            ReconcileVerdict::Unchanged | ReconcileVerdict::Changed => {
                self.failures = 0;
                let waiting =
                    self.parts.store().read(move |connection| verdicts::waiting(connection, key)).await?;
                if waiting.ahead && !self.looked_again {
                    self.look_again = Some(Instant::now() + LOOK_AGAIN);
                }
                Ok(Duration::ZERO)
            }
            ReconcileVerdict::Lost | ReconcileVerdict::WrongIdentity => {
                let dirty = due.dirty;
                self.parts
                    .store()
                    .write(move |context| verdicts::settle_unknown(context, key, dirty))
                    .await?;
                Ok(Duration::ZERO)
            }
            ReconcileVerdict::Unreachable => {
                self.parts.store().write(move |context| verdicts::set_unreachable(context, key)).await?;
                self.failures += 1;
                Ok(match found.failure {
                    // Waited for above.
                    Some(ReadFailure::Unreachable) if agent.link.state() == LinkState::Down => Duration::ZERO,
                    Some(ReadFailure::Unauthorized | ReadFailure::Forbidden) => SIGN_IN_RETRY,
                    Some(ReadFailure::Later(Some(after))) => after.clamp(RETRY_MIN, SIGN_IN_RETRY),
                    _ => (RETRY_MIN * 2u32.pow(self.failures.min(6))).min(RETRY_MAX),
                })
            }
        }
    }

    /// What waits is a claim until the agent answers again. Its link is probed for all its tasks at once.
    async fn wait_for_link(&self, agent: &Agent) -> Result<(), StoreError> {
        let key = self.key;
        self.parts.store().write(move |context| verdicts::set_unreachable(context, key)).await?;
        let mut link = agent.link.changes();
        // Should nobody say that it is back, it is tried all the same.
        let _ = timeout(RETRY_MAX, link.wait_for(|state| *state != LinkState::Down)).await;
        Ok(())
    }
}
