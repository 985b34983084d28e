//! HTTP by hand: octets out, answers in.

use std::{io::ErrorKind, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::{sleep, timeout},
};

/// One answer as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Takes one answer off the front of what was read; those of status 100 are skipped. `bare`: as the answer
    /// to HEAD, without its body.
    fn take(octets: &mut Vec<u8>, bare: bool) -> Option<Self> {
        loop {
            let end = octets.windows(4).position(|window| window == b"\r\n\r\n")?;
            let head = String::from_utf8_lossy(&octets[..end]).into_owned();
            let mut lines = head.split("\r\n");
            let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
            let headers: Vec<(String, String)> = lines
                .filter_map(|line| line.split_once(':'))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
                .collect();
            let length = headers.iter().find(|(name, _)| name == "content-length");
            let length = match length {
                Some((_, value)) if !bare => value.parse().expect("a length"),
                _ => 0,
            };
            let body = octets.get(end + 4..end + 4 + length)?.to_vec();
            octets.drain(..end + 4 + length);
            if status != 100 {
                return Some(Self { status, headers, body });
            }
        }
    }
}

/// A connection to the inbox.
pub struct Wire {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    read: Vec<u8>,
    ended: bool,
}

impl Wire {
    /// # Panics
    /// When nobody listens there.
    pub async fn connect(address: &str) -> Self {
        Self::try_connect(address).await.unwrap_or_else(|| panic!("nobody listens at {address}"))
    }

    /// `None`: nobody listens there any more.
    pub async fn try_connect(address: &str) -> Option<Self> {
        let socket = TcpStream::connect(address.trim_start_matches("http://")).await.ok()?;
        let (reader, writer) = socket.into_split();
        Some(Self { reader, writer, read: Vec::new(), ended: false })
    }

    /// Sends; whether the peer still took it.
    pub async fn send(&mut self, octets: &[u8]) -> bool {
        self.writer.write_all(octets).await.is_ok()
    }

    /// The next answer; `None`: the connection ended without one.
    ///
    /// # Panics
    /// When neither comes within `limit`.
    pub async fn answer(&mut self, limit: Duration) -> Option<Answer> {
        let read = async {
            loop {
                if let Some(answer) = Answer::take(&mut self.read, false) {
                    return Some(answer);
                }
                if self.ended || !Self::read_more(&mut self.reader, &mut self.read).await {
                    self.ended = true;
                    return None;
                }
            }
        };
        timeout(limit, read).await.unwrap_or_else(|_| panic!("no answer and no end within {limit:?}"))
    }

    /// Whether the peer ends the connection within `limit`, sending nothing more.
    pub async fn ends(&mut self, limit: Duration) -> bool {
        let end = async {
            while !self.ended {
                self.ended = !Self::read_more(&mut self.reader, &mut self.read).await;
            }
        };
        timeout(limit, end).await.is_ok() && self.read.is_empty()
    }

    async fn read_more(reader: &mut OwnedReadHalf, read: &mut Vec<u8>) -> bool {
        match reader.read_buf(read).await {
            Ok(0) => false,
            Ok(_) => true,
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => false,
            Err(error) => panic!("reading failed: {error}"),
        }
    }
}

/// Sends the pieces, each after its pause, and reads so many answers meanwhile.
pub async fn exchange(
    address: &str,
    pieces: &[(Vec<u8>, Duration)],
    half_close: bool,
    answers: usize,
    limit: Duration,
) -> (Vec<Answer>, Wire) {
    let bare = pieces.first().is_some_and(|(octets, _)| octets.starts_with(b"HEAD "));
    let mut wire = Wire::connect(address).await;
    let Wire { reader, writer, read, ended } = &mut wire;
    let send = async {
        for (octets, pause) in pieces {
            sleep(*pause).await;
            if writer.write_all(octets).await.is_err() {
                return; // The peer has ended it, which the reading half tells.
            }
        }
        if half_close {
            let _ = writer.shutdown().await;
        }
    };
    let receive = async {
        let mut found = Vec::new();
        while found.len() < answers {
            if let Some(answer) = Answer::take(read, bare) {
                found.push(answer);
            } else if !Wire::read_more(reader, read).await {
                *ended = true;
                break;
            }
        }
        found
    };
    // Whoever has its answers needs no more pauses; whoever has sent all waits for them.
    let both = async {
        tokio::pin!(receive);
        tokio::select! {
            found = &mut receive => found,
            () = send => receive.await,
        }
    };
    let found =
        timeout(limit, both).await.unwrap_or_else(|_| panic!("no answer and no end within {limit:?}"));
    (found, wire)
}

/// A callback with these headers beside the usual ones.
pub fn callback(host: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("POST /a2a/callbacks/{path} HTTP/1.1\r\nHost: {host}\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    text.into_bytes()
}
