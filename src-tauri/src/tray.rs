//! The tray: a menu with what waits, and the way back to the window.
//!
//! On Linux a tray is two things that may each be missing: a library (absent: its binding panics) and a
//! program that shows icons. Without both, closing the window would leave an invisible program behind, so
//! whoever closes it asks [`can_be_seen`] first.

pub mod lines;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::tz::TimeZone;
use lines::{EngineIs, Lines};
use taskbell_core::notice::wall_clock;
use taskbell_engine::api::views::{Page, QuietView, TaskSummary};
use taskbell_engine::api_client::ClientError;
use taskbell_engine::api_door::ApiDoor;
use tauri::menu::{Menu, MenuEvent, MenuItem, PredefinedMenuItem, Submenu};
use tauri::tray::{TrayIcon, TrayIconBuilder};
use tauri::{AppHandle, Manager as _, Wry};
use tokio::time::{Instant, sleep, timeout};

use crate::desk::Desk;
use crate::{leave, window};

const OPEN: &str = "open";
const RECONCILE: &str = "reconcile";
const QUIT: &str = "quit";
const WATCH: &str = "watch";
const QUIET_HOUR: &str = "quiet-hour";
const QUIET_TOMORROW: &str = "quiet-tomorrow";
const QUIET_END: &str = "quiet-end";
const ROW: &str = "row-";

/// The menu follows changes no quicker than this, and its times without any.
const SOONEST: Duration = Duration::from_secs(1);
const LATEST: Duration = Duration::from_secs(10);

/// A desktop that does not say whether it shows icons shows none.
const HOST_ANSWERS_WITHIN: Duration = Duration::from_millis(800);

/// Open tasks that are counted one by one.
const COUNTED: &str = "/api/v1/tasks?open=true&limit=1000";

/// The icon and the items that change.
pub struct Tray {
    icon: TrayIcon<Wry>,
    menu: Mutex<Shown>,
}

struct Shown {
    lines: Lines,
    counts: MenuItem<Wry>,
    rows: Vec<MenuItem<Wry>>,
    quit: Vec<MenuItem<Wry>>,
}

/// Puts the icon up. `None` where this desktop has no library for it.
pub fn put_up(app: &AppHandle<Wry>) -> Option<Tray> {
    // The binding panics where the library is missing. Nobody needs to read that as a fault of this program.
    match window::unless_it_panics(|| build(app)) {
        Some(Ok(tray)) => Some(tray),
        Some(Err(error)) => {
            tracing::warn!("there is no tray icon: {error}");
            None
        }
        None => {
            tracing::warn!(
                "there is no tray icon: libayatana-appindicator3 is not installed; closing the window quits"
            );
            None
        }
    }
}

fn build(app: &AppHandle<Wry>) -> tauri::Result<Tray> {
    let (menu, shown) = menu(app, lines::without_engine())?;
    let mut icon = TrayIconBuilder::with_id("taskbell").menu(&menu).tooltip("Taskbell");
    if let Some(image) = app.default_window_icon() {
        icon = icon.icon(image.clone());
    }
    let icon = icon.on_menu_event(on_menu).build(app)?;
    Ok(Tray { icon, menu: Mutex::new(shown) })
}

fn menu(app: &AppHandle<Wry>, lines: Lines) -> tauri::Result<(Menu<Wry>, Shown)> {
    let item = |id: &str, text: &str| MenuItem::with_id(app, id, text, true, None::<&str>);
    let words = |text: &str| MenuItem::new(app, text, false, None::<&str>);
    let counts = words(&lines.counts)?;
    let rows = lines.waiting.iter().enumerate();
    let rows = rows.map(|(n, row)| item(&format!("{ROW}{n}"), &row.text)).collect::<Result<Vec<_>, _>>()?;
    let quit = lines.quit.iter().map(|line| words(line)).collect::<Result<Vec<_>, _>>()?;
    let menu = Menu::with_items(app, &[&counts, &PredefinedMenuItem::separator(app)?])?;
    for row in &rows {
        menu.append(row)?;
    }
    if !rows.is_empty() {
        menu.append(&PredefinedMenuItem::separator(app)?)?;
    }
    menu.append_items(&[
        &item(RECONCILE, "Reconcile all now")?,
        &item(WATCH, "Watch task…")?,
        &PredefinedMenuItem::separator(app)?,
    ])?;
    match &lines.quiet {
        Some(quiet) => menu.append(&item(QUIET_END, quiet)?)?,
        None => menu.append_items(&[
            &item(QUIET_HOUR, "Quiet for 1 h")?,
            &item(QUIET_TOMORROW, "Quiet until tomorrow")?,
        ])?,
    }
    // A menu within the menu says what it costs before anything is done, and needs no window for that.
    let leave = Submenu::new(app, "Quit…", true)?;
    for line in &quit {
        leave.append(line)?;
    }
    leave.append(&item(QUIT, "Quit now")?)?;
    menu.append_items(&[
        &PredefinedMenuItem::separator(app)?,
        &item(OPEN, "Open")?,
        &PredefinedMenuItem::separator(app)?,
        &leave,
    ])?;
    Ok((menu, Shown { lines, counts, rows, quit }))
}

impl Tray {
    /// Shows other lines. Texts change in place, for a menu that is replaced closes under the user's hand.
    fn show(&self, app: &AppHandle<Wry>, lines: Lines) -> tauri::Result<()> {
        let mut shown = self.menu.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.lines == lines {
            return Ok(());
        }
        let same = shown.rows.len() == lines.waiting.len()
            && shown.quit.len() == lines.quit.len()
            && shown.lines.quiet == lines.quiet;
        if !same {
            let (menu, new) = menu(app, lines)?;
            self.icon.set_menu(Some(menu))?;
            *shown = new;
            return Ok(());
        }
        shown.counts.set_text(&lines.counts)?;
        for (item, line) in shown.quit.iter().zip(&lines.quit) {
            item.set_text(line)?;
        }
        for (item, row) in shown.rows.iter().zip(&lines.waiting) {
            item.set_text(&row.text)?;
        }
        shown.lines = lines;
        Ok(())
    }

    /// The task of a row of the menu.
    fn task(&self, row: usize) -> Option<String> {
        let shown = self.menu.lock().unwrap_or_else(PoisonError::into_inner);
        shown.lines.waiting.get(row).map(|row| row.task.clone())
    }
}

/// Keeps the menu up to date until the program ends.
pub async fn keep(app: AppHandle<Wry>) {
    loop {
        let door = app.state::<Desk>().door().await;
        let lines = match &door {
            Ok(door) => read(door).await.unwrap_or_else(|_| lines::without_engine()),
            Err(_) => lines::without_engine(),
        };
        if let Some(tray) = app.try_state::<Tray>()
            && let Err(error) = tray.show(&app, lines)
        {
            tracing::warn!("the tray's menu could not be changed: {error}");
        }
        sleep(SOONEST).await;
        match door {
            Ok(door) => until_something_changes(&door, Instant::now() + LATEST).await,
            Err(_) => sleep(LATEST).await,
        }
    }
}

async fn read(door: &ApiDoor) -> Result<Lines, ClientError> {
    let open: Page<TaskSummary> = door.get(COUNTED).await?;
    let engine = if door.is_attached() { EngineIs::Attached } else { EngineIs::Here };
    let now_ms = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    let quiet: QuietView = door.get("/api/v1/quiet").await?;
    let until = quiet.until.map(|until| wall_clock(until.ms(), &TimeZone::system()));
    Ok(lines::of(&open.items, open.next.is_some(), engine, until.as_deref(), now_ms))
}

async fn until_something_changes(door: &ApiDoor, latest: Instant) {
    let changed = async {
        match door.changes(None).await {
            // What ends the feed is worth a look as well.
            Ok(mut feed) => drop(feed.next().await),
            Err(_) => std::future::pending().await,
        }
    };
    // Either way it is time to look.
    let _ = tokio::time::timeout_at(latest, changed).await;
}

fn on_menu(app: &AppHandle<Wry>, event: MenuEvent) {
    match event.id().as_ref() {
        OPEN => window::raise(app),
        QUIT => leave(app),
        WATCH => {
            app.state::<Desk>().ask_what_to_watch(None, None);
            window::raise(app);
        }
        RECONCILE => ask(app, "POST", "/api/v1/reconcile", r#"{"all":true}"#),
        QUIET_HOUR => ask(app, "PUT", "/api/v1/quiet", r#"{"minutes":60}"#),
        QUIET_TOMORROW => ask(app, "PUT", "/api/v1/quiet", r#"{"until":"tomorrow"}"#),
        QUIET_END => ask(app, "DELETE", "/api/v1/quiet", ""),
        id => {
            let row = id.strip_prefix(ROW).and_then(|row| row.parse().ok());
            if let Some(task) = row.and_then(|row| app.state::<Tray>().task(row)) {
                app.state::<Desk>().show_task(task);
                window::raise(app);
            }
        }
    }
}

/// Asks the engine for what an item of the menu stands for.
fn ask(app: &AppHandle<Wry>, method: &'static str, path: &'static str, body: &'static str) {
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        let asked = async {
            let door = app.state::<Desk>().door().await.map_err(|refused| refused.message)?;
            let body = (!body.is_empty()).then(|| body.as_bytes().to_vec());
            let answer = door.ask(method, path, body).await;
            match answer.map_err(|error| error.to_string())?.status {
                200..300 => Ok(()),
                status => Err(format!("the engine answered with {status}")),
            }
        };
        if let Err(reason) = asked.await {
            tracing::warn!("what was chosen in the tray was not done ({method} {path}): {reason}");
        }
    });
}

/// Whether the icon is on the screen, so that a closed window can be found again.
pub async fn can_be_seen(app: &AppHandle<Wry>) -> bool {
    if app.try_state::<Tray>().is_none() {
        return false;
    }
    // A session bus that hangs holds up its own thread only.
    let asked = tokio::task::spawn_blocking(desktop_shows_icons);
    timeout(HOST_ANSWERS_WITHIN, asked).await.is_ok_and(|answer| answer.unwrap_or(false))
}

#[cfg(target_os = "linux")]
fn desktop_shows_icons() -> bool {
    const WATCHER: &str = "org.kde.StatusNotifierWatcher";
    let ask = || -> zbus::Result<bool> {
        let bus = zbus::blocking::Connection::session()?;
        let watcher: zbus::blocking::Proxy<'_> = zbus::blocking::proxy::Builder::new(&bus)
            .destination(WATCHER)?
            .path("/StatusNotifierWatcher")?
            .interface(WATCHER)?
            // Asked once.
            .cache_properties(zbus::proxy::CacheProperties::No)
            .build()?;
        watcher.get_property("IsStatusNotifierHostRegistered")
    };
    ask().unwrap_or_else(|error| {
        tracing::debug!("this desktop does not say that it shows tray icons: {error}");
        false
    })
}

#[cfg(not(target_os = "linux"))]
fn desktop_shows_icons() -> bool {
    true
}
