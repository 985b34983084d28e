//! What a request to the gateway must be before anything of it is believed, and which face answers it.
//!
//! The listener has seen to the host. Here, in this order: no origin, a known agent, the card for everybody,
//! then a media type of JSON, a length, a client's key, and how often it asks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use serde_json::{Value, json};
use taskbell_core::dialect::errors::{ErrorAnswer, ErrorKind};
use taskbell_core::dialect::request::named_version;
use taskbell_core::dialect::{Binding, Dialect};
use taskbell_core::extensions;
use taskbell_core::ids::AgentName;
use taskbell_core::json::write_line;
use tokio::sync::watch;

use super::clients::Client;
use super::operations::LastEvent;
use super::{Caller, Gateway, card, rest, rpc};
use crate::agent_client::Negotiation;
use crate::agents::Agent;
use crate::api::ApiState;

/// Octets of a request: a message may carry files in base64.
pub(super) const BODY_LIMIT: usize = 8 << 20;
/// A whole body on loopback.
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// Paths of the card: today's, and that of 0.2 which old clients still ask for.
const CARDS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// The routes below `/agents/`. What is ours to say of errors is said here, so that nothing falls through.
pub(crate) fn router(state: ApiState) -> Router {
    Router::new()
        .route("/agents/{agent}", any(answer))
        .route("/agents/{agent}/", any(answer))
        .route("/agents/{agent}/{*below}", any(answer))
        .with_state(state)
}

async fn answer(
    State(state): State<ApiState>,
    Path(path): Path<Vec<(String, String)>>,
    request: Request,
) -> Response {
    let headers = request.headers();
    // Programs send none, and no page may call: not even our own has a reason to.
    if headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site") {
        return refused(StatusCode::FORBIDDEN, "foreign_origin", "pages may not call agents");
    }
    let gateway = state.engine.gateway().clone();
    let named = path.into_iter().find(|(name, _)| name == "agent").map(|(_, value)| value);
    let agent = named.and_then(|name| AgentName::new(name).ok());
    let agent = agent.and_then(|name| gateway.parts().agents().by_name(&name));
    let Some(site) = Site::of(&state, gateway, &request, agent) else {
        return refused(
            StatusCode::NOT_FOUND,
            "unknown_agent",
            "no agent of this name is set up in Taskbell",
        );
    };
    let below = site.below.clone();
    if CARDS.contains(&below.as_str()) {
        return match *request.method() {
            Method::GET | Method::HEAD => card::respond(&site.agent, &site.base, request.headers()),
            _ => not_allowed("GET, HEAD"),
        };
    }
    let is_rpc = below.is_empty() || below == "/";
    if let Err(refusal) = check_type(&request, is_rpc) {
        return *refusal;
    }
    let client = match site.client(request.headers()) {
        Ok(client) => client,
        Err(refusal) => return *refusal,
    };
    if is_rpc {
        rpc::answer(site, client, request).await
    } else {
        rest::answer(site, client, &below, request).await
    }
}

/// The place that a request asks at.
pub(super) struct Site {
    pub gateway: Gateway,
    pub agent: Arc<Agent>,
    /// The agent's address here, as the client named our host, without a slash at its end.
    pub base: String,
    /// The path below it, still percent-encoded.
    pub below: String,
    pub stop: watch::Receiver<bool>,
}

impl Site {
    fn of(state: &ApiState, gateway: Gateway, request: &Request, agent: Option<Arc<Agent>>) -> Option<Self> {
        let agent = agent?;
        let host = request.headers().get(header::HOST)?.to_str().ok()?;
        let root = format!("/agents/{}", agent.name());
        let below = request.uri().path().strip_prefix(&root)?.to_owned();
        Some(Self { gateway, base: format!("http://{host}{root}"), agent, below, stop: state.stop.clone() })
    }

    fn client(&self, headers: &HeaderMap) -> Result<Arc<Client>, Box<Response>> {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let key = match (given.next(), given.next()) {
            (Some(value), None) => value.to_str().ok().and_then(|text| {
                let (scheme, key) = text.split_once(' ')?;
                scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
            }),
            _ => None,
        };
        let Some(client) = key.and_then(|key| self.gateway.clients().of_key(key)) else {
            let text = "the key of a gateway client is needed: `taskbell client add NAME` makes one";
            let mut refusal = refused(StatusCode::UNAUTHORIZED, "unauthorized", text);
            let challenge = HeaderValue::from_static("Bearer realm=\"taskbell\"");
            refusal.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            return Err(Box::new(refusal));
        };
        if client.may_ask(Instant::now()) {
            Ok(client)
        } else {
            let text = "too many requests: wait a second";
            let mut refusal = refused(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", text);
            refusal.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            Err(Box::new(refusal))
        }
    }

    /// Refuses a list of extensions that is none.
    pub fn caller(
        &self,
        client: Arc<Client>,
        dialect: Dialect,
        headers: &HeaderMap,
    ) -> Result<Caller, ErrorAnswer> {
        let values = extensions::HEADERS.iter().flat_map(|name| headers.get_all(*name));
        let asked = extensions::read(values.map(HeaderValue::as_bytes))
            .map_err(|fault| ErrorAnswer::new(ErrorKind::InvalidRequest, fault.to_string()))?;
        Ok(Caller {
            gateway: self.gateway.clone(),
            client,
            agent: Arc::clone(&self.agent),
            dialect,
            base: self.base.clone(),
            negotiation: Arc::new(Negotiation::new(asked)),
        })
    }

    /// Resolves when streams are to end: the engine stops, or the key was revoked.
    pub fn ended(&self, client: &Client) -> impl Future<Output = ()> + Send + 'static {
        let (mut stop, mut revoked) = (self.stop.clone(), client.revoked());
        async move {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => {}
                _ = revoked.wait_for(|revoked| *revoked) => {}
            }
        }
    }
}

/// A body must say that it is JSON. Requests without one may leave the type out.
fn check_type(request: &Request, is_rpc: bool) -> Result<(), Box<Response>> {
    let has_body = !request.body().is_end_stream();
    let given = request.headers().get(header::CONTENT_TYPE);
    if given.is_none() && !(has_body && *request.method() == Method::POST) {
        return Ok(());
    }
    let essence = given.and_then(|value| value.to_str().ok()).unwrap_or_default().split(';').next();
    let essence = essence.unwrap_or_default().trim();
    let known: &[&str] =
        if is_rpc { &["application/json"] } else { &["application/json", "application/a2a+json"] };
    if known.iter().any(|known| essence.eq_ignore_ascii_case(known)) {
        return Ok(());
    }
    let error = ErrorAnswer::new(ErrorKind::ContentTypeNotSupported, "the body must be application/json");
    let body = if is_rpc {
        taskbell_core::jsonrpc::error(&Value::Null, &error.json_rpc(Dialect::V1))
    } else {
        error.rest()
    };
    Err(Box::new(closing(document(StatusCode::UNSUPPORTED_MEDIA_TYPE, "application/json", &body))))
}

/// Why a body was not taken.
pub(super) enum BodyFault {
    TooLarge,
    /// The client stopped sending, or took too long.
    Broken,
}

pub(super) async fn read_body(body: Body, headers: &HeaderMap) -> Result<Bytes, BodyFault> {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    if declared.is_some_and(|length| length.parse::<u64>().is_ok_and(|length| length > BODY_LIMIT as u64)) {
        return Err(BodyFault::TooLarge);
    }
    match tokio::time::timeout(BODY_WITHIN, to_bytes(body, BODY_LIMIT)).await {
        Ok(Ok(octets)) => Ok(octets),
        Ok(Err(error)) => {
            let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            if source.contains("limit") { Err(BodyFault::TooLarge) } else { Err(BodyFault::Broken) }
        }
        Err(_elapsed) => Err(BodyFault::Broken),
    }
}

/// The version that a request names.
pub(super) fn version(headers: &HeaderMap, query: Option<&str>) -> Result<Option<Dialect>, ErrorAnswer> {
    let header = headers.get("a2a-version").map(|value| value.to_str().unwrap_or("?"));
    named_version(header, query)
}

pub(super) fn last_event(headers: &HeaderMap) -> LastEvent {
    let Some(given) = headers.get("last-event-id") else { return LastEvent::None };
    match given.to_str().unwrap_or_default() {
        "" => LastEvent::None,
        text => text.parse().map_or(LastEvent::Unknown, LastEvent::Known),
    }
}

/// Names the extensions that the agent activated, under the name that the caller's version has for it.
pub(super) fn name_activated(response: &mut Response, dialect: Dialect, activated: &[String]) {
    if activated.is_empty() {
        return;
    }
    if let Ok(value) = HeaderValue::try_from(extensions::write(activated)) {
        response.headers_mut().insert(HeaderName::from_static(extensions::header(dialect)), value);
    }
}

/// What the traffic log says of a binding.
pub(super) fn binding(is_rpc: bool) -> Binding {
    if is_rpc { Binding::JsonRpc } else { Binding::Rest }
}

pub(super) fn document(status: StatusCode, media_type: &'static str, value: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, media_type)], write_line(value)).into_response()
}

/// A refusal that is none of A2A's.
pub(super) fn refused(status: StatusCode, code: &str, message: &str) -> Response {
    closing(document(status, "application/json", &json!({ "error": { "code": code, "message": message } })))
}

pub(super) fn not_allowed(allow: &'static str) -> Response {
    let mut response =
        refused(StatusCode::METHOD_NOT_ALLOWED, "no_such_method", "this path has no such method");
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    response
}

/// The body is not read, so the connection cannot be used again.
fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
