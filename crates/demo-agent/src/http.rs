//! The HTTP side: connections, who may ask, and which door a request goes to.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH,
    LAST_MODIFIED, ORIGIN, VARY, WWW_AUTHENTICATE,
};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use taskbell_core::dialect::Dialect;
use taskbell_core::dialect::errors::ErrorAnswer;
use taskbell_core::dialect::request::named_version;
use taskbell_core::json::write_line;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::counters::OpenStream;
use crate::extensions::Extensions;
use crate::stream::{AgentBody, Carrier, EventBody};
use crate::world::{Watch, World};
use crate::{card, rest, rpc};

pub const MAX_BODY: usize = 2 << 20;
const BODY_TIME: Duration = Duration::from_secs(30);
/// What may wait in memory for a client that does not read.
const WRITE_BUFFER: usize = 64 * 1024;
/// How long the card may be used unasked: it changes when the agent is started anew.
const CARD_AGE: &str = "max-age=60";

pub type Answer = Response<AgentBody>;

/// What every request needs.
pub struct Site {
    pub world: Arc<World>,
    pub base_url: String,
    /// When this run began, as HTTP writes it.
    pub started: String,
    pub extensions: Extensions,
}

/// Serves until `stop` changes or its sender is gone, then breaks every connection off.
pub async fn serve(listener: TcpListener, site: Arc<Site>, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(connection(stream, peer, Arc::clone(&site)));
                }
                Err(error) => {
                    tracing::warn!(%error, "the demo agent failed to accept a connection");
                    // Out of descriptors: some must be given back first.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = stop.changed() => break,
        }
    }
    drop(listener);
    connections.shutdown().await;
}

async fn connection(stream: TcpStream, peer: SocketAddr, site: Arc<Site>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, %peer, "no TCP_NODELAY");
    }
    let service = service_fn(|request| {
        let site = Arc::clone(&site);
        async move { Ok::<_, Infallible>(answer(&site, request).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(10))
        .max_buf_size(WRITE_BUFFER)
        // Clients that send all of their request and shut down their side still get the answer.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, %peer, "connection of the demo agent ended early");
    }
}

async fn answer(site: &Site, request: Request<Incoming>) -> Answer {
    let path = request.uri().path().to_owned();
    if card::PATHS.contains(&path.as_str()) {
        return serve_card(site, request.method(), request.headers());
    }
    // A page in a browser may name this address; only a page of this machine's own may ask.
    if !origin_is_local(request.headers()) {
        return plain(StatusCode::FORBIDDEN, "foreign origin");
    }
    let Some(user) = site.world.user(bearer(request.headers())) else {
        let mut refusal = plain(StatusCode::UNAUTHORIZED, "unauthorized");
        refusal
            .headers_mut()
            .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"demo-agent\""));
        return refusal;
    };
    let activated = site.extensions.answer(request.headers());
    let mut response = answer_user(site, user, &path, request).await;
    if let Some((name, value)) = activated {
        response.headers_mut().insert(name, value);
    }
    response
}

async fn answer_user(site: &Site, user: usize, path: &str, request: Request<Incoming>) -> Answer {
    if path == "/" {
        if request.method() == Method::POST {
            return rpc::answer(site, user, request).await;
        }
        return not_allowed("POST");
    }
    let below = path.strip_prefix(card::REST_PATH).filter(|below| below.is_empty() || below.starts_with('/'));
    match below {
        Some(below) => rest::answer(site, user, below, request).await,
        None => plain(StatusCode::NOT_FOUND, "not found"),
    }
}

fn serve_card(site: &Site, method: &Method, headers: &HeaderMap) -> Answer {
    if method != Method::GET && method != Method::HEAD {
        return not_allowed("GET, HEAD");
    }
    let document = card::card(&site.base_url, site.world.wants_token(), &site.extensions).to_string();
    let tag = card::entity_tag(&document);
    let is_known = headers.get_all(IF_NONE_MATCH).iter().any(|value| {
        value.to_str().is_ok_and(|text| {
            text.split(',').any(|item| {
                let item = item.trim();
                item == "*" || item.trim_start_matches("W/") == tag
            })
        })
    });
    let mut response = if is_known {
        let mut response = Response::new(AgentBody::Whole(None));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        whole(StatusCode::OK, "application/json", document)
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    headers.insert(VARY, HeaderValue::from_static("A2A-Version"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(CARD_AGE));
    if let Ok(started) = HeaderValue::from_str(&site.started) {
        headers.insert(LAST_MODIFIED, started);
    }
    response
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn origin_is_local(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let Some(url) = origin.to_str().ok().and_then(|text| url::Url::parse(text).ok()) else { return false };
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

pub const NOT_JSON: &str = "the body must be application/json";

/// A body whose type is not told is taken as JSON.
pub fn content_is_json(http: &Request<Incoming>) -> bool {
    let Some(value) = http.headers().get(CONTENT_TYPE) else { return true };
    let media_type = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    ["application/json", "application/a2a+json"].iter().any(|known| media_type.eq_ignore_ascii_case(known))
}

/// Why a body was not taken.
pub enum BodyFault {
    TooLarge,
    /// The client stopped sending.
    Broken,
}

pub async fn read_body(body: Incoming) -> Result<Vec<u8>, BodyFault> {
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(BodyFault::TooLarge);
    }
    let mut body = pin!(body);
    let read = async {
        let mut octets = Vec::new();
        while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let frame = frame.map_err(|_| BodyFault::Broken)?;
            if let Some(data) = frame.data_ref() {
                if octets.len() + data.len() > MAX_BODY {
                    return Err(BodyFault::TooLarge);
                }
                octets.extend_from_slice(data);
            }
        }
        Ok(octets)
    };
    tokio::time::timeout(BODY_TIME, read).await.unwrap_or(Err(BodyFault::Broken))
}

/// What the client says it speaks.
pub fn version(request: &Request<Incoming>) -> Result<Option<Dialect>, ErrorAnswer> {
    let header = request.headers().get("a2a-version").map(|value| value.to_str().unwrap_or("?"));
    named_version(header, request.uri().query())
}

pub fn whole(status: StatusCode, media_type: &'static str, text: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(AgentBody::Whole(Some(text.into())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

pub fn json_answer(status: StatusCode, media_type: &'static str, value: &Value) -> Answer {
    whole(status, media_type, write_line(value))
}

/// A refusal that is none of A2A's.
pub fn plain(status: StatusCode, message: &str) -> Answer {
    json_answer(status, "application/json", &json!({ "error": message }))
}

pub fn not_allowed(allow: &'static str) -> Answer {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}

pub fn events(site: &Site, carrier: Carrier, watch: Watch) -> Answer {
    let open = OpenStream::new(&site.world.counters);
    let body = EventBody::new(carrier, watch.first.as_ref(), watch.events, open);
    as_event_stream(Response::new(AgentBody::Events(Box::new(body))))
}

/// An event stream that is one refusal, then over.
pub fn error_event(refusal: &Value) -> Answer {
    let text = format!("data: {}\n\n", write_line(refusal));
    as_event_stream(Response::new(AgentBody::Whole(Some(text.into()))))
}

fn as_event_stream(mut response: Answer) -> Answer {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
