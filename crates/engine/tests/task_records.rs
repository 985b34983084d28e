//! Tasks in a real database: what frames and reads write, and what a restart finds.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use taskbell_core::dialect::read;
use taskbell_core::ids::{AgentName, TaskId, TaskRef};
use taskbell_core::state::TaskState;
use taskbell_engine::store::agents::{self, NewAgent};
use taskbell_engine::store::changes::{ChangeRow, changes_of_task};
use taskbell_engine::store::lists::{self, TaskCursor, TaskFilter};
use taskbell_engine::store::task_records::{Adoption, Told, adopt, apply_events, apply_read};
use taskbell_engine::store::tasks::{self, Channel, Following, TaskSource, Verdict};
use taskbell_engine::store::{AgentKey, Store, StoreError, TaskKey, task_content};

struct World {
    folder: tempfile::TempDir,
    store: Store,
    agent: AgentKey,
    now_ms: Arc<AtomicI64>,
}

const ADOPTION: Adoption<'static> = Adoption {
    source: TaskSource::Send,
    channel: Channel::Poll,
    told: Told::ByGetTask,
    title: "build it",
    credential_version: 0,
};

fn open(folder: &tempfile::TempDir, now_ms: &Arc<AtomicI64>) -> Store {
    let clock = Arc::clone(now_ms);
    Store::open(folder.path(), Arc::new(move || clock.load(Ordering::SeqCst))).unwrap().0
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now_ms = Arc::new(AtomicI64::new(1_000));
        let store = open(&folder, &now_ms);
        let agent = store
            .write(|context| {
                let name = AgentName::new("builder").unwrap();
                let origin = "http://127.0.0.1:9".parse().unwrap();
                let url = "http://127.0.0.1:9/";
                let agent = NewAgent {
                    name: &name,
                    registered_url: url,
                    origin: &origin,
                    use_card_url: false,
                    allow_http: false,
                };
                agents::insert(context, &agent)
            })
            .await
            .unwrap();
        Self { folder, store, agent, now_ms }
    }

    async fn restart(self) -> Self {
        self.store.close(std::time::Duration::from_secs(5)).await.unwrap();
        let store = open(&self.folder, &self.now_ms);
        Self { store, ..self }
    }

    fn pass_a_second(&self) {
        self.now_ms.fetch_add(1_000, Ordering::SeqCst);
    }

    async fn adopt(&self, task: Value) -> TaskKey {
        let (agent, task) = (self.agent, read::task(task).unwrap());
        self.store.write(move |context| adopt(context, agent, task, 1, ADOPTION)).await.unwrap().0
    }

    async fn events(&self, key: TaskKey, first: u64, events: Vec<Value>) {
        let events = events
            .into_iter()
            .enumerate()
            .map(|(index, event)| (read::stream_event(event).unwrap(), first + index as u64))
            .collect();
        self.store.write(move |context| apply_events(context, key, events, Channel::Stream)).await.unwrap();
    }

    async fn read(&self, key: TaskKey, order: u64, task: Value) {
        let task = read::task(task).unwrap();
        self.store.write(move |context| apply_read(context, key, task, order, Channel::Poll)).await.unwrap();
    }

    async fn row(&self, key: TaskKey) -> tasks::TaskRow {
        self.store.read(move |connection| tasks::get(connection, key)).await.unwrap()
    }

    async fn task(&self, key: TaskKey) -> taskbell_core::task::Task {
        self.store.read(move |connection| task_content::load(connection, key)).await.unwrap().0
    }

    async fn timeline(&self, key: TaskKey) -> Vec<(String, Value)> {
        let rows = self.store.read(move |connection| changes_of_task(connection, key, 0, 100)).await.unwrap();
        rows.into_iter().map(|row| (row.kind, serde_json::from_str(&row.body_json).unwrap())).collect()
    }
}

fn working() -> Value {
    json!({"id":"t-1","contextId":"c-1","status":{"state":"working"},"generation":"7"})
}

fn chunk(append: bool, text: &str) -> Value {
    json!({"artifactUpdate":{"taskId":"t-1","append":append,"artifact":{"artifactId":"a","parts":[{"text":text}]}}})
}

fn status(state: &str, message: &str) -> Value {
    json!({"statusUpdate":{"taskId":"t-1","status":{"state":state,
        "message":{"messageId":message,"role":"agent","parts":[{"text":message}]}}}})
}

#[tokio::test]
async fn of_what_came_together_the_row_shows_the_last_and_the_timeline_all() {
    let world = World::new().await;
    let key = world.adopt(working()).await;
    world.pass_a_second();
    let asked_and_went_on =
        vec![status("working", "one"), status("input-required", "which?"), status("working", "two")];
    world.events(key, 2, asked_and_went_on).await;
    let row = world.row(key).await;
    assert_eq!((row.state, row.waiting_since_ms), (TaskState::Working, None), "nobody waits any more");
    assert_eq!((row.confirmed_at_ms, row.updated_at_ms), (Some(2_000), 2_000));
    let statuses = world.timeline(key).await.into_iter().filter(|(kind, _)| kind == "status");
    let told: Vec<Value> = statuses.map(|(_, body)| body["text"].clone()).collect();
    assert_eq!(told, ["one", "which?", "two"]);
    world.pass_a_second();
    world.events(key, 5, vec![status("working", "three"), status("input-required", "and now?")]).await;
    let row = world.row(key).await;
    assert_eq!((row.state, row.waiting_since_ms), (TaskState::InputRequired, Some(3_000)));
    assert!(row.status_json.contains("and now?"));
}

#[tokio::test]
async fn what_a_stream_brought_is_there_after_a_restart() {
    let world = World::new().await;
    let key = world.adopt(working()).await;
    world
        .events(
            key,
            2,
            vec![status("working", "one"), chunk(false, "Hel"), chunk(true, "lo"), status("working", "two")],
        )
        .await;
    let world = world.restart().await;
    let task = world.task(key).await;
    assert_eq!(task.artifacts[0].text(), "Hello");
    assert_eq!(task.history.iter().map(|item| item.text()).collect::<Vec<_>>(), ["one"]);
    assert_eq!(task.status.message.as_ref().map(|item| item.text()).as_deref(), Some("two"));
    assert_eq!(task.extra.get("generation"), Some(&json!("7")), "unknown members are kept");
    world.events(key, 9, vec![chunk(true, "!")]).await;
    assert_eq!(world.task(key).await.artifacts[0].text(), "Hello!", "the record is loaded and goes on");
}

#[tokio::test]
async fn the_timeline_holds_each_change_once_and_nothing_for_repeats() {
    let world = World::new().await;
    let key = world.adopt(working()).await;
    world
        .events(
            key,
            2,
            vec![status("working", "one"), status("working", "one"), status("input-required", "which?")],
        )
        .await;
    world
        .read(
            key,
            9,
            json!({"id":"t-1","contextId":"c-1","generation":"7","status":{"state":"input-required",
        "message":{"messageId":"which?","role":"agent","parts":[{"text":"which?"}]}}}),
        )
        .await;
    let timeline = world.timeline(key).await;
    let kinds: Vec<&str> = timeline.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["task", "status", "status", "notice"], "the question is told once");
    assert_eq!(timeline[2].1, json!({"state":"input-required","from":"working","text":"which?"}));
}

#[tokio::test]
async fn a_question_waits_until_it_is_answered_and_a_second_one_waits_again() {
    let world = World::new().await;
    let key = world.adopt(working()).await;
    world.events(key, 2, vec![status("input-required", "which?")]).await;
    assert!(world.row(key).await.needs_you(9_000));
    world.pass_a_second();
    world.store.write(move |context| tasks::set_replied(context, key, 2_500, "that one")).await.unwrap();
    assert!(!world.row(key).await.needs_you(9_000), "a waiting state older than our reply does not count");
    world.pass_a_second();
    world.events(key, 5, vec![status("input-required", "sure?")]).await;
    assert!(world.row(key).await.needs_you(9_000));
    world.events(key, 6, vec![status("working", "on it")]).await;
    assert!(!world.row(key).await.needs_you(9_000));
}

#[tokio::test]
async fn a_lost_task_that_is_found_again_is_no_longer_lost() {
    let world = World::new().await;
    let key = world.adopt(working()).await;
    world.store.write(move |context| tasks::end_following(context, key, Some(Verdict::Lost))).await.unwrap();
    let row = world.row(key).await;
    assert_eq!((row.state_word(), row.following), ("lost", Following::Ended));
    world.read(key, 9, working()).await;
    assert_eq!(world.row(key).await.state_word(), "working");
}

#[tokio::test]
async fn a_failed_command_leaves_neither_row_nor_record() {
    let world = World::new().await;
    let key = world.adopt(working()).await;
    let event = read::stream_event(chunk(false, "lost")).unwrap();
    let refused: Result<(), StoreError> = world
        .store
        .write(move |context| {
            apply_events(context, key, vec![(event, 2)], Channel::Stream)?;
            Err(StoreError::Missing { what: "a reason to go on".to_owned() })
        })
        .await;
    assert!(refused.is_err());
    world.events(key, 3, vec![chunk(true, "tail")]).await;
    let (task, incomplete) =
        world.store.read(move |connection| task_content::load(connection, key)).await.unwrap();
    assert_eq!(task.artifacts[0].text(), "tail", "the rolled back chunk is not remembered");
    assert_eq!(incomplete.len(), 1);
}

#[tokio::test]
async fn a_task_is_found_by_its_id_or_by_a_unique_prefix() {
    let world = World::new().await;
    world.adopt(json!({"id":"abc-1","status":{"state":"working"}})).await;
    world.adopt(json!({"id":"abd_%","status":{"state":"completed"}})).await;
    let builder = AgentName::new("builder").unwrap();
    let count = |prefix: &'static str| {
        let (store, agent) = (world.store.clone(), builder.clone());
        async move {
            store
                .read(move |connection| tasks::find_by_prefix(connection, &agent, prefix))
                .await
                .unwrap()
                .len()
        }
    };
    assert_eq!((count("ab").await, count("abc").await, count("abd_").await, count("a_").await), (2, 1, 1, 0));
    let exact = TaskRef { agent: builder, task: TaskId::new("abd_%") };
    assert!(world.store.read(move |connection| tasks::find(connection, &exact)).await.unwrap().is_some());
}

#[tokio::test]
async fn lists_are_paged_by_the_latest_change_and_filtered() {
    let world = World::new().await;
    for index in 0..5 {
        let state = if index % 2 == 0 { "working" } else { "completed" };
        world.adopt(json!({"id":format!("t-{index}"),"status":{"state":state}})).await;
    }
    let page = |filter: TaskFilter, after: Option<TaskCursor>| {
        let store = world.store.clone();
        async move { store.read(move |connection| lists::list(connection, &filter, after, 2)).await.unwrap() }
    };
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let rows = page(TaskFilter::default(), after).await;
        let Some(last) = rows.last() else { break };
        after = Some(TaskCursor { updated_at_ms: last.updated_at_ms, key: last.key });
        seen.extend(rows.iter().map(|row| row.task_id.to_string()));
    }
    assert_eq!(seen, ["t-4", "t-3", "t-2", "t-1", "t-0"]);
    let open = page(TaskFilter { open: true, ..TaskFilter::default() }, None).await;
    assert!(open.iter().all(|row| row.state == TaskState::Working));
    let completed = TaskFilter { states: vec!["completed".into()], ..TaskFilter::default() };
    assert_eq!(page(completed, None).await.len(), 2);
}

#[tokio::test]
async fn a_flood_of_progress_fills_neither_the_timeline_nor_loses_the_end() {
    let world = World::new().await;
    let key = world.adopt(working()).await;
    let flood = (0..3_000).map(|index| status("working", &format!("m-{index}"))).collect();
    world.events(key, 2, flood).await;
    world.events(key, 9_000, vec![status("completed", "done")]).await;
    let agent = world.agent;
    let (count, oddities): (i64, _) = world
        .store
        .read(move |connection| {
            let count = connection.query_row("SELECT count(*) FROM changes", [], |row| row.get(0))?;
            Ok((count, agents::oddities(connection, agent)?))
        })
        .await
        .unwrap();
    assert!(count < 1_100, "{count} changes");
    assert!(oddities.iter().any(|oddity| oddity.kind == "flood"), "{oddities:?}");
    assert_eq!(world.row(key).await.state, TaskState::Completed);
    let last = world.store.read(move |connection| changes_of_task(connection, key, 0, 5_000)).await.unwrap();
    let ended = |change: &&ChangeRow| change.kind == "status" && change.body_json.contains("completed");
    assert_eq!(last.iter().filter(ended).count(), 1, "a new state is always announced");
}

#[tokio::test]
async fn progress_moves_a_task_up_every_ten_seconds_and_is_heard_of_at_once() {
    let world = World::new().await;
    let key = world.adopt(working()).await;
    let told =
        |row: &tasks::TaskRow| (row.updated_at_ms, row.confirmed_at_ms.unwrap(), row.confirmed_by.unwrap());
    let words = |row: &tasks::TaskRow| row.status_json.contains("step");
    world.pass_a_second();
    world.events(key, 2, vec![status("working", "step 1")]).await;
    assert_eq!(told(&world.row(key).await), (1_000, 2_000, Channel::Stream), "the first by another channel");
    for second in 3..=11 {
        world.pass_a_second();
        world.events(key, second, vec![status("working", &format!("step {second}")), chunk(true, "x")]).await;
        let row = world.row(key).await;
        assert_eq!(told(&row), (1_000, second as i64 * 1_000, Channel::Stream));
        assert!(words(&row) && row.status_json.contains(&format!("step {second}")), "{}", row.status_json);
    }
    world.pass_a_second();
    world.events(key, 20, vec![chunk(true, "y")]).await;
    assert_eq!(told(&world.row(key).await), (12_000, 12_000, Channel::Stream), "ten seconds are over");
    world.pass_a_second();
    world.events(key, 21, vec![status("input-required", "which?")]).await;
    assert_eq!(told(&world.row(key).await), (13_000, 13_000, Channel::Stream), "a question is no progress");
}
