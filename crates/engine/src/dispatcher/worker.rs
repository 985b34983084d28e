//! Starts what there is room for, and waits for what changes that.

use std::time::Duration;

use taskbell_core::delivery::{Lane, OVERDUE_SPREAD};
use taskbell_core::lanes::{InFlight, Place, SOCKETS};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use url::Url;

use super::Dispatcher;
use super::attempt::log_failure;
use crate::store::outbox::Dropped;
use crate::store::{StoreError, TargetKey, TaskKey, deliveries, targets};

/// Reserved deliveries that are looked at in one pass.
const AT_A_LOOK: u32 = 256;
/// The clock may be set, so due times are looked at again after so long.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Between two looks at due times that should be now.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// Drops are written down, and progress that nobody announced is found, this often.
const TICK: Duration = Duration::from_secs(1);
/// After a store that failed.
const STORE_PAUSE: Duration = Duration::from_secs(1);
const SWEEP: Duration = Duration::from_secs(60);

/// One callback of a task to a target at a time; receivers by host.
type SendPlace = Place<(TaskKey, TargetKey), String>;

/// An attempt that is over, with what it gives back: its place, and the target that it probed.
type Attempt = (SendPlace, Option<TargetKey>, Result<(), StoreError>);

/// The worker. Takes no input but rows, marks and bells.
pub struct Worker {
    dispatcher: Dispatcher,
    in_flight: InFlight<(TaskKey, TargetKey), String>,
    /// Targets that failed before and are being called.
    probed: Vec<TargetKey>,
    attempts: JoinSet<Attempt>,
    /// Rows may have become due.
    look: bool,
    /// The last change that was committed when rows were looked at.
    looked_seq: u64,
    look_again: Instant,
    tick: Instant,
}

impl Worker {
    pub(super) fn new(dispatcher: Dispatcher) -> Self {
        let now = Instant::now();
        Self {
            dispatcher,
            in_flight: InFlight::default(),
            probed: Vec::new(),
            attempts: JoinSet::new(),
            look: true,
            looked_seq: 0,
            look_again: now,
            tick: now,
        }
    }

    /// For ever.
    pub async fn run(mut self) {
        let sweeper = self.dispatcher.clone();
        // Its own, since a keyring may take its time.
        let mut beside = JoinSet::new();
        beside.spawn(async move { sweeper.sweep_for_ever().await });
        let inner = std::sync::Arc::clone(&self.dispatcher.0);
        let mut rows = inner.parts.store().doorbell();
        let mut wakes = inner.parts.wakes();
        loop {
            if let Err(error) = self.run_once().await {
                tracing::warn!(%error, "the callbacks that are due cannot be looked at");
                self.look = true;
                tokio::time::sleep(STORE_PAUSE).await;
            }
            tokio::select! {
                Some(done) = self.attempts.join_next(), if !self.attempts.is_empty() => self.take_back(done),
                changed = rows.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = inner.bell.notified() => self.look = true,
                Ok(()) = wakes.changed() => self.spread().await,
                () = sleep_until(self.look_again) => self.look = true,
                () = sleep_until(self.tick) => {}
            }
        }
    }

    /// Starts what there is room for now.
    pub(super) async fn run_once(&mut self) -> Result<(), StoreError> {
        let inner = std::sync::Arc::clone(&self.dispatcher.0);
        let committed = *inner.parts.store().doorbell().borrow();
        let is_new = inner.outbox.has_reserved_after(self.looked_seq);
        if (self.look || is_new) && self.in_flight.has_room() {
            self.start_reserved().await?;
            self.look = false;
            self.looked_seq = committed;
        }
        if inner.outbox.has_marks() && self.in_flight.has_room_for_best_effort() {
            self.start_best_effort();
        }
        let now = Instant::now();
        if now >= self.tick {
            self.tick = now + TICK;
            // What expired is dropped even while nothing can be sent.
            inner.outbox.marks(inner.parts.now_ms());
            if inner.secrets.has_reopened()
                && inner.parts.store().write(deliveries::release_from_keyring).await? > 0
            {
                self.look = true;
            }
            self.look |= inner.outbox.take_noted();
            self.count_dropped(inner.outbox.take_dropped()).await?;
        }
        Ok(())
    }

    async fn start_reserved(&mut self) -> Result<(), StoreError> {
        let inner = std::sync::Arc::clone(&self.dispatcher.0);
        let now_ms = inner.parts.now_ms();
        let (due, next_ms) = inner
            .parts
            .store()
            .read(move |connection| {
                let due = deliveries::due(connection, now_ms, AT_A_LOOK)?;
                Ok((due, deliveries::next_due_ms(connection, now_ms)?))
            })
            .await?;
        let pause = next_ms.map_or(LONGEST_PAUSE, |next_ms| {
            let left = u64::try_from(next_ms.saturating_sub(now_ms)).unwrap_or(0);
            Duration::from_millis(left).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
        });
        self.look_again = Instant::now() + pause;
        for due in due {
            if due.probing && self.probed.contains(&due.target) {
                continue;
            }
            let place =
                Place { lane: Lane::Reserved, task: (due.task, due.target), host: host_of(&due.origin) };
            if !self.in_flight.take(&place) {
                continue;
            }
            let probed = due.probing.then_some(due.target);
            self.probed.extend(probed);
            let dispatcher = self.dispatcher.clone();
            self.attempts.spawn(async move {
                let result = dispatcher.attempt_reserved(&due).await;
                (place, probed, result)
            });
        }
        Ok(())
    }

    fn start_best_effort(&mut self) {
        let inner = std::sync::Arc::clone(&self.dispatcher.0);
        for mark in inner.outbox.marks(inner.parts.now_ms()) {
            if !self.in_flight.has_room_for_best_effort() {
                return;
            }
            let place =
                Place { lane: Lane::BestEffort, task: (mark.task, mark.target), host: host_of(&mark.origin) };
            if !self.in_flight.take(&place) {
                continue;
            }
            let Some(mark) = inner.outbox.take(mark.config) else {
                self.in_flight.give_back(&place);
                continue;
            };
            let dispatcher = self.dispatcher.clone();
            self.attempts.spawn(async move {
                let result = dispatcher.attempt_best_effort(mark).await;
                (place, None, result)
            });
        }
    }

    fn take_back(&mut self, done: Result<Attempt, tokio::task::JoinError>) {
        match done {
            Ok((place, probed, result)) => {
                self.in_flight.give_back(&place);
                self.probed.retain(|target| Some(*target) != probed);
                if let Err(error) = result {
                    log_failure(place.lane, &error);
                }
            }
            // Its place stays taken: a panic is a fault of ours, and must not become a loop.
            Err(error) => tracing::error!(%error, "a callback was not sent: a fault of Taskbell"),
        }
        // What stood behind it may go now.
        self.look = true;
    }

    async fn count_dropped(&self, dropped: Dropped) -> Result<(), StoreError> {
        if dropped.0.is_empty() {
            return Ok(());
        }
        let count = move |context: &mut crate::store::WriteContext<'_>| {
            for (target, count) in &dropped.0 {
                targets::count_updates(context, *target, *count, *count)?;
            }
            Ok(())
        };
        self.dispatcher.0.parts.store().post("count dropped updates", count).await
    }

    /// After sleep everything is overdue at once.
    async fn spread(&mut self) {
        let spread = |context: &mut crate::store::WriteContext<'_>| {
            deliveries::spread_overdue(context, SOCKETS, OVERDUE_SPREAD, rand::random)
        };
        if let Err(error) = self.dispatcher.0.parts.store().write(spread).await {
            tracing::warn!(%error, "overdue callbacks are not spread");
        }
        self.look = true;
    }
}

impl Dispatcher {
    async fn sweep_for_ever(&self) {
        loop {
            if let Err(error) = self.sweep().await {
                tracing::warn!(%error, "what clients no longer use is not removed yet");
            }
            tokio::select! {
                () = self.0.sweep.notified() => {}
                () = tokio::time::sleep(SWEEP) => {}
            }
        }
    }
}

/// Whose connections are counted together. Programs of this machine are told apart by their ports.
fn host_of(origin: &str) -> String {
    let is_loopback = origin.starts_with("http://");
    match Url::parse(origin).ok().as_ref().and_then(Url::host_str) {
        Some(host) if !is_loopback => host.to_owned(),
        Some(_) | None => origin.to_owned(),
    }
}
