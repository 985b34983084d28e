//! Health: how everything is, how it was, and trying it.

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ApiState;
use super::error::ApiError;
use super::extract::Params;
use super::views::{DiagnosticsPart, ErrorBody, HealthChange, HealthItem, HealthView, Page, SelfTestItem};

const PAGE: u32 = 100;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(health))
        .routes(routes!(health_history))
        .routes(routes!(run_self_test))
        .routes(routes!(probe_keyring))
        .routes(routes!(check_store))
        .routes(routes!(back_up_store))
        .routes(routes!(diagnostics))
}

/// What runs, what does not, since when, and what helps.
#[utoipa::path(
    get, path = "/health", tag = "health",
    responses((status = 200, body = HealthView), (status = "default", body = ErrorBody)),
)]
async fn health(State(state): State<ApiState>) -> Result<Json<HealthView>, ApiError> {
    Ok(Json(HealthView { items: state.engine.health().await, gateway: state.access.address() }))
}

/// How the parts came into their states; the newest change first. The last 50 of each are kept.
#[utoipa::path(
    get, path = "/health/history", tag = "health",
    params(
        ("component" = Option<String>, Query, description = "Only of this one"),
        ("limit" = Option<u32>, Query, description = "1 to 1000, 100 where none is given"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses((status = 200, body = Page<HealthChange>), (status = "default", body = ErrorBody)),
)]
async fn health_history(
    State(state): State<ApiState>,
    params: Params,
) -> Result<Json<Page<HealthChange>>, ApiError> {
    let params = params.only(&["component", "limit", "cursor"])?;
    let limit = params.one("limit")?.unwrap_or(PAGE);
    Ok(Json(state.engine.health_history(params.one("component")?, params.one("cursor")?, limit).await?))
}

/// Tries the keyring, the store, the gateway, the inbox, the public address and the notices, and says what came of each.
#[utoipa::path(
    post, path = "/health/self-test", tag = "health",
    responses((status = 200, body = Page<SelfTestItem>), (status = "default", body = ErrorBody)),
)]
async fn run_self_test(State(state): State<ApiState>) -> Result<Json<Page<SelfTestItem>>, ApiError> {
    Ok(Json(Page::whole(state.engine.self_test().await)))
}

/// Writes a value into the keyring, reads it back and deletes it; answers with how the keyring is then.
#[utoipa::path(
    post, path = "/health/keyring/probe", tag = "health",
    responses((status = 200, body = HealthItem), (status = "default", body = ErrorBody)),
)]
async fn probe_keyring(State(state): State<ApiState>) -> Result<Json<HealthItem>, ApiError> {
    state.engine.probe_keyring().await;
    let item = state.engine.health().await.into_iter().find(|item| item.component == "keyring");
    let missing =
        || ApiError::new(axum::http::StatusCode::NOT_FOUND, "not_found", "there is no keyring here");
    item.map(Json).ok_or_else(missing)
}

/// Reads the whole database for damage: about 1.5 ms a megabyte.
#[utoipa::path(
    post, path = "/health/store/check", tag = "health",
    responses((status = 200, body = SelfTestItem), (status = "default", body = ErrorBody)),
)]
async fn check_store(State(state): State<ApiState>) -> Result<Json<SelfTestItem>, ApiError> {
    Ok(Json(state.engine.check_store().await?))
}

/// Copies the store now.
#[utoipa::path(
    post, path = "/health/store/backup", tag = "health",
    responses((status = 200, body = SelfTestItem), (status = "default", body = ErrorBody)),
)]
async fn back_up_store(State(state): State<ApiState>) -> Result<Json<SelfTestItem>, ApiError> {
    Ok(Json(state.engine.back_up_store().await?))
}

/// What helps others to find out what is wrong: no task text, no credential, no id, of addresses the hosts. To be looked
/// through before it is given to anybody.
#[utoipa::path(
    get, path = "/diagnostics", tag = "health",
    responses((status = 200, body = Page<DiagnosticsPart>), (status = "default", body = ErrorBody)),
)]
async fn diagnostics(State(state): State<ApiState>) -> Result<Json<Page<DiagnosticsPart>>, ApiError> {
    Ok(Json(Page::whole(crate::diagnostics::parts(&state.engine).await)))
}
