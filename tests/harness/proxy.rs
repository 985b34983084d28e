use std::time::{Duration, Instant};

use serde_json::json;
use taskbell_tests::{
    Cut, Fault, FaultProxy, GatewayA, When,
    a2a::{Dialect, Direct},
    eventually,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

const TOKEN: &str = "token-of-alice";

struct Scene {
    gateway: GatewayA,
    proxy: FaultProxy,
    direct: Direct,
    task: String,
}

async fn scene() -> Scene {
    let gateway = GatewayA::start(TOKEN).await;
    let proxy = FaultProxy::before(gateway.port()).await;
    let direct = Direct::new(&format!("{}a2a/coder", proxy.url()), Dialect::V03).with_token(TOKEN);
    let task = direct.send("a turn").await;
    Scene { gateway, proxy, direct, task }
}

impl Scene {
    /// A raw subscription: what a client sees on the wire.
    async fn subscribe(&self) -> TcpStream {
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/resubscribe", "params": {"id": self.task}});
        let body = body.to_string();
        let mut socket =
            TcpStream::connect(("127.0.0.1", self.proxy.port())).await.expect("the proxy listens");
        let request = format!(
            "POST /a2a/coder HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
             Accept: text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(request.as_bytes()).await.expect("it reads");
        socket
    }

    async fn flowing(&self) -> TcpStream {
        let socket = self.subscribe().await;
        eventually(Duration::from_secs(5), "the stream flows", || self.proxy.open_streams() == 1).await;
        socket
    }
}

/// All there is to read, and how it ended.
async fn drain(socket: &mut TcpStream, limit: Duration) -> (String, Option<std::io::Result<()>>) {
    let mut text = Vec::new();
    let end = timeout(limit, async {
        let mut buffer = [0; 4096];
        loop {
            match socket.read(&mut buffer).await {
                Ok(0) => return Ok(()),
                Ok(count) => text.extend_from_slice(&buffer[..count]),
                Err(error) => return Err(error),
            }
        }
    })
    .await
    .ok();
    (String::from_utf8_lossy(&text).into_owned(), end)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_passes_unchanged_and_is_counted() {
    let scene = scene().await;
    let mut socket = scene.flowing().await;
    scene.gateway.finish(&scene.task, "the reply");
    let (text, _) = drain(&mut socket, Duration::from_secs(1)).await;
    assert!(text.contains("\"state\":\"submitted\"") && text.contains("the reply"), "{text}");
    assert!(text.ends_with("0\r\n\r\n"), "a finished stream ends with the last chunk: {text}");
    assert_eq!(scene.proxy.open_streams(), 0, "an ended stream is not open");
    assert_eq!(scene.proxy.most_streams(), 1);
    assert_eq!((scene.proxy.count(When::Sends), scene.proxy.count(When::Subscribes)), (1, 1));
    scene.proxy.assert_sent_once_each(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_end_looks_as_if_the_agent_had_finished() {
    let scene = scene().await;
    let mut socket = scene.flowing().await;
    scene.proxy.cut_streams(Cut::CleanEnd);
    let (text, end) = drain(&mut socket, Duration::from_secs(5)).await;
    assert!(text.ends_with("0\r\n\r\n"), "{text}");
    assert!(matches!(end, Some(Ok(()))), "FIN, not {end:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_is_a_reset() {
    let scene = scene().await;
    let mut socket = scene.flowing().await;
    scene.proxy.cut_streams(Cut::Reset);
    let (text, end) = drain(&mut socket, Duration::from_secs(5)).await;
    assert!(!text.ends_with("0\r\n\r\n"), "{text}");
    let kind = end.expect("it ended").expect_err("not FIN").kind();
    assert_eq!(kind, std::io::ErrorKind::ConnectionReset);
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_keeps_both_sockets_open_and_passes_nothing() {
    let scene = scene().await;
    let mut socket = scene.flowing().await;
    scene.proxy.cut_streams(Cut::Silence);
    eventually(Duration::from_secs(5), "the cut", || scene.proxy.open_streams() == 0).await;
    scene.gateway.work(&scene.task, "said into the silence");
    let (text, end) = drain(&mut socket, Duration::from_secs(1)).await;
    assert!(end.is_none(), "neither FIN nor reset: {end:?}");
    assert!(!text.contains("silence"), "{text}");
    assert_eq!(scene.gateway.open_streams(), 1, "the agent does not notice either");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_is_noticed_by_the_agent() {
    let scene = scene().await;
    let socket = scene.flowing().await;
    drop(socket);
    eventually(Duration::from_secs(5), "the stream is over", || scene.proxy.open_streams() == 0).await;
    // The gateway notices when it writes.
    scene.gateway.work(&scene.task, "one");
    scene.gateway.work(&scene.task, "two");
    eventually(Duration::from_secs(5), "the agent noticed", || scene.gateway.open_streams() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_after_n_octets_passes_exactly_n() {
    let scene = scene().await;
    scene.proxy.set_times(When::Subscribes, Fault::CutAfter(10, Cut::CleanEnd), 1);
    let mut socket = scene.subscribe().await;
    let (text, _) = drain(&mut socket, Duration::from_secs(5)).await;
    assert!(text.ends_with("\r\n\r\na\r\ndata: {\"id\r\n0\r\n\r\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dripping_answer_arrives_octet_by_octet() {
    let scene = scene().await;
    scene.proxy.set(When::Gets, Fault::Drip(Duration::from_millis(2)));
    let start = Instant::now();
    let told = scene.direct.get(&scene.task).await;
    assert_eq!(told.state, "submitted");
    assert!(start.elapsed() > Duration::from_millis(200), "{:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swallowed_answer_was_seen_by_the_agent() {
    let scene = scene().await;
    scene.proxy.set_times(When::Sends, Fault::SwallowAnswer, 1);
    let direct = scene.direct.clone();
    let sent = tokio::spawn(async move { direct.send("lost").await });
    assert!(sent.await.is_err(), "the client got no answer");
    assert_eq!(scene.gateway.messages().len(), 2, "the agent took the message");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_html_page_comes_from_the_proxy_alone_and_can_be_limited() {
    let scene = scene().await;
    scene.proxy.set_times(When::Gets, Fault::bad_gateway(), 1);
    let before = scene.gateway.calls().len();
    let client = taskbell_tests::a2a::http();
    let url = format!("{}a2a/coder", scene.proxy.url());
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": scene.task}});
    let answer = client.post(&url).json(&body).send().await.expect("an answer");
    assert_eq!(answer.status(), 502);
    assert!(answer.text().await.expect("a body").contains("<html>"));
    assert_eq!(scene.gateway.calls().len(), before, "the agent never saw it");
    assert_eq!(scene.direct.get(&scene.task).await.state, "submitted", "once means once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_port_refuses_and_comes_back_with_the_same_number() {
    let mut scene = scene().await;
    let mut socket = scene.flowing().await;
    scene.proxy.down().await;
    let (_, end) = drain(&mut socket, Duration::from_secs(5)).await;
    assert!(end.is_some(), "its connections end with it");
    let refused = TcpStream::connect(("127.0.0.1", scene.proxy.port())).await.expect_err("closed");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    scene.proxy.up().await;
    assert_eq!(scene.direct.get(&scene.task).await.state, "submitted");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_made_up_carries_the_id_that_was_asked_and_comes_as_late_as_it_should() {
    let scene = scene().await;
    let body = json!({"jsonrpc": "2.0", "id": "$id", "result": {"status": {"state": "made-up"}}});
    let made_up = Fault::answer(200, "application/json", &body.to_string());
    scene.proxy.set_times(When::Gets, Fault::Late(Duration::from_millis(300), Box::new(made_up)), 1);
    let start = Instant::now();
    let answer = scene.direct.call("tasks/get", json!({"id": scene.task})).await;
    assert_eq!((&answer["id"], &answer["result"]["status"]["state"]), (&json!(1), &json!("made-up")));
    assert!(start.elapsed() >= Duration::from_millis(300), "{:?}", start.elapsed());
    assert_eq!(scene.direct.get(&scene.task).await.state, "submitted", "once means once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_ends_when_the_client_leaves_and_tells_how_much_was_taken() {
    let scene = scene().await;
    let piece = "x".repeat(1 << 16);
    let flood = Fault::Flood { content_type: "text/event-stream".to_owned(), piece, times: 1 << 14 };
    scene.proxy.set_times(When::Subscribes, flood, 1);
    let mut socket = scene.subscribe().await;
    let mut taken = vec![0; 1 << 20];
    socket.read_exact(&mut taken).await.expect("a flood");
    drop(socket);
    let settled = taskbell_tests::wait_until(Duration::from_secs(5), "the flood ends", async || {
        let before = scene.proxy.flooded();
        tokio::time::sleep(Duration::from_millis(200)).await;
        (scene.proxy.flooded() == before).then_some(before)
    })
    .await;
    assert!((1 << 19..1 << 26).contains(&settled), "{settled} octets");
}
