//! Clients that are gone: nothing of them stays, and what they began goes on.

use serde_json::{Value, json};
use taskbell_tests::taskbell::TaskName;
use taskbell_tests::{eventually, raw_http::connect};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::behind::Behind;
use crate::support::{PATIENCE, message};

/// Connections that the system still holds for whoever listens on this port, those that only wait for time aside.
fn connections(port: u16) -> usize {
    const LISTEN: &str = "0A";
    const TIME_WAIT: &str = "06";
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the system's table of connections");
    let ours = format!(":{port:04X}");
    let rows = table.lines().skip(1).filter(|row| {
        let mut columns = row.split_whitespace().skip(1);
        let (local, _, state) = (columns.next(), columns.next(), columns.next());
        local.is_some_and(|local| local.ends_with(&ours))
            && state.is_some_and(|state| ![LISTEN, TIME_WAIT].contains(&state))
    });
    rows.count()
}

/// A stream, and its first event.
async fn open(behind: &Behind, method: &str, params: &Value) -> (BufReader<TcpStream>, Value) {
    let mut stream = BufReader::new(connect(behind.address()).await);
    stream.write_all(&behind.octets(&[], method, params)).await.expect("sent");
    loop {
        let mut line = String::new();
        let read = stream.read_line(&mut line).await.expect("a line");
        assert!(read > 0, "{method}: a stream without an event");
        if let Some(data) = line.strip_prefix("data: ") {
            return (stream, serde_json::from_str(data).expect("JSON"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_clients_that_are_gone_nothing_stays_and_their_task_is_followed_on_its_one_stream() {
    let behind = Behind::start().await;
    let port = behind.address().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let (first, event) = open(&behind, "message/stream", &json!({"message": message()})).await;
    let id = event["result"]["id"].as_str().unwrap_or_else(|| panic!("no task: {event}")).to_owned();
    let mut clients = vec![first];
    for _ in 0..9 {
        clients.push(open(&behind, "tasks/resubscribe", &json!({"id": id})).await.0);
    }
    assert!(connections(port) >= 10, "or this test would see nothing");
    assert_eq!(behind.proxy.open_streams(), 1);
    drop(clients);
    eventually(PATIENCE, "no connection is kept for who is gone", || connections(port) == 0).await;
    assert_eq!(behind.proxy.open_streams(), 1, "the task is followed all the same");
    behind.agent.work(&id, "nobody listens");
    behind.agent.finish(&id, "the result");
    let task = TaskName::new("a", &id);
    behind.taskbell.wait(&task).await.exits(0);
    assert_eq!(behind.taskbell.show(&task).await.text(), "the result");
    assert_eq!(behind.proxy.most_streams(), 1, "one stream from first to last");
}
