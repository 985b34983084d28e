//! `taskbell-desktop`: the window, and the engine that follows tasks while it is there.
//!
//! A shell only: no SQL, no HTTP, no protocol. The page reaches the engine's API through one command and hears
//! of changes through one channel, whether the engine runs in this process or this window is attached to one
//! that runs without a window.
//!
//! | question | room |
//! |---|---|
//! | whose engine, and is there a window already | [`instance`] |
//! | what the page may ask | [`commands`], [`links`], [`files`] |
//! | what a `taskbell:` link names | [`deep_link`] |
//! | starting with the session | [`autostart`] |
//! | what the page is told | [`feed`] |
//! | the window and its fence | [`window`] |
//! | notices where D-Bus has none | [`plain_notices`] |
//! | the icon and its menu | [`tray`] |
//! | what the program is while it runs | [`desk`] |

#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

mod autostart;
mod commands;
mod deep_link;
mod desk;
mod feed;
mod files;
mod instance;
mod links;
mod options;
mod plain_notices;
#[cfg(test)]
mod testing;
mod tray;
mod window;

use std::error::Error;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser as _;
use taskbell_engine::api::window::{WindowCall, WindowCalls, Windows};
use taskbell_engine::api_door::ApiDoor;
use taskbell_engine::data_dir::DataDir;
use taskbell_engine::notifier::NoticeEvent;
use taskbell_engine::running::{EngineOptions, RunningEngine};
use tauri::{AppHandle, Manager as _, RunEvent, WindowEvent, Wry};
use tauri_plugin_notification::NotificationExt as _;
use tokio::sync::broadcast;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt, registry};

use desk::{Desk, Refused};
use feed::Link;
use instance::Found;
use options::Options;

/// What is logged where TASKBELL_LOG does not say.
const USUAL_LOG: &str = "warn,taskbell_desktop=info,taskbell_engine=info,taskbell_demo_agent=info";

/// A page that has drawn nothing by then will not.
const PAINTED_WITHIN: Duration = Duration::from_secs(10);

/// After the engine that this window is attached to stopped calling it.
const CALLS_AGAIN: Duration = Duration::from_secs(1);

/// How long an engine that ended may take to come back, before this window runs one itself.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(5);

/// The tray comes after the page, or after this.
const TRAY_WAITS: Duration = Duration::from_secs(2);

/// At the start of a session its panel may come after us.
const TRAY_STARTS_WITHIN: Duration = Duration::from_secs(20);

const NO_WINDOWS: &str = "the display does not take windows (are DISPLAY or WAYLAND_DISPLAY of a session that has ended?): \
    run `taskbell serve` instead";

const BLANK: &str = "The window stays blank on this graphics driver. Tasks are followed all the same. \
    Start Taskbell with WEBKIT_DISABLE_COMPOSITING_MODE=1, or run `taskbell open` for the page in a browser.";

fn main() -> ExitCode {
    window::choose_renderer();
    let options = Options::parse();
    start_log();
    if let Some(reason) = window::no_display() {
        eprintln!("taskbell-desktop: {reason}");
        return ExitCode::FAILURE;
    }
    match run(&options) {
        Ok(exit) => exit,
        Err(error) => {
            eprintln!("taskbell-desktop: {}", chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// To standard error, and to the data folder's log once an engine runs here.
fn start_log() {
    let filter = EnvFilter::try_from_env("TASKBELL_LOG").unwrap_or_else(|_| EnvFilter::new(USUAL_LOG));
    let stderr = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        // It would tell of a closed stderr by printing to it, and that panics.
        .log_internal_errors(false)
        .with_filter(filter);
    let started = registry().with(stderr).with(taskbell_engine::logs::layer()).try_init();
    debug_assert!(started.is_ok());
}

/// An error and its causes, on one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    tauri::async_runtime::set(runtime.handle().clone());
    let data_dir = options.data_dir()?;
    // Before a window opens: a second one must not even flash up.
    let found = runtime.block_on(instance::look(&data_dir, options.link()))?;
    if let Found::Window = found {
        tracing::info!("the window that is there already is in front now");
        return Ok(ExitCode::SUCCESS);
    }
    let windows = Windows::new();
    // Listening before the engine starts, so that whoever finds the engine finds its window.
    let calls = windows.listen();
    let app = window::unless_it_panics(|| {
        tauri::Builder::<Wry>::new()
            .plugin(tauri_plugin_notification::init())
            .manage(Desk::new())
            .invoke_handler(tauri::generate_handler![
                commands::app_version,
                commands::api_request,
                commands::changes,
                commands::open_external,
                commands::page_shows,
                commands::save_file,
                commands::set_zoom,
            ])
            .build(tauri::generate_context!())
    });
    let app = app.ok_or(NO_WINDOWS)??;
    let handle = app.handle().clone();
    let engine = options.engine(data_dir.clone(), windows, plain_notices::by_plugin(handle.clone()))?;
    match found {
        // The window opens meanwhile; the page waits for the engine, not the user for the page.
        Found::Nothing | Found::Window => drop(runtime.spawn(start_engine(handle.clone(), data_dir, engine))),
        Found::Engine(client) => {
            let door = ApiDoor::there(client);
            handle.state::<Desk>().is_attached_to(door.clone());
            runtime.spawn(stay_attached(handle.clone(), door, data_dir, engine));
        }
    }
    runtime.spawn(answer_calls(handle.clone(), calls));
    runtime.spawn(leave_on_signal(handle.clone()));
    let start = if options.starts_hidden() { window::Start::Hidden } else { window::Start::OnScreen };
    window::open(&handle, start)?;
    runtime.spawn(show_tray(handle.clone()));
    if start == window::Start::Hidden {
        runtime.spawn(show_without_tray(handle.clone()));
    }
    if let Some(link) = options.link() {
        runtime.spawn(follow_link(handle.clone(), link.to_owned()));
    }
    runtime.spawn(autostart::keep(handle.clone()));
    runtime.spawn(look_for_a_blank_window(handle.clone()));
    app.run_return(on_event);
    let exit = handle.state::<Desk>().exit_code();
    // Never joined: a thread may hang in a keyring that does not answer.
    runtime.shutdown_background();
    Ok(exit)
}

async fn start_engine(app: AppHandle<Wry>, data_dir: DataDir, options: EngineOptions) {
    let error = match RunningEngine::start(options.clone()).await {
        Ok(engine) => {
            let failed = engine.engine().store().clone();
            let notices = engine.engine().notifier().events();
            tokio::spawn(answer_notices(app.clone(), notices));
            app.state::<Desk>().runs(engine);
            failed.stopped().await;
            let desk = app.state::<Desk>();
            if desk.begin_leaving() {
                tracing::error!("the store stopped: nothing can be kept any more");
                desk.fail_with(1);
                put_away_and_exit(app.clone());
            }
            return;
        }
        Err(error) => error,
    };
    // Somebody else was quicker by a moment.
    if error.code() == "data_dir_held" {
        match instance::look(&data_dir, None).await {
            Ok(Found::Window) => return leave(&app),
            Ok(Found::Engine(client)) => {
                let door = ApiDoor::there(client);
                app.state::<Desk>().is_attached_to(door.clone());
                return Box::pin(stay_attached(app, door, data_dir, options)).await;
            }
            Ok(Found::Nothing) | Err(_) => {}
        }
    }
    tracing::error!(code = error.code(), "the engine did not start: {}", chain(&error));
    app.state::<Desk>().has_no_engine(Refused::new(error.code(), chain(&error)));
}

/// A click on a notice opens its task; one that is about several, or none, opens the window. Snoozing is done
/// by the engine.
async fn answer_notices(app: AppHandle<Wry>, mut events: broadcast::Receiver<NoticeEvent>) {
    loop {
        match events.recv().await {
            Ok(NoticeEvent::Clicked(task)) => {
                if let Some(task) = task {
                    app.state::<Desk>().show_task(task.to_string());
                }
                window::raise(&app);
            }
            // The newest click counts, and a page hears of a snooze through the feed.
            Ok(NoticeEvent::Snoozed(_)) | Err(broadcast::error::RecvError::Lagged(_)) => (),
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

/// What the engine of this process wants of the window.
async fn answer_calls(app: AppHandle<Wry>, mut calls: WindowCalls) {
    while let Some(call) = calls.next().await {
        answer_call(&app, call);
    }
}

/// The same for an engine of another process. One that is restarted is found again. One that has ended leaves tasks
/// that nobody follows before a user who sees a window: then this program runs the engine.
async fn stay_attached(app: AppHandle<Wry>, door: ApiDoor, data_dir: DataDir, options: EngineOptions) {
    let (mut gone_since, mut lost) = (None, false);
    loop {
        match door.window_calls().await {
            Ok(mut calls) => {
                gone_since = None;
                if std::mem::take(&mut lost) {
                    app.state::<Desk>().tell_link(Link::Live);
                }
                while let Ok(call) = calls.next().await {
                    answer_call(&app, call);
                }
                // The feed would wait for a restart before it says so.
                lost = true;
                app.state::<Desk>().tell_link(Link::Lost);
            }
            Err(error) => tracing::debug!(code = error.code, "the engine does not call this window: {error}"),
        }
        // A folder that cannot be looked at is none that we could take.
        if data_dir.is_held().unwrap_or(true) {
            gone_since = None;
        } else if gone_since.get_or_insert_with(Instant::now).elapsed() >= COMES_BACK_WITHIN {
            tracing::warn!("the engine that this window was attached to has ended: this program runs it now");
            app.state::<Desk>().takes_over();
            return start_engine(app, data_dir, options).await;
        }
        tokio::time::sleep(CALLS_AGAIN).await;
    }
}

fn answer_call(app: &AppHandle<Wry>, call: WindowCall) {
    match call {
        WindowCall::Raise => {}
        WindowCall::Open { task } => app.state::<Desk>().show_task(task.to_string()),
        WindowCall::Link { link } => drop(tauri::async_runtime::spawn(follow_link(app.clone(), link))),
    }
    window::raise(app);
}

/// Shows the task of a link, or the form with what the link says where no such task is known. A link starts nothing.
async fn follow_link(app: AppHandle<Wry>, link: String) {
    let desk = app.state::<Desk>();
    let task = match deep_link::parse(&link) {
        Ok(task) => task,
        Err(refused) => return desk.say(format!("A link was not followed: {refused}.")),
    };
    let known = async {
        desk.door().await?.ask("GET", &deep_link::api_path(&task), None).await.map_err(Refused::from)
    };
    match known.await.map(|answer| answer.status) {
        Ok(200) => desk.show_task(task.to_string()),
        Ok(404) => {
            desk.ask_what_to_watch(Some(task.agent.to_string()), Some(task.task.as_str().to_owned()));
        }
        Ok(status) => desk.say(format!("A link was not followed: the engine answered with {status}.")),
        Err(refused) => desk.say(format!("A link was not followed: {}.", refused.message)),
    }
}

/// Started hidden where nothing shows the icon, the program could not be found: its window is there, minimized.
async fn show_without_tray(app: AppHandle<Wry>) {
    app.state::<Desk>().tray_is_decided().await;
    let end = Instant::now() + TRAY_STARTS_WITHIN;
    while !tray::can_be_seen(&app).await {
        if Instant::now() >= end {
            return window::show_minimized(&app);
        }
        tokio::time::sleep(CALLS_AGAIN).await;
    }
}

/// SIGINT and SIGTERM quit; SIGUSR2 raises the window where there is no port to ask at.
#[cfg(unix)]
async fn leave_on_signal(app: AppHandle<Wry>) {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = || -> std::io::Result<_> {
        Ok((
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::user_defined2())?,
        ))
    };
    let (mut interrupt, mut terminate, mut raise) = match listen() {
        Ok(signals) => signals,
        Err(error) => {
            tracing::warn!("signals end this program without a clean stop: {error}");
            return;
        }
    };
    loop {
        tokio::select! {
            _ = interrupt.recv() => leave(&app),
            _ = terminate.recv() => leave(&app),
            _ = raise.recv() => window::raise(&app),
        }
    }
}

#[cfg(not(unix))]
async fn leave_on_signal(app: AppHandle<Wry>) {
    if tokio::signal::ctrl_c().await.is_ok() {
        leave(&app);
    }
}

/// The window first: the tray takes the same thread, and nobody looks for it before there is a page.
async fn show_tray(app: AppHandle<Wry>) {
    app.state::<Desk>().painted_within(TRAY_WAITS).await;
    let handle = app.clone();
    let put_up = app.run_on_main_thread(move || {
        if let Some(tray) = tray::put_up(&handle) {
            handle.manage(tray);
        }
        handle.state::<Desk>().decide_tray();
    });
    match put_up {
        Ok(()) => tray::keep(app).await,
        Err(error) => {
            tracing::warn!("there is no tray icon: {error}");
            app.state::<Desk>().decide_tray();
        }
    }
}

async fn look_for_a_blank_window(app: AppHandle<Wry>) {
    if app.state::<Desk>().painted_within(PAINTED_WITHIN).await {
        return;
    }
    tracing::error!("the page has not reported itself within 10 s. {BLANK}");
    let hint = app.notification().builder().title("Taskbell").body(BLANK).show();
    if let Err(error) = hint {
        tracing::warn!("the hint could not be shown: {error}");
    }
}

fn on_event(app: &AppHandle<Wry>, event: RunEvent) {
    match event {
        RunEvent::WindowEvent { label, event: WindowEvent::CloseRequested { api, .. }, .. }
            if label == window::MAIN && !app.state::<Desk>().has_left() =>
        {
            api.prevent_close();
            let app = app.clone();
            tauri::async_runtime::spawn(async move { close(&app).await });
        }
        // Whoever else asks, such as the end of the session: not before the engine has stopped.
        RunEvent::ExitRequested { api, .. } if !app.state::<Desk>().has_left() => {
            api.prevent_exit();
            leave(app);
        }
        _ => (),
    }
}

/// The window goes and the work goes on, where the user can find it again. Else closing quits: a program that
/// nobody can see must not run.
async fn close(app: &AppHandle<Wry>) {
    window::hide(app);
    // It may just be on its way.
    app.state::<Desk>().tray_is_decided().await;
    if !tray::can_be_seen(app).await {
        tracing::info!("this desktop shows no tray icons, so closing the window quits");
        leave(app);
    }
}

/// Stops everything in order and ends the program. Once.
fn leave(app: &AppHandle<Wry>) {
    if app.state::<Desk>().begin_leaving() {
        put_away_and_exit(app.clone());
    }
}

fn put_away_and_exit(app: AppHandle<Wry>) {
    // Off the screen at once: what is left to do is none of the user's.
    window::hide(&app);
    tauri::async_runtime::spawn(async move {
        app.state::<Desk>().put_away().await;
        app.exit(0);
    });
}
