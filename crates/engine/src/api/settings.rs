//! Settings and health.

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ApiState;
use super::error::ApiError;
use super::extract::{ApiJson, KeyPath};
use super::views::{ErrorBody, HealthView, Page, SettingRequest, SettingView};

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list_settings))
        .routes(routes!(show_setting, set_setting, unset_setting))
        .routes(routes!(health))
}

/// All settings there are, with the values that hold.
#[utoipa::path(
    get, path = "/settings", tag = "settings",
    responses((status = 200, body = Page<SettingView>), (status = "default", body = ErrorBody)),
)]
async fn list_settings(State(state): State<ApiState>) -> Result<Json<Page<SettingView>>, ApiError> {
    Ok(Json(Page::whole(state.engine.settings().await?)))
}

#[utoipa::path(
    get, path = "/settings/{key}", tag = "settings", params(("key" = String, Path)),
    responses((status = 200, body = SettingView), (status = "default", body = ErrorBody)),
)]
async fn show_setting(
    State(state): State<ApiState>,
    KeyPath(key): KeyPath,
) -> Result<Json<SettingView>, ApiError> {
    Ok(Json(state.engine.setting(&key).await?))
}

#[utoipa::path(
    put, path = "/settings/{key}", tag = "settings", params(("key" = String, Path)),
    request_body = SettingRequest,
    responses((status = 200, body = SettingView), (status = "default", body = ErrorBody)),
)]
async fn set_setting(
    State(state): State<ApiState>,
    KeyPath(key): KeyPath,
    ApiJson(request): ApiJson<SettingRequest>,
) -> Result<Json<SettingView>, ApiError> {
    Ok(Json(state.engine.set_setting(&key, &request.value).await?))
}

/// Back to the default, which is answered.
#[utoipa::path(
    delete, path = "/settings/{key}", tag = "settings", params(("key" = String, Path)),
    responses((status = 200, body = SettingView), (status = "default", body = ErrorBody)),
)]
async fn unset_setting(
    State(state): State<ApiState>,
    KeyPath(key): KeyPath,
) -> Result<Json<SettingView>, ApiError> {
    Ok(Json(state.engine.unset_setting(&key).await?))
}

/// What runs, what does not, and what helps.
#[utoipa::path(
    get, path = "/health", tag = "settings",
    responses((status = 200, body = HealthView), (status = "default", body = ErrorBody)),
)]
async fn health(State(state): State<ApiState>) -> Result<Json<HealthView>, ApiError> {
    Ok(Json(state.engine.health().await?))
}
