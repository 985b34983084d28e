//! The listener without file descriptors. A program of its own, for the limit is the whole process's.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use taskbell_engine::listen::{Bound, Limits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

async fn answer(mut socket: TcpStream) -> String {
    socket.write_all(REQUEST).await.unwrap();
    let mut text = String::new();
    let read = tokio::time::timeout(Duration::from_secs(10), socket.read_to_string(&mut text));
    read.await.expect("an answer in time").unwrap();
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn out_of_descriptors_the_listener_lives_and_answers_when_some_are_free() {
    let router = Router::new().route("/", get(async || "here"));
    let bound = Bound::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = bound.address();
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(bound.serve(router, Limits::default(), stopped));
    assert!(answer(TcpStream::connect(address).await.unwrap()).await.ends_with("here"));

    // Made while there are descriptors, so that connecting needs none and only the listener lacks one.
    let waiting = TcpSocket::new_v4().unwrap();
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(1), ..before }).unwrap();
    let refused = std::fs::File::open("/").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(24), "too many open files: {refused}");
    let waiting = waiting.connect(address).await.unwrap();
    let mut waiting = tokio::spawn(answer(waiting));
    let early = tokio::time::timeout(Duration::from_millis(350), &mut waiting).await;
    assert!(early.is_err(), "without a descriptor nothing can be accepted");
    assert!(!serving.is_finished(), "the listener must outlive it");

    setrlimit(Resource::Nofile, before).unwrap();
    assert!(waiting.await.unwrap().ends_with("here"), "who waited is answered");
    assert!(answer(TcpStream::connect(address).await.unwrap()).await.ends_with("here"));
    stop.send_replace(true);
    tokio::time::timeout(Duration::from_secs(2), serving).await.unwrap().unwrap();
}
