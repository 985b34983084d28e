//! HTTP+JSON of 1.0: the same operations by path and verb.

use reqwest::Method;
use serde_json::{Value, json};
use taskbell_core::dialect::Dialect;

use crate::support::{Client, LIMIT, Words, World};

async fn ask(client: &Client, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
    let mut request = client.request(method, path).timeout(LIMIT);
    if let Some(body) = body {
        request = request.json(&body);
    }
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap_or(Value::Null))
}

/// The data of every event of a stream.
async fn events(
    client: &Client,
    method: Method,
    path: &str,
    body: Option<Value>,
    last: Option<&str>,
) -> (String, Vec<Value>) {
    let mut request = client.request(method, path).timeout(LIMIT);
    if let Some(body) = body {
        request = request.json(&body);
    }
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let text = request.send().await.unwrap().text().await.unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let values = data.map(|data| serde_json::from_str(data).unwrap()).collect();
    (text, values)
}

#[tokio::test]
async fn a_task_is_sent_read_listed_and_cancelled_by_path() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for agents in [Dialect::V03, Dialect::V1] {
        world.pin(agents).await;
        let words = Words(Dialect::V1);
        let body = json!({"message": words.message("steps=1 interval=0.01")});
        let (status, sent) = ask(&client, Method::POST, "/message:send", Some(body)).await;
        assert_eq!(
            (status, &sent["task"]["status"]["state"]),
            (200, &json!("TASK_STATE_COMPLETED")),
            "{sent}"
        );
        let id = sent["task"]["id"].as_str().unwrap();
        let (status, task) = ask(&client, Method::GET, &format!("/tasks/{id}?historyLength=1"), None).await;
        assert_eq!((status, &task["id"], task["history"].as_array().unwrap().len()), (200, &json!(id), 1));
        let (_, page) =
            ask(&client, Method::GET, "/tasks?pageSize=1&status=TASK_STATE_COMPLETED", None).await;
        assert_eq!(page["tasks"][0]["id"], json!(id));
        let (status, error) = ask(&client, Method::POST, &format!("/tasks/{id}:cancel"), None).await;
        assert_eq!((status, &error["error"]["status"]), (400, &json!("FAILED_PRECONDITION")), "{error}");

        let body = json!({"message": words.message("steps=100 interval=0.1"), "configuration": {"returnImmediately": true}});
        let (_, sent) = ask(&client, Method::POST, "/message:send", Some(body)).await;
        let id = sent["task"]["id"].as_str().unwrap();
        let (status, task) =
            ask(&client, Method::POST, &format!("/tasks/{id}:cancel"), Some(json!({}))).await;
        assert_eq!((status, &task["status"]["state"]), (200, &json!("TASK_STATE_CANCELED")));
    }
}

#[tokio::test]
async fn a_stream_carries_bare_events_and_is_joined_by_either_verb() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let words = Words(Dialect::V1);
    let body = json!({"message": words.message("steps=2 interval=0.05 chunks=2")});
    let (text, heard) = events(&client, Method::POST, "/message:stream", Some(body), None).await;
    assert!(heard[0].get("task").is_some() && heard.iter().all(|event| event.get("jsonrpc").is_none()));
    assert_eq!(heard.last().unwrap()["statusUpdate"]["status"]["state"], json!("TASK_STATE_COMPLETED"));
    let id = heard[0]["task"]["id"].as_str().unwrap();
    let first = text.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    for method in [Method::POST, Method::GET] {
        let path = format!("/tasks/{id}:subscribe");
        let (_, missed) = events(&client, method.clone(), &path, None, Some(first)).await;
        assert_eq!(missed, heard[1..], "what was missed, by {method}");
        let (status, error) = ask(&client, method, &path, None).await;
        assert_eq!((status, &error["error"]["details"][0]["reason"]), (400, &json!("UNSUPPORTED_OPERATION")));
    }
}

#[tokio::test]
async fn refusals_have_the_status_and_the_shape_of_1_0() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for (method, path, body, status, reason) in [
        (Method::GET, "/tasks/none", None, 404, "TASK_NOT_FOUND"),
        (Method::GET, "/nowhere", None, 404, "METHOD_NOT_FOUND"),
        (Method::GET, "/v1/tasks/x", None, 404, "METHOD_NOT_FOUND"),
        (Method::GET, "/tasks?pageSize=1000", None, 400, "INVALID_PARAMS"),
        (Method::POST, "/message:send", Some(json!({})), 400, "INVALID_PARAMS"),
        (Method::POST, "/message:send", Some(json!([])), 400, "INVALID_PARAMS"),
        (Method::GET, "/extendedAgentCard", None, 400, "UNSUPPORTED_OPERATION"),
    ] {
        let (got, error) = ask(&client, method, path, body).await;
        assert_eq!(
            (got, &error["error"]["details"][0]["reason"]),
            (status, &json!(reason)),
            "{path}: {error}"
        );
        assert_eq!(error["error"]["code"], json!(status));
    }
    let (status, _) = ask(&client, Method::PUT, "/tasks/x", None).await;
    assert_eq!(status, 405);
    let answer = client.request(Method::GET, "/tasks/x").header("a2a-version", "0.3").send().await.unwrap();
    assert_eq!(answer.status(), 400);
    let body =
        client.request(Method::POST, "/message:send").header("content-type", "application/json").body("{");
    let error: Value = body.send().await.unwrap().json().await.unwrap();
    assert_eq!(error["error"]["code"], json!(400));
    let answer =
        client.request(Method::GET, "/tasks").header("accept", "application/a2a+json").send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/a2a+json");
}
