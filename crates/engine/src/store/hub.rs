//! Who listens to tasks right now, and what they are told.
//!
//! A hub is one task: whoever brings news of it tells the hub, the hub tells all who listen. Frames of a
//! stream are told by the follower the moment they are read; what a read found is told by the writer thread,
//! which alone knows what is new. Both give numbers from one counter. What was told and has not reached the
//! writer yet is kept here, so that a listener that joins on the writer thread gets the task as it stands
//! there, and then exactly what is not in it.
//!
//! A listener has a bounded queue. One that lags is cut, and comes back by its last event's id: the log is
//! in [`super::gateway_log`].

mod queue;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use taskbell_core::dialect::{Dialect, read};
use taskbell_core::ids::{ContextId, TaskId};
use taskbell_core::json;
use taskbell_core::relay::{self, After, EventId};
use taskbell_core::state::TaskState;
use taskbell_core::task::StreamEvent;
use tokio::sync::Notify;

use super::keys::TaskKey;
use super::state::Remembered;
use queue::{Shared, close, lock, put};

const CATCHES_UP_WITHIN: Duration = Duration::from_secs(2);

/// All hubs of one engine. Clones share them.
#[derive(Clone)]
pub struct Hubs(Arc<Inner>);

struct Inner {
    start_ms: i64,
    hubs: Mutex<HashMap<TaskKey, Arc<Hub>>>,
}

/// How the writer thread finds the hubs; without them nobody is told anything.
#[derive(Default)]
pub(crate) struct HubsAtHand(pub Option<Hubs>);

impl Remembered for HubsAtHand {
    /// Numbers that were given stay given; the log has a hole there, which whoever comes back is told.
    fn rolled_back(&mut self) {}
}

/// Where a task's log stood when its hub was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogEnd {
    pub id: EventId,
    pub octets: u64,
}

/// One task's.
pub struct Hub {
    key: TaskKey,
    task_id: TaskId,
    start_ms: i64,
    /// The last number given before this hub was made.
    earlier: EventId,
    state: Mutex<State>,
    /// Rings when something told reached the writer.
    settled: Notify,
}

struct State {
    n: u64,
    octets: u64,
    context_id: Option<ContextId>,
    /// Which dialects somebody listened in.
    spoken: [bool; 2],
    over: bool,
    unapplied: VecDeque<Arc<Told>>,
    listeners: Vec<Shared>,
}

/// Something that was told, written once for all who listen.
#[derive(Debug)]
pub struct Told {
    pub id: EventId,
    /// The task's, where the event says one.
    pub state: Option<TaskState>,
    lines: [Option<Box<str>>; 2],
    /// Octets of this and all that was told of the task before.
    pub(crate) octets: u64,
    lost: bool,
}

impl Told {
    /// `result` in that dialect. What nobody listened to in that dialect is written anew from the other.
    pub fn line(&self, dialect: Dialect) -> std::borrow::Cow<'_, str> {
        match &self.lines[place(dialect)] {
            Some(line) => line.as_ref().into(),
            None => {
                let other = self.lines.iter().flatten().next();
                other.map(|line| translated(line, dialect)).unwrap_or_default().into()
            }
        }
    }

    pub fn after(&self) -> After {
        self.state.map_or(After::Goes, relay::after_state)
    }

    /// The agent does not know the task any more, or it was deleted here.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    pub(crate) fn stored_line(&self, dialect: Dialect) -> Option<&str> {
        self.lines[place(dialect)].as_deref()
    }

    fn size(&self) -> usize {
        self.lines.iter().flatten().map(|line| line.len()).sum()
    }
}

/// A line of one dialect in the other. Our own lines are always readable.
pub(crate) fn translated(line: &str, dialect: Dialect) -> String {
    let event = json::parse_str(line).ok().and_then(|value| read::stream_event(value).ok());
    event.map(|event| relay::event_line(&event, dialect)).unwrap_or_default()
}

fn place(dialect: Dialect) -> usize {
    match dialect {
        Dialect::V03 => 0,
        Dialect::V1 => 1,
    }
}

/// What was told before it is stored: goes to the writer with the events. Should it never get there, the log
/// has a hole, which whoever comes back is told.
pub struct Batch {
    pub(crate) hub: Arc<Hub>,
    pub(crate) told: Vec<Arc<Told>>,
}

impl Batch {
    /// What was told of the same task right after this.
    pub fn append(&mut self, mut next: Self) {
        self.told.append(&mut next.told);
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.hub.settle(&self.told);
    }
}

impl Hubs {
    pub fn new(start_ms: i64) -> Self {
        Self(Arc::new(Inner { start_ms, hubs: Mutex::default() }))
    }

    pub fn start_ms(&self) -> i64 {
        self.0.start_ms
    }

    /// Tells what a stream brought, at once. `None`: nobody is to be told this way, and the writer sees to it.
    pub fn tell<'e>(
        &self,
        key: TaskKey,
        events: impl IntoIterator<Item = &'e mut StreamEvent>,
    ) -> Option<Batch> {
        let hub = self.get(key)?;
        let told = {
            let mut state = hub.state();
            if state.over {
                return None;
            }
            let told: Vec<_> = events.into_iter().map(|event| hub.tell_one(&mut state, event)).collect();
            state.unapplied.extend(told.iter().cloned());
            told
        };
        Some(Batch { hub, told })
    }

    pub(crate) fn get(&self, key: TaskKey) -> Option<Arc<Hub>> {
        self.hubs().get(&key).cloned()
    }

    pub(crate) fn open(
        &self,
        key: TaskKey,
        task_id: &TaskId,
        context_id: Option<&ContextId>,
        end: LogEnd,
    ) -> Arc<Hub> {
        let new = || {
            Arc::new(Hub {
                key,
                task_id: task_id.clone(),
                start_ms: self.0.start_ms,
                earlier: end.id,
                state: Mutex::new(State {
                    n: end.id.n,
                    octets: end.octets,
                    context_id: context_id.cloned(),
                    spoken: [false; 2],
                    over: false,
                    unapplied: VecDeque::new(),
                    listeners: Vec::new(),
                }),
                settled: Notify::new(),
            })
        };
        Arc::clone(self.hubs().entry(key).or_insert_with(new))
    }

    /// Nothing more is told of the task.
    pub(crate) fn close_if_over(&self, hub: &Hub) {
        let state = hub.state();
        if state.over && state.unapplied.is_empty() {
            drop(state);
            self.hubs().remove(&hub.key);
        }
    }

    /// The agent knows the task no more: whoever listens is told so. Should it be found again, numbers go on.
    pub(crate) fn lose(&self, key: TaskKey) {
        if let Some(hub) = self.get(key) {
            hub.lose();
        }
    }

    /// The task is deleted here.
    pub(crate) fn forget(&self, key: TaskKey) {
        if let Some(hub) = self.hubs().remove(&key) {
            hub.lose();
        }
    }

    /// Returns when all that was told of the task until now is with the writer, so that whoever heard it reads
    /// it there, too. After 2 s at the latest: then the store has worse troubles.
    pub async fn caught_up(&self, key: TaskKey) {
        let Some(hub) = self.get(key) else { return };
        let n = hub.state().n;
        let caught_up = async {
            loop {
                let settled = hub.settled.notified();
                if hub.applied_to() >= n {
                    return;
                }
                settled.await;
            }
        };
        // Nothing is wrong with an earlier state, it is only earlier.
        let _ = tokio::time::timeout(CATCHES_UP_WITHIN, caught_up).await;
    }

    /// How many listen to a task.
    pub fn listeners(&self, key: TaskKey) -> usize {
        self.get(key).map_or(0, |hub| hub.state().listeners.len())
    }

    fn hubs(&self) -> MutexGuard<'_, HashMap<TaskKey, Arc<Hub>>> {
        self.0.hubs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_one(&self, state: &mut State, event: &mut StreamEvent) -> Arc<Told> {
        if state.context_id.is_none() {
            state.context_id = context_of(event).cloned();
        }
        relay::complete(event, &self.task_id, state.context_id.as_ref());
        let mut lines = [Dialect::V03, Dialect::V1]
            .map(|dialect| state.spoken[place(dialect)].then(|| relay::event_line(event, dialect).into()));
        if lines == [None, None] {
            lines[place(Dialect::V1)] = Some(relay::event_line(event, Dialect::V1).into());
        }
        self.hand_out(state, relay::state_of(event), lines, false)
    }

    fn hand_out(
        &self,
        state: &mut State,
        task_state: Option<TaskState>,
        lines: [Option<Box<str>>; 2],
        lost: bool,
    ) -> Arc<Told> {
        if !lost {
            state.n += 1;
        }
        state.octets += lines.iter().flatten().map(|line| line.len() as u64).sum::<u64>();
        let id = EventId { start_ms: self.start_ms, n: state.n };
        let told = Arc::new(Told { id, state: task_state, lines, octets: state.octets, lost });
        state.listeners.retain(|listener| put(listener, &told));
        if told.after() == After::TaskOver {
            state.over = true;
            state.listeners.drain(..).for_each(|listener| close(&listener));
        }
        told
    }

    /// Tells on the writer thread what is stored in the same transaction.
    pub(crate) fn tell_stored(&self, events: &mut [StreamEvent]) -> Vec<Arc<Told>> {
        let mut state = self.state();
        let mut told = Vec::new();
        for event in events {
            if state.over {
                break;
            }
            told.push(self.tell_one(&mut state, event));
        }
        told
    }

    /// These are on the writer now, or will never be.
    pub(crate) fn settle(&self, told: &[Arc<Told>]) {
        let mut state = self.state();
        if state.unapplied.is_empty() {
            return;
        }
        // In the order of their numbers, so what is done is nearly always at the front. What a read told is not
        // here at all, whatever waits.
        for done in told {
            if let Ok(place) = state.unapplied.binary_search_by_key(&done.id.n, |waiting| waiting.id.n) {
                state.unapplied.remove(place);
            }
        }
        drop(state);
        self.settled.notify_waiters();
    }

    fn lose(&self) {
        let mut state = self.state();
        self.hand_out(&mut state, None, [None, None], true);
        state.listeners.drain(..).for_each(|listener| close(&listener));
    }

    /// Joins on the writer thread, where the task is known to hold all but what waits here.
    pub(crate) fn listen(self: &Arc<Self>, dialect: Dialect) -> (EventId, Feed) {
        let queue = Shared::default();
        let mut state = self.state();
        state.spoken[place(dialect)] = true;
        let backlog = state.unapplied.clone();
        let before = backlog.front().map_or(state.n, |told| told.id.n - 1);
        if state.over {
            lock(&queue).closed = true;
        } else {
            state.listeners.push(Arc::clone(&queue));
        }
        let id = if before <= self.earlier.n {
            EventId { n: before, ..self.earlier }
        } else {
            EventId { start_ms: self.start_ms, n: before }
        };
        drop(state);
        (id, Feed { hub: Arc::clone(self), backlog, queue })
    }

    /// The last number given that is on the writer.
    pub(crate) fn applied_to(&self) -> u64 {
        let state = self.state();
        state.unapplied.front().map_or(state.n, |told| told.id.n - 1)
    }
}

fn context_of(event: &StreamEvent) -> Option<&ContextId> {
    match event {
        StreamEvent::Task(task) => task.context_id.as_ref(),
        StreamEvent::Status(update) => update.context_id.as_ref(),
        StreamEvent::Artifact(update) => update.context_id.as_ref(),
        StreamEvent::Message(message) => message.context_id.as_ref(),
    }
}

/// A listener's end.
pub struct Feed {
    hub: Arc<Hub>,
    backlog: VecDeque<Arc<Told>>,
    queue: Shared,
}

impl Feed {
    /// The next that was told. `None`: nothing more comes, because the last was the end, or because this
    /// listener lagged.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arc<Told>>> {
        if let Some(told) = self.backlog.pop_front() {
            return Poll::Ready(Some(told));
        }
        let mut queue = lock(&self.queue);
        if let Some(told) = queue.waiting.pop_front() {
            queue.octets -= told.size();
            return Poll::Ready(Some(told));
        }
        if queue.closed {
            return Poll::Ready(None);
        }
        if !queue.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            queue.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    pub async fn next(&mut self) -> Option<Arc<Told>> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.hub.state().listeners.retain(|listener| !Arc::ptr_eq(listener, &self.queue));
    }
}

#[cfg(test)]
mod tests;
