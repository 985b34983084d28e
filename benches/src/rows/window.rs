//! The window: until it can be used and what it weighs, beside the least window there is; and how long a quick
//! feed keeps its page from answering.
//!
//! The windows are programs of their own, opened in turn on one private desktop, each alone. Each page tells two
//! frames after it has drawn.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use taskbell_engine::store::wall_clock;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::{sleep, timeout};

use super::{number, start};
use crate::program::{self, text};
use crate::screen::Screen;
use crate::table::{Figure, Table};
use crate::{Failure, Scale};

const SHOWS_WITHIN: Duration = Duration::from_secs(30);
const ENDS_WITHIN: Duration = Duration::from_secs(10);
/// What only the start needed is given back by then.
const SETTLE: Duration = Duration::from_secs(6);
const FEED_SECONDS: &str = "10";

/// What the programs say on standard error.
const FRAME: [&str; 2] = ["painted", "page shows Frame"];
const TASKS: &str = "page shows Tasks";

pub async fn run(scale: Scale, table: &mut Table) -> Result<(), Failure> {
    let here = std::env::current_exe()?;
    let built = |name: &str| {
        let path = here.with_file_name(name);
        if path.exists() {
            Ok(path)
        } else {
            Err(format!("{} is not built: `make bench` builds it", path.display()))
        }
    };
    let (ours, least) = (built("taskbell-desktop")?, built("examples/minimal-window")?);
    beside_the_least(&ours, &least, scale, table).await?;
    long_tasks(&built("taskbell")?, scale, table).await
}

async fn beside_the_least(ours: &Path, least: &Path, scale: Scale, table: &mut Table) -> Result<(), Failure> {
    let screen = Screen::start().await?;
    let full = program::folder()?;
    let tasks = scale.pick(1_000, 200);
    start::fill(full.path(), tasks, wall_clock()()).await?;
    let [mut minimal, mut empty, mut filled] = [Seen::default(), Seen::default(), Seen::default()];
    // The first of each fills the system's caches.
    for turn in 0..=scale.pick(9, 1) {
        let fresh = program::folder()?;
        let mut command = screen.command(least);
        let window = Window::open(&mut command, FRAME[0]).await?;
        minimal.take(window, turn > 0).await?;
        for (seen, folder) in [(&mut empty, fresh.path()), (&mut filled, full.path())] {
            let mut command = screen.command(ours);
            command.args(["--gateway", "127.0.0.1:0", "--inbox", "127.0.0.1:0"]);
            command.args(["--credential-store", "memory", "--data-dir"]);
            command.arg(text(folder)?).env("TASKBELL_LOG", "warn,taskbell_desktop=debug");
            seen.take(Window::open(&mut command, TASKS).await?, turn > 0).await?;
        }
    }
    let full = format!("{tasks} tasks");
    let rows = [
        ("until its first frame is on the screen", "an empty store", &empty.frame, &minimal.frame, "ms"),
        ("until it can be used", "an empty store", &empty.usable, &minimal.usable, "ms"),
        ("until it can be used", &full, &filled.usable, &minimal.usable, "ms"),
        ("idle memory (PSS) of all its processes", "an empty store", &empty.family, &minimal.family, "MiB"),
        ("idle memory (PSS) of all its processes", &full, &filled.family, &minimal.family, "MiB"),
        ("of it, the program with its engine", "an empty store", &empty.program, &minimal.program, "MiB"),
        ("of it, the program with its engine", &full, &filled.program, &minimal.program, "MiB"),
    ];
    for (what, store, ours, minimal, unit) in rows {
        let target = if what.starts_with("of it") { "–" } else { "≤ 1.2 × minimal" };
        let peer = ("minimal Tauri app", Figure::new(minimal.clone(), unit));
        table.add_beside(format!("window, {store}: {what}"), Figure::new(ours.clone(), unit), peer, target);
    }
    Ok(())
}

/// What was measured of one kind of window: milliseconds from the start of the process, and MiB.
#[derive(Default)]
struct Seen {
    frame: Vec<f64>,
    usable: Vec<f64>,
    family: Vec<f64>,
    program: Vec<f64>,
}

impl Seen {
    async fn take(&mut self, window: Window, counts: bool) -> Result<(), Failure> {
        if counts {
            sleep(SETTLE).await;
            let pid = window.child.id().ok_or("the window closed by itself")?;
            let family: f64 =
                program::family(pid)?.into_iter().map(program::pss_kib).sum::<Result<_, _>>()?;
            self.frame.push(window.frame_ms);
            self.usable.push(window.usable_ms);
            self.family.push(family / 1024.0);
            self.program.push(program::pss_kib(pid)? / 1024.0);
        }
        window.close().await
    }
}

/// An open window that can be used.
struct Window {
    child: Child,
    frame_ms: f64,
    usable_ms: f64,
    // Read to its end, or the program would be held up.
    _said: Lines<BufReader<ChildStderr>>,
}

impl Window {
    /// Starts a program and waits until it says that its window can be used.
    async fn open(command: &mut Command, usable: &str) -> Result<Self, Failure> {
        let began = Instant::now();
        let ms = || began.elapsed().as_secs_f64() * 1e3;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut said = BufReader::new(child.stderr.take().ok_or("standard error is piped")?).lines();
        let mut frame_ms = None;
        let mut last = String::new();
        loop {
            let line = timeout(SHOWS_WITHIN, said.next_line())
                .await
                .map_err(|_| format!("no window within {SHOWS_WITHIN:?}; last heard: {last}"))??
                .ok_or_else(|| format!("the program ended without a window; last heard: {last}"))?;
            if FRAME.iter().any(|frame| line.contains(frame)) {
                frame_ms = Some(ms());
            }
            if line.contains(usable) {
                let usable_ms = ms();
                let frame_ms = frame_ms.unwrap_or(usable_ms);
                return Ok(Self { child, frame_ms, usable_ms, _said: said });
            }
            last = line;
        }
    }

    async fn close(mut self) -> Result<(), Failure> {
        let pid = self.child.id().ok_or("the window closed by itself")?;
        let family = program::family(pid)?;
        let kill = Command::new("kill").args(["-TERM", &pid.to_string()]).status().await?;
        if !kill.success() {
            return Err("the window could not be asked to close".into());
        }
        timeout(ENDS_WITHIN, self.child.wait()).await.map_err(|_| "the window did not close")??;
        // Its web processes may live a moment longer, and would be measured with the next one.
        let end = Instant::now() + ENDS_WITHIN;
        while family.iter().any(|pid| program::pss_kib(*pid).is_ok()) && Instant::now() < end {
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

/// The page in a browser on a feed of 1,000 changes a second: how often, and how long, it did not answer.
async fn long_tasks(taskbell: &Path, scale: Scale, table: &mut Table) -> Result<(), Failure> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui/scripts/longtasks.mjs");
    let [mut count, mut longest, mut rate] = [const { Vec::new() }; 3];
    for _ in 0..scale.runs() {
        let mut node = Command::new("node");
        node.arg(&script).env("TASKBELL_BIN", taskbell);
        node.env("MEASURED_SECONDS", scale.pick(FEED_SECONDS, "2")).kill_on_drop(true);
        let output = node.output().await.map_err(|error| format!("failed to start node: {error}"))?;
        if !output.status.success() {
            return Err(format!("long tasks: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
        }
        let told: Value = serde_json::from_slice(&output.stdout)?;
        count.push(number(&told, "longTasks")?);
        longest.push(number(&told, "longestMs")?);
        rate.push(number(&told, "arrivedPerSecond")?);
    }
    let rate = Figure::new(rate, "/s").median();
    let seconds = scale.pick(FEED_SECONDS, "2");
    let what = format!("page in Chromium, {rate:.0} changes a second for {seconds} s");
    table.add(format!("{what}: tasks over 50 ms"), Figure::new(count, ""), "0");
    table.add(format!("{what}: the longest of them"), Figure::new(longest, "ms"), "≤ 50 ms");
    Ok(())
}
