//! Connections to agents and one exchange on them, with every limit that a peer could break.
//!
//! No redirect is followed, no proxy is used unless a setting names one, no content coding is
//! decoded, nothing is sent twice. What an answer means is decided by the callers.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};
use taskbell_core::dialect::Dialect;
use taskbell_core::extensions;
use taskbell_core::sse;
use taskbell_core::text::one_line;
use url::Url;

use super::fault::{CallFault, Failure, Unreachable};
use super::names::Names;
use super::negotiation::Negotiation;

/// HTTP/2 servers allow 100 streams a connection and more, and a request over the peer's number would
/// wait without end. So event streams are spread over clients of this many, each with its own connection.
const STREAMS_PER_LANE: usize = 64;

/// What one reader that stalls may hold of a lane's HTTP/2 connection. The connection's own window is
/// the sum, so that it cannot stall the other streams.
const STREAM_WINDOW: u32 = 128 * 1024;

/// Peers' servers close idle connections after 5 s (uvicorn and Node alike). A request on a connection
/// that is being closed has an unknown outcome, so ours are given up before.
const IDLE_CONNECTION: Duration = Duration::from_secs(4);

/// Idle connections kept to one agent.
const IDLE_CONNECTIONS: usize = 32;

/// Never reached through a proxy.
const THIS_MACHINE: &str = "localhost,127.0.0.0/8,::1";

/// How long and how much a peer may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Name resolution, TCP and TLS together.
    pub connect: Duration,
    /// A whole exchange that is no stream.
    pub unary: Duration,
    /// One look at a card or an interface that is not yet known.
    pub look: Duration,
    /// From the request to the head of a stream's answer. The stream itself has no total limit.
    pub stream_open: Duration,
    /// Octets of one answer that is no stream.
    pub body: usize,
    /// Octets of an agent card.
    pub card_body: usize,
    pub sse: sse::Limits,
    /// One run of a token command.
    pub token_command: Duration,
    /// How long a fresh token that was refused at its first use is kept before the command runs again.
    pub token_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            unary: Duration::from_secs(60),
            look: Duration::from_secs(15),
            stream_open: Duration::from_secs(60),
            body: 16 << 20,
            card_body: 1 << 20,
            sse: sse::Limits::default(),
            token_command: Duration::from_secs(30),
            token_pause: Duration::from_secs(60),
        }
    }
}

/// Settings of all connections to agents.
#[derive(Clone, Default)]
pub struct HttpSettings {
    pub limits: Limits,
    /// The one proxy for every agent beyond this machine; the environment's is never used.
    pub proxy: Option<Url>,
}

impl fmt::Debug for HttpSettings {
    /// Without the proxy, whose URL may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSettings").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Why no connection could be prepared at all.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SetupError {
    #[error("no safe TLS can be set up: {detail}")]
    Tls { detail: String },
    #[error("the proxy setting is no proxy's URL")]
    Proxy,
    #[error("the HTTP client cannot be built: {detail}")]
    Client { detail: String },
}

/// The engine's connections to agents. Cheap to clone; one for the process.
#[derive(Clone)]
pub struct Http(Arc<Inner>);

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Http").field(&self.0.settings).finish()
    }
}

struct Inner {
    settings: HttpSettings,
    trust_problem: Option<String>,
    names: Arc<Names>,
    tls: rustls::ClientConfig,
    unary: reqwest::Client,
    lanes: Mutex<Vec<Arc<Lane>>>,
}

struct Lane {
    client: reqwest::Client,
    streams: AtomicUsize,
}

/// A stream's place on a lane, given back when dropped.
pub(super) struct LanePlace(Arc<Lane>);

impl LanePlace {
    pub fn client(&self) -> &reqwest::Client {
        &self.0.client
    }
}

impl Drop for LanePlace {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Http {
    /// Prepares connections with the system's trust.
    ///
    /// A machine without trusted certificates still reaches agents on itself: TLS then trusts nobody,
    /// and [`trust_problem`](Self::trust_problem) says why.
    pub fn new(settings: HttpSettings) -> Result<Self, SetupError> {
        let (tls, problem) =
            crate::tls::client_config().map_err(|error| SetupError::Tls { detail: error.to_string() })?;
        Self::with_tls(settings, tls, problem)
    }

    pub(super) fn with_tls(
        settings: HttpSettings,
        mut tls: rustls::ClientConfig,
        trust_problem: Option<String>,
    ) -> Result<Self, SetupError> {
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let names = Arc::new(Names::system());
        let unary = client(&settings, &tls, &names)?;
        let lanes = Mutex::default();
        Ok(Self(Arc::new(Inner { settings, trust_problem, names, tls, unary, lanes })))
    }

    /// Why no certificate is trusted, where the system has none to trust.
    pub fn trust_problem(&self) -> Option<&str> {
        self.0.trust_problem.as_deref()
    }

    pub fn limits(&self) -> &Limits {
        &self.0.settings.limits
    }

    /// Follows no redirect and uses no proxy but the one that was set.
    pub(crate) fn unary(&self) -> &reqwest::Client {
        &self.0.unary
    }

    pub(super) fn lane(&self) -> Result<LanePlace, SetupError> {
        let mut lanes = self.0.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        // Places are taken under the lock only, so a lane is never overfull.
        let free = lanes.iter().find(|lane| lane.streams.load(Ordering::Relaxed) < STREAMS_PER_LANE);
        let lane = match free {
            Some(lane) => lane.clone(),
            None => {
                let client = client(&self.0.settings, &self.0.tls, &self.0.names)?;
                let lane = Arc::new(Lane { client, streams: AtomicUsize::new(0) });
                lanes.push(lane.clone());
                lane
            }
        };
        lane.streams.fetch_add(1, Ordering::Relaxed);
        Ok(LanePlace(lane))
    }
}

fn client(
    settings: &HttpSettings,
    tls: &rustls::ClientConfig,
    names: &Arc<Names>,
) -> Result<reqwest::Client, SetupError> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let lane_window = STREAM_WINDOW * u32::try_from(STREAMS_PER_LANE).unwrap_or(u32::MAX);
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls.clone())
        .user_agent(concat!("taskbell/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .no_proxy()
        .connect_timeout(settings.limits.connect)
        .pool_idle_timeout(IDLE_CONNECTION)
        // As many as are read at once, or a sweep would connect anew for most of its reads.
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .dns_resolver(names.clone())
        // A peer that is gone without a word is noticed within a minute.
        .tcp_keepalive(Duration::from_secs(30))
        .tcp_keepalive_interval(Duration::from_secs(10))
        .tcp_keepalive_retries(3)
        .tcp_nodelay(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(lane_window)
        .http2_keep_alive_interval(Duration::from_secs(20))
        .http2_keep_alive_timeout(Duration::from_secs(10));
    if let Some(proxy) = &settings.proxy {
        let proxy = reqwest::Proxy::all(proxy.clone()).map_err(|_| SetupError::Proxy)?;
        builder = builder.proxy(proxy.no_proxy(reqwest::NoProxy::from_string(THIS_MACHINE)));
    }
    builder.build().map_err(|error| SetupError::Client { detail: error.to_string() })
}

/// One request, before credentials.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub method: Method,
    pub url: Url,
    pub accept: &'static str,
    /// Whose version is named; none at a look that tries what the peer speaks.
    pub dialect: Option<Dialect>,
    pub body: Option<Bytes>,
    pub negotiation: Option<Arc<Negotiation>>,
}

impl Request {
    /// Sends it and reads the head of the answer. Neither redirects nor codings come out of here.
    pub async fn send(
        &self,
        client: &reqwest::Client,
        credentials: &HeaderMap,
    ) -> Result<reqwest::Response, Failure> {
        let mut builder = client
            .request(self.method.clone(), self.url.clone())
            .header(header::ACCEPT, self.accept)
            .headers(credentials.clone());
        if let Some(dialect) = self.dialect {
            builder = builder.header("a2a-version", dialect.version());
            if let Some(asked) = self.negotiation.as_ref().and_then(|one| one.header_value()) {
                builder = builder.header(extensions::header(dialect), asked);
            }
        }
        if let Some(body) = &self.body {
            builder = builder.header(header::CONTENT_TYPE, "application/json").body(body.clone());
        }
        let response = builder.send().await.map_err(|error| transport_failure(&error))?;
        if response.status().is_redirection() {
            let location_host = response
                .headers()
                .get(header::LOCATION)
                .and_then(|value| value.to_str().ok())
                .and_then(|value| self.url.join(value).ok())
                .and_then(|url| url.host_str().map(|host| one_line(host, 255)));
            let status = response.status().as_u16();
            return Err(Failure::answered(CallFault::Redirect { status, location_host }));
        }
        let coding = response.headers().get(header::CONTENT_ENCODING);
        if let Some(coding) = coding.filter(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity")) {
            let coding = one_line(&String::from_utf8_lossy(coding.as_bytes()), 40);
            return Err(Failure::unknown(CallFault::Encoded { coding }));
        }
        if let Some(negotiation) = &self.negotiation {
            negotiation.read_answer(response.headers());
        }
        Ok(response)
    }
}

/// Reads a body that is no stream, up to `limit` octets.
pub(super) async fn read_body(response: &mut reqwest::Response, limit: usize) -> Result<Bytes, Failure> {
    let too_large = || Failure::unknown(CallFault::TooLarge { limit });
    if response.content_length().is_some_and(|length| usize::try_from(length).map_or(true, |l| l > limit)) {
        return Err(too_large());
    }
    // Most answers come in one piece and are not copied.
    let mut first = Bytes::new();
    let mut all: Vec<u8> = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| broken_body(&error))? {
        if first.len().max(all.len()) + chunk.len() > limit {
            return Err(too_large());
        }
        if first.is_empty() && all.is_empty() {
            first = chunk;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&first);
            }
            all.extend_from_slice(&chunk);
        }
    }
    Ok(if all.is_empty() { first } else { all.into() })
}

/// Whether the answer calls itself a web page.
pub(super) fn is_html(headers: &HeaderMap) -> bool {
    matches!(media_type(headers).as_deref(), Some("text/html" | "application/xhtml+xml"))
}

/// The media type without its parameters, in lower case.
pub(super) fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

pub(super) fn excerpt(body: &[u8]) -> String {
    // 200 characters are at most 800 octets; the rest is room for what cleaning drops.
    one_line(&String::from_utf8_lossy(body.get(..4096).unwrap_or(body)), 200)
}

pub(super) fn not_a2a(status: StatusCode, body: &[u8]) -> CallFault {
    CallFault::NotA2a { status: status.as_u16(), excerpt: excerpt(body) }
}

/// A failure of the exchange up to the head of the answer. Only what happened while connecting is
/// certain not to have reached the agent.
fn transport_failure(error: &reqwest::Error) -> Failure {
    let fault = CallFault::Unreachable(cause_of(error));
    if error.is_connect() || error.is_builder() { Failure::not_sent(fault) } else { Failure::unknown(fault) }
}

fn broken_body(error: &reqwest::Error) -> Failure {
    Failure::unknown(CallFault::Unreachable(cause_of(error)))
}

/// Why no answer came, in words.
pub(crate) fn cause_text(error: &reqwest::Error) -> String {
    CallFault::Unreachable(cause_of(error)).to_string()
}

/// Walks the chain of causes down to one that says something.
pub(super) fn cause_of(error: &reqwest::Error) -> Unreachable {
    if error.is_dns() {
        return Unreachable::Dns;
    }
    let mut source: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(cause) = source {
        if let Some(fault) = cause.downcast_ref::<rustls::Error>() {
            return Unreachable::Tls(crate::tls::fault(fault));
        }
        // What an io error wraps is not among its sources, so it is looked for within.
        let mut wrapped = cause.downcast_ref::<io::Error>();
        while let Some(io_error) = wrapped {
            if let Some(cause) = io_cause(io_error) {
                return cause;
            }
            let inner = io_error.get_ref();
            if let Some(fault) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                return Unreachable::Tls(crate::tls::fault(fault));
            }
            wrapped = inner.and_then(|inner| inner.downcast_ref::<io::Error>());
        }
        if let Some(fault) = cause.downcast_ref::<hyper::Error>() {
            if fault.is_parse() {
                return Unreachable::NotHttp;
            }
            if fault.is_incomplete_message() || fault.is_canceled() || fault.is_closed() {
                return Unreachable::Reset;
            }
        }
        source = cause.source();
    }
    if error.is_timeout() { Unreachable::TimedOut } else { Unreachable::Other }
}

fn io_cause(error: &io::Error) -> Option<Unreachable> {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Some(Unreachable::Refused),
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof
        | io::ErrorKind::NotConnected => Some(Unreachable::Reset),
        io::ErrorKind::TimedOut => Some(Unreachable::TimedOut),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable | io::ErrorKind::NetworkDown => {
            Some(Unreachable::NoRoute)
        }
        // EMFILE and ENFILE on every Unix; Windows has no such low limit.
        _ if cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24)) => Some(Unreachable::NoDescriptors),
        _ => None,
    }
}
