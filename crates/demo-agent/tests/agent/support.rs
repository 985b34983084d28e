//! A client of this agent that reads as Taskbell reads: every frame goes through the core's readers.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taskbell_core::credential::Secret;
use taskbell_core::dialect::{Dialect, read};
use taskbell_core::fault::RemoteError;
use taskbell_core::jsonrpc::{self, Response};
use taskbell_core::sse::{Decoder, Limits};
use taskbell_core::state::TaskState;
use taskbell_core::task::{StreamEvent, Task};
use taskbell_demo_agent::{DemoAgent, Options, start};

/// Longer than anything here takes; a test that reaches it has failed.
pub const LIMIT: Duration = Duration::from_secs(20);

pub async fn agent() -> DemoAgent {
    start(Options::default()).await.unwrap()
}

pub async fn agent_with_tokens(tokens: &[&str]) -> DemoAgent {
    let tokens = tokens.iter().map(|token| Secret::new(*token)).collect();
    start(Options { tokens, ..Options::default() }).await.unwrap()
}

pub fn http() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().timeout(LIMIT).build().unwrap()
}

/// One user of an agent, speaking one dialect.
#[derive(Clone)]
pub struct Client {
    pub http: reqwest::Client,
    pub url: String,
    pub dialect: Dialect,
    pub token: Option<String>,
}

/// A method in the client's dialect.
pub enum Method {
    Send,
    Stream,
    Get,
    Cancel,
    Subscribe,
    PushCreate,
    PushGet,
    PushList,
    PushDelete,
}

impl Method {
    fn name(&self, dialect: Dialect) -> &'static str {
        let (v03, v1) = match self {
            Self::Send => ("message/send", "SendMessage"),
            Self::Stream => ("message/stream", "SendStreamingMessage"),
            Self::Get => ("tasks/get", "GetTask"),
            Self::Cancel => ("tasks/cancel", "CancelTask"),
            Self::Subscribe => ("tasks/resubscribe", "SubscribeToTask"),
            Self::PushCreate => ("tasks/pushNotificationConfig/set", "CreateTaskPushNotificationConfig"),
            Self::PushGet => ("tasks/pushNotificationConfig/get", "GetTaskPushNotificationConfig"),
            Self::PushList => ("tasks/pushNotificationConfig/list", "ListTaskPushNotificationConfigs"),
            Self::PushDelete => ("tasks/pushNotificationConfig/delete", "DeleteTaskPushNotificationConfig"),
        };
        match dialect {
            Dialect::V03 => v03,
            Dialect::V1 => v1,
        }
    }
}

impl Client {
    pub fn of(agent: &DemoAgent, dialect: Dialect) -> Self {
        Self { http: http(), url: format!("{}/", agent.base_url()), dialect, token: None }
    }

    pub fn with_token(agent: &DemoAgent, dialect: Dialect, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..Self::of(agent, dialect) }
    }

    pub async fn post(&self, method: &str, params: &Value) -> reqwest::Response {
        let mut request = self
            .http
            .post(&self.url)
            .header("content-type", "application/json")
            .header("a2a-version", self.dialect.version())
            .body(jsonrpc::request(7, method, params).to_string());
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        request.send().await.unwrap()
    }

    /// The raw document a method is answered with.
    pub async fn document(&self, method: Method, params: Value) -> Value {
        let answer = self.post(method.name(self.dialect), &params).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "application/json");
        let document: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert_vocabulary(&document, self.dialect);
        document
    }

    pub async fn call(&self, method: Method, params: Value) -> Result<Value, RemoteError> {
        let response = Response::read(self.document(method, params).await, None).unwrap();
        assert!(response.answers(7), "the id must be echoed");
        response.outcome
    }

    fn message(&self, text: &str, task_id: Option<&str>) -> Value {
        let mut message = json!({"messageId": uuid(), "role": "ROLE_USER", "parts": [{"text": text}]});
        if self.dialect == Dialect::V03 {
            message["kind"] = json!("message");
            message["role"] = json!("user");
            message["parts"][0]["kind"] = json!("text");
        }
        if let Some(task_id) = task_id {
            message["taskId"] = json!(task_id);
        }
        message
    }

    pub fn send_params(&self, text: &str, task_id: Option<&str>) -> Value {
        let configuration = match self.dialect {
            Dialect::V03 => json!({"blocking": false}),
            Dialect::V1 => json!({"returnImmediately": true}),
        };
        json!({"message": self.message(text, task_id), "configuration": configuration})
    }

    /// A non-blocking send.
    pub async fn send(&self, text: &str) -> Task {
        let params = self.send_params(text, None);
        self.sent(self.call(Method::Send, params).await.unwrap())
    }

    pub async fn send_blocking(&self, text: &str) -> Task {
        let params = json!({"message": self.message(text, None)});
        self.sent(self.call(Method::Send, params).await.unwrap())
    }

    /// A blocking send whose message has this id.
    pub async fn send_blocking_as(&self, message_id: &str, text: &str, task: Option<&Task>) -> Task {
        let mut message = self.message(text, task.map(|task| task.id.as_str()));
        message["messageId"] = json!(message_id);
        self.sent(self.call(Method::Send, json!({"message": message})).await.unwrap())
    }

    pub async fn reply(&self, task: &Task, text: &str) -> Result<Task, RemoteError> {
        let params = self.send_params(text, Some(task.id.as_str()));
        self.call(Method::Send, params).await.map(|result| self.sent(result))
    }

    fn sent(&self, result: Value) -> Task {
        // 1.0 wraps the task, 0.3 does not.
        assert_eq!(result.get("task").is_some(), self.dialect == Dialect::V1, "{result}");
        match read::send_answer(result).unwrap() {
            taskbell_core::task::SendAnswer::Task(task) => task,
            other => panic!("a task, not {other:?}"),
        }
    }

    pub async fn get(&self, task: &Task) -> Task {
        let params = json!({"id": task.id, "historyLength": 100});
        read::task(self.call(Method::Get, params).await.unwrap()).unwrap()
    }

    /// Reads the task until it is in a state.
    pub async fn wait_for(&self, task: &Task, state: TaskState) -> Task {
        let started = Instant::now();
        loop {
            let read = self.get(task).await;
            if read.status.state == state {
                return read;
            }
            assert!(
                started.elapsed() < LIMIT && !read.status.state.is_terminal(),
                "{state:?} expected, {:?} it is",
                read.status.state
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub async fn stream(&self, text: &str, task_id: Option<&str>) -> Stream {
        self.open(Method::Stream, json!({"message": self.message(text, task_id)})).await
    }

    pub async fn subscribe(&self, task: &Task) -> Stream {
        self.open(Method::Subscribe, json!({"id": task.id})).await
    }

    async fn open(&self, method: Method, params: Value) -> Stream {
        let response = self.post(method.name(self.dialect), &params).await;
        Stream::new(response, Some(self.dialect))
    }
}

fn uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// No member of the other dialect stands in a document.
fn assert_vocabulary(document: &Value, dialect: Dialect) {
    let text = document.to_string();
    match dialect {
        Dialect::V1 => {
            for word in ["\"kind\":", "\"final\":"] {
                assert!(!text.contains(word), "{word} in a 1.0 document: {text}");
            }
        }
        Dialect::V03 => assert!(!text.contains("TASK_STATE_") && !text.contains("ROLE_"), "{text}"),
    }
}

/// An event stream as it arrives.
pub struct Stream {
    response: reqwest::Response,
    /// None: HTTP+JSON, bare events.
    dialect: Option<Dialect>,
    decoder: Decoder,
    waiting: std::collections::VecDeque<String>,
}

/// How a stream went on.
#[derive(Debug)]
pub enum Frame {
    Event(Box<StreamEvent>, Value),
    Error(RemoteError),
    /// Ended as it should.
    End,
    /// The connection broke.
    Broken,
}

impl Stream {
    pub fn new(response: reqwest::Response, dialect: Option<Dialect>) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        let waiting = std::collections::VecDeque::new();
        Self { response, dialect, decoder: Decoder::new(Limits::default()), waiting }
    }

    pub async fn next(&mut self) -> Frame {
        while self.waiting.is_empty() {
            match tokio::time::timeout(LIMIT, self.response.chunk()).await.expect("a frame in time") {
                Ok(Some(chunk)) => {
                    let waiting = &mut self.waiting;
                    self.decoder
                        .push(&chunk, &mut |event| waiting.push_back(event.data.to_string()))
                        .unwrap();
                }
                Ok(None) => return Frame::End,
                Err(_) => return Frame::Broken,
            }
        }
        let data: Value = serde_json::from_str(&self.waiting.pop_front().unwrap()).unwrap();
        let Some(dialect) = self.dialect else {
            assert_vocabulary(&data, Dialect::V1);
            return match data.get("error") {
                Some(_) => Frame::Error(RemoteError::from_body(&data, None)),
                None => Frame::Event(Box::new(read::stream_event(data.clone()).unwrap()), data),
            };
        };
        assert_vocabulary(&data, dialect);
        let response = Response::read(data, None).unwrap();
        assert!(response.answers(7));
        match response.outcome {
            Ok(result) => {
                assert_eq!(result.get("kind").is_some(), dialect == Dialect::V03, "{result}");
                Frame::Event(Box::new(read::stream_event(result.clone()).unwrap()), result)
            }
            Err(error) => Frame::Error(error),
        }
    }

    pub async fn event(&mut self) -> StreamEvent {
        match self.next().await {
            Frame::Event(event, _) => *event,
            other => panic!("an event, not {other:?}"),
        }
    }

    /// The first event, which is the task.
    pub async fn task(&mut self) -> Task {
        match self.event().await {
            StreamEvent::Task(task) => task,
            other => panic!("the task first, not {other:?}"),
        }
    }

    /// All that follows as short words, up to and with how it ended.
    pub async fn words(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        loop {
            let frame = self.next().await;
            words.push(match &frame {
                Frame::Event(event, raw) => word(event, raw),
                Frame::Error(error) => format!("error {}", error.code.unwrap_or_default()),
                Frame::End => "end".to_owned(),
                Frame::Broken => "broken".to_owned(),
            });
            if matches!(frame, Frame::End | Frame::Broken) {
                return words;
            }
        }
    }
}

fn word(event: &StreamEvent, raw: &Value) -> String {
    match event {
        StreamEvent::Task(task) => format!("task {}", task.status.state.word()),
        StreamEvent::Message(message) => format!("message {}", message.text()),
        StreamEvent::Artifact(update) => format!("artifact {}", update.artifact.text()),
        StreamEvent::Status(update) => {
            let is_final = if raw.get("final") == Some(&json!(true)) { " final" } else { "" };
            format!("{}{is_final}", update.status.state.word())
        }
    }
}

/// Waits for something to become true; the last value is shown if it does not.
pub async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < LIMIT, "still waiting: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A bound port that nobody listens at.
pub fn closed_port() -> SocketAddr {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap()
}
