//! The wall clock jumps; the monotonic one goes on. That is what sleep looks like to a program, too.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;
use taskbell_tests::{FaultProxy, Taskbell, When, a2a::http, eventually, taskbell::Setup, wait_until};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::{
    PATIENCE,
    support::{Scene, add_agent},
};

const LIBRARIES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];

/// A wall clock that can be set, for one engine.
struct Clock {
    file: PathBuf,
    library: &'static str,
    _folder: TempDir,
}

impl Clock {
    fn new() -> Option<Self> {
        let Some(library) = LIBRARIES.into_iter().find(|path| Path::new(path).exists()) else {
            println!("skipped: this machine has no libfaketime");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Self { file: folder.path().join("clock"), library, _folder: folder };
        clock.set(0);
        Some(clock)
    }

    /// Seconds away from the true time. A new file takes the place of the old one, so that nobody reads half.
    fn set(&self, seconds: i64) {
        let next = self.file.with_extension("next");
        fs::write(&next, format!("{seconds:+}\n")).expect("a folder of our own");
        fs::rename(&next, &self.file).expect("a folder of our own");
    }

    fn engine(&self) -> Setup {
        Taskbell::setup()
            .env("LD_PRELOAD", self.library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file.display().to_string())
            .env("FAKETIME_NO_CACHE", "1")
            .env("DONT_FAKE_MONOTONIC", "1")
    }
}

/// The changes of all kinds so far, as the feed tells them.
async fn changes(taskbell: &Taskbell) -> Vec<Value> {
    let run = fs::read_to_string(taskbell.data_dir().join("runtime.json")).expect("a run file");
    let run: Value = serde_json::from_str(&run).expect("JSON");
    let url = format!("{}/api/v1/changes?after=0", taskbell.ready().gateway);
    let mut answer = http()
        .get(url)
        .bearer_auth(run["token"].as_str().expect("a token"))
        .send()
        .await
        .expect("the feed answers");
    let mut text = String::new();
    // The feed has no end: it is over when nothing has come for a moment.
    while let Ok(Ok(Some(piece))) = tokio::time::timeout(Duration::from_millis(500), answer.chunk()).await {
        text.push_str(&String::from_utf8_lossy(&piece));
    }
    text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?.trim()).ok()).collect()
}

async fn sweep(taskbell: &Taskbell) -> Value {
    wait_until(PATIENCE, "a sweep is told", async || {
        changes(taskbell).await.into_iter().find(|change| change["kind"] == "sweep")
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_that_passes_at_once_has_every_open_task_read_and_the_unconfirmed_named() {
    let Some(clock) = Clock::new() else { return };
    let scene = Scene::with(clock.engine()).await;
    let tasks = scene.attached(8).await;
    let mut away = FaultProxy::before(scene.gateway.port()).await;
    add_agent(&scene.taskbell, "away", &away).await;
    let lost_sight = [scene.taskbell.send("away", "one").await, scene.taskbell.send("away", "two").await];
    eventually(PATIENCE, "attached", || away.open_streams() == 2).await;
    away.down().await;
    scene.taskbell.shows(&lost_sight[0], PATIENCE, "away", |shown| shown.mode() == "reconnecting").await;
    let before = scene.proxy.seen().len();
    clock.set(3_600);
    for task in &tasks {
        eventually(Duration::from_secs(15), "every open task is read again", || {
            let seen = scene.proxy.seen();
            seen[before..].iter().any(|seen| seen.is_get() && seen.task.as_deref() == Some(task.id()))
        })
        .await;
    }
    let sweep = sweep(&scene.taskbell).await;
    assert_eq!((&sweep["total"], &sweep["confirmed"]), (&10.into(), &8.into()), "{sweep}");
    let mut unconfirmed: Vec<&str> =
        sweep["unconfirmed"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    unconfirmed.sort_unstable();
    let mut expected: Vec<&str> = lost_sight.iter().map(|name| name.as_str()).collect();
    expected.sort_unstable();
    assert_eq!(unconfirmed, expected, "whoever was not confirmed is named");
    eventually(PATIENCE, "all streams are new", || scene.proxy.open_streams() == 8).await;
    away.up().await;
    eventually(PATIENCE, "the others too", || away.open_streams() == 2).await;
    for task in tasks.iter().chain(&lost_sight) {
        scene.gateway.finish(task.id(), "the report");
        scene.taskbell.wait(task).await.exits(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_back_or_to_1970_raises_no_storm_and_changes_nothing() {
    let Some(clock) = Clock::new() else { return };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let to_1970 = 86_400 - i64::try_from(now.as_secs()).expect("a time of this age");
    for jump in [-86_400, to_1970] {
        clock.set(0);
        let scene = Scene::with(clock.engine()).await;
        let tasks = scene.attached(6).await;
        // The first look at a new stream has passed.
        sleep(Duration::from_secs(3)).await;
        let (before, states) = (scene.proxy.seen().len(), states(&scene.taskbell).await);
        let subscribed = scene.proxy.count(When::Subscribes);
        clock.set(jump);
        sleep(Duration::from_secs(5)).await;
        let asked = scene.proxy.seen().len() - before;
        assert!(asked <= tasks.len(), "{jump}: {asked} calls in five seconds for {} tasks", tasks.len());
        assert_eq!(scene.proxy.count(When::Subscribes), subscribed, "{jump}: no stream is asked for again");
        assert_eq!(scene.proxy.open_streams(), 6, "{jump}: no stream is given up");
        assert_eq!(self::states(&scene.taskbell).await, states, "{jump}");
        let notices = notices(&scene.taskbell).await;
        for task in &tasks {
            scene.gateway.finish(task.id(), "the report");
            scene.taskbell.wait(task).await.exits(0);
        }
        // Forward again, as when the clock is set right: that is a jump like sleep.
        clock.set(0);
        sleep(Duration::from_secs(3)).await;
        let after = self::notices(&scene.taskbell).await;
        assert!(after - notices <= tasks.len(), "{jump}: nothing is told twice");
        assert!(scene.proxy.count(When::Sends) == 6);
    }
}

/// How many notices there were. Each is announced again when it is known what came of it.
async fn notices(taskbell: &Taskbell) -> usize {
    let changes = changes(taskbell).await;
    let told = changes.iter().filter(|change| change["kind"] == "notice");
    told.map(|change| change["id"].to_string()).collect::<std::collections::BTreeSet<_>>().len()
}

async fn states(taskbell: &Taskbell) -> Vec<(String, String)> {
    let mut states: Vec<_> = taskbell
        .cli(&["tasks"])
        .await
        .items()
        .iter()
        .map(|item| (item["task"].to_string(), item["state"].to_string()))
        .collect();
    states.sort();
    states
}
