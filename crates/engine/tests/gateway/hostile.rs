//! Requests that nobody means well by: the error that the protocol has for each, and everything goes on.

use serde_json::{Value, json};
use taskbell_core::dialect::Dialect;

use crate::support::{Client, Words, World};

async fn raw(client: &Client, body: impl Into<reqwest::Body>) -> (u16, Value) {
    let answer = client.post().header("content-type", "application/json").body(body).send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap_or(Value::Null))
}

async fn is_well(client: &Client) {
    let result = client.call("ListTasks", json!({})).await;
    assert!(result["tasks"].is_array());
}

#[tokio::test]
async fn what_is_no_request_is_refused_by_its_code() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",\"params\":{}1{}}}",
        "{\"a\":".repeat(70),
        "}".repeat(70)
    );
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}","params":{{}}}}"#, "x".repeat(100_000));
    for (body, code, id) in [
        ("", -32700, Value::Null),
        ("{", -32700, Value::Null),
        ("nonsense", -32700, Value::Null),
        ("\u{feff}{}", -32700, Value::Null),
        (&deep, -32700, Value::Null),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"GetTask","params":{"id":"x"}}"#, -32700, Value::Null),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}]"#, -32600, Value::Null),
        ("[]", -32600, Value::Null),
        ("7", -32600, Value::Null),
        ("null", -32600, Value::Null),
        (r#"{"id":5,"method":"GetTask","params":{"id":"x"}}"#, -32600, json!(5)),
        (r#"{"jsonrpc":"1.0","id":"a","method":"GetTask"}"#, -32600, json!("a")),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"GetTask"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"getTask","params":{"id":"x"}}"#, -32601, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/list"}"#, -32601, json!(1)),
        (&long, -32601, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask"}"#, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}"#, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":{}}}"#, -32602, json!(1)),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x","historyLength":-1}}"#,
            -32602,
            json!(1),
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":"hi"}}"#, -32602, json!(1)),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[]}}}"#,
            -32602,
            json!(1),
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"message/stream","params":{}}"#, -32602, json!(1)),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"../../../etc/passwd"}}"#,
            -32001,
            json!(1),
        ),
        (r#"{"jsonrpc":"2.0","method":"GetTask","params":{"id":"x"}}"#, -32001, Value::Null),
    ] {
        let (status, answer) = raw(&client, body.to_owned()).await;
        let shown: String = body.chars().take(80).collect();
        assert_eq!(
            (status, &answer["error"]["code"], &answer["id"]),
            (200, &json!(code), &id),
            "{shown}: {answer}"
        );
    }
    let (_, answer) = raw(&client, vec![b'{', b'"', 0xff, b'"', b'}']).await;
    assert_eq!(answer["error"]["code"], json!(-32700));
    is_well(&client).await;
    assert_eq!(world.agent().counters().all_sends(), 0, "nothing of it reached the agent");
}

#[tokio::test]
async fn ten_megabytes_are_refused_and_a_big_message_is_not() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let (status, answer) = raw(&client, vec![b' '; 10 << 20]).await;
    assert_eq!((status, &answer["error"]["code"]), (413, &json!(-32600)), "{answer}");
    let unsaid = futures::stream::iter((0..10).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1 << 20])));
    let sent = client
        .post()
        .header("content-type", "application/json")
        .body(reqwest::Body::wrap_stream(unsaid))
        .send();
    // Cut while it is being sent, or told why.
    if let Ok(answer) = sent.await {
        assert_eq!(answer.status(), 413);
    }
    let words = Words(Dialect::V1);
    let mut message = words.message("steps=1 interval=0.01");
    let file = json!({"raw": "QUJD".repeat(300_000), "mediaType": "application/octet-stream"});
    message["parts"].as_array_mut().unwrap().push(file);
    let result = client.call("SendMessage", json!({"message": message})).await;
    assert_eq!(result["task"]["status"]["state"], json!("TASK_STATE_COMPLETED"));
    is_well(&client).await;
}

#[tokio::test]
async fn a_version_that_contradicts_the_method_or_is_none_is_refused() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for (version, method, code) in [
        ("1.0", "GetTask", -32001),
        ("0.3", "tasks/get", -32001),
        ("", "GetTask", -32001),
        ("0.3", "GetTask", -32009),
        ("1.0", "tasks/get", -32009),
        ("2.0", "GetTask", -32009),
        ("1.0.1", "GetTask", -32009),
        ("one", "tasks/get", -32009),
    ] {
        let body = json!({"jsonrpc":"2.0","id":1,"method":method,"params":{"id":"x"}});
        let answer = client.post().header("a2a-version", version).json(&body).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let answer: Value = answer.json().await.unwrap();
        assert_eq!(answer["error"]["code"], json!(code), "{version} {method}: {answer}");
        if code == -32009 {
            assert_eq!(answer["error"]["data"][0]["metadata"]["supportedVersions"], json!("1.0, 0.3"));
        }
    }
}

#[tokio::test]
async fn floods_of_headers_and_of_requests_stall_nobody() {
    let world = World::new().await;
    let (client, other) = (world.client("editor").await, world.client("other").await);
    let mut request = client.post().json(&json!({}));
    for index in 0..200 {
        request = request.header(format!("x-flood-{index}"), "x");
    }
    assert_eq!(request.send().await.unwrap().status(), 431);
    let long = client.post().header("x-long", "x".repeat(200_000)).json(&json!({})).send().await;
    assert!(long.is_err() || long.unwrap().status() == 431);
    // More than its bucket holds: it is told to wait, and nobody else is.
    let mut refused = 0;
    let flood = (0..16).map(|_| {
        let client = client.clone();
        tokio::spawn(async move {
            let mut refused = 0;
            for _ in 0..600 {
                let answer =
                    client.post().header("content-type", "application/json").body("[]").send().await.unwrap();
                refused += usize::from(answer.status() == 429);
                if refused > 0 {
                    break;
                }
            }
            refused
        })
    });
    for task in flood.collect::<Vec<_>>() {
        is_well(&other).await;
        refused += task.await.unwrap();
    }
    // A slow machine may never ask too often; the bucket itself is tested where time is an argument.
    println!("refused: {refused}");
    is_well(&other).await;
}

#[tokio::test]
async fn an_error_of_a_stream_is_an_event_for_old_clients_and_a_document_for_new_ones() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let mut events = client.stream("tasks/resubscribe", json!({"id": "x"}), None).await;
    let error = events.event().await.value();
    assert_eq!((&error["error"]["code"], &error["id"]), (&json!(-32001), &json!(7)));
    assert_eq!(client.error("tasks/resubscribe", json!({"id": "x"})).await, -32001, "who takes no events");
    let body = json!({"jsonrpc":"2.0","id":7,"method":"SubscribeToTask","params":{"id":"x"}});
    let answer = client.post().header("accept", "text/event-stream").json(&body).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/json");
}
