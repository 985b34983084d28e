//! The page's assets, built into the program: they need no token and carry no secret.
//!
//! Only names of the list are served, so no path leads to a file. The list is the built page of `ui/`; where it
//! was not built, a small page that signs in and says what this is.

use axum::Router;
use axum::http::{HeaderName, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

/// No inline script, nothing from elsewhere, never in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

struct Asset {
    path: &'static str,
    body: &'static [u8],
}

/// Empty where the page was not built.
const BUILT: &[Asset] = include!(concat!(env!("OUT_DIR"), "/built_page.rs"));

const SMALL: &[Asset] = &[
    Asset { path: "/", body: include_bytes!("page/index.html") },
    Asset { path: "/page.css", body: include_bytes!("page/page.css") },
    Asset { path: "/page.js", body: include_bytes!("page/page.js") },
];

const ASSETS: &[Asset] = if BUILT.is_empty() { SMALL } else { BUILT };

impl Asset {
    fn media_type(&self) -> &'static str {
        match self.path.rsplit_once('.').map(|(_, extension)| extension) {
            None => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("woff2") => "font/woff2",
            Some("svg") => "image/svg+xml",
            Some("png") => "image/png",
            Some("txt") => "text/plain; charset=utf-8",
            Some(_) => "application/octet-stream",
        }
    }

    /// Names under `/assets/` change with what is in them; the others stay from version to version.
    fn caching(&self) -> &'static str {
        if self.path.starts_with("/assets/") { "private, max-age=31536000, immutable" } else { "no-cache" }
    }
}

/// One route an asset, under `/`.
pub(super) fn router() -> Router {
    ASSETS.iter().fold(Router::new(), |router, asset| router.route(asset.path, axum::routing::get(serve)))
}

async fn serve(uri: Uri) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.path == uri.path()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, asset.media_type()),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::CACHE_CONTROL, asset.caching()),
    ];
    (headers, asset.body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_asset_of_the_page_has_a_known_type_and_there_is_a_first_one() {
        assert!(ASSETS.iter().any(|asset| asset.path == "/"));
        for asset in ASSETS {
            assert_ne!(asset.media_type(), "application/octet-stream", "{}", asset.path);
        }
    }

    #[test]
    fn the_first_page_has_no_inline_script_or_style() {
        let page = ASSETS.iter().find(|asset| asset.path == "/").expect("checked above");
        let html = std::str::from_utf8(page.body).expect("html is text");
        assert!(!html.contains("<style") && !html.contains("style=") && !html.contains("onload="));
        for script in html.split("<script").skip(1) {
            assert!(script.contains("src="), "the policy refuses an inline script");
        }
    }
}
