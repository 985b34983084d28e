//! Notices on a real desktop: dunst on a bus and a screen of its own. What is read here is what dunst says that
//! it shows; what is pressed is pressed through dunst.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

mod refusing;
mod session;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use taskbell_engine::notifier::{NoticeEvent, Notices, OtherWay};
use taskbell_engine::running::{EngineOptions, RunningEngine};

use session::{Owned, SOON, Session, World, options, send, until};

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
async fn a_service_that_the_first_notice_starts_is_no_other_one_and_that_notice_can_be_taken_back() {
    let Some(session) = Session::with_dunst_on_demand() else { return };
    let world = World::start(&session.address).await;
    let task = world.send("steps=200 interval=0.3 ask=1").await;
    world.until_outcomes(&[("waiting", "shown")]).await;
    assert_eq!(session.displayed().await, 1);
    world.running.engine().reply(&task, "yes".to_owned()).await.unwrap();
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

/// The time of day here, some minutes from now.
fn clock(minutes: i64) -> String {
    let at = jiff::Zoned::now().checked_add(jiff::SignedDuration::from_mins(minutes)).unwrap();
    format!("{:02}:{:02}", at.hour(), at.minute())
}

async fn set(world: &World, key: &str, value: &str) {
    world.running.engine().set_setting(key, value).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn quiet_hours_hold_notices_up_and_their_end_is_one_digest() {
    let Some(session) = Session::with_dunst().await else { return };
    let world = World::start(&session.address).await;
    set(&world, "quiet.from", &clock(-60)).await;
    set(&world, "quiet.to", &clock(60)).await;
    world.send("steps=3 interval=0.05 ask=1").await;
    world.send("steps=1 interval=0.05").await;
    until("both held up", async || {
        let notices = world.notices().await;
        let held =
            |detail: &Option<String>| detail.as_deref().is_some_and(|why| why.starts_with("quiet until"));
        notices.len() == 2 && notices.iter().all(|one| one.outcome.is_none() && held(&one.detail))
    })
    .await;
    assert!(session.titles().is_empty());
    let quiet = world.running.engine().end_quiet().await.unwrap();
    assert!(!quiet.quiet, "the hours of this night are over: {quiet:?}");
    until("the digest", async || session.displayed().await == 1).await;
    assert_eq!(session.titles(), ["1 task needs you, 1 finished"]);
    until("what came of each", async || {
        let mut outcomes = world.outcomes().await;
        outcomes.sort();
        let all = [("finished", "merged"), ("waiting", "shown")];
        outcomes == all.map(|(kind, outcome)| (kind.to_owned(), outcome.to_owned()))
    })
    .await;
    world.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_user_calls_urgent_comes_through_the_quiet_and_what_is_held_outlives_a_restart() {
    let Some(session) = Session::with_dunst().await else { return };
    let world = World::start(&session.address).await;
    set(&world, "quiet.urgent", "waiting").await;
    let hour = taskbell_engine::api::views::QuietRequest { minutes: Some(60), until: None };
    assert!(world.running.engine().ask_for_quiet(hour).await.unwrap().asked);
    world.send("steps=1 interval=0.05").await;
    until("the end that is held up", async || {
        world.notices().await.first().is_some_and(|one| one.detail.is_some())
    })
    .await;
    world.send("steps=3 interval=0.05 ask=1").await;
    world.until_outcomes(&[("finished", "pending"), ("waiting", "shown")]).await;
    assert_eq!(session.titles(), ["demo needs your answer"]);
    world.running.stop().await;
    let running = RunningEngine::start(options(world._folder.path(), &session.address)).await.unwrap();
    let again = World { events: running.engine().notifier().events(), running, _folder: world._folder };
    assert!(again.running.engine().quiet().await.unwrap().quiet, "still");
    again.running.engine().end_quiet().await.unwrap();
    again.until_outcomes(&[("finished", "shown"), ("waiting", "shown")]).await;
    again.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_off_and_a_task_that_is_muted_are_recorded_and_not_shown() {
    let Some(session) = Session::with_dunst().await else { return };
    let world = World::start(&session.address).await;
    set(&world, "notice.demo.finished", "off").await;
    world.send("steps=1 interval=0.05").await;
    world.until_outcomes(&[("finished", "suppressed")]).await;
    assert_eq!(world.notices().await[0].detail.as_deref(), Some("notices of this kind are off"));
    set(&world, "notice.demo.finished", "default").await;
    let muted = world.send("steps=3 interval=0.3 ask=2").await;
    world.running.engine().mute(&muted).await.unwrap();
    world.until_outcomes(&[("finished", "suppressed"), ("waiting", "suppressed")]).await;
    assert_eq!(world.notices().await[1].detail.as_deref(), Some("the task is muted"));
    world.send("steps=1 interval=0.05").await;
    until("the end that is wanted again", async || session.titles() == ["demo finished"]).await;
    world.running.stop().await;
}
