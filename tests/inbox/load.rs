//! Senders that never stop, and what they were promised.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use taskbell_tests::{Taskbell, taskbell::Setup};
use tokio::task::JoinSet;

use crate::{
    PATIENCE,
    scene::{Look, Registration, Scene},
    wire::{Wire, callback},
};

pub const HOST: &str = "inbox.example.com";
const TOKEN: &str = "token-of-the-load";
/// Each may have 200 callbacks at once and 50 a second, so many share the load.
const REGISTRATIONS: usize = 64;
const CONNECTIONS: usize = 16;

pub fn path(number: usize) -> String {
    format!("load{number:022}")
}

pub fn task(number: usize) -> String {
    format!("task-{number}")
}

pub fn registrations(count: usize) -> Vec<Registration> {
    (0..count).map(|number| Registration::with_token(&path(number), &task(number), TOKEN)).collect()
}

/// An engine with registrations of one task each.
pub async fn scene(setup: Setup) -> Scene {
    Scene::start(setup, "working", &registrations(REGISTRATIONS)).await
}

/// As [`scene`] with one registration alone.
pub async fn small_scene(setup: Setup) -> Scene {
    Scene::start(setup, "working", &registrations(1)).await
}

/// A callback of a registration that says nothing but its mark.
pub fn marked(number: usize, mark: &str) -> Vec<u8> {
    let body = json!({"statusUpdate": {"taskId": task(number), "status": {"state": "working"},
        "metadata": {"mark": mark}}});
    callback(HOST, &path(number), &[("A2A-Notification-Token", TOKEN)], &body.to_string())
}

/// Sends one callback and returns the status of its answer.
pub async fn send(inbox: &str, number: usize, mark: &str) -> Option<u16> {
    let mut wire = Wire::connect(inbox).await;
    wire.send(&marked(number, mark)).await;
    wire.answer(PATIENCE).await.map(|answer| answer.status)
}

/// Callbacks over several connections until told to stop, or until the engine is gone.
pub struct Load {
    senders: JoinSet<()>,
    promised: Arc<Mutex<BTreeSet<String>>>,
    going: Arc<AtomicBool>,
}

impl Load {
    /// Every mark begins with `round`.
    pub async fn start(inbox: &str, round: &str) -> Self {
        let promised = Arc::new(Mutex::new(BTreeSet::new()));
        let going = Arc::new(AtomicBool::new(true));
        let next = Arc::new(AtomicU64::new(0));
        let mut senders = JoinSet::new();
        for _ in 0..CONNECTIONS {
            // Killed at its first write the engine may be gone already.
            let Some(mut wire) = Wire::try_connect(inbox).await else { break };
            let (promised, going, next) = (Arc::clone(&promised), Arc::clone(&going), Arc::clone(&next));
            let round = round.to_owned();
            senders.spawn(async move {
                while going.load(Ordering::Relaxed) {
                    let count = next.fetch_add(1, Ordering::Relaxed);
                    let number = usize::try_from(count).expect("a count") % REGISTRATIONS;
                    let mark = format!("{round}-{count}");
                    if !wire.send(&marked(number, &mark)).await {
                        return;
                    }
                    match wire.answer(PATIENCE).await.map(|answer| answer.status) {
                        Some(200) => {
                            promised.lock().expect("no sender panics").insert(mark);
                        }
                        // Nothing was promised.
                        Some(503 | 429) => (),
                        Some(other) => panic!("answered with {other}"),
                        None => return,
                    }
                }
            });
        }
        Self { senders, promised, going }
    }

    /// What was answered with 200, once all senders have stopped.
    pub async fn stop(mut self) -> BTreeSet<String> {
        self.going.store(false, Ordering::Relaxed);
        while let Some(sender) = self.senders.join_next().await {
            sender.expect("no sender panics");
        }
        std::mem::take(&mut *self.promised.lock().expect("no sender panics"))
    }
}

/// The marks in the store, and how often each.
pub fn stored(look: &Look) -> BTreeMap<String, i64> {
    let mut marks = BTreeMap::new();
    for (body, count) in look.bodies() {
        let body: Value = serde_json::from_slice(&body).expect("what was sent");
        let mark = body["statusUpdate"]["metadata"]["mark"].as_str().expect("a mark").to_owned();
        *marks.entry(mark).or_default() += count;
    }
    marks
}

/// Kills the engine at moments that nobody chose, under load. What was promised and is not there; and how much was
/// promised in all.
pub async fn kill_at_random(taskbell: &mut Taskbell, rounds: u32) -> (Vec<String>, usize) {
    // A fixed sequence, so that a failure can be met again.
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut promised = BTreeSet::new();
    for round in 0..rounds {
        let load = Load::start(&taskbell.ready().inbox.clone(), &format!("r{round}")).await;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        tokio::time::sleep(Duration::from_millis(100 + random % 300)).await;
        taskbell.kill9().await;
        promised.extend(load.stop().await);
        taskbell.come_up().await;
    }
    let found = stored(&Look::into(&taskbell.data_dir()));
    let lost = promised.iter().filter(|mark| !found.contains_key(*mark)).cloned().collect();
    assert!(found.values().all(|count| *count == 1), "a callback that was sent once is stored once");
    (lost, promised.len())
}
