//! What every worker shares: the store, the agents, one order of things, and the bells.
//!
//! Workers do not call each other. They write rows and ring bells; a bell carries no data, the rows do.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use taskbell_core::follow::FollowTimes;
use taskbell_core::merge::Order;
use taskbell_core::stream::FrameReader;
use taskbell_core::task::StreamEvent;
use tokio::sync::{Notify, watch};

use crate::agent_client::Subscription;
use crate::agents::Agents;
use crate::health::Notes;
use crate::reachability::Reach;
use crate::store::{Hubs, Store, TaskKey, WallClock};

/// Clones share everything.
#[derive(Clone)]
pub struct Parts(Arc<Inner>);

struct Inner {
    store: Store,
    agents: Agents,
    clock: WallClock,
    order: AtomicU64,
    times: RwLock<FollowTimes>,
    bells: Bells,
    wakes: watch::Sender<u64>,
    reach: Reach,
    hubs: Hubs,
    handovers: Handovers,
    notes: Notes,
}

impl Parts {
    pub fn new(store: Store, agents: Agents, clock: WallClock, times: FollowTimes) -> Self {
        let (wakes, _) = watch::channel(0);
        let hubs = Hubs::new(clock());
        Self(Arc::new(Inner {
            store,
            agents,
            clock,
            order: AtomicU64::new(1),
            times: RwLock::new(times),
            bells: Bells::default(),
            wakes,
            reach: Reach::default(),
            hubs,
            handovers: Handovers::default(),
            notes: Notes::default(),
        }))
    }

    pub fn store(&self) -> &Store {
        &self.0.store
    }

    pub fn agents(&self) -> &Agents {
        &self.0.agents
    }

    /// Unix milliseconds by the wall clock.
    pub fn now_ms(&self) -> i64 {
        (self.0.clock)()
    }

    /// The next place in our order: taken at the start of a read and at the arrival of a frame.
    pub fn next_order(&self) -> Order {
        self.0.order.fetch_add(1, Ordering::Relaxed)
    }

    pub fn times(&self) -> FollowTimes {
        self.0.times.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Holds for everything that begins to be followed from now on.
    pub fn set_times(&self, times: FollowTimes) {
        *self.0.times.write().unwrap_or_else(PoisonError::into_inner) = times;
    }

    /// Where agents reach the inbox.
    pub fn reach(&self) -> &Reach {
        &self.0.reach
    }

    /// Who listens to tasks.
    pub fn hubs(&self) -> &Hubs {
        &self.0.hubs
    }

    /// Returns when all that was told of the task until now can be read from the store.
    pub async fn caught_up(&self, key: TaskKey) {
        self.0.store.hurry();
        self.0.hubs.caught_up(key).await;
    }

    /// Streams that sends opened, on their way to who follows their tasks.
    pub fn handovers(&self) -> &Handovers {
        &self.0.handovers
    }

    /// What happened that only Health tells of.
    pub fn notes(&self) -> &Notes {
        &self.0.notes
    }

    pub fn bells(&self) -> &Bells {
        &self.0.bells
    }

    /// Rings after the machine slept or its clock jumped.
    pub fn wakes(&self) -> watch::Receiver<u64> {
        self.0.wakes.subscribe()
    }

    pub fn ring_wake(&self) {
        self.0.wakes.send_modify(|count| *count += 1);
    }
}

/// A stream that a send opened, from the frame on that told which task it made.
pub struct Handed {
    pub subscription: Subscription,
    pub reader: FrameReader,
    /// That frame, where it was not the task.
    pub first: Option<StreamEvent>,
}

/// Streams that wait for the worker of their task: no event between the send and the following is lost.
#[derive(Default)]
pub struct Handovers(Mutex<HashMap<TaskKey, Handed>>);

impl Handovers {
    /// Ring for the task, and for following, afterwards.
    pub fn put(&self, key: TaskKey, handed: Handed) {
        self.waiting().insert(key, handed);
    }

    pub fn take(&self, key: TaskKey) -> Option<Handed> {
        self.waiting().remove(&key)
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<TaskKey, Handed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Doorbells.
#[derive(Default)]
pub struct Bells {
    /// Which tasks are followed may have changed.
    pub following: Notify,
    /// Which registrations there should be may have changed.
    pub registrations: Notify,
    /// The tunnel that there should be may be another.
    pub tunnel: Notify,
    tasks: Mutex<HashMap<TaskKey, Arc<Notify>>>,
    /// A task has ended, and it is to be judged whether that was missed.
    pub ends: Notify,
    pub due: DueBell,
}

impl Bells {
    /// Hangs a bell for the worker that follows a task.
    pub fn hang(&self, key: TaskKey) -> Arc<Notify> {
        let bell = Arc::new(Notify::new());
        self.tasks().insert(key, Arc::clone(&bell));
        bell
    }

    pub fn take_down(&self, key: TaskKey) {
        self.tasks().remove(&key);
    }

    /// A row of this task changed.
    pub fn ring_task(&self, key: TaskKey) {
        if let Some(bell) = self.tasks().get(&key) {
            bell.notify_one();
        }
    }

    /// A callback of this task was committed: it is due for a read.
    pub fn ring_due(&self, key: TaskKey) {
        self.due.ring(key);
    }

    fn tasks(&self) -> std::sync::MutexGuard<'_, HashMap<TaskKey, Arc<Notify>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which tasks may be due for a read, or have claims without a last verdict. The rows say whether they are; this
/// only spares looking at the rows of all others.
#[derive(Default)]
pub struct DueBell {
    watched: Mutex<HashMap<TaskKey, u64>>,
    rung: Mutex<Vec<TaskKey>>,
    bell: Notify,
}

/// How often a task had been rung for when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rings(u64);

impl DueBell {
    pub fn ring(&self, key: TaskKey) {
        *lock(&self.watched).entry(key).or_insert(0) += 1;
        lock(&self.rung).push(key);
        self.bell.notify_one();
    }

    /// It may have claims without a last verdict: any read of it judges them. None is asked for.
    pub fn watch(&self, key: TaskKey) {
        lock(&self.watched).entry(key).or_insert(0);
    }

    /// None: nothing is known to be due of it.
    pub fn watched(&self, key: TaskKey) -> Option<Rings> {
        lock(&self.watched).get(&key).copied().map(Rings)
    }

    /// All of it is settled that was there at these rings. What was rung for since stays.
    pub fn settle(&self, key: TaskKey, rings: Rings) {
        let mut watched = lock(&self.watched);
        if watched.get(&key) == Some(&rings.0) {
            watched.remove(&key);
        }
    }

    /// Waits until some were rung for.
    pub async fn rung(&self) -> Vec<TaskKey> {
        loop {
            let rung = std::mem::take(&mut *lock(&self.rung));
            if !rung.is_empty() {
                return rung;
            }
            self.bell.notified().await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
