//! Event streams: what a task publishes, who listens, and the body that carries it.
//!
//! A listener has a bounded queue. One that does not keep up is cut off, so that it never holds up the
//! task. A body that ends well ends its chunks; one that is cut breaks the connection.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use serde_json::{Value, json};
use taskbell_core::dialect::errors::{ErrorAnswer, ErrorKind};
use taskbell_core::dialect::v1::Extras;
use taskbell_core::dialect::{Dialect, v1, v03};
use taskbell_core::json::write_line;
use taskbell_core::task::StreamEvent;
use tokio::sync::mpsc;
use tokio::time::Interval;

use crate::counters::OpenStream;

/// How many events may wait for one listener.
const QUEUE: usize = 256;
/// How often a comment shows that the connection lives.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Events are put together into one write up to this size.
const WRITE_SIZE: usize = 16 * 1024;

/// What happened, written once for all who listen.
pub struct Published {
    what: What,
    /// The agent's turn is over: those who listen to a turn are done.
    pub turn_over: bool,
    /// The task is over: everybody is done.
    pub task_over: bool,
    /// 0.3's `final` for those who listen to a turn.
    final_on_turn: bool,
    v1: OnceLock<String>,
    v03: OnceLock<String>,
    v03_turn: OnceLock<String>,
}

enum What {
    Event(Box<StreamEvent>),
    Crash(ErrorAnswer),
}

impl Published {
    pub fn new(event: StreamEvent) -> Self {
        let (turn_over, final_on_turn) = (false, false);
        let task_over = matches!(&event, StreamEvent::Status(update) if update.status.state.is_terminal());
        Self::of(What::Event(Box::new(event)), turn_over, task_over, final_on_turn)
    }

    /// An event after which the agent waits for somebody.
    pub fn turn_end(event: StreamEvent, final_on_turn: bool) -> Self {
        Self::of(What::Event(Box::new(event)), true, false, final_on_turn)
    }

    /// The agent crashed: an error in place of an event, and the streams end.
    pub fn crash() -> Self {
        let answer = ErrorAnswer::new(ErrorKind::Internal, "the agent crashed");
        Self::of(What::Crash(answer), true, true, true)
    }

    fn of(what: What, turn_over: bool, task_over: bool, final_on_turn: bool) -> Self {
        Self {
            what,
            turn_over,
            task_over,
            final_on_turn,
            v1: OnceLock::new(),
            v03: OnceLock::new(),
            v03_turn: OnceLock::new(),
        }
    }

    /// The event as 1.0 writes it, on one line.
    pub fn v1_line(&self) -> &str {
        self.v1.get_or_init(|| match &self.what {
            What::Event(event) => write_line(&v1::stream_event(event, Extras::Drop)),
            What::Crash(answer) => write_line(&answer.json_rpc(Dialect::V1)),
        })
    }

    fn v03_line(&self, until: Until) -> &str {
        let is_final = self.task_over || (self.turn_over && until == Until::TurnEnd && self.final_on_turn);
        let place = if is_final { &self.v03_turn } else { &self.v03 };
        place.get_or_init(|| match &self.what {
            What::Event(event) => {
                let mut value = v03::stream_event(event, Extras::Drop);
                if let Some(flag) = value.get_mut("final") {
                    *flag = Value::Bool(is_final);
                }
                write_line(&value)
            }
            What::Crash(answer) => write_line(&answer.json_rpc(Dialect::V03)),
        })
    }
}

/// How long somebody listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// A send's stream: until the agent waits for somebody.
    TurnEnd,
    /// A subscription: across questions and replies.
    TaskEnd,
}

/// A task's end of one listener's queue.
pub struct Listener {
    queue: mpsc::Sender<Arc<Published>>,
    ended_well: Arc<AtomicBool>,
    until: Until,
}

/// A listener's end of the queue.
pub struct Subscription {
    queue: mpsc::Receiver<Arc<Published>>,
    ended_well: Arc<AtomicBool>,
    until: Until,
}

pub fn listen(until: Until) -> (Listener, Subscription) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let ended_well = Arc::new(AtomicBool::new(false));
    let subscription = Subscription { queue: receiver, ended_well: Arc::clone(&ended_well), until };
    (Listener { queue: sender, ended_well, until }, subscription)
}

impl Listener {
    /// Hands an event over. False where this listener is done, gone or too slow: drop it.
    pub fn hear(&self, published: &Arc<Published>) -> bool {
        if self.queue.try_send(Arc::clone(published)).is_err() {
            return false;
        }
        let done = published.task_over || (published.turn_over && self.until == Until::TurnEnd);
        if done {
            self.ended_well.store(true, Ordering::Release);
        }
        !done
    }
}

/// What stands around each event.
#[derive(Clone)]
pub enum Carrier {
    /// A JSON-RPC response with the request's id.
    JsonRpc { dialect: Dialect, id: Value },
    /// The bare 1.0 event.
    Rest,
}

impl Carrier {
    fn dialect(&self) -> Dialect {
        match self {
            Self::JsonRpc { dialect, .. } => *dialect,
            Self::Rest => Dialect::V1,
        }
    }

    /// An event of this stream alone, such as its first.
    fn frame_of(&self, event: &StreamEvent) -> Vec<u8> {
        let line = match self.dialect() {
            Dialect::V1 => write_line(&v1::stream_event(event, Extras::Drop)),
            Dialect::V03 => write_line(&v03::stream_event(event, Extras::Drop)),
        };
        let mut out = Vec::with_capacity(line.len() + 80);
        self.write(&mut out, "result", &line);
        out
    }

    fn write_published(&self, out: &mut Vec<u8>, published: &Published, until: Until) {
        match (&published.what, self) {
            (What::Crash(answer), Self::Rest) => {
                out.extend_from_slice(b"data: ");
                out.extend_from_slice(write_line(&answer.rest()).as_bytes());
                out.extend_from_slice(b"\n\n");
            }
            (What::Crash(_), Self::JsonRpc { .. }) => {
                self.write(out, "error", self.line(published, until));
            }
            (What::Event(_), _) => self.write(out, "result", self.line(published, until)),
        }
    }

    fn line<'p>(&self, published: &'p Published, until: Until) -> &'p str {
        match self.dialect() {
            Dialect::V1 => published.v1_line(),
            Dialect::V03 => published.v03_line(until),
        }
    }

    fn write(&self, out: &mut Vec<u8>, member: &str, line: &str) {
        out.extend_from_slice(b"data: ");
        match self {
            Self::Rest => out.extend_from_slice(line.as_bytes()),
            Self::JsonRpc { id, .. } => {
                let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"{member}\":", write_line(&json!(id)));
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(line.as_bytes());
                out.push(b'}');
            }
        }
        out.extend_from_slice(b"\n\n");
    }
}

/// The stream was broken off on purpose; hyper closes the connection without ending the body.
#[derive(Debug, thiserror::Error)]
#[error("event stream cut")]
pub struct StreamCut;

/// The body of any response of this agent.
pub enum AgentBody {
    Whole(Option<Bytes>),
    Events(Box<EventBody>),
}

pub struct EventBody {
    carrier: Carrier,
    first: Option<Vec<u8>>,
    /// None: nothing follows the first event.
    events: Option<Subscription>,
    keep_alive: Interval,
    /// What was written before a cut is flushed before the connection breaks.
    flushed_before_cut: bool,
    _open: OpenStream,
}

impl EventBody {
    pub fn new(
        carrier: Carrier,
        first: Option<&StreamEvent>,
        events: Option<Subscription>,
        open: OpenStream,
    ) -> Self {
        let start = tokio::time::Instant::now() + KEEP_ALIVE;
        Self {
            first: first.map(|event| carrier.frame_of(event)),
            carrier,
            events,
            keep_alive: tokio::time::interval_at(start, KEEP_ALIVE),
            flushed_before_cut: false,
            _open: open,
        }
    }

    fn poll_events(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamCut>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first.into())));
        }
        let Some(events) = &mut self.events else { return Poll::Ready(None) };
        match events.queue.poll_recv(cx) {
            Poll::Ready(Some(published)) => {
                let mut out = Vec::new();
                self.carrier.write_published(&mut out, &published, events.until);
                while out.len() < WRITE_SIZE
                    && let Ok(published) = events.queue.try_recv()
                {
                    self.carrier.write_published(&mut out, &published, events.until);
                }
                Poll::Ready(Some(Ok(out.into())))
            }
            Poll::Ready(None) if events.ended_well.load(Ordering::Acquire) => Poll::Ready(None),
            Poll::Ready(None) if self.flushed_before_cut => Poll::Ready(Some(Err(StreamCut))),
            Poll::Ready(None) => {
                self.flushed_before_cut = true;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Pending if self.keep_alive.poll_tick(cx).is_ready() => {
                // A ready interval has not asked to be woken again; the next poll does.
                cx.waker().wake_by_ref();
                Poll::Ready(Some(Ok(Bytes::from_static(b": keep-alive\n\n"))))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Body for AgentBody {
    type Data = Bytes;
    type Error = StreamCut;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamCut>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => {
                events.poll_events(cx).map(|next| next.map(|octets| octets.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters;

    async fn next(body: &mut AgentBody) -> Option<Result<Bytes, StreamCut>> {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        frame.map(|frame| frame.map(|frame| frame.into_data().unwrap_or_default()))
    }

    fn quiet_stream() -> (Listener, AgentBody) {
        let (listener, subscription) = listen(Until::TaskEnd);
        let open = OpenStream::new(&Arc::new(Counters::default()));
        let body = EventBody::new(Carrier::Rest, None, Some(subscription), open);
        (listener, AgentBody::Events(Box::new(body)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_says_every_fifteen_seconds_that_it_lives() {
        let (_listener, mut body) = quiet_stream();
        let started = tokio::time::Instant::now();
        for beat in 1..=3 {
            let octets = next(&mut body).await.unwrap().unwrap();
            assert_eq!(octets, Bytes::from_static(b": keep-alive\n\n"));
            assert_eq!(started.elapsed().as_secs(), KEEP_ALIVE.as_secs() * beat);
        }
    }

    #[tokio::test]
    async fn a_stream_whose_task_drops_it_without_an_end_breaks() {
        let (listener, mut body) = quiet_stream();
        drop(listener);
        assert!(matches!(next(&mut body).await, Some(Err(StreamCut))));
    }
}
