//! Settings and health.

use std::time::Instant;

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ApiState;
use super::error::ApiError;
use super::extract::{ApiJson, KeyPath};
use super::views::{
    ErrorBody, HealthItem, HealthState, HealthView, Page, SettingRequest, SettingView, UtcTime,
};

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
    let mut items = state.engine.health().await?;
    items.extend(taken_port(&state));
    items.extend(wrong_hosts(&state));
    Ok(Json(HealthView { items, gateway: state.access.address() }))
}

/// Following goes on without the listener; only the command line and the browser cannot get in.
fn taken_port(state: &ApiState) -> Option<HealthItem> {
    let taken = state.access.port_taken()?;
    Some(HealthItem {
        component: "gateway".to_owned(),
        state: HealthState::Bad,
        since: ago(state, taken.since),
        detail: taken.told,
        fix: Some("end that program, or choose another port; it is tried again each 10 s".to_owned()),
    })
}

fn ago(state: &ApiState, since: Instant) -> UtcTime {
    let ago = i64::try_from(since.elapsed().as_millis()).unwrap_or(0);
    UtcTime::from_ms(state.engine.parts().now_ms().saturating_sub(ago))
}

/// The usual cause is a tunnel set up for the wrong port. Who it was for is a stranger's text and not shown.
fn wrong_hosts(state: &ApiState) -> Option<HealthItem> {
    let now = Instant::now();
    let noted = state.access.misdirected(now)?;
    Some(HealthItem {
        component: "gateway host".to_owned(),
        state: HealthState::Warn,
        since: ago(state, noted.first),
        detail: format!("{} requests named another host and were refused", noted.count),
        fix: Some("if a tunnel points at this port, point it at the inbox port instead".to_owned()),
    })
}
