//! Push configs through the gateway: the four methods, configs along with messages, and the callback that comes
//! of them.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use serde_json::{Value, json};
use taskbell_core::dialect::Dialect;
use taskbell_core::ids::ClientName;
use taskbell_engine::store::{clients, targets};

use crate::support::{BOTH, Client, LIMIT, Words, World};

const CANARY: &str = "canary-callback-5e1d";

#[derive(Clone, Default)]
struct Receiver(Arc<Mutex<Vec<String>>>);

impl Receiver {
    /// On a port of this machine that the user approved for that client.
    async fn approved(world: &World, client: &str) -> (Self, String) {
        let receiver = Self::default();
        let take = |State(receiver): State<Self>, body: Bytes| async move {
            receiver.0.lock().unwrap().push(String::from_utf8(body.to_vec()).unwrap());
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new().fallback(take).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let name = ClientName::new(client).unwrap();
        let approve = move |context: &mut taskbell_engine::store::WriteContext<'_>| {
            let client = clients::list(context.tx)?.into_iter().find(|row| row.name == name).unwrap();
            targets::approve(context, client.key, port)
        };
        world.engine().engine().store().write(approve).await.unwrap();
        (receiver, format!("http://127.0.0.1:{port}/hook"))
    }

    /// The first body that holds this text.
    async fn until(&self, text: &str) -> String {
        let end = tokio::time::Instant::now() + LIMIT;
        loop {
            if let Some(body) = self.0.lock().unwrap().iter().find(|body| body.contains(text)) {
                return body.clone();
            }
            assert!(tokio::time::Instant::now() < end, "no callback with {text}");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}

fn create(words: Words, task: &str, config: Value) -> (&'static str, Value) {
    match words.0 {
        Dialect::V03 => {
            ("tasks/pushNotificationConfig/set", json!({ "taskId": task, "pushNotificationConfig": config }))
        }
        Dialect::V1 => {
            let mut params = config;
            params["taskId"] = json!(task);
            ("CreateTaskPushNotificationConfig", params)
        }
    }
}

fn names(words: Words, task: &str, id: &str) -> Value {
    match words.0 {
        Dialect::V03 => json!({ "id": task, "pushNotificationConfigId": id }),
        Dialect::V1 => json!({ "taskId": task, "id": id }),
    }
}

fn config(words: Words, id: Option<&str>, url: &str) -> Value {
    let authentication = match words.0 {
        Dialect::V03 => json!({ "schemes": ["Bearer"], "credentials": CANARY }),
        Dialect::V1 => json!({ "scheme": "bearer", "credentials": CANARY }),
    };
    let mut config = json!({ "url": url, "token": CANARY, "authentication": authentication });
    if let Some(id) = id {
        config["id"] = json!(id);
    }
    config
}

/// `result` as octets.
async fn octets(client: &Client, method: &str, params: Value) -> String {
    let body = json!({"jsonrpc":"2.0","id":1,"method":method,"params":params});
    let text = client.post().json(&body).timeout(LIMIT).send().await.unwrap().text().await.unwrap();
    let (_, result) = text.split_once("\"result\":").unwrap();
    result.strip_suffix('}').unwrap().to_owned()
}

#[tokio::test]
async fn an_end_is_called_back_with_what_a_read_answers_octet_for_octet() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for words in BOTH {
        let (receiver, url) = Receiver::approved(&world, "editor").await;
        let task = client.start(words, "steps=3 interval=0.2 chunks=2").await;
        let (method, params) = create(words, &task, config(words, None, &url));
        client.call(method, params).await;
        let body = receiver.until(&words.state("completed")).await;
        let read = octets(&client, words.method("tasks/get", "GetTask"), json!({ "id": task })).await;
        let expected = match words.0 {
            Dialect::V03 => read,
            Dialect::V1 => format!("{{\"task\":{read}}}"),
        };
        assert_eq!(body, expected, "{words:?}");
    }
}

#[tokio::test]
async fn configs_are_made_shown_listed_and_deleted_without_their_secrets() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let (_receiver, url) = Receiver::approved(&world, "editor").await;
    for words in BOTH {
        let task = client.start(words, "steps=9 interval=60").await;
        for id in ["p-1", "p-2", "p-3"] {
            let (method, params) = create(words, &task, config(words, Some(id), &url));
            let made = client.call(method, params).await;
            assert!(!made.to_string().contains(CANARY), "{made}");
            assert_eq!(made["id"], json!(id));
        }
        let get = words.method("tasks/pushNotificationConfig/get", "GetTaskPushNotificationConfig");
        let list = words.method("tasks/pushNotificationConfig/list", "ListTaskPushNotificationConfigs");
        let delete = words.method("tasks/pushNotificationConfig/delete", "DeleteTaskPushNotificationConfig");
        let one = client.call(get, names(words, &task, "p-2")).await;
        assert_eq!((&one["id"], &one["url"]), (&json!("p-2"), &json!(url)));
        let all = match words.0 {
            Dialect::V03 => client.call(list, json!({ "id": task })).await,
            Dialect::V1 => {
                let first = client.call(list, json!({ "taskId": task, "pageSize": 2 })).await;
                assert_eq!(first["configs"].as_array().unwrap().len(), 2);
                let token = &first["nextPageToken"];
                let rest =
                    client.call(list, json!({ "taskId": task, "pageSize": 2, "pageToken": token })).await;
                assert!(rest.get("nextPageToken").is_none());
                assert_eq!(rest["configs"][0]["id"], json!("p-3"));
                client.call(list, json!({ "taskId": task })).await["configs"].take()
            }
        };
        assert_eq!(all.as_array().unwrap().len(), 3);
        assert!(!all.to_string().contains(CANARY) && !one.to_string().contains(CANARY));
        for _ in 0..2 {
            client.call(delete, names(words, &task, "p-2")).await;
        }
        assert_eq!(client.error(get, names(words, &task, "p-2")).await, -32001);
    }
}

#[tokio::test]
async fn a_config_along_with_a_message_is_taken_under_every_name() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for words in BOTH {
        for field in ["pushNotificationConfig", "taskPushNotificationConfig"] {
            let (receiver, url) = Receiver::approved(&world, "editor").await;
            let mut params = words.send_params("steps=2 interval=0.05", false);
            params["configuration"][field] = config(words, Some("p"), &url);
            client.call(words.method("message/send", "SendMessage"), params).await;
            receiver.until(&words.state("completed")).await;
            // And of a task that the answer itself ends.
            let mut params = words.send_params("steps=1 interval=0.01", true);
            params["configuration"][field] = config(words, Some("p"), &url);
            let result = client.call(words.method("message/send", "SendMessage"), params).await;
            let id = words.task(&result)["id"].as_str().unwrap().to_owned();
            receiver.until(&id).await;
        }
    }
}

#[tokio::test]
async fn what_is_refused_names_the_field_and_sends_no_message() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let bad = [
        ("url", json!({ "url": "https://169.254.169.254/latest/meta-data/" })),
        ("url", json!({ "url": "https://2130706433/" })),
        ("url", json!({ "url": "http://127.0.0.1:9/hook" })),
        ("url", json!({ "url": "https://user:pw@hooks.example.com/" })),
        ("token", json!({ "url": "https://hooks.example.com/", "token": "x".repeat(10_000) })),
    ];
    for words in BOTH {
        let task = client.start(words, "steps=9 interval=60").await;
        for (field, config) in &bad {
            let (method, params) = create(words, &task, config.clone());
            let answer = client.ask(method, params).await;
            let name = words.method("pushNotificationConfig.", "").to_owned() + field;
            assert_eq!(answer["error"]["code"], json!(-32602), "{answer}");
            assert_eq!(answer["error"]["data"][0]["metadata"]["field"], json!(name), "{answer}");
            let before = client.call("ListTasks", json!({})).await["totalSize"].take();
            let mut params = words.send_params("steps=1", false);
            params["configuration"]["pushNotificationConfig"] = config.clone();
            assert_eq!(client.error(words.method("message/send", "SendMessage"), params).await, -32602);
            assert_eq!(client.call("ListTasks", json!({})).await["totalSize"], before, "nothing was sent");
        }
    }
}

#[tokio::test]
async fn another_clients_task_takes_no_config_and_shows_none() {
    let world = World::new().await;
    let (client, other) = (world.client("editor").await, world.client("other").await);
    let (_receiver, url) = Receiver::approved(&world, "editor").await;
    for words in BOTH {
        let task = client.start(words, "steps=9 interval=60").await;
        let (method, params) = create(words, &task, config(words, Some("p"), &url));
        client.call(method, params.clone()).await;
        assert_eq!(other.error(method, params).await, -32001);
        for (v03, v1) in [
            ("tasks/pushNotificationConfig/get", "GetTaskPushNotificationConfig"),
            ("tasks/pushNotificationConfig/list", "ListTaskPushNotificationConfigs"),
            ("tasks/pushNotificationConfig/delete", "DeleteTaskPushNotificationConfig"),
        ] {
            assert_eq!(other.error(words.method(v03, v1), names(words, &task, "p")).await, -32001);
        }
    }
}

#[tokio::test]
async fn the_card_offers_push_whatever_the_agent_does() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let card = client.request(reqwest::Method::GET, "/.well-known/agent-card.json").send().await.unwrap();
    let card: Value = card.json().await.unwrap();
    assert_eq!(card["capabilities"]["pushNotifications"], json!(true));
}
