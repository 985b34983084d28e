//! The inbox: what came, what it was worth, and a test.

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ApiState;
use super::error::ApiError;
use super::extract::{KeyPath, Params};
use super::views::{
    CallbackDetail, CallbackVerdict, CallbackView, ErrorBody, InboxTestView, Page, ReplayView,
};
use crate::claims::ClaimFilter;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list_callbacks))
        .routes(routes!(test_inbox))
        .routes(routes!(show_callback))
        .routes(routes!(replay_callback))
}

/// What came to the inbox, with its verdict; the latest first. All filters given must hold. `bad_query`: what is wrong
/// with q, in a sentence.
#[utoipa::path(
    get, path = "/inbox", tag = "inbox",
    params(
        ("agent" = Option<String>, Query),
        ("task" = Option<String>, Query, description = "AGENT/TASKID"),
        ("verdict" = Option<Vec<CallbackVerdict>>, Query, description = "May repeat: any of these"),
        ("q" = Option<String>, Query, description = "Words of the task, \"phrases\", agent: state: verdict: is: since:, - before what is to be left out"),
        ("limit" = Option<u32>, Query, description = "1 to 1000, 100 where none is given"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses((status = 200, body = Page<CallbackView>), (status = "default", body = ErrorBody)),
)]
async fn list_callbacks(
    State(state): State<ApiState>,
    params: Params,
) -> Result<Json<Page<CallbackView>>, ApiError> {
    let params = params.only(&["agent", "task", "verdict", "q", "limit", "cursor"])?;
    let verdicts = params.all("verdict").map(|word| {
        let known = || CallbackVerdict::ALL.map(CallbackVerdict::word).join(", ");
        CallbackVerdict::from_word(word)
            .ok_or_else(|| ApiError::bad_request(format!("verdict is one of {}", known())))
    });
    let filter = ClaimFilter {
        agent: params.one("agent")?,
        task: params.one("task")?,
        verdicts: verdicts.collect::<Result<_, _>>()?,
        query: params.text("q")?.map(str::to_owned),
        limit: params.one("limit")?,
        cursor: params.text("cursor")?.map(str::to_owned),
    };
    Ok(Json(state.engine.claims().list(filter).await?))
}

/// Posts a callback of our own in each dialect to our own inbox, and says what came of each.
#[utoipa::path(
    post, path = "/inbox/test", tag = "inbox",
    responses((status = 200, body = Page<InboxTestView>), (status = "default", body = ErrorBody)),
)]
async fn test_inbox(State(state): State<ApiState>) -> Result<Json<Page<InboxTestView>>, ApiError> {
    Ok(Json(Page::whole(state.engine.claims().self_test().await?)))
}

/// One callback: both documents and where they differ, its proofs, its headers with secrets masked, its body.
#[utoipa::path(
    get, path = "/inbox/{id}", tag = "inbox", params(("id" = String, Path)),
    responses((status = 200, body = CallbackDetail), (status = "default", body = ErrorBody)),
)]
async fn show_callback(
    State(state): State<ApiState>,
    KeyPath(id): KeyPath,
) -> Result<Json<CallbackDetail>, ApiError> {
    Ok(Json(state.engine.claims().show(&id).await?))
}

/// Reads the task now and holds the callback against it. Changes nothing.
#[utoipa::path(
    post, path = "/inbox/{id}/replay", tag = "inbox", params(("id" = String, Path)),
    responses((status = 200, body = ReplayView), (status = "default", body = ErrorBody)),
)]
async fn replay_callback(
    State(state): State<ApiState>,
    KeyPath(id): KeyPath,
) -> Result<Json<ReplayView>, ApiError> {
    Ok(Json(state.engine.claims().replay(&id).await?))
}
