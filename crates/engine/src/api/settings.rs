//! Settings.

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ApiState;
use super::error::ApiError;
use super::extract::{ApiJson, KeyPath, Params};
use super::views::{ErrorBody, Page, SettingChange, SettingRequest, SettingView, SettingsFile};

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list_settings))
        .routes(routes!(export_settings))
        .routes(routes!(import_settings))
        .routes(routes!(show_setting, set_setting, unset_setting))
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

/// The settings that their user changed, as a file holds them; without those that may hold a secret.
#[utoipa::path(
    get, path = "/settings/export", tag = "settings",
    responses((status = 200, body = SettingsFile), (status = "default", body = ErrorBody)),
)]
async fn export_settings(State(state): State<ApiState>) -> Result<Json<SettingsFile>, ApiError> {
    Ok(Json(state.engine.export_settings().await?))
}

/// Sets what such a file names, all or nothing, and answers with what that changes. A key that is none, or a value that
/// its setting does not take, is refused by name.
#[utoipa::path(
    post, path = "/settings/import", tag = "settings", request_body = SettingsFile,
    params(("dry" = Option<bool>, Query, description = "Only say what it would change")),
    responses((status = 200, body = Page<SettingChange>), (status = "default", body = ErrorBody)),
)]
async fn import_settings(
    State(state): State<ApiState>,
    params: Params,
    ApiJson(file): ApiJson<SettingsFile>,
) -> Result<Json<Page<SettingChange>>, ApiError> {
    let dry = params.only(&["dry"])?.one("dry")?.unwrap_or(false);
    Ok(Json(Page::whole(state.engine.import_settings(file, dry).await?)))
}
