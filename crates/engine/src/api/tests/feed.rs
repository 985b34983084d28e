use std::time::Duration;

use taskbell_core::credential::Origin;
use taskbell_core::ids::{AgentName, TaskRef};

use super::Served;
use crate::api_client::{ApiClient, ChangeFeed, FeedEvent};
use crate::store::changes::{self, NewChange};
use crate::store::{AgentKey, Store, agents};

async fn record(store: &Store, agent: Option<AgentKey>, kind: &str, body: &str) -> u64 {
    let (kind, body) = (kind.to_owned(), body.to_owned());
    store
        .write(move |context| {
            let change = NewChange { agent, task: None, source: "poll", kind: &kind, body_json: &body };
            changes::record_change(context, &change)
        })
        .await
        .unwrap()
}

async fn add_agent(store: &Store) -> AgentKey {
    store
        .write(|context| {
            let name = AgentName::new("demo").unwrap();
            let origin: Origin = "http://127.0.0.1:9".parse().unwrap();
            let agent = agents::NewAgent {
                name: &name,
                registered_url: "http://127.0.0.1:9/",
                origin: &origin,
                use_card_url: false,
                allow_http: false,
            };
            agents::insert(context, &agent)
        })
        .await
        .unwrap()
}

async fn next(feed: &mut ChangeFeed) -> FeedEvent {
    tokio::time::timeout(Duration::from_secs(10), feed.next()).await.expect("an event in time").unwrap()
}

async fn next_seq(feed: &mut ChangeFeed) -> u64 {
    match next(feed).await {
        FeedEvent::Change(change) => change.seq,
        FeedEvent::Reset => panic!("a reset where a change was due"),
    }
}

#[tokio::test]
async fn changes_arrive_with_their_names_and_members() {
    let served = Served::start().await;
    let agent = add_agent(&served.store).await;
    let client = ApiClient::connect(&served.dir()).await.unwrap();
    let mut feed = client.changes(None, None);
    feed.open().await.unwrap();
    let seq = record(&served.store, Some(agent), "agent", r#"{"link":"down","text":"a\nb"}"#).await;
    let FeedEvent::Change(change) = next(&mut feed).await else { panic!("a change was due") };
    assert_eq!((change.seq, change.kind.as_str(), change.source.as_str()), (seq, "agent", "poll"));
    assert_eq!(change.agent.unwrap().as_str(), "demo");
    assert_eq!((change.body["link"].as_str(), change.body["text"].as_str()), (Some("down"), Some("a\nb")));
}

#[tokio::test]
async fn a_reader_catches_up_from_its_number_and_then_follows() {
    let served = Served::start().await;
    let mut seqs = Vec::new();
    for n in 0..1_000 {
        seqs.push(record(&served.store, None, "notice", &format!(r#"{{"n":{n}}}"#)).await);
    }
    let client = ApiClient::connect(&served.dir()).await.unwrap();
    let mut feed = client.changes(Some(seqs[9]), None);
    for seq in &seqs[10..] {
        assert_eq!(next_seq(&mut feed).await, *seq, "none missed, none twice, in order");
    }
    let live = record(&served.store, None, "notice", "{}").await;
    assert_eq!(next_seq(&mut feed).await, live);
}

#[tokio::test]
async fn last_event_id_beats_the_query_that_a_reconnecting_page_repeats() {
    let served = Served::start().await;
    let first = record(&served.store, None, "notice", "{}").await;
    let second = record(&served.store, None, "notice", "{}").await;
    let mut answer =
        open_by_hand(&served, &format!("/api/v1/changes?after={}", first - 1), Some(first)).await;
    let text = read_until(&mut answer, "data: ").await;
    assert!(text.contains(&format!("id: {second}\ndata: ")), "{text}");
    assert!(!text.contains(&format!("id: {first}\ndata: ")), "{text}");
    assert!(text.contains("content-type: text/event-stream"), "{text}");
}

#[tokio::test]
async fn a_number_that_is_not_kept_or_not_ours_is_answered_with_a_reset() {
    let served = Served::start().await;
    for _ in 0..10 {
        record(&served.store, None, "notice", "{}").await;
    }
    served.store.write(|context| changes::prune(context, i64::MAX, 6)).await.unwrap();
    let client = ApiClient::connect(&served.dir()).await.unwrap();
    let mut feed = client.changes(Some(2), None);
    assert_eq!(next(&mut feed).await, FeedEvent::Reset);
    assert_eq!(next_seq(&mut feed).await, 7, "what is kept follows");
    let mut whole = client.changes(Some(6), None);
    assert_eq!(next_seq(&mut whole).await, 7, "nothing is missing between 6 and 7");
    let mut future = client.changes(Some(5_000), None);
    assert_eq!(next(&mut future).await, FeedEvent::Reset);
    let live = record(&served.store, None, "notice", "{}").await;
    assert_eq!(next_seq(&mut future).await, live);
}

#[tokio::test]
async fn a_reader_that_saw_nothing_yet_misses_nothing_over_a_restart() {
    let mut served = Served::start().await;
    record(&served.store, None, "notice", "{}").await;
    let client = ApiClient::connect(&served.dir()).await.unwrap();
    let mut feed = client.changes(None, None);
    feed.open().await.unwrap();
    assert_eq!(feed.position(), Some(1), "the first block tells where the feed stands");
    served.restart().await;
    let missed = record(&served.store, None, "notice", "{}").await;
    assert_eq!(next_seq(&mut feed).await, missed);
    served.restart().await;
    let missed = record(&served.store, None, "notice", "{}").await;
    assert_eq!(next_seq(&mut feed).await, missed, "on another port, with the number it had");
}

#[tokio::test]
async fn a_feed_of_nobodys_task_is_refused_at_once() {
    let served = Served::start().await;
    let client = ApiClient::connect(&served.dir()).await.unwrap();
    let task: TaskRef = "demo/none".parse().unwrap();
    let error = client.changes(None, Some(task)).next().await.unwrap_err();
    assert_eq!((error.code.as_str(), error.status), ("unknown_agent", Some(404)));
    let answer = served.call("GET /api/v1/changes?after=x", "").await;
    assert_eq!(answer.code(), "bad_request");
}

#[tokio::test]
async fn a_reader_that_never_reads_holds_a_page_and_nobody_up() {
    let served = Served::start().await;
    let mut lazy = open_by_hand(&served, "/api/v1/changes?after=0", None).await;
    let body = format!(r#"{{"text":"{}"}}"#, "x".repeat(100_000));
    for _ in 0..200 {
        record(&served.store, None, "artifact", &body).await;
    }
    // 20 MB wait for it, and an eager reader gets its change meanwhile.
    let client = ApiClient::connect(&served.dir()).await.unwrap();
    let mut eager = client.changes(Some(199), None);
    assert_eq!(next_seq(&mut eager).await, 200);
    let text = read_until(&mut lazy, "id: 200\ndata").await;
    assert_eq!(text.matches("\ndata: ").count(), 200, "it is behind, it has lost nothing");
}

async fn open_by_hand(served: &Served, path: &str, last: Option<u64>) -> tokio::net::TcpStream {
    use tokio::io::AsyncWriteExt as _;
    let mut socket = tokio::net::TcpStream::connect(served.address).await.unwrap();
    let last = last.map(|last| format!("Last-Event-ID: {last}\r\n")).unwrap_or_default();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{last}\r\n",
        served.address,
        super::TOKEN
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    socket
}

async fn read_until(socket: &mut tokio::net::TcpStream, mark: &str) -> String {
    use tokio::io::AsyncReadExt as _;
    let mut octets = Vec::new();
    let mut buffer = vec![0; 1 << 20];
    let reading = async {
        while !String::from_utf8_lossy(&octets).contains(mark) {
            let length = socket.read(&mut buffer).await.unwrap();
            assert_ne!(length, 0, "the feed ended");
            octets.extend_from_slice(&buffer[..length]);
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading).await.expect("the mark in time");
    String::from_utf8_lossy(&octets).into_owned()
}
