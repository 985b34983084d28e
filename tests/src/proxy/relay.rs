//! One client connection: reads requests, passes them on, spoils the answers.

use std::{future::pending, io, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    time::{Instant, sleep},
};

use super::{
    Cut, Fault, Seen, Shared,
    http::{Framing, Head, read_body, read_piece},
};

/// What becomes of the client's connection after an answer.
enum After {
    KeepAlive,
    Close,
    Cut(Cut),
}

/// Serves one connection to its end.
pub async fn serve(connection: TcpStream, shared: Arc<Shared>) {
    let (read, mut client) = connection.into_split();
    let mut requests = BufReader::new(read);
    loop {
        // An error of the client's or of the agent's connection: both end.
        let after = match exchange(&mut requests, &mut client, &shared).await {
            Ok(after) => after,
            Err(_) => After::Cut(Cut::Reset),
        };
        match after {
            After::KeepAlive => {}
            After::Close | After::Cut(Cut::CleanEnd) => {
                // The client may be gone already, which is an end as well.
                let _ = client.shutdown().await;
                return;
            }
            After::Cut(Cut::Reset) => {
                // Refused only for a socket that is closed already.
                let _ = client.as_ref().set_zero_linger();
                // Dropped as it is, this half would say FIN before the reset.
                client.forget();
                return;
            }
            After::Cut(Cut::Silence) => pending().await,
        }
    }
}

async fn exchange(
    requests: &mut BufReader<OwnedReadHalf>,
    client: &mut OwnedWriteHalf,
    shared: &Shared,
) -> io::Result<After> {
    let Some(head) = Head::read(requests).await? else { return Ok(After::Close) };
    let body = read_body(requests, head.framing(Framing::Length(0))).await?;
    let seen = seen(&head, &body);
    let mut fault = shared.take_fault(&seen);
    while let Some(Fault::Late(time, then)) = fault {
        sleep(time).await;
        fault = Some(*then);
    }
    let mut limit = Spoil::default();
    match fault {
        Some(Fault::Answer { status, content_type, headers, body }) => {
            let id = seen.body.as_ref().map_or(Value::Null, |body| body["id"].clone());
            let body = body.replace("\"$id\"", &id.to_string());
            let extra: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let answer = format!(
                "HTTP/1.1 {status} Answer\r\nContent-Type: {content_type}\r\n{extra}Content-Length: {}\r\n\r\n{body}",
                body.len()
            );
            client.write_all(answer.as_bytes()).await?;
            return Ok(After::KeepAlive);
        }
        Some(Fault::Flood { content_type, piece, times }) => {
            let length = piece.len() * times;
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
            );
            client.write_all(head.as_bytes()).await?;
            for _ in 0..times {
                client.write_all(piece.as_bytes()).await?;
                shared.record().flooded += piece.len();
            }
            return Ok(After::KeepAlive);
        }
        Some(Fault::NeverAnswer) => return Ok(After::Cut(Cut::Silence)),
        Some(Fault::SwallowAnswer) => {
            let mut agent = pass_on(&head, &body, shared).await?;
            if let Some(answer) = Head::read(&mut agent).await? {
                read_body(&mut agent, answer.framing(Framing::Close)).await?;
            }
            return Ok(After::Cut(Cut::Reset));
        }
        Some(Fault::Delay(time) | Fault::Late(time, _)) => sleep(time).await,
        Some(Fault::CutAfter(octets, cut)) => limit.cut_after = Some((octets, cut)),
        Some(Fault::Drip(pause)) => limit.drip = Some(pause),
        None => {}
    }
    let mut agent = pass_on(&head, &body, shared).await?;
    relay_answer(&mut agent, requests, client, shared, limit).await
}

/// Sends the request to the agent on a connection of its own.
async fn pass_on(head: &Head, body: &[u8], shared: &Shared) -> io::Result<BufReader<TcpStream>> {
    let mut agent = match TcpStream::connect(shared.upstream).await {
        Ok(agent) => agent,
        Err(error) => {
            shared.record().refused += 1;
            return Err(error);
        }
    };
    agent.write_all(&head.raw).await?;
    if head.framing(Framing::Length(0)) == Framing::Chunked {
        agent.write_all(&chunk(body)).await?;
        agent.write_all(b"0\r\n\r\n").await?;
    } else {
        agent.write_all(body).await?;
    }
    Ok(BufReader::new(agent))
}

/// What is done to the body of an answer on its way.
#[derive(Default)]
struct Spoil {
    cut_after: Option<(usize, Cut)>,
    drip: Option<Duration>,
}

/// Counts an event stream while it flows.
struct Flowing<'a>(&'a Shared);

impl<'a> Flowing<'a> {
    fn new(shared: &'a Shared) -> Self {
        let mut record = shared.record();
        record.open_streams += 1;
        record.most_streams = record.most_streams.max(record.open_streams);
        drop(record);
        Self(shared)
    }
}

impl Drop for Flowing<'_> {
    fn drop(&mut self) {
        self.0.record().open_streams -= 1;
    }
}

async fn relay_answer(
    agent: &mut BufReader<TcpStream>,
    requests: &mut BufReader<OwnedReadHalf>,
    client: &mut OwnedWriteHalf,
    shared: &Shared,
    spoil: Spoil,
) -> io::Result<After> {
    let Some(head) = Head::read(agent).await? else { return Ok(After::Cut(Cut::Reset)) };
    let is_stream = head.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    // Before the stream is counted: a test that sees it may cut it at once.
    let mut cuts = shared.cuts.subscribe();
    let flowing = is_stream.then(|| Flowing::new(shared));
    client.write_all(&head.raw).await?;
    let otherwise = if head.first_line.contains(" 204 ") { Framing::Length(0) } else { Framing::Close };
    let mut left = head.framing(otherwise);
    let framing = left;
    let mut passed = 0;
    let end = loop {
        // In this order: nothing of the agent's passes a cut that was asked for before it came.
        let piece = tokio::select! {
            biased;
            cut = next_cut(&mut cuts), if is_stream => break Some(cut),
            () = left_by(requests), if is_stream => return Ok(After::Close),
            piece = read_piece(agent, &mut left) => piece?,
        };
        let Some(mut piece) = piece else { break None };
        let cut = match spoil.cut_after {
            Some((octets, cut)) if passed + piece.len() >= octets => {
                piece.truncate(octets - passed);
                Some(cut)
            }
            _ => None,
        };
        passed += piece.len();
        write_piece(client, framing, &piece, spoil.drip).await?;
        if cut.is_some() {
            break cut;
        }
    };
    if end == Some(Cut::Silence) {
        // The agent's connection stays open as well, unread.
        drop(flowing);
        return pending().await;
    }
    if framing == Framing::Chunked && end != Some(Cut::Reset) {
        client.write_all(b"0\r\n\r\n").await?;
    }
    Ok(match end {
        Some(cut) => After::Cut(cut),
        None if framing == Framing::Close => After::Close,
        None => After::KeepAlive,
    })
}

async fn next_cut(cuts: &mut watch::Receiver<Option<Cut>>) -> Cut {
    loop {
        if cuts.changed().await.is_err() {
            return pending().await;
        }
        if let Some(cut) = *cuts.borrow_and_update() {
            return cut;
        }
    }
}

/// Returns once the client has closed its side.
async fn left_by(requests: &mut BufReader<OwnedReadHalf>) {
    if let Ok([_, ..]) = requests.fill_buf().await {
        // A next request before the end of this answer; it is read afterwards.
        pending().await
    }
}

async fn write_piece(
    client: &mut OwnedWriteHalf,
    framing: Framing,
    piece: &[u8],
    drip: Option<Duration>,
) -> io::Result<()> {
    let size = if drip.is_some() { 1 } else { piece.len().max(1) };
    for part in piece.chunks(size) {
        if framing == Framing::Chunked {
            client.write_all(&chunk(part)).await?;
        } else {
            client.write_all(part).await?;
        }
        if let Some(pause) = drip {
            sleep(pause).await;
        }
    }
    Ok(())
}

fn chunk(octets: &[u8]) -> Vec<u8> {
    let mut framed = format!("{:x}\r\n", octets.len()).into_bytes();
    framed.extend_from_slice(octets);
    framed.extend_from_slice(b"\r\n");
    framed
}

fn seen(head: &Head, body: &[u8]) -> Seen {
    let mut words = head.first_line.split(' ').map(str::to_owned);
    let (verb, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let body: Option<Value> = serde_json::from_slice(body).ok();
    let text = |pointer: &str| {
        let found = body.as_ref().and_then(|body| body.pointer(pointer)).and_then(Value::as_str);
        found.map(str::to_owned)
    };
    Seen {
        at: Instant::now(),
        verb,
        path,
        method: text("/method"),
        message_id: text("/params/message/messageId").or_else(|| text("/message/messageId")),
        task: text("/params/id").or_else(|| text("/params/taskId")),
        authorization: head.header("authorization").map(str::to_owned),
        head: String::from_utf8_lossy(&head.raw).into_owned(),
        body,
    }
}
