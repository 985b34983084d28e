//! Who may not call: foreign hosts and pages, programs without a key, and clients of somebody else's task.

use serde_json::{Value, json};
use taskbell_tests::raw_http::{RawAnswer, exchange, post};

use crate::support::{PATH, Scene, message, new_key};

const CARDS: [&str; 2] = ["/agents/demo/.well-known/agent-card.json", "/agents/demo/.well-known/agent.json"];

fn send() -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message()}})
        .to_string()
        .into_bytes()
}

async fn ask(scene: &Scene, start: &str, headers: &[&str]) -> RawAnswer {
    let mut octets = format!("{start} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|line| line.starts_with("Host:")) {
        octets += &format!("Host: {}\r\n", scene.address());
    }
    for line in headers {
        octets += &format!("{line}\r\n");
    }
    octets += "\r\n";
    exchange(scene.address(), octets.as_bytes()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_host_gets_nothing_not_even_the_card() {
    let scene = Scene::start().await;
    let port = scene.address().rsplit(':').next().expect("a port").to_owned();
    for host in [
        "evil.example.net".to_owned(),
        format!("evil.example.net:{port}"),
        format!("127.0.0.1.evil.example.net:{port}"),
        format!("127.0.0.2:{port}"),
        "127.0.0.1".to_owned(),
        "tunnel.example.org".to_owned(),
    ] {
        let header = format!("Host: {host}");
        let answer = scene.post_with(&[&header], &send()).await;
        assert_eq!(answer.status, 421, "{host}: {answer:?}");
        for card in CARDS {
            let answer = ask(&scene, &format!("GET {card}"), &[&header]).await;
            assert_eq!(answer.status, 421, "{host}: {answer:?}");
            assert!(!answer.body.contains("skills"), "{answer:?}");
        }
    }
    scene.nothing_ran().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_refused_whatever_key_it_has() {
    let scene = Scene::start().await;
    let own = format!("http://{}", scene.address());
    for origin in ["https://evil.example.net", "http://localhost:3000", "null", own.as_str()] {
        let answer = scene.post_with(&[&format!("Origin: {origin}")], &send()).await;
        assert_eq!(answer.status, 403, "{origin}: {answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    let preflight =
        ["Origin: https://evil.example.net", "Access-Control-Request-Method: POST", &scene.bearer()]
            .map(str::to_owned);
    let preflight: Vec<&str> = preflight.iter().map(String::as_str).collect();
    let answer = ask(&scene, &format!("OPTIONS {PATH}"), &preflight).await;
    assert!(answer.status >= 400, "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), None);
    scene.nothing_ran().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_clients_key_opens_and_it_opens_nothing_else() {
    let scene = Scene::start().await;
    let runtime =
        std::fs::read_to_string(scene.taskbell.data_dir().join("runtime.json")).expect("runtime.json");
    let runtime: Value = serde_json::from_str(&runtime).expect("JSON");
    let token = runtime["token"].as_str().expect("the API's token");
    let other_end = scene.key.split_at(scene.key.len() - 1).0;
    for header in [
        String::new(),
        "Authorization: ".to_owned(),
        "Authorization: Bearer".to_owned(),
        "Authorization: Bearer wrong".to_owned(),
        format!("Authorization: Bearer {other_end}"),
        format!("Authorization: Bearer {}x", scene.key),
        format!("Authorization: Basic {}", scene.key),
        format!("Authorization: Bearer {token}"),
        format!("X-Api-Key: {}", scene.key),
        format!("Cookie: key={}", scene.key),
        format!("Authorization: Bearer {}\r\nAuthorization: Bearer wrong", scene.key),
    ] {
        let answer = exchange(scene.address(), &post(scene.address(), PATH, &[&header], &send())).await;
        assert_eq!(answer.status, 401, "{header:?}: {answer:?}");
        assert!(
            answer.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer")),
            "{answer:?}"
        );
        assert!(!answer.body.contains(&scene.key) && !answer.head.contains(&scene.key));
    }
    let path = format!("{PATH}?key={}&access_token={}", scene.key, scene.key);
    let answer = exchange(scene.address(), &post(scene.address(), &path, &[], &send())).await;
    assert_eq!(answer.status, 401, "a key in the address counts for nothing: {answer:?}");
    let answer = ask(&scene, "GET /api/v1/tasks", &[&scene.bearer()]).await;
    assert_eq!(answer.status, 401, "a client's key is none of the API's: {answer:?}");
    scene.nothing_ran().await;
    let log = scene.taskbell.log();
    assert!(!log.contains(&scene.key), "the key is in the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_opens_nothing_any_more() {
    let scene = Scene::start().await;
    scene.is_well().await;
    scene.taskbell.cli(&["client", "revoke", "tester"]).await.exits(0);
    assert_eq!(scene.post(&send()).await.status, 401);
    scene.nothing_ran().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_card_needs_no_key_and_shows_nothing_of_this_user() {
    let scene = Scene::start().await;
    let secret_task =
        scene.call("message/send", json!({"message": message(), "configuration": {"blocking": false}})).await;
    let task = secret_task["result"]["id"].as_str().expect("a task").to_owned();
    for path in CARDS {
        let answer = ask(&scene, &format!("GET {path}"), &[]).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("cache-control"), Some("private, max-age=60"));
        for name in ["etag", "last-modified"] {
            assert!(answer.header(name).is_some_and(|value| !value.is_empty()), "{name}: {answer:?}");
        }
        let card = answer.json();
        let own = format!("http://{}{PATH}", scene.address());
        assert_eq!(card["url"], json!(own), "{card}");
        assert_eq!(card["capabilities"]["streaming"], true);
        for secret in [task.as_str(), &scene.key, "tester", &scene.taskbell.data_dir().display().to_string()]
        {
            assert!(!answer.body.contains(secret), "{secret}: {card}");
        }
        assert!(card["securitySchemes"].is_object(), "{card}");
    }
    for path in [
        "/agents/nobody/.well-known/agent-card.json",
        "/agents/",
        "/agents",
        "/agents/demo/../../api/v1/tasks",
    ] {
        let answer = ask(&scene, &format!("GET {path}"), &[]).await;
        assert!((400..500).contains(&answer.status), "{path}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_clients_task_looks_like_one_that_never_was() {
    let scene = Scene::start().await;
    let other = new_key(&scene.taskbell, "other").await;
    let begun =
        scene.call("message/send", json!({"message": message(), "configuration": {"blocking": false}})).await;
    let task = begun["result"]["id"].as_str().unwrap_or_else(|| panic!("no task: {begun}")).to_owned();
    let by_user = scene.taskbell.send("demo", "steps=1 interval=900").await;
    let continued = |id: &str| {
        let mut message = message();
        message["taskId"] = json!(id);
        json!({"message": message})
    };
    let config = json!({"url": "https://callbacks.invalid/x", "id": "p"});
    let calls = |id: &str| {
        [
            ("tasks/get", json!({"id": id})),
            ("GetTask", json!({"id": id})),
            ("tasks/cancel", json!({"id": id})),
            ("CancelTask", json!({"id": id})),
            ("tasks/resubscribe", json!({"id": id})),
            ("SubscribeToTask", json!({"id": id})),
            ("message/send", continued(id)),
            ("SendMessage", continued(id)),
            ("tasks/pushNotificationConfig/set", json!({"taskId": id, "pushNotificationConfig": config})),
            ("tasks/pushNotificationConfig/get", json!({"id": id, "pushNotificationConfigId": "p"})),
            ("tasks/pushNotificationConfig/list", json!({"id": id})),
            ("tasks/pushNotificationConfig/delete", json!({"id": id, "pushNotificationConfigId": "p"})),
            ("ListTaskPushNotificationConfigs", json!({"taskId": id})),
        ]
    };
    let never = "00000000-0000-4000-8000-000000000000";
    for (nobodys, (method, params)) in calls(never).into_iter().zip(calls(&task)) {
        let unknown = scene.call_as(&other, method, nobodys.1).await.to_string().replace(never, "ID");
        let foreign = scene.call_as(&other, method, params).await.to_string().replace(&task, "ID");
        assert_eq!(foreign, unknown, "{method}");
        assert!(foreign.contains("-32001"), "{method}: {foreign}");
    }
    for (method, params) in calls(by_user.id()) {
        let answer = scene.call(method, params).await;
        assert_eq!(answer["error"]["code"], -32001, "{method} of the user's own task: {answer}");
    }
    let listed = scene.call_as(&other, "ListTasks", json!({})).await;
    assert_eq!(listed["result"]["tasks"].as_array().map_or(0, Vec::len), 0, "{listed}");
    let told = scene.call("tasks/get", json!({"id": task})).await;
    assert_ne!(told["result"]["status"]["state"], "canceled", "nobody else canceled it: {told}");
}
