//! The body of an event stream: what a client missed, what is there, what is told from now on.
//!
//! One data line an event, its id before it, and a comment where nothing happens for a while. A stream that
//! does not end by itself is broken off, so that its client knows it was cut and comes back.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::Stream;
use serde_json::Value;
use taskbell_core::dialect::Dialect;
use taskbell_core::dialect::errors::ErrorAnswer;
use taskbell_core::json::write_line;
use taskbell_core::relay::{After, EventId};
use tokio::time::Interval;

use super::traffic::Note;
use crate::store::hub::{Feed, Told};

/// How often a comment shows that the connection lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Events are put together into one write up to this size.
const WRITE_SIZE: usize = 16 * 1024;

/// What stands round each event.
pub(super) struct Carrier {
    dialect: Dialect,
    /// Before the result, and before an error: what JSON-RPC says with the request's id. HTTP+JSON has none.
    heads: Option<(String, String)>,
}

impl Carrier {
    pub fn json_rpc(dialect: Dialect, id: &Value) -> Self {
        let id = write_line(id);
        let head = |member| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{member}\":");
        Self { dialect, heads: Some((head("result"), head("error"))) }
    }

    pub fn rest() -> Self {
        Self { dialect: Dialect::V1, heads: None }
    }

    fn write(&self, out: &mut Vec<u8>, id: Option<EventId>, line: &str) {
        if let Some(id) = id {
            out.extend_from_slice(format!("id: {id}\n").as_bytes());
        }
        out.extend_from_slice(b"data: ");
        match &self.heads {
            Some((head, _)) => {
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(line.as_bytes());
                out.push(b'}');
            }
            None => out.extend_from_slice(line.as_bytes()),
        }
        out.extend_from_slice(b"\n\n");
    }

    fn write_error(&self, out: &mut Vec<u8>, error: &ErrorAnswer) {
        out.extend_from_slice(b"data: ");
        match &self.heads {
            Some((_, head)) => {
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(write_line(&error.json_rpc(self.dialect)).as_bytes());
                out.push(b'}');
            }
            None => out.extend_from_slice(write_line(&error.rest()).as_bytes()),
        }
        out.extend_from_slice(b"\n\n");
    }
}

/// Something that is sent before what is told from now on.
pub(super) enum First {
    Event(Option<EventId>, String),
    Comment(&'static str),
    Error(ErrorAnswer),
}

/// How long somebody listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// A send's stream: until the agent waits for an answer.
    TurnOver,
    /// Across questions and answers.
    TaskOver,
}

/// A stream about to start.
pub(super) struct Opening {
    pub first: VecDeque<First>,
    /// `None`: nothing comes after what is first.
    pub feed: Option<Feed>,
    pub until: Until,
    /// What ends the stream where the agent knows its task no more.
    pub lost: ErrorAnswer,
}

/// A client that is cut, by lagging or by a stop, sees its connection break.
#[derive(Debug, thiserror::Error)]
#[error("event stream cut")]
struct StreamCut;

struct Events {
    carrier: Carrier,
    opening: Opening,
    keep_alive: Interval,
    /// The engine stops, or the client's key was revoked.
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
    over: bool,
    note: Note,
}

/// The response that carries it.
pub(super) fn response(
    carrier: Carrier,
    opening: Opening,
    ended: impl Future<Output = ()> + Send + 'static,
    note: Note,
) -> Response {
    let start = tokio::time::Instant::now() + KEEP_ALIVE;
    let mut keep_alive = tokio::time::interval_at(start, KEEP_ALIVE);
    keep_alive.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let events = Events { carrier, opening, keep_alive, ended: Box::pin(ended), over: false, note };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(events)).into_response()
}

impl Events {
    fn write_told(&mut self, out: &mut Vec<u8>, told: &Told) {
        if told.is_lost() {
            self.carrier.write_error(out, &self.opening.lost);
            self.over = true;
            return;
        }
        self.carrier.write(out, Some(told.id), &told.line(self.carrier.dialect));
        if let Some(state) = told.state {
            self.note.set_state(state);
        }
        self.over = match told.after() {
            After::TaskOver => true,
            After::TurnOver => self.opening.until == Until::TurnOver,
            After::Goes => false,
        };
    }

    fn write_first(&mut self, out: &mut Vec<u8>) {
        while out.len() < WRITE_SIZE
            && let Some(first) = self.opening.first.pop_front()
        {
            match first {
                First::Event(id, line) => self.carrier.write(out, id, &line),
                First::Comment(text) => out.extend_from_slice(format!(": {text}\n\n").as_bytes()),
                First::Error(error) => self.carrier.write_error(out, &error),
            }
        }
    }
}

impl Stream for Events {
    type Item = Result<Bytes, StreamCut>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let mut out = Vec::new();
        this.write_first(&mut out);
        let mut cut = false;
        if this.opening.first.is_empty() {
            while out.len() < WRITE_SIZE && !this.over {
                let Some(feed) = &mut this.opening.feed else {
                    this.over = true;
                    break;
                };
                match feed.poll_next(cx) {
                    Poll::Ready(Some(told)) => this.write_told(&mut out, &told),
                    Poll::Ready(None) => {
                        cut = true;
                        break;
                    }
                    Poll::Pending => break,
                }
            }
        }
        if !out.is_empty() {
            this.keep_alive.reset();
            this.note.sent(out.len());
            return Poll::Ready(Some(Ok(out.into())));
        }
        if this.over {
            this.opening.feed = None;
            return Poll::Ready(None);
        }
        if cut {
            this.over = true;
            this.opening.feed = None;
            return Poll::Ready(Some(Err(StreamCut)));
        }
        if this.ended.as_mut().poll(cx).is_ready() {
            this.over = true;
            this.opening.feed = None;
            return Poll::Ready(None);
        }
        if this.keep_alive.poll_tick(cx).is_ready() {
            // A ready interval has not asked to be woken again; the next poll does.
            cx.waker().wake_by_ref();
            return Poll::Ready(Some(Ok(Bytes::from_static(b": keep-alive\n\n"))));
        }
        Poll::Pending
    }
}
