//! The loopback listener of gateway, API and page: binding, the accept loop, limits and a clean stop.
//!
//! hyper's own connection builder and not `axum::serve`, which has no timers and no cap. What is served is
//! the router's matter.

mod holder;
mod stall;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

pub use holder::Holder;
use stall::Stalling;

/// Where the listener stands if nothing else is asked for.
pub const DEFAULT_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7420);

/// How long open answers may take after a stop was asked for.
const STOP_WITHIN: Duration = Duration::from_millis(1_500);

/// After accepting failed, as it does without descriptors: the listener must live to see them freed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("{address} is taken by {}", holder_text(.holder.as_ref()))]
    Taken { address: SocketAddr, holder: Option<Holder>, source: io::Error },
    /// Loopback is weak enough as a boundary; anything wider is none.
    #[error("{address} is not an address of this machine alone: use 127.0.0.1")]
    NotLoopback { address: SocketAddr },
    #[error("failed to listen on {address}")]
    Io { address: SocketAddr, source: io::Error },
}

impl ListenError {
    /// The stable word that scripts match on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Taken { .. } => "port_taken",
            Self::NotLoopback { .. } => "not_loopback",
            Self::Io { .. } => "listen_failed",
        }
    }
}

fn holder_text(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), Holder::to_string)
}

/// What one peer may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at once; more wait to be accepted.
    pub connections: usize,
    /// From the connection, or the end of the last answer, to the end of a request's head.
    pub head: Duration,
    /// Octets buffered for one connection each way.
    pub buffer: usize,
    /// How long a peer may take nothing of what is sent to it. It never reads, and would hold its place for ever.
    pub stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // A client of the gateway keeps one for each task that it listens to.
        Self {
            connections: 4_096,
            head: Duration::from_secs(10),
            buffer: 64 * 1024,
            stall: Duration::from_secs(60),
        }
    }
}

/// A bound port that serves nothing yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

impl Bound {
    /// Binds a loopback address; port 0 picks a free one.
    /// Errors: [`ListenError::Taken`] names the holder where the system tells it.
    pub async fn bind(address: SocketAddr) -> Result<Self, ListenError> {
        if !address.ip().is_loopback() {
            return Err(ListenError::NotLoopback { address });
        }
        let bound = TcpListener::bind(address).await.and_then(|listener| {
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        });
        match bound {
            Ok(bound) => Ok(bound),
            Err(source) if source.kind() == io::ErrorKind::AddrInUse => {
                let holder = tokio::task::spawn_blocking(move || holder::of_port(address.port())).await;
                Err(ListenError::Taken { address, holder: holder.ok().flatten(), source })
            }
            Err(source) => Err(ListenError::Io { address, source }),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// For another way of serving.
    pub(crate) fn into_listener(self) -> TcpListener {
        self.listener
    }

    /// Serves until `stop` turns true or its sender is gone, then closes within two seconds: answers under
    /// way are finished where they can be, streams end by themselves.
    pub async fn serve(self, router: Router, limits: Limits, mut stop: watch::Receiver<bool>) {
        let service = TowerToHyperService::new(router);
        let permits = Arc::new(Semaphore::new(limits.connections));
        let mut connections = JoinSet::new();
        loop {
            let accepted = async {
                let permit = Arc::clone(&permits).acquire_owned().await.expect("never closed");
                self.listener.accept().await.map(|(socket, _)| (socket, permit))
            };
            tokio::select! {
                () = stopped(&mut stop) => break,
                Some(_ended) = connections.join_next() => (),
                accepted = accepted => match accepted {
                    Ok((socket, permit)) => {
                        let connection = serve_one(socket, service.clone(), limits.clone(), stop.clone());
                        connections.spawn(async move {
                            connection.await;
                            drop(permit);
                        });
                    }
                    Err(error) => {
                        tracing::warn!(address = %self.address, "failed to accept a connection: {error}");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        drop(self.listener);
        let ended = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_WITHIN, ended).await.is_err() {
            tracing::info!(left = connections.len(), "connections were cut at the stop");
            connections.shutdown().await;
        }
    }
}

/// A stop was asked for, or nobody is left to ask.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn serve_one(
    socket: TcpStream,
    service: TowerToHyperService<Router>,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) {
    // Small answers and single events must not wait for more. Without it they are slower, not wrong.
    let _ = socket.set_nodelay(true);
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_headers(64)
        .max_buf_size(limits.buffer)
        .serve_connection(TokioIo::new(Stalling::new(socket, limits.stall)), service);
    let mut connection = pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        // The peer left, was too slow, or spoke no HTTP: its affair.
        tracing::debug!("a connection ended early: {error}");
    }
}
