//! Registrations: what agents were asked to call back about, by hand and by themselves.

use axum::Json;
use axum::extract::State;
use taskbell_core::callback::Scheme;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ApiState;
use super::error::ApiError;
use super::extract::{ApiJson, Params, TaskPath};
use super::views::{ErrorBody, ReachView, RegisterRequest, RegistrationView, RegistrationsView};

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list_registrations))
        .routes(routes!(list_of_task, register, remove))
        .routes(routes!(rotate))
        .routes(routes!(show_reachability))
        .routes(routes!(test_reachability))
}

/// The registrations of all tasks that are not done with, the oldest first.
#[utoipa::path(
    get, path = "/registrations", tag = "registrations",
    responses((status = 200, body = RegistrationsView), (status = "default", body = ErrorBody)),
)]
async fn list_registrations(
    State(state): State<ApiState>,
    params: Params,
) -> Result<Json<RegistrationsView>, ApiError> {
    params.only(&[])?;
    Ok(Json(state.engine.registrations().await?))
}

/// A task's registrations, the oldest first, and why there are none by themselves where that is so.
#[utoipa::path(
    get, path = "/tasks/{agent}/{taskId}/registrations", tag = "registrations",
    params(("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded")),
    responses((status = 200, body = RegistrationsView), (status = "default", body = ErrorBody)),
)]
async fn list_of_task(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
) -> Result<Json<RegistrationsView>, ApiError> {
    Ok(Json(state.engine.registrations_of(&task).await?))
}

/// Asks the task's agent to call back, now; one that is there already is made anew.
#[utoipa::path(
    post, path = "/tasks/{agent}/{taskId}/registrations", tag = "registrations",
    params(("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded")),
    request_body = RegisterRequest,
    responses((status = 200, body = RegistrationView), (status = "default", body = ErrorBody)),
)]
async fn register(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
    ApiJson(request): ApiJson<RegisterRequest>,
) -> Result<Json<RegistrationView>, ApiError> {
    let scheme = match request.scheme.as_deref() {
        None => Scheme::Bearer,
        Some(word) => {
            Scheme::from_word(word).ok_or_else(|| ApiError::bad_request("scheme is bearer or basic"))?
        }
    };
    Ok(Json(state.engine.register_push(&task, scheme).await?))
}

/// Takes a task's registrations back. Senders are told that they are gone; none is made again by itself.
#[utoipa::path(
    delete, path = "/tasks/{agent}/{taskId}/registrations", tag = "registrations",
    params(("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded")),
    responses((status = 200, body = RegistrationsView), (status = "default", body = ErrorBody)),
)]
async fn remove(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
) -> Result<Json<RegistrationsView>, ApiError> {
    Ok(Json(state.engine.remove_push(&task).await?))
}

/// Gives a task's registration new proofs and reads back that the agent has it. The old ones hold 24 h more.
#[utoipa::path(
    post, path = "/tasks/{agent}/{taskId}/registrations/rotate", tag = "registrations",
    params(("agent" = String, Path), ("taskId" = String, Path, description = "Percent-encoded")),
    responses((status = 200, body = RegistrationView), (status = "default", body = ErrorBody)),
)]
async fn rotate(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
) -> Result<Json<RegistrationView>, ApiError> {
    Ok(Json(state.engine.rotate_push(&task).await?))
}

/// Where agents reach the inbox, and what the last test of the public address found.
#[utoipa::path(
    get, path = "/reachability", tag = "registrations",
    responses((status = 200, body = ReachView), (status = "default", body = ErrorBody)),
)]
async fn show_reachability(State(state): State<ApiState>) -> Result<Json<ReachView>, ApiError> {
    Ok(Json(state.engine.reachability()))
}

/// Calls ourselves back through the public address, and looks that nothing else of ours answers there.
#[utoipa::path(
    post, path = "/reachability/test", tag = "registrations",
    responses((status = 200, body = ReachView), (status = "default", body = ErrorBody)),
)]
async fn test_reachability(State(state): State<ApiState>) -> Result<Json<ReachView>, ApiError> {
    Ok(Json(state.engine.test_reachability().await?))
}
