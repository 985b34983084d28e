//! Connections: accepting them, how many at once and how long each, and who goes when there are too many.
//!
//! hyper's own connection builder and not `axum::serve`, which has no timers and no cap. The timers are ours:
//! hyper's one timer for heads would have to be as short for a connection that rests between two callbacks,
//! and a sender that uses it again just then loses its callback.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::Inbox;
use super::answer::{Answer, Body};
use super::peer::{Peer, Watched};
use crate::guarded::guarded;
use crate::listen::Bound;

/// After accepting failed, as it does without descriptors: the listener must live to see them freed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long open answers may take after a stop was asked for.
const STOP_WITHIN: Duration = Duration::from_millis(1_500);

/// How long, and over how many octets, a connection that we end waits for its peer to read the answer.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_OCTETS: usize = 8 * 1024 * 1024;

/// What one peer may take, and all of them.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub connections: usize,
    /// From the connection to its first octet.
    pub first_byte: Duration,
    /// From there to the end of the head.
    pub head: Duration,
    /// From the head to the answer; the body has a limit of its own within.
    pub request: Duration,
    /// Between two requests.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1_024,
            first_byte: Duration::from_secs(5),
            head: Duration::from_secs(5),
            request: Duration::from_secs(20),
            idle: Duration::from_secs(30),
        }
    }
}

/// The connections there are. Those without a proof so far are in order of their coming.
#[derive(Default)]
struct Places {
    state: Mutex<PlacesState>,
    freed: Notify,
}

#[derive(Default)]
struct PlacesState {
    open: usize,
    next: u64,
    unproven: BTreeMap<u64, Arc<Peer>>,
}

impl Places {
    fn state(&self) -> std::sync::MutexGuard<'_, PlacesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when a newcomer has a place, be it that of another.
    async fn room(&self, most: usize) {
        loop {
            let freed = self.freed.notified();
            {
                let state = self.state();
                if state.open < most || !state.unproven.is_empty() {
                    return;
                }
            }
            freed.await;
        }
    }

    /// A place for a newcomer; where there is none, that of the oldest who has proved nothing so far.
    fn take(&self, peer: &Arc<Peer>, most: usize) -> u64 {
        let mut state = self.state();
        if state.open >= most
            && let Some((_, oldest)) = state.unproven.pop_first()
        {
            oldest.cut.notify_one();
        }
        state.open += 1;
        state.next += 1;
        let number = state.next;
        state.unproven.insert(number, Arc::clone(peer));
        number
    }

    fn give_back(&self, number: u64) {
        let mut state = self.state();
        state.open -= 1;
        state.unproven.remove(&number);
        drop(state);
        self.freed.notify_one();
    }

    fn note_proven(&self, number: u64) {
        self.state().unproven.remove(&number);
    }
}

impl Inbox {
    /// Serves until `stop` turns true or its sender is gone, then closes within two seconds.
    pub(super) async fn serve(&self, bound: Bound, limits: Limits, mut stop: watch::Receiver<bool>) {
        let listener = bound.into_listener();
        let places = Arc::new(Places::default());
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = stopped(&mut stop) => break,
                Some(_ended) = connections.join_next() => continue,
                accepted = accept(&listener, &places, limits) => accepted,
            };
            if let Some(socket) = accepted {
                let peer = Peer::new(limits);
                let number = places.take(&peer, limits.connections);
                let serve = self.clone().serve_one(socket, peer, Arc::clone(&places), number, stop.clone());
                connections.spawn(serve);
            }
        }
        drop(listener);
        let ended = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_WITHIN, ended).await.is_err() {
            tracing::info!(left = connections.len(), "callbacks under way were cut at the stop");
            connections.shutdown().await;
        }
    }

    async fn serve_one(
        self,
        socket: TcpStream,
        peer: Arc<Peer>,
        places: Arc<Places>,
        number: u64,
        mut stop: watch::Receiver<bool>,
    ) {
        let _place = Place { places: Arc::clone(&places), number };
        // Without it answers are slower, not wrong.
        let _ = socket.set_nodelay(true);
        let service = service_fn(|request: Request<Incoming>| {
            let (inbox, peer, places) = (self.clone(), Arc::clone(&peer), Arc::clone(&places));
            Box::pin(async move {
                let framed = peer.begin_request();
                let proven = || {
                    if peer.set_proven() {
                        places.note_proven(number);
                    }
                };
                let answer = guarded(inbox.answer(request, framed, proven)).await;
                peer.end_request();
                let answer = answer.unwrap_or_else(|_| {
                    tracing::error!("a callback's handler panicked");
                    Answer::PANICKED
                });
                Ok::<Response<Body>, std::convert::Infallible>(
                    answer.closing_if(framed.chunked).into_response(),
                )
            })
        });
        let mut connection = hyper::server::conn::http1::Builder::new()
            .header_read_timeout(None)
            .half_close(true)
            .max_headers(super::head::MAX_HEADERS)
            .max_buf_size(super::head::MAX_HEAD + 32 * 1024)
            .serve_connection(TokioIo::new(Watched { socket, peer: Arc::clone(&peer) }), service);
        let served = tokio::select! {
            served = poll_fn(|cx| connection.poll_without_shutdown(cx)) => served,
            () = overdue(&peer) => return,
            () = peer.cut.notified() => return,
            () = stopped(&mut stop) => {
                std::pin::Pin::new(&mut connection).graceful_shutdown();
                poll_fn(|cx| connection.poll_without_shutdown(cx)).await
            }
        };
        if let Err(error) = served {
            // The peer left, or spoke no HTTP: its affair.
            tracing::debug!("a connection to the inbox ended early: {error}");
        }
        linger(connection.into_parts().io.into_inner().socket).await;
    }
}

/// Given back however the connection ends.
struct Place {
    places: Arc<Places>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.give_back(self.number);
    }
}

/// The next connection, once there is a place for it.
async fn accept(listener: &TcpListener, places: &Places, limits: Limits) -> Option<TcpStream> {
    places.room(limits.connections).await;
    match listener.accept().await {
        Ok((socket, _)) => Some(socket),
        Err(error) => {
            tracing::warn!("failed to accept a connection to the inbox: {error}");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// Closes so that the peer can read its answer: a socket that is closed over unread octets is reset, and a reset
/// takes with it what the peer has not read yet.
async fn linger(mut socket: TcpStream) {
    let close = async {
        socket.shutdown().await?;
        let mut scratch = [0; 8 * 1024];
        let mut left = LINGER_OCTETS;
        while left > 0 {
            match socket.read(&mut scratch).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        Ok::<_, std::io::Error>(())
    };
    // Gone already, or too slow: then without its answer.
    let _ = tokio::time::timeout(LINGER, close).await;
}

/// A stop was asked for, or nobody is left to ask.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Returns once the peer has taken longer than it may.
async fn overdue(peer: &Peer) {
    loop {
        let deadline = peer.deadline();
        if Instant::now() >= deadline {
            return;
        }
        tokio::time::sleep_until(deadline.into()).await;
    }
}
