//! An engine with its listener, the demo agent behind it, and clients that speak HTTP.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use taskbell_core::agent::{CardOrigin, PlainHttp};
use taskbell_core::credential::{Credential, Secret};
use taskbell_core::dialect::Dialect;
use taskbell_core::ids::{AgentName, ClientName};
use taskbell_core::sse::{Decoder, Event, Limits};
use taskbell_demo_agent::{DemoAgent, Options};
use taskbell_engine::agents::manage::AgentWish;
use taskbell_engine::api::window::Windows;
use taskbell_engine::data_dir::DataDir;
use taskbell_engine::notifier::Notices;
use taskbell_engine::running::{CredentialStore, EngineOptions, PortsTaken, RunningEngine};

pub const LIMIT: Duration = Duration::from_secs(30);
/// What the agent wants from us; nobody else may ever see it.
pub const AGENT_TOKEN: &str = "canary-agent-7f31";

pub struct World {
    pub folder: tempfile::TempDir,
    engine: Option<RunningEngine>,
    agent: Option<DemoAgent>,
    http: reqwest::Client,
}

/// A client of the gateway.
#[derive(Clone)]
pub struct Client {
    pub base: String,
    pub key: String,
    http: reqwest::Client,
}

fn demo(port: u16, state: &Path) -> Options {
    Options {
        addr: ([127, 0, 0, 1], port).into(),
        tokens: vec![Secret::new(AGENT_TOKEN)],
        state: Some(state.to_owned()),
        ..Options::default()
    }
}

pub fn agent_name() -> AgentName {
    AgentName::new("demo").unwrap()
}

impl World {
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let agent = taskbell_demo_agent::start(demo(0, &folder.path().join("agent"))).await.unwrap();
        let url = agent.base_url().parse().unwrap();
        let mut world = Self { folder, engine: None, agent: Some(agent), http: http() };
        world.start_engine().await;
        let wish = AgentWish {
            name: agent_name(),
            url,
            card_origin: CardOrigin::Record,
            plain_http: PlainHttp::LoopbackOnly,
            credential: Some(Credential::Bearer(Secret::new(AGENT_TOKEN))),
        };
        world.engine().engine().add_agent(wish).await.unwrap();
        world
    }

    /// One more agent, which wants no credential.
    pub async fn add_agent(&self, name: &str, url: &str) {
        let wish = AgentWish {
            name: AgentName::new(name).unwrap(),
            url: url.parse().unwrap(),
            card_origin: CardOrigin::Record,
            plain_http: PlainHttp::LoopbackOnly,
            credential: None,
        };
        self.engine().engine().add_agent(wish).await.unwrap();
    }

    pub fn engine(&self) -> &RunningEngine {
        self.engine.as_ref().unwrap()
    }

    pub fn agent(&self) -> &DemoAgent {
        self.agent.as_ref().unwrap()
    }

    pub fn address(&self) -> String {
        self.engine().ready().unwrap().gateway.clone()
    }

    async fn start_engine(&mut self) {
        let options = EngineOptions {
            data_dir: DataDir::at(self.folder.path().join("data")),
            gateway: ([127, 0, 0, 1], 0).into(),
            inbox: ([127, 0, 0, 1], 0).into(),
            ports_taken: PortsTaken::Refuse,
            credential_store: CredentialStore::File { passphrase: Secret::new("passphrase") },
            demo: false,
            windows: Windows::new(),
            notices: Notices::Recorded,
        };
        self.engine = Some(RunningEngine::start(options).await.unwrap());
    }

    pub async fn restart_engine(&mut self) {
        self.engine.take().unwrap().stop().await;
        self.start_engine().await;
    }

    pub async fn stop_agent(&mut self) -> u16 {
        let agent = self.agent.take().unwrap();
        let port = agent.local_addr().port();
        agent.stop().await.unwrap();
        port
    }

    /// With what it knew, or having forgotten everything.
    pub async fn start_agent(&mut self, port: u16, memory: Memory) {
        let state = match memory {
            Memory::Kept => self.folder.path().join("agent"),
            Memory::Lost => self.folder.path().join("another-agent"),
        };
        self.agent = Some(taskbell_demo_agent::start(demo(port, &state)).await.unwrap());
    }

    pub async fn client(&self, name: &str) -> Client {
        let name = ClientName::new(name).unwrap();
        let (_, key) = self.engine().engine().gateway().clients().add(name).await.unwrap();
        Client {
            base: format!("{}/agents/demo", self.address()),
            key: key.expose().to_owned(),
            http: self.http.clone(),
        }
    }

    pub async fn set(&self, key: &str, value: &str) {
        self.engine().engine().set_setting(key, value).await.unwrap();
    }

    pub async fn pin(&self, dialect: Dialect) {
        self.engine().engine().pin_dialect(&agent_name(), Some(dialect)).await.unwrap();
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Memory {
    Kept,
    Lost,
}

fn http() -> reqwest::Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build().unwrap()
}

/// Both dialects: method names and shapes of the calls that tests make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words(pub Dialect);

impl Words {
    pub fn method(self, v03: &'static str, v1: &'static str) -> &'static str {
        match self.0 {
            Dialect::V03 => v03,
            Dialect::V1 => v1,
        }
    }

    pub fn message(self, text: &str) -> Value {
        match self.0 {
            Dialect::V03 => json!({"kind":"message","role":"user","messageId":"m-1",
                "parts":[{"kind":"text","text":text}]}),
            Dialect::V1 => json!({"role":"ROLE_USER","messageId":"m-1","parts":[{"text":text}]}),
        }
    }

    /// The state's word.
    pub fn state(self, word: &str) -> String {
        match self.0 {
            Dialect::V03 => word.to_owned(),
            Dialect::V1 => format!("TASK_STATE_{}", word.to_uppercase().replace('-', "_")),
        }
    }

    /// The task in a send's result.
    pub fn task(self, result: &Value) -> &Value {
        match self.0 {
            Dialect::V03 => result,
            Dialect::V1 => &result["task"],
        }
    }

    pub fn send_params(self, text: &str, blocking: bool) -> Value {
        let configuration = match self.0 {
            Dialect::V03 => json!({"blocking": blocking}),
            Dialect::V1 => json!({"returnImmediately": !blocking}),
        };
        json!({"message": self.message(text), "configuration": configuration})
    }
}

pub const BOTH: [Words; 2] = [Words(Dialect::V03), Words(Dialect::V1)];

impl Client {
    /// The same client of an engine that was started anew.
    pub fn at(&self, world: &World) -> Self {
        Self { base: format!("{}/agents/demo", world.address()), ..self.clone() }
    }

    pub fn post(&self) -> reqwest::RequestBuilder {
        self.request(reqwest::Method::POST, "/")
    }

    pub fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.key)
    }

    /// The whole JSON-RPC answer.
    pub async fn ask(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc":"2.0","id":"q-1","method":method,"params":params});
        let answer = self.post().json(&body).timeout(LIMIT).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{method}");
        let answer: Value = answer.json().await.unwrap();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!("q-1")), "{answer}");
        answer
    }

    pub async fn call(&self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params).await;
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    pub async fn error(&self, method: &str, params: Value) -> i64 {
        let answer = self.ask(method, params).await;
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("an error of {method}, not {answer}"))
    }

    /// Starts a task without waiting; its id.
    pub async fn start(&self, words: Words, text: &str) -> String {
        let method = words.method("message/send", "SendMessage");
        let result = self.call(method, words.send_params(text, false)).await;
        words.task(&result)["id"].as_str().unwrap().to_owned()
    }

    pub async fn stream(&self, method: &str, params: Value, last: Option<&str>) -> Events {
        let body = json!({"jsonrpc":"2.0","id":7,"method":method,"params":params});
        let mut request = self.post().json(&body).header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        Events::new(request.send().await.unwrap())
    }

    pub async fn subscribe(&self, words: Words, task: &str, last: Option<&str>) -> Events {
        let method = words.method("tasks/resubscribe", "SubscribeToTask");
        self.stream(method, json!({"id": task}), last).await
    }

    pub async fn state(&self, task: &str) -> String {
        let result = self.call("tasks/get", json!({"id": task})).await;
        result["status"]["state"].as_str().unwrap().to_owned()
    }
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    pub id: String,
    pub data: String,
}

impl Heard {
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }

    pub fn result(&self) -> Value {
        let mut value = self.value();
        assert_eq!(value["id"], json!(7), "the id of this request: {}", self.data);
        assert!(value.get("result").is_some(), "{}", self.data);
        value["result"].take()
    }

    /// The octets of `result`, as they were sent.
    pub fn octets(&self) -> &str {
        let (_, result) = self.data.split_once("\"result\":").unwrap();
        result.strip_suffix('}').unwrap()
    }

    /// task, message, status or artifact, in either dialect.
    pub fn kind(&self) -> &'static str {
        let value = self.result();
        let is = |v03: &str, v1: &str| value["kind"] == json!(v03) || value.get(v1).is_some();
        if is("task", "task") {
            "task"
        } else if is("status-update", "statusUpdate") {
            "status"
        } else if is("artifact-update", "artifactUpdate") {
            "artifact"
        } else if is("message", "message") {
            "message"
        } else {
            "other"
        }
    }

    pub fn state(&self) -> Option<String> {
        let value = self.result();
        let status = ["/status/state", "/task/status/state", "/statusUpdate/status/state"];
        status.iter().find_map(|place| value.pointer(place)).and_then(Value::as_str).map(str::to_owned)
    }
}

/// An event stream as a client reads it.
pub struct Events {
    response: reqwest::Response,
    decoder: Decoder,
    ready: VecDeque<Heard>,
    /// The octets as they came, comments included.
    pub raw: Vec<u8>,
}

/// How a stream went on.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    Event(Heard),
    End,
    Broken,
}

impl Events {
    fn new(response: reqwest::Response) -> Self {
        assert_eq!(response.status(), 200);
        let media_type = response.headers()["content-type"].to_str().unwrap().to_owned();
        assert_eq!(media_type, "text/event-stream");
        Self { response, decoder: Decoder::new(Limits::default()), ready: VecDeque::new(), raw: Vec::new() }
    }

    pub async fn next(&mut self) -> Next {
        loop {
            if let Some(heard) = self.ready.pop_front() {
                return Next::Event(heard);
            }
            let chunk =
                tokio::time::timeout(LIMIT, self.response.chunk()).await.expect("something within the limit");
            match chunk {
                Ok(Some(chunk)) => {
                    self.raw.extend_from_slice(&chunk);
                    let ready = &mut self.ready;
                    self.decoder
                        .push(&chunk, &mut |event: Event<'_>| {
                            ready.push_back(Heard { id: event.id.to_owned(), data: event.data.to_owned() });
                        })
                        .unwrap();
                }
                Ok(None) => return Next::End,
                Err(_) => return Next::Broken,
            }
        }
    }

    pub async fn event(&mut self) -> Heard {
        match self.next().await {
            Next::Event(heard) => heard,
            other => panic!("an event, not {other:?}: {}", String::from_utf8_lossy(&self.raw)),
        }
    }

    /// Everything up to the end.
    pub async fn rest(&mut self) -> Vec<Heard> {
        let mut all = Vec::new();
        loop {
            match self.next().await {
                Next::Event(heard) => all.push(heard),
                Next::End => return all,
                Next::Broken => panic!("the stream broke after {all:?}"),
            }
        }
    }
}

/// What a client makes of the events: the text of the one artifact.
pub fn artifact_text(events: &[Heard]) -> String {
    let mut text = String::new();
    for event in events {
        let value = event.result();
        let update = value.get("artifactUpdate").cloned().unwrap_or_else(|| value.clone());
        let parts = match event.kind() {
            "artifact" => {
                if update["append"] != json!(true) {
                    text.clear();
                }
                update["artifact"]["parts"].clone()
            }
            "task" => {
                text.clear();
                let task = value.get("task").unwrap_or(&value);
                task["artifacts"][0]["parts"].clone()
            }
            _ => continue,
        };
        for part in parts.as_array().into_iter().flatten() {
            text.push_str(part["text"].as_str().unwrap());
        }
    }
    text
}
