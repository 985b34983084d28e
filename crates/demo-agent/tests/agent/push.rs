//! Callbacks: configs in both shapes, and what arrives at a receiver on this machine.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use taskbell_core::dialect::{Dialect, read};
use taskbell_core::fault::FaultKind;
use taskbell_core::push_config;
use taskbell_core::state::TaskState;
use taskbell_core::task::StreamEvent;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Client, Method, agent, closed_port, wait_until};

#[derive(Debug, Clone)]
struct Callback {
    headers: String,
    body: Value,
}

impl Callback {
    fn header(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.headers.lines().find_map(|line| line.strip_prefix(&prefix))
    }

    fn word(&self) -> String {
        match read::stream_event(self.body.clone()).unwrap() {
            StreamEvent::Task(task) => format!("task {}", task.status.state.word()),
            StreamEvent::Status(update) => update.status.state.word().to_owned(),
            StreamEvent::Artifact(_) => "artifact".to_owned(),
            StreamEvent::Message(_) => "message".to_owned(),
        }
    }
}

/// Keeps what it is called with and answers each request with `status`.
struct Receiver {
    url: String,
    callbacks: Arc<Mutex<Vec<Callback>>>,
}

impl Receiver {
    async fn start(status: &'static str) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let callbacks: Arc<Mutex<Vec<Callback>>> = Arc::default();
        let kept = Arc::clone(&callbacks);
        tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let kept = Arc::clone(&kept);
                tokio::spawn(async move {
                    let mut octets = Vec::new();
                    loop {
                        let mut chunk = [0u8; 8192];
                        match socket.read(&mut chunk).await {
                            Ok(0) | Err(_) => return,
                            Ok(length) => octets.extend_from_slice(&chunk[..length]),
                        }
                        let text = String::from_utf8_lossy(&octets).into_owned();
                        let Some((headers, body)) = text.split_once("\r\n\r\n") else { continue };
                        let headers = headers.replace("\r\n", "\n");
                        let length = headers.lines().find_map(|line| line.strip_prefix("content-length: "));
                        if body.len() < length.unwrap().parse::<usize>().unwrap() {
                            continue;
                        }
                        let body = serde_json::from_str(body).unwrap();
                        kept.lock().unwrap().push(Callback { headers, body });
                        octets.clear();
                        let answer =
                            format!("HTTP/1.1 {status}\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n");
                        socket.write_all(answer.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        Self { url, callbacks }
    }

    fn all(&self) -> Vec<Callback> {
        self.callbacks.lock().unwrap().clone()
    }

    async fn wait_for(&self, word: &str) -> Vec<Callback> {
        wait_until(word, || self.all().iter().any(|callback| callback.word() == word)).await;
        self.all()
    }
}

fn config(dialect: Dialect, task_id: Option<&str>, url: &str) -> Value {
    match dialect {
        Dialect::V03 => json!({"taskId": task_id, "pushNotificationConfig": {"id": "p-1", "url": url,
            "token": "hush-token", "authentication": {"schemes": ["bearer"], "credentials": "hush-credential"}}}),
        Dialect::V1 => json!({"taskId": task_id, "id": "p-1", "url": url, "token": "hush-token",
            "authentication": {"scheme": "bearer", "credentials": "hush-credential"}}),
    }
}

#[tokio::test]
async fn each_event_is_called_back_in_the_dialect_of_the_registration() {
    let agent = agent().await;
    for dialect in [Dialect::V03, Dialect::V1] {
        let receiver = Receiver::start("200 OK").await;
        let client = Client::of(&agent, dialect);
        let task = client.send("steps=2 interval=0.1 ask=1 chunks=1").await;
        client
            .call(Method::PushCreate, config(dialect, Some(task.id.as_str()), &receiver.url))
            .await
            .unwrap();
        client.wait_for(&task, TaskState::InputRequired).await;
        client.reply(&task, "go on").await.unwrap();
        let last = match dialect {
            Dialect::V03 => "task completed",
            Dialect::V1 => "completed",
        };
        let callbacks = receiver.wait_for(last).await;
        let words: Vec<String> = callbacks.iter().map(Callback::word).collect();
        match dialect {
            Dialect::V1 => assert_eq!(
                words,
                ["working", "input-required", "working", "working", "artifact", "completed"]
            ),
            Dialect::V03 => {
                assert_eq!(words.len(), 6, "{words:?}");
                assert!(words.iter().all(|word| word.starts_with("task ")), "{words:?}");
                assert!(callbacks.iter().all(|callback| callback.body["kind"] == json!("task")));
            }
        }
        for callback in &callbacks {
            assert_eq!(callback.header("x-a2a-notification-token"), Some("hush-token"));
            assert_eq!(callback.header("a2a-notification-token"), Some("hush-token"));
            assert_eq!(callback.header("authorization"), Some("Bearer hush-credential"));
            let media_type = match dialect {
                Dialect::V03 => "application/json",
                Dialect::V1 => "application/a2a+json",
            };
            assert_eq!(callback.header("content-type"), Some(media_type));
        }
    }
}

#[tokio::test]
async fn a_config_given_with_the_message_is_called_from_the_first_event_on() {
    let agent = agent().await;
    for (dialect, name) in [
        (Dialect::V1, "taskPushNotificationConfig"),
        (Dialect::V1, "pushNotificationConfig"),
        (Dialect::V03, "pushNotificationConfig"),
    ] {
        let receiver = Receiver::start("200 OK").await;
        let client = Client::of(&agent, dialect);
        let mut params = client.send_params("steps=1 interval=0 artifact=no", None);
        params["configuration"][name] = json!({"url": receiver.url});
        client.call(Method::Send, params).await.unwrap();
        let last = match dialect {
            Dialect::V03 => "task completed",
            Dialect::V1 => "completed",
        };
        let words: Vec<String> = receiver.wait_for(last).await.iter().map(Callback::word).collect();
        assert_eq!((words[0].as_str(), words.len()), ("task submitted", 3));
    }
}

#[tokio::test]
async fn configs_are_made_read_listed_and_deleted_without_their_secrets() {
    let agent = agent().await;
    for dialect in [Dialect::V03, Dialect::V1] {
        let client = Client::of(&agent, dialect);
        let task = client.send("steps=1 interval=3600").await;
        let url = format!("http://{}/hook", closed_port());
        let names = match dialect {
            Dialect::V03 => json!({"id": task.id, "pushNotificationConfigId": "p-1"}),
            Dialect::V1 => json!({"taskId": task.id, "id": "p-1"}),
        };
        for _ in 0..2 {
            let made =
                client.document(Method::PushCreate, config(dialect, Some(task.id.as_str()), &url)).await;
            assert!(!made.to_string().contains("hush"), "{made}");
            let read = push_config::params(made["result"].clone()).unwrap();
            assert_eq!((read.config.id.as_deref(), read.config.url.as_str()), (Some("p-1"), url.as_str()));
        }
        let read = client.document(Method::PushGet, names.clone()).await;
        let listed = client.document(Method::PushList, names.clone()).await;
        assert!(!read.to_string().contains("hush") && !listed.to_string().contains("hush"));
        let count = |document: &Value| match dialect {
            Dialect::V03 => document["result"].as_array().unwrap().len(),
            Dialect::V1 => document["result"]["configs"].as_array().unwrap().len(),
        };
        assert_eq!(count(&listed), 1, "the same id again replaces");
        for _ in 0..2 {
            assert_eq!(client.call(Method::PushDelete, names.clone()).await, Ok(Value::Null));
        }
        assert_eq!(count(&client.document(Method::PushList, names.clone()).await), 0);
        let gone = client.call(Method::PushGet, names).await.unwrap_err();
        assert_eq!(gone.kind(), FaultKind::TaskNotFound);
        let nameless = json!({"taskId": task.id, "url": url});
        let made = client.call(Method::PushCreate, nameless).await.unwrap();
        assert!(push_config::params(made).unwrap().config.id.is_some(), "a flat config without id gets one");
    }
}

#[tokio::test]
async fn a_config_that_cannot_be_called_is_refused() {
    let agent = agent().await;
    let client = Client::of(&agent, Dialect::V1);
    let task = client.send("steps=1 interval=3600").await;
    for (url, scheme) in
        [("ftp://127.0.0.1/x", "Bearer"), ("nonsense", "Bearer"), ("http://127.0.0.1:1/x", "Digest")]
    {
        let params = json!({"taskId": task.id, "url": url,
            "authentication": {"scheme": scheme, "credentials": "hush"}});
        let refused = client.call(Method::PushCreate, params).await.unwrap_err();
        assert_eq!(refused.kind(), FaultKind::InvalidParams, "{url} {scheme}");
        assert!(!refused.message.contains("hush"));
    }
    let unknown = json!({"taskId": "nobody", "url": "http://127.0.0.1:1/x"});
    let refused = client.call(Method::PushCreate, unknown).await.unwrap_err();
    assert_eq!(refused.kind(), FaultKind::TaskNotFound);
}

#[tokio::test]
async fn a_redirect_is_not_followed_an_error_is_not_retried_and_a_dead_receiver_stops_nothing() {
    let agent = agent().await;
    let client = Client::of(&agent, Dialect::V1);
    for status in ["302 Found", "307 Temporary Redirect", "500 Internal Server Error"] {
        let receiver = Receiver::start(status).await;
        let task = client.send("steps=1 interval=0.1 artifact=no").await;
        client
            .call(Method::PushCreate, config(Dialect::V1, Some(task.id.as_str()), &receiver.url))
            .await
            .unwrap();
        let callbacks = receiver.wait_for("completed").await;
        assert_eq!(callbacks.len(), 2, "{status}: one try for each event");
        assert!(callbacks.iter().all(|callback| callback.headers.starts_with("POST /hook ")));
    }
    let task = client.send("steps=3 interval=0.02").await;
    let url = format!("http://{}/hook", closed_port());
    client.call(Method::PushCreate, config(Dialect::V1, Some(task.id.as_str()), &url)).await.unwrap();
    client.wait_for(&task, TaskState::Completed).await;
}
