//! The one way to a callback address: looked up, judged, connected to, checked, called once.
//!
//! Each attempt stands alone: no pool, no proxy, no redirect, no cookie. Which addresses may be called is
//! decided in `taskbell_core::target`; here it is asked at every stage, so that a name that leads elsewhere
//! tomorrow is judged tomorrow.
//!
//! | stage | room |
//! |---|---|
//! | the name looked up | [`resolve`] |
//! | this machine and its neighbours | [`surroundings`] |
//! | the connection | [`connect`] |
//! | TLS, request, final status | [`exchange`] |

pub mod connect;
mod exchange;
pub mod resolve;
pub mod surroundings;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::HeaderMap;
use rustls::pki_types::ServerName;
use taskbell_core::delivery::{ATTEMPT_LASTS, Failure, Outcome};
use taskbell_core::target::answers::{is_vetted, judge_answers, judge_literal};
use taskbell_core::target::{AnswerFault, CallbackTarget, LoopbackTarget, TargetHost};
use url::Url;

use connect::{Connect, Connected, SystemConnector};
use resolve::{LookupFault, Resolve, SystemResolver};
use surroundings::{Machine, SystemMachine};

/// Addresses of one name that are tried.
const ADDRESSES: usize = 3;
const CONNECT_ONE: Duration = Duration::from_secs(5);
const CONNECT_ALL: Duration = Duration::from_secs(10);
const TLS_LASTS: Duration = Duration::from_secs(5);

/// Where a callback goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    Public(CallbackTarget),
    /// Approved by the user for the client that registered it.
    Loopback(LoopbackTarget),
}

impl Destination {
    pub fn url(&self) -> &Url {
        match self {
            Self::Public(target) => target.url(),
            Self::Loopback(target) => target.url(),
        }
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        match self {
            Self::Public(target) => target.origin(),
            Self::Loopback(target) => target.origin(),
        }
    }
}

/// One request to send.
#[derive(Debug, Clone)]
pub struct Callback {
    pub destination: Destination,
    /// Besides those of the connection; secrets among them are marked sensitive.
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempted {
    pub result: AttemptResult,
    /// Whom the request went to, or the last one that was tried.
    pub address: Option<IpAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptResult {
    Done(Outcome),
    /// It says nothing about the receiver and uses up no try.
    NotTried(NotTried),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTried {
    /// No network interface of this machine is up.
    Offline,
    /// This process has no descriptor left.
    NoDescriptors,
}

impl NotTried {
    pub fn code(self) -> &'static str {
        match self {
            Self::Offline => "offline",
            Self::NoDescriptors => "no_descriptors",
        }
    }
}

/// What a lookup at registration says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Public addresses.
    Fine,
    /// It does not resolve now; judged again at every attempt.
    Unresolved,
}

/// The client. Clones share it.
#[derive(Clone)]
pub struct Outbound(Arc<Inner>);

struct Inner {
    resolver: Box<dyn Resolve>,
    connector: Box<dyn Connect>,
    machine: Box<dyn Machine>,
    tls: Arc<rustls::ClientConfig>,
}

impl Outbound {
    /// With the system's resolver, sockets and trust. There is no other way to make one outside of tests.
    pub fn new() -> Result<Self, rustls::Error> {
        let (tls, problem) = crate::tls::client_config()?;
        if let Some(problem) = problem {
            tracing::warn!(problem, "no certificate authority is trusted; callbacks over https will fail");
        }
        Ok(Self::with(SystemResolver::new(), SystemConnector, SystemMachine, tls))
    }

    fn with(
        resolver: impl Resolve + 'static,
        connector: impl Connect + 'static,
        machine: impl Machine + 'static,
        mut tls: rustls::ClientConfig,
    ) -> Self {
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        // A session of an earlier attempt would tie attempts together.
        tls.resumption = rustls::client::Resumption::disabled();
        Self(Arc::new(Inner {
            resolver: Box::new(resolver),
            connector: Box::new(connector),
            machine: Box::new(machine),
            tls: Arc::new(tls),
        }))
    }

    /// Looks a target up that a client registers. Nothing is connected to.
    pub async fn look(&self, target: &CallbackTarget) -> Result<Look, AnswerFault> {
        let TargetHost::Name(name) = target.host() else { return Ok(Look::Fine) };
        let answers = match self.0.resolver.lookup(name, target.port()).await {
            Ok(answers) => answers,
            Err(LookupFault::Failed | LookupFault::TimedOut) => return Ok(Look::Unresolved),
        };
        match judge_answers(&answers, &self.0.machine.surroundings()) {
            Ok(_) => Ok(Look::Fine),
            Err(AnswerFault::Empty | AnswerFault::NoneUsable) => Ok(Look::Unresolved),
            Err(fault) => Err(fault),
        }
    }

    /// One attempt, of 15 s at most.
    pub async fn send(&self, callback: Callback) -> Attempted {
        let mut address = None;
        let limited = tokio::time::timeout(ATTEMPT_LASTS, self.attempt(callback, &mut address)).await;
        let result = match limited.unwrap_or(Err(Trouble::Failure(Failure::Timeout))) {
            Ok(outcome) => AttemptResult::Done(outcome),
            Err(Trouble::NoDescriptors) => AttemptResult::NotTried(NotTried::NoDescriptors),
            Err(Trouble::Offline) => AttemptResult::NotTried(NotTried::Offline),
            Err(Trouble::Failure(failure)) => AttemptResult::Done(Outcome::Failed(failure)),
        };
        Attempted { result, address }
    }

    async fn attempt(&self, callback: Callback, address: &mut Option<IpAddr>) -> Result<Outcome, Trouble> {
        let connected = match &callback.destination {
            Destination::Public(target) => self.connect_public(target, address).await.map_err(|trouble| {
                // A machine without a network reaches nobody; that is not the receiver's doing.
                match trouble {
                    Trouble::Failure(failure) if !failure.is_policy() && !self.0.machine.is_online() => {
                        Trouble::Offline
                    }
                    other => other,
                }
            })?,
            Destination::Loopback(target) => {
                *address = Some(target.address());
                self.connect_to(&[target.address()], target.port(), address).await?
            }
        };
        match &callback.destination {
            Destination::Public(target) => {
                let name = server_name(target.host()).ok_or(Failure::NotHttp)?;
                let secured = exchange::secure(connected.stream, &self.0.tls, name, TLS_LASTS).await?;
                Ok(exchange::exchange(secured, &callback).await?)
            }
            Destination::Loopback(_) => Ok(exchange::exchange(connected.stream, &callback).await?),
        }
    }

    async fn connect_public(
        &self,
        target: &CallbackTarget,
        address: &mut Option<IpAddr>,
    ) -> Result<Connected, Trouble> {
        let surroundings = self.0.machine.surroundings();
        let judged = match target.host() {
            TargetHost::Address(address) => judge_literal(*address, &surroundings),
            TargetHost::Name(name) => match self.0.resolver.lookup(name, target.port()).await {
                Ok(answers) => judge_answers(&answers, &surroundings),
                Err(LookupFault::TimedOut) => return Err(Failure::DnsTimeout.into()),
                Err(LookupFault::Failed) => return Err(Failure::DnsFailed.into()),
            },
        };
        let vetted = judged.map_err(Failure::Answers)?;
        self.connect_to(&vetted, target.port(), address).await
    }

    /// Connects to the first of the judged addresses that answers, and checks who did.
    async fn connect_to(
        &self,
        vetted: &[IpAddr],
        port: u16,
        tried: &mut Option<IpAddr>,
    ) -> Result<Connected, Trouble> {
        let all = tokio::time::timeout(CONNECT_ALL, async {
            let mut last = Trouble::Failure(Failure::ConnectFailed);
            for address in vetted.iter().take(ADDRESSES) {
                *tried = Some(*address);
                let connecting = self.0.connector.connect(SocketAddr::new(*address, port));
                match tokio::time::timeout(CONNECT_ONE, connecting).await {
                    Ok(Ok(connected)) => return Ok(connected),
                    Ok(Err(error)) => last = connect::trouble(&error),
                    Err(_elapsed) => last = Failure::ConnectTimeout.into(),
                }
            }
            Err(last)
        });
        let connected = all.await.unwrap_or(Err(Failure::ConnectTimeout.into()))?;
        if !is_vetted(connected.peer, vetted) {
            return Err(Failure::PeerMismatch.into());
        }
        Ok(connected)
    }
}

fn server_name(host: &TargetHost) -> Option<ServerName<'static>> {
    match host {
        TargetHost::Name(name) => ServerName::try_from(name.clone()).ok(),
        TargetHost::Address(address) => Some(ServerName::IpAddress((*address).into())),
    }
}

/// Why an attempt ended before a final status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    Failure(Failure),
    Offline,
    NoDescriptors,
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

#[cfg(test)]
mod tests;
