//! The engine's client: how the command line, the tests and an attached window call a running engine.
//!
//! The engine is found by the data folder: its lock must be held by another process, and what answers on
//! the port must prove that it knows the token before it is told it. Loopback only, no proxy, no redirect,
//! nothing is sent twice.

mod changes;
mod endpoint;
#[cfg(test)]
mod tests;
mod window;

use std::error::Error as StdError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use taskbell_core::credential::Secret;
use taskbell_core::ids::TaskRef;
use url::{Host, Url};

pub use changes::{ChangeFeed, FeedEvent};
pub use endpoint::Endpoint;
pub use window::WindowCallFeed;

use crate::api::proof;
use crate::api::views::{ErrorBody, HelloView};
use crate::data_dir::{DataDir, DataDirError};

const CONNECT_WITHIN: Duration = Duration::from_secs(2);

const PROOF_HOLDS: Duration = Duration::from_secs(2);

/// The engine itself waits up to 60 s for an agent, and 30 s for a cancellation.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

/// Why a call brought nothing: the engine's own words, or that there is none.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ClientError {
    /// A stable word; match on this.
    pub code: String,
    /// For people: what was tried and what to do.
    pub message: String,
    /// The status of the engine's answer, where there was one.
    pub status: Option<u16>,
    #[source]
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl ClientError {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), status: None, source: None }
    }

    /// How a command that ends with this leaves: 2 for what the user has to write otherwise, else 1.
    pub fn exit_code(&self) -> u8 {
        if matches!(self.status, Some(400 | 413 | 422)) || self.code == "not_addressable" { 2 } else { 1 }
    }

    /// No engine to ask, or not at this moment: a restart passes.
    pub fn may_pass(&self) -> bool {
        matches!(self.code.as_str(), "no_engine" | "engine_unreachable" | "engine_not_proven")
            || matches!(self.status, Some(401 | 429 | 503))
    }

    fn no_engine(dir: &DataDir) -> Self {
        Self::new(
            "no_engine",
            format!("no engine runs on {}: start one with `taskbell serve`", dir.path().display()),
        )
    }

    fn unreachable(doing: &'static str, source: reqwest::Error) -> Self {
        // Its URL may hold a challenge or an id; what failed is enough.
        let source = source.without_url();
        let message = format!("failed to {doing}: the engine does not answer");
        Self { source: Some(Arc::new(source)), ..Self::new("engine_unreachable", message) }
    }

    fn unreadable(what: &'static str, source: serde_json::Error) -> Self {
        let message =
            format!("the engine's {what} is not what this version expects: are both of one version?");
        Self { source: Some(Arc::new(source)), ..Self::new("engine_unreadable", message) }
    }
}

impl From<DataDirError> for ClientError {
    fn from(error: DataDirError) -> Self {
        Self { source: None, ..Self::new(error.code(), error.to_string()) }
    }
}

/// A running engine that has proved itself. Clones share connections.
#[derive(Debug, Clone)]
pub struct ApiClient {
    dir: DataDir,
    base: Url,
    token: Secret,
    http: reqwest::Client,
    proven_at: Arc<Mutex<Instant>>,
}

impl ApiClient {
    /// Finds the engine that runs on the folder and makes it prove itself.
    ///
    /// Errors: `no_engine`; `engine_port_taken` where one runs without its port; `engine_not_proven`
    /// where another program answers on it.
    pub async fn connect(dir: &DataDir) -> Result<Self, ClientError> {
        let runtime = dir.runtime()?.ok_or_else(|| ClientError::no_engine(dir))?;
        let Some(gateway) = runtime.gateway else {
            let message = format!(
                "the engine (process {}) runs, but another program has taken its port: see its window or log",
                runtime.pid
            );
            return Err(ClientError::new("engine_port_taken", message));
        };
        let base = loopback(&gateway)?;
        let http = http_client()?;
        make_it_prove(&http, &base, &runtime.token).await?;
        let proven_at = Arc::new(Mutex::new(Instant::now()));
        Ok(Self { dir: dir.clone(), base, token: runtime.token, http, proven_at })
    }

    /// The same folder's engine, found and proven anew.
    pub async fn again(&self) -> Result<Self, ClientError> {
        Self::connect(&self.dir).await
    }

    /// `http://127.0.0.1:port` of the engine.
    pub fn base(&self) -> &Url {
        &self.base
    }

    pub async fn get<T: DeserializeOwned>(&self, endpoint: impl Into<Endpoint>) -> Result<T, ClientError> {
        self.call(Method::GET, &endpoint.into(), None).await
    }

    pub async fn post<T: DeserializeOwned>(
        &self,
        endpoint: impl Into<Endpoint>,
        body: &(impl Serialize + ?Sized),
    ) -> Result<T, ClientError> {
        self.call(Method::POST, &endpoint.into(), Some(encoded(body)?)).await
    }

    pub async fn put<T: DeserializeOwned>(
        &self,
        endpoint: impl Into<Endpoint>,
        body: &(impl Serialize + ?Sized),
    ) -> Result<T, ClientError> {
        self.call(Method::PUT, &endpoint.into(), Some(encoded(body)?)).await
    }

    /// Deletes. Where the answer says what is there instead, nobody reads it.
    pub async fn delete(&self, endpoint: impl Into<Endpoint>) -> Result<(), ClientError> {
        let _: IgnoredAny = self.call(Method::DELETE, &endpoint.into(), None).await?;
        Ok(())
    }

    /// Deletes, and gives what the answer says of it.
    pub async fn delete_for<T: DeserializeOwned>(
        &self,
        endpoint: impl Into<Endpoint>,
    ) -> Result<T, ClientError> {
        self.call(Method::DELETE, &endpoint.into(), None).await
    }

    /// The change feed after a number, or from now on; of one task, or of all.
    pub fn changes(&self, after: Option<u64>, task: Option<TaskRef>) -> ChangeFeed {
        ChangeFeed::new(self.clone(), after, task)
    }

    /// From now on this program shows a window of the engine's: what it is asked to do. Meanwhile the engine shows
    /// notices on the session's desktop.
    pub async fn window_calls(&self) -> Result<WindowCallFeed, ClientError> {
        let endpoint = Endpoint::new("window/calls").with("notices", true);
        Ok(WindowCallFeed::new(self.open(&endpoint).await?))
    }

    /// Passes a request of the page on as it is: a path under `/api/v1/` with its query, and a JSON body.
    /// Gives the status and body of the engine's answer, whatever it says.
    ///
    /// Errors: that there was no answer.
    pub async fn forward(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<(StatusCode, bytes::Bytes), ClientError> {
        let outside = || ClientError::new("bad_request", "the path is none of the API");
        let url = self.base.join(path).map_err(|_| outside())?;
        if url.origin() != self.base.origin() || !url.path().starts_with("/api/v1/") {
            return Err(outside());
        }
        let request = self.request(method, url, body).await?.timeout(ANSWER_WITHIN);
        let answer =
            request.send().await.map_err(|source| ClientError::unreachable("ask the engine", source))?;
        let status = answer.status();
        let body =
            answer.bytes().await.map_err(|source| ClientError::unreachable("read the answer", source))?;
        Ok((status, body))
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        endpoint: &Endpoint,
        body: Option<Vec<u8>>,
    ) -> Result<T, ClientError> {
        let request = self.request(method, endpoint.url(&self.base)?, body).await?.timeout(ANSWER_WITHIN);
        let answer =
            request.send().await.map_err(|source| ClientError::unreachable("ask the engine", source))?;
        let answer = accepted(answer).await?;
        let body =
            answer.bytes().await.map_err(|source| ClientError::unreachable("read the answer", source))?;
        // 204, and whoever does not care, read null.
        let body = if body.is_empty() { b"null".as_slice() } else { &body };
        serde_json::from_slice(body).map_err(|source| ClientError::unreadable("answer", source))
    }

    /// A stream: no limit but on its head.
    async fn open(&self, endpoint: &Endpoint) -> Result<Response, ClientError> {
        let request = self.request(Method::GET, endpoint.url(&self.base)?, None).await?;
        let answer = tokio::time::timeout(CONNECT_WITHIN * 2, request.send())
            .await
            .map_err(|_elapsed| {
                ClientError::new("engine_unreachable", "the engine did not open its change feed")
            })?
            .map_err(|source| ClientError::unreachable("open the change feed", source))?;
        accepted(answer).await
    }

    /// A request with the token in it. The connection that proved itself is reused while it is open;
    /// after a pause it may be another, to a program that took the port over, so that one proves itself first.
    async fn request(
        &self,
        method: Method,
        url: Url,
        body: Option<Vec<u8>>,
    ) -> Result<reqwest::RequestBuilder, ClientError> {
        let proven_at = *self.proven_at.lock().unwrap_or_else(PoisonError::into_inner);
        if proven_at.elapsed() > PROOF_HOLDS {
            make_it_prove(&self.http, &self.base, &self.token).await?;
            *self.proven_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
        let mut authorization = HeaderValue::try_from(format!("Bearer {}", self.token.expose()))
            .map_err(|_| DataDirError::RuntimeUnreadable { path: self.dir.path().join("runtime.json") })?;
        authorization.set_sensitive(true);
        let mut request = self.http.request(method, url).header(AUTHORIZATION, authorization);
        if let Some(body) = body {
            request = request.header(reqwest::header::CONTENT_TYPE, "application/json").body(body);
        }
        Ok(request)
    }
}

fn encoded(body: &(impl Serialize + ?Sized)) -> Result<Vec<u8>, ClientError> {
    serde_json::to_vec(body).map_err(|source| {
        let message = "the request cannot be written as JSON";
        ClientError { source: Some(Arc::new(source)), ..ClientError::new("bad_request", message) }
    })
}

async fn accepted(answer: Response) -> Result<Response, ClientError> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let body = answer.bytes().await.unwrap_or_default(); // The status alone is told then.
    let mut error = match serde_json::from_slice::<ErrorBody>(&body) {
        Ok(body) => ClientError::new(body.error.code, body.error.message),
        Err(_) => ClientError::new("engine_unreadable", format!("the engine answered {}", words(status))),
    };
    error.status = Some(status.as_u16());
    Err(error)
}

fn words(status: StatusCode) -> String {
    status
        .canonical_reason()
        .map_or_else(|| status.as_u16().to_string(), |words| format!("{status:?} {words}"))
}

/// The runtime file could name any host; the token is for this machine only.
fn loopback(address: &str) -> Result<Url, ClientError> {
    let not_ours = || ClientError::new("engine_unreachable", "the engine's address is not on this machine");
    let url = Url::parse(address).map_err(|_| not_ours())?;
    let local = match url.host() {
        Some(Host::Ipv4(host)) => host.is_loopback(),
        Some(Host::Ipv6(host)) => host.is_loopback(),
        Some(Host::Domain(_)) | None => false,
    };
    if local && url.scheme() == "http" && url.username().is_empty() { Ok(url) } else { Err(not_ours()) }
}

async fn make_it_prove(http: &reqwest::Client, base: &Url, token: &Secret) -> Result<(), ClientError> {
    let challenge = proof::random_text()
        .map_err(|_| ClientError::new("no_randomness", "the system gives no random numbers"))?;
    let url = Endpoint::from("hello").with("c", &challenge).url(base)?;
    let not_proven = || {
        let message =
            format!("what answers on {base} is not the engine of this data folder: nothing was sent to it");
        ClientError::new("engine_not_proven", message)
    };
    let answer = http
        .get(url)
        .timeout(CONNECT_WITHIN)
        .send()
        .await
        .map_err(|source| ClientError::unreachable("greet the engine", source))?;
    if answer.content_length().is_none_or(|length| length > 4096) {
        return Err(not_proven());
    }
    let body = answer.bytes().await.map_err(|source| ClientError::unreachable("greet the engine", source))?;
    match serde_json::from_slice::<HelloView>(&body) {
        Ok(hello) if proof::is_proof(token, &challenge, &hello.hello) => Ok(()),
        Ok(_) | Err(_) => Err(not_proven()),
    }
}

fn http_client() -> Result<reqwest::Client, ClientError> {
    let setup = |source: Arc<dyn StdError + Send + Sync>| {
        let message = "no HTTP client can be set up";
        ClientError { source: Some(source), ..ClientError::new("client_setup", message) }
    };
    // Never used: only http to this machine is called. But reqwest wants one, and this one trusts nobody.
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|source| setup(Arc::new(source)))?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(CONNECT_WITHIN)
        // Before the engine closes it: a request on a connection that closes has an unknown outcome.
        .pool_idle_timeout(Duration::from_secs(4))
        .build()
        .map_err(|source| setup(Arc::new(source)))
}
