//! The control API: one axum router under `/api/v1/`, the same for the command line, the page and the window.
//!
//! ```text
//! HTTP ── guard_browser ──┬── page assets
//!                         └── guard_api ── router ── engine
//! window (in process) ────────────────────────┘
//! ```
//!
//! | question | room |
//! |---|---|
//! | the JSON of requests and answers | [`views`] |
//! | the engine's proof before it gets the token | [`proof`] |
//! | who may call | [`access`], [`guard`] |
//! | signing a page in | `session` |
//! | what can be asked | `agents`, `tasks`, `saved_views`, `inbox`, `registrations`, `notices`, `clients`, `deliveries`, `settings`, `health` |
//! | the change feed | [`feed`] |
//! | calling the window forward | [`window`] |
//! | failures | [`error`] |
//! | the page's assets | `page` |
//!
//! Operations are the engine's; what stands here reads requests and writes answers.

pub mod access;
mod agents;
mod clients;
mod deliveries;
pub mod error;
mod extract;
pub mod feed;
pub mod guard;
mod health;
mod inbox;
mod notices;
mod page;
pub mod proof;
mod registrations;
mod saved_views;
mod session;
mod settings;
mod tasks;
pub mod views;
pub mod window;

#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::{Router, middleware};
use tokio::sync::watch;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use access::Access;
use error::ApiError;
use window::Windows;

use crate::engine::Engine;

const PREFIX: &str = "/api/v1";

/// What the operations work on. Clones share it.
#[derive(Clone)]
pub struct ApiState {
    pub engine: Engine,
    pub access: Arc<Access>,
    pub windows: Windows,
    /// True: end the streams, the engine stops.
    pub stop: watch::Receiver<bool>,
}

/// The API as the window calls it, in process: without guards, for nobody else can reach it there.
pub fn router(state: ApiState) -> Router {
    parts()
        .0
        .method_not_allowed_fallback(no_such_method)
        .fallback(no_such_endpoint)
        .layer(DefaultBodyLimit::max(guard::BODY_LIMIT))
        .with_state(state)
}

/// What the listener serves: the API behind its guards, and the page.
pub fn guarded(state: ApiState) -> Router {
    let access = Arc::clone(&state.access);
    let api =
        router(state.clone()).layer(middleware::from_fn_with_state(Arc::clone(&access), guard::guard_api));
    page::router()
        .merge(crate::gateway::router(state))
        .fallback_service(api)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn_with_state(access, guard::guard_browser))
}

/// The OpenAPI document, from the same declarations as the routes.
pub fn document() -> OpenApi {
    parts().1
}

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "session",
    responses((status = 200, description = "OpenAPI 3.1", body = Object)),
)]
async fn openapi() -> impl IntoResponse {
    static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| {
        let json = document().to_json().expect("the document is texts and numbers");
        json.into()
    });
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.clone())
}

fn parts() -> (Router<ApiState>, OpenApi) {
    #[derive(utoipa::OpenApi)]
    #[openapi(
        info(
            title = "Taskbell control API",
            description = "For programs of this user on this machine: follow A2A tasks, answer them, read what changed."
        ),
        // What only queries use is not found by itself.
        components(schemas(views::ExportFormat))
    )]
    struct Document;

    let operations = OpenApiRouter::new()
        .routes(routes!(openapi))
        .merge(session::routes())
        .merge(agents::routes())
        .merge(tasks::routes())
        .merge(saved_views::routes())
        .merge(inbox::routes())
        .merge(registrations::routes())
        .merge(notices::routes())
        .merge(clients::routes())
        .merge(deliveries::routes())
        .merge(settings::routes())
        .merge(health::routes())
        .merge(feed::routes())
        .merge(window::routes());
    let (router, mut document) =
        OpenApiRouter::with_openapi(Document::openapi()).nest(PREFIX, operations).split_for_parts();
    let token =
        HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("The token in runtime.json"));
    document
        .components
        .get_or_insert_default()
        .security_schemes
        .insert("token".to_owned(), SecurityScheme::Http(token.build()).into());
    document.security =
        Some(vec![utoipa::openapi::SecurityRequirement::new::<_, [&str; 0], &str>("token", [])]);
    (router, document)
}

async fn no_such_endpoint() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "no_such_endpoint",
        "there is no such endpoint: see /api/v1/openapi.json",
    )
}

async fn no_such_method() -> ApiError {
    let message = "the endpoint has no such method: see /api/v1/openapi.json";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "no_such_method", message)
}
