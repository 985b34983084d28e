//! An agent of octets: each request is read, and a script writes whatever it likes.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

#[derive(Debug, Clone)]
pub struct Received {
    pub line: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// A whole answer with this result.
    pub fn result(&self, result: Value) -> Vec<u8> {
        json_answer(&json!({"jsonrpc":"2.0","id":self.json()["id"],"result":result}))
    }
}

pub fn json_answer(document: &Value) -> Vec<u8> {
    answer("200 OK", "application/json", document.to_string().as_bytes())
}

pub fn answer(status: &str, media_type: &str, body: &[u8]) -> Vec<u8> {
    answer_with(status, &format!("content-type: {media_type}\r\n"), body)
}

pub fn answer_with(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut octets =
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len()).into_bytes();
    octets.extend_from_slice(body);
    octets
}

pub const STREAM_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

pub fn chunk(octets: &[u8]) -> Vec<u8> {
    let mut out = format!("{:x}\r\n", octets.len()).into_bytes();
    out.extend_from_slice(octets);
    out.extend_from_slice(b"\r\n");
    out
}

pub struct RawAgent {
    pub url: String,
    pub requests: Arc<Mutex<Vec<Received>>>,
    accepting: JoinHandle<()>,
}

impl RawAgent {
    /// Answers one request a connection; the connection closes when the script is through.
    pub async fn start<S, F>(script: S) -> Self
    where
        S: Fn(Received, TcpStream) -> F + Send + Sync + 'static,
        F: Future<Output = std::io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/a2a", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let script = Arc::new(script);
        let accepting = tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let (seen, script) = (seen.clone(), script.clone());
                tokio::spawn(async move {
                    let Some(received) = read_request(&mut socket).await else { return };
                    seen.lock().unwrap().push(received.clone());
                    // A client that gives up half-way is what many tests want.
                    let _ = script(received, socket).await;
                });
            }
        });
        Self { url, requests, accepting }
    }

    /// Writes the same octets to everybody.
    pub async fn always(octets: Vec<u8>) -> Self {
        let octets = Arc::new(octets);
        Self::start(move |_, mut socket| {
            let octets = octets.clone();
            async move { finish(&mut socket, &octets).await }
        })
        .await
    }

    pub async fn with_result(result: Value) -> Self {
        Self::start(move |received, mut socket| {
            let octets = received.result(result.clone());
            async move { finish(&mut socket, &octets).await }
        })
        .await
    }

    pub fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    pub fn request(&self, index: usize) -> Received {
        self.requests.lock().unwrap()[index].clone()
    }
}

impl Drop for RawAgent {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

pub async fn finish(socket: &mut (impl AsyncWrite + Unpin), octets: &[u8]) -> std::io::Result<()> {
    socket.write_all(octets).await?;
    socket.shutdown().await
}

pub async fn read_request(socket: &mut TcpStream) -> Option<Received> {
    let mut octets = Vec::new();
    let mut buffer = [0; 4096];
    let end = loop {
        if let Some(end) = octets.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        match socket.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => octets.extend_from_slice(&buffer[..count]),
        }
    };
    let head = String::from_utf8(octets[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut received = Received { line, headers, body: octets[end + 4..].to_vec() };
    let length = received.header("content-length").map_or(0, |value| value.parse().unwrap());
    while received.body.len() < length {
        match socket.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => received.body.extend_from_slice(&buffer[..count]),
        }
    }
    Some(received)
}
