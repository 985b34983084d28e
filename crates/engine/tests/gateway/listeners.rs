//! Many who listen to one task: one stream from its agent, and nobody waits for anybody else.

use std::time::{Duration, Instant};

use serde_json::json;
use taskbell_core::dialect::Dialect;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{BOTH, LIMIT, Next, Words, World};

#[tokio::test]
async fn two_hundred_clients_of_one_task_are_one_stream_at_its_agent() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let words = Words(Dialect::V1);
    let params = json!({"message": words.message("steps=20 interval=0.1 chunks=3")});
    let mut first = client.stream("SendStreamingMessage", params, None).await;
    let task = words.task(&first.event().await.result())["id"].as_str().unwrap().to_owned();
    let mut listeners = Vec::new();
    for index in 0..200 {
        let (client, task) = (client.clone(), task.clone());
        listeners.push(tokio::spawn(async move {
            let mut events = client.subscribe(BOTH[index % 2], &task, None).await;
            assert_eq!(events.event().await.kind(), "task");
            events.rest().await
        }));
    }
    for listener in listeners {
        let heard = listener.await.unwrap();
        assert!(heard.last().unwrap().state().unwrap().to_lowercase().ends_with("completed"));
    }
    assert!(first.rest().await.last().is_some());
    let counters = world.agent().counters();
    assert_eq!((counters.streams(), counters.all_sends()), (1, 1), "streams opened, messages sent");
}

#[tokio::test]
async fn a_client_that_goes_closes_nothing() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for words in BOTH {
        let method = words.method("message/stream", "SendStreamingMessage");
        let params = json!({"message": words.message("steps=5 interval=0.1")});
        let mut events = client.stream(method, params, None).await;
        let task = words.task(&events.event().await.result())["id"].as_str().unwrap().to_owned();
        drop(events);
        let heard = client.subscribe(words, &task, None).await.rest().await;
        assert_eq!(heard.last().unwrap().state(), Some(words.state("completed")));
        // Also one that waits for its answer, and does not get it.
        let send = words.method("message/send", "SendMessage");
        let body = json!({"jsonrpc":"2.0","id":1,"method":send,"params":{"message": words.message("steps=5 interval=0.1")}});
        let answer = tokio::time::timeout(Duration::from_millis(200), client.post().json(&body).send());
        assert!(answer.await.is_err(), "it blocks for half a second");
        let listed = loop {
            let page = client.call("ListTasks", json!({"pageSize": 1})).await;
            if page["tasks"][0]["status"]["state"] == json!("TASK_STATE_COMPLETED")
                && page["tasks"][0]["id"] != json!(task)
            {
                break page;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert_eq!(listed["totalSize"].as_u64().unwrap() % 2, 0);
    }
    assert_eq!(world.agent().counters().all_sends(), 4, "each message once");
}

/// Subscribes by hand, and reads no octet of the answer.
async fn one_that_never_reads(world: &World, key: &str, task: &str) -> TcpStream {
    let address = world.address().trim_start_matches("http://").to_owned();
    let body = json!({"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{"id":task}}).to_string();
    let mut socket = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST /agents/demo/ HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}

#[tokio::test]
async fn one_that_never_reads_delays_nobody_and_is_cut() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let words = Words(Dialect::V1);
    // Far more than sockets and queues hold: 400 events of 50 kB.
    let params = json!({"message": words.message("steps=400 interval=0.005 pad=50000 artifact=no")});
    let mut events = client.stream("SendStreamingMessage", params, None).await;
    let task = words.task(&events.event().await.result())["id"].as_str().unwrap().to_owned();
    let stuck = one_that_never_reads(&world, &client.key, &task).await;
    let began = Instant::now();
    let heard = events.rest().await;
    assert_eq!(heard.last().unwrap().state().as_deref(), Some("TASK_STATE_COMPLETED"));
    assert!(began.elapsed() < LIMIT, "nobody waited for the one that does not read");
    // What it reads in the end is broken off in the middle: it was cut, and knows.
    let mut stuck = stuck;
    let mut octets = Vec::new();
    let read = tokio::time::timeout(LIMIT, stuck.read_to_end(&mut octets)).await.unwrap();
    let text = String::from_utf8_lossy(&octets);
    assert!(read.is_err() || !text.ends_with("0\r\n\r\n"), "its body did not end well");
    assert!(octets.len() < 15_000_000 && !text.contains("TASK_STATE_COMPLETED"), "{} octets", octets.len());
}

#[tokio::test]
async fn a_revoked_client_hears_no_more() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let words = Words(Dialect::V1);
    let task = client.start(words, "steps=1000 interval=0.1").await;
    let mut events = client.subscribe(words, &task, None).await;
    events.event().await;
    let name = taskbell_core::ids::ClientName::new("editor").unwrap();
    world.engine().engine().gateway().clients().revoke(&name).await.unwrap();
    while let Next::Event(_) = events.next().await {}
    let answer = client.post().json(&json!({})).send().await.unwrap();
    assert_eq!(answer.status(), 401);
}

#[tokio::test]
async fn a_task_that_is_polled_is_a_stream_all_the_same() {
    let world = World::new().await;
    world.set("follow.poll_max", "1").await;
    let client = world.client("editor").await;
    let name = crate::support::agent_name();
    let agent = world.engine().engine().parts().agents().by_name(&name).unwrap();
    agent.client().note_quirk(|quirks| quirks.streaming_refused = true);
    for words in BOTH {
        let method = words.method("message/stream", "SendStreamingMessage");
        let params = json!({"message": words.message("steps=4 interval=0.4 chunks=2")});
        let heard = client.stream(method, params, None).await.rest().await;
        assert_eq!(heard[0].kind(), "task");
        assert_eq!(heard.last().unwrap().state(), Some(words.state("completed")));
        assert_eq!(crate::support::artifact_text(&heard), "chunk 1/2;chunk 2/2;");
        let working = heard.iter().filter(|event| event.state() == Some(words.state("working"))).count();
        assert!(working > 0, "{heard:?}");
    }
    assert_eq!(world.agent().counters().streams(), 0);
}
