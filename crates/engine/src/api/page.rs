//! The page's assets, built into the program: they need no token and carry no secret.
//!
//! Only names of the table are served, so no path leads to a file.

use axum::Router;
use axum::http::{HeaderName, Uri, header};
use axum::response::{IntoResponse, Response};

/// No inline script, nothing from elsewhere, never in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

struct Asset {
    path: &'static str,
    media_type: &'static str,
    body: &'static [u8],
}

/// Says what this is and signs in; stands here until there is a window to show in its place.
const ASSETS: [Asset; 3] = [
    Asset { path: "/", media_type: "text/html; charset=utf-8", body: include_bytes!("page/index.html") },
    Asset { path: "/page.css", media_type: "text/css; charset=utf-8", body: include_bytes!("page/page.css") },
    Asset {
        path: "/page.js",
        media_type: "text/javascript; charset=utf-8",
        body: include_bytes!("page/page.js"),
    },
];

/// One route an asset, under `/`.
pub(super) fn router() -> Router {
    ASSETS.iter().fold(Router::new(), |router, asset| router.route(asset.path, axum::routing::get(serve)))
}

async fn serve(uri: Uri) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.path == uri.path()) else {
        return axum::http::StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, asset.media_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        // The names stay the same from version to version.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, asset.body).into_response()
}
