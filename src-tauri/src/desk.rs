//! What this program is while it runs: the way to the engine, the feed to the page, and the way out.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use taskbell_engine::api_client::ClientError;
use taskbell_engine::api_door::ApiDoor;
use taskbell_engine::running::RunningEngine;
use tauri::ipc::Channel;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::feed::{self, Gone, Link, Message};

/// How long the engine may take to start before the page is told.
const STARTS_WITHIN: Duration = Duration::from_secs(30);
/// A clean stop takes less; a keyring that hangs takes for ever.
const STOPS_WITHIN: Duration = Duration::from_secs(3);

/// Why a command of the page brought nothing.
#[derive(Debug, Clone, Serialize)]
pub struct Refused {
    /// A stable word.
    pub code: String,
    /// For people.
    pub message: String,
}

impl Refused {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

impl From<ClientError> for Refused {
    fn from(error: ClientError) -> Self {
        Self::new(error.code.clone(), error.to_string())
    }
}

#[derive(Clone)]
enum Engine {
    Starting,
    Reached(ApiDoor),
    Failed(Refused),
}

/// The program's state, which commands, tray and window share.
pub struct Desk {
    engine: watch::Sender<Engine>,
    running: Mutex<Option<RunningEngine>>,
    page: Mutex<Page>,
    painted: watch::Sender<bool>,
    tray: watch::Sender<bool>,
    leaving: AtomicBool,
    left: AtomicBool,
    exit: AtomicU8,
}

/// The page that listens.
#[derive(Default)]
struct Page {
    channel: Option<Channel<Message>>,
    relay: Option<JoinHandle<()>>,
    /// What is to be shown as soon as a page listens: the last wish counts.
    wish: Option<Message>,
}

impl Desk {
    pub fn new() -> Self {
        Self {
            engine: watch::Sender::new(Engine::Starting),
            running: Mutex::default(),
            page: Mutex::default(),
            painted: watch::Sender::new(false),
            tray: watch::Sender::new(false),
            leaving: AtomicBool::new(false),
            left: AtomicBool::new(false),
            exit: AtomicU8::new(0),
        }
    }

    /// This process runs the engine.
    pub fn runs(&self, engine: RunningEngine) {
        let door = engine.door();
        *lock(&self.running) = Some(engine);
        self.engine.send_replace(Engine::Reached(door.clone()));
        // A page that listened to another engine listens to this one.
        let mut page = lock(&self.page);
        if let Some(channel) = page.channel.clone() {
            page.feed(door, None, channel.clone());
            send(&channel, Message::TookOver);
        }
    }

    /// The engine of another process has ended, and one of this process starts. Until it stands, the page waits.
    pub fn takes_over(&self) {
        self.engine.send_replace(Engine::Starting);
    }

    /// Another process runs it.
    pub fn is_attached_to(&self, door: ApiDoor) {
        self.engine.send_replace(Engine::Reached(door));
    }

    /// There is none, and why. The page says so.
    pub fn has_no_engine(&self, refused: Refused) {
        self.fail_with(1);
        self.engine.send_replace(Engine::Failed(refused));
    }

    /// The way to the engine, once it stands.
    pub async fn door(&self) -> Result<ApiDoor, Refused> {
        let mut engine = self.engine.subscribe();
        let settled = engine.wait_for(|engine| !matches!(engine, Engine::Starting));
        let settled = tokio::time::timeout(STARTS_WITHIN, settled).await;
        match settled.ok().and_then(Result::ok).map(|engine| engine.clone()) {
            Some(Engine::Reached(door)) => Ok(door),
            Some(Engine::Failed(refused)) => Err(refused),
            Some(Engine::Starting) | None => Err(Refused::new("no_engine", "the engine has not started yet")),
        }
    }

    /// Feeds the page from now on. A page that was loaded anew takes the place of the one before.
    pub fn feed_page(&self, door: ApiDoor, after: Option<u64>, channel: Channel<Message>) {
        let mut page = lock(&self.page);
        page.feed(door, after, channel.clone());
        if let Some(wish) = page.wish.take() {
            send(&channel, wish);
        }
        page.channel = Some(channel);
    }

    /// Has the page show a task: now, or once it listens.
    pub fn show_task(&self, task: String) {
        self.wish(Message::OpenTask { task });
    }

    /// Has the page open the form for watching a task, filled in as far as it is known.
    pub fn ask_what_to_watch(&self, agent: Option<String>, task: Option<String>) {
        self.wish(Message::WatchTask { agent, task });
    }

    /// Has the page say something to its user.
    pub fn say(&self, text: String) {
        self.wish(Message::Say { text });
    }

    fn wish(&self, message: Message) {
        let mut page = lock(&self.page);
        match &page.channel {
            Some(channel) => send(channel, message),
            None => page.wish = Some(message),
        }
    }

    /// Tells the page how its feed stands.
    pub fn tell_link(&self, link: Link) {
        if let Some(channel) = &lock(&self.page).channel {
            send(channel, Message::Link { link });
        }
    }

    /// The page has drawn something.
    pub fn note_painted(&self) {
        self.painted.send_replace(true);
    }

    /// Waits until the page has drawn something. False: it has not in that time.
    pub async fn painted_within(&self, limit: Duration) -> bool {
        let mut painted = self.painted.subscribe();
        tokio::time::timeout(limit, painted.wait_for(|painted| *painted)).await.is_ok()
    }

    /// The tray icon was put up, or there is none.
    pub fn decide_tray(&self) {
        self.tray.send_replace(true);
    }

    /// Waits until it is known whether there is a tray icon.
    pub async fn tray_is_decided(&self) {
        // The sender is ours.
        let _ = self.tray.subscribe().wait_for(|decided| *decided).await;
    }

    /// The program will end with this code.
    pub fn fail_with(&self, code: u8) {
        self.exit.store(code, Ordering::Relaxed);
    }

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit.load(Ordering::Relaxed))
    }

    /// True for the first who wants to leave.
    pub fn begin_leaving(&self) -> bool {
        !self.leaving.swap(true, Ordering::SeqCst)
    }

    /// Whether everything has been put away.
    pub fn has_left(&self) -> bool {
        self.left.load(Ordering::SeqCst)
    }

    /// Stops the engine of this process. An attached one goes on.
    pub async fn put_away(&self) {
        if let Some(relay) = lock(&self.page).relay.take() {
            relay.abort();
        }
        // One that is just starting has to be stopped as well.
        if let Err(refused) = tokio::time::timeout(STOPS_WITHIN, self.door()).await.unwrap_or_else(|_| {
            Err(Refused::new("no_engine", "the engine did not start in time to be stopped"))
        }) {
            tracing::debug!(code = refused.code, "there is no engine to stop: {}", refused.message);
        }
        let running = lock(&self.running).take();
        if let Some(engine) = running
            && tokio::time::timeout(STOPS_WITHIN, engine.stop()).await.is_err()
        {
            tracing::warn!("the clean stop took longer than 3 s and was given up");
        }
        self.left.store(true, Ordering::SeqCst);
    }
}

impl Page {
    /// One feed at a time.
    fn feed(&mut self, door: ApiDoor, after: Option<u64>, to_page: Channel<Message>) {
        let relay =
            tokio::spawn(feed::run(door, after, move |message| to_page.send(message).map_err(|_| Gone)));
        if let Some(earlier) = self.relay.replace(relay) {
            earlier.abort();
        }
    }
}

fn send(channel: &Channel<Message>, message: Message) {
    if channel.send(message).is_err() {
        tracing::debug!("the page that should hear of something is gone");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening() -> (Channel<Message>, std::sync::Arc<Mutex<Vec<String>>>) {
        let heard = std::sync::Arc::new(Mutex::new(Vec::new()));
        let page = std::sync::Arc::clone(&heard);
        let channel = Channel::new(move |body| {
            let tauri::ipc::InvokeResponseBody::Json(json) = body else { panic!("messages are JSON") };
            lock(&page).push(json);
            Ok(())
        });
        (channel, heard)
    }

    #[tokio::test]
    async fn a_task_chosen_before_the_page_listens_is_shown_once_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::new();
        desk.runs(crate::testing::engine(folder.path()).await);
        desk.show_task("demo/t-1".to_owned());
        let (channel, heard) = listening();
        desk.feed_page(desk.door().await.unwrap(), None, channel);
        desk.show_task("demo/t-2".to_owned());
        let opens: Vec<String> =
            lock(&heard).iter().filter(|json| json.contains("open-task")).cloned().collect();
        assert_eq!(
            opens,
            [r#"{"type":"open-task","task":"demo/t-1"}"#, r#"{"type":"open-task","task":"demo/t-2"}"#]
        );
        desk.put_away().await;
        assert!(desk.has_left());
    }

    #[tokio::test]
    async fn a_page_that_listened_to_an_engine_that_ended_listens_to_our_own() {
        let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let desk = Desk::new();
        let other = crate::testing::engine(theirs.path()).await;
        desk.is_attached_to(other.door());
        let (channel, heard) = listening();
        desk.feed_page(desk.door().await.unwrap(), None, channel);
        other.stop().await;
        desk.takes_over();
        desk.runs(crate::testing::engine(ours.path()).await);
        let body = br#"{"text":"steps=1 interval=0.01"}"#.to_vec();
        let sent = desk.door().await.unwrap().ask("POST", "/api/v1/agents/demo/send", Some(body)).await;
        assert_eq!(sent.unwrap().status, 200);
        crate::testing::wait_until(Duration::from_secs(20), || {
            let heard = lock(&heard);
            let took_over = heard.iter().position(|json| json == r#"{"type":"took-over"}"#);
            took_over.is_some_and(|at| heard[at..].iter().any(|json| json.contains("completed")))
        })
        .await;
        desk.put_away().await;
    }

    #[tokio::test]
    async fn an_engine_that_did_not_start_is_told_to_the_page_and_to_the_shell() {
        let desk = Desk::new();
        desk.has_no_engine(Refused::new("newer_database", "a newer Taskbell wrote it"));
        assert_eq!(desk.door().await.err().unwrap().code, "newer_database");
        assert_eq!(format!("{:?}", desk.exit_code()), format!("{:?}", ExitCode::from(1)));
    }

    #[tokio::test]
    async fn an_engine_that_is_just_starting_is_stopped_too() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::new();
        let dir = taskbell_engine::data_dir::DataDir::at(folder.path());
        let starts = async {
            let engine = crate::testing::engine(folder.path()).await;
            desk.runs(engine);
        };
        tokio::join!(desk.put_away(), starts);
        assert!(!dir.is_held().unwrap(), "nothing is left running");
    }

    #[test]
    fn one_alone_begins_to_leave() {
        let desk = Desk::new();
        assert!(desk.begin_leaving());
        assert!(!desk.begin_leaving());
    }
}
