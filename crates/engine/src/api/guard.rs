//! What a request must be before anything of it is believed. Loopback is not a trust boundary: any page in
//! the user's browser and any program of any user can connect.
//!
//! In this order, each without reading the body: exact host (421), foreign origin or foreign site (403),
//! media type (415), declared length (413), then who calls (401) and how often (429). No answer ever has a
//! CORS header. The router behind this is the one that the window calls directly.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, AsHeaderName, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt as _;

use super::access::{Access, Caller};
use super::error::ApiError;

/// Octets of a request body.
pub const BODY_LIMIT: usize = 1 << 20;

/// Octets of a send, which may carry files in base64.
pub const SEND_BODY_LIMIT: usize = 24 << 20;

pub(super) const SESSION_COOKIE: &str = "taskbell_session";

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Guards every route of the listener, whoever it is for.
pub async fn guard_browser(
    State(access): State<Arc<Access>>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let host = check_host(&access, &request).inspect_err(|_| access.note_misdirected(Instant::now()));
    let refused = host.and_then(|host| check_origin(&host, request.headers()));
    let mut response = match refused {
        Ok(()) => match AssertUnwindSafe(next.run(request)).catch_unwind().await {
            Ok(response) => response,
            Err(_panic) => {
                tracing::error!("a request handler panicked");
                let message = "the engine failed to answer: please report this with its log";
                let error = ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message);
                closing(error.into_response())
            }
        },
        Err(refused) => closing(refused.into_response()),
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    );
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Guards the API behind [`guard_browser`]: JSON only, and a token or a session on every call but two.
pub async fn guard_api(State(access): State<Arc<Access>>, request: Request<Body>, next: Next) -> Response {
    match check_call(&access, &request) {
        Ok(()) => next.run(request).await,
        Err(refused) => closing(refused.into_response()),
    }
}

/// The body is not read, so the connection cannot be used again.
fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn check_call(access: &Access, request: &Request<Body>) -> Result<(), ApiError> {
    let headers = request.headers();
    if matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH) {
        check_media_type(headers)?;
    }
    let path = request.uri().path();
    let limit = if path.ends_with("/send") { SEND_BODY_LIMIT } else { BODY_LIMIT };
    check_length(headers, limit)?;
    let bucket = match caller(access, headers) {
        Ok(Caller::Token) => &access.by_token,
        Ok(Caller::Session) => &access.by_session,
        // Neither takes or gives anything: a proof that we know the token, and the page's way in.
        Err(_) if matches!(path, "/api/v1/hello" | "/api/v1/session") => &access.unknown,
        Err(refused) => return Err(refused),
    };
    if bucket.take(Instant::now()) {
        Ok(())
    } else {
        let message = "too many requests: wait a second";
        Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message))
    }
}

/// The host that the request names, where it is one of ours: a name that rebinds to this machine is not.
fn check_host(access: &Access, request: &Request<Body>) -> Result<String, ApiError> {
    let misdirected = || {
        let message =
            "this listener answers to 127.0.0.1 and localhost only; a tunnel belongs on the inbox port";
        ApiError::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", message)
    };
    let port = access.port().ok_or_else(misdirected)?;
    let host = one(request.headers(), header::HOST).map_err(|()| misdirected())?.ok_or_else(misdirected)?;
    let ours = |named: &str| {
        ["127.0.0.1", "localhost"].iter().any(|name| {
            let rest = named.strip_prefix(name);
            // Browsers leave the default port out.
            rest.is_some_and(|rest| {
                rest.strip_prefix(':') == Some(&port.to_string()) || (rest.is_empty() && port == 80)
            })
        })
    };
    let target_is_ours = request.uri().authority().is_none_or(|authority| ours(authority.as_str()));
    if ours(host) && target_is_ours { Ok(host.to_owned()) } else { Err(misdirected()) }
}

/// Programs send no origin. Our own page does, and its browser says that it is ours.
fn check_origin(host: &str, headers: &HeaderMap) -> Result<(), ApiError> {
    let foreign = |message| ApiError::new(StatusCode::FORBIDDEN, "foreign_origin", message);
    let site =
        one(headers, FETCH_SITE).map_err(|()| foreign("the request says twice where it comes from"))?;
    if !matches!(site, None | Some("same-origin" | "none")) {
        return Err(foreign("another site's page may not call the engine"));
    }
    match one(headers, header::ORIGIN) {
        Ok(None) => Ok(()),
        Ok(Some(origin)) if origin.strip_prefix("http://") == Some(host) && site == Some("same-origin") => {
            Ok(())
        }
        Ok(Some(_)) | Err(()) => Err(foreign("another origin's page may not call the engine")),
    }
}

fn check_media_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let given = one(headers, header::CONTENT_TYPE).unwrap_or(None).unwrap_or("");
    let essence = given.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        let message = "the body must be application/json";
        Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", message))
    }
}

fn check_length(headers: &HeaderMap, limit: usize) -> Result<(), ApiError> {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let over = declared.is_some_and(|length| length.parse::<u64>().is_ok_and(|length| length > limit as u64));
    if over { Err(too_large(limit)) } else { Ok(()) }
}

pub(super) fn too_large(limit: usize) -> ApiError {
    let message = format!("the body is over {limit} octets");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
}

/// A wrong token is refused even beside a good cookie.
fn caller(access: &Access, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let unauthorized = || {
        let message = "the API token or a signed-in page is needed: run `taskbell open`";
        ApiError::new(StatusCode::UNAUTHORIZED, "not_signed_in", message)
    };
    if let Some(given) = one(headers, header::AUTHORIZATION).map_err(|()| unauthorized())? {
        let (scheme, token) = given.split_once(' ').ok_or_else(unauthorized)?;
        let right = scheme.eq_ignore_ascii_case("bearer") && access.is_token(token);
        return if right { Ok(Caller::Token) } else { Err(unauthorized()) };
    }
    // A cookie goes with whatever a browser sends; only our own page's requests may use it.
    let from_our_page = one(headers, FETCH_SITE) == Ok(Some("same-origin"));
    let signed_in =
        || cookies(headers).any(|(name, value)| name == SESSION_COOKIE && access.is_session(value));
    if from_our_page && signed_in() { Ok(Caller::Session) } else { Err(unauthorized()) }
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
}

/// The value of a header that may come once at most. `Err`: it came twice, or is no text.
fn one(headers: &HeaderMap, name: impl AsHeaderName) -> Result<Option<&str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}
