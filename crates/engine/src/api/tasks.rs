//! Tasks: listing, looking, answering, cancelling, reading again.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ApiState;
use super::error::ApiError;
use super::extract::{ApiJson, Params, TaskPath};
use super::views::{
    ArchiveRequest, ErrorBody, ExportFormat, ExportView, FollowRequest, FollowWish, MuteRequest, NoteRequest,
    Page, PinRequest, ReconcileItem, ReconcileRequest, RenderedView, ReplyRequest, ResolvedView, ShownState,
    TaskDetail, TaskFilter, TaskSummary,
};

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list_tasks))
        .routes(routes!(resolve_task))
        .routes(routes!(show_task, delete_task))
        .routes(routes!(show_rendered))
        .routes(routes!(export_task))
        .routes(routes!(reply))
        .routes(routes!(cancel_task))
        .routes(routes!(pin_task))
        .routes(routes!(archive_task))
        .routes(routes!(mute_task))
        .routes(routes!(note_task))
        .routes(routes!(follow_task))
        .routes(routes!(reconcile))
}

/// A page of tasks, the newest update first. All filters given must hold. `bad_query`: what is wrong with q, in a
/// sentence.
#[utoipa::path(
    get, path = "/tasks", tag = "tasks",
    params(
        ("open" = Option<bool>, Query, description = "Not ended"),
        ("needsYou" = Option<bool>, Query, description = "Waits for the user"),
        ("agent" = Option<String>, Query),
        ("state" = Option<Vec<ShownState>>, Query, description = "May repeat: any of these"),
        ("q" = Option<String>, Query, description = "Words, \"phrases\", state: agent: via: verdict: is: since:, - before what is to be left out"),
        ("limit" = Option<u32>, Query, description = "1 to 1000, 100 where none is given"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses((status = 200, body = Page<TaskSummary>), (status = "default", body = ErrorBody)),
)]
async fn list_tasks(
    State(state): State<ApiState>,
    params: Params,
) -> Result<Json<Page<TaskSummary>>, ApiError> {
    let params = params.only(&["open", "needsYou", "agent", "state", "q", "limit", "cursor"])?;
    let states = params.all("state").map(|word| {
        let known = || ShownState::ALL.map(ShownState::word).join(", ");
        ShownState::from_word(word)
            .ok_or_else(|| ApiError::bad_request(format!("state is one of {}", known())))
    });
    let agent = match params.text("agent")? {
        Some(name) => {
            let name = name.to_owned().try_into();
            Some(name.map_err(|error: taskbell_core::ids::AgentNameError| {
                ApiError::bad_request(error.to_string())
            })?)
        }
        None => None,
    };
    let filter = TaskFilter {
        open: params.flag("open")?,
        needs_you: params.flag("needsYou")?,
        agent,
        states: states.collect::<Result<_, _>>()?,
        query: params.text("q")?.map(str::to_owned),
        limit: params.one("limit")?,
        cursor: params.text("cursor")?.map(str::to_owned),
    };
    Ok(Json(state.engine.tasks(filter).await?))
}

/// The one task that `AGENT/TASKID`, or a unique prefix of its id, names.
#[utoipa::path(
    get, path = "/tasks/resolve", tag = "tasks", params(("ref" = String, Query)),
    responses((status = 200, body = ResolvedView), (status = "default", body = ErrorBody)),
)]
async fn resolve_task(State(state): State<ApiState>, params: Params) -> Result<Json<ResolvedView>, ApiError> {
    let params = params.only(&["ref"])?;
    let text = params.text("ref")?.ok_or_else(|| ApiError::bad_request("the query names no ref"))?;
    Ok(Json(ResolvedView { task: state.engine.resolve(text).await? }))
}

/// One task with everything known of it.
#[utoipa::path(
    get, path = "/tasks/{agent}/{taskId}", tag = "tasks",
    params(("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded")),
    responses((status = 200, body = TaskDetail), (status = "default", body = ErrorBody)),
)]
async fn show_task(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
) -> Result<Json<TaskDetail>, ApiError> {
    Ok(Json(state.engine.task(&task).await?))
}

/// What the agent wrote, as a tree without markup: artifacts and conversation. Nothing is fetched.
#[utoipa::path(
    get, path = "/tasks/{agent}/{taskId}/rendered", tag = "tasks",
    params(("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded")),
    responses((status = 200, body = RenderedView), (status = "default", body = ErrorBody)),
)]
async fn show_rendered(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
) -> Result<Json<RenderedView>, ApiError> {
    Ok(Json(state.engine.rendered(&task).await?))
}

/// A task as files: everything known of it, a document, what it made, or all of that in one archive.
#[utoipa::path(
    get, path = "/tasks/{agent}/{taskId}/export", tag = "tasks",
    params(
        ("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded"),
        ("format" = ExportFormat, Query),
    ),
    responses((status = 200, body = ExportView), (status = "default", body = ErrorBody)),
)]
async fn export_task(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
    params: Params,
) -> Result<Json<ExportView>, ApiError> {
    let params = params.only(&["format"])?;
    let format = params.text("format")?.and_then(ExportFormat::from_word).ok_or_else(|| {
        let known = ExportFormat::ALL.map(ExportFormat::word).join(", ");
        ApiError::bad_request(format!("format is one of {known}"))
    })?;
    Ok(Json(state.engine.export(&task, format).await?))
}

/// Forgets a task here. At its agent nothing happens.
#[utoipa::path(
    delete, path = "/tasks/{agent}/{taskId}", tag = "tasks",
    params(("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded")),
    responses((status = 204, description = "Forgotten"), (status = "default", body = ErrorBody)),
)]
async fn delete_task(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
) -> Result<StatusCode, ApiError> {
    state.engine.delete_task(&task).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Answers a task, once; returns when the agent's answer is applied. `outcome_unknown`: the reply left, no
/// answer came.
#[utoipa::path(
    post, path = "/tasks/{agent}/{taskId}/reply", tag = "tasks",
    params(("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded")),
    request_body = ReplyRequest,
    responses((status = 200, body = TaskSummary), (status = "default", body = ErrorBody)),
)]
async fn reply(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
    ApiJson(request): ApiJson<ReplyRequest>,
) -> Result<Json<TaskSummary>, ApiError> {
    Ok(Json(state.engine.reply(&task, request.text).await?))
}

/// Asks the agent to cancel, and waits up to 30 s for what really comes of it.
#[utoipa::path(
    post, path = "/tasks/{agent}/{taskId}/cancel", tag = "tasks",
    params(("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded")),
    responses((status = 200, body = TaskSummary), (status = "default", body = ErrorBody)),
)]
async fn cancel_task(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
) -> Result<Json<TaskSummary>, ApiError> {
    Ok(Json(state.engine.cancel(&task).await?))
}

/// Keeps a task for good, or not any more.
#[utoipa::path(
    put, path = "/tasks/{agent}/{taskId}/pin", tag = "tasks",
    params(("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded")),
    request_body = PinRequest,
    responses((status = 200, body = TaskSummary), (status = "default", body = ErrorBody)),
)]
async fn pin_task(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
    ApiJson(request): ApiJson<PinRequest>,
) -> Result<Json<TaskSummary>, ApiError> {
    let task = if request.pinned { state.engine.pin(&task).await } else { state.engine.unpin(&task).await };
    Ok(Json(task?))
}

/// Takes a task out of the lists, or back.
#[utoipa::path(
    put, path = "/tasks/{agent}/{taskId}/archive", tag = "tasks",
    params(("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded")),
    request_body = ArchiveRequest,
    responses((status = 200, body = TaskSummary), (status = "default", body = ErrorBody)),
)]
async fn archive_task(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
    ApiJson(request): ApiJson<ArchiveRequest>,
) -> Result<Json<TaskSummary>, ApiError> {
    let engine = &state.engine;
    let task = if request.archived { engine.archive(&task).await } else { engine.unarchive(&task).await };
    Ok(Json(task?))
}

/// Shows no notices of a task, or shows them again.
#[utoipa::path(
    put, path = "/tasks/{agent}/{taskId}/mute", tag = "tasks",
    params(("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded")),
    request_body = MuteRequest,
    responses((status = 200, body = TaskSummary), (status = "default", body = ErrorBody)),
)]
async fn mute_task(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
    ApiJson(request): ApiJson<MuteRequest>,
) -> Result<Json<TaskSummary>, ApiError> {
    let engine = &state.engine;
    let task = if request.muted { engine.mute(&task).await } else { engine.unmute(&task).await };
    Ok(Json(task?))
}

/// Writes what the user notes about a task. `note_too_long`: it has more than 10,000 characters.
#[utoipa::path(
    put, path = "/tasks/{agent}/{taskId}/note", tag = "tasks",
    params(("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded")),
    request_body = NoteRequest,
    responses((status = 200, body = TaskSummary), (status = "default", body = ErrorBody)),
)]
async fn note_task(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
    ApiJson(request): ApiJson<NoteRequest>,
) -> Result<Json<TaskSummary>, ApiError> {
    Ok(Json(state.engine.set_note(&task, &request.text).await?))
}

/// Pauses following, or goes on with it.
#[utoipa::path(
    put, path = "/tasks/{agent}/{taskId}/follow", tag = "tasks",
    params(("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded")),
    request_body = FollowRequest,
    responses((status = 200, body = TaskSummary), (status = "default", body = ErrorBody)),
)]
async fn follow_task(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
    ApiJson(request): ApiJson<FollowRequest>,
) -> Result<Json<TaskSummary>, ApiError> {
    let task = match request.following {
        FollowWish::On => state.engine.resume(&task).await,
        FollowWish::Paused => state.engine.pause(&task).await,
    };
    Ok(Json(task?))
}

/// Reads tasks now and says what that found.
#[utoipa::path(
    post, path = "/reconcile", tag = "tasks", request_body = ReconcileRequest,
    responses((status = 200, body = Page<ReconcileItem>), (status = "default", body = ErrorBody)),
)]
async fn reconcile(
    State(state): State<ApiState>,
    ApiJson(request): ApiJson<ReconcileRequest>,
) -> Result<Json<Page<ReconcileItem>>, ApiError> {
    let ReconcileRequest { tasks, all, agent, since_ms } = &request;
    let named = [!tasks.is_empty(), *all, agent.is_some(), since_ms.is_some()];
    if named.into_iter().filter(|named| *named).count() != 1 {
        return Err(ApiError::bad_request("exactly one of tasks, all, agent and sinceMs says what to read"));
    }
    Ok(Json(Page::whole(state.engine.reconcile(request).await?)))
}
