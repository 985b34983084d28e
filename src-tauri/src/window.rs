//! The main window and its fence: it shows our own page and nothing else.
//!
//! A link, a script or a redirect cannot take the window to another address or open a second one. On Linux
//! Tauri cannot tell a frame from its window, so a foreign page inside of ours would be trusted like ours.

use tauri::webview::NewWindowResponse;
use tauri::{AppHandle, Runtime, Url, WebviewUrl, WebviewWindowBuilder};

/// The label that the capability files name.
pub const MAIN: &str = "main";

/// Opens the main window at the page that is embedded in this program.
///
/// # Errors
/// When the desktop gives us no window or no webview.
pub fn open<R: Runtime>(app: &AppHandle<R>) -> tauri::Result<()> {
    WebviewWindowBuilder::new(app, MAIN, WebviewUrl::App("index.html".into()))
        .title("Taskbell")
        .inner_size(1100.0, 720.0)
        .min_inner_size(720.0, 480.0)
        .on_navigation(is_own_page)
        .on_new_window(|_url, _features| NewWindowResponse::Deny)
        .build()?;
    Ok(())
}

/// Whether an address is the embedded page: `tauri://localhost`, which the Windows webview spells
/// `http://tauri.localhost`. An address with a user or a port is none of ours.
fn is_own_page(url: &Url) -> bool {
    let (scheme, host) = if cfg!(windows) { ("http", "tauri.localhost") } else { ("tauri", "localhost") };
    url.scheme() == scheme
        && url.host_str() == Some(host)
        && url.port().is_none()
        && url.username().is_empty()
        && url.password().is_none()
}

/// Why no window can open here, if that is known beforehand. GTK aborts the whole program instead of telling.
pub fn no_display() -> Option<&'static str> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if set("DISPLAY") || set("WAYLAND_DISPLAY") {
        None
    } else {
        Some(
            "there is no display here (DISPLAY and WAYLAND_DISPLAY are not set): run `taskbell serve` instead",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(url: &str) -> bool {
        is_own_page(&Url::parse(url).unwrap())
    }

    #[test]
    #[cfg(not(windows))]
    fn the_window_stays_on_its_own_page() {
        assert!(allowed("tauri://localhost"));
        assert!(allowed("tauri://localhost/index.html#tasks"));
    }

    #[test]
    fn the_window_goes_nowhere_else() {
        for url in [
            "https://example.com/",
            "http://localhost/",
            "http://127.0.0.1:7420/",
            "tauri://example.com/",
            "tauri://localhost.example.com/",
            "tauri://localhost:81/",
            "tauri://someone@localhost/",
            "file:///etc/passwd",
            "data:text/html,hello",
            "javascript:alert(1)",
            "about:blank",
        ] {
            assert!(!allowed(url), "{url} must not replace our page");
        }
    }
}
