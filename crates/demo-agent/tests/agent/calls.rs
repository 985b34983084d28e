//! JSON-RPC calls in both dialects, and what is refused.

use serde_json::{Value, json};
use taskbell_core::dialect::{Dialect, read};
use taskbell_core::fault::FaultKind;
use taskbell_core::state::TaskState;
use taskbell_core::task::PartContent;
use taskbell_demo_agent::{Options, Presets, start};

use crate::support::{Client, Method, agent, http};

const BOTH: [Dialect; 2] = [Dialect::V03, Dialect::V1];

#[tokio::test]
async fn a_blocking_send_returns_the_finished_task_with_its_artifact_in_both_dialects() {
    let agent = agent().await;
    for dialect in BOTH {
        let client = Client::of(&agent, dialect);
        let task = client.send_blocking("steps=2 interval=0 chunks=2 body=a%20b").await;
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(task.artifacts[0].text(), "a ba b");
        // The script, two steps; the last status is not history yet.
        assert_eq!(task.history.len(), 3);
        assert!(task.context_id.is_some());
        let stamp = task.status.timestamp.unwrap();
        assert!(stamp.ends_with('Z') && stamp.len() == "2026-01-05T10:00:05.000Z".len(), "{stamp}");
    }
}

#[tokio::test]
async fn a_non_blocking_send_returns_at_once_and_the_task_goes_on() {
    let agent = agent().await;
    for dialect in BOTH {
        let client = Client::of(&agent, dialect);
        let task = client.send("steps=2 interval=0.05").await;
        assert!(!task.status.state.is_terminal());
        client.wait_for(&task, TaskState::Completed).await;
    }
}

#[tokio::test]
async fn every_kind_of_part_is_written_in_each_dialect() {
    let agent = agent().await;
    for dialect in BOTH {
        let client = Client::of(&agent, dialect);
        for (kind, content) in [
            ("text", PartContent::Text("chunk 1/1;".into())),
            ("file", PartContent::Raw("ZmlsZSAxLzE=".into())),
            ("url", PartContent::Url("https://example.com/output.txt".into())),
            ("data", PartContent::Data(json!({"key":"value","chunk":1,"of":1}))),
        ] {
            let task = client.send_blocking(&format!("steps=0 chunks=1 kind={kind}")).await;
            assert_eq!(task.artifacts[0].parts[0].content, content, "{kind} in {dialect}");
        }
    }
}

#[tokio::test]
async fn a_plain_reply_is_a_message_and_no_task() {
    let agent = agent().await;
    for dialect in BOTH {
        let client = Client::of(&agent, dialect);
        let params = client.send_params("reply=message say=hello%20there", None);
        let result = client.call(Method::Send, params).await.unwrap();
        let Ok(taskbell_core::task::SendAnswer::Message(message)) = read::send_answer(result) else {
            panic!("a message in {dialect}")
        };
        assert_eq!(message.text(), "hello there");
    }
}

#[tokio::test]
async fn a_question_is_answered_by_a_message_with_the_tasks_id() {
    let agent = agent().await;
    for dialect in BOTH {
        let client = Client::of(&agent, dialect);
        let task = client.send_blocking("steps=2 interval=0 ask=1").await;
        assert_eq!(task.status.state, TaskState::InputRequired);
        let answered = client.reply(&task, "go on").await.unwrap();
        assert_eq!(answered.id, task.id);
        let done = client.wait_for(&task, TaskState::Completed).await;
        let texts: Vec<String> = done.history.iter().map(|message| message.text()).collect();
        let place = texts.iter().position(|text| text == "go on").unwrap();
        assert_eq!(texts[place - 1], "need input: continue?");
        assert_eq!(texts[place + 1], "resumed with: go on");
    }
}

#[tokio::test]
async fn a_wait_for_authorization_ends_by_itself_or_by_a_message() {
    let agent = agent().await;
    let client = Client::of(&agent, Dialect::V1);
    let by_itself = client.send_blocking("steps=1 interval=0 auth=1 authwait=0.2").await;
    assert_eq!(by_itself.status.state, TaskState::AuthRequired, "a blocking send does not wait for it");
    client.wait_for(&by_itself, TaskState::Completed).await;
    for wait in ["0", "3600"] {
        let by_message = client.send_blocking(&format!("steps=1 interval=0 auth=1 authwait={wait}")).await;
        assert_eq!(by_message.status.state, TaskState::AuthRequired);
        client.reply(&by_message, "granted").await.unwrap();
        client.wait_for(&by_message, TaskState::Completed).await;
    }
}

#[tokio::test]
async fn tasks_end_failed_rejected_and_crashed() {
    let agent = agent().await;
    let client = Client::of(&agent, Dialect::V03);
    for (script, state) in [
        ("steps=1 interval=0 fail=yes", TaskState::Failed),
        ("steps=1 interval=0 fail=raise", TaskState::Failed),
        ("reject=yes", TaskState::Rejected),
    ] {
        assert_eq!(client.send_blocking(script).await.status.state, state, "{script}");
    }
}

#[tokio::test]
async fn a_canceled_task_stays_canceled_and_cannot_be_canceled_again() {
    let agent = agent().await;
    for dialect in BOTH {
        let client = Client::of(&agent, dialect);
        let task = client.send("steps=1000 interval=0.01").await;
        let canceled = client.call(Method::Cancel, json!({"id": task.id})).await.unwrap();
        assert_eq!(read::task(canceled).unwrap().status.state, TaskState::Canceled);
        let again = client.call(Method::Cancel, json!({"id": task.id})).await.unwrap_err();
        assert_eq!((again.kind(), again.code), (FaultKind::TaskNotCancelable, Some(-32002)));
        let stubborn = client.send("steps=1000 interval=0.01 nocancel=yes").await;
        let refused = client.call(Method::Cancel, json!({"id": stubborn.id})).await.unwrap_err();
        assert_eq!(refused.kind(), FaultKind::TaskNotCancelable);
        assert_eq!(client.get(&task).await.status.state, TaskState::Canceled);
    }
}

#[tokio::test]
async fn a_message_is_noted_while_a_task_works_and_refused_when_it_is_over() {
    let agent = agent().await;
    for dialect in BOTH {
        let client = Client::of(&agent, dialect);
        let task = client.send("steps=1000 interval=0.01").await;
        client.reply(&task, "by the way").await.unwrap();
        let read = client.get(&task).await;
        assert!(read.history.iter().any(|message| message.text() == "by the way"));
        let mut params = client.send_params("x", Some(task.id.as_str()));
        params["message"]["contextId"] = json!("another");
        let refused = client.call(Method::Send, params).await.unwrap_err();
        assert_eq!(refused.code, Some(-32602));
        client.call(Method::Cancel, json!({"id": task.id})).await.unwrap();
        let refused = client.reply(&task, "too late").await.unwrap_err();
        assert_eq!((refused.kind(), refused.code), (FaultKind::TaskTerminal, Some(-32004)));
    }
}

#[tokio::test]
async fn history_is_cut_to_the_length_asked_for() {
    let agent = agent().await;
    let client = Client::of(&agent, Dialect::V1);
    let task = client.send_blocking("steps=5 interval=0").await;
    for (length, expected) in [(json!(0), 0), (json!(2), 2), (Value::Null, 6), (json!(100), 6)] {
        let params = json!({"id": task.id, "historyLength": length});
        let read = read::task(client.call(Method::Get, params).await.unwrap()).unwrap();
        assert_eq!(read.history.len(), expected, "{length}");
    }
}

#[tokio::test]
async fn tasks_are_listed_newest_first_page_by_page_with_filters() {
    let agent = agent().await;
    let client = Client::of(&agent, Dialect::V1);
    let mut newest_first = Vec::new();
    for _ in 0..5 {
        newest_first.insert(0, client.send_blocking("steps=0").await.id);
    }
    let waiting = client.send_blocking("steps=1 interval=0 ask=1").await;
    newest_first.insert(0, waiting.id.clone());
    let list = async |params: Value| {
        let answer = client.post("ListTasks", &params).await.text().await.unwrap();
        let document: Value = serde_json::from_str(&answer).unwrap();
        document["result"].clone()
    };
    let mut seen = Vec::new();
    let mut token = String::new();
    loop {
        let result = list(json!({"pageSize": 4, "pageToken": token})).await;
        assert_eq!((&result["totalSize"], &result["pageSize"]), (&json!(6), &json!(4)));
        let page = read::task_page(result).unwrap();
        assert!(page.tasks.iter().all(|task| task.artifacts.is_empty() && task.history.is_empty()));
        seen.extend(page.tasks.into_iter().map(|task| task.id));
        match page.next_page_token {
            Some(next) => token = next,
            None => break,
        }
    }
    assert_eq!(seen, newest_first);
    let open = list(json!({"status": "TASK_STATE_INPUT_REQUIRED"})).await;
    assert_eq!(read::task_page(open).unwrap().tasks.len(), 1);
    let of_context = list(json!({"contextId": waiting.context_id})).await;
    assert_eq!(read::task_page(of_context).unwrap().tasks[0].id, waiting.id);
    let whole = list(json!({"includeArtifacts": true, "historyLength": 1})).await;
    let done = read::task_page(whole).unwrap().tasks.into_iter().find(|task| task.id != waiting.id).unwrap();
    assert_eq!((done.artifacts.len(), done.history.len()), (1, 1));
    let late = list(json!({"statusTimestampAfter": "2999-01-01T00:00:00Z"})).await;
    assert_eq!(late["totalSize"], json!(0));
}

#[tokio::test]
async fn what_is_no_request_is_refused_with_its_code() {
    let agent = agent().await;
    let url = format!("{}/", agent.base_url());
    let ask = async |body: &str, version: Option<&str>| {
        let mut request = http().post(&url).header("content-type", "application/json").body(body.to_owned());
        if let Some(version) = version {
            request = request.header("a2a-version", version);
        }
        let text = request.send().await.unwrap().text().await.unwrap();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let get =
        |method: &str| format!(r#"{{"jsonrpc":"2.0","id":"x","method":"{method}","params":{{"id":"t"}}}}"#);
    for (body, version, code, id) in [
        ("{".to_owned(), None, -32700, Value::Null),
        (format!("[{}]", get("GetTask")), None, -32600, Value::Null),
        (get("GetTask").replace("\"x\"", "1.5"), None, -32600, Value::Null),
        (get("GetTask").replace("\"x\"", "{}"), None, -32600, Value::Null),
        (get("GetTask").replace("2.0", "1.0"), None, -32600, json!("x")),
        (get("tasks/list"), None, -32601, json!("x")),
        (get("GetTask").replace("{\"id\":\"t\"}", "{}"), None, -32602, json!("x")),
        (get("GetTask"), None, -32001, json!("x")),
        (get("GetTask"), Some("1.0"), -32001, json!("x")),
        (get("tasks/get"), Some("0.3"), -32001, json!("x")),
        (get("GetTask"), Some("0.3"), -32009, json!("x")),
        (get("tasks/get"), Some("1.0"), -32009, json!("x")),
        (get("GetTask"), Some("1.0.1"), -32009, json!("x")),
        (get("GetTask"), Some("2.0"), -32009, json!("x")),
        (get("GetExtendedAgentCard"), None, -32004, json!("x")),
        (get("agent/getAuthenticatedExtendedCard"), None, -32007, json!("x")),
    ] {
        let answer = ask(&body, version).await;
        assert_eq!(
            (&answer["error"]["code"], &answer["id"]),
            (&json!(code), &id),
            "{body} {version:?}: {answer}"
        );
    }
    let version = ask(&get("GetTask"), Some("9")).await;
    assert_eq!(version["error"]["data"][0]["metadata"]["supportedVersions"], json!("1.0, 0.3"));
    let in_query = http()
        .post(format!("{url}?A2A-Version=9"))
        .header("content-type", "application/json")
        .body(get("GetTask"));
    let in_query: Value =
        serde_json::from_str(&in_query.send().await.unwrap().text().await.unwrap()).unwrap();
    assert_eq!(in_query["error"]["code"], json!(-32009));
}

#[tokio::test]
async fn bodies_beyond_the_cap_other_media_types_and_foreign_pages_are_refused() {
    let agent = agent().await;
    let url = format!("{}/", agent.base_url());
    let status = async |request: reqwest::RequestBuilder| request.send().await.unwrap().status().as_u16();
    let json = || http().post(&url).header("content-type", "application/json");
    assert_eq!(status(json().body(vec![b' '; (2 << 20) + 1])).await, 413);
    assert_eq!(status(http().post(&url).header("content-type", "text/plain").body("{}")).await, 415);
    assert_eq!(status(json().header("origin", "https://evil.example").body("{}")).await, 403);
    assert_eq!(status(json().header("origin", "null").body("{}")).await, 403);
    assert_eq!(status(json().header("origin", "http://127.0.0.1:1234").body("{}")).await, 200);
    assert_eq!(status(http().get(&url)).await, 405);
    assert_eq!(status(http().get(format!("{url}nowhere"))).await, 404);
}

#[tokio::test]
async fn the_card_is_served_at_both_paths_with_a_tag() {
    let agent = agent().await;
    for path in ["/.well-known/agent-card.json", "/.well-known/agent.json"] {
        let url = format!("{}{path}", agent.base_url());
        let answer = http().get(&url).send().await.unwrap();
        assert_eq!(answer.headers()["vary"], "A2A-Version");
        assert_eq!(answer.headers()["cache-control"], "max-age=60");
        assert!(answer.headers()["last-modified"].to_str().unwrap().ends_with(" GMT"));
        let tag = answer.headers()["etag"].clone();
        let card: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        let interfaces: Vec<(&str, &str)> = card["supportedInterfaces"]
            .as_array()
            .unwrap()
            .iter()
            .map(|known| {
                (known["protocolBinding"].as_str().unwrap(), known["protocolVersion"].as_str().unwrap())
            })
            .collect();
        assert_eq!(interfaces, [("JSONRPC", "1.0"), ("JSONRPC", "0.3"), ("HTTP+JSON", "1.0")]);
        assert_eq!(card["protocolVersion"], json!("0.3.0"));
        assert_eq!(card["url"], json!(format!("{}/", agent.base_url())));
        let again = http().get(&url).header("if-none-match", tag).send().await.unwrap();
        assert_eq!(again.status(), 304);
    }
}

#[tokio::test]
async fn a_held_send_makes_its_task_although_the_client_gave_up() {
    let agent = agent().await;
    let client = Client::of(&agent, Dialect::V1);
    let params = client.send_params("hold=0.3 steps=0", None);
    let impatient =
        reqwest::Client::builder().no_proxy().timeout(std::time::Duration::from_millis(50)).build().unwrap();
    let body = taskbell_core::jsonrpc::request(1, "SendMessage", &params).to_string();
    let given_up =
        impatient.post(&client.url).header("content-type", "application/json").body(body).send().await;
    assert!(given_up.is_err());
    let message_id = params["message"]["messageId"].as_str().unwrap();
    assert_eq!(agent.counters().sends(message_id), 1);
    let started = std::time::Instant::now();
    loop {
        let text = client.post("ListTasks", &json!({})).await.text().await.unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        if document["result"]["totalSize"] == json!(1) {
            break;
        }
        assert!(started.elapsed() < crate::support::LIMIT);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn free_text_gets_an_answer_that_quotes_it() {
    let agent = agent().await;
    let client = Client::of(&agent, Dialect::V1);
    let task = client.send_blocking("tell me about cats").await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert!(task.artifacts[0].text().contains("tell me about cats"));
}

#[tokio::test]
async fn a_message_whose_id_has_a_preset_runs_it_first_and_as_an_answer() {
    let presets = r#"{"asks-": "steps=1 interval=0 ask=1", "ends-": "steps=0 artifact=no say=over"}"#;
    let options = Options { presets: Presets::read(presets).unwrap(), ..Options::default() };
    let agent = start(options).await.unwrap();
    for dialect in BOTH {
        let client = Client::of(&agent, dialect);
        let asked = client.send_blocking_as("asks-1", "words of no meaning", None).await;
        assert_eq!(asked.status.state, TaskState::InputRequired);
        let again = client.send_blocking_as("asks-2", "the same once more", Some(&asked)).await;
        assert_eq!((again.status.state, &again.id), (TaskState::InputRequired, &asked.id));
        let over = client.send_blocking_as("ends-1", "enough", Some(&asked)).await;
        assert_eq!(over.status.state, TaskState::Completed);
        assert_eq!(over.status.message.map(|message| message.text()).as_deref(), Some("over"));
    }
}
