//! Windows: a program that shows one listens here, and whatever wants it in front says so.
//!
//! A second start of the desktop app ends once the first one's window is in front. That window may belong
//! to the engine's own process or to one that is attached to a headless engine: both listen alike.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::{Deserialize, Serialize};
use taskbell_core::ids::TaskRef;
use tokio::sync::{broadcast, watch};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ApiState;
use super::error::ApiError;
use super::extract::{ApiJson, Params};
use super::feed::KEEP_ALIVE;
use super::views::{ErrorBody, LinkRequest};

/// Calls that a window may be behind. They come from a user's hand.
const CALLS: usize = 16;

/// What a window is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "call")]
pub enum WindowCall {
    /// Come to the front.
    Raise,
    /// Come to the front and show this task.
    Open { task: TaskRef },
    /// Come to the front and see what to make of this `taskbell:` link, which anybody may have written.
    Link { link: String },
}

/// The windows that listen. Clones share them.
#[derive(Debug, Clone)]
pub struct Windows(broadcast::Sender<WindowCall>);

impl Windows {
    pub fn new() -> Self {
        Self(broadcast::Sender::new(CALLS))
    }

    /// Calls every window. False: there is none.
    pub fn call(&self, call: WindowCall) -> bool {
        self.0.send(call).is_ok()
    }

    /// From now on there is a window, for as long as this is kept.
    pub fn listen(&self) -> WindowCalls {
        WindowCalls(self.0.subscribe())
    }
}

impl Default for Windows {
    fn default() -> Self {
        Self::new()
    }
}

/// What one window is asked.
#[derive(Debug)]
pub struct WindowCalls(broadcast::Receiver<WindowCall>);

impl WindowCalls {
    /// The next call; `None` when the engine is gone.
    pub async fn next(&mut self) -> Option<WindowCall> {
        loop {
            match self.0.recv().await {
                Ok(call) => return Some(call),
                // The newest count: a window that was raised need not be raised for the older ones.
                Err(broadcast::error::RecvError::Lagged(_)) => (),
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(raise_window))
        .routes(routes!(open_link))
        .routes(routes!(window_calls))
}

/// Brings the window to the front. `no_window` where the engine has none.
#[utoipa::path(
    post, path = "/window/raise", tag = "window",
    responses((status = 204, description = "A window was told"), (status = "default", body = ErrorBody)),
)]
async fn raise_window(State(state): State<ApiState>) -> Result<StatusCode, ApiError> {
    if state.windows.call(WindowCall::Raise) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::new(StatusCode::CONFLICT, "no_window", "the engine runs without a window"))
    }
}

/// Longer ones are no links that anybody made for us.
const LINK: usize = 4_096;

/// Brings the window to the front with a link, which it judges: a link shows a task or fills in a form, and starts
/// nothing. `no_window` where the engine has none.
#[utoipa::path(
    post, path = "/window/link", tag = "window", request_body = LinkRequest,
    responses((status = 204, description = "A window was told"), (status = "default", body = ErrorBody)),
)]
async fn open_link(
    State(state): State<ApiState>,
    ApiJson(request): ApiJson<LinkRequest>,
) -> Result<StatusCode, ApiError> {
    if request.link.len() > LINK {
        return Err(ApiError::bad_request(format!("a link has at most {LINK} octets")));
    }
    if state.windows.call(WindowCall::Link { link: request.link }) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::new(StatusCode::CONFLICT, "no_window", "the engine runs without a window"))
    }
}

/// What a window is asked, as event stream, for as long as the window is there. An engine that has no window of
/// its own shows notices meanwhile, if asked to.
#[utoipa::path(
    get, path = "/window/calls", tag = "window",
    params(("notices" = Option<bool>, Query, description = "Show notices on this session's desktop while I listen")),
    responses(
        (status = 200, body = Object, content_type = "text/event-stream"),
        (status = "default", body = ErrorBody),
    ),
)]
async fn window_calls(State(state): State<ApiState>, params: Params) -> Result<Response, ApiError> {
    let params = params.only(&["notices"])?;
    let calls = state.windows.listen();
    let attendance = params.flag("notices")?.then(|| state.engine.notifier().attend());
    // The comment first, so that a window knows that it is heard.
    let opening = stream::once(async { Ok::<_, Infallible>(Bytes::from_static(b": listening\n\n")) });
    let listening = (calls, state.stop.clone(), attendance);
    let body = stream::unfold(listening, |(mut calls, mut stop, attendance)| async move {
        let block = next_block(&mut calls, &mut stop).await?;
        Some((Ok(block), (calls, stop, attendance)))
    });
    let body = Body::from_stream(futures::StreamExt::chain(opening, body));
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], body).into_response())
}

async fn next_block(calls: &mut WindowCalls, stop: &mut watch::Receiver<bool>) -> Option<Bytes> {
    if *stop.borrow_and_update() {
        return None;
    }
    tokio::select! {
        call = calls.next() => {
            let json = serde_json::to_string(&call?).expect("texts always serialise");
            Some(format!("data: {json}\n\n").into())
        }
        _ = stop.changed() => None,
        () = tokio::time::sleep(KEEP_ALIVE) => Some(Bytes::from_static(b": keep-alive\n\n")),
    }
}
