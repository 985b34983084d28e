//! One event stream of an agent, from the head of the answer to its end.
//!
//! Hands out raw events. What they mean, how long silence may last and when to come back is decided
//! elsewhere; dropping a subscription closes its connection at once, and nothing is replayed.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::Response;
use taskbell_core::sse::{Decoder, Event, SseFault, StreamEnd};

use super::fault::Unreachable;
use super::http::{LanePlace, cause_of};

/// An event as received, copied out of the network's buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The type; `message` where the stream names none.
    pub event: Box<str>,
    pub data: Box<str>,
    /// Counts for nothing upstream: no agent replays. Empty if none.
    pub id: Box<str>,
    /// Some of it was not UTF-8 and was mended.
    pub lossy: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamItem {
    /// Octets came that completed no event: half of one, or a keep-alive comment. A sign of life.
    Bytes,
    /// An event, and a sign of life as well.
    Frame(Frame),
    /// Nothing comes after it. Proves nothing about the task.
    End(EndOfStream),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOfStream {
    /// The peer ended the stream between two events.
    Clean,
    /// The peer ended it within an event, which is dropped.
    Incomplete,
    /// The peer ended it, and what it sent was no event stream.
    NotEvents,
    /// The connection broke.
    Reset,
    /// The connection died without a word: no answer to pings, or the system gave it up.
    TimedOut,
    /// The peer broke one of our limits, and we closed it.
    Limit(SseFault),
}

impl EndOfStream {
    pub fn code(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Incomplete => "incomplete",
            Self::NotEvents => "not_events",
            Self::Reset => "reset",
            Self::TimedOut => "timed_out",
            Self::Limit(fault) => fault.code(),
        }
    }
}

/// An open stream. Holds one network chunk's events at most.
pub struct Subscription {
    request_id: u64,
    ready: VecDeque<Frame>,
    source: Source,
}

enum Source {
    Live(Box<Live>),
    /// Ended; said so after what is ready, and again to whoever asks again.
    Over(EndOfStream),
}

struct Live {
    /// The answer without its head: header values hold on to the buffer that they were read into.
    body: BoxStream<'static, reqwest::Result<Bytes>>,
    decoder: Decoder,
    /// Given back when the stream ends.
    _place: LanePlace,
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("request_id", &self.request_id).finish_non_exhaustive()
    }
}

impl Subscription {
    pub(super) fn live(response: Response, decoder: Decoder, place: LanePlace, request_id: u64) -> Self {
        let live = Live { body: response.bytes_stream().boxed(), decoder, _place: place };
        Self { request_id, ready: VecDeque::new(), source: Source::Live(Box::new(live)) }
    }

    /// A plain JSON answer where a stream was asked for: one event, then the end.
    pub(super) fn snapshot(document: &str, request_id: u64) -> Self {
        let frame = Frame { event: "message".into(), data: document.into(), id: "".into(), lossy: false };
        Self { request_id, ready: VecDeque::from([frame]), source: Source::Over(EndOfStream::Clean) }
    }

    /// The id that JSON-RPC frames answer; HTTP+JSON frames carry none.
    pub fn request_id(&self) -> u64 {
        self.request_id
    }

    /// The next event, sign of life or end. Safe to drop while waiting: nothing is lost.
    pub async fn next(&mut self) -> StreamItem {
        if let Some(frame) = self.ready.pop_front() {
            return StreamItem::Frame(frame);
        }
        let live = match &mut self.source {
            Source::Over(end) => return StreamItem::End(*end),
            Source::Live(live) => live,
        };
        let end = match live.body.next().await {
            Some(Ok(chunk)) => match live.read(&chunk, &mut self.ready) {
                Ok(()) => {
                    return match self.ready.pop_front() {
                        Some(frame) => StreamItem::Frame(frame),
                        None => StreamItem::Bytes,
                    };
                }
                Err(fault) => EndOfStream::Limit(fault),
            },
            None => match live.decoder.finish() {
                _ if live.decoder.is_something_else() => EndOfStream::NotEvents,
                StreamEnd::Clean => EndOfStream::Clean,
                StreamEnd::IncompleteDiscarded => EndOfStream::Incomplete,
            },
            Some(Err(error)) => match cause_of(&error) {
                Unreachable::TimedOut => EndOfStream::TimedOut,
                _ if error.is_timeout() => EndOfStream::TimedOut,
                _ => EndOfStream::Reset,
            },
        };
        self.source = Source::Over(end);
        // Events that were whole before the end are handed out first.
        match self.ready.pop_front() {
            Some(frame) => StreamItem::Frame(frame),
            None => StreamItem::End(end),
        }
    }
}

impl Live {
    fn read(&mut self, chunk: &Bytes, ready: &mut VecDeque<Frame>) -> Result<(), SseFault> {
        self.decoder.push(chunk, &mut |event: Event<'_>| {
            ready.push_back(Frame {
                event: event.event.into(),
                data: event.data.into(),
                id: event.id.into(),
                lossy: event.lossy,
            });
        })
    }
}
