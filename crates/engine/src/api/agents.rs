//! Agents: adding, looking, testing, credentials, and what is asked of one.

use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use taskbell_core::agent::{CardOrigin, PlainHttp};
use taskbell_core::credential::Credential;
use taskbell_core::ids::ContextId;
use taskbell_core::task::{Part, PartContent};
use url::Url;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use utoipa_axum::routes;

use super::ApiState;
use super::error::ApiError;
use super::extract::{AgentPath, ApiJson};
use super::guard::SEND_BODY_LIMIT;
use super::views::{
    AgentTestView, AgentView, CredentialRequest, ErrorBody, FilePart, ImportOutcome, NewAgentRequest, Page,
    PinDialectRequest, ReportCardView, SendOutcome, SendRequestView, SentTask, TaskSummary, UnknownOutcome,
    WatchRequest,
};
use crate::agents::manage::AgentWish;
use crate::tasks::{Outgoing, Sent};

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list_agents, add_agent))
        .routes(routes!(show_agent, remove_agent))
        .routes(routes!(show_report))
        .routes(routes!(test_agent))
        .routes(routes!(pin_dialect))
        .routes(routes!(set_credential))
        .routes(routes!(import_tasks))
        .routes(routes!(send).layer(DefaultBodyLimit::max(SEND_BODY_LIMIT)))
        .routes(routes!(watch))
}

/// All agents by name.
#[utoipa::path(
    get, path = "/agents", tag = "agents",
    responses((status = 200, body = Page<AgentView>), (status = "default", body = ErrorBody)),
)]
async fn list_agents(State(state): State<ApiState>) -> Result<Json<Page<AgentView>>, ApiError> {
    Ok(Json(Page::whole(state.engine.agents().await?)))
}

/// Adds an agent that answers. Its card and dialect are looked at first.
#[utoipa::path(
    post, path = "/agents", tag = "agents", request_body = NewAgentRequest,
    responses((status = 201, body = AgentView), (status = "default", body = ErrorBody)),
)]
async fn add_agent(
    State(state): State<ApiState>,
    ApiJson(request): ApiJson<NewAgentRequest>,
) -> Result<(StatusCode, Json<AgentView>), ApiError> {
    let NewAgentRequest { url, name, use_card_url, allow_http, credential } = request;
    let url =
        Url::parse(&url).map_err(|error| ApiError::bad_request(format!("url is no address: {error}")))?;
    let wish = AgentWish {
        name,
        url,
        card_origin: if use_card_url { CardOrigin::Use } else { CardOrigin::Record },
        plain_http: if allow_http { PlainHttp::Anywhere } else { PlainHttp::LoopbackOnly },
        credential: credential.and_then(credential_of),
    };
    Ok((StatusCode::CREATED, Json(state.engine.add_agent(wish).await?)))
}

/// One agent, with its report card.
#[utoipa::path(
    get, path = "/agents/{agent}", tag = "agents", params(("agent" = String, Path)),
    responses((status = 200, body = AgentView), (status = "default", body = ErrorBody)),
)]
async fn show_agent(
    State(state): State<ApiState>,
    AgentPath(agent): AgentPath,
) -> Result<Json<AgentView>, ApiError> {
    Ok(Json(state.engine.agent(&agent).await?))
}

/// What the agent's callbacks are worth: expected, arrived, late, missed, repeated, refused, and its oddities.
#[utoipa::path(
    get, path = "/agents/{agent}/report", tag = "agents", params(("agent" = String, Path)),
    responses((status = 200, body = ReportCardView), (status = "default", body = ErrorBody)),
)]
async fn show_report(
    State(state): State<ApiState>,
    AgentPath(name): AgentPath,
) -> Result<Json<ReportCardView>, ApiError> {
    Ok(Json(state.engine.report_card(&name).await?))
}

/// Removes an agent and its credential. Its tasks stay and are not followed any more.
#[utoipa::path(
    delete, path = "/agents/{agent}", tag = "agents", params(("agent" = String, Path)),
    responses((status = 204, description = "Removed"), (status = "default", body = ErrorBody)),
)]
async fn remove_agent(
    State(state): State<ApiState>,
    AgentPath(agent): AgentPath,
) -> Result<StatusCode, ApiError> {
    state.engine.remove_agent(&agent).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Looks at the agent again: card, dialect, stream. Sends no message.
#[utoipa::path(
    post, path = "/agents/{agent}/test", tag = "agents", params(("agent" = String, Path)),
    responses((status = 200, body = AgentTestView), (status = "default", body = ErrorBody)),
)]
async fn test_agent(
    State(state): State<ApiState>,
    AgentPath(agent): AgentPath,
) -> Result<Json<AgentTestView>, ApiError> {
    match state.engine.test_agent(&agent).await.map_err(ApiError::from) {
        Ok((_, test)) => Ok(Json(AgentTestView {
            reachable: true,
            dialect: Some(test.dialect),
            card: test.card,
            streaming: test.streaming,
            notes: test.notes,
        })),
        // What the agent did is the answer to this question, not a failure of ours.
        Err(error) if error.is_the_agents() => Ok(Json(AgentTestView {
            reachable: false,
            dialect: None,
            card: None,
            streaming: None,
            notes: vec![error.message],
        })),
        Err(error) => Err(error),
    }
}

/// Says which dialect the agent speaks, or leaves it to what is observed.
#[utoipa::path(
    put, path = "/agents/{agent}/dialect", tag = "agents", params(("agent" = String, Path)),
    request_body = PinDialectRequest,
    responses((status = 200, body = AgentView), (status = "default", body = ErrorBody)),
)]
async fn pin_dialect(
    State(state): State<ApiState>,
    AgentPath(agent): AgentPath,
    ApiJson(request): ApiJson<PinDialectRequest>,
) -> Result<Json<AgentView>, ApiError> {
    Ok(Json(state.engine.pin_dialect(&agent, request.dialect).await?))
}

/// Gives the agent a credential, another one, or none. It goes to the keyring and is never answered.
#[utoipa::path(
    put, path = "/agents/{agent}/credential", tag = "agents", params(("agent" = String, Path)),
    request_body = CredentialRequest,
    responses((status = 200, body = AgentView), (status = "default", body = ErrorBody)),
)]
async fn set_credential(
    State(state): State<ApiState>,
    AgentPath(agent): AgentPath,
    ApiJson(request): ApiJson<CredentialRequest>,
) -> Result<Json<AgentView>, ApiError> {
    Ok(Json(state.engine.set_credential(&agent, credential_of(request)).await?))
}

/// Follows the open tasks that the agent lists.
#[utoipa::path(
    post, path = "/agents/{agent}/import", tag = "agents", params(("agent" = String, Path)),
    responses((status = 200, body = ImportOutcome), (status = "default", body = ErrorBody)),
)]
async fn import_tasks(
    State(state): State<ApiState>,
    AgentPath(agent): AgentPath,
) -> Result<Json<ImportOutcome>, ApiError> {
    let imported = state.engine.import(&agent).await?;
    Ok(Json(ImportOutcome {
        adopted: imported.adopted,
        known: imported.known,
        unreadable: imported.unreadable,
    }))
}

/// Sends a message, once. An outcome that is not known is an answer and no error.
#[utoipa::path(
    post, path = "/agents/{agent}/send", tag = "agents", params(("agent" = String, Path)),
    request_body = SendRequestView,
    responses((status = 200, body = SendOutcome), (status = "default", body = ErrorBody)),
)]
async fn send(
    State(state): State<ApiState>,
    AgentPath(agent): AgentPath,
    ApiJson(request): ApiJson<SendRequestView>,
) -> Result<Json<SendOutcome>, ApiError> {
    let SendRequestView { text, context_id, data, files, push } = request;
    let mut parts: Vec<Part> = data.map(|value| Part::new(PartContent::Data(value))).into_iter().collect();
    for file in files {
        parts.push(file_part(file)?);
    }
    let outgoing = Outgoing { text, context_id: context_id.map(ContextId::new), parts, push };
    let outcome = match state.engine.send(&agent, outgoing).await? {
        Sent::Task(key) => {
            let task = state.engine.summary_of(key).await?;
            SendOutcome::Task(SentTask { task: task.task, state: task.state })
        }
        Sent::Message(message) => SendOutcome::Message { message },
        Sent::Unknown(message_id) => SendOutcome::Unknown { unknown: UnknownOutcome { message_id } },
    };
    Ok(Json(outcome))
}

/// Follows a task that somebody else started.
#[utoipa::path(
    post, path = "/agents/{agent}/watch", tag = "agents", params(("agent" = String, Path)),
    request_body = WatchRequest,
    responses((status = 200, body = TaskSummary), (status = "default", body = ErrorBody)),
)]
async fn watch(
    State(state): State<ApiState>,
    AgentPath(agent): AgentPath,
    ApiJson(request): ApiJson<WatchRequest>,
) -> Result<Json<TaskSummary>, ApiError> {
    if request.task_id.as_str().is_empty() {
        return Err(ApiError::bad_request("taskId is empty"));
    }
    Ok(Json(state.engine.watch(&agent, &request.task_id).await?))
}

fn credential_of(request: CredentialRequest) -> Option<Credential> {
    match request {
        CredentialRequest::None => None,
        CredentialRequest::Bearer { token } => Some(Credential::Bearer(token.into_secret())),
        CredentialRequest::Basic { user, password } => {
            Some(Credential::Basic { user, password: password.into_secret() })
        }
        CredentialRequest::Headers { headers } => Some(Credential::Headers(
            headers.into_iter().map(|(name, value)| (name, value.into_secret())).collect(),
        )),
        CredentialRequest::TokenCommand { command } => Some(Credential::TokenCommand(command)),
    }
}

/// Agents differ in what they do with broken base64, so none is sent.
fn file_part(file: FilePart) -> Result<Part, ApiError> {
    if BASE64.decode(&file.base64).is_err() {
        return Err(ApiError::bad_request("base64 of a file is not standard base64 with padding"));
    }
    let mut part = Part::new(PartContent::Raw(file.base64));
    part.media_type = Some(file.media_type);
    part.filename = Some(file.filename);
    Ok(part)
}
