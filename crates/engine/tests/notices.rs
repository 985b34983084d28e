//! Which notices a task's changes write, in a real database and with a real agent. Nothing is shown here.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use taskbell_core::agent::{CardOrigin, PlainHttp};
use taskbell_core::dialect::read;
use taskbell_core::ids::{AgentName, TaskRef};
use taskbell_demo_agent::{DemoAgent, Options};
use taskbell_engine::agents::manage::AgentWish;
use taskbell_engine::engine::Engine;
use taskbell_engine::keychain::{Keychain, KeychainChoice};
use taskbell_engine::store::agents::{self, NewAgent};
use taskbell_engine::store::notices::{self, NoticeOutcome, NoticeRow};
use taskbell_engine::store::task_records::{Adoption, Told, adopt, apply_events, apply_read};
use taskbell_engine::store::tasks::{self, Channel, TaskSource, Verdict};
use taskbell_engine::store::{AgentKey, Store, TaskKey, WriteContext, wall_clock};
use taskbell_engine::tasks::{Outgoing, Sent};

struct World {
    folder: tempfile::TempDir,
    store: Store,
    agent: AgentKey,
    now_ms: Arc<AtomicI64>,
}

fn open(folder: &tempfile::TempDir, now_ms: &Arc<AtomicI64>) -> Store {
    let clock = Arc::clone(now_ms);
    Store::open(folder.path(), Arc::new(move || clock.load(Ordering::SeqCst))).unwrap().0
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now_ms = Arc::new(AtomicI64::new(1_000));
        let store = open(&folder, &now_ms);
        let insert = |context: &mut WriteContext<'_>| {
            let name = AgentName::new("builder").unwrap();
            let origin = "http://127.0.0.1:9".parse().unwrap();
            let registered_url = "http://127.0.0.1:9/";
            let agent = NewAgent {
                name: &name,
                registered_url,
                origin: &origin,
                use_card_url: false,
                allow_http: false,
            };
            agents::insert(context, &agent)
        };
        let agent = store.write(insert).await.unwrap();
        Self { folder, store, agent, now_ms }
    }

    async fn restart(self) -> Self {
        self.store.close(Duration::from_secs(5)).await.unwrap();
        let store = open(&self.folder, &self.now_ms);
        Self { store, ..self }
    }

    async fn write<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut WriteContext<'_>) -> Result<T, taskbell_engine::store::StoreError>
        + Send
        + 'static,
    ) -> T {
        self.now_ms.fetch_add(1_000, Ordering::SeqCst);
        self.store.write(command).await.unwrap()
    }

    async fn adopt(&self, source: TaskSource, told: Told, task: Value) -> TaskKey {
        let (agent, task) = (self.agent, read::task(task).unwrap());
        let adoption =
            Adoption { source, channel: Channel::Poll, told, title: "build it", credential_version: 0 };
        self.write(move |context| adopt(context, agent, task, 1, adoption)).await.0
    }

    async fn sent(&self) -> TaskKey {
        self.adopt(TaskSource::Send, Told::ByGetTask, task("working", None)).await
    }

    async fn stream(&self, key: TaskKey, order: u64, state: &str, message: &str) {
        let event = json!({"statusUpdate":{"taskId":"t-1","status":status(state, Some(message))}});
        let event = read::stream_event(event).unwrap();
        self.write(move |context| apply_events(context, key, vec![(event, order)], Channel::Stream)).await;
    }

    async fn read(&self, key: TaskKey, order: u64, state: &str, message: Option<&str>) {
        let task = read::task(task(state, message)).unwrap();
        self.write(move |context| apply_read(context, key, task, order, Channel::Poll)).await;
    }

    /// The oldest first.
    async fn rows(&self) -> Vec<NoticeRow> {
        let mut rows = self.store.read(|connection| notices::list(connection, None, 1_000)).await.unwrap();
        rows.reverse();
        rows
    }

    async fn told(&self) -> Vec<(&'static str, String)> {
        self.rows().await.into_iter().map(|row| (row.kind.word(), row.body)).collect()
    }

    async fn outcomes(&self) -> Vec<Option<NoticeOutcome>> {
        self.rows().await.into_iter().map(|row| row.outcome).collect()
    }
}

fn status(state: &str, message: Option<&str>) -> Value {
    match message {
        Some(text) => json!({"state": state,
            "message": {"messageId": text, "role": "agent", "parts": [{"text": text}]}}),
        None => json!({"state": state}),
    }
}

fn task(state: &str, message: Option<&str>) -> Value {
    json!({"id": "t-1", "contextId": "c-1", "status": status(state, message)})
}

fn waiting(body: &str) -> (&'static str, String) {
    ("waiting", body.to_owned())
}

#[tokio::test]
async fn a_question_is_told_once_whichever_channel_and_restart_brings_it() {
    let world = World::new().await;
    let key = world.sent().await;
    world.stream(key, 2, "input-required", "k-1").await;
    world.read(key, 5, "input-required", Some("k-1")).await;
    let world = world.restart().await;
    world.read(key, 6, "input-required", Some("k-1")).await;
    world.read(key, 7, "working", None).await;
    world.stream(key, 8, "input-required", "k-1").await;
    assert_eq!(
        world.told().await,
        [waiting("k-1")],
        "also where an agent answered with an old state between"
    );
}

#[tokio::test]
async fn the_words_of_a_question_said_before_it_waits_are_no_question() {
    let world = World::new().await;
    let key = world.sent().await;
    world.stream(key, 2, "working", "k-1").await;
    world.stream(key, 3, "input-required", "k-1").await;
    assert_eq!(world.told().await, [waiting("k-1")]);
}

#[tokio::test]
async fn a_second_question_is_told_again_and_stands_for_the_task() {
    let world = World::new().await;
    let key = world.sent().await;
    world.stream(key, 2, "input-required", "one?").await;
    world.stream(key, 3, "working", "thanks").await;
    world.stream(key, 4, "input-required", "two?").await;
    world.stream(key, 5, "auth-required", "sign in").await;
    assert_eq!(world.told().await, [waiting("one?"), waiting("two?"), waiting("sign in")]);
    let withdrawn = Some(NoticeOutcome::Withdrawn);
    assert_eq!(world.outcomes().await, [withdrawn, withdrawn, None], "one tag a task: the newest");
}

#[tokio::test]
async fn the_same_words_after_a_reply_are_asked_again() {
    let world = World::new().await;
    let key = world.sent().await;
    world.stream(key, 2, "input-required", "go on?").await;
    world.write(move |context| tasks::set_replied(context, key, context.now_ms, "yes")).await;
    world.stream(key, 3, "working", "working").await;
    world.stream(key, 4, "input-required", "go on?").await;
    assert_eq!(world.told().await, [waiting("go on?"), waiting("go on?")]);
}

#[tokio::test]
async fn an_end_is_told_once_by_stream_and_read() {
    let world = World::new().await;
    let key = world.sent().await;
    world.stream(key, 2, "completed", "done").await;
    world.read(key, 5, "completed", Some("done")).await;
    let world = world.restart().await;
    world.read(key, 6, "completed", None).await;
    assert_eq!(world.told().await, [("finished", "build it".to_owned())]);
}

#[tokio::test]
async fn progress_and_what_had_ended_before_are_not_told() {
    let world = World::new().await;
    let key = world.sent().await;
    for order in 2..50 {
        world.stream(key, order, "working", &format!("{order} of 50")).await;
    }
    for source in [TaskSource::Send, TaskSource::Watch, TaskSource::Import] {
        let ended = json!({"id": source.word(), "status": status("completed", None)});
        world.adopt(source, Told::ByGetTask, ended).await;
    }
    assert_eq!(world.told().await, []);
}

#[tokio::test]
async fn what_waited_before_it_was_followed_is_noted_and_not_told() {
    let world = World::new().await;
    let key = world.adopt(TaskSource::Import, Told::Otherwise, task("input-required", None)).await;
    world.read(key, 5, "input-required", Some("which?")).await;
    assert_eq!(world.told().await, [waiting("which?")], "the read brought the question of the list's row");
    assert_eq!(world.outcomes().await, [Some(NoticeOutcome::Suppressed)]);
    world.stream(key, 6, "input-required", "and this?").await;
    assert_eq!(world.outcomes().await, [Some(NoticeOutcome::Suppressed), None], "another question is news");
}

#[tokio::test]
async fn a_task_that_asks_in_its_first_answer_is_told() {
    let world = World::new().await;
    world.adopt(TaskSource::Send, Told::Otherwise, task("input-required", Some("which?"))).await;
    assert_eq!((world.told().await, world.outcomes().await), (vec![waiting("which?")], vec![None]));
}

#[tokio::test]
async fn the_users_cancellation_is_not_told_and_somebody_elses_is() {
    let world = World::new().await;
    let key = world.sent().await;
    world.write(move |context| tasks::set_cancel_asked(context, key, Some(1))).await;
    world.stream(key, 2, "canceled", "as you wish").await;
    assert_eq!(world.told().await, []);
    let other = World::new().await;
    let key = other.sent().await;
    other.stream(key, 2, "canceled", "by an admin").await;
    assert_eq!(other.told().await, [("finished", "build it".to_owned())]);
}

#[tokio::test]
async fn a_task_that_is_gone_is_lost_once_and_never_finished() {
    let world = World::new().await;
    let key = world.sent().await;
    for _ in 0..2 {
        world.write(move |context| tasks::end_following(context, key, Some(Verdict::Lost))).await;
    }
    assert_eq!(world.told().await, [("lost", "build it".to_owned())]);
}

#[tokio::test]
async fn a_refused_credential_is_told_once_for_all_tasks_of_its_agent() {
    let world = World::new().await;
    let one = world.sent().await;
    let two = world
        .adopt(TaskSource::Send, Told::ByGetTask, json!({"id": "t-2", "status": status("working", None)}))
        .await;
    for key in [one, two] {
        world.write(move |context| tasks::set_trouble(context, key, Some("unauthorized"))).await;
    }
    assert_eq!(world.rows().await.len(), 1);
    for key in [one, two] {
        world.write(move |context| tasks::set_trouble(context, key, None)).await;
    }
    let settled = world.store.read(notices::settled).await.unwrap();
    assert_eq!(settled.len(), 1, "the agent takes it again");
    world.write(move |context| notices::withdraw(context, &settled)).await;
    world.write(move |context| tasks::set_trouble(context, one, Some("forbidden"))).await;
    assert_eq!(world.rows().await.len(), 2, "refused anew");
}

#[tokio::test]
async fn silence_is_told_once_until_the_task_is_heard_of_again() {
    let world = World::new().await;
    let key = world.sent().await;
    for _ in 0..3 {
        world.write(|context| notices::note_silence(context, context.now_ms)).await;
    }
    assert_eq!(world.rows().await.len(), 1);
    world.read(key, 9, "working", None).await;
    world.write(|context| notices::note_silence(context, context.now_ms)).await;
    let kinds: Vec<&str> = world.told().await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["unconfirmed", "unconfirmed"], "the second silence is another");
}

#[tokio::test]
async fn a_question_answered_or_left_is_settled() {
    let world = World::new().await;
    let key = world.sent().await;
    world.stream(key, 2, "input-required", "one?").await;
    assert!(world.store.read(notices::settled).await.unwrap().is_empty(), "it waits");
    world.write(move |context| tasks::set_replied(context, key, context.now_ms, "yes")).await;
    assert_eq!(world.store.read(notices::settled).await.unwrap().len(), 1, "answered here");
    let other = World::new().await;
    let key = other.sent().await;
    other.stream(key, 2, "input-required", "one?").await;
    other.stream(key, 3, "working", "somebody answered").await;
    assert_eq!(other.store.read(notices::settled).await.unwrap().len(), 1, "answered elsewhere");
    assert!(!other.write(move |context| notices::snooze(context, key, 9)).await, "nothing to snooze");
}

/// An engine without a window, and an agent that does as it is told.
struct Live {
    folder: tempfile::TempDir,
    engine: Engine,
    _agent: DemoAgent,
    name: AgentName,
}

async fn start_engine(folder: &tempfile::TempDir) -> Engine {
    let (store, opened) = Store::open(folder.path(), wall_clock()).unwrap();
    let keychain = Keychain::start(KeychainChoice::Memory, "test", Duration::from_secs(1)).unwrap();
    Engine::with_store(store, opened, keychain).await.unwrap()
}

impl Live {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = start_engine(&folder).await;
        let state = Some(folder.path().join("agent-state"));
        let options = Options { state, ..Options::default() };
        let agent = taskbell_demo_agent::start(options).await.unwrap();
        let name = AgentName::new("demo").unwrap();
        let wish = AgentWish {
            name: name.clone(),
            url: agent.base_url().parse().unwrap(),
            card_origin: CardOrigin::Record,
            plain_http: PlainHttp::LoopbackOnly,
            credential: None,
        };
        engine.add_agent(wish).await.unwrap();
        Self { folder, engine, _agent: agent, name }
    }

    async fn send(&self, text: &str) -> TaskRef {
        let outgoing = Outgoing { text: text.to_owned(), context_id: None, parts: Vec::new(), push: None };
        match self.engine.send(&self.name, outgoing).await.unwrap() {
            Sent::Task(key) => self.engine.summary_of(key).await.unwrap().task,
            other => panic!("a task, not {other:?}"),
        }
    }

    /// Kinds and outcomes of a task's notices, the oldest first.
    async fn told(&self, task: &TaskRef) -> Vec<(String, Option<String>)> {
        let mut items = self.engine.notices(None, 1_000).await.unwrap().items;
        items.retain(|item| item.task.as_ref() == Some(task));
        items.into_iter().rev().map(|item| (item.kind, item.outcome)).collect()
    }

    async fn wait_for(&self, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
        let mut changes = self.engine.store().doorbell();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while !is_so().await {
            let rung = tokio::time::timeout_at(deadline, changes.changed()).await;
            assert!(rung.is_ok(), "no {what}");
        }
    }
}

fn without_window(kind: &str) -> (String, Option<String>) {
    (kind.to_owned(), Some("no-desktop".to_owned()))
}

#[tokio::test]
async fn without_a_window_every_notice_is_recorded_once_also_over_a_restart() {
    let mut live = Live::new().await;
    let task = live.send("steps=4 interval=0.05 ask=2").await;
    live.wait_for("question", async || live.told(&task).await == [without_window("waiting")]).await;
    live.engine.stop(Duration::from_secs(3)).await;
    live.engine = start_engine(&live.folder).await;
    live.engine.reply(&task, "yes".to_owned()).await.unwrap();
    let both = [without_window("waiting"), without_window("finished")];
    live.wait_for("end", async || live.told(&task).await == both).await;
    let failed = live.send("steps=2 interval=0.05 fail=yes").await;
    live.wait_for("failure", async || live.told(&failed).await == [without_window("failed")]).await;
    let test = live.engine.test_notice().await.unwrap();
    assert_eq!((test.kind.as_str(), test.outcome.as_deref()), ("test", Some("no-desktop")));
}

#[tokio::test]
async fn a_cancellation_of_our_own_makes_no_notice_whether_stream_or_answer_tells_first() {
    let live = Live::new().await;
    for _ in 0..3 {
        let task = live.send("steps=100 interval=0.1").await;
        live.engine.cancel(&task).await.unwrap();
        let ended = async || live.engine.summary(&task).await.unwrap().settled;
        live.wait_for("end", ended).await;
        assert_eq!(live.told(&task).await, []);
    }
}
