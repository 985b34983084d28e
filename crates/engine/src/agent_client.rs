//! The one way the engine talks to an agent.
//!
//! A client is one agent: its interface, its dialect, its credential, what was learnt about it. It
//! writes the agreed dialect strictly, reads any, keeps every limit, and gives an agent's failures as
//! data. It does not follow tasks, store anything, or decide what a frame means.
//!
//! The credential is bound to one origin by type and attached here only, so no other request can
//! carry it. A send is never repeated by itself: see [`Outcome`].

mod card;
mod fault;
mod http;
mod names;
mod negotiation;
mod push;
mod quirks;
mod stream;
mod token;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use reqwest::header::{self, HeaderMap};
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;
use taskbell_core::agent::{PlainHttp, TransportRule, transport_rule};
use taskbell_core::dialect::call::{Call, HISTORY_LENGTH, ListRequest, RestCall, SendRequest, Verb};
use taskbell_core::dialect::read::{self, ReadFault, TaskPage};
use taskbell_core::dialect::{Binding, Dialect};
use taskbell_core::fault::{FaultKind, RemoteError};
use taskbell_core::ids::{AgentName, TaskId};
use taskbell_core::json;
use taskbell_core::jsonrpc;
use taskbell_core::retry_after;
use taskbell_core::sse::Decoder;
use taskbell_core::state::{Vocabulary, vocabulary_of};
use taskbell_core::task::{SendAnswer, Task};
use taskbell_core::text::one_line;
use url::Url;

pub use card::{Confidence, Discovery, DiscoveryOptions, FoundCard, discover, refresh_card};
pub use fault::{CallError, CallFault, Outcome, TlsFault, Unreachable};
pub(crate) use http::cause_text;
pub use http::{Http, HttpSettings, Limits, SetupError};
pub use negotiation::Negotiation;
pub use quirks::{Quirks, SubscribeVerb};
pub use stream::{EndOfStream, Frame, StreamItem, Subscription};
pub use token::{CredentialSource, CredentialUnavailable, FixedCredential, TokenCommandFault};

use fault::Failure;
use http::{Request, is_html, media_type, not_a2a, read_body};
use token::Credentials;

const ACCEPT_JSON: &str = "application/json";
const ACCEPT_REST: &str = "application/a2a+json, application/json";
/// JSON beside it, because most servers answer errors so.
const ACCEPT_STREAM: &str = "text/event-stream, application/json;q=0.9";

/// Where an agent is and how it is spoken to: its row, without the credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEndpoint {
    pub agent: AgentName,
    /// What the user typed. Its origin is the one that the credential belongs to.
    pub registered_url: Url,
    pub interface_url: Url,
    pub binding: Binding,
    pub dialect: Dialect,
    /// From the card; stands in every request of 1.0 (§8.3.2).
    pub tenant: Option<String>,
    pub plain_http: PlainHttp,
    pub quirks: Quirks,
}

/// One agent, ready to be called. Cheap to clone.
#[derive(Clone)]
pub struct AgentClient(Arc<Inner>, Option<Arc<Negotiation>>);

struct Inner {
    endpoint: AgentEndpoint,
    caller: Caller,
    quirks: Mutex<QuirkBook>,
    next_id: AtomicU64,
}

#[derive(Default)]
struct QuirkBook {
    quirks: Quirks,
    changed: bool,
}

impl std::fmt::Debug for AgentClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentClient").field("agent", &self.0.endpoint.agent).finish_non_exhaustive()
    }
}

impl AgentClient {
    pub fn new(http: Http, endpoint: AgentEndpoint, credentials: Arc<dyn CredentialSource>) -> Self {
        let quirks = QuirkBook { quirks: endpoint.quirks.clone(), changed: false };
        let caller =
            Caller { http, credentials: Credentials::new(credentials), plain_http: endpoint.plain_http };
        Self(
            Arc::new(Inner { endpoint, caller, quirks: Mutex::new(quirks), next_id: AtomicU64::new(1) }),
            None,
        )
    }

    /// The same client for calls that ask for extensions, which the answers to them may activate.
    #[must_use]
    pub fn negotiating(&self, negotiation: Arc<Negotiation>) -> Self {
        Self(Arc::clone(&self.0), Some(negotiation))
    }

    pub fn endpoint(&self) -> &AgentEndpoint {
        &self.0.endpoint
    }

    pub fn quirks(&self) -> Quirks {
        self.quirk_book().quirks.clone()
    }

    /// Notes what a caller learnt, such as a reattached stream that starts without the task.
    pub fn note_quirk(&self, note: impl FnOnce(&mut Quirks)) {
        let mut book = self.quirk_book();
        let before = book.quirks.clone();
        note(&mut book.quirks);
        book.changed |= book.quirks != before;
    }

    /// The quirks if they changed since the last time they were taken: to be stored.
    pub fn take_quirk_changes(&self) -> Option<Quirks> {
        let mut book = self.quirk_book();
        std::mem::take(&mut book.changed).then(|| book.quirks.clone())
    }

    fn quirk_book(&self) -> std::sync::MutexGuard<'_, QuirkBook> {
        self.0.quirks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task as the agent now describes it.
    pub async fn get_task(&self, task_id: &TaskId) -> Result<Task, CallError> {
        let call = Call::Get { task_id: task_id.clone(), history_length: HISTORY_LENGTH };
        let task = self.unary(&call, read::task).await?;
        self.check_task(&call, &task, task_id)?;
        self.note_vocabulary(&task);
        Ok(task)
    }

    /// Asks for the cancellation. What comes back may still be working, or have ended otherwise.
    pub async fn cancel(&self, task_id: &TaskId) -> Result<Task, CallError> {
        let call = Call::Cancel { task_id: task_id.clone() };
        let task = self.unary(&call, read::task).await?;
        self.check_task(&call, &task, task_id)?;
        Ok(task)
    }

    /// Sends a message once. After [`Outcome::Unknown`] the work may be running: only a human repeats it.
    pub async fn send(&self, request: &SendRequest) -> Result<SendAnswer, CallError> {
        self.unary(&Call::Send(request.clone()), read::send_answer).await
    }

    /// One page of the agent's tasks, newest first (1.0 only).
    pub async fn list_tasks(&self, page: &ListRequest) -> Result<TaskPage, CallError> {
        let answer = self.unary(&Call::List(page.clone()), read::task_page).await;
        let refused = [Some(FaultKind::MethodNotFound), Some(FaultKind::UnsupportedOperation)];
        if matches!(&answer, Err(error) if refused.contains(&error.kind())) {
            self.note_quirk(|quirks| quirks.list_refused = true);
        }
        answer
    }

    /// The card that is shown to who is authenticated, as received.
    pub async fn extended_card(&self) -> Result<Value, CallError> {
        self.unary(&Call::ExtendedCard, Ok).await
    }

    /// Attaches to a running task. An error says nothing about the task: read it. Only a missing method
    /// is learnt here; "unsupported operation" is what 1.0 says of a finished task as well (§3.1.6).
    pub async fn subscribe(&self, task_id: &TaskId) -> Result<Subscription, CallError> {
        let call = Call::Subscribe { task_id: task_id.clone() };
        let opened = self.open_stream(&call).await;
        if matches!(&opened, Err(error) if error.kind() == Some(FaultKind::MethodNotFound)) {
            self.note_quirk(|quirks| quirks.streaming_refused = true);
        }
        opened
    }

    /// Sends a message once and listens to what comes of it.
    pub async fn send_streaming(&self, request: &SendRequest) -> Result<Subscription, CallError> {
        self.open_stream(&Call::SendStreaming(request.clone())).await
    }

    async fn unary<T>(&self, call: &Call, read: fn(Value) -> Result<T, ReadFault>) -> Result<T, CallError> {
        let limits = self.0.caller.http.limits();
        let exchange = async {
            let (request, id) = self.request(call, ACCEPT_JSON)?;
            let client = self.0.caller.http.unary();
            let mut response = self.0.caller.send(client, &request).await?;
            let body = read_body(&mut response, limits.body).await?;
            let value = self.read_answer(response.status(), response.headers(), body, id)?;
            read(value).map_err(|fault| Failure::unknown(CallFault::Malformed(fault)))
        };
        let limited = tokio::time::timeout(limits.unary, exchange).await;
        limited.unwrap_or_else(|_| Err(timed_out())).map_err(|failure| self.error(call, failure))
    }

    async fn open_stream(&self, call: &Call) -> Result<Subscription, CallError> {
        let opening = async {
            let (request, id) = self.request(call, ACCEPT_STREAM)?;
            match self.open(&request, id).await {
                Err(refusal) if self.may_try_get(call, &request, &refusal) => {
                    let retry = Request { method: Method::GET, body: None, ..request };
                    let opened = self.open(&retry, id).await;
                    if !matches!(&opened, Err(failure) if wants_other_verb(failure)) {
                        self.note_quirk(|quirks| quirks.subscribe_verb = Some(SubscribeVerb::Get));
                    }
                    opened
                }
                opened => {
                    if matches!((call, &opened), (Call::Subscribe { .. }, Ok(_)))
                        && self.0.endpoint.binding == Binding::Rest
                        && request.method == Method::POST
                    {
                        self.note_quirk(|quirks| quirks.subscribe_verb = Some(SubscribeVerb::Post));
                    }
                    opened
                }
            }
        };
        opening.await.map_err(|failure| self.error(call, failure))
    }

    async fn open(&self, request: &Request, id: u64) -> Result<Subscription, Failure> {
        let http = &self.0.caller.http;
        let limits = http.limits();
        let place = http.lane().map_err(|fault| Failure::not_sent(CallFault::Setup(fault)))?;
        let head = tokio::time::timeout(limits.stream_open, self.0.caller.send(place.client(), request));
        let mut response = head.await.unwrap_or_else(|_| Err(timed_out()))?;
        // The head decides: errors come as plain JSON from half of the SDKs, with any status.
        if media_type(response.headers()).as_deref() == Some("text/event-stream")
            && response.status().is_success()
        {
            return Ok(Subscription::live(response, Decoder::new(limits.sse), place, id));
        }
        let body = tokio::time::timeout(limits.unary, read_body(&mut response, limits.body));
        let body = body.await.unwrap_or_else(|_| Err(timed_out()))?;
        let (status, headers) = (response.status(), response.headers());
        self.read_answer(status, headers, body.clone(), id)?;
        // Read once already, so it is UTF-8.
        Ok(Subscription::snapshot(&String::from_utf8_lossy(&body), id))
    }

    fn may_try_get(&self, call: &Call, request: &Request, refusal: &Failure) -> bool {
        matches!(call, Call::Subscribe { .. })
            && self.0.endpoint.binding == Binding::Rest
            && request.method == Method::POST
            && wants_other_verb(refusal)
    }

    fn request(&self, call: &Call, accept: &'static str) -> Result<(Request, u64), Failure> {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let verb = self.quirk_book().quirks.subscribe_verb;
        let request = wire_request(&self.0.endpoint, call, accept, id, verb)?;
        Ok((Request { negotiation: self.1.clone(), ..request }, id))
    }

    /// The result in an answer that is no stream, or what the agent refused with.
    fn read_answer(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: Bytes,
        id: u64,
    ) -> Result<Value, Failure> {
        let wait = asked_wait(headers);
        if is_html(headers) || (body.is_empty() && !status.is_success()) {
            return Err(no_a2a_body(status, &body, wait));
        }
        if body.is_empty() && self.0.endpoint.binding == Binding::Rest {
            return Ok(Value::Null);
        }
        let value = match json::parse(&body) {
            Ok(value) => value,
            Err(_) if !status.is_success() => return Err(no_a2a_body(status, &body, wait)),
            Err(fault) => {
                let is_json = media_type(headers).is_some_and(|kind| kind.ends_with("json"));
                let fault = if is_json { CallFault::BadJson(fault) } else { not_a2a(status, &body) };
                return Err(Failure::unknown(fault));
            }
        };
        let failed_with = (!status.is_success()).then(|| status.as_u16());
        match self.0.endpoint.binding {
            Binding::JsonRpc => match jsonrpc::Response::read(value, failed_with) {
                Ok(answer) if !answer.answers(id) => Err(Failure::unknown(CallFault::WrongAnswer)),
                Ok(answer) => answer.outcome.map_err(|error| remote(error, wait)),
                Err(_) if failed_with.is_some() => Err(remote_or_proxy(status, &body, wait)),
                Err(_) => Err(Failure::unknown(not_a2a(status, &body))),
            },
            Binding::Rest if failed_with.is_some() => Err(remote_or_proxy(status, &body, wait)),
            Binding::Rest => Ok(value),
        }
    }

    fn check_task(&self, call: &Call, task: &Task, asked: &TaskId) -> Result<(), CallError> {
        if task.id == *asked {
            return Ok(());
        }
        Err(self.error(call, Failure::unknown(CallFault::WrongTask { answered: task.id.clone() })))
    }

    fn note_vocabulary(&self, task: &Task) {
        let is_foreign = match (self.0.endpoint.dialect, vocabulary_of(&task.status.raw_state)) {
            (Dialect::V1, Some(Vocabulary::Lowercase)) | (Dialect::V03, Some(Vocabulary::ScreamingSnake)) => {
                true
            }
            (Dialect::V1 | Dialect::V03, _) => false,
        };
        if is_foreign {
            self.note_quirk(|quirks| quirks.mixed_vocabulary = true);
        }
    }

    fn error(&self, call: &Call, failure: Failure) -> CallError {
        failure.of(&self.0.endpoint.agent, call.name())
    }
}

/// Connections and a credential: what both a known agent and one being looked at are called with.
struct Caller {
    http: Http,
    credentials: Credentials,
    plain_http: PlainHttp,
}

impl Caller {
    fn new(http: Http, source: Arc<dyn CredentialSource>, plain_http: PlainHttp) -> Self {
        Self { http, credentials: Credentials::new(source), plain_http }
    }

    /// Sends with the credential of the URL's origin, once more after a 401 that a token command may cure:
    /// an agent that answers 401 has not acted.
    async fn send(&self, client: &reqwest::Client, request: &Request) -> Result<Response, Failure> {
        self.check_scheme(&request.url)?;
        let limits = self.http.limits();
        let attached = self.credentials.attach(&request.url, limits).await?;
        let response = request.send(client, &attached.headers).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            self.credentials.accepted(&attached);
            return checked_access(response);
        }
        let renewed = self.credentials.renew(&attached, &request.url, limits).await;
        let Some(fresh) = renewed.map_err(|failure| Failure::answered(failure.fault))? else {
            return checked_access(response);
        };
        // The refusal's connection is not needed while the call is repeated.
        drop(response);
        let response = request.send(client, &fresh.headers).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            self.credentials.accepted(&fresh);
        }
        checked_access(response)
    }

    fn check_scheme(&self, url: &Url) -> Result<(), Failure> {
        match transport_rule(url, self.plain_http) {
            TransportRule::Tls | TransportRule::LoopbackPlain | TransportRule::PlainWithoutCredential => {
                Ok(())
            }
            TransportRule::Refused => {
                let host = one_line(url.host_str().unwrap_or_default(), 255);
                Err(Failure::not_sent(CallFault::InsecureUrl { host }))
            }
        }
    }
}

/// The request in the endpoint's binding and dialect. HTTP+JSON does not carry the id.
fn wire_request(
    endpoint: &AgentEndpoint,
    call: &Call,
    accept: &'static str,
    id: u64,
    learnt: Option<SubscribeVerb>,
) -> Result<Request, Failure> {
    match endpoint.binding {
        Binding::JsonRpc => {
            let (method, params) = call
                .json_rpc(endpoint.dialect, endpoint.tenant.as_deref())
                .map_err(|fault| Failure::not_sent(CallFault::NotOffered(fault)))?;
            let body = jsonrpc::request(id, method, &params).to_string();
            let url = endpoint.interface_url.clone();
            Ok(Request {
                method: Method::POST,
                url,
                accept,
                dialect: Some(endpoint.dialect),
                body: Some(body.into()),
                negotiation: None,
            })
        }
        Binding::Rest => {
            let rest = call.rest();
            let url = rest_url(endpoint, &rest);
            let method = match (rest.verb, call, learnt) {
                (_, Call::Subscribe { .. }, Some(SubscribeVerb::Get)) | (Verb::Get, _, _) => Method::GET,
                (Verb::Post, _, _) => Method::POST,
                (Verb::Delete, _, _) => Method::DELETE,
            };
            let body = rest.body.map(|body| Bytes::from(body.to_string()));
            let accept = if accept == ACCEPT_JSON { ACCEPT_REST } else { accept };
            Ok(Request { method, url, accept, dialect: Some(endpoint.dialect), body, negotiation: None })
        }
    }
}

/// 401 and 403 have no JSON-RPC form in either version, and their bodies are often empty.
fn checked_access(response: Response) -> Result<Response, Failure> {
    match response.status() {
        StatusCode::UNAUTHORIZED => {
            let challenge = response
                .headers()
                .get(header::WWW_AUTHENTICATE)
                .map(|value| one_line(&String::from_utf8_lossy(value.as_bytes()), 200));
            Err(Failure::answered(CallFault::Unauthorized { challenge }))
        }
        StatusCode::FORBIDDEN => Err(Failure::answered(CallFault::Forbidden)),
        _ => Ok(response),
    }
}

/// The verb may be wrong: 405, or a 404 that no A2A server wrote.
fn wants_other_verb(failure: &Failure) -> bool {
    match &failure.fault {
        CallFault::Remote { error, .. } => {
            matches!(error.http_status, Some(405)) || (error.http_status == Some(404) && !error.is_a2a())
        }
        CallFault::NotA2a { status, .. } => matches!(status, 404 | 405),
        _ => false,
    }
}

/// An answer without a body of A2A: a proxy, an overloaded server, or no agent at all.
fn no_a2a_body(status: StatusCode, body: &[u8], wait: Option<Duration>) -> Failure {
    let http_status = Some(status.as_u16());
    let error = Box::new(RemoteError { code: None, reason: None, http_status, message: String::new() });
    let kind = match (error.kind(), status) {
        (FaultKind::Other, status) if status.is_server_error() => FaultKind::Unavailable,
        (kind, _) => kind,
    };
    match kind {
        // Whoever stands in front may have passed the request on before it gave up.
        FaultKind::Unavailable => Failure::unknown(CallFault::Remote { error, kind, retry_after: wait }),
        FaultKind::Other => Failure::answered(not_a2a(status, body)),
        kind => Failure::answered(CallFault::Remote { error, kind, retry_after: wait }),
    }
}

/// A JSON body with an error status that is no JSON-RPC: REST's errors, or a web framework's.
fn remote_or_proxy(status: StatusCode, body: &[u8], wait: Option<Duration>) -> Failure {
    let Ok(value) = json::parse(body) else { return no_a2a_body(status, body, wait) };
    let error = RemoteError::from_body(&value, Some(status.as_u16()));
    if error.is_a2a() {
        return remote(error, wait);
    }
    let error = Box::new(error);
    let names_a_task = error.message.to_ascii_lowercase().contains("task");
    match error.kind() {
        FaultKind::Other | FaultKind::Internal | FaultKind::Unavailable if status.is_server_error() => {
            Failure::unknown(CallFault::Remote { error, kind: FaultKind::Unavailable, retry_after: wait })
        }
        // A web framework's "not found" is about the path, and must never make a task lost.
        FaultKind::TaskNotFound if !names_a_task => Failure::answered(not_a2a(status, body)),
        FaultKind::Other => Failure::answered(not_a2a(status, body)),
        kind => Failure::answered(CallFault::Remote { error, kind, retry_after: wait }),
    }
}

fn remote(error: RemoteError, retry_after: Option<Duration>) -> Failure {
    let error = Box::new(error);
    let kind = error.kind();
    Failure::answered(match kind {
        FaultKind::Unauthorized => CallFault::Unauthorized { challenge: None },
        FaultKind::Forbidden => CallFault::Forbidden,
        kind => CallFault::Remote { error, kind, retry_after },
    })
}

fn timed_out() -> Failure {
    Failure::unknown(CallFault::Unreachable(Unreachable::TimedOut))
}

fn asked_wait(headers: &HeaderMap) -> Option<Duration> {
    let field = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    retry_after::parse(field, Timestamp::now())
}

/// Below the interface's own path, with the tenant first (1.0's second set of routes).
fn rest_url(endpoint: &AgentEndpoint, rest: &RestCall) -> Url {
    let mut url = endpoint.interface_url.clone();
    let mut path = url.path().trim_end_matches('/').to_owned();
    if let Some(tenant) = endpoint.tenant.as_deref().filter(|tenant| !tenant.is_empty()) {
        path.push('/');
        path.extend(
            url::form_urlencoded::byte_serialize(tenant.as_bytes()).map(|piece| piece.replace('+', "%20")),
        );
    }
    path.push_str(&rest.path);
    url.set_path(&path);
    if !rest.query.is_empty() {
        url.query_pairs_mut().extend_pairs(rest.query.iter());
    }
    url
}
