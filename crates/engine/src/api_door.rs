//! The API as a window reaches it: in this process, or in that of a headless engine it is attached to.
//!
//! Requests pass through as they are and are answered by the same router either way, so the page cannot tell
//! the difference. What the page asks for is its own affair; nothing here knows an operation.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use bytes::Bytes;
use futures::StreamExt as _;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use taskbell_core::sse::{Decoder, Limits};
use tower::ServiceExt as _;

use crate::api::window::{WindowCall, WindowCalls, Windows};
use crate::api::{self, ApiState};
use crate::api_client::{ApiClient, ChangeFeed, ClientError, FeedEvent, WindowCallFeed};

/// Larger answers are no answers of ours.
const ANSWER_OCTETS: usize = 64 << 20;

/// A way to the API. Clones share it.
#[derive(Clone)]
pub struct ApiDoor(Way);

#[derive(Clone)]
enum Way {
    Here {
        router: Router,
        windows: Windows,
    },
    /// The client of the engine's current run.
    There(Arc<RwLock<ApiClient>>),
}

/// An answer, whatever it says.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// JSON; `null` where there was no body.
    pub body: Box<RawValue>,
}

/// A change as the feed tells it, or that changes are missing.
#[derive(Debug)]
pub enum DoorEvent {
    Change { seq: u64, json: Box<RawValue> },
    Reset,
}

impl ApiDoor {
    pub(crate) fn here(state: ApiState) -> Self {
        let windows = state.windows.clone();
        Self(Way::Here { router: api::router(state), windows })
    }

    /// Attaches to the engine of another process.
    pub fn there(client: ApiClient) -> Self {
        Self(Way::There(Arc::new(RwLock::new(client))))
    }

    /// Whether the engine lives in another process, and goes on when this one ends.
    pub fn is_attached(&self) -> bool {
        matches!(self.0, Way::There(_))
    }

    /// Passes a request on: a method, a path under `/api/v1/` with its query, and a JSON body.
    ///
    /// Errors: no request of the API, or no engine that answers.
    pub async fn ask(&self, method: &str, path: &str, body: Option<Vec<u8>>) -> Result<Answer, ClientError> {
        let method = match method {
            "GET" => Method::GET,
            "POST" => Method::POST,
            "PUT" => Method::PUT,
            "DELETE" => Method::DELETE,
            _ => return Err(ClientError::new("bad_request", "the API has no such method")),
        };
        let path: Uri = path
            .parse()
            .ok()
            .filter(|uri: &Uri| uri.authority().is_none() && uri.path().starts_with("/api/v1/"))
            .ok_or_else(|| ClientError::new("bad_request", "the path is none of the API"))?;
        // They end with the engine, not before.
        if method == Method::GET && matches!(path.path(), "/api/v1/changes" | "/api/v1/window/calls") {
            return Err(ClientError::new("bad_request", "a stream has a channel of its own"));
        }
        let (status, body) = match &self.0 {
            Way::Here { router, .. } => call(router, method, path, body).await?,
            Way::There(client) => forward(client, method, &path.to_string(), body).await?,
        };
        let body = if body.is_empty() { b"null".as_slice() } else { &body };
        let body = serde_json::from_slice(body)
            .map_err(|_| ClientError::new("engine_unreadable", "the engine's answer is not JSON"))?;
        Ok(Answer { status: status.as_u16(), body })
    }

    /// A read that this program needs for itself.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let answer = self.ask("GET", path, None).await?;
        if !(200..300).contains(&answer.status) {
            return Err(ClientError::new("refused", format!("{path} was answered with {}", answer.status)));
        }
        serde_json::from_str(answer.body.get())
            .map_err(|_| ClientError::new("engine_unreadable", "the engine's answer is of another shape"))
    }

    /// The change feed after a number, or from now on.
    pub async fn changes(&self, after: Option<u64>) -> Result<DoorFeed, ClientError> {
        match &self.0 {
            Way::Here { router, .. } => {
                let path = match after {
                    Some(after) => format!("/api/v1/changes?after={after}"),
                    None => "/api/v1/changes".to_owned(),
                };
                let path = path.parse().expect("a path of letters and digits");
                let answer = router.clone().oneshot(request(Method::GET, path, None)).await;
                let answer = answer.unwrap_or_else(|never| match never {});
                if answer.status() != StatusCode::OK {
                    return Err(ClientError::new("refused", "the change feed was refused"));
                }
                Ok(DoorFeed(Feed::Here {
                    body: answer.into_body().into_data_stream(),
                    decoder: Decoder::new(Limits::default()),
                    ready: VecDeque::new(),
                }))
            }
            Way::There(client) => {
                let mut feed = current(client).changes(after, None);
                feed.open().await?;
                Ok(DoorFeed(Feed::There(feed)))
            }
        }
    }

    /// What the engine asks of this program's window, from now on.
    pub async fn window_calls(&self) -> Result<DoorCalls, ClientError> {
        Ok(DoorCalls(match &self.0 {
            Way::Here { windows, .. } => Calls::Here(windows.listen()),
            Way::There(client) => {
                let client = known_again(client).await?;
                Calls::There(Box::new(client.window_calls().await?))
            }
        }))
    }
}

async fn call(
    router: &Router,
    method: Method,
    path: Uri,
    body: Option<Vec<u8>>,
) -> Result<(StatusCode, Bytes), ClientError> {
    let answer = router.clone().oneshot(request(method, path, body)).await;
    let answer = answer.unwrap_or_else(|never| match never {});
    let status = answer.status();
    let body = axum::body::to_bytes(answer.into_body(), ANSWER_OCTETS)
        .await
        .map_err(|_| ClientError::new("engine_unreadable", "the engine's answer is too large"))?;
    Ok((status, body))
}

fn request(method: Method, path: Uri, body: Option<Vec<u8>>) -> Request<Body> {
    let mut request = Request::new(body.map_or_else(Body::empty, Body::from));
    *request.method_mut() = method;
    *request.uri_mut() = path;
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    request
}

/// A restarted engine has another port and token. What may have reached the old one is not sent again.
async fn forward(
    client: &RwLock<ApiClient>,
    method: Method,
    path: &str,
    body: Option<Vec<u8>>,
) -> Result<(StatusCode, Bytes), ClientError> {
    let first = current(client).forward(method.clone(), path, body.clone()).await;
    let lost = match first {
        // The token of an earlier run: refused before anything was done.
        Ok((StatusCode::UNAUTHORIZED, _)) => ClientError::new("not_signed_in", "the engine was restarted"),
        Ok(answer) => return Ok(answer),
        Err(error) if error.may_pass() => error,
        Err(error) => return Err(error),
    };
    let unsent = lost.code != "engine_unreachable";
    let client = known_again(client).await?;
    if unsent || method == Method::GET { client.forward(method, path, body).await } else { Err(lost) }
}

fn current(client: &RwLock<ApiClient>) -> ApiClient {
    client.read().unwrap_or_else(PoisonError::into_inner).clone()
}

async fn known_again(client: &RwLock<ApiClient>) -> Result<ApiClient, ClientError> {
    let again = current(client).again().await?;
    *client.write().unwrap_or_else(PoisonError::into_inner) = again.clone();
    Ok(again)
}

/// A reader of the change feed.
pub struct DoorFeed(Feed);

enum Feed {
    Here { body: BodyDataStream, decoder: Decoder, ready: VecDeque<Result<DoorEvent, ClientError>> },
    There(ChangeFeed),
}

impl DoorFeed {
    /// The next event. Waits for as long as nothing changes.
    ///
    /// Errors: the engine stopped, or cut a reader that it could not serve; open the feed anew.
    pub async fn next(&mut self) -> Result<DoorEvent, ClientError> {
        match &mut self.0 {
            Feed::Here { body, decoder, ready } => loop {
                if let Some(event) = ready.pop_front() {
                    return event;
                }
                let chunk = match body.next().await {
                    Some(Ok(chunk)) => chunk,
                    Some(Err(_)) | None => {
                        return Err(ClientError::new("engine_stopped", "the engine ended the change feed"));
                    }
                };
                let pushed = decoder.push(&chunk, &mut |event| {
                    ready.push_back(match event.event {
                        "reset" => Ok(DoorEvent::Reset),
                        _ => change(event.id, event.data),
                    });
                });
                pushed.map_err(|fault| ClientError::new("engine_unreadable", fault.to_string()))?;
            },
            Feed::There(feed) => Ok(match feed.next().await? {
                FeedEvent::Reset => DoorEvent::Reset,
                FeedEvent::Change(change) => DoorEvent::Change {
                    seq: change.seq,
                    json: serde_json::value::to_raw_value(&change)
                        .expect("texts and numbers always serialise"),
                },
            }),
        }
    }
}

fn change(id: &str, json: &str) -> Result<DoorEvent, ClientError> {
    let unreadable = || ClientError::new("engine_unreadable", "the engine's change is not what it should be");
    let seq = id.parse().map_err(|_| unreadable())?;
    let json = RawValue::from_string(json.to_owned()).map_err(|_| unreadable())?;
    Ok(DoorEvent::Change { seq, json })
}

/// What a window is asked, whichever engine asks.
pub struct DoorCalls(Calls);

enum Calls {
    Here(WindowCalls),
    There(Box<WindowCallFeed>),
}

impl DoorCalls {
    /// The next call. Errors: the engine is gone.
    pub async fn next(&mut self) -> Result<WindowCall, ClientError> {
        match &mut self.0 {
            Calls::Here(calls) => {
                calls.next().await.ok_or_else(|| ClientError::new("engine_stopped", "the engine stopped"))
            }
            Calls::There(calls) => calls.next().await,
        }
    }
}
