use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

use super::*;

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

async fn start(
    router: Router,
    limits: Limits,
) -> (SocketAddr, watch::Sender<bool>, tokio::task::JoinHandle<()>) {
    let bound = Bound::bind(loopback()).await.unwrap();
    let address = bound.address();
    let (stop, stopped) = watch::channel(false);
    (address, stop, tokio::spawn(bound.serve(router, limits, stopped)))
}

fn router() -> Router {
    Router::new().route("/", get(async || "here")).route(
        "/slow",
        get(async || {
            std::future::pending::<()>().await;
        }),
    )
}

async fn ask(address: SocketAddr) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_taken_port_names_its_holder() {
    let held = Bound::bind(loopback()).await.unwrap();
    let error = Bound::bind(held.address()).await.unwrap_err();
    assert_eq!(error.code(), "port_taken");
    let text = error.to_string();
    assert!(text.starts_with(&format!("{} is taken by ", held.address())), "{text}");
    if cfg!(target_os = "linux") {
        assert!(text.contains(&format!("process {} (", std::process::id())), "{text}");
    }
}

#[tokio::test]
async fn an_address_that_others_can_reach_is_refused() {
    for wide in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let error = Bound::bind(wide.parse().unwrap()).await.unwrap_err();
        assert_eq!(error.code(), "not_loopback", "{wide}");
    }
}

#[tokio::test]
async fn who_sends_no_head_in_time_is_let_go() {
    let limits = Limits { head: Duration::from_millis(200), ..Limits::default() };
    let (address, _stop, _serving) = start(router(), limits).await;
    for sent in ["", "GET / HTTP/1.1\r\nHost:"] {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(sent.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(5), socket.read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "{sent:?} must not hold a connection");
    }
}

#[tokio::test]
async fn over_the_cap_a_connection_waits_for_another_to_end() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let (address, _stop, _serving) = start(router(), limits).await;
    let first = TcpStream::connect(address).await.unwrap();
    let second = TcpStream::connect(address).await.unwrap();
    let mut third = tokio::spawn(ask(address));
    let early = tokio::time::timeout(Duration::from_millis(300), &mut third).await;
    assert!(early.is_err(), "two are served at once, not three");
    drop(first);
    let answer = tokio::time::timeout(Duration::from_secs(5), third).await.unwrap().unwrap();
    assert!(answer.ends_with("here"), "{answer}");
    drop(second);
}

#[tokio::test]
async fn a_stop_takes_two_seconds_at_most_whatever_is_under_way() {
    let (address, stop, serving) = start(router(), Limits::default()).await;
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let _idle = TcpStream::connect(address).await.unwrap();
    assert!(ask(address).await.ends_with("here"));
    let asked = Instant::now();
    stop.send_replace(true);
    serving.await.unwrap();
    assert!(asked.elapsed() <= Duration::from_secs(2), "{:?}", asked.elapsed());
    assert!(TcpStream::connect(address).await.is_err(), "the port is free");
}

#[tokio::test]
async fn a_stop_with_nothing_under_way_is_immediate() {
    let (address, stop, serving) = start(router(), Limits::default()).await;
    assert!(ask(address).await.ends_with("here"));
    let _idle = TcpStream::connect(address).await.unwrap();
    let asked = Instant::now();
    stop.send_replace(true);
    serving.await.unwrap();
    assert!(asked.elapsed() < Duration::from_millis(500), "{:?}", asked.elapsed());
}
