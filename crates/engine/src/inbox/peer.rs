//! One connection of a stranger: what it is doing, and until when it may.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::door::Limits;
use super::framing::{Framed, Framing};
use crate::rehearsal::{self, Place};

const WAITING: u8 = 0;
const HEAD: u8 = 1;
const REQUEST: u8 = 2;

pub(super) struct Peer {
    limits: Limits,
    began: Instant,
    phase: AtomicU8,
    /// Milliseconds after `began`.
    deadline_ms: AtomicU64,
    /// It has shown a valid proof: it is not the first to go when places are short.
    proven: AtomicBool,
    framing: Mutex<Framing>,
    pub cut: Notify,
}

impl Peer {
    pub fn new(limits: Limits) -> Arc<Self> {
        let peer = Self {
            began: Instant::now(),
            phase: AtomicU8::new(WAITING),
            deadline_ms: AtomicU64::new(0),
            proven: AtomicBool::new(false),
            framing: Mutex::default(),
            cut: Notify::new(),
            limits,
        };
        peer.due_in(peer.limits.first_byte);
        Arc::new(peer)
    }

    fn due_in(&self, limit: Duration) {
        let due = self.began.elapsed() + limit;
        self.deadline_ms.store(u64::try_from(due.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// When it is cut if nothing changes until then.
    pub fn deadline(&self) -> Instant {
        self.began + Duration::from_millis(self.deadline_ms.load(Ordering::Relaxed))
    }

    fn note_octets(&self, octets: &[u8]) {
        if self.phase.compare_exchange(WAITING, HEAD, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.due_in(self.limits.head);
        }
        self.framing.lock().unwrap_or_else(PoisonError::into_inner).take(octets);
    }

    /// A head was read to its end.
    pub fn begin_request(&self) -> Framed {
        self.phase.store(REQUEST, Ordering::Relaxed);
        self.due_in(self.limits.request);
        self.framing.lock().unwrap_or_else(PoisonError::into_inner).next()
    }

    /// Its answer is on the way; the next request may follow.
    pub fn end_request(&self) {
        self.phase.store(WAITING, Ordering::Relaxed);
        self.due_in(self.limits.idle);
    }

    /// True: for the first time.
    pub fn set_proven(&self) -> bool {
        !self.proven.swap(true, Ordering::Relaxed)
    }
}

/// The socket, watched.
pub(super) struct Watched {
    pub socket: TcpStream,
    pub peer: Arc<Peer>,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.socket).poll_read(cx, buffer);
        let read = &buffer.filled()[before..];
        if !read.is_empty() {
            self.peer.note_octets(read);
        }
        polled
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, octets);
        if written.is_ready() && octets.starts_with(b"HTTP/1.1 200") {
            rehearsal::reach(Place::AfterAnswer);
        }
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, slices);
        if written.is_ready() && slices.first().is_some_and(|slice| slice.starts_with(b"HTTP/1.1 200")) {
            rehearsal::reach(Place::AfterAnswer);
        }
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
