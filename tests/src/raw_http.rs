//! HTTP/1.1 octet by octet: requests that no client library would send.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than any answer takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// What came back, read to the end of the connection.
#[derive(Debug, Clone)]
pub struct RawAnswer {
    /// 0 where the connection ended without an answer.
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl RawAnswer {
    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    fn read(octets: &[u8]) -> Self {
        let end = octets.windows(4).position(|four| four == b"\r\n\r\n");
        let (head, body) = end.map_or((octets, &[][..]), |end| (&octets[..end], &octets[end + 4..]));
        let head = String::from_utf8_lossy(head).into_owned();
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let is_chunked = head.to_ascii_lowercase().contains("\r\ntransfer-encoding: chunked");
        let body = if is_chunked { unchunked(body) } else { body.to_vec() };
        Self { status, head, body: String::from_utf8_lossy(&body).into_owned() }
    }
}

/// Chunks put together, as far as they came.
fn unchunked(mut octets: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = octets.windows(2).position(|two| two == b"\r\n") {
        let size =
            std::str::from_utf8(&octets[..end]).ok().and_then(|hex| usize::from_str_radix(hex, 16).ok());
        let Some(size) = size.filter(|size| *size > 0) else { break };
        let rest = &octets[end + 2..];
        whole.extend_from_slice(&rest[..size.min(rest.len())]);
        octets = rest.get(size + 2..).unwrap_or_default();
    }
    whole
}

/// Sends the octets and reads until the other side closes. Say `Connection: close` in them. A refusal may
/// come, and the connection break, before everything is sent.
///
/// # Panics
/// When nobody listens, or the connection stays open without an end.
pub async fn exchange(address: &str, octets: &[u8]) -> RawAnswer {
    let mut stream = connect(address).await;
    let (mut from, mut to) = stream.split();
    let mut answer = Vec::new();
    let sending = async {
        // The answer tells what matters; whoever refuses early need not read on.
        let _ = to.write_all(octets).await;
    };
    let reading = async {
        // A reset after the answer leaves what was read.
        let _ = from.read_to_end(&mut answer).await;
    };
    let both = async {
        tokio::pin!(sending, reading);
        let mut sent = false;
        loop {
            tokio::select! {
                () = &mut sending, if !sent => sent = true,
                () = &mut reading => break,
            }
        }
    };
    timeout(LIMIT, both).await.expect("an answer and the end of the connection");
    RawAnswer::read(&answer)
}

/// A connection to talk on by hand.
///
/// # Panics
/// When nobody listens.
pub async fn connect(address: &str) -> TcpStream {
    TcpStream::connect(address).await.unwrap_or_else(|error| panic!("connecting to {address}: {error}"))
}

/// A POST of JSON with these further header lines.
pub fn post(address: &str, path: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut octets =
        format!("POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    let has = |name: &str| headers.iter().any(|line| line.to_ascii_lowercase().starts_with(name));
    if !has("host:") {
        octets += &format!("Host: {address}\r\n");
    }
    if !has("content-type:") {
        octets += "Content-Type: application/json\r\n";
    }
    for line in headers.iter().filter(|line| !line.is_empty()) {
        octets += line;
        octets += "\r\n";
    }
    octets += "\r\n";
    let mut octets = octets.into_bytes();
    octets.extend_from_slice(body);
    octets
}
