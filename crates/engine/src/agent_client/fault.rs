//! What can go wrong with a call to an agent, as data.
//!
//! The agent's failures are facts with fields, not opaque errors: the follower, the gateway and the
//! command line decide by them. Nothing in here holds a header of a request, a URL with its query or
//! a body; a peer's text is cleaned and cut before it is shown.

use std::fmt;
use std::time::Duration;

use taskbell_core::dialect::call::NoSuchOperation;
use taskbell_core::dialect::read::ReadFault;
use taskbell_core::fault::{FaultKind, RemoteError};
use taskbell_core::ids::{AgentName, TaskId};
use taskbell_core::json::JsonFault;
use taskbell_core::text::one_line;
pub use taskbell_core::tls::TlsFault;

use super::http::SetupError;
use super::token::{CredentialUnavailable, TokenCommandFault};

/// A call that did not end with what was asked for.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{operation} at agent {agent}: {fault}")]
pub struct CallError {
    pub agent: AgentName,
    /// The operation's 1.0 name, or `FetchCard`.
    pub operation: &'static str,
    pub fault: CallFault,
    pub outcome: Outcome,
}

/// Whether the agent may have acted on the request. Decides about a send: only a human repeats one
/// whose outcome is unknown, because the work may run twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// No octet of the request reached the agent: no connection came about, or we refused to send.
    NotSent,
    /// The agent, or what stands in front of it, said no.
    Answered,
    /// Octets may have left and no whole answer came back.
    Unknown,
}

#[derive(Debug, Clone)]
pub enum CallFault {
    /// The agent answered with an error.
    Remote {
        error: Box<RemoteError>,
        kind: FaultKind,
        /// As the peer asked, clamped; see [`taskbell_core::retry_after`].
        retry_after: Option<Duration>,
    },
    /// 401, after a token command was run once more where there is one.
    Unauthorized {
        /// `WWW-Authenticate`, cleaned. Shown, never followed.
        challenge: Option<String>,
    },
    Forbidden,
    Unreachable(Unreachable),
    /// An answer that is no A2A: a captive portal, a login page, a proxy's or another program's words.
    NotA2a {
        status: u16,
        /// The first 200 characters, cleaned.
        excerpt: String,
    },
    /// Reading stopped at the limit.
    TooLarge {
        limit: usize,
    },
    /// Not followed: the credential would travel.
    Redirect {
        status: u16,
        location_host: Option<String>,
    },
    /// A content coding that was not asked for, so it is not decoded: 10 MiB can hold 10 GiB.
    Encoded {
        coding: String,
    },
    BadJson(JsonFault),
    /// JSON-RPC, but not an answer to our request.
    WrongAnswer,
    /// A result that is not the thing asked for.
    Malformed(ReadFault),
    /// The answer is about another task.
    WrongTask {
        answered: TaskId,
    },
    /// The dialect has no such operation.
    NotOffered(NoSuchOperation),
    /// The card names no interface that is spoken here.
    NoInterface,
    /// Plain http beyond this machine, and nobody allowed it.
    InsecureUrl {
        host: String,
    },
    CredentialUnavailable(CredentialUnavailable),
    TokenCommand(TokenCommandFault),
    Setup(SetupError),
}

/// Why no answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreachable {
    Refused,
    /// The name has no address, or the resolver did not say.
    Dns,
    /// No route to the host or network.
    NoRoute,
    /// The connection broke before the whole answer was there.
    Reset,
    TimedOut,
    Tls(TlsFault),
    /// What came back is no HTTP.
    NotHttp,
    /// This process has no descriptor left for a connection.
    NoDescriptors,
    Other,
}

impl CallError {
    /// The stable word that scripts and pages match.
    pub fn code(&self) -> &'static str {
        self.fault.code()
    }

    /// What the agent's error means, where the agent answered one.
    pub fn kind(&self) -> Option<FaultKind> {
        match &self.fault {
            CallFault::Remote { kind, .. } => Some(*kind),
            CallFault::Unauthorized { .. } => Some(FaultKind::Unauthorized),
            CallFault::Forbidden => Some(FaultKind::Forbidden),
            _ => None,
        }
    }

    /// How long the peer asked us to stay away.
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.fault {
            CallFault::Remote { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

impl CallFault {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Remote { kind, .. } => kind_code(*kind),
            Self::Unauthorized { .. } => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::Unreachable(cause) => cause.code(),
            Self::NotA2a { .. } => "upstream_not_a2a",
            Self::TooLarge { .. } => "upstream_too_large",
            Self::Redirect { .. } => "upstream_redirect",
            Self::Encoded { .. } => "upstream_encoded",
            Self::BadJson(_) => "upstream_bad_json",
            Self::WrongAnswer => "upstream_wrong_answer",
            Self::Malformed(_) => "upstream_malformed",
            Self::WrongTask { .. } => "upstream_wrong_task",
            Self::NotOffered(_) => "unsupported_operation",
            Self::NoInterface => "no_interface",
            Self::InsecureUrl { .. } => "insecure_http",
            Self::CredentialUnavailable(_) => "credential_unavailable",
            Self::TokenCommand(_) => "token_command_failed",
            Self::Setup(_) => "client_setup_failed",
        }
    }
}

fn kind_code(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::TaskNotFound => "task_not_found",
        FaultKind::TaskTerminal => "task_terminal",
        FaultKind::TaskNotCancelable => "task_not_cancelable",
        FaultKind::PushNotSupported => "push_not_supported",
        FaultKind::UnsupportedOperation => "unsupported_operation",
        FaultKind::MethodNotFound => "method_not_found",
        FaultKind::InvalidParams => "invalid_params",
        FaultKind::InvalidRequest => "invalid_request",
        FaultKind::ParseError => "parse_error",
        FaultKind::ExtensionSupportRequired => "extension_support_required",
        FaultKind::VersionNotSupported => "version_not_supported",
        FaultKind::ContentTypeNotSupported => "content_type_not_supported",
        FaultKind::Unauthorized => "unauthorized",
        FaultKind::Forbidden => "forbidden",
        FaultKind::RateLimited => "rate_limited",
        FaultKind::Unavailable => "agent_unavailable",
        FaultKind::Internal => "agent_internal_error",
        FaultKind::Other => "agent_error",
    }
}

impl Unreachable {
    pub fn code(self) -> &'static str {
        match self {
            Self::Refused | Self::NoRoute | Self::Reset | Self::Other => "agent_unreachable",
            Self::Dns => "agent_name_not_resolved",
            Self::TimedOut => "agent_timed_out",
            Self::Tls(fault) => fault.code(),
            Self::NotHttp => "upstream_not_http",
            Self::NoDescriptors => "no_descriptors",
        }
    }
}

impl fmt::Display for CallFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remote { error, kind, retry_after } => {
                match kind {
                    FaultKind::TaskNotFound => f.write_str("the agent does not know the task")?,
                    FaultKind::TaskTerminal => f.write_str("the task has ended")?,
                    FaultKind::RateLimited => f.write_str("the agent asks for fewer requests")?,
                    FaultKind::Unavailable => f.write_str("the agent is not available")?,
                    _ => f.write_str("the agent answered an error")?,
                }
                match (error.code, error.http_status) {
                    (Some(code), _) => write!(f, " ({code})")?,
                    (None, Some(status)) => write!(f, " (HTTP {status})")?,
                    (None, None) => {}
                }
                if let Some(wait) = retry_after {
                    write!(f, ", try again in {} s", wait.as_secs())?;
                }
                let message = one_line(&error.message, 200);
                if message.is_empty() { Ok(()) } else { write!(f, ": {message:?}") }
            }
            Self::Unauthorized { challenge } => {
                f.write_str("the agent asks for another credential; set it with agent set-credential")?;
                match challenge {
                    Some(challenge) => write!(f, " (it says {challenge:?})"),
                    None => Ok(()),
                }
            }
            Self::Forbidden => f.write_str("the agent refuses this credential; check whose task it is"),
            Self::Unreachable(cause) => cause.fmt(f),
            Self::NotA2a { status, excerpt } => write!(
                f,
                "the answer is no A2A (HTTP {status}), maybe a login page or a proxy; check the URL: {excerpt:?}"
            ),
            Self::TooLarge { limit } => {
                write!(f, "the answer is larger than {limit} octets and was not read")
            }
            Self::Redirect { status, location_host } => match location_host {
                Some(host) => write!(
                    f,
                    "redirected (HTTP {status}) to {host}, which is not followed; add the agent under its own URL"
                ),
                None => write!(f, "redirected (HTTP {status}) to nowhere, which is not followed"),
            },
            Self::Encoded { coding } => {
                write!(f, "the answer is encoded as {coding:?}, which was not asked for and is not read")
            }
            Self::BadJson(fault) => write!(f, "the answer cannot be read: {fault}"),
            Self::WrongAnswer => f.write_str("the answer belongs to another request"),
            Self::Malformed(fault) => write!(f, "the answer cannot be read: {fault}"),
            Self::WrongTask { answered } => {
                write!(f, "the answer is about another task, {:?}", one_line(answered.as_str(), 80))
            }
            Self::NotOffered(fault) => fault.fmt(f),
            Self::NoInterface => f.write_str(
                "its card names no interface over JSON-RPC, nor over HTTP+JSON of 1.0, and no other is spoken here",
            ),
            Self::InsecureUrl { host } => write!(
                f,
                "plain http to {host} is not sent; use https, or add the agent with --allow-http and without a credential"
            ),
            Self::CredentialUnavailable(fault) => fault.fmt(f),
            Self::TokenCommand(fault) => fault.fmt(f),
            Self::Setup(fault) => fault.fmt(f),
        }
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "connection refused; check that the agent runs",
            Self::Dns => "its host name has no address; check the URL and the network",
            Self::NoRoute => "no route to its host; check the network",
            Self::Reset => "the connection broke before the answer was complete",
            Self::TimedOut => "no answer in time",
            Self::Tls(fault) => return fault.fmt(f),
            Self::NotHttp => "what answers there does not speak HTTP; check the URL",
            Self::NoDescriptors => "this process has no file descriptor left; raise its limit",
            Self::Other => "the connection failed",
        })
    }
}

/// A fault before it is known whose it is.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub fault: CallFault,
    pub outcome: Outcome,
}

impl Failure {
    pub fn not_sent(fault: CallFault) -> Self {
        Self { fault, outcome: Outcome::NotSent }
    }

    pub fn answered(fault: CallFault) -> Self {
        Self { fault, outcome: Outcome::Answered }
    }

    pub fn unknown(fault: CallFault) -> Self {
        Self { fault, outcome: Outcome::Unknown }
    }

    pub fn of(self, agent: &AgentName, operation: &'static str) -> CallError {
        CallError { agent: agent.clone(), operation, fault: self.fault, outcome: self.outcome }
    }
}
