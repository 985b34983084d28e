//! Clients of the gateway: who may call agents through it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use taskbell_core::ids::ClientName;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ApiState;
use super::error::ApiError;
use super::extract::{ApiJson, KeyPath};
use super::views::{ClientView, ErrorBody, NewClientRequest, NewClientView, Page, UtcTime};

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list_clients, add_client)).routes(routes!(revoke_client))
}

/// All clients, by name.
#[utoipa::path(
    get, path = "/clients", tag = "gateway",
    responses((status = 200, body = Page<ClientView>), (status = "default", body = ErrorBody)),
)]
async fn list_clients(State(state): State<ApiState>) -> Result<Json<Page<ClientView>>, ApiError> {
    let clients = state.engine.gateway().clients().all();
    let view = |client: &crate::gateway::clients::Client| ClientView {
        name: client.name.clone(),
        created_at: UtcTime::from_ms(client.created_at_ms),
    };
    Ok(Json(Page::whole(clients.iter().map(|client| view(client)).collect())))
}

/// Adds a client. The answer is the only place where its key is ever shown.
#[utoipa::path(
    post, path = "/clients", tag = "gateway", request_body = NewClientRequest,
    responses((status = 200, body = NewClientView), (status = "default", body = ErrorBody)),
)]
async fn add_client(
    State(state): State<ApiState>,
    ApiJson(request): ApiJson<NewClientRequest>,
) -> Result<Json<NewClientView>, ApiError> {
    let (client, key) = state.engine.gateway().clients().add(request.name).await?;
    Ok(Json(NewClientView { name: client.name.clone(), key: key.expose().to_owned() }))
}

/// Takes a client's key back. Its streams end; its tasks are followed on.
#[utoipa::path(
    delete, path = "/clients/{name}", tag = "gateway", params(("name" = String, Path)),
    responses((status = 204, description = "Revoked"), (status = "default", body = ErrorBody)),
)]
async fn revoke_client(
    State(state): State<ApiState>,
    KeyPath(name): KeyPath,
) -> Result<StatusCode, ApiError> {
    let name = ClientName::new(name).map_err(|error| ApiError::bad_request(error.to_string()))?;
    state.engine.gateway().clients().revoke(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}
