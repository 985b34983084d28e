//! Requests that break a rule: each gets the error that says so, and the gateway goes on.

use std::time::Duration;

use serde_json::{Value, json};
use taskbell_tests::raw_http::{connect, exchange};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::support::{PATH, Scene, message};

fn code(document: &Value) -> i64 {
    document["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {document}"))
}

async fn code_of(scene: &Scene, body: &[u8]) -> i64 {
    let answer = scene.post(body).await;
    assert!(answer.status == 200 || (400..500).contains(&answer.status), "{answer:?}");
    code(&answer.json())
}

/// Enough of a long text to know which it is.
fn start(text: &str) -> String {
    text.chars().take(40).collect()
}

fn request(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_refused_and_nothing_of_it_runs() {
    let scene = Scene::start().await;
    let one: Value =
        serde_json::from_str(&request("message/send", &json!({"message": message()}))).expect("JSON");
    for batch in [json!([]), json!([one]), json!([one, one]), json!([1, 2]), json!([[one]])] {
        let answer = scene.post(batch.to_string().as_bytes()).await.json();
        assert_eq!(code(&answer), -32600, "{batch}");
        assert_eq!(answer["id"], Value::Null, "{batch}");
    }
    scene.nothing_ran().await;
    scene.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_json_is_a_parse_error() {
    let scene = Scene::start().await;
    let deep = "[".repeat(200_000);
    let deep_object = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","method":"message/send","params":{}}"#;
    let inner = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"a","id":"b"}}"#;
    let bodies: [&[u8]; 11] = [
        b"",
        b"   ",
        b"{",
        b"{\"jsonrpc\":\"2.0\"",
        b"\xff\xfe{\x00",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/\xff\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":NaN}",
        deep.as_bytes(),
        deep_object.as_bytes(),
        twice.as_bytes(),
        inner.as_bytes(),
    ];
    for body in bodies {
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        let answer = scene.post(body).await.json();
        assert_eq!(code(&answer), -32700, "{shown}: {answer}");
        assert_eq!(answer["id"], Value::Null, "{shown}");
    }
    scene.nothing_ran().await;
    scene.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_text_or_a_whole_number_and_comes_back_as_it_was() {
    let scene = Scene::start().await;
    let ask = async |id: &str| {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tasks/get","params":{{"id":"nobody"}}}}"#);
        scene.post(body.as_bytes()).await
    };
    let long = format!("\"{}\"", "x".repeat(10_000));
    for id in ["null", "1.5", "1e3", "true", "{}", "[1]", "123456789012345678901234567890"] {
        let answer = ask(id).await.json();
        assert_eq!((code(&answer), &answer["id"]), (-32600, &Value::Null), "{}", start(id));
    }
    for id in
        [long.as_str(), "0", "7", "-7", "9007199254740993", "\"\"", "\"a\"", "\"7\"", r#""\u0000\u2028é""#]
    {
        let answer = ask(id).await;
        let given: Value = serde_json::from_str(id).expect("JSON");
        assert_eq!((code(&answer.json()), &answer.json()["id"]), (-32001, &given), "{}", start(id));
    }
    scene.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_of_another_shape_is_an_invalid_request() {
    let scene = Scene::start().await;
    for body in [
        json!(null),
        json!("tasks/get"),
        json!(7),
        json!({}),
        json!({"id": 1, "method": "tasks/get", "params": {"id": "x"}}),
        json!({"jsonrpc": "1.0", "id": 1, "method": "tasks/get", "params": {"id": "x"}}),
        json!({"jsonrpc": 2.0, "id": 1, "method": "tasks/get", "params": {"id": "x"}}),
        json!({"jsonrpc": "2.0", "id": 1}),
        json!({"jsonrpc": "2.0", "id": 1, "method": 7}),
        json!({"jsonrpc": "2.0", "id": 1, "method": ["tasks/get"]}),
        json!({"JSONRPC": "2.0", "ID": 1, "METHOD": "tasks/get"}),
    ] {
        assert_eq!(code_of(&scene, body.to_string().as_bytes()).await, -32600, "{body}");
    }
    scene.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_in_another_case_or_of_no_version_is_unknown() {
    let scene = Scene::start().await;
    let long = "x".repeat(100_000);
    for method in [
        "",
        "Message/Send",
        "MESSAGE/SEND",
        "getTask",
        "gettask",
        "GETTASK",
        "tasks/list",
        "tasks/get ",
        "\u{0}",
        "constructor",
        "../tasks/get",
        "rpc.discover",
        long.as_str(),
    ] {
        let answer = scene.post(request(method, &json!({"id": "x"})).as_bytes()).await;
        assert_eq!(code(&answer.json()), -32601, "{}", start(method));
        assert!(answer.body.len() < 2000, "an error repeats no request: {} octets", answer.body.len());
    }
    scene.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn params_of_another_type_are_invalid_params_in_both_dialects() {
    let scene = Scene::start().await;
    for (old, new) in [
        ("message/send", "SendMessage"),
        ("message/stream", "SendStreamingMessage"),
        ("tasks/get", "GetTask"),
        ("tasks/cancel", "CancelTask"),
        ("tasks/resubscribe", "SubscribeToTask"),
        ("tasks/pushNotificationConfig/set", "CreateTaskPushNotificationConfig"),
        ("tasks/pushNotificationConfig/get", "GetTaskPushNotificationConfig"),
        ("tasks/pushNotificationConfig/list", "ListTaskPushNotificationConfigs"),
        ("tasks/pushNotificationConfig/delete", "DeleteTaskPushNotificationConfig"),
    ] {
        for method in [old, new] {
            for params in [
                json!(null),
                json!([]),
                json!(["a"]),
                json!("a"),
                json!(7),
                json!({}),
                json!({"ID": "x", "Message": {}}),
                json!({"id": true, "message": true, "taskId": true}),
                json!({"id": {}, "message": [], "taskId": []}),
                json!({"id": null, "message": null, "taskId": null}),
            ] {
                let answer = scene.post(request(method, &params).as_bytes()).await.json();
                assert_eq!(code(&answer), -32602, "{method} {params}: {answer}");
                assert_eq!(answer["id"], 7, "{method} {params}");
            }
        }
    }
    scene.nothing_ran().await;
    scene.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_another_shape_is_invalid_params() {
    let scene = Scene::start().await;
    let without = |member: &str| {
        let mut message = message();
        message.as_object_mut().expect("an object").remove(member);
        message
    };
    let with = |member: &str, value: Value| {
        let mut message = message();
        message[member] = value;
        message
    };
    for message in [
        without("messageId"),
        without("role"),
        without("parts"),
        with("messageId", json!("")),
        with("messageId", json!(true)),
        with("role", json!("wizard")),
        with("parts", json!({})),
        with("parts", json!([])),
        with("parts", json!([7])),
        with("parts", json!([{"kind": "hologram", "text": "x"}])),
        with("parts", json!([{"kind": "text"}])),
        with("taskId", json!({})),
        with("contextId", json!([])),
        with("metadata", json!("x")),
        with("referenceTaskIds", json!("x")),
    ] {
        for method in ["message/send", "SendMessage", "message/stream"] {
            let params = json!({"message": message});
            assert_eq!(
                code_of(&scene, request(method, &params).as_bytes()).await,
                -32602,
                "{method} {message}"
            );
        }
    }
    scene.nothing_ran().await;
    scene.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_not_spoken_or_not_the_methods_is_named() {
    let scene = Scene::start().await;
    let get = |method| request(method, &json!({"id": "nobody"}));
    let long = format!("A2A-Version: {}", "9".repeat(4000));
    for version in
        ["A2A-Version: 2.0", "A2A-Version: 1.0.1", "A2A-Version: x", "a2a-version: 0.2", long.as_str()]
    {
        for method in ["tasks/get", "GetTask"] {
            let answer = scene.post_with(&[version], get(method).as_bytes()).await;
            let shown = start(version);
            assert_eq!(code(&answer.json()), -32009, "{shown} {method}");
            assert!(answer.body.len() < 2000, "an error repeats no request: {} octets", answer.body.len());
        }
    }
    for (version, method, expected) in [
        ("1.0", "tasks/get", -32009),
        ("0.3", "GetTask", -32009),
        ("1.0", "GetTask", -32001),
        ("0.3", "tasks/get", -32001),
        ("", "tasks/get", -32001),
        ("", "GetTask", -32001),
    ] {
        let header = format!("A2A-Version: {version}");
        let answer = scene.post_with(&[&header], get(method).as_bytes()).await.json();
        assert_eq!(code(&answer), expected, "{version} {method}: {answer}");
    }
    scene.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_megabytes_are_refused_however_their_length_is_told() {
    let scene = Scene::start().await;
    let text = "x".repeat(10 << 20);
    let mut big = message();
    big["parts"][0]["text"] = json!(text);
    let body = request("message/send", &json!({"message": big}));
    let answer = scene.post(body.as_bytes()).await;
    assert_eq!(answer.status, 413, "{}", answer.head);
    assert!(answer.body.is_empty() || code(&answer.json()) == -32600, "{}", answer.body);
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\n\r\n",
        scene.address(),
        scene.bearer()
    );
    let mut chunked = head.into_bytes();
    for piece in body.as_bytes().chunks(1 << 16) {
        chunked.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        chunked.extend_from_slice(piece);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    let answer = exchange(scene.address(), &chunked).await;
    // Whoever is refused in the middle of sending may see the connection break instead.
    assert!(answer.status == 413 || answer.status == 0, "{}", answer.head);
    scene.nothing_ran().await;
    scene.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_headers_is_refused_before_anything_is_made_of_it() {
    let scene = Scene::start().await;
    let body = request("message/send", &json!({"message": message()}));
    let many: Vec<String> = (0..5000).map(|number| format!("X-Flood-{number}: {number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let long = format!("X-Flood: {}", "x".repeat(2 << 20));
    for headers in [many.as_slice(), &[long.as_str()]] {
        let answer = scene.post_with(headers, body.as_bytes()).await;
        assert!([0, 400, 431].contains(&answer.status), "{}", answer.head);
    }
    scene.nothing_ran().await;
    scene.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_lengths_or_a_length_and_chunks_are_no_request() {
    let scene = Scene::start().await;
    let body = request("message/send", &json!({"message": message()}));
    for header in ["Content-Length: 1", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked"] {
        let answer = scene.post_with(&[header], body.as_bytes()).await;
        assert!(answer.status == 0 || (400..500).contains(&answer.status), "{header}: {answer:?}");
    }
    scene.nothing_ran().await;
    scene.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_never_end_hold_nobody_up() {
    let scene = Scene::start().await;
    let bearer = scene.bearer();
    let head = format!("POST {PATH} HTTP/1.1\r\nHost: {}\r\n{bearer}\r\n", scene.address());
    let half_a_body = format!("{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{");
    let mut held = Vec::new();
    for start in [head.as_str(), half_a_body.as_str(), "P", ""] {
        for _ in 0..50 {
            let mut connection = connect(scene.address()).await;
            connection.write_all(start.as_bytes()).await.expect("a connection that was just made");
            held.push(connection);
        }
    }
    // A machine under load is slow, a gateway that waits for these would wait for good.
    timeout(Duration::from_secs(20), scene.is_well()).await.expect("the gateway answers others");
    drop(held);
    scene.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_json_by_its_type_is_refused() {
    let scene = Scene::start().await;
    let body = request("message/send", &json!({"message": message()}));
    for kind in [
        "text/plain",
        "text/plain; charset=utf-8",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "text/json",
        "application/jsonx",
        "",
    ] {
        let header = format!("Content-Type: {kind}");
        let answer = scene.post_with(&[&header], body.as_bytes()).await;
        assert_eq!(answer.status, 415, "{kind}: {answer:?}");
        assert_eq!(code(&answer.json()), -32005, "{kind}");
    }
    scene.nothing_ran().await;
    scene.is_well().await;
}
