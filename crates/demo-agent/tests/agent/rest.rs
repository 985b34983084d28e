//! HTTP+JSON of 1.0 below `/rest`.

use serde_json::{Value, json};
use taskbell_core::dialect::read;
use taskbell_core::fault::{FaultKind, RemoteError};
use taskbell_core::state::TaskState;
use taskbell_core::task::SendAnswer;

use crate::support::{Stream, agent, http};

fn send(text: &str, at_once: bool) -> Value {
    json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]},
        "configuration": {"returnImmediately": at_once}})
}

async fn ask(verb: &str, url: String, body: Option<Value>) -> (u16, Value) {
    let mut request = http().request(verb.parse().unwrap(), url).header("a2a-version", "1.0");
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    let has_plain_type = answer.headers()["content-type"] == "application/json";
    let document: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    // A refusal that is none of A2A's has a text for its error.
    if document["error"].is_string() {
        return (status, Value::Null);
    }
    assert!(has_plain_type, "no other type was asked for");
    (status, document)
}

#[tokio::test]
async fn a_task_is_sent_read_listed_and_canceled() {
    let agent = agent().await;
    let base = format!("{}/rest", agent.base_url());
    let (status, sent) =
        ask("POST", format!("{base}/message:send"), Some(send("steps=1 interval=3600", true))).await;
    assert_eq!(status, 200);
    let Ok(SendAnswer::Task(task)) = read::send_answer(sent) else { panic!("a task") };
    let (status, read) = ask("GET", format!("{base}/tasks/{}?historyLength=0", task.id), None).await;
    assert_eq!(status, 200);
    assert!(read::task(read).unwrap().history.is_empty());
    let (_, list) = ask("GET", format!("{base}/tasks?status=TASK_STATE_SUBMITTED&pageSize=1"), None).await;
    assert_eq!(read::task_page(list).unwrap().tasks[0].id, task.id);
    let (status, canceled) = ask("POST", format!("{base}/tasks/{}:cancel", task.id), Some(json!({}))).await;
    assert_eq!((status, read::task(canceled).unwrap().status.state), (200, TaskState::Canceled));
    let (status, again) = ask("POST", format!("{base}/tasks/{}:cancel", task.id), None).await;
    assert_eq!(RemoteError::from_body(&again, Some(status)).kind(), FaultKind::TaskNotCancelable);
}

#[tokio::test]
async fn streams_carry_bare_events_and_both_verbs_subscribe() {
    let agent = agent().await;
    let base = format!("{}/rest", agent.base_url());
    let body = send("steps=2 interval=0.2 artifact=no", true).to_string();
    let response = http().post(format!("{base}/message:stream")).body(body).send().await.unwrap();
    let mut stream = Stream::new(response, None);
    let task = stream.task().await;
    let url = format!("{base}/tasks/{}:subscribe", task.id);
    let mut posted = Stream::new(http().post(&url).send().await.unwrap(), None);
    let mut got = Stream::new(http().get(&url).send().await.unwrap(), None);
    let expected = ["working", "working", "completed", "end"];
    assert_eq!(stream.words().await, expected);
    for other in [&mut posted, &mut got] {
        other.task().await;
        assert_eq!(other.words().await, expected);
    }
    let (status, refused) = ask("POST", url, None).await;
    assert_eq!(status, 400);
    assert_eq!(RemoteError::from_body(&refused, Some(status)).kind(), FaultKind::TaskTerminal);
}

#[tokio::test]
async fn push_configs_are_resources_of_their_task() {
    let agent = agent().await;
    let base = format!("{}/rest", agent.base_url());
    let (_, sent) =
        ask("POST", format!("{base}/message:send"), Some(send("steps=1 interval=3600", true))).await;
    let Ok(SendAnswer::Task(task)) = read::send_answer(sent) else { panic!("a task") };
    let configs = format!("{base}/tasks/{}/pushNotificationConfigs", task.id);
    let config = json!({"id": "p", "url": "http://127.0.0.1:1/x", "token": "hush"});
    let (status, made) = ask("POST", configs.clone(), Some(config)).await;
    assert_eq!((status, made), (200, json!({"id": "p", "taskId": task.id, "url": "http://127.0.0.1:1/x"})));
    let (_, list) = ask("GET", configs.clone(), None).await;
    assert_eq!(list["configs"].as_array().map(Vec::len), Some(1));
    assert_eq!(ask("GET", format!("{configs}/p"), None).await.0, 200);
    assert_eq!(ask("DELETE", format!("{configs}/p"), None).await, (200, json!({})));
    assert_eq!(ask("GET", format!("{configs}/p"), None).await.0, 404);
}

#[tokio::test]
async fn refusals_are_status_bodies_and_other_paths_are_no_a2a_errors() {
    let agent = agent().await;
    let base = format!("{}/rest", agent.base_url());
    let (status, unknown) = ask("GET", format!("{base}/tasks/nobody"), None).await;
    assert_eq!((status, &unknown["error"]["status"]), (404, &json!("NOT_FOUND")));
    assert_eq!(unknown["error"]["details"][0]["reason"], json!("TASK_NOT_FOUND"));
    assert_eq!(ask("GET", format!("{base}/nowhere"), None).await, (404, Value::Null));
    assert_eq!(ask("PUT", format!("{base}/tasks"), None).await.0, 405);
    assert_eq!(ask("GET", format!("{base}/tasks?pageSize=0"), None).await.0, 400);
    let old = http().get(format!("{base}/tasks")).header("a2a-version", "0.3").send().await.unwrap();
    assert_eq!(old.status(), 400);
    let broken = http().post(format!("{base}/message:send")).body("{").send().await.unwrap();
    assert_eq!(broken.status(), 400);
}

#[tokio::test]
async fn an_answer_has_the_type_that_was_asked_for_and_a_body_of_another_type_is_refused() {
    let agent = agent().await;
    let base = format!("{}/rest", agent.base_url());
    for accept in ["application/a2a+json", "application/json"] {
        for path in ["tasks", "tasks/nobody"] {
            let request = http().get(format!("{base}/{path}")).header("accept", accept);
            let answer = request.send().await.unwrap();
            assert_eq!(answer.headers()["content-type"], accept, "{path}");
        }
    }
    let body = send("steps=0", true).to_string();
    let request = http().post(format!("{base}/message:send")).header("content-type", "text/plain").body(body);
    let refused = request.send().await.unwrap();
    assert_eq!(refused.status(), 415);
    let refusal: Value = serde_json::from_str(&refused.text().await.unwrap()).unwrap();
    let fault = RemoteError::from_body(&refusal, Some(415));
    assert_eq!(fault.kind(), FaultKind::ContentTypeNotSupported);
    assert_eq!(agent.counters().all_sends(), 0);
}
