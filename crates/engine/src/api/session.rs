//! How callers make sure of the engine and pages get in.

use std::time::Instant;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ApiState;
use super::error::ApiError;
use super::extract::{ApiJson, Params};
use super::guard::SESSION_COOKIE;
use super::proof::MAX_CHALLENGE;
use super::views::{ErrorBody, HelloView, PageLoginView, SessionRequest};

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(hello)).routes(routes!(log_in)).routes(routes!(page_login))
}

/// Proves that the engine knows the API token. Needs no token.
#[utoipa::path(
    get, path = "/hello", tag = "session", security(()),
    params(("c" = String, Query, description = "A challenge of 1 to 128 characters", max_length = 128)),
    responses((status = 200, body = HelloView), (status = "4XX", body = ErrorBody)),
)]
async fn hello(State(state): State<ApiState>, params: Params) -> Result<Json<HelloView>, ApiError> {
    let params = params.only(&["c"])?;
    match params.text("c")? {
        Some(challenge) if (1..=MAX_CHALLENGE).contains(&challenge.chars().count()) => Ok(Json(HelloView {
            hello: state.access.prove(challenge),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })),
        _ => Err(ApiError::bad_request(format!("c in the query has 1 to {MAX_CHALLENGE} characters"))),
    }
}

/// Signs a page in with the nonce of its address. The cookie works for that page's own requests only.
#[utoipa::path(
    post, path = "/session", tag = "session", security(()),
    request_body = SessionRequest,
    responses((status = 204, description = "Signed in"), (status = "4XX", body = ErrorBody)),
)]
async fn log_in(
    State(state): State<ApiState>,
    ApiJson(request): ApiJson<SessionRequest>,
) -> Result<Response, ApiError> {
    let session = state.access.log_in(&request.nonce, Instant::now()).map_err(no_randomness)?;
    let Some(session) = session else {
        let message = "this sign-in link was used already or is over a minute old: run `taskbell open`";
        return Err(ApiError::new(StatusCode::UNAUTHORIZED, "login_expired", message));
    };
    let cookie = format!("{SESSION_COOKIE}={session}; HttpOnly; SameSite=Strict; Path=/api");
    let mut cookie = HeaderValue::try_from(cookie).expect("hex and plain words are a header value");
    cookie.set_sensitive(true);
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

/// Makes a sign-in link for a browser on this machine.
#[utoipa::path(
    post, path = "/page-login", tag = "session",
    responses((status = 200, body = PageLoginView), (status = "default", body = ErrorBody)),
)]
async fn page_login(State(state): State<ApiState>) -> Result<Json<PageLoginView>, ApiError> {
    state.page_login(Instant::now()).map(Json)
}

impl ApiState {
    /// A sign-in link, good once and for a minute. Errors: `no_port` while no port is bound.
    pub fn page_login(&self, now: Instant) -> Result<PageLoginView, ApiError> {
        let address = self.access.address().ok_or_else(|| {
            let message = "the page has no address: its port is taken by another program, see Health";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "no_port", message)
        })?;
        let nonce = self.access.new_nonce(now).map_err(no_randomness)?;
        Ok(PageLoginView { url: format!("{address}/#login={nonce}") })
    }
}

fn no_randomness(_error: getrandom::Error) -> ApiError {
    let message = "the system gives no random numbers";
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "no_randomness", message)
}
