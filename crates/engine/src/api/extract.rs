//! Reading requests: JSON bodies, paths and queries, each refused with an [`ApiError`] that says what is
//! wrong and never quotes what was sent.

use std::str::FromStr;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use taskbell_core::ids::{AgentName, TaskId, TaskRef};
use taskbell_core::json;
use url::form_urlencoded;

use super::error::ApiError;
use super::guard::{BODY_LIMIT, SEND_BODY_LIMIT, too_large};

/// A whole body on loopback, also from who has not signed in.
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// A JSON body: UTF-8, no key twice, nested no deeper than we read from anybody.
pub(super) struct ApiJson<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for ApiJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let limit = if request.uri().path().ends_with("/send") { SEND_BODY_LIMIT } else { BODY_LIMIT };
        let body = tokio::time::timeout(BODY_WITHIN, Bytes::from_request(request, state));
        let body = body.await.map_err(|_elapsed| {
            ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body did not arrive in time")
        })?;
        let body = body.map_err(|rejection| match rejection {
            BytesRejection::FailedToBufferBody(failed) if failed.status().as_u16() == 413 => too_large(limit),
            _ => ApiError::bad_request("the body did not arrive whole"),
        })?;
        let value =
            json::parse(&body).map_err(|fault| ApiError::bad_request(format!("the body: {fault}")))?;
        serde_json::from_value(value).map(Self).map_err(|error| ApiError::bad_request(shape_fault(&error)))
    }
}

/// What does not fit, in serde's words but without the value that was sent, which may be a secret.
fn shape_fault(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if text.starts_with("missing field") || text.starts_with("unknown field") {
        return format!("the body has the wrong members: {text}");
    }
    match text.rsplit_once("expected ") {
        Some((_, expected)) => format!("the body has a member of the wrong kind: expected {expected}"),
        None => "the body has a member of the wrong kind".to_owned(),
    }
}

/// `{agent}` of the path.
pub(super) struct AgentPath(pub AgentName);

impl<S: Send + Sync> FromRequestParts<S> for AgentPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(name) = path::<String, S>(parts, state).await?;
        AgentName::new(name).map(Self).map_err(|error| ApiError::bad_request(error.to_string()))
    }
}

/// `{agent}/{taskId}` of the path; the id percent-encoded, so that it may hold slashes.
pub(super) struct TaskPath(pub TaskRef);

impl<S: Send + Sync> FromRequestParts<S> for TaskPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path((agent, task)) = path::<(String, String), S>(parts, state).await?;
        let agent = AgentName::new(agent).map_err(|error| ApiError::bad_request(error.to_string()))?;
        Ok(Self(TaskRef { agent, task: TaskId::new(task) }))
    }
}

/// `{key}` of the path.
pub(super) struct KeyPath(pub String);

impl<S: Send + Sync> FromRequestParts<S> for KeyPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        path::<String, S>(parts, state).await.map(|Path(key)| Self(key))
    }
}

async fn path<T, S>(parts: &mut Parts, state: &S) -> Result<Path<T>, ApiError>
where
    T: DeserializeOwned + Send,
    S: Send + Sync,
{
    Path::from_request_parts(parts, state)
        .await
        .map_err(|_| ApiError::bad_request("the path is not UTF-8 in percent encoding"))
}

/// The query, whose members may repeat.
pub(super) struct Params(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or("");
        Ok(Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect()))
    }
}

impl Params {
    /// Refuses members that the operation does not know: a misspelt filter must not list everything.
    pub(super) fn only(self, known: &[&str]) -> Result<Self, ApiError> {
        match self.0.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            None => Ok(self),
            Some(_) => Err(ApiError::bad_request(format!("the query knows only {}", known.join(", ")))),
        }
    }

    pub(super) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// The one value; twice is refused.
    pub(super) fn text<'a>(&'a self, key: &'a str) -> Result<Option<&'a str>, ApiError> {
        let mut values = self.all(key);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            (_, Some(_)) => Err(ApiError::bad_request(format!("the query names {key} twice"))),
        }
    }

    pub(super) fn one<T: FromStr>(&self, key: &str) -> Result<Option<T>, ApiError> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let read =
            text.parse().map_err(|_| ApiError::bad_request(format!("{key} in the query is not readable")));
        read.map(Some)
    }

    /// `?open` and `?open=true` alike.
    pub(super) fn flag(&self, key: &str) -> Result<bool, ApiError> {
        match self.text(key)? {
            None | Some("false") => Ok(false),
            Some("" | "true") => Ok(true),
            Some(_) => Err(ApiError::bad_request(format!("{key} in the query is true or false"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::views::{CredentialRequest, NewAgentRequest};

    #[test]
    fn a_refused_body_is_never_quoted() {
        let secret = "canary-9";
        for body in [
            format!(r#"{{"kind":"bearer","token":["{secret}"]}}"#),
            format!(r#"{{"kind":"{secret}"}}"#),
            format!(r#""{secret}""#),
            format!(r#"{{"kind":"headers","headers":"{secret}"}}"#),
        ] {
            let error = serde_json::from_str::<CredentialRequest>(&body).unwrap_err();
            let told = shape_fault(&error);
            assert!(!told.contains(secret), "{told}");
        }
    }

    #[test]
    fn a_missing_member_is_named() {
        let error = serde_json::from_str::<NewAgentRequest>(r#"{"name":"a"}"#).unwrap_err();
        assert!(shape_fault(&error).contains("`url`"), "{}", shape_fault(&error));
    }

    #[test]
    fn flags_and_repeats_of_a_query_are_read() {
        let params = Params(
            form_urlencoded::parse(b"open&state=a&state=b&limit=5&needsYou=false").into_owned().collect(),
        );
        assert!(params.flag("open").unwrap() && !params.flag("needsYou").unwrap());
        assert_eq!(params.all("state").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(params.one::<u32>("limit").unwrap(), Some(5));
        assert!(params.text("state").is_err() && params.one::<u32>("state").is_err());
        assert!(params.only(&["open", "state", "limit"]).is_err(), "needsYou is not known here");
    }
}
