//! What came to the inbox as rows: how it is listed, how long it is kept, what it says of an agent.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use taskbell_core::callback::{
    Digest, Presented, ProofPolicy, Registered, RegistrationPath, judge, read_claim,
};
use taskbell_core::dialect::read;
use taskbell_core::ids::AgentName;
use taskbell_core::verdict::Verdict;
use taskbell_engine::store::callbacks::{self, NewCallback};
use taskbell_engine::store::inbox::{self, ItemCursor, ItemFilter, ItemId, ItemRow};
use taskbell_engine::store::refused::{self, NewQuarantine, Refusals};
use taskbell_engine::store::registrations::{self, NewRegistration, Purpose};
use taskbell_engine::store::task_records::{Adoption, Told, adopt, apply_due_read};
use taskbell_engine::store::tasks::{Channel, TaskSource};
use taskbell_engine::store::{
    AgentKey, RegistrationKey, Store, TaskKey, WriteContext, agents, bodies, report_card,
};

const DAY_MS: i64 = 86_400_000;

struct World {
    folder: tempfile::TempDir,
    store: Store,
    now_ms: Arc<AtomicI64>,
    agent: AgentKey,
    task: TaskKey,
    registration: RegistrationKey,
}

fn open(folder: &tempfile::TempDir, now_ms: &Arc<AtomicI64>) -> Store {
    let clock = Arc::clone(now_ms);
    Store::open(folder.path(), Arc::new(move || clock.load(Ordering::SeqCst))).unwrap().0
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now_ms = Arc::new(AtomicI64::new(DAY_MS));
        let store = open(&folder, &now_ms);
        let set_up = |context: &mut WriteContext<'_>| {
            let name = AgentName::new("builder").unwrap();
            let origin = "https://a.example".parse().unwrap();
            let new = agents::NewAgent {
                name: &name,
                registered_url: "https://a.example/",
                origin: &origin,
                use_card_url: false,
                allow_http: false,
            };
            let agent = agents::insert(context, &new)?;
            let task = read::task(serde_json::json!({"id": "t", "status": {"state": "working"}})).unwrap();
            let adoption = Adoption {
                source: TaskSource::Send,
                channel: Channel::Manual,
                title: "a task",
                credential_version: 0,
                told: Told::Otherwise,
            };
            let task = adopt(context, agent, task, 1, adoption)?.0;
            let path = RegistrationPath::of_random([7; 26]);
            let new = NewRegistration {
                path: &path,
                purpose: Purpose::Task,
                agent: Some(agent),
                task: Some(task),
                config_id: "c-1",
                url: "https://inbox.example.com/a2a/callbacks/x",
                policy: ProofPolicy::Any,
                key_version: 1,
                token: Some(Digest::of(b"tok")),
                credential: None,
            };
            let registration = registrations::insert(context, &new)?;
            registrations::set_registered(context, registration, None)?;
            Ok((agent, task, registration))
        };
        let (agent, task, registration) = store.write(set_up).await.unwrap();
        Self { folder, store, now_ms, agent, task, registration }
    }

    async fn restart(self) -> Self {
        self.store.close(std::time::Duration::from_secs(5)).await.unwrap();
        let store = open(&self.folder, &self.now_ms);
        Self { store, ..self }
    }

    fn pass(&self, ms: i64) {
        self.now_ms.fetch_add(ms, Ordering::SeqCst);
    }

    async fn arrive(&self, state: &str, mark: u32) -> i64 {
        let body = format!(
            r#"{{"statusUpdate":{{"taskId":"t","status":{{"state":"{state}","timestamp":"{mark}"}}}}}}"#
        );
        let registered = Registered { token: Some(Digest::of(b"tok")), ..Registered::default() };
        let new = NewCallback {
            registration: self.registration,
            sha256: Digest::of(body.as_bytes()),
            claim: read_claim(body.as_bytes()).unwrap(),
            body: body.into_bytes(),
            headers_json: "{}".to_owned(),
            proofs: judge(&registered, Presented { token: Some(b"tok"), authorization: None }, 0),
            bound: true,
        };
        self.store.write(move |context| callbacks::store(context, &new)).await.unwrap().callback.0
    }

    async fn read_as(&self, order: u64, state: &str) {
        let task = read::task(serde_json::json!({"id": "t", "status": {"state": state}})).unwrap();
        let key = self.task;
        let apply = move |context: &mut WriteContext<'_>| {
            let due = callbacks::due(context.tx, key)?;
            apply_due_read(context, key, task, order, Channel::Push, due.dirty).map(|_| ())
        };
        self.store.write(apply).await.unwrap();
    }

    async fn list(&self, filter: ItemFilter, after: Option<ItemCursor>, limit: u32) -> Vec<ItemRow> {
        self.store.read(move |connection| inbox::list(connection, &filter, after, limit)).await.unwrap()
    }

    async fn bodies(&self) -> Vec<bool> {
        let key = self.task;
        let rows = self.store.read(move |connection| callbacks::of_task(connection, key)).await.unwrap();
        rows.iter().map(|row| row.body.is_some()).collect()
    }

    async fn prune(&self) -> usize {
        self.store.write(|context| bodies::prune(context, bodies::BODY_DAYS, 100)).await.unwrap()
    }
}

#[tokio::test]
async fn the_latest_stands_first_and_pages_meet_without_a_hole_or_a_repeat() {
    let world = World::new().await;
    for mark in 0..7 {
        world.arrive("working", mark).await;
        // Some share their millisecond.
        world.pass(i64::from(mark % 2));
    }
    let whole: Vec<ItemId> =
        world.list(ItemFilter::default(), None, 100).await.into_iter().map(|row| row.id).collect();
    assert_eq!(whole.len(), 7);
    assert_eq!(whole[0], ItemId::Callback(7));
    let (mut paged, mut after) = (Vec::new(), None);
    loop {
        let page = world.list(ItemFilter::default(), after, 2).await;
        let Some(last) = page.last().map(|row| row.at_ms) else { break };
        let same = page.iter().rev().take_while(|row| row.at_ms == last).count() as u32;
        let before = after.filter(|cursor: &ItemCursor| cursor.at_ms == last).map_or(0, |c| c.skip);
        after = Some(ItemCursor { at_ms: last, skip: before + same });
        paged.extend(page.into_iter().map(|row| row.id));
    }
    assert_eq!(paged, whole);
}

#[tokio::test]
async fn what_was_refused_stands_among_the_callbacks_under_its_verdict() {
    let world = World::new().await;
    world.arrive("working", 1).await;
    world.pass(1);
    let registration = world.registration;
    world
        .store
        .write(move |context| {
            let detail = "token wrong, credential unused".to_owned();
            refused::count(context, &Refusals { registration, reason: "proof", count: 3, detail })?;
            let sha256 = Digest::of(b"x");
            let detail = "other".to_owned();
            refused::quarantine(
                context,
                &NewQuarantine { registration, reason: "other_task", size: 9, sha256, detail },
            )
        })
        .await
        .unwrap();
    let rows = world.list(ItemFilter::default(), None, 100).await;
    let told: Vec<(Verdict, u64)> = rows.iter().map(|row| (row.verdict, row.count)).collect();
    assert_eq!(told, [(Verdict::Unmatched, 1), (Verdict::Rejected, 3), (Verdict::Pending, 1)]);
    for (verdict, id) in
        [(Verdict::Rejected, "r1.proof"), (Verdict::Unmatched, "q1"), (Verdict::Pending, "1")]
    {
        let filter = ItemFilter { verdicts: vec![verdict], ..ItemFilter::default() };
        let found = world.list(filter, None, 100).await;
        assert_eq!(found.iter().map(|row| row.id.to_string()).collect::<Vec<_>>(), [id]);
    }
    let none = ItemFilter { agent: Some(AgentName::new("other").unwrap()), ..ItemFilter::default() };
    assert_eq!(world.list(none, None, 100).await, []);
}

#[tokio::test]
async fn bodies_are_kept_for_a_week_and_rows_for_thirty_days() {
    let world = World::new().await;
    world.arrive("completed", 1).await;
    world.read_as(2, "completed").await;
    world.pass(6 * DAY_MS);
    world.arrive("completed", 2).await;
    assert_eq!(world.prune().await, 0);
    world.pass(2 * DAY_MS);
    assert!(world.prune().await > 0);
    assert_eq!(world.bodies().await, [false, true]);
    let row = world.list(ItemFilter::default(), None, 100).await.remove(1);
    assert_eq!(
        (row.verdict, row.confirmed.map(|state| state.word())),
        (Verdict::Confirmed, Some("completed"))
    );
    world.pass(23 * DAY_MS);
    world.prune().await;
    assert_eq!(world.bodies().await, [false], "the first row is gone, the second one's body as well");
    assert_eq!(world.prune().await, 0, "and then there is nothing to do");
}

#[tokio::test]
async fn the_oldest_bodies_make_room_as_soon_as_all_together_take_too_much() {
    let world = World::new().await;
    for mark in 0..3 {
        world.arrive("working", mark).await;
    }
    let large = i64::try_from(bodies::OCTETS_MAX / 2).unwrap();
    world
        .store
        .write(move |context| {
            context.tx.execute("UPDATE callbacks SET size = ?1", [large])?;
            Ok(())
        })
        .await
        .unwrap();
    let world = world.restart().await;
    world.arrive("working", 3).await;
    assert_eq!(world.bodies().await, [false, false, true, true], "half of what may be, and a little");
    world.arrive("working", 4).await;
    assert_eq!(world.bodies().await, [false, false, true, true, true]);
}

#[tokio::test]
async fn a_report_card_counts_what_came_late_twice_and_wrong() {
    let world = World::new().await;
    world.pass(60_000);
    world.arrive("working", 1).await;
    world.arrive("working", 1).await;
    world.read_as(2, "working").await;
    // The end is found by a read, and told eleven seconds later.
    let key = world.task;
    let task = read::task(serde_json::json!({"id": "t", "status": {"state": "completed"}})).unwrap();
    let apply = move |context: &mut WriteContext<'_>| {
        taskbell_engine::store::task_records::apply_read(context, key, task, 3, Channel::Poll).map(|_| ())
    };
    world.store.write(apply).await.unwrap();
    world.pass(11_000);
    world.store.write(|context| taskbell_engine::store::ends::judge_due(context, 10)).await.unwrap();
    let agent = world.agent;
    let card = world.store.read(move |connection| report_card::of_agent(connection, agent)).await.unwrap();
    assert_eq!((card.expected, card.arrived, card.missed), (1, 0, 1));
    world.arrive("completed", 2).await;
    world.arrive("submitted", 3).await;
    world.arrive("failed", 4).await;
    world.read_as(4, "completed").await;
    let card = world.store.read(move |connection| report_card::of_agent(connection, agent)).await.unwrap();
    assert_eq!((card.expected, card.arrived, card.missed), (1, 1, 0), "late is not missed");
    assert_eq!((card.late, card.late_median_ms), (1, Some(11_000)));
    assert_eq!((card.received, card.confirmed, card.duplicate), (4, 2, 1));
    assert_eq!((card.out_of_order, card.unmatched), (1, 1));
}
