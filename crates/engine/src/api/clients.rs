//! Clients of the gateway: who may call agents through it, and who asked what.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use taskbell_core::ids::ClientName;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ApiState;
use super::error::ApiError;
use super::extract::{ApiJson, KeyPath, Params};
use super::views::{ClientView, ErrorBody, NewClientRequest, NewClientView, Page, TrafficView, UtcTime};
use crate::store::gateway_traffic;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list_clients, add_client))
        .routes(routes!(revoke_client))
        .routes(routes!(list_traffic))
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

/// What clients asked, the newest first: method, task, state, time and octets, and no content.
#[utoipa::path(
    get, path = "/gateway/traffic", tag = "gateway",
    params(
        ("limit" = Option<u32>, Query, description = "1 to 1000, 100 where none is given"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses((status = 200, body = Page<TrafficView>), (status = "default", body = ErrorBody)),
)]
async fn list_traffic(
    State(state): State<ApiState>,
    params: Params,
) -> Result<Json<Page<TrafficView>>, ApiError> {
    let params = params.only(&["limit", "cursor"])?;
    let limit = params.one::<u32>("limit")?.unwrap_or(100).clamp(1, 1_000);
    let before = params.one("cursor")?;
    let rows =
        state.engine.store().read(move |connection| gateway_traffic::list(connection, before, limit)).await?;
    let next = match rows.last() {
        Some(last) if rows.len() == limit as usize => Some(last.id.to_string()),
        Some(_) | None => None,
    };
    let view = |row: gateway_traffic::NamedTraffic| TrafficView {
        id: row.id.unsigned_abs(),
        at: UtcTime::from_ms(row.at_ms),
        client: row.client,
        agent: row.agent,
        dialect: row.dialect.to_string(),
        binding: row.binding.to_string(),
        method: row.method,
        task_id: row.task_id.map(|id| id.to_string()),
        task_known: row.task_known,
        state: row.state.map(|state| state.word().to_owned()),
        error_code: row.error_code,
        took_ms: row.took_ms,
        octets_in: row.octets_in,
        octets_out: row.octets_out,
    };
    Ok(Json(Page { items: rows.into_iter().map(view).collect(), next }))
}
