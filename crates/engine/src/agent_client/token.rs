//! An agent's credential at hand: taken from its source once, and for a token command, the token.
//!
//! A token command is a line of the user's own shell. It runs once for however many calls wait for
//! it, and once more when the agent answers 401 to a token that had been good. What it prints is
//! never logged, nor is the line itself.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use taskbell_core::agent::{PlainHttp, TransportRule, transport_rule};
use taskbell_core::credential::{BoundCredential, Secret};
use tokio::io::AsyncReadExt as _;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use super::fault::{CallFault, Failure};
use super::http::Limits;
use crate::shell::{self, GroupGuard};

/// A token is shorter. What a command prints beyond is not read.
const MAX_OUTPUT: u64 = 64 * 1024;

/// How long a failed run answers for the calls that follow, those that waited for it among them: a
/// hundred followed tasks must not start a hundred failing commands.
const FAILED_RUN_STANDS: Duration = Duration::from_secs(10);

/// Where an agent's credential comes from: the keychain, or nowhere.
///
/// Asked once and then after a refusal; the answer stays in memory only. An implementation sets
/// its own deadline: a keychain may hang for ever.
pub trait CredentialSource: Send + Sync {
    fn credential(&self) -> BoxFuture<'_, Result<Option<BoundCredential>, CredentialUnavailable>>;
}

/// The agent has a credential, but it cannot be had now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its credential cannot be read from the keychain ({reason})")]
pub struct CredentialUnavailable {
    /// The keychain's own stable word, such as `locked`.
    pub reason: &'static str,
}

/// A credential already in memory, or none.
#[derive(Debug, Clone)]
pub struct FixedCredential(pub Option<BoundCredential>);

impl CredentialSource for FixedCredential {
    fn credential(&self) -> BoxFuture<'_, Result<Option<BoundCredential>, CredentialUnavailable>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

/// Why a token command gave no token. Holds nothing of what it printed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenCommandFault {
    #[error("its token command cannot be started: {kind}")]
    NotStarted { kind: std::io::ErrorKind },
    #[error("its token command did not end within {} s", .limit.as_secs())]
    TimedOut { limit: Duration },
    #[error("its token command failed ({status}); run it in a terminal to see why")]
    Failed { status: String },
    #[error("its token command printed nothing that could be a token")]
    NoToken,
}

/// The headers to send, and what is needed to renew them.
#[derive(Debug, Default)]
pub(super) struct Attached {
    pub headers: HeaderMap,
    /// Which run of the token command they came from.
    generation: Option<u64>,
}

pub(super) struct Credentials {
    source: Arc<dyn CredentialSource>,
    held: Mutex<Held>,
    /// Runs of the token command that ended, however they did.
    runs_ended: AtomicU64,
    /// The agent answered something other than 401 to the token at hand.
    token_was_good: AtomicBool,
}

#[derive(Default)]
struct Held {
    /// Outer `None`: not asked yet.
    bound: Option<Option<BoundCredential>>,
    /// What the last run of the token command gave, and when it ended.
    token: Option<(Result<BoundCredential, TokenCommandFault>, Instant)>,
}

impl Credentials {
    pub fn new(source: Arc<dyn CredentialSource>) -> Self {
        Self {
            source,
            held: Mutex::default(),
            runs_ended: AtomicU64::new(0),
            token_was_good: AtomicBool::new(false),
        }
    }

    /// The headers for a request to `url`: none for another origin, none over plain http to another
    /// machine.
    pub async fn attach(&self, url: &Url, limits: &Limits) -> Result<Attached, Failure> {
        match transport_rule(url, PlainHttp::Anywhere) {
            TransportRule::Tls | TransportRule::LoopbackPlain => {}
            TransportRule::PlainWithoutCredential | TransportRule::Refused => return Ok(Attached::default()),
        }
        let mut held = self.held.lock().await;
        let Some(bound) = self.bound(&mut held).await? else { return Ok(Attached::default()) };
        if let Some(headers) = bound.headers_for(url) {
            return Ok(Attached { headers: header_map(headers), generation: None });
        }
        let Some(line) = bound.command_for(url) else { return Ok(Attached::default()) };
        let usable = match &held.token {
            Some((Ok(_), _)) => true,
            Some((Err(_), at)) => at.elapsed() < FAILED_RUN_STANDS,
            None => false,
        };
        if !usable {
            self.run(&mut held, &bound, line, limits).await;
        }
        self.token_headers(&held, url)
    }

    /// After a 401: fresh headers if a token command can give them and has not just been tried in vain.
    pub async fn renew(
        &self,
        refused: &Attached,
        url: &Url,
        limits: &Limits,
    ) -> Result<Option<Attached>, Failure> {
        let Some(generation) = refused.generation else {
            // The user may have set another one since; the next call asks the source.
            self.held.lock().await.bound = None;
            return Ok(None);
        };
        let mut held = self.held.lock().await;
        if self.runs_ended.load(Ordering::Acquire) == generation {
            let was_good = self.token_was_good.load(Ordering::Acquire);
            let fresh = matches!(&held.token, Some((_, at)) if at.elapsed() < limits.token_pause);
            if fresh && !was_good {
                return Ok(None);
            }
            let Some(bound) = self.bound(&mut held).await? else { return Ok(None) };
            let Some(line) = bound.command_for(url) else { return Ok(None) };
            self.run(&mut held, &bound, line, limits).await;
        }
        self.token_headers(&held, url).map(Some)
    }

    /// The agent let the request in.
    pub fn accepted(&self, attached: &Attached) {
        if attached.generation == Some(self.runs_ended.load(Ordering::Acquire)) {
            self.token_was_good.store(true, Ordering::Release);
        }
    }

    async fn bound(&self, held: &mut Held) -> Result<Option<BoundCredential>, Failure> {
        if held.bound.is_none() {
            let bound = self
                .source
                .credential()
                .await
                .map_err(|fault| Failure::not_sent(CallFault::CredentialUnavailable(fault)))?;
            held.bound = Some(bound);
        }
        Ok(held.bound.clone().flatten())
    }

    async fn run(&self, held: &mut Held, bound: &BoundCredential, line: &str, limits: &Limits) {
        let outcome = run_command(line, limits.token_command)
            .await
            .and_then(|token| bound.with_token(token).map_err(|_| TokenCommandFault::NoToken));
        held.token = Some((outcome, Instant::now()));
        self.token_was_good.store(false, Ordering::Release);
        self.runs_ended.fetch_add(1, Ordering::AcqRel);
    }

    fn token_headers(&self, held: &Held, url: &Url) -> Result<Attached, Failure> {
        match &held.token {
            Some((Ok(bound), _)) => Ok(Attached {
                headers: bound.headers_for(url).map(header_map).unwrap_or_default(),
                generation: Some(self.runs_ended.load(Ordering::Acquire)),
            }),
            Some((Err(fault), _)) => Err(Failure::not_sent(CallFault::TokenCommand(fault.clone()))),
            None => Ok(Attached::default()),
        }
    }
}

/// Values are marked, so that neither a log nor HTTP/2's shared header table keeps them.
fn header_map(headers: Vec<(String, Secret)>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::try_from(name);
        let value = HeaderValue::try_from(value.expose());
        // A bound credential checked both, so neither fails.
        if let (Ok(name), Ok(mut value)) = (name, value) {
            value.set_sensitive(true);
            map.insert(name, value);
        }
    }
    map
}

async fn run_command(line: &str, limit: Duration) -> Result<Secret, TokenCommandFault> {
    let mut command = shell::command(line);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| TokenCommandFault::NotStarted { kind: error.kind() })?;
    let group = GroupGuard::of(&child);
    let mut stdout = child.stdout.take().expect("stdout was piped").take(MAX_OUTPUT);
    let run = async {
        let mut printed = zeroize::Zeroizing::new(Vec::with_capacity(4096));
        let read = stdout.read_to_end(&mut printed).await;
        let status = child.wait().await;
        (printed, read.and(status))
    };
    let (printed, status) =
        tokio::time::timeout(limit, run).await.map_err(|_| TokenCommandFault::TimedOut { limit })?;
    group.disarm();
    let status = status.map_err(|error| TokenCommandFault::Failed { status: error.kind().to_string() })?;
    if !status.success() {
        return Err(TokenCommandFault::Failed { status: status.to_string() });
    }
    let text = std::str::from_utf8(&printed).map_err(|_| TokenCommandFault::NoToken)?;
    match text.lines().next().map(str::trim) {
        Some(token) if !token.is_empty() => Ok(Secret::new(token)),
        _ => Err(TokenCommandFault::NoToken),
    }
}
