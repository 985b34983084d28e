use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::data_dir::{HeldDataDir, Runtime};

const CANARY: &str = "canary-token-7f3a";

fn publish(held: &HeldDataDir, gateway: Option<String>) {
    let runtime = Runtime { pid: 1, gateway, inbox: None, token: Secret::new(CANARY) };
    held.publish(&runtime).unwrap();
}

/// Answers every request with `answer` and remembers whether it was ever told the token.
async fn squat(answer: &'static str) -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let told = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&told);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = vec![0; 8192];
            let length = socket.read(&mut request).await.unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..length]).to_lowercase();
            if request.contains(CANARY) || request.contains("authorization") {
                seen.store(true, Ordering::SeqCst);
            }
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len());
            let _ = socket.write_all(format!("{head}{answer}").as_bytes()).await;
        }
    });
    (address, told)
}

#[tokio::test]
async fn without_an_engine_the_code_is_no_engine_and_says_what_to_run() {
    let folder = tempfile::tempdir().unwrap();
    let dir = DataDir::at(folder.path());
    let error = ApiClient::connect(&dir).await.unwrap_err();
    assert_eq!((error.code.as_str(), error.exit_code()), ("no_engine", 1));
    assert!(error.message.contains("taskbell serve"), "{}", error.message);
}

#[tokio::test]
async fn a_runtime_file_without_a_held_lock_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = DataDir::at(folder.path());
    let (address, told) = squat("{}").await;
    let held = dir.hold().unwrap();
    publish(&held, Some(address));
    drop(held); // As a kill does: the file stays.
    assert_eq!(ApiClient::connect(&dir).await.unwrap_err().code, "no_engine");
    assert!(!told.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_squatter_on_the_port_is_never_told_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let dir = DataDir::at(folder.path());
    let held = dir.hold().unwrap();
    let forged =
        r#"{"hello":"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843","version":"0"}"#;
    for answer in ["", "{}", "<html>", forged] {
        let (address, told) = squat(answer).await;
        publish(&held, Some(address));
        let error = ApiClient::connect(&dir).await.unwrap_err();
        assert_eq!(error.code, "engine_not_proven", "{answer:?}");
        assert!(!told.load(Ordering::SeqCst), "the token went to a squatter that answered {answer:?}");
        assert!(!format!("{error:?} {error}").contains(CANARY));
    }
}

#[tokio::test]
async fn an_address_of_another_machine_is_not_called() {
    let folder = tempfile::tempdir().unwrap();
    let dir = DataDir::at(folder.path());
    let held = dir.hold().unwrap();
    for elsewhere in ["http://192.0.2.1:7420", "https://127.0.0.1:7420", "http://a@127.0.0.1:1", "nonsense"] {
        publish(&held, Some(elsewhere.to_owned()));
        let error = ApiClient::connect(&dir).await.unwrap_err();
        assert_eq!(error.code, "engine_unreachable", "{elsewhere}");
    }
}

#[tokio::test]
async fn an_engine_without_its_port_is_told_apart_from_none() {
    let folder = tempfile::tempdir().unwrap();
    let dir = DataDir::at(folder.path());
    let held = dir.hold().unwrap();
    publish(&held, None);
    assert_eq!(ApiClient::connect(&dir).await.unwrap_err().code, "engine_port_taken");
}
