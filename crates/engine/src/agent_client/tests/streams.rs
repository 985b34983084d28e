//! Event streams.

use std::sync::atomic::{AtomicUsize, Ordering};

use taskbell_core::fault::FaultKind;
use taskbell_core::sse::SseFault;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::raw::{RawAgent, STREAM_HEAD, answer, chunk, finish, json_answer};
use super::*;
use crate::agent_client::{EndOfStream, StreamItem, SubscribeVerb, Subscription};

fn stream_of(pieces: &[&[u8]]) -> Vec<u8> {
    let mut octets = STREAM_HEAD.to_vec();
    for piece in pieces {
        octets.extend(chunk(piece));
    }
    octets
}

async fn all_of(mut subscription: Subscription) -> Vec<StreamItem> {
    let mut items = Vec::new();
    loop {
        let item = subscription.next().await;
        let over = matches!(item, StreamItem::End(_));
        items.push(item);
        if over {
            return items;
        }
    }
}

fn data(items: &[StreamItem]) -> Vec<&str> {
    let mut found = Vec::new();
    for item in items {
        if let StreamItem::Frame(frame) = item {
            found.push(&*frame.data);
        }
    }
    found
}

#[tokio::test]
async fn frames_comments_and_the_end_are_handed_out_in_order() {
    let mut octets = stream_of(&[b": ping\n\n", b"id: 7\r\ndata: one\r\n\r\ndata: two\n\n", b"data: th"]);
    octets.extend(chunk(b"ree\n\n"));
    octets.extend(b"0\r\n\r\n");
    let agent = RawAgent::always(octets).await;
    let subscription = client(&agent.url).subscribe(&task_id()).await.unwrap();
    assert_eq!(subscription.request_id(), 1);
    let items = all_of(subscription).await;
    assert_eq!(data(&items), ["one", "two", "three"]);
    assert_eq!(items.last(), Some(&StreamItem::End(EndOfStream::Clean)));
    assert_eq!(agent.request(0).header("accept"), Some("text/event-stream, application/json;q=0.9"));
    assert_eq!(agent.request(0).json()["method"], "SubscribeToTask");
}

#[tokio::test]
async fn an_end_within_an_event_and_a_broken_connection_are_told_apart() {
    let mut incomplete = stream_of(&[b"data: one\n\ndata: two\n"]);
    incomplete.extend(b"0\r\n\r\n");
    for (octets, end) in
        [(incomplete, EndOfStream::Incomplete), (stream_of(&[b"data: one\n\n"]), EndOfStream::Reset)]
    {
        let agent = RawAgent::always(octets).await;
        let items = all_of(client(&agent.url).subscribe(&task_id()).await.unwrap()).await;
        assert_eq!(data(&items), ["one"]);
        assert_eq!(items.last(), Some(&StreamItem::End(end)));
    }
}

#[tokio::test]
async fn octets_that_are_no_event_stream_are_named_as_such() {
    for body in [&b"{\"jsonrpc\":\"2.0\"}"[..], b"\x1f\x8b\x08\x00\n\n"] {
        let mut octets = stream_of(&[body]);
        octets.extend(b"0\r\n\r\n");
        let agent = RawAgent::always(octets).await;
        let items = all_of(client(&agent.url).subscribe(&task_id()).await.unwrap()).await;
        assert_eq!(items.last(), Some(&StreamItem::End(EndOfStream::NotEvents)));
    }
}

#[tokio::test]
async fn a_stream_has_no_total_limit() {
    let agent = RawAgent::start(|_, mut socket| async move {
        socket.write_all(STREAM_HEAD).await?;
        for _ in 0..6 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            socket.write_all(&chunk(b"data: x\n\n")).await?;
        }
        finish(&mut socket, b"0\r\n\r\n").await
    })
    .await;
    let limits = Limits {
        unary: Duration::from_millis(200),
        stream_open: Duration::from_millis(200),
        ..Limits::default()
    };
    let client = client_with(&agent.url, limits, Arc::new(FixedCredential(None)));
    let items = all_of(client.subscribe(&task_id()).await.unwrap()).await;
    assert_eq!(data(&items).len(), 6);
    assert_eq!(items.last(), Some(&StreamItem::End(EndOfStream::Clean)));
}

#[tokio::test]
async fn an_endless_line_ends_the_stream_at_the_limit() {
    let agent = RawAgent::start(|_, mut socket| async move {
        socket.write_all(STREAM_HEAD).await?;
        socket.write_all(&chunk(b"data: first\n\ndata: ")).await?;
        loop {
            socket.write_all(&chunk(&[b'x'; 65536])).await?;
        }
    })
    .await;
    let items = all_of(client(&agent.url).subscribe(&task_id()).await.unwrap()).await;
    assert_eq!(data(&items), ["first"]);
    let limit = 16 << 20;
    assert_eq!(items.last(), Some(&StreamItem::End(EndOfStream::Limit(SseFault::LineTooLong { limit }))));
}

#[tokio::test]
async fn an_error_as_plain_json_is_an_error_and_a_result_is_one_snapshot() {
    let agent = RawAgent::start(|received, mut socket| async move {
        let id = received.json()["id"].clone();
        let body = match received.json()["params"]["id"].as_str() {
            Some("t-1") => json!({"jsonrpc":"2.0","id":id,"result":{"task":working()}}),
            _ => json!({"jsonrpc":"2.0","id":id,"error":{"code":-32004,"message":"is in a terminal state"}}),
        };
        finish(&mut socket, &json_answer(&body)).await
    })
    .await;
    let client = client(&agent.url);
    let items = all_of(client.subscribe(&task_id()).await.unwrap()).await;
    let [StreamItem::Frame(frame), StreamItem::End(EndOfStream::Clean)] = items.as_slice() else {
        panic!("{items:?}")
    };
    let document: Value = serde_json::from_str(&frame.data).unwrap();
    assert_eq!(document["result"]["task"], working());
    let error = client.subscribe(&TaskId::new("t-9")).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), Some(FaultKind::TaskTerminal));
    assert!(!client.quirks().streaming_refused, "a finished task says nothing about streaming");
}

#[tokio::test]
async fn a_web_page_instead_of_a_stream_is_not_an_agent() {
    let agent = RawAgent::always(answer("200 OK", "text/html", b"<html>log in</html>")).await;
    let client = client(&agent.url);
    for error in [
        client.subscribe(&task_id()).await.map(drop).unwrap_err(),
        client.send_streaming(&hello()).await.map(drop).unwrap_err(),
    ] {
        assert_eq!(error.code(), "upstream_not_a2a");
    }
    assert_eq!(agent.count(), 2, "nothing is sent twice");
}

#[tokio::test]
async fn an_answer_without_a_head_times_out() {
    let agent = RawAgent::start(|_, socket| async move {
        let _kept_open = socket;
        std::future::pending().await
    })
    .await;
    let error = hasty_client(&agent.url).subscribe(&task_id()).await.map(drop).unwrap_err();
    assert_eq!(error.code(), "agent_timed_out");
}

#[tokio::test]
async fn a_get_only_subscribe_is_found_out_once() {
    for refusal in [
        answer("405 Method Not Allowed", "application/json", br#"{"detail":"Method Not Allowed"}"#),
        answer("404 Not Found", "text/plain", b"404 page not found"),
    ] {
        let agent = RawAgent::start(move |received, mut socket| {
            let refusal = refusal.clone();
            async move {
                match received.line.starts_with("GET ") {
                    true => {
                        finish(&mut socket, &[&stream_of(&[b"data: {}\n\n"])[..], b"0\r\n\r\n"].concat())
                            .await
                    }
                    false => finish(&mut socket, &refusal).await,
                }
            }
        })
        .await;
        let rest = AgentClient::new(
            Http::new(HttpSettings::default()).unwrap(),
            AgentEndpoint { binding: Binding::Rest, ..endpoint(&agent.url) },
            Arc::new(FixedCredential(None)),
        );
        rest.subscribe(&task_id()).await.unwrap();
        assert_eq!(rest.take_quirk_changes().unwrap().subscribe_verb, Some(SubscribeVerb::Get));
        rest.subscribe(&task_id()).await.unwrap();
        let lines: Vec<_> = (0..agent.count()).map(|index| agent.request(index).line).collect();
        assert_eq!(
            lines,
            [
                "POST /a2a/tasks/t-1:subscribe HTTP/1.1",
                "GET /a2a/tasks/t-1:subscribe HTTP/1.1",
                "GET /a2a/tasks/t-1:subscribe HTTP/1.1"
            ]
        );
    }
}

#[tokio::test]
async fn an_unknown_task_over_http_json_is_asked_for_once() {
    let body = br#"{"error":{"code":404,"message":"x","details":[{"reason":"TASK_NOT_FOUND"}]}}"#;
    let agent = RawAgent::always(answer("404 Not Found", "application/json", body)).await;
    let rest = AgentClient::new(
        Http::new(HttpSettings::default()).unwrap(),
        AgentEndpoint { binding: Binding::Rest, ..endpoint(&agent.url) },
        Arc::new(FixedCredential(None)),
    );
    let error = rest.subscribe(&task_id()).await.map(drop).unwrap_err();
    assert_eq!((error.code(), agent.count()), ("task_not_found", 1));
}

/// An agent whose streams stay open, and that counts how many are.
async fn patient_agent() -> (RawAgent, Arc<AtomicUsize>) {
    let open = Arc::new(AtomicUsize::new(0));
    let counter = open.clone();
    let agent = RawAgent::start(move |received, mut socket| {
        let counter = counter.clone();
        async move {
            if received.json()["method"] == "GetTask" {
                return finish(&mut socket, &received.result(working())).await;
            }
            socket.write_all(&stream_of(&[b"data: {}\n\n"])).await?;
            counter.fetch_add(1, Ordering::Relaxed);
            // Ends when the client goes.
            let _ = socket.read(&mut [0; 16]).await;
            counter.fetch_sub(1, Ordering::Relaxed);
            Ok(())
        }
    })
    .await;
    (agent, open)
}

#[tokio::test]
async fn dropping_a_subscription_closes_its_connection_at_once() {
    let (agent, open) = patient_agent().await;
    let mut subscription = client(&agent.url).subscribe(&task_id()).await.unwrap();
    assert!(matches!(subscription.next().await, StreamItem::Frame(_)));
    wait_until(Duration::from_secs(2), || open.load(Ordering::Relaxed) == 1).await;
    drop(subscription);
    wait_until(Duration::from_secs(2), || open.load(Ordering::Relaxed) == 0).await;
}

#[tokio::test]
async fn many_open_streams_leave_room_for_calls() {
    let (agent, open) = patient_agent().await;
    let client = client(&agent.url);
    let mut subscriptions = Vec::new();
    for _ in 0..300 {
        subscriptions.push(client.subscribe(&task_id()).await.unwrap());
    }
    wait_until(Duration::from_secs(5), || open.load(Ordering::Relaxed) == 300).await;
    client.get_task(&task_id()).await.unwrap();
    drop(subscriptions);
    wait_until(Duration::from_secs(5), || open.load(Ordering::Relaxed) == 0).await;
}
