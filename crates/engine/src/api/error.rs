//! Failures as the API tells them: a status, a stable code, one line for people.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::views::{ErrorBody, ErrorView};
use crate::error::EngineError;
use crate::store::StoreError;

/// A refused or failed request. Its message never quotes what was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub status: StatusCode,
    pub code: &'static str,
    pub message: String,
}

impl ApiError {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    pub(super) fn body(&self) -> ErrorBody {
        ErrorBody { error: ErrorView { code: self.code.to_owned(), message: self.message.clone() } }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::new(status_of(error.code()), error.code(), error.to_string())
    }
}

/// The status that goes with an engine's code. What an agent did is 502 whatever the agent said: 401 and 429
/// are this API's own, and clients act on them.
fn status_of(code: &str) -> StatusCode {
    match code {
        "usage" | "insecure_http" | "bad_query" | "note_too_long" => StatusCode::BAD_REQUEST,
        "unknown_agent" | "unknown_task" | "no_registration" | "unknown_client" | "unknown_setting"
        | "not_found" | "unknown_target" | "unknown_delivery" | "unknown_callback" | "unknown_view"
        | "task_not_found" => StatusCode::NOT_FOUND,
        "exists"
        | "ambiguous_task"
        | "task_ended"
        | "not_waiting"
        | "no_address"
        | "task_terminal"
        | "no_task"
        | "not_kept"
        | "not_again"
        | "view_built_in"
        | "too_many_views"
        | "task_not_cancelable" => StatusCode::CONFLICT,
        "agent_timed_out" => StatusCode::GATEWAY_TIMEOUT,
        "store_busy"
        | "disk_full"
        | "store_read_only"
        | "disk_failed"
        | "store_suspended"
        | "store_late"
        | "store_stopped"
        | "no_descriptors"
        | "inbox_not_listening"
        | "credential_unavailable" => StatusCode::SERVICE_UNAVAILABLE,
        "client_setup_failed"
        | "store_damaged"
        | "store_unreadable"
        | "store_failed"
        | "not_packed"
        | "token_command_failed" => StatusCode::INTERNAL_SERVER_ERROR,
        keyring if keyring.starts_with("keyring_") => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_GATEWAY,
    }
}

impl ApiError {
    /// The agent did not do what was asked, or could not be reached.
    pub(super) fn is_the_agents(&self) -> bool {
        matches!(self.status, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT)
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        let status = status_of(error.code);
        if status.is_server_error() {
            let cause = error.source.as_deref().map(ToString::to_string).unwrap_or_default();
            // Who asks while the engine stops is told so; to everybody else it is no news.
            if error.code == StoreError::Stopped.code() {
                tracing::debug!(code = error.code, cause, "a request failed: {error}");
            } else {
                tracing::info!(code = error.code, cause, "a request failed: {error}");
            }
        }
        Self::new(status, error.code, error.message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(self.body())).into_response();
        let headers = response.headers_mut();
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => (),
        }
        response
    }
}
