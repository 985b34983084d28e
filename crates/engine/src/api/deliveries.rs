//! Callbacks that leave: their receivers, and what was sent to them.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use taskbell_core::delivery::{DeliveryState, Lane};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ApiState;
use super::error::ApiError;
use super::extract::{ApiJson, KeyPath, Params};
use super::views::{AllowTargetRequest, DeliveryView, ErrorBody, Page, TargetView};
use crate::store::deliveries::DeliveryFilter;
use crate::store::{DeliveryKey, TargetKey};

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list_targets, allow_target))
        .routes(routes!(remove_target))
        .routes(routes!(pause_target))
        .routes(routes!(resume_target))
        .routes(routes!(list_deliveries))
        .routes(routes!(get_delivery))
        .routes(routes!(retry_delivery))
}

/// Receivers of callbacks, by client and origin.
#[utoipa::path(
    get, path = "/targets", tag = "deliveries",
    responses((status = 200, body = Page<TargetView>), (status = "default", body = ErrorBody)),
)]
async fn list_targets(State(state): State<ApiState>) -> Result<Json<Page<TargetView>>, ApiError> {
    Ok(Json(Page::whole(state.engine.dispatcher().targets().await?)))
}

/// Lets a client be called at a port of this machine, over plain http.
#[utoipa::path(
    post, path = "/targets", tag = "deliveries", request_body = AllowTargetRequest,
    responses((status = 200, body = TargetView), (status = "default", body = ErrorBody)),
)]
async fn allow_target(
    State(state): State<ApiState>,
    ApiJson(request): ApiJson<AllowTargetRequest>,
) -> Result<Json<TargetView>, ApiError> {
    let dispatcher = state.engine.dispatcher();
    let client = dispatcher.client_of(&request.client).await?;
    Ok(Json(dispatcher.allow(client, request.port).await?))
}

/// Takes an approval back. What is registered for it is refused from then on.
#[utoipa::path(
    delete, path = "/targets/{id}", tag = "deliveries", params(("id" = u64, Path)),
    responses((status = 204, description = "Taken back"), (status = "default", body = ErrorBody)),
)]
async fn remove_target(State(state): State<ApiState>, KeyPath(id): KeyPath) -> Result<StatusCode, ApiError> {
    state.engine.dispatcher().remove_target(TargetKey(number(&id, "target")?)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sends nothing there until it is resumed; ends and questions wait.
#[utoipa::path(
    post, path = "/targets/{id}/pause", tag = "deliveries", params(("id" = u64, Path)),
    responses((status = 200, body = TargetView), (status = "default", body = ErrorBody)),
)]
async fn pause_target(
    State(state): State<ApiState>,
    KeyPath(id): KeyPath,
) -> Result<Json<TargetView>, ApiError> {
    Ok(Json(state.engine.dispatcher().pause_target(TargetKey(number(&id, "target")?)).await?))
}

/// Calls it again as if it had never failed; what waits is sent at once.
#[utoipa::path(
    post, path = "/targets/{id}/resume", tag = "deliveries", params(("id" = u64, Path)),
    responses((status = 200, body = TargetView), (status = "default", body = ErrorBody)),
)]
async fn resume_target(
    State(state): State<ApiState>,
    KeyPath(id): KeyPath,
) -> Result<Json<TargetView>, ApiError> {
    Ok(Json(state.engine.dispatcher().resume_target(TargetKey(number(&id, "target")?)).await?))
}

/// Callbacks that left or are to leave, with their attempts, the newest first.
#[utoipa::path(
    get, path = "/deliveries", tag = "deliveries",
    params(
        ("task" = Option<String>, Query, description = "`AGENT/TASKID`, or a prefix that fits one task"),
        ("state" = Option<String>, Query),
        ("lane" = Option<String>, Query, description = "`reserved` or `best-effort`"),
        ("limit" = Option<u32>, Query, description = "1 to 1000, 100 where none is given"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses((status = 200, body = Page<DeliveryView>), (status = "default", body = ErrorBody)),
)]
async fn list_deliveries(
    State(state): State<ApiState>,
    params: Params,
) -> Result<Json<Page<DeliveryView>>, ApiError> {
    let params = params.only(&["task", "state", "lane", "limit", "cursor"])?;
    let unreadable = |what: &str| ApiError::bad_request(format!("{what} in the query is not readable"));
    let filter = DeliveryFilter {
        task: match params.text("task")? {
            Some(text) => Some(state.engine.resolve(text).await?),
            None => None,
        },
        state: match params.text("state")? {
            Some(word) => Some(DeliveryState::from_word(word).ok_or_else(|| unreadable("state"))?),
            None => None,
        },
        lane: match params.text("lane")? {
            Some(word) => Some(Lane::from_word(word).ok_or_else(|| unreadable("lane"))?),
            None => None,
        },
        before: params.one("cursor")?,
    };
    Ok(Json(state.engine.dispatcher().deliveries(filter, params.one("limit")?).await?))
}

/// One, with its attempts.
#[utoipa::path(
    get, path = "/deliveries/{id}", tag = "deliveries", params(("id" = u64, Path)),
    responses((status = 200, body = DeliveryView), (status = "default", body = ErrorBody)),
)]
async fn get_delivery(
    State(state): State<ApiState>,
    KeyPath(id): KeyPath,
) -> Result<Json<DeliveryView>, ApiError> {
    Ok(Json(state.engine.dispatcher().delivery(DeliveryKey(number(&id, "delivery")?)).await?))
}

/// Sends it again now, with all its tries before it. `not_again`: it arrived, or there is nothing left to send.
#[utoipa::path(
    post, path = "/deliveries/{id}/retry", tag = "deliveries", params(("id" = u64, Path)),
    responses((status = 200, body = DeliveryView), (status = "default", body = ErrorBody)),
)]
async fn retry_delivery(
    State(state): State<ApiState>,
    KeyPath(id): KeyPath,
) -> Result<Json<DeliveryView>, ApiError> {
    Ok(Json(state.engine.dispatcher().retry(DeliveryKey(number(&id, "delivery")?)).await?))
}

fn number(id: &str, what: &str) -> Result<i64, ApiError> {
    id.parse().map_err(|_| ApiError::bad_request(format!("the id of a {what} is a number")))
}
