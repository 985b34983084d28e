//! The main window and its fence: it shows our own page and nothing else.
//!
//! A link, a script or a redirect cannot take the window to another address or open a second one. On Linux
//! Tauri cannot tell a frame from its window, so a foreign page inside of ours would be trusted like ours.

use tauri::webview::NewWindowResponse;
use tauri::{AppHandle, Manager as _, Runtime, Url, WebviewUrl, WebviewWindowBuilder};

/// The label that the capability files name.
pub const MAIN: &str = "main";

/// Whether the window is on the screen from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    OnScreen,
    Hidden,
}

/// Opens the main window at the page that is embedded in this program.
///
/// # Errors
/// When the desktop gives us no window or no webview.
pub fn open<R: Runtime>(app: &AppHandle<R>, start: Start) -> tauri::Result<()> {
    WebviewWindowBuilder::new(app, MAIN, WebviewUrl::App("index.html".into()))
        .title("Taskbell")
        .inner_size(1100.0, 720.0)
        .min_inner_size(720.0, 480.0)
        .visible(start == Start::OnScreen)
        .on_navigation(is_own_page)
        .on_new_window(|_url, _features| NewWindowResponse::Deny)
        .build()?;
    Ok(())
}

/// Brings the window to the front, from wherever it is.
pub fn raise<R: Runtime>(app: &AppHandle<R>) {
    let Some(window) = app.get_webview_window(MAIN) else { return };
    let raised = window.show().and_then(|()| window.unminimize()).and_then(|()| window.set_focus());
    if let Err(error) = raised {
        tracing::warn!("the window could not be brought to the front: {error}");
    }
}

/// Puts a hidden window where it can be found without coming before the user's work.
pub fn show_minimized<R: Runtime>(app: &AppHandle<R>) {
    let Some(window) = app.get_webview_window(MAIN) else { return };
    if let Err(error) = window.minimize().and_then(|()| window.show()) {
        tracing::warn!("the window could not be shown: {error}");
    }
}

/// Shows the page larger or smaller, 80 to 200 percent.
pub fn zoom<R: Runtime>(app: &AppHandle<R>, percent: u16) -> tauri::Result<()> {
    match app.get_webview_window(MAIN) {
        Some(window) => window.set_zoom(f64::from(percent.clamp(80, 200)) / 100.0),
        None => Ok(()),
    }
}

/// Takes the window off the screen. The page stays as it is.
pub fn hide<R: Runtime>(app: &AppHandle<R>) {
    let Some(window) = app.get_webview_window(MAIN) else { return };
    if let Err(error) = window.hide() {
        tracing::warn!("the window could not be hidden: {error}");
    }
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

/// What `make` makes; `None` where a library panicked instead of telling, which nobody needs to read as a fault of
/// this program. On the main thread, before or between its events.
pub fn unless_it_panics<T>(make: impl FnOnce() -> T) -> Option<T> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(make));
    std::panic::set_hook(hook);
    made.ok()
}

const RENDERER: &str = "WEBKIT_DISABLE_DMABUF_RENDERER";

/// WebKitGTK's quick way to the screen shows an empty window with some graphics drivers. It is off, unless the
/// user has said anything about it. Before any thread starts.
#[cfg(target_os = "linux")]
pub fn choose_renderer() {
    if let Some(value) = renderer_value(std::env::var_os(RENDERER).as_deref()) {
        // SAFETY: called first thing in `main`, while this process has one thread, so nobody reads the environment.
        #[allow(unsafe_code)]
        unsafe {
            std::env::set_var(RENDERER, value);
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub fn choose_renderer() {}

/// What the variable is set to; `None`: it is left alone.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn renderer_value(given: Option<&std::ffi::OsStr>) -> Option<&'static str> {
    match given {
        None => Some("1"),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(url: &str) -> bool {
        is_own_page(&Url::parse(url).unwrap())
    }

    #[test]
    fn what_the_user_says_of_the_renderer_stays() {
        assert_eq!(renderer_value(None), Some("1"));
        for given in ["", "0", "1"] {
            assert_eq!(renderer_value(Some(given.as_ref())), None, "{given:?}");
        }
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
