//! Callbacks in the store of a real engine, its tasks at the demo agent over real sockets: what a callback makes the
//! engine read, and what it is found to be worth.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::time::Duration;

use taskbell_core::agent::{CardOrigin, PlainHttp};
use taskbell_core::callback::{
    Digest, Presented, ProofPolicy, Registered, RegistrationPath, judge, read_claim,
};
use taskbell_core::ids::{AgentName, TaskRef};
use taskbell_core::missed::{Way, Why};
use taskbell_core::verdict::{Reason, Verdict};
use taskbell_demo_agent::{DemoAgent, Options};
use taskbell_engine::agents::manage::AgentWish;
use taskbell_engine::api::views::{ShownState, TaskSummary};
use taskbell_engine::engine::Engine;
use taskbell_engine::keychain::{Keychain, KeychainChoice};
use taskbell_engine::store::callbacks::{self, CallbackRow, NewCallback};
use taskbell_engine::store::ends::{self, EndRow};
use taskbell_engine::store::registrations::{self, NewRegistration, Purpose};
use taskbell_engine::store::tasks::Channel;
use taskbell_engine::store::{RegistrationKey, Store, TaskKey, notices, tasks, wall_clock};
use taskbell_engine::tasks::{Outgoing, Sent};

const LIMIT: Duration = Duration::from_secs(30);

struct World {
    folder: tempfile::TempDir,
    engine: Engine,
    agent: Option<DemoAgent>,
    port: u16,
    name: AgentName,
}

async fn start_engine(folder: &tempfile::TempDir) -> Engine {
    let (store, opened) = Store::open(folder.path(), wall_clock()).unwrap();
    let keychain = Keychain::start(KeychainChoice::Memory, "test", Duration::from_secs(1)).unwrap();
    Engine::with_store(store, opened, keychain).await.unwrap()
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = start_engine(&folder).await;
        let name = AgentName::new("demo").unwrap();
        let mut world = Self { folder, engine, agent: None, port: 0, name };
        world.start_agent().await;
        let wish = AgentWish {
            name: world.name.clone(),
            url: world.agent().base_url().parse().unwrap(),
            card_origin: CardOrigin::Record,
            plain_http: PlainHttp::LoopbackOnly,
            credential: None,
        };
        world.engine.add_agent(wish).await.unwrap();
        world
    }

    fn agent(&self) -> &DemoAgent {
        self.agent.as_ref().unwrap()
    }

    async fn start_agent(&mut self) {
        let state = self.folder.path().join("agent-state");
        let options = Options {
            addr: ([127, 0, 0, 1], self.port).into(),
            tokens: Vec::new(),
            state: Some(state),
            ..Options::default()
        };
        let agent = taskbell_demo_agent::start(options).await.unwrap();
        self.port = agent.local_addr().port();
        self.agent = Some(agent);
    }

    async fn stop_agent(&mut self) {
        self.agent.take().unwrap().stop().await.unwrap();
    }

    async fn send(&self, text: &str) -> (TaskKey, TaskRef) {
        let outgoing = Outgoing { text: text.to_owned(), context_id: None, parts: Vec::new(), push: None };
        match self.engine.send(&self.name, outgoing).await.unwrap() {
            Sent::Task(key) => (key, self.engine.summary_of(key).await.unwrap().task),
            other => panic!("a task, not {other:?}"),
        }
    }

    /// A registration that the agent has taken.
    async fn register(&self, task: TaskKey) -> RegistrationKey {
        let write = move |context: &mut taskbell_engine::store::WriteContext<'_>| {
            let agent = tasks::get(context.tx, task)?.agent_key;
            let path = RegistrationPath::of_random(rand::random());
            let new = NewRegistration {
                path: &path,
                purpose: Purpose::Task,
                agent: Some(agent),
                task: Some(task),
                config_id: "c-1",
                url: "http://127.0.0.1:7421/a2a/callbacks/x",
                policy: ProofPolicy::Any,
                key_version: 1,
                token: Some(Digest::of(b"tok")),
                credential: None,
            };
            let key = registrations::insert(context, &new)?;
            registrations::set_registered(context, key, None)?;
            Ok(key)
        };
        self.engine.store().write(write).await.unwrap()
    }

    /// What the inbox does with a callback that proved itself.
    async fn arrive(&self, registration: RegistrationKey, body: &str) {
        let registered = Registered { token: Some(Digest::of(b"tok")), ..Registered::default() };
        let new = NewCallback {
            registration,
            body: body.as_bytes().to_vec(),
            sha256: Digest::of(body.as_bytes()),
            headers_json: "{}".to_owned(),
            proofs: judge(&registered, Presented { token: Some(b"tok"), authorization: None }, 0),
            bound: true,
            claim: read_claim(body.as_bytes()).unwrap(),
        };
        let stored = self.engine.store().write(move |context| callbacks::store(context, &new)).await.unwrap();
        self.engine.parts().bells().ring_due(stored.task.unwrap());
    }

    async fn callbacks(&self, task: TaskKey) -> Vec<CallbackRow> {
        self.engine.store().read(move |connection| callbacks::of_task(connection, task)).await.unwrap()
    }

    async fn end(&self, task: TaskKey) -> Option<EndRow> {
        self.engine.store().read(move |connection| ends::get(connection, task)).await.unwrap()
    }

    async fn summary(&self, task: TaskKey) -> TaskSummary {
        self.engine.summary_of(task).await.unwrap()
    }

    async fn is_due(&self, task: TaskKey) -> bool {
        self.engine.store().read(move |connection| callbacks::due(connection, task)).await.unwrap().is_due()
    }

    async fn notices(&self) -> usize {
        self.engine.store().read(|connection| notices::list(connection, None, 100)).await.unwrap().len()
    }

    /// Waits for what the store shows; the doorbell says when to look again.
    async fn until<F>(&self, what: &str, is_so: impl Fn() -> F)
    where
        F: Future<Output = bool>,
    {
        let mut changes = self.engine.store().doorbell();
        let deadline = tokio::time::Instant::now() + LIMIT;
        while !is_so().await {
            // Rows without a change ring nobody: looked at now and then as well.
            let _ = tokio::time::timeout(Duration::from_millis(100), changes.changed()).await;
            assert!(tokio::time::Instant::now() < deadline, "not within {LIMIT:?}: {what}");
        }
    }

    async fn until_judged(&self, task: TaskKey, verdict: Verdict) {
        self.until(verdict.word(), || async {
            let rows = self.callbacks(task).await;
            !rows.is_empty() && rows.iter().all(|row| row.verdict == verdict)
        })
        .await;
    }

    async fn until_ended(&self, task: TaskKey) {
        self.until("end", || async { self.summary(task).await.settled }).await;
    }
}

fn says(task: &TaskRef, state: &str) -> String {
    format!(r#"{{"statusUpdate":{{"taskId":"{}","status":{{"state":"{state}"}},"final":true}}}}"#, task.task)
}

#[tokio::test]
async fn a_true_callback_is_confirmed_by_one_read_and_both_documents_are_kept() {
    let world = World::new().await;
    let (key, task) = world.send("steps=1 interval=0.01").await;
    world.until_ended(key).await;
    let registration = world.register(key).await;
    let before = world.agent().counters().gets();
    world.arrive(registration, &says(&task, "completed")).await;
    world.until_judged(key, Verdict::Confirmed).await;
    assert_eq!(world.agent().counters().gets() - before, 1);
    assert!(!world.is_due(key).await);
    let row = world.callbacks(key).await.remove(0);
    assert_eq!(row.reason, Some(Reason::SaysTheSame));
    assert!(row.body.is_some() && row.confirmation.is_some());
}

#[tokio::test]
async fn a_callback_that_lies_changes_nothing_but_its_own_record() {
    let world = World::new().await;
    let (key, task) = world.send("steps=200 interval=0.1").await;
    let registration = world.register(key).await;
    world.until("work", || async { world.summary(key).await.state == ShownState::Working }).await;
    world.arrive(registration, &says(&task, "TASK_STATE_COMPLETED")).await;
    world.until_judged(key, Verdict::Ahead).await;
    let row = world.callbacks(key).await.remove(0);
    assert_eq!(row.reason, Some(Reason::NotEnded));
    assert!(!world.is_due(key).await);
    assert_eq!(world.summary(key).await.state, ShownState::Working);
    assert_eq!((world.end(key).await, world.notices().await), (None, 0));
}

#[tokio::test]
async fn a_thousand_replays_cost_two_reads_and_no_notice() {
    let world = World::new().await;
    let (key, task) = world.send("steps=1 interval=0.01").await;
    world.until_ended(key).await;
    let registration = world.register(key).await;
    let body = says(&task, "completed");
    world.arrive(registration, &body).await;
    world.until_judged(key, Verdict::Confirmed).await;
    let (reads, notices) = (world.agent().counters().gets(), world.notices().await);
    for _ in 0..1_000 {
        world.arrive(registration, &body).await;
    }
    world.until("clean", || async { !world.is_due(key).await }).await;
    let row = world.callbacks(key).await.remove(0);
    assert_eq!((row.count, row.verdict), (1_001, Verdict::Confirmed));
    let cost = world.agent().counters().gets() - reads;
    assert!((1..=2).contains(&cost), "{cost} reads");
    assert_eq!(world.notices().await, notices);
}

#[tokio::test]
async fn a_burst_of_different_callbacks_is_told_by_few_reads() {
    let world = World::new().await;
    let (key, task) = world.send("steps=1 interval=0.01").await;
    world.until_ended(key).await;
    let registration = world.register(key).await;
    let reads = world.agent().counters().gets();
    let began = tokio::time::Instant::now();
    for number in 0..200 {
        let body = format!(
            r#"{{"kind":"status-update","taskId":"{}","status":{{"state":"working","timestamp":"{number}"}}}}"#,
            task.task
        );
        world.arrive(registration, &body).await;
    }
    world.until_judged(key, Verdict::Behind).await;
    let cost = u128::from(world.agent().counters().gets() - reads);
    let most = began.elapsed().as_millis() / 200 + 2;
    assert!(cost <= most, "{cost} reads, {most} at most");
}

#[tokio::test]
async fn an_end_first_read_because_of_a_callback_was_found_by_push_and_noticed_once() {
    let world = World::new().await;
    let (key, task) = world.send("steps=1 interval=0.01 hold=1").await;
    world.engine.pause(&task).await.unwrap();
    let registration = world.register(key).await;
    world
        .until("end at the agent", || async {
            world.agent().counters().open_streams() == 0 && {
                // A claim that comes before the end is ahead and held against the task once more.
                world.arrive(registration, &says(&task, "completed")).await;
                world.summary(key).await.state == ShownState::Completed
            }
        })
        .await;
    let end = world.end(key).await.unwrap();
    assert_eq!((end.found_by, end.missed), (Channel::Push, None));
    world.until_judged(key, Verdict::Confirmed).await;
    assert_eq!(world.notices().await, 1);
}

#[tokio::test]
async fn a_claim_stays_a_claim_while_the_agent_is_down_and_is_confirmed_when_it_is_back() {
    let mut world = World::new().await;
    let (key, task) = world.send("steps=2 interval=0.2").await;
    let registration = world.register(key).await;
    world.until("work", || async { world.summary(key).await.state == ShownState::Working }).await;
    world.stop_agent().await;
    world.arrive(registration, &says(&task, "completed")).await;
    world.until_judged(key, Verdict::Unreachable).await;
    assert_eq!(world.summary(key).await.state, ShownState::Working, "a claim is no state");
    assert!(world.is_due(key).await);
    world.start_agent().await;
    world.until_ended(key).await;
    world.until_judged(key, Verdict::Confirmed).await;
    assert_eq!(world.end(key).await.unwrap().missed, None, "a callback had told");
    assert_eq!(world.notices().await, 1);
}

#[tokio::test]
async fn what_was_due_when_the_engine_was_killed_is_read_after_its_start() {
    let mut world = World::new().await;
    let (key, task) = world.send("steps=1 interval=0.01").await;
    world.until_ended(key).await;
    let registration = world.register(key).await;
    world.stop_agent().await;
    world.arrive(registration, &says(&task, "completed")).await;
    world.until_judged(key, Verdict::Unreachable).await;
    world.engine.stop(Duration::from_secs(3)).await;
    world.start_agent().await;
    world.engine = start_engine(&world.folder).await;
    world.until_judged(key, Verdict::Confirmed).await;
    assert!(!world.is_due(key).await);
}

#[tokio::test]
async fn an_end_while_we_did_not_run_was_missed_for_that_reason_and_noticed_once() {
    let mut world = World::new().await;
    let (key, _) = world.send("steps=2 interval=0.2").await;
    world.register(key).await;
    world.until("work", || async { world.summary(key).await.state == ShownState::Working }).await;
    world.engine.stop(Duration::from_secs(3)).await;
    let agent_is_done = async {
        while world.agent().counters().open_streams() > 0 {
            tokio::task::yield_now().await;
        }
        // It goes on alone; its two steps take less than this.
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    agent_is_done.await;
    world.engine = start_engine(&world.folder).await;
    world.until_ended(key).await;
    assert_eq!(world.notices().await, 1);
    world.until("judgement", || async { world.end(key).await.unwrap().judge_at_ms.is_none() }).await;
    let (way, why) = world.end(key).await.unwrap().missed.unwrap();
    assert_eq!(why, Why::NotRunning);
    assert!(matches!(way, Way::Push | Way::Stream), "the registration was seconds old");
}

#[tokio::test]
async fn a_callback_of_a_task_that_the_agent_forgot_matches_nothing() {
    let mut world = World::new().await;
    let (key, task) = world.send("steps=1 interval=0.01").await;
    world.until_ended(key).await;
    let registration = world.register(key).await;
    world.stop_agent().await;
    std::fs::remove_file(world.folder.path().join("agent-state")).unwrap();
    world.start_agent().await;
    world.arrive(registration, &says(&task, "completed")).await;
    world.until_judged(key, Verdict::Unmatched).await;
    assert_eq!(world.callbacks(key).await[0].reason, Some(Reason::NoSuchTask));
    assert!(!world.is_due(key).await);
    assert_eq!(world.summary(key).await.state, ShownState::Completed, "an end stays");
}

#[tokio::test]
async fn another_end_than_the_tasks_matches_nothing_and_is_on_the_agents_report() {
    let world = World::new().await;
    let (key, task) = world.send("steps=1 interval=0.01").await;
    world.until_ended(key).await;
    let registration = world.register(key).await;
    world.arrive(registration, &says(&task, "failed")).await;
    world.until_judged(key, Verdict::Unmatched).await;
    let agent = world.engine.agent(&world.name).await.unwrap();
    assert!(agent.oddities.iter().any(|oddity| oddity.kind == "false_end"), "{:?}", agent.oddities);
}

#[tokio::test]
async fn callbacks_that_overtook_each_other_are_told_apart() {
    let world = World::new().await;
    let (key, task) = world.send("steps=1 interval=0.01").await;
    world.until_ended(key).await;
    let registration = world.register(key).await;
    world.arrive(registration, &says(&task, "completed")).await;
    world.arrive(registration, &says(&task, "working")).await;
    world
        .until("verdicts", || async {
            world.callbacks(key).await.iter().all(|row| row.verdict != Verdict::Pending)
        })
        .await;
    let rows = world.callbacks(key).await;
    let told: Vec<(Verdict, bool)> = rows.iter().map(|row| (row.verdict, row.out_of_order)).collect();
    assert_eq!(told, [(Verdict::Confirmed, false), (Verdict::Behind, true)]);
}
