//! Event streams: order, ends, cuts, and coming back.

use std::time::{Duration, Instant};

use serde_json::json;
use taskbell_core::dialect::Dialect;
use taskbell_core::fault::FaultKind;
use taskbell_core::state::TaskState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Client, Frame, LIMIT, Method, Stream, agent, wait_until};

const BOTH: [Dialect; 2] = [Dialect::V03, Dialect::V1];

fn finished(dialect: Dialect, state: &str) -> String {
    match dialect {
        Dialect::V03 => format!("{state} final"),
        Dialect::V1 => state.to_owned(),
    }
}

#[tokio::test]
async fn a_stream_starts_with_the_task_and_ends_with_its_terminal_state() {
    let agent = agent().await;
    for dialect in BOTH {
        let client = Client::of(&agent, dialect);
        let mut stream = client.stream("steps=2 interval=0.01 chunks=2 body=x", None).await;
        let expected = [
            "task submitted",
            "working",
            "working",
            "artifact x",
            "artifact x",
            &finished(dialect, "completed"),
            "end",
        ];
        assert_eq!(stream.words().await, expected, "{dialect}");
    }
    wait_until("no stream is open", || agent.counters().open_streams() == 0).await;
}

#[tokio::test]
async fn a_sends_stream_ends_at_a_question_and_a_subscription_goes_on_across_it() {
    let agent = agent().await;
    for dialect in BOTH {
        let client = Client::of(&agent, dialect);
        let mut stream = client.stream("steps=2 interval=0.05 ask=1 artifact=no", None).await;
        let task = stream.task().await;
        let mut subscription = client.subscribe(&task).await;
        let question = finished(dialect, "input-required");
        assert_eq!(stream.words().await, ["working", &question, "end"], "{dialect}");
        let mut answer = client.stream("go on", Some(task.id.as_str())).await;
        let done = finished(dialect, "completed");
        assert_eq!(answer.words().await, ["task input-required", "working", "working", &done, "end"]);
        assert_eq!(
            subscription.words().await,
            ["task submitted", "working", "input-required", "working", "working", &done, "end"],
            "a question is not final to those who stay"
        );
    }
}

#[tokio::test]
async fn final_can_be_kept_false_at_a_question() {
    let agent = agent().await;
    let client = Client::of(&agent, Dialect::V03);
    let mut stream = client.stream("steps=1 interval=0 ask=1 final=no", None).await;
    assert_eq!(stream.words().await, ["task submitted", "working", "input-required", "end"]);
}

#[tokio::test]
async fn a_stream_stays_open_while_authorization_comes_by_itself() {
    let agent = agent().await;
    for dialect in BOTH {
        let client = Client::of(&agent, dialect);
        let mut stream = client.stream("steps=1 interval=0 auth=1 authwait=0.05 artifact=no", None).await;
        let done = finished(dialect, "completed");
        assert_eq!(
            stream.words().await,
            ["task submitted", "working", "auth-required", "working", &done, "end"]
        );
    }
}

#[tokio::test]
async fn a_finished_task_is_reported_and_closed_in_0_3_and_refused_in_1_0() {
    let agent = agent().await;
    let old = Client::of(&agent, Dialect::V03);
    let task = old.send_blocking("steps=0").await;
    assert_eq!(old.subscribe(&task).await.words().await, ["task completed", "end"]);
    let new = Client::of(&agent, Dialect::V1);
    let refused = new.call(Method::Subscribe, json!({"id": task.id})).await.unwrap_err();
    assert_eq!((refused.kind(), refused.code), (FaultKind::TaskTerminal, Some(-32004)));
    for client in [old, new] {
        let unknown = client.call(Method::Subscribe, json!({"id": "nobody"})).await.unwrap_err();
        assert_eq!(unknown.kind(), FaultKind::TaskNotFound);
    }
    assert_eq!(agent.counters().subscribes(), 4);
}

#[tokio::test]
async fn a_refused_stream_is_an_event_to_old_clients_that_take_events() {
    let agent = agent().await;
    for (method, dialect, carrier) in [
        ("tasks/resubscribe", Dialect::V03, "text/event-stream"),
        ("SubscribeToTask", Dialect::V1, "application/json"),
    ] {
        let client = Client::of(&agent, dialect);
        let request = taskbell_core::jsonrpc::request(7, method, &json!({"id": "nobody"}));
        let answer = client
            .http
            .post(&client.url)
            .header("content-type", "application/json")
            .header("accept", "text/event-stream")
            .body(request.to_string());
        let answer = answer.send().await.unwrap();
        assert_eq!(answer.headers()["content-type"], carrier);
        if dialect == Dialect::V03 {
            assert_eq!(Stream::new(answer, Some(dialect)).words().await, ["error -32001", "end"]);
        }
    }
}

#[tokio::test]
async fn a_cut_breaks_every_stream_once_and_the_task_goes_on() {
    let agent = agent().await;
    for dialect in BOTH {
        let client = Client::of(&agent, dialect);
        let mut stream = client.stream("steps=4 interval=0.1 cut=2 artifact=no", None).await;
        let task = stream.task().await;
        let mut other = client.subscribe(&task).await;
        assert_eq!(stream.words().await, ["working", "working", "broken"], "{dialect}");
        assert_eq!(other.words().await.last().map(String::as_str), Some("broken"));
        let words = client.subscribe(&task).await.words().await;
        assert_eq!(words.last().map(String::as_str), Some("end"), "{words:?}");
        assert!(words.contains(&finished(dialect, "completed")), "{words:?}");
        assert_eq!(client.get(&task).await.status.state, TaskState::Completed);
    }
}

#[tokio::test]
async fn a_crash_is_an_error_frame_and_a_failed_task() {
    let agent = agent().await;
    for dialect in BOTH {
        let client = Client::of(&agent, dialect);
        let mut stream = client.stream("steps=1 interval=0 fail=raise", None).await;
        let task = stream.task().await;
        assert_eq!(stream.words().await, ["working", "error -32603", "end"]);
        assert_eq!(client.get(&task).await.status.state, TaskState::Failed);
    }
}

#[tokio::test]
async fn a_cancel_ends_the_streams_of_the_task() {
    let agent = agent().await;
    for dialect in BOTH {
        let client = Client::of(&agent, dialect);
        let mut stream = client.stream("steps=1000 interval=10", None).await;
        let task = stream.task().await;
        client.call(Method::Cancel, json!({"id": task.id})).await.unwrap();
        assert_eq!(stream.words().await, [finished(dialect, "canceled").as_str(), "end"]);
    }
}

#[tokio::test]
async fn a_stream_may_be_one_message_or_start_without_the_task() {
    let agent = agent().await;
    for dialect in BOTH {
        let client = Client::of(&agent, dialect);
        assert_eq!(client.stream("reply=message say=hi", None).await.words().await, ["message hi", "end"]);
        let words = client.stream("steps=1 interval=0.01 first=status artifact=no", None).await.words().await;
        assert_eq!(words, ["working", &finished(dialect, "completed"), "end"]);
    }
}

#[tokio::test]
async fn a_client_that_leaves_is_forgotten_and_the_task_goes_on() {
    let agent = agent().await;
    let client = Client::of(&agent, Dialect::V1);
    let mut stream = client.stream("steps=20 interval=0.02", None).await;
    let task = stream.task().await;
    assert_eq!(agent.counters().open_streams(), 1);
    drop(stream);
    wait_until("the stream is gone", || agent.counters().open_streams() == 0).await;
    client.wait_for(&task, TaskState::Completed).await;
}

#[tokio::test]
async fn a_reader_that_never_reads_is_cut_and_holds_nothing_up() {
    let agent = agent().await;
    let client = Client::of(&agent, Dialect::V1);
    let started = Instant::now();
    let read = async |client: &Client, params| {
        let result = client.call(Method::Get, params).await.unwrap();
        taskbell_core::dialect::read::task(result).unwrap().status.state
    };
    // 600 steps of 64 KiB: far more than sockets and queues hold.
    let params = client.send_params("steps=600 interval=0 pad=65536 artifact=no", None);
    let body = taskbell_core::jsonrpc::request(7, "SendStreamingMessage", &params).to_string();
    let mut socket = tokio::net::TcpStream::connect(agent.local_addr()).await.unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(body.as_bytes()).await.unwrap();
    let mut beginning = [0u8; 15];
    socket.read_exact(&mut beginning).await.unwrap();
    assert_eq!(&beginning, b"HTTP/1.1 200 OK");
    let text = client.post("ListTasks", &json!({})).await.text().await.unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let page = taskbell_core::dialect::read::task_page(document["result"].clone()).unwrap();
    // Without its history: that is large, and this reads often.
    while read(&client, json!({"id": page.tasks[0].id, "historyLength": 0})).await != TaskState::Completed {
        assert!(started.elapsed() < LIMIT, "the task is held up");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Now it reads: what was under way, then a break instead of the proper end of a chunked body.
    let mut rest = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), socket.read_to_end(&mut rest)).await.unwrap();
    assert!(read.is_err() || !rest.ends_with(b"0\r\n\r\n"), "the stream must not look whole");
    assert!(rest.len() < 600 * 65536, "{} octets were kept for it", rest.len());
}

#[tokio::test]
async fn line_separators_within_a_text_do_not_break_an_event() {
    let agent = agent().await;
    let client = Client::of(&agent, Dialect::V1);
    let mut stream = client.stream("steps=0 chunks=1 body=a%E2%80%A8b%E2%80%A9c%C2%85d%0Ae", None).await;
    stream.task().await;
    let Frame::Event(event, _) = stream.next().await else { panic!("the artifact") };
    let taskbell_core::task::StreamEvent::Artifact(update) = *event else { panic!("the artifact") };
    assert_eq!(update.artifact.text(), "a\u{2028}b\u{2029}c\u{85}d\ne");
}

#[tokio::test]
async fn ten_thousand_tasks_run_at_once() {
    let agent = agent().await;
    let client = Client::of(&agent, Dialect::V1);
    let mut sends = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let client = client.clone();
        sends.spawn(async move {
            for _ in 0..200 {
                client.send("steps=1 interval=3600").await;
            }
        });
    }
    while let Some(sent) = sends.join_next().await {
        sent.unwrap();
    }
    let text = client.post("ListTasks", &json!({"pageSize": 1})).await.text().await.unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["result"]["totalSize"], json!(10_000));
    let started = Instant::now();
    agent.stop().await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(5));
}
