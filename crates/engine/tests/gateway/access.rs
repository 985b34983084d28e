//! Who may call, and what each may see.

use serde_json::{Value, json};
use taskbell_core::dialect::Dialect;
use taskbell_engine::tasks::{Outgoing, Sent};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{AGENT_TOKEN, BOTH, Client, LIMIT, Words, World, agent_name};

const GET: &str = r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}"#;

/// One request with exactly these header lines; the whole answer.
async fn ask(world: &World, start: &str, headers: &[String], body: &str) -> String {
    let address = world.address().trim_start_matches("http://").to_owned();
    let mut socket = TcpStream::connect(&address).await.unwrap();
    let mut head = format!("{start} HTTP/1.1\r\n");
    for line in headers {
        head.push_str(&line.replace("HOST", &address));
        head.push_str("\r\n");
    }
    if !body.is_empty() {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("Connection: close\r\n\r\n");
    // A refused request is answered before it is read to its end.
    let _ = socket.write_all(format!("{head}{body}").as_bytes()).await;
    let mut octets = Vec::new();
    let _ = tokio::time::timeout(LIMIT, socket.read_to_end(&mut octets)).await.expect("an answer");
    String::from_utf8_lossy(&octets).into_owned()
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}

fn line(text: &str) -> String {
    text.to_owned()
}

fn program(client: &Client) -> Vec<String> {
    vec![
        line("Host: HOST"),
        format!("Authorization: Bearer {}", client.key),
        line("Content-Type: application/json"),
    ]
}

#[tokio::test]
async fn only_a_client_with_its_key_may_call() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let right = program(&client);
    assert_eq!(status(&ask(&world, "POST /agents/demo/", &right, GET).await), 200);
    assert_eq!(status(&ask(&world, "POST /agents/demo", &right, GET).await), 200, "without the slash, too");
    for authorization in [
        None,
        Some("Bearer "),
        Some("Bearer nonsense"),
        Some("Basic nonsense"),
        Some(&*format!("Bearer {}x", client.key)),
        Some(&*format!("Bearer {}", client.key.to_uppercase())),
    ] {
        let mut headers = vec![line("Host: HOST"), line("Content-Type: application/json")];
        headers.extend(authorization.map(|value| format!("Authorization: {value}")));
        let answer = ask(&world, "POST /agents/demo/", &headers, GET).await;
        assert_eq!(status(&answer), 401, "{authorization:?}");
        assert!(answer.to_ascii_lowercase().contains("www-authenticate: bearer"), "{answer}");
    }
    let mut twice = right.clone();
    twice.push(format!("Authorization: Bearer {}", client.key));
    assert_eq!(status(&ask(&world, "POST /agents/demo/", &twice, GET).await), 401);
}

#[tokio::test]
async fn no_page_reaches_an_agent_whatever_it_sends() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let port = world.address().rsplit_once(':').unwrap().1.to_owned();
    let asked_before = world.agent().counters().gets();
    for host in [
        "evil.example.net".to_owned(),
        format!("gw.attacker.example:{port}"),
        format!("127.attacker.example:{port}"),
        format!("127.0.0.1.attacker.example:{port}"),
        format!("localhost.attacker.example:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        "127.0.0.1".to_owned(),
    ] {
        let mut headers = program(&client);
        headers[0] = format!("Host: {host}");
        assert_eq!(status(&ask(&world, "POST /agents/demo/", &headers, GET).await), 421, "{host}");
        let card = ask(&world, "GET /agents/demo/.well-known/agent-card.json", &headers[..1], "").await;
        assert_eq!(status(&card), 421, "{host}");
    }
    for origin in
        ["https://attacker.example", "http://localhost:3000", "null", &format!("http://127.0.0.1:{port}")]
    {
        let mut headers = program(&client);
        headers.push(format!("Origin: {origin}"));
        assert_eq!(status(&ask(&world, "POST /agents/demo/", &headers, GET).await), 403, "{origin}");
    }
    for site in ["cross-site", "same-site", "same-origin"] {
        let mut headers = program(&client);
        headers.push(format!("Sec-Fetch-Site: {site}"));
        assert_eq!(status(&ask(&world, "POST /agents/demo/", &headers, GET).await), 403, "{site}");
    }
    for media_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/a2a+json",
    ] {
        let mut headers = program(&client);
        headers[2] = format!("Content-Type: {media_type}");
        assert_eq!(status(&ask(&world, "POST /agents/demo/", &headers, GET).await), 415, "{media_type}");
    }
    assert_eq!(status(&ask(&world, "POST /agents/demo/", &program(&client)[..2], GET).await), 415);
    let counters = world.agent().counters();
    assert_eq!((counters.all_sends(), counters.gets()), (0, asked_before), "nothing reached the agent");
}

#[tokio::test]
async fn the_token_of_the_api_opens_no_agent_and_a_clients_key_no_api() {
    let world = World::new().await;
    let client = world.client("editor").await;
    assert_eq!(status(&ask(&world, "GET /api/v1/tasks", &program(&client), "").await), 401);
    let runtime: Value =
        serde_json::from_slice(&std::fs::read(world.folder.path().join("data/runtime.json")).unwrap())
            .unwrap();
    let mut headers = program(&client);
    headers[1] = format!("Authorization: Bearer {}", runtime["token"].as_str().unwrap());
    assert_eq!(status(&ask(&world, "POST /agents/demo/", &headers, GET).await), 401);
}

#[tokio::test]
async fn anothers_task_looks_like_one_that_never_was() {
    let world = World::new().await;
    let (one, other) = (world.client("one").await, world.client("other").await);
    let words = Words(Dialect::V1);
    let task = one.start(words, "steps=100 interval=0.1").await;
    let outgoing =
        Outgoing { text: "steps=100 interval=0.1".into(), context_id: None, parts: Vec::new(), push: None };
    let Sent::Task(key) = world.engine().engine().send(&agent_name(), outgoing).await.unwrap() else {
        panic!("a task")
    };
    let users = world.engine().engine().summary_of(key).await.unwrap().task.task.to_string();
    let context = one.call("GetTask", json!({"id": task})).await["contextId"].clone();
    for id in [task.as_str(), users.as_str(), "never-was"] {
        let mut message = words.message("hello");
        message["taskId"] = json!(id);
        for (method, params) in [
            ("GetTask", json!({"id": id})),
            ("tasks/get", json!({"id": id})),
            ("CancelTask", json!({"id": id})),
            ("SubscribeToTask", json!({"id": id})),
            ("SendMessage", json!({"message": message})),
            ("CreateTaskPushNotificationConfig", json!({"taskId": id, "url": "https://h.example/x"})),
            ("GetTaskPushNotificationConfig", json!({"taskId": id, "id": "p"})),
            ("ListTaskPushNotificationConfigs", json!({"taskId": id})),
            ("DeleteTaskPushNotificationConfig", json!({"taskId": id, "id": "p"})),
        ] {
            let answer = other.ask(method, params).await;
            assert_eq!(answer["error"]["code"], json!(-32001), "{method} {id}");
            assert_eq!(answer["error"]["message"], json!("task not found"), "{method} {id}");
        }
    }
    let mut message = words.message("hello");
    message["contextId"] = context;
    assert_eq!(other.error("SendMessage", json!({"message": message})).await, -32001, "nor its context");
    let mut message = words.message("hello");
    message["referenceTaskIds"] = json!([task]);
    assert_eq!(other.error("SendMessage", json!({"message": message})).await, -32001, "nor as a reference");
    assert_eq!(other.call("ListTasks", json!({})).await["totalSize"], json!(0));

    world.set("gateway.share_tasks", "yes").await;
    assert_eq!(other.call("GetTask", json!({"id": task})).await["id"], json!(task));
    assert_eq!(other.call("ListTasks", json!({})).await["totalSize"], json!(2));
}

#[tokio::test]
async fn the_agents_token_is_in_no_answer_and_no_header() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let card = ask(&world, "GET /agents/demo/.well-known/agent-card.json", &program(&client)[..1], "").await;
    assert!(status(&card) == 200 && !card.contains(AGENT_TOKEN), "{card}");
    for words in BOTH {
        let method = words.method("message/stream", "SendStreamingMessage");
        let mut events =
            client.stream(method, json!({"message": words.message("steps=1 interval=0.01")}), None).await;
        let task = words.task(&events.event().await.result())["id"].as_str().unwrap().to_owned();
        events.rest().await;
        assert!(!String::from_utf8_lossy(&events.raw).contains(AGENT_TOKEN));
        let answer = client.ask(words.method("tasks/get", "GetTask"), json!({"id": task})).await;
        assert!(!answer.to_string().contains(AGENT_TOKEN));
    }
    // The agent's own refusal is not passed on: some repeat what they were sent.
    world.agent().set_tokens(vec!["another".to_owned()]);
    let words = Words(Dialect::V1);
    let answer = client.ask("SendMessage", json!({"message": words.message("hello")})).await;
    assert_eq!(answer["error"]["code"], json!(-32603));
    assert!(!answer.to_string().contains(AGENT_TOKEN), "{answer}");
    let client_headers_are_not_passed_on = client.key.clone();
    assert!(!answer.to_string().contains(&client_headers_are_not_passed_on));
}

/// An agent that answers every message with the same task, as one that knows messages by their ids may.
async fn one_task_agent() -> String {
    async fn answer(axum::Json(asked): axum::Json<Value>) -> axum::Json<Value> {
        let task = json!({"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_COMPLETED"},
            "artifacts":[{"artifactId":"a","parts":[{"text":"for one client only"}]}]});
        let result = if asked["method"] == json!("SendMessage") { json!({"task": task}) } else { task };
        axum::Json(json!({"jsonrpc":"2.0","id":asked["id"],"result":result}))
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let card = json!({"name":"one","description":"","version":"1","capabilities":{},"skills":[],
        "supportedInterfaces":[{"url":url,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}]});
    let router = axum::Router::new()
        .route("/", axum::routing::post(answer))
        .route("/.well-known/agent-card.json", axum::routing::get(async move || axum::Json(card)));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

#[tokio::test]
async fn an_agent_that_takes_two_clients_for_one_shows_neither_the_others_task() {
    let world = World::new().await;
    world.add_agent("one", &one_task_agent().await).await;
    let at = |mut client: Client| {
        client.base = client.base.replace("/agents/demo", "/agents/one");
        client
    };
    let (one, other) = (at(world.client("one").await), at(world.client("other").await));
    let words = Words(Dialect::V1);
    let params = json!({"message": words.message("hello")});
    assert_eq!(one.call("SendMessage", params.clone()).await["task"]["id"], json!("t-1"));
    let answer = other.ask("SendMessage", params.clone()).await;
    assert_eq!(answer["error"]["code"], json!(-32006), "{answer}");
    assert!(!answer.to_string().contains("for one client only"));
    assert_eq!(other.error("GetTask", json!({"id": "t-1"})).await, -32001);
    assert_eq!(one.call("SendMessage", params).await["task"]["id"], json!("t-1"), "its own, once more");
}
