//! A small honest A2A agent: the embedded default of Taskbell, named `demo`, and the world of its
//! scenario tests.
//!
//! It speaks 1.0 and 0.3 over JSON-RPC at `/` and HTTP+JSON of 1.0 under `/rest`, streams, asks, calls
//! back, and does what the words of a message say ([`script`]). It does no work and is no server for the
//! internet: it binds where it is told, judges no callback target and speaks no TLS.
//!
//! | noun | room |
//! |---|---|
//! | extensions in the card | `extensions` |
//! | what a task does | [`script`], `presets` |
//! | one task, all tasks | `live_task`, `world` |
//! | event streams | `stream` |
//! | callbacks | `push` |
//! | connections, JSON-RPC, HTTP+JSON | `http`, `rpc`, `rest` |
//! | what survives a restart | `state_file` |

mod card;
mod counters;
mod extensions;
mod http;
mod live_task;
mod presets;
mod push;
mod rest;
mod rpc;
pub mod script;
mod state_file;
mod stream;
mod world;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use taskbell_core::credential::Secret;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use counters::Counters;
pub use extensions::DeclaredExtension;
use extensions::Extensions;
use http::Site;
pub use presets::Presets;
use state_file::Journal;
use world::World;

/// How an agent is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// Port 0 picks a free one.
    pub addr: SocketAddr,
    /// Bearer tokens that are let in; none lets everybody in. Each place in the list is a user of its
    /// own, who sees no other user's tasks and keeps them when the token at that place is replaced.
    pub tokens: Vec<Secret>,
    /// Where tasks are kept, so that a restart goes on with them. Without it a restart forgets.
    pub state: Option<PathBuf>,
    /// `HOST` or `HOST:PORT` as the card names it, where that is not the address itself.
    pub advertised_host: Option<String>,
    /// Scripts that go before a message's own words.
    pub presets: Presets,
    pub extensions: Vec<DeclaredExtension>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            tokens: Vec::new(),
            state: None,
            advertised_host: None,
            presets: Presets::default(),
            extensions: Vec::new(),
        }
    }
}

/// Why an agent did not start.
#[derive(Debug, thiserror::Error)]
pub enum DemoAgentError {
    #[error("failed to listen at {addr}")]
    Listen { addr: SocketAddr, source: io::Error },
    #[error("failed to read or write the state file {path}")]
    State { path: PathBuf, source: io::Error },
}

/// A running agent. Dropping it stops it at once; [`DemoAgent::stop`] also waits until it is gone and
/// its last changes are kept.
pub struct DemoAgent {
    local_addr: SocketAddr,
    base_url: String,
    world: Arc<World>,
    journal: Option<(Arc<Journal>, PathBuf)>,
    stop: watch::Sender<bool>,
    server: Option<JoinHandle<()>>,
    writer: Option<JoinHandle<()>>,
}

/// Starts an agent within the current Tokio runtime.
///
/// # Errors
/// The address is taken or not of this machine; the state file cannot be read or written.
pub async fn start(options: Options) -> Result<DemoAgent, DemoAgentError> {
    let addr = options.addr;
    let listener = listen(addr).map_err(|source| DemoAgentError::Listen { addr, source })?;
    let local_addr = listener.local_addr().map_err(|source| DemoAgentError::Listen { addr, source })?;
    let (journal, kept) = match options.state {
        None => (None, Vec::new()),
        Some(path) => {
            let opening = path.clone();
            let opened = tokio::task::spawn_blocking(move || Journal::open(&opening)).await;
            let opened = opened.unwrap_or_else(|error| Err(io::Error::other(error)));
            match opened {
                Ok((journal, kept)) => (Some((journal, path)), kept),
                Err(source) => return Err(DemoAgentError::State { path, source }),
            }
        }
    };
    let base_url = match options.advertised_host {
        Some(host) => format!("http://{host}"),
        None => format!("http://{local_addr}"),
    };
    let kept_in = journal.as_ref().map(|(journal, _)| Arc::clone(journal));
    let world = World::new(options.tokens, options.presets, kept_in);
    world.restore(kept);
    let writer = journal.as_ref().map(|(journal, _)| {
        let all = Arc::clone(&world);
        tokio::spawn(Arc::clone(journal).run(move || all.keep()))
    });
    let started = jiff::fmt::rfc2822::DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&jiff::Timestamp::now())
        .unwrap_or_default();
    let extensions = Extensions(options.extensions);
    let site = Arc::new(Site { world: Arc::clone(&world), base_url: base_url.clone(), started, extensions });
    let (stop, stopped) = watch::channel(false);
    let server = tokio::spawn(http::serve(listener, site, stopped));
    Ok(DemoAgent { local_addr, base_url, world, journal, stop, server: Some(server), writer })
}

/// SO_REUSEADDR, so that a restarted agent gets its port back while old connections linger.
fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // On Windows the option would let two programs share the port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(4096)
}

impl DemoAgent {
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// `http://HOST:PORT` without a slash at its end: what a user adds as an agent.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Replaces the tokens: an old one is refused from the next request on. Streams that are open go on.
    pub fn set_tokens(&self, tokens: Vec<String>) {
        self.world.set_tokens(tokens.into_iter().map(Secret::new).collect());
    }

    pub fn counters(&self) -> &Counters {
        &self.world.counters
    }

    /// Stops at once, as if the process had gone: connections break, tasks halt where they are. Returns
    /// when the port is free and, with a state file, everything is in it.
    ///
    /// # Errors
    /// The last changes could not be written.
    pub async fn stop(mut self) -> Result<(), DemoAgentError> {
        self.halt();
        if let Some(server) = self.server.take()
            && let Err(error) = server.await
        {
            tracing::warn!(%error, "the demo agent's server ended badly");
        }
        if let Some(writer) = self.writer.take() {
            writer.abort();
        }
        if let Some((journal, path)) = self.journal.take() {
            let saved = tokio::task::spawn_blocking(move || journal.save()).await;
            let saved = saved.unwrap_or_else(|error| Err(io::Error::other(error)));
            saved.map_err(|source| DemoAgentError::State { path, source })?;
        }
        Ok(())
    }

    fn halt(&self) {
        self.stop.send_replace(true);
        self.world.stop();
    }
}

impl Drop for DemoAgent {
    fn drop(&mut self) {
        self.halt();
        if let Some(writer) = self.writer.take() {
            writer.abort();
        }
    }
}
