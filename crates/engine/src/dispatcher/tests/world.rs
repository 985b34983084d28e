//! A store, a dispatcher that runs on it, a receiver.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use taskbell_core::delivery::DeliveryState;
use taskbell_core::dialect::{Dialect, read};
use taskbell_core::follow::FollowTimes;
use taskbell_core::ids::{AgentName, ClientName};
use taskbell_core::push_config;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::super::registration::About;
use super::super::{Dispatcher, RegisterError, Registered};
use crate::agent_client::{Http, HttpSettings};
use crate::agents::Agents;
use crate::keychain::{Keychain, KeychainChoice};
use crate::outbound::Outbound;
use crate::parts::Parts;
use crate::store::agents::{self as agent_rows, NewAgent};
use crate::store::deliveries::{AttemptRow, DeliveryFilter, DeliveryRow};
use crate::store::targets::TargetRow;
use crate::store::task_records::{Adoption, Told, adopt, apply_events, apply_read};
use crate::store::tasks::{Channel, TaskSource};
use crate::store::{AgentKey, ClientKey, Store, TaskKey, clients, deliveries, targets, task_content};

const ADOPTION: Adoption<'static> = Adoption {
    source: TaskSource::Send,
    channel: Channel::Poll,
    told: Told::ByGetTask,
    title: "build it",
    credential_version: 0,
};

pub struct World {
    pub folder: tempfile::TempDir,
    pub store: Store,
    pub keychain: Keychain,
    pub dispatcher: Dispatcher,
    pub client: ClientKey,
    name: ClientName,
    agent: AgentKey,
    now_ms: Arc<AtomicI64>,
    running: JoinHandle<()>,
}

/// What a receiver got.
#[derive(Debug, Clone)]
pub struct Got {
    pub headers: HeaderMap,
    pub body: String,
}

impl Got {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A receiver on this machine.
#[derive(Clone)]
pub struct Receiver(Arc<Inside>);

struct Inside {
    port: u16,
    got: Mutex<Vec<Got>>,
    answers: Mutex<VecDeque<u16>>,
    /// Requests that may be answered; as many as wanted where it is never held.
    doors: Semaphore,
    open: AtomicUsize,
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Self(Arc::new(Inside {
            port: listener.local_addr().unwrap().port(),
            got: Mutex::default(),
            answers: Mutex::default(),
            doors: Semaphore::new(Semaphore::MAX_PERMITS / 2),
            open: AtomicUsize::new(0),
        }));
        let router = Router::new().fallback(take).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        receiver
    }

    /// From now on answers wait for [`Self::let_go`].
    pub fn hold(&self) {
        self.0.doors.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub fn let_go(&self, answers: usize) {
        self.0.doors.add_permits(answers);
    }

    /// Answers in turn, 200 after the last.
    pub fn answer(&self, statuses: &[u16]) {
        self.0.answers.lock().unwrap().extend(statuses);
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.0.port)
    }

    pub fn port(&self) -> u16 {
        self.0.port
    }

    pub fn got(&self) -> Vec<Got> {
        self.0.got.lock().unwrap().clone()
    }

    /// Requests that were read and not answered yet.
    pub fn open(&self) -> usize {
        self.0.open.load(Ordering::SeqCst)
    }
}

async fn take(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let inside = &receiver.0;
    let body = String::from_utf8(body.to_vec()).unwrap();
    inside.got.lock().unwrap().push(Got { headers, body });
    inside.open.fetch_add(1, Ordering::SeqCst);
    inside.doors.acquire().await.unwrap().forget();
    inside.open.fetch_sub(1, Ordering::SeqCst);
    let status = inside.answers.lock().unwrap().pop_front().unwrap_or(200);
    StatusCode::from_u16(status).unwrap()
}

/// Waits for a condition, which a busy machine may take a while to reach.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < end, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

impl World {
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now_ms = Arc::new(AtomicI64::new(1_700_000_000_000));
        let keychain = Keychain::start(KeychainChoice::Memory, "test", Duration::from_secs(10)).unwrap();
        keychain.probe("p").await;
        let store = open(folder.path(), &now_ms);
        let name = ClientName::new("editor").unwrap();
        let asked = name.clone();
        let (agent, client) = store
            .write(move |context| {
                let origin = "http://127.0.0.1:9".parse().unwrap();
                let agent = NewAgent {
                    name: &AgentName::new("builder").unwrap(),
                    registered_url: "http://127.0.0.1:9/",
                    origin: &origin,
                    use_card_url: false,
                    allow_http: false,
                };
                Ok((agent_rows::insert(context, &agent)?, clients::insert(context, &asked, &[7; 32])?.key))
            })
            .await
            .unwrap();
        let (dispatcher, running) = run(&store, &keychain, &now_ms).await;
        Self { folder, store, keychain, dispatcher, client, name, agent, now_ms, running }
    }

    /// As after a kill: whatever ran is gone without a word, the rows stay.
    pub async fn killed_and_started(mut self) -> Self {
        self.running.abort();
        let _ = (&mut self.running).await;
        self.store.close(Duration::from_secs(10)).await.unwrap();
        self.store = open(self.folder.path(), &self.now_ms);
        (self.dispatcher, self.running) = run(&self.store, &self.keychain, &self.now_ms).await;
        self
    }

    /// Time passes; what became due is looked at.
    pub fn pass(&self, time: Duration) {
        self.now_ms.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
        self.dispatcher.ring();
    }

    pub async fn approve(&self, receiver: &Receiver) {
        let (client, port) = (self.client, receiver.port());
        self.store.write(move |context| targets::approve(context, client, port)).await.unwrap();
    }

    /// A task that works.
    pub async fn task(&self, id: &str) -> TaskKey {
        let task = json!({ "id": id, "contextId": "c-1", "status": { "state": "working" } });
        let (agent, task) = (self.agent, read::task(task).unwrap());
        self.store.write(move |context| adopt(context, agent, task, 1, ADOPTION)).await.unwrap().0
    }

    pub async fn register_as(
        &self,
        task: TaskKey,
        config: Value,
        dialect: Dialect,
        inline: bool,
    ) -> Result<Registered, RegisterError> {
        let about = About { client: self.client, name: &self.name, task, inline };
        let config = push_config::params(config).unwrap().config;
        self.dispatcher.register(about, config, dialect).await
    }

    pub async fn register(&self, task: TaskKey, config: Value) -> Registered {
        self.register_as(task, config, Dialect::V1, false).await.unwrap()
    }

    /// A working task about which this receiver is called.
    pub async fn task_for(&self, id: &str, receiver: &Receiver) -> TaskKey {
        self.approve(receiver).await;
        let task = self.task(id).await;
        self.register(task, json!({ "url": receiver.url() })).await;
        task
    }

    pub async fn event(&self, task: TaskKey, event: Value) {
        let event = vec![(read::stream_event(event).unwrap(), 2)];
        self.store.write(move |context| apply_events(context, task, event, Channel::Stream)).await.unwrap();
    }

    pub async fn state(&self, task: TaskKey, state: &str) {
        let message = uuid::Uuid::new_v4().to_string();
        self.event(
            task,
            json!({ "statusUpdate": { "taskId": "t", "status": { "state": state,
                "message": { "messageId": message, "role": "agent", "parts": [{ "text": state }] } } } }),
        )
        .await;
    }

    pub async fn chunk(&self, task: TaskKey, text: &str) {
        self.event(
            task,
            json!({ "artifactUpdate": { "taskId": "t", "append": true,
                "artifact": { "artifactId": "a", "parts": [{ "text": text }] } } }),
        )
        .await;
    }

    pub async fn read(&self, task: TaskKey, order: u64, answer: Value) {
        let answer = read::task(answer).unwrap();
        let apply = move |context: &mut crate::store::WriteContext<'_>| {
            apply_read(context, task, answer, order, Channel::Poll)
        };
        self.store.write(apply).await.unwrap();
    }

    pub async fn content(&self, task: TaskKey) -> taskbell_core::task::Task {
        self.store.read(move |connection| task_content::load(connection, task)).await.unwrap().0
    }

    /// The oldest first.
    pub async fn deliveries(&self) -> Vec<DeliveryRow> {
        let list = |connection: &rusqlite::Connection| {
            deliveries::list(connection, &DeliveryFilter::default(), 1_000)
        };
        let mut rows = self.store.read(list).await.unwrap();
        rows.reverse();
        rows
    }

    pub async fn attempts(&self, delivery: &DeliveryRow) -> Vec<AttemptRow> {
        let key = delivery.key;
        self.store.read(move |connection| deliveries::attempts(connection, key)).await.unwrap()
    }

    pub async fn states(&self) -> Vec<DeliveryState> {
        self.deliveries().await.iter().map(|row| row.state).collect()
    }

    pub async fn until_states(&self, states: &[DeliveryState]) {
        until(&format!("deliveries are {states:?}"), async || {
            let now = self.states().await;
            if now == states { Some(()) } else { None }
        })
        .await;
    }

    pub async fn target(&self) -> TargetRow {
        self.store.read(targets::list).await.unwrap().pop().unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.running.abort();
    }
}

fn open(folder: &Path, now_ms: &Arc<AtomicI64>) -> Store {
    let clock = Arc::clone(now_ms);
    Store::open(folder, Arc::new(move || clock.load(Ordering::SeqCst))).unwrap().0
}

async fn run(store: &Store, keychain: &Keychain, now_ms: &Arc<AtomicI64>) -> (Dispatcher, JoinHandle<()>) {
    let http = Http::new(HttpSettings::default()).unwrap();
    let agents = Agents::load(store.clone(), keychain.clone(), http).await.unwrap();
    let clock = Arc::clone(now_ms);
    let clock = Arc::new(move || clock.load(Ordering::SeqCst));
    let parts = Parts::new(store.clone(), agents, clock, FollowTimes::default());
    let outbound = Outbound::new().unwrap();
    let (dispatcher, worker) = Dispatcher::with_outbound(parts, keychain.clone(), outbound).await.unwrap();
    (dispatcher, tokio::spawn(worker.run()))
}
