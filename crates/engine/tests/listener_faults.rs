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
use tokio::net::TcpStream;
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

    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..before }).unwrap();
    // Each of ours takes two: this end and the listener's. Then neither can open another.
    let mut held = Vec::new();
    let full = loop {
        match TcpStream::connect(address).await {
            Ok(socket) => held.push(socket),
            Err(error) => break error,
        }
        assert!(held.len() < 64, "the limit must hold");
    };
    assert_eq!(full.raw_os_error(), Some(24), "too many open files: {full}");
    // One of ours becomes free, and the listener may take it: either way nothing may die.
    let mut last = held.pop().unwrap();
    last.write_all(REQUEST).await.unwrap();
    held.truncate(held.len() / 2);
    let mut text = String::new();
    let read = tokio::time::timeout(Duration::from_secs(10), last.read_to_string(&mut text));
    read.await.expect("the listener must come back by itself").unwrap();
    assert!(text.ends_with("here"), "{text}");
    drop(held);

    setrlimit(Resource::Nofile, before).unwrap();
    assert!(answer(TcpStream::connect(address).await.unwrap()).await.ends_with("here"));
    stop.send_replace(true);
    tokio::time::timeout(Duration::from_secs(2), serving).await.unwrap().unwrap();
}
