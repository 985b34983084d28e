//! Notices: what was told, a test, and what the window tells of itself.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ApiState;
use super::error::ApiError;
use super::extract::{ApiJson, Params, TaskPath};
use super::views::{ErrorBody, FocusRequest, NoticeView, Page, SnoozeRequest, TaskSummary};

const PAGE: u32 = 100;
/// A week.
const SNOOZE_MAX: u32 = 7 * 24 * 60;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list_notices))
        .routes(routes!(test_notice))
        .routes(routes!(set_focus))
        .routes(routes!(snooze_task))
}

/// What was told on the desktop or is to be, with what came of it; the newest first.
#[utoipa::path(
    get, path = "/notices", tag = "notices",
    params(
        ("limit" = Option<u32>, Query, description = "1 to 1000, 100 where none is given"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses((status = 200, body = Page<NoticeView>), (status = "default", body = ErrorBody)),
)]
async fn list_notices(
    State(state): State<ApiState>,
    params: Params,
) -> Result<Json<Page<NoticeView>>, ApiError> {
    let params = params.only(&["limit", "cursor"])?;
    let limit = params.one("limit")?.unwrap_or(PAGE);
    Ok(Json(state.engine.notices(params.one("cursor")?, limit).await?))
}

/// Shows a notice now and answers with what came of it.
#[utoipa::path(
    post, path = "/notices/test", tag = "notices",
    responses((status = 200, body = NoticeView), (status = "default", body = ErrorBody)),
)]
async fn test_notice(State(state): State<ApiState>) -> Result<Json<NoticeView>, ApiError> {
    Ok(Json(state.engine.test_notice().await?))
}

/// The window has the focus and shows this task, or none. Holds for 10 s.
#[utoipa::path(
    put, path = "/focus", tag = "notices", request_body = FocusRequest,
    responses((status = 204, description = "Noted"), (status = "default", body = ErrorBody)),
)]
async fn set_focus(
    State(state): State<ApiState>,
    ApiJson(request): ApiJson<FocusRequest>,
) -> Result<StatusCode, ApiError> {
    state.engine.notifier().set_focus(request.task);
    Ok(StatusCode::NO_CONTENT)
}

/// Takes the notice of a waiting task off the desktop and shows it again later. `not_waiting`: there is none.
#[utoipa::path(
    post, path = "/tasks/{agent}/{taskId}/snooze", tag = "notices",
    params(("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded")),
    request_body = SnoozeRequest,
    responses((status = 200, body = TaskSummary), (status = "default", body = ErrorBody)),
)]
async fn snooze_task(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
    ApiJson(request): ApiJson<SnoozeRequest>,
) -> Result<Json<TaskSummary>, ApiError> {
    if !(1..=SNOOZE_MAX).contains(&request.minutes) {
        return Err(ApiError::bad_request(format!("minutes is 1 to {SNOOZE_MAX}")));
    }
    let pause = Duration::from_secs(u64::from(request.minutes) * 60);
    Ok(Json(state.engine.snooze(&task, pause).await?))
}
