//! Names looked up by the system, so that its VPN and split DNS hold.

use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;

/// Lookups at one time.
const AT_ONCE: usize = 8;
const LIMIT: Duration = Duration::from_secs(5);

/// Why a lookup said nothing about a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupFault {
    /// No such name, or the resolver did not say.
    Failed,
    TimedOut,
}

/// Looks names up. The answers are judged by the caller.
pub trait Resolve: Send + Sync {
    fn lookup<'a>(&'a self, name: &'a str, port: u16) -> BoxFuture<'a, Result<Vec<IpAddr>, LookupFault>>;
}

/// The system's resolver.
pub struct SystemResolver {
    at_once: Arc<Semaphore>,
}

impl SystemResolver {
    pub fn new() -> Self {
        Self { at_once: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new()
    }
}

impl Resolve for SystemResolver {
    fn lookup<'a>(&'a self, name: &'a str, port: u16) -> BoxFuture<'a, Result<Vec<IpAddr>, LookupFault>> {
        let at_once = Arc::clone(&self.at_once);
        let name = name.to_owned();
        async move {
            let answered = tokio::time::timeout(LIMIT, async {
                let turn = at_once.acquire_owned().await.map_err(|_| LookupFault::Failed)?;
                let looked_up = tokio::task::spawn_blocking(move || {
                    // Held until the system's resolver returns: one that hangs costs eight threads, not more.
                    let _turn = turn;
                    let found = (name.as_str(), port).to_socket_addrs();
                    found.map(|found| found.map(|address| address.ip()).collect::<Vec<_>>())
                });
                looked_up.await.map_err(|_| LookupFault::Failed)?.map_err(|_| LookupFault::Failed)
            });
            answered.await.unwrap_or(Err(LookupFault::TimedOut))
        }
        .boxed()
    }
}
