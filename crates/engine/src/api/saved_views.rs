//! Saved views: queries under a name.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use taskbell_core::search::Screen;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ApiState;
use super::error::ApiError;
use super::extract::{ApiJson, Params};
use super::views::{ErrorBody, Page, SaveViewRequest, SavedView};

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list_views)).routes(routes!(save_view, delete_view))
}

fn screen(word: &str) -> Result<Screen, ApiError> {
    Screen::from_word(word).ok_or_else(|| {
        let known = Screen::ALL.map(Screen::word).join(", ");
        ApiError::bad_request(format!("screen is one of {known}"))
    })
}

/// Views of a list, or of all: the built-in ones first.
#[utoipa::path(
    get, path = "/views", tag = "views",
    params(("screen" = Option<String>, Query, description = "`tasks` or `inbox`")),
    responses((status = 200, body = Page<SavedView>), (status = "default", body = ErrorBody)),
)]
async fn list_views(
    State(state): State<ApiState>,
    params: Params,
) -> Result<Json<Page<SavedView>>, ApiError> {
    let params = params.only(&["screen"])?;
    let of = params.text("screen")?.map(screen).transpose()?;
    Ok(Json(Page::whole(state.engine.views(of).await?)))
}

/// Keeps a query under a name, whatever had that name. `bad_query`: it cannot be read; `view_built_in`: the name is
/// one of ours; `too_many_views`.
#[utoipa::path(
    put, path = "/views/{screen}/{name}", tag = "views",
    params(("screen" = String, Path, description = "`tasks` or `inbox`"), ("name" = String, Path)),
    request_body = SaveViewRequest,
    responses((status = 200, body = SavedView), (status = "default", body = ErrorBody)),
)]
async fn save_view(
    State(state): State<ApiState>,
    Path((of, name)): Path<(String, String)>,
    ApiJson(request): ApiJson<SaveViewRequest>,
) -> Result<Json<SavedView>, ApiError> {
    Ok(Json(state.engine.save_view(screen(&of)?, &name, &request.query).await?))
}

/// `unknown_view`: there is none of that name.
#[utoipa::path(
    delete, path = "/views/{screen}/{name}", tag = "views",
    params(("screen" = String, Path, description = "`tasks` or `inbox`"), ("name" = String, Path)),
    responses((status = 204, description = "Deleted"), (status = "default", body = ErrorBody)),
)]
async fn delete_view(
    State(state): State<ApiState>,
    Path((of, name)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    state.engine.delete_view(screen(&of)?, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
