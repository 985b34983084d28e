//! The log of what was told, in a real database: what is known of it, where it is cut, and what a hole does.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use serde_json::json;
use taskbell_core::dialect::{Dialect, read};
use taskbell_core::ids::{AgentName, ClientName};
use taskbell_core::relay::{self, EventId};
use taskbell_core::task::StreamEvent;
use taskbell_engine::store::agents::{self, NewAgent};
use taskbell_engine::store::gateway_log::{Joined, install, join, missed};
use taskbell_engine::store::task_records::{Adoption, Told, adopt, apply_events, apply_told};
use taskbell_engine::store::tasks::{self, Channel, TaskSource};
use taskbell_engine::store::{Hubs, Store, StoreError, TaskKey, clients, gateway_log, wall_clock};

struct World {
    folder: tempfile::TempDir,
    store: Store,
    hubs: Hubs,
    key: TaskKey,
}

async fn open(folder: &tempfile::TempDir, start_ms: i64) -> (Store, Hubs) {
    let (store, _) = Store::open(folder.path(), wall_clock()).unwrap();
    let hubs = Hubs::new(start_ms);
    let installed = hubs.clone();
    store.write(move |context| install(context, installed)).await.unwrap();
    (store, hubs)
}

fn event(n: usize) -> StreamEvent {
    read::stream_event(json!({"statusUpdate":{"taskId":"t","contextId":"c",
        "status":{"state":"working","message":{"messageId":format!("m-{n}"),"role":"ROLE_AGENT","parts":[{"text":"x"}]}}}}))
    .unwrap()
}

impl World {
    /// A client's task with the beginning of its log.
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, hubs) = open(&folder, 100).await;
        let key = store.write(|context| {
            let name = AgentName::new("builder").unwrap();
            let origin = "http://127.0.0.1:9".parse().unwrap();
            let agent = NewAgent {
                name: &name,
                registered_url: "http://127.0.0.1:9/",
                origin: &origin,
                use_card_url: false,
                allow_http: false,
            };
            let agent = agents::insert(context, &agent)?;
            let client = clients::insert(context, &ClientName::new("editor").unwrap(), &[7; 32])?;
            let task = read::task(json!({"id":"t","contextId":"c","status":{"state":"submitted"}})).unwrap();
            let adoption = Adoption {
                source: TaskSource::Gateway,
                channel: Channel::Gateway,
                told: Told::Otherwise,
                title: "t",
                credential_version: 0,
            };
            let (key, _) = adopt(context, agent, task, 1, adoption)?;
            clients::own(context, key, client.key)?;
            gateway_log::begin(context, key)?;
            Ok(key)
        });
        let key = key.await.unwrap();
        Self { folder, store, hubs, key }
    }

    async fn tell(&self, from: usize, count: usize) {
        let (key, events) = (self.key, (from..from + count).map(|n| (event(n), n as u64 + 2)).collect());
        self.store.write(move |context| apply_events(context, key, events, Channel::Stream)).await.unwrap();
    }

    /// As a stream's events come: told at once, and then written together. What was told, as in 1.0.
    async fn tell_together(&self, from: usize, count: usize) -> Vec<String> {
        let mut told: Vec<StreamEvent> = (from..from + count).map(event).collect();
        let batch = self.hubs.tell(self.key, &mut told).unwrap();
        let lines = told.iter().map(|event| relay::event_line(event, Dialect::V1)).collect();
        let (key, events) = (self.key, (from..from + count).map(|n| (event(n), n as u64 + 2)).collect());
        let written =
            self.store.write(move |context| apply_told(context, key, events, &batch, Channel::Stream));
        written.await.unwrap();
        lines
    }

    async fn rows(&self) -> i64 {
        let count = self.store.read(|connection| {
            Ok(connection.query_row("SELECT count(*) FROM gateway_events", [], |row| row.get(0))?)
        });
        count.await.unwrap()
    }

    async fn missed_lines(&self, n: u64, dialect: Dialect) -> Option<Vec<String>> {
        let (key, id) = (self.key, EventId { start_ms: 100, n });
        let found = self.store.read(move |connection| missed(connection, key, id)).await.unwrap();
        found.map(|found| found.iter().map(|logged| logged.line(dialect)).collect())
    }

    async fn missed(&self, start_ms: i64, n: u64) -> Option<usize> {
        let (key, id) = (self.key, EventId { start_ms, n });
        let found = self.store.read(move |connection| missed(connection, key, id)).await.unwrap();
        found.map(|found| found.len())
    }

    async fn join(&self, last: Option<EventId>) -> Joined {
        let key = self.key;
        self.store.write(move |context| join(context, key, Dialect::V1, last)).await.unwrap()
    }
}

#[tokio::test]
async fn what_came_after_an_id_is_known_as_long_as_all_of_it_is_there() {
    let world = World::new().await;
    assert_eq!(world.missed(100, 0).await, Some(0), "the place before the first");
    world.tell(0, 5).await;
    assert_eq!((world.missed(100, 0).await, world.missed(100, 3).await), (Some(5), Some(2)));
    assert_eq!((world.missed(100, 5).await, world.missed(100, 6).await), (Some(0), None));
    assert_eq!(world.missed(99, 3).await, None, "another run's");
}

#[tokio::test]
async fn events_that_were_told_together_share_rows_and_each_is_found_by_itself() {
    let world = World::new().await;
    let mut told = world.tell_together(0, 40).await;
    told.extend(world.tell_together(40, 3).await);
    assert_eq!(world.rows().await, 4, "the beginning, 32, 8 and 3");
    for n in [0, 1, 31, 32, 33, 40, 42, 43] {
        let missed = world.missed_lines(n, Dialect::V1).await.unwrap();
        assert_eq!(missed, told[n as usize..], "after {n}");
    }
    assert_eq!((world.missed(100, 44).await, world.missed(99, 33).await), (None, None));
    let joined = world.join(Some(EventId { start_ms: 100, n: 30 })).await;
    assert_eq!((joined.id.n, joined.missed.unwrap().len()), (43, 13));
}

#[tokio::test]
async fn a_row_has_the_dialects_that_were_spoken_and_the_other_is_written_anew() {
    let world = World::new().await;
    let mut told = world.tell_together(0, 2).await;
    let key = world.key;
    let old = world.store.write(move |context| join(context, key, Dialect::V03, None)).await.unwrap();
    told.extend(world.tell_together(2, 3).await);
    let mut heard = Vec::new();
    let mut feed = old.feed.unwrap();
    for _ in 0..3 {
        heard.push(feed.next().await.unwrap().line(Dialect::V03).into_owned());
    }
    assert_eq!(world.missed_lines(2, Dialect::V03).await.unwrap(), heard, "as it was sent");
    assert_eq!(world.missed_lines(0, Dialect::V1).await.unwrap(), told, "in the dialect nobody listened in");
}

#[tokio::test]
async fn a_log_goes_on_after_a_restart_even_if_nobody_listens() {
    let mut world = World::new().await;
    world.tell(0, 3).await;
    world.store.close(std::time::Duration::from_secs(5)).await.unwrap();
    (world.store, world.hubs) = open(&world.folder, 200).await;
    world.tell(3, 2).await;
    assert_eq!(world.missed(100, 2).await, Some(3));
    assert_eq!((world.missed(200, 4).await, world.missed(100, 4).await), (Some(1), None));
    let joined = world.join(Some(EventId { start_ms: 100, n: 1 })).await;
    assert_eq!(joined.id, EventId { start_ms: 200, n: 5 });
    assert_eq!(joined.missed.unwrap().len(), 4);
}

#[tokio::test]
async fn what_was_told_and_not_kept_makes_earlier_ids_unknown() {
    let world = World::new().await;
    world.tell(0, 2).await;
    let mut lost = vec![event(2)];
    let batch = world.hubs.tell(world.key, &mut lost).unwrap();
    let (key, events) = (world.key, vec![(event(2), 9)]);
    let written = world.store.write(move |context| {
        apply_told(context, key, events, &batch, Channel::Stream)?;
        Err::<(), _>(StoreError::Full)
    });
    assert!(written.await.is_err());
    let at = |n| Some(EventId { start_ms: 100, n });
    assert!(world.join(at(2)).await.missed.is_none(), "a hole at the end");
    world.tell(3, 2).await;
    assert!(world.join(at(2)).await.missed.is_none(), "a hole in the middle");
    assert_eq!(world.join(at(4)).await.missed.unwrap().len(), 1, "behind it all is well");
    world.tell_together(5, 3).await;
    assert!(world.join(at(2)).await.missed.is_none(), "and a row of several does not fill it");
    assert_eq!(world.join(at(6)).await.missed.unwrap().len(), 2);
}

#[tokio::test]
async fn a_log_is_bounded_and_goes_with_its_task() {
    let world = World::new().await;
    for round in 0..22 {
        world.tell(round * 500, 500).await;
    }
    let kept = world.store.read(|connection| {
        Ok(connection.query_row("SELECT sum(count) FROM gateway_events", [], |row| row.get::<_, i64>(0))?)
    });
    let kept = kept.await.unwrap();
    assert!((10_000..10_300).contains(&kept), "{kept} of 11000");
    assert_eq!((world.missed(100, 0).await, world.missed(100, 10_999).await), (None, Some(1)));
    let key = world.key;
    world.store.write(move |context| tasks::delete(context, key)).await.unwrap();
    assert_eq!(world.missed(100, 11_000).await, None);
}

#[tokio::test]
async fn who_joins_gets_the_task_and_then_only_what_is_not_in_it() {
    let world = World::new().await;
    world.tell(0, 1).await;
    // Told, and on its way to the writer.
    let mut waiting = vec![event(1)];
    let batch = world.hubs.tell(world.key, &mut waiting).unwrap();
    let joined = world.join(None).await;
    let said =
        |joined: &Joined| joined.task.status.message.as_ref().map(|message| message.message_id.to_string());
    assert_eq!((said(&joined).as_deref(), joined.id.n), (Some("m-0"), 1));
    let (key, events) = (world.key, vec![(event(1), 9)]);
    world
        .store
        .write(move |context| apply_told(context, key, events, &batch, Channel::Stream))
        .await
        .unwrap();
    let mut feed = joined.feed.unwrap();
    assert_eq!(feed.next().await.unwrap().id.n, 2);
    let later = world.join(None).await;
    assert_eq!((said(&later).as_deref(), later.id.n), (Some("m-1"), 2));
    world.tell(2, 1).await;
    assert_eq!(later.feed.unwrap().next().await.unwrap().id.n, 3, "and not the second once more");
}
