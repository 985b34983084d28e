//! Reads tasks at their agents because somebody asked, because it is time, or because the machine slept:
//! finds what no stream and no callback told.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use taskbell_core::follow::{Identity, ReadFailure};
use taskbell_core::ids::TaskRef;
use taskbell_core::missed::{WAIT_MS, Way, Why};
use tokio::sync::Notify;

use crate::agents::READS_AT_ONCE;
use crate::parts::Parts;
use crate::reads::{self, read_task};
use crate::store::changes::{NewChange, record_change};
use crate::store::tasks::{self, Channel, Following, TaskRow, Verdict};
use crate::store::{StoreError, TaskKey, ends};

/// How often it is looked whether a followed task has not been confirmed for long.
const PERIOD: Duration = Duration::from_secs(60);
/// Before a task is believed to be gone its agent is asked once more.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// Reads at once over all agents; each agent has its own limit as well.
const SWEEP_AT_ONCE: usize = 4 * READS_AT_ONCE;
/// A sweep after sleep says what it found by then.
const SWEEP_LIMIT: Duration = Duration::from_secs(60);

/// What one read found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciled {
    pub key: TaskKey,
    pub task: TaskRef,
    /// Our own words.
    pub before: &'static str,
    pub after: &'static str,
    pub verdict: ReconcileVerdict,
    /// An end that was missed, by which way it should have come, and why it did not.
    pub missed: Option<(Way, Why)>,
    pub found_by: Option<Channel>,
    /// Why the task could not be read.
    pub error: Option<String>,
    pub failure: Option<ReadFailure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconcileVerdict {
    Unchanged,
    Changed,
    Lost,
    WrongIdentity,
    Unreachable,
}

/// Why all open tasks are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepReason {
    Wake,
    Manual,
    Timer,
}

impl SweepReason {
    fn word(self) -> &'static str {
        match self {
            Self::Wake => "wake",
            Self::Manual => "manual",
            Self::Timer => "timer",
        }
    }

    fn channel(self) -> Channel {
        match self {
            Self::Manual => Channel::Manual,
            Self::Wake | Self::Timer => Channel::Poll,
        }
    }
}

#[derive(Clone)]
pub struct Reconciler {
    parts: Parts,
}

impl Reconciler {
    pub fn new(parts: Parts) -> Self {
        Self { parts }
    }

    /// Runs for ever: now and then, and at once after sleep.
    pub async fn run(self, stop: Arc<Notify>) {
        let mut wakes = self.parts.wakes();
        loop {
            let woken = tokio::select! {
                () = stop.notified() => return,
                Ok(()) = wakes.changed() => true,
                () = tokio::time::sleep(PERIOD) => false,
            };
            let outcome = if woken { self.sweep(SweepReason::Wake).await } else { self.run_once().await };
            if let Err(error) = outcome {
                tracing::warn!(%error, "a sweep of the open tasks failed");
            }
        }
    }

    /// Reads what is followed and has not been confirmed for half as long again as it should.
    pub async fn run_once(&self) -> Result<(), StoreError> {
        let slow = self.parts.times().slow_read;
        let limit_ms = i64::try_from((slow + slow / 2).as_millis()).unwrap_or(i64::MAX);
        let stale_before = self.parts.now_ms().saturating_sub(limit_ms);
        let rows = self.parts.store().read(tasks::followed).await?;
        let stale: Vec<TaskRow> = rows
            .into_iter()
            .filter(|row| row.trouble.is_none() && row.confirmed_at_ms.unwrap_or(0) < stale_before)
            .collect();
        if !stale.is_empty() {
            self.reconcile(stale, Channel::Poll).await;
        }
        Ok(())
    }

    /// Reads every open task and says how many are confirmed, or which are not.
    pub async fn sweep(&self, reason: SweepReason) -> Result<(), StoreError> {
        let rows = self.parts.store().read(tasks::followed).await?;
        let total = rows.len();
        let names: Vec<TaskRef> = rows.iter().map(TaskRow::task_ref).collect();
        let swept = tokio::time::timeout(SWEEP_LIMIT, self.reconcile(rows, reason.channel())).await;
        let unconfirmed: Vec<String> = match swept {
            Ok(found) => {
                found.iter().filter(|item| item.error.is_some()).map(|item| item.task.to_string()).collect()
            }
            Err(_) => names.iter().map(ToString::to_string).collect(),
        };
        if unconfirmed.is_empty() {
            tracing::info!(total, reason = reason.word(), "all open tasks confirmed");
        } else {
            tracing::warn!(
                total,
                unconfirmed = unconfirmed.len(),
                reason = reason.word(),
                "not all open tasks confirmed"
            );
        }
        let body = serde_json::json!({
            "reason": reason.word(), "total": total, "confirmed": total - unconfirmed.len(),
            "unconfirmed": unconfirmed,
        })
        .to_string();
        let change = move |context: &mut crate::store::WriteContext<'_>| {
            let change =
                NewChange { agent: None, task: None, source: "poll", kind: "sweep", body_json: &body };
            record_change(context, &change)
        };
        self.parts.store().write(change).await?;
        Ok(())
    }

    /// Reads each of these tasks, in any order, and rings whoever follows them.
    pub async fn reconcile(&self, rows: Vec<TaskRow>, channel: Channel) -> Vec<Reconciled> {
        let mut rows = rows.into_iter();
        let mut running = FuturesUnordered::new();
        let mut found = Vec::new();
        loop {
            while running.len() < SWEEP_AT_ONCE
                && let Some(row) = rows.next()
            {
                running.push(self.reconcile_one(row, channel));
            }
            match running.next().await {
                Some(item) => found.push(item),
                None => return found,
            }
        }
    }

    /// Says of each which end was missed. An end that a callback may still tell is waited for.
    pub async fn add_missed(&self, found: &mut [Reconciled]) -> Result<(), StoreError> {
        let mut changes = self.parts.store().doorbell();
        let wait = Duration::from_millis(WAIT_MS.unsigned_abs()) + ASK_AGAIN;
        let deadline = tokio::time::Instant::now() + wait;
        let keys: Vec<TaskKey> = found.iter().map(|item| item.key).collect();
        let rows = loop {
            // Looked up before the time is, so that the last look comes after the wait.
            let over = tokio::time::Instant::now() >= deadline;
            let keys = keys.clone();
            let rows = self.parts.store().read(move |connection| ends::of_tasks(connection, &keys)).await?;
            if over || rows.iter().flatten().all(|row| row.judge_at_ms.is_none()) {
                break rows;
            }
            // Either a change or the deadline: both are looked at above.
            let _ = tokio::time::timeout_at(deadline, changes.changed()).await;
        };
        for (item, row) in found.iter_mut().zip(rows) {
            if let Some(row) = row {
                item.missed = row.missed;
                item.found_by = Some(row.found_by);
            }
        }
        Ok(())
    }

    /// Reads one task, and rings whoever follows it.
    pub async fn reconcile_one(&self, row: TaskRow, channel: Channel) -> Reconciled {
        let before = row.state_word();
        let was_open = row.following != Following::Ended;
        let mut item = Reconciled {
            key: row.key,
            task: row.task_ref(),
            before,
            after: before,
            verdict: ReconcileVerdict::Unchanged,
            missed: None,
            found_by: None,
            error: None,
            failure: None,
        };
        let Some(agent) = self.parts.agents().get(row.agent_key) else {
            item.verdict = ReconcileVerdict::Unreachable;
            item.error = Some(format!("agent {} was removed", row.agent));
            return item;
        };
        let mut read = read_task(&self.parts, &agent, row.key, &row.task_id, channel).await;
        if was_open && matches!(&read, Err(error) if error.failure() == ReadFailure::NotFound) {
            tokio::time::sleep(ASK_AGAIN).await;
            read = read_task(&self.parts, &agent, row.key, &row.task_id, channel).await;
        }
        match read {
            Ok(applied) => {
                // Where a later read was quicker, what that one found.
                item.after = applied.state.word();
                if item.after != before {
                    item.verdict = ReconcileVerdict::Changed;
                    item.found_by = Some(channel);
                }
                if row.following == Following::Ended && !applied.state.is_terminal() {
                    self.follow_again(row.key).await;
                }
            }
            Err(error) => {
                item.failure = Some(error.failure());
                let gone = match (error.failure(), reads::identity(&agent, row.credential_version)) {
                    (ReadFailure::NotFound, Identity::Same) => Some(Verdict::Lost),
                    (ReadFailure::NotFound | ReadFailure::Forbidden, Identity::Changed) => {
                        Some(Verdict::WrongIdentity)
                    }
                    _ => None,
                };
                match gone {
                    Some(verdict) => {
                        item.verdict = match verdict {
                            Verdict::Lost => ReconcileVerdict::Lost,
                            Verdict::WrongIdentity => ReconcileVerdict::WrongIdentity,
                        };
                        // A task that had ended stays what it was, also where its agent has forgotten it.
                        if was_open {
                            item.after = verdict.word();
                            self.give_up(row.key, verdict).await;
                        }
                    }
                    None => {
                        item.verdict = ReconcileVerdict::Unreachable;
                        item.error = Some(error.to_string());
                    }
                }
            }
        }
        self.parts.bells().ring_task(row.key);
        item
    }

    /// A task that had been given up is there after all.
    async fn follow_again(&self, key: TaskKey) {
        let written =
            self.parts.store().write(move |context| tasks::set_following(context, key, Following::On)).await;
        if let Err(error) = written {
            tracing::warn!(%error, "a task that is open again was not taken up");
        }
        self.parts.bells().following.notify_one();
    }

    async fn give_up(&self, key: TaskKey, verdict: Verdict) {
        let written =
            self.parts.store().write(move |context| tasks::end_following(context, key, Some(verdict))).await;
        if let Err(error) = written {
            tracing::warn!(%error, "a task that its agent does not know was not marked so");
        }
        self.parts.bells().following.notify_one();
    }
}
