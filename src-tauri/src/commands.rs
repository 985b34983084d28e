//! What the page may ask of this program. Each command needs a permission of the same name; there are no
//! others, and no plugin answers the page.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tauri::ipc::Channel;
use tauri::{AppHandle, State};

use crate::desk::{Desk, Refused};
use crate::feed::Message;
use crate::{files, links, window};

/// An answer of the API.
#[derive(Debug, Serialize)]
pub struct ApiAnswer {
    status: u16,
    body: Box<RawValue>,
}

/// The version of this program, as its package states it.
#[tauri::command]
pub fn app_version(app: AppHandle) -> String {
    app.package_info().version.to_string()
}

/// One request of the API: a method, a path under `/api/v1/` with its query, and a JSON body. What the API
/// refuses is an answer like any other; rejected is what no engine answered.
#[tauri::command]
pub async fn api_request(
    desk: State<'_, Desk>,
    method: String,
    path: String,
    body: Option<Value>,
) -> Result<ApiAnswer, Refused> {
    let body = body.map(|body| body.to_string().into_bytes());
    let answer = desk.door().await?.ask(&method, &path, body).await?;
    Ok(ApiAnswer { status: answer.status, body: answer.body })
}

/// The change feed after a number, or from now on, and what the window is asked to show.
#[tauri::command]
pub async fn changes(
    desk: State<'_, Desk>,
    after: Option<u64>,
    channel: Channel<Message>,
) -> Result<(), Refused> {
    let door = desk.door().await?;
    desk.feed_page(door, after, channel);
    Ok(())
}

/// Opens an address in the user's browser or mail program.
#[tauri::command]
pub async fn open_external(url: String) -> Result<(), Refused> {
    let url = links::check(&url).map_err(|fault| Refused::new("not_permitted", fault.to_string()))?;
    let opened = tokio::task::spawn_blocking(move || {
        tauri_plugin_opener::open_url(url.as_str(), None::<&str>).map_err(|error| error.to_string())
    });
    match opened.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => {
            tracing::warn!("an address could not be opened: {error}");
            Err(Refused::new("not_opened", "this system opens no such address"))
        }
        Err(_panic) => Err(Refused::new("internal", "opening the address failed")),
    }
}

/// The longest file, in octets.
const LARGEST_FILE: usize = 64 << 20;

/// Writes a file, in Base64, to the folder for downloads under about that name; where it is now.
#[tauri::command]
pub async fn save_file(name: String, content: String) -> Result<String, Refused> {
    let not_saved = |why: String| Refused::new("not_saved", why);
    let content = STANDARD
        .decode(content)
        .map_err(|_| Refused::new("bad_request", "the content of a file is Base64"))?;
    if content.len() > LARGEST_FILE {
        return Err(not_saved("the file is larger than 64 MiB".to_owned()));
    }
    let folder = files::folder().ok_or_else(|| not_saved("this user has no home folder".to_owned()))?;
    let shown = folder.display().to_string();
    let saved = tokio::task::spawn_blocking(move || files::save_in(&folder, &name, &content)).await;
    match saved {
        Ok(Ok(path)) => Ok(path.display().to_string()),
        Ok(Err(error)) => Err(not_saved(format!("the file could not be written to {shown}: {error}"))),
        Err(_panic) => Err(Refused::new("internal", "writing the file failed")),
    }
}

/// Shows the page larger or smaller, in percent: 80 to 200, whatever is asked for.
#[tauri::command]
pub fn set_zoom(app: AppHandle, percent: u16) -> Result<(), Refused> {
    window::zoom(&app, percent).map_err(|error| Refused::new("not_zoomed", error.to_string()))
}

/// How far the page has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// A first frame, of whatever it is.
    Frame,
    /// What the engine knows, ready to be used.
    Tasks,
}

/// The page is on the screen.
#[tauri::command]
pub fn page_shows(desk: State<'_, Desk>, what: Shown) {
    desk.note_painted();
    // The measurement of the start reads this line.
    tracing::debug!("the page shows {what:?}");
}
