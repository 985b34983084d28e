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
use super::views::{
    ErrorBody, FocusRequest, NoticeView, Page, QuietRequest, QuietView, SnoozeRequest, TaskSummary,
};

const PAGE: u32 = 100;
/// Minutes: thirty days.
const SNOOZE_MAX: u32 = 30 * 24 * 60;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list_notices))
        .routes(routes!(test_notice))
        .routes(routes!(set_focus))
        .routes(routes!(show_quiet, ask_for_quiet, end_quiet))
        .routes(routes!(snooze_task, wake_task))
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

/// Puts the question of a waiting task off: its notice leaves the desktop and comes again then, and until then the task
/// does not need its user. `not_waiting`: it asks nothing.
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
    let pause = match (request.minutes, request.until) {
        (Some(minutes), None) if (1..=SNOOZE_MAX).contains(&minutes) => {
            Duration::from_secs(u64::from(minutes) * 60)
        }
        (Some(_), None) => return Err(ApiError::bad_request(format!("minutes is 1 to {SNOOZE_MAX}"))),
        (None, Some(until)) => {
            let ms = u64::try_from(until.ms().saturating_sub(state.engine.parts().now_ms())).unwrap_or(0);
            if !(1..=u64::from(SNOOZE_MAX) * 60_000).contains(&ms) {
                return Err(ApiError::bad_request("until is a time to come, within thirty days"));
            }
            Duration::from_millis(ms)
        }
        (None, None) | (Some(_), Some(_)) => {
            return Err(ApiError::bad_request("either minutes or until says how long"));
        }
    };
    Ok(Json(state.engine.snooze(&task, pause).await?))
}

/// Puts a task off no longer: it needs its user again, without a notice.
#[utoipa::path(
    delete, path = "/tasks/{agent}/{taskId}/snooze", tag = "notices",
    params(("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded")),
    responses((status = 200, body = TaskSummary), (status = "default", body = ErrorBody)),
)]
async fn wake_task(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
) -> Result<Json<TaskSummary>, ApiError> {
    Ok(Json(state.engine.wake(&task).await?))
}

/// Whether notices are held up now, and until when.
#[utoipa::path(
    get, path = "/quiet", tag = "notices",
    responses((status = 200, body = QuietView), (status = "default", body = ErrorBody)),
)]
async fn show_quiet(State(state): State<ApiState>) -> Result<Json<QuietView>, ApiError> {
    Ok(Json(state.engine.quiet().await?))
}

/// Holds notices up from now on. What comes meanwhile is one digest at the end.
#[utoipa::path(
    put, path = "/quiet", tag = "notices", request_body = QuietRequest,
    responses((status = 200, body = QuietView), (status = "default", body = ErrorBody)),
)]
async fn ask_for_quiet(
    State(state): State<ApiState>,
    ApiJson(request): ApiJson<QuietRequest>,
) -> Result<Json<QuietView>, ApiError> {
    Ok(Json(state.engine.ask_for_quiet(request).await?))
}

/// Ends the quiet: what was held up is told. Quiet hours that hold now are over until they begin again.
#[utoipa::path(
    delete, path = "/quiet", tag = "notices",
    responses((status = 200, body = QuietView), (status = "default", body = ErrorBody)),
)]
async fn end_quiet(State(state): State<ApiState>) -> Result<Json<QuietView>, ApiError> {
    Ok(Json(state.engine.end_quiet().await?))
}
