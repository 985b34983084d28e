//! The engine in process, following tasks of the demo agent over real sockets.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::time::Duration;

use taskbell_core::agent::{CardOrigin, PlainHttp};
use taskbell_core::dialect::Dialect;
use taskbell_core::ids::{AgentName, TaskRef};
use taskbell_demo_agent::{DemoAgent, Options};
use taskbell_engine::agents::manage::AgentWish;
use taskbell_engine::api::views::{ReconcileRequest, ShownState, TaskDetail};
use taskbell_engine::engine::Engine;
use taskbell_engine::keychain::{Keychain, KeychainChoice};
use taskbell_engine::store::{Store, wall_clock};
use taskbell_engine::tasks::{Outgoing, Sent};

struct World {
    folder: tempfile::TempDir,
    engine: Engine,
    agent: DemoAgent,
    name: AgentName,
}

const LIMIT: Duration = Duration::from_secs(20);

async fn start_engine(folder: &tempfile::TempDir) -> Engine {
    let (store, opened) = Store::open(folder.path(), wall_clock()).unwrap();
    let keychain = Keychain::start(KeychainChoice::Memory, "test", Duration::from_secs(1)).unwrap();
    Engine::with_store(store, opened, keychain).await.unwrap()
}

fn demo(port: u16, state: Option<&std::path::Path>) -> Options {
    Options { addr: ([127, 0, 0, 1], port).into(), state: state.map(Into::into), ..Options::default() }
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = start_engine(&folder).await;
        let state = folder.path().join("agent-state");
        let agent = taskbell_demo_agent::start(demo(0, Some(&state))).await.unwrap();
        let name = AgentName::new("demo").unwrap();
        let wish = AgentWish {
            name: name.clone(),
            url: agent.base_url().parse().unwrap(),
            card_origin: CardOrigin::Record,
            plain_http: PlainHttp::LoopbackOnly,
            credential: None,
        };
        engine.add_agent(wish).await.unwrap();
        Self { folder, engine, agent, name }
    }

    async fn send(&self, text: &str) -> TaskRef {
        let outgoing = Outgoing { text: text.to_owned(), context_id: None, parts: Vec::new(), push: None };
        match self.engine.send(&self.name, outgoing).await.unwrap() {
            Sent::Task(key) => self.engine.summary_of(key).await.unwrap().task,
            other => panic!("a task, not {other:?}"),
        }
    }

    async fn task(&self, task: &TaskRef) -> TaskDetail {
        self.engine.task(task).await.unwrap()
    }

    async fn wait_for(&self, task: &TaskRef, what: &str, is_so: impl Fn(&TaskDetail) -> bool) -> TaskDetail {
        let mut changes = self.engine.store().doorbell();
        let deadline = tokio::time::Instant::now() + LIMIT;
        loop {
            let detail = self.task(task).await;
            if is_so(&detail) {
                return detail;
            }
            let rung = tokio::time::timeout_at(deadline, changes.changed()).await;
            assert!(rung.is_ok(), "no {what} within {LIMIT:?}: {detail:#?}");
        }
    }

    async fn wait_for_end(&self, task: &TaskRef) -> TaskDetail {
        self.wait_for(task, "end", |detail| {
            detail.summary.following.mode == taskbell_engine::api::views::FollowingMode::Ended
        })
        .await
    }
}

fn kinds(detail: &TaskDetail) -> Vec<&str> {
    detail.timeline.iter().map(|change| change.kind.as_str()).collect()
}

#[tokio::test]
async fn a_task_is_followed_to_its_end_by_stream() {
    let world = World::new().await;
    let task = world.send("steps=3 interval=0.05 chunks=3").await;
    let detail = world.wait_for_end(&task).await;
    assert_eq!(detail.summary.state, ShownState::Completed);
    assert!(detail.summary.settled);
    assert_eq!(detail.artifacts[0].text, "chunk 1/3;chunk 2/3;chunk 3/3;");
    assert!(!kinds(&detail).contains(&"gap"), "{:?}", detail.timeline);
}

#[tokio::test]
async fn a_cut_is_drawn_as_a_gap_and_the_task_goes_on() {
    let world = World::new().await;
    let task = world.send("steps=8 interval=0.2 cut=3 chunks=3").await;
    let detail = world.wait_for_end(&task).await;
    assert_eq!(detail.summary.state, ShownState::Completed);
    assert_eq!(detail.artifacts[0].text, "chunk 1/3;chunk 2/3;chunk 3/3;");
    assert!(kinds(&detail).contains(&"gap"), "{:?}", detail.timeline);
    assert_eq!(world.agent.counters().all_sends(), 1, "reattaching never sends again");
}

#[tokio::test]
async fn a_question_is_answered_and_the_task_completes() {
    let world = World::new().await;
    let task = world.send("steps=3 interval=0.05 ask=1").await;
    let detail = world.wait_for(&task, "question", |detail| detail.summary.needs_you).await;
    assert!(detail.summary.question.is_some());
    let answered = world.engine.reply(&task, "yes".to_owned()).await.unwrap();
    assert!(!answered.needs_you, "answered");
    assert_eq!(world.wait_for_end(&task).await.summary.state, ShownState::Completed);
}

#[tokio::test]
async fn a_cancellation_is_waited_for() {
    let world = World::new().await;
    let task = world.send("steps=100 interval=0.1").await;
    assert_eq!(world.engine.cancel(&task).await.unwrap().state, ShownState::Canceled);
}

#[tokio::test]
async fn an_agent_that_forgot_the_task_makes_it_lost_and_not_failed() {
    let mut world = World::new().await;
    let task = world.send("steps=100 interval=0.1").await;
    world.wait_for(&task, "stream", |detail| detail.summary.last_confirmed.is_some()).await;
    let port = world.agent.local_addr().port();
    world.agent.stop().await.unwrap();
    world.agent = taskbell_demo_agent::start(demo(port, None)).await.unwrap();
    let detail = {
        let world = &world;
        world.wait_for_end(&task).await
    };
    assert_eq!(detail.summary.state, ShownState::Lost);
}

#[tokio::test]
async fn a_restarted_engine_takes_up_every_task_and_draws_the_gap() {
    let mut world = World::new().await;
    let task = world.send("steps=12 interval=0.2 chunks=3").await;
    world.wait_for(&task, "stream", |detail| kinds(detail).contains(&"status")).await;
    world.engine.stop(Duration::from_secs(3)).await;
    world.engine = start_engine(&world.folder).await;
    let detail = world.wait_for_end(&task).await;
    assert_eq!(detail.summary.state, ShownState::Completed);
    assert!(kinds(&detail).contains(&"gap"), "{:?}", detail.timeline);
}

#[tokio::test]
async fn an_agent_restarted_with_its_state_is_followed_again() {
    let mut world = World::new().await;
    let task = world.send("steps=10 interval=0.3 chunks=3").await;
    world.wait_for(&task, "stream", |detail| kinds(detail).contains(&"status")).await;
    let port = world.agent.local_addr().port();
    world.agent.stop().await.unwrap();
    let state = world.folder.path().join("agent-state");
    world.agent = taskbell_demo_agent::start(demo(port, Some(&state))).await.unwrap();
    let detail = world.wait_for_end(&task).await;
    assert_eq!(detail.summary.state, ShownState::Completed);
    assert_eq!(detail.artifacts[0].text, "chunk 1/3;chunk 2/3;chunk 3/3;");
}

#[tokio::test]
async fn reconciling_by_hand_says_what_each_task_was_and_is() {
    let world = World::new().await;
    let task = world.send("steps=100 interval=0.1").await;
    let request = ReconcileRequest { all: true, ..ReconcileRequest::default() };
    let items = world.engine.reconcile(request).await.unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!((&items[0].task, items[0].missed, items[0].error.as_deref()), (&task, false, None));
}

#[tokio::test]
async fn the_old_dialect_is_followed_as_well() {
    let world = World::new().await;
    world.engine.pin_dialect(&world.name, Some(Dialect::V03)).await.unwrap();
    let task = world.send("steps=5 interval=0.2 cut=2 chunks=3").await;
    let detail = world.wait_for_end(&task).await;
    assert_eq!(detail.summary.state, ShownState::Completed);
    assert_eq!(detail.artifacts[0].text, "chunk 1/3;chunk 2/3;chunk 3/3;");
}
