//! Notices on a real desktop: dunst on a bus and a screen of its own. What is read here is what dunst says that
//! it shows; what is pressed is pressed through dunst.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use taskbell_core::ids::{AgentName, TaskRef};
use taskbell_engine::api::views::NoticeView;
use taskbell_engine::api::window::Windows;
use taskbell_engine::data_dir::DataDir;
use taskbell_engine::notifier::{NoticeEvent, Notices, OtherWay};
use taskbell_engine::running::{CredentialStore, EngineOptions, GatewayTaken, RunningEngine};
use taskbell_engine::tasks::{Outgoing, Sent};
use tokio::sync::broadcast;

const SOON: Duration = Duration::from_secs(15);
const SERVICE: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";

const BUS: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
"#;

/// In its menu of buttons somebody always takes Snooze.
const DUNST: &str = "[global]\nmarkup = full\ndmenu = /bin/grep -m1 Snooze\n";

/// A process that ends with its owner, also a stopped one.
struct Owned(Child);

impl Owned {
    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command) -> Owned {
    Owned(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// Screen, bus, and a notification service where one was started.
struct Session {
    home: tempfile::TempDir,
    display: String,
    address: String,
    dunst: Option<Owned>,
    _bus: Owned,
    _screen: Owned,
}

impl Session {
    /// `None` where the machine lacks the programs.
    fn start() -> Option<Self> {
        for program in ["Xvfb", "dbus-daemon", "dunst"] {
            if !["/usr/bin", "/usr/local/bin", "/bin"].iter().any(|dir| Path::new(dir).join(program).exists())
            {
                eprintln!("skipped: {program} is not installed");
                return None;
            }
        }
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("bus.conf"), BUS).unwrap();
        std::fs::write(home.path().join("dunstrc"), DUNST).unwrap();
        let mut screen = Command::new("Xvfb");
        screen
            .args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"])
            .stdout(Stdio::piped());
        let mut screen = start(&mut screen);
        let display = format!(":{}", first_line(&mut screen));
        let mut bus = Command::new("dbus-daemon");
        bus.arg(format!("--config-file={}", home.path().join("bus.conf").display()));
        bus.args(["--nofork", "--nopidfile", "--print-address=1"]).stdout(Stdio::piped());
        let mut bus = start(&mut bus);
        let address = first_line(&mut bus);
        Some(Self { home, display, address, dunst: None, _bus: bus, _screen: screen })
    }

    async fn with_dunst() -> Option<Self> {
        let mut session = Self::start()?;
        session.start_dunst().await;
        Some(session)
    }

    async fn start_dunst(&mut self) {
        let said = std::fs::OpenOptions::new().create(true).append(true).open(self.said()).unwrap();
        let mut dunst = Command::new("dunst");
        dunst
            .args(["-print", "-config"])
            .arg(self.home.path().join("dunstrc"))
            .env("DISPLAY", &self.display)
            .env("DBUS_SESSION_BUS_ADDRESS", &self.address)
            .env("HOME", self.home.path())
            .env_remove("WAYLAND_DISPLAY")
            .stdout(said);
        self.dunst = Some(start(&mut dunst));
        let bus = self.connect().await;
        let names = zbus::fdo::DBusProxy::new(&bus).await.unwrap();
        until("dunst on the bus", async || names.name_has_owner(SERVICE.try_into().unwrap()).await.unwrap())
            .await;
    }

    fn dunst(&self) -> &Owned {
        self.dunst.as_ref().unwrap()
    }

    fn said(&self) -> PathBuf {
        self.home.path().join("dunst.out")
    }

    /// Every notice that dunst was given, as summary and body.
    fn shown(&self) -> Vec<(String, String)> {
        let said = std::fs::read_to_string(self.said()).unwrap_or_default();
        let value = |block: &str, name: &str| {
            let from = block.split_once(&format!("\t{name}: '"))?.1;
            Some(from.split_once("'\n")?.0.to_owned())
        };
        said.split("appname:")
            .skip(1)
            .filter_map(|block| Some((value(block, "summary")?, value(block, "body")?)))
            .collect()
    }

    fn titles(&self) -> Vec<String> {
        self.shown().into_iter().map(|(summary, _)| summary).collect()
    }

    async fn connect(&self) -> zbus::Connection {
        let builder = zbus::connection::Builder::address(self.address.as_str()).unwrap();
        tokio::time::timeout(SOON, builder.build()).await.expect("the bus answers").unwrap()
    }

    /// How many stand on the screen.
    async fn displayed(&self) -> u32 {
        let bus = self.connect().await;
        let values = ("org.dunstproject.cmd0", "displayedLength");
        let properties = Some("org.freedesktop.DBus.Properties");
        let answer = bus.call_method(Some(SERVICE), PATH, properties, "Get", &values).await.unwrap();
        let value: zbus::zvariant::OwnedValue = answer.body().deserialize().unwrap();
        value.try_into().unwrap()
    }

    async fn press<B: serde::Serialize + zbus::zvariant::DynamicType>(&self, method: &str, values: &B) {
        let dunst = Some("org.dunstproject.cmd0");
        self.connect().await.call_method(Some(SERVICE), PATH, dunst, method, values).await.unwrap();
    }
}

fn first_line(process: &mut Owned) -> String {
    let mut line = String::new();
    // The pipe stays open: who writes into a closed one ends.
    BufReader::new(process.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !is_so().await {
        assert!(Instant::now() < end, "not within {SOON:?}: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// An engine with its demo agent that shows notices on a bus.
struct World {
    running: RunningEngine,
    events: broadcast::Receiver<NoticeEvent>,
    _folder: tempfile::TempDir,
}

fn options(folder: &Path, address: &str) -> EngineOptions {
    EngineOptions {
        data_dir: DataDir::at(folder),
        gateway: "127.0.0.1:0".parse().unwrap(),
        gateway_taken: GatewayTaken::Refuse,
        credential_store: CredentialStore::Memory,
        demo: true,
        windows: Windows::new(),
        notices: Notices::ShownOn(address.to_owned()),
    }
}

async fn send(running: &RunningEngine, text: &str) -> TaskRef {
    let outgoing = Outgoing { text: text.to_owned(), context_id: None, parts: Vec::new() };
    match running.engine().send(&AgentName::new("demo").unwrap(), outgoing).await.unwrap() {
        Sent::Task(key) => running.engine().summary_of(key).await.unwrap().task,
        other => panic!("a task, not {other:?}"),
    }
}

impl World {
    async fn start(address: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let running = RunningEngine::start(options(folder.path(), address)).await.unwrap();
        let events = running.engine().notifier().events();
        Self { running, events, _folder: folder }
    }

    async fn send(&self, text: &str) -> TaskRef {
        send(&self.running, text).await
    }

    async fn notices(&self) -> Vec<NoticeView> {
        let mut items = self.running.engine().notices(None, 1_000).await.unwrap().items;
        items.reverse();
        items
    }

    async fn outcomes(&self) -> Vec<(String, String)> {
        let word = |outcome: Option<String>| outcome.unwrap_or_else(|| "pending".to_owned());
        self.notices().await.into_iter().map(|item| (item.kind, word(item.outcome))).collect()
    }

    async fn until_outcomes(&self, expected: &[(&str, &str)]) {
        let what = format!("{expected:?}");
        let is = |(kind, outcome): &(String, String), wanted: &(&str, &str)| {
            (kind.as_str(), outcome.as_str()) == *wanted
        };
        until(&what, async || {
            let now = self.outcomes().await;
            now.len() == expected.len() && now.iter().zip(expected).all(|(one, wanted)| is(one, wanted))
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_stands_on_the_desktop_until_it_is_settled_and_a_click_opens_its_task() {
    let Some(session) = Session::with_dunst().await else { return };
    let mut world = World::start(&session.address).await;
    let task = world.send("build <b>R&D</b> steps=3 interval=0.05 ask=1").await;
    until("the question", async || session.displayed().await == 1).await;
    assert_eq!(session.titles(), ["demo needs your answer"]);
    world.until_outcomes(&[("waiting", "shown")]).await;
    session.press("NotificationAction", &(0_u32,)).await;
    assert_eq!(
        tokio::time::timeout(SOON, world.events.recv()).await.unwrap(),
        Ok(NoticeEvent::Clicked(Some(task.clone())))
    );
    world.running.engine().reply(&task, "yes".to_owned()).await.unwrap();
    world.until_outcomes(&[("waiting", "withdrawn"), ("finished", "shown")]).await;
    assert_eq!(session.titles(), ["demo needs your answer", "demo finished"]);
    let (_, body) = session.shown().pop().unwrap();
    assert!(body.starts_with("build &lt;b&gt;R&amp;D&lt;/b&gt;"), "dunst renders markup: {body}");
    world.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_settled_elsewhere_leaves_the_desktop() {
    let Some(session) = Session::with_dunst().await else { return };
    let world = World::start(&session.address).await;
    world.send("steps=200 interval=0.1 auth=1 authwait=2").await;
    until("the question", async || session.displayed().await == 1).await;
    until("an empty desktop", async || session.displayed().await == 0).await;
    world.until_outcomes(&[("waiting", "withdrawn")]).await;
    world.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_button_snooze_takes_the_question_away_for_a_while() {
    let Some(session) = Session::with_dunst().await else { return };
    let mut world = World::start(&session.address).await;
    let task = world.send("steps=3 interval=0.05 ask=1").await;
    until("the question", async || session.displayed().await == 1).await;
    world.until_outcomes(&[("waiting", "shown")]).await;
    session.press("ContextMenuCall", &()).await;
    assert_eq!(
        tokio::time::timeout(SOON, world.events.recv()).await.unwrap(),
        Ok(NoticeEvent::Snoozed(task))
    );
    until("an empty desktop", async || session.displayed().await == 0).await;
    world.until_outcomes(&[("waiting", "pending")]).await;
    assert!(world.notices().await[0].snoozed_until.is_some());
    world.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_focused_window_shows_is_not_told() {
    let Some(session) = Session::with_dunst().await else { return };
    let world = World::start(&session.address).await;
    let task = world.send("steps=3 interval=0.3").await;
    world.running.engine().notifier().set_focus(Some(task));
    world.until_outcomes(&[("finished", "suppressed")]).await;
    assert!(session.titles().is_empty());
    world.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_that_end_together_are_one_notice() {
    let Some(session) = Session::with_dunst().await else { return };
    let world = World::start(&session.address).await;
    for _ in 0..6 {
        world.send("steps=1 interval=0.05").await;
    }
    world.until_outcomes(&[("finished", "merged"); 6]).await;
    assert_eq!(session.titles(), ["6 tasks finished"]);
    world.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_service_costs_its_notice_and_nothing_else() {
    let Some(session) = Session::with_dunst().await else { return };
    let world = World::start(&session.address).await;
    session.dunst().signal("-STOP");
    let task = world.send("steps=3 interval=0.05 ask=1").await;
    world.until_outcomes(&[("waiting", "failed")]).await;
    let detail = world.notices().await.remove(0).detail.unwrap();
    assert!(detail.contains("did not answer within 2 s"), "{detail}");
    let began = Instant::now();
    world.running.engine().reply(&task, "yes".to_owned()).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "nothing waits for the desktop");
    session.dunst().signal("-CONT");
    until("a notice again", async || {
        world.running.engine().test_notice().await.unwrap().outcome.as_deref() == Some("shown")
    })
    .await;
    world.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_service_the_outcome_says_so_and_a_later_one_is_found() {
    let Some(mut session) = Session::start() else { return };
    let world = World::start(&session.address).await;
    let test = world.running.engine().test_notice().await.unwrap();
    assert_eq!(
        (test.outcome.as_deref(), test.detail.as_deref()),
        (Some("failed"), Some("no notification service runs"))
    );
    session.start_dunst().await;
    let test = world.running.engine().test_notice().await.unwrap();
    assert_eq!(test.outcome.as_deref(), Some("shown"));
    world.running.stop().await;
    let elsewhere = World::start("unix:path=/nonexistent/bus").await;
    let test = elsewhere.running.engine().test_notice().await.unwrap();
    assert_eq!(test.outcome.as_deref(), Some("no-desktop"), "{test:?}");
    elsewhere.running.stop().await;
}

const HOST: &str = "TASKBELL_TEST_NOTICE_HOST";

/// Not a test: an engine in a process of its own, for those that kill it.
#[tokio::test(flavor = "multi_thread")]
async fn host() {
    let Ok(place) = std::env::var(HOST) else { return };
    let (folder, address) = place.split_once('|').unwrap();
    let running = RunningEngine::start(options(Path::new(folder), address)).await.unwrap();
    // So that the next call to the desktop is the one that shows.
    running.engine().test_notice().await.unwrap();
    println!("\nready");
    let text = tokio::task::spawn_blocking(|| std::io::stdin().lines().next()).await.unwrap();
    if let Some(Ok(text)) = text {
        send(&running, &text).await;
    }
    std::future::pending::<()>().await;
}

fn start_host(folder: &Path, session: &Session) -> Owned {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "host", "--nocapture"])
        .env(HOST, format!("{}|{}", folder.display(), session.address))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut host = Owned(child);
    let lines = BufReader::new(host.0.stdout.as_mut().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "ready"), "the host starts");
    host
}

/// Kind, whether it was begun to be shown, and its outcome.
fn rows(folder: &Path) -> Vec<(String, bool, Option<String>)> {
    let path = folder.join("taskbell.db");
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = rusqlite::Connection::open_with_flags(path, flags).unwrap();
    let sql = "SELECT kind, shown_at_ms IS NOT NULL, outcome FROM notices WHERE kind <> 'test' ORDER BY id";
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Kills an engine while dunst has its notice of `text` and it knows nothing of that yet; starts it again.
async fn killed_while_showing(session: &Session, folder: &Path, text: &str, begun: bool) -> Owned {
    let mut host = start_host(folder, session);
    session.dunst().signal("-STOP");
    writeln!(host.0.stdin.as_mut().unwrap(), "{text}").unwrap();
    until("the row", async || rows(folder).first().is_some_and(|(_, shown, _)| *shown == begun)).await;
    // The call is on its way well within this, and is given up long after it.
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(rows(folder)[0].2, None, "nothing is recorded when it is killed");
    drop(host);
    session.dunst().signal("-CONT");
    start_host(folder, session)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_shown_again_by_an_engine_that_was_killed_before_it_could_record_it() {
    let Some(session) = Session::with_dunst().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let _again = killed_while_showing(&session, folder.path(), "steps=3 interval=0.05 ask=1", false).await;
    until("the outcome", async || rows(folder.path())[0].2.as_deref() == Some("shown")).await;
    let asked = session.titles().iter().filter(|title| *title == "demo needs your answer").count();
    assert_eq!(asked, 2, "at least once: {:?}", session.titles());
    until("one on the desktop", async || session.displayed().await == 2).await; // with the test notice
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_is_not_shown_again_by_an_engine_that_was_killed_before_it_could_record_it() {
    let Some(session) = Session::with_dunst().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let _again = killed_while_showing(&session, folder.path(), "steps=1 interval=0.05", true).await;
    until("the outcome", async || rows(folder.path())[0].2.is_some()).await;
    assert_eq!(rows(folder.path()), [("finished".to_owned(), true, Some("failed".to_owned()))]);
    let told = session.titles().iter().filter(|title| *title == "demo finished").count();
    assert_eq!(told, 1, "at most once, and here it was: {:?}", session.titles());
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_shows_notices_another_way_is_taken_and_its_buttons_are_heard() {
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let other = OtherWay::new(move |notice, _| told.send(notice).map_err(|error| error.to_string()));
    let folder = tempfile::tempdir().unwrap();
    let address = Some("unix:path=/nonexistent/bus".to_owned());
    let notices = Notices::ShownOr { address, other: other.clone() };
    let running =
        RunningEngine::start(EngineOptions { notices, ..options(folder.path(), "") }).await.unwrap();
    let events = running.engine().notifier().events();
    let mut world = World { running, events, _folder: folder };
    let task = world.send("steps=3 interval=0.05 ask=1").await;
    world.until_outcomes(&[("waiting", "shown")]).await;
    let detail = world.notices().await.remove(0).detail.unwrap();
    assert!(detail.contains("no desktop session") && detail.contains("does not tell"), "{detail}");
    let notice = heard.try_recv().unwrap();
    assert_eq!((notice.title.as_str(), notice.can_snooze), ("demo needs your answer", true));
    other.press(notice.id, "tap");
    let pressed = tokio::time::timeout(SOON, world.events.recv()).await.unwrap();
    assert_eq!(pressed, Ok(NoticeEvent::Clicked(Some(task.clone()))));
    other.press(notice.id, "snooze");
    let pressed = tokio::time::timeout(SOON, world.events.recv()).await.unwrap();
    assert_eq!(pressed, Ok(NoticeEvent::Snoozed(task)));
    assert!(heard.try_recv().is_err(), "handed over once");
    world.running.stop().await;
}
