//! The store against the faults it promises to survive: kills, held locks, full disks, damaged and newer
//! files. Real files, real processes; a test that needs a child runs this program again.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use taskbell_engine::store::{
    DamageReason, OpenError, OpenReport, Remembered, Store, StoreError, WriteContext, changes, settings,
    wall_clock,
};

const FILE: &str = "taskbell.db";
const CHILD: &str = "TASKBELL_TEST_CHILD";
const FOLDER: &str = "TASKBELL_TEST_FOLDER";

fn open(folder: &Path) -> (Store, OpenReport) {
    Store::open(folder, wall_clock()).unwrap()
}

async fn close(store: Store) {
    store.close(Duration::from_secs(10)).await.unwrap();
}

async fn set(store: &Store, key: impl Into<String>) -> Result<(), StoreError> {
    let key = key.into();
    store.write(move |context| settings::set(context, &key, "x")).await
}

async fn keys(store: &Store) -> Vec<String> {
    let rows = store.read(settings::list).await.unwrap();
    rows.into_iter().map(|row| row.0).collect()
}

fn record(context: &mut WriteContext<'_>, body_json: &str) -> Result<u64, StoreError> {
    let change = changes::NewChange { agent: None, task: None, source: "manual", kind: "notice", body_json };
    changes::record_change(context, &change)
}

/// This test program again, running one test as a child.
fn again(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(CHILD, test).env(FOLDER, folder);
    command
}

fn as_child(test: &str) -> Option<PathBuf> {
    (std::env::var(CHILD).ok()? == test).then(|| PathBuf::from(std::env::var_os(FOLDER).unwrap()))
}

/// Occupies the writer with a command that ends when told; what is written meanwhile is one batch.
async fn hold_writer(
    store: &Store,
) -> (std::sync::mpsc::Sender<()>, tokio::task::JoinHandle<Result<(), StoreError>>) {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (runs, running) = tokio::sync::oneshot::channel();
    let store = store.clone();
    let command = tokio::spawn(async move {
        let hold = move |_: &mut WriteContext<'_>| {
            runs.send(()).unwrap();
            released.recv().map_err(|_| StoreError::Stopped)
        };
        store.write(hold).await
    });
    running.await.unwrap();
    (release, command)
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_that_wait_together_share_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let (store, report) = open(folder.path());
    assert!(report.created && report.damage.is_none());
    let (release, first) = hold_writer(&store).await;
    let others: Vec<_> = (0..200)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { set(&store, format!("k{n:03}")).await })
        })
        .collect();
    wait_until(Duration::from_secs(5), || store.queued() == 200).await;
    release.send(()).unwrap();
    first.await.unwrap().unwrap();
    for other in others {
        other.await.unwrap().unwrap();
    }
    let counts = store.counts();
    assert_eq!(counts.commands, 201);
    assert!(counts.commits <= 3, "200 waiting commands must not need {} commits", counts.commits);
    assert!(counts.largest_batch >= 100, "{counts:?}");
    assert_eq!(keys(&store).await.len(), 200);
    close(store).await;
}

#[derive(Default)]
struct Cache(Vec<String>);

impl Remembered for Cache {
    fn rolled_back(&mut self) {
        self.0.clear();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_fails_harms_no_other_and_rings_no_bell() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path());
    let bell = store.doorbell();
    let (release, _) = hold_writer(&store).await;
    let good = store.write(|context| {
        settings::set(context, "good", "1")?;
        context.state.of::<Cache>().0.push("good".into());
        record(context, "1")
    });
    let bad = store.write(|context| {
        settings::set(context, "bad", "1")?;
        context.state.of::<Cache>().0.push("bad".into());
        record(context, "2")?;
        Err::<(), _>(StoreError::Missing { what: "reason".into() })
    });
    let looks = store.write(|context| {
        settings::set(context, "also good", "1")?;
        Ok(context.state.of::<Cache>().0.clone())
    });
    let release = async {
        wait_until(Duration::from_secs(5), || store.queued() == 3).await;
        release.send(()).unwrap();
    };
    let (good, bad, looks, ()) = tokio::join!(biased; good, bad, looks, release);
    assert_eq!(good.unwrap(), 1);
    assert_eq!(bad.unwrap_err(), StoreError::Missing { what: "reason".into() });
    assert!(looks.unwrap().is_empty(), "after a rollback no cache may be trusted");
    assert_eq!(keys(&store).await, ["also good", "good"]);
    wait_until(Duration::from_secs(5), || *bell.borrow() > 0).await;
    assert_eq!(*bell.borrow(), 1, "the bell must not name a change that was rolled back");
    assert_eq!(store.read(|c| changes::changes_after(c, 0, 10)).await.unwrap().len(), 1);
    close(store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_wait_is_committed_by_itself_and_with_whoever_is_in_haste() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path());
    let along = |key: &'static str| store.write_along(move |context| settings::set(context, key, "x"));
    along("alone").await.unwrap();
    assert_eq!((keys(&store).await.len(), store.counts().commits), (1, 1));
    let (release, first) = hold_writer(&store).await;
    let together = async { tokio::join!(along("a"), along("b"), set(&store, "in haste")) };
    let release = async {
        wait_until(Duration::from_secs(5), || store.queued() == 3).await;
        release.send(()).unwrap();
    };
    let (stored, ()) = tokio::join!(biased; together, release);
    assert_eq!(stored, (Ok(()), Ok(()), Ok(())));
    first.await.unwrap().unwrap();
    assert_eq!((keys(&store).await.len(), store.counts().commits), (4, 3), "one commit for the three");
    close(store).await;
}

#[tokio::test]
async fn posted_writes_are_stored_and_their_failures_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path());
    for n in 0..2000 {
        store.post("test", move |context| settings::set(context, &format!("k{n}"), "x")).await.unwrap();
    }
    store.post("test", |_| Err(StoreError::Missing { what: "x".into() })).await.unwrap();
    set(&store, "last").await.unwrap();
    assert_eq!(keys(&store).await.len(), 2001, "commands run in the order they came");
    assert_eq!(store.counts().failed_posts, 1);
    close(store).await;
}

#[tokio::test]
async fn a_clean_stop_needs_no_check_and_a_kill_does() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path());
    set(&store, "a").await.unwrap();
    close(store.clone()).await;
    assert_eq!(set(&store, "b").await, Err(StoreError::Stopped));
    assert!(!folder.path().join("taskbell.db-wal").exists(), "a closed store is one file");
    let (store, report) = open(folder.path());
    assert_eq!(report, OpenReport::default());
    drop(store); // Never closed.
    let started = Instant::now();
    let report = loop {
        // The writer of the dropped store may hold the file a moment longer.
        match Store::open(folder.path(), wall_clock()) {
            Ok((_, report)) => break report,
            Err(error) => assert!(started.elapsed() < Duration::from_secs(5), "{error}"),
        }
    };
    assert!(report.checked_after_unclean_stop.is_some(), "{report:?}");
    assert!(report.damage.is_none());
}

#[tokio::test]
async fn a_dead_writer_is_told_to_everybody() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path());
    let died = store.write(|_| -> Result<(), StoreError> { panic!("a fault of ours, on purpose") }).await;
    assert_eq!(died, Err(StoreError::Stopped));
    tokio::time::timeout(Duration::from_secs(5), store.stopped()).await.unwrap();
    assert_eq!(set(&store, "a").await, Err(StoreError::Stopped));
}

#[tokio::test]
async fn a_lock_held_by_another_process_is_busy_after_two_seconds_and_then_all_is_well() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path());
    set(&store, "before").await.unwrap();
    let other = Connection::open(folder.path().join(FILE)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let started = Instant::now();
    let late = async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let started = Instant::now();
        (set(&store, "late").await, started.elapsed())
    };
    let (busy, (late, late_took)) = tokio::join!(set(&store, "refused"), late);
    assert_eq!((busy, late), (Err(StoreError::Busy), Err(StoreError::Busy)));
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(1900), "{took:?}");
    assert!(
        (Duration::from_millis(1900)..Duration::from_millis(2900)).contains(&late_took),
        "each caller has a deadline of its own, not that of the batch before: {late_took:?}"
    );
    store.post("kept", |context| settings::set(context, "posted", "x")).await.unwrap();
    assert_eq!(keys(&store).await, ["before"], "readers are not held up");
    other.execute_batch("COMMIT").unwrap();
    set(&store, "after").await.unwrap();
    assert_eq!(keys(&store).await, ["after", "before", "posted"]);
    close(store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_then_write_by_many_loses_no_update() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path());
    let adders: Vec<_> = (0..4)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                for _ in 0..100 {
                    let add = |context: &mut WriteContext<'_>| {
                        let old =
                            settings::get(context.tx, "sum")?.map_or(0, |text| text.parse::<u32>().unwrap());
                        settings::set(context, "sum", &(old + 1).to_string())
                    };
                    store.write(add).await.unwrap();
                }
            })
        })
        .collect();
    for adder in adders {
        adder.await.unwrap();
    }
    assert_eq!(store.read(|c| settings::get(c, "sum")).await.unwrap().as_deref(), Some("400"));
    close(store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_in_the_middle_of_writes_loses_no_acknowledged_row() {
    const NAME: &str = "kill_9_in_the_middle_of_writes_loses_no_acknowledged_row";
    if let Some(folder) = as_child(NAME) {
        return write_until_killed(&folder).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..8u64 {
        let child = again(NAME, folder.path()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut child = Killed(child);
        let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        let wanted = acknowledged.len() + 200 + 137 * round as usize;
        for line in lines {
            let line = line.unwrap();
            let Some(key) = line.strip_prefix("stored ") else { continue };
            acknowledged.push(key.to_owned());
            if acknowledged.len() == wanted {
                child.0.kill().unwrap(); // What is still in the pipe was acknowledged too.
            }
        }
        assert!(acknowledged.len() >= wanted, "the child must live until it is killed");
    }
    let (store, report) = open(folder.path());
    assert!(report.checked_after_unclean_stop.is_some() && report.damage.is_none(), "{report:?}");
    let stored: std::collections::HashSet<_> = keys(&store).await.into_iter().collect();
    let lost: Vec<_> = acknowledged.iter().filter(|key| !stored.contains(*key)).collect();
    assert!(lost.is_empty(), "{} of {} acknowledged rows are gone", lost.len(), acknowledged.len());
    close(store).await;
}

async fn write_until_killed(folder: &Path) {
    let (store, _) = open(folder);
    let run = std::process::id();
    let writers: Vec<_> = (0..16)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for n in 0..20_000 {
                    let key = format!("{run}-{writer}-{n}");
                    set(&store, key.clone()).await.unwrap();
                    println!("stored {key}");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

/// Needs a file system of three megabytes, so it runs as a child in a mount namespace of its own.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named_keeps_every_row_and_heals_when_freed() {
    const NAME: &str = "a_full_disk_is_named_keeps_every_row_and_heals_when_freed";
    if let Some(folder) = as_child(NAME) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(fill_the_disk(&folder));
    }
    let may = Command::new("unshare").args(["-m", "true"]).stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        eprintln!("skipped: a private mount namespace needs root and unshare");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let me = std::env::current_exe().unwrap();
    let script = r#"mount -t tmpfs -o size=3m tmpfs "$0" && exec "$@""#;
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", script])
        .arg(folder.path())
        .arg(me)
        .args(["--exact", NAME, "--nocapture", "--test-threads=1"])
        .env(CHILD, NAME)
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("filled and freed"), "the child must have run: {said}");
}

#[cfg(target_os = "linux")]
async fn fill_the_disk(folder: &Path) {
    // More than the log will hold, so that folding it into the database has room once this is gone.
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![0; 2_000_000]).unwrap();
    let (store, _) = open(folder);
    let mut stored = 0;
    let error = loop {
        let key = format!("k{stored:04}");
        let write = store.write(move |context| settings::set(context, &key, &"x".repeat(20_000)));
        match write.await {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 200, "three megabytes must fill up");
    };
    assert_eq!(error, StoreError::Full);
    assert!(stored > 5);
    let again = store.write(|context| settings::set(context, "again", &"x".repeat(20_000))).await;
    assert_eq!(again, Err(StoreError::Full), "and it stays named for as long as it lasts");
    assert_eq!(keys(&store).await.len(), stored, "every acknowledged row is there and no other");
    std::fs::remove_file(&ballast).unwrap();
    set(&store, "freed").await.unwrap();
    assert_eq!(keys(&store).await.len(), stored + 1);
    close(store).await;
    let (store, report) = open(folder);
    assert_eq!(report, OpenReport::default());
    assert_eq!(keys(&store).await.len(), stored + 1);
    println!("filled and freed");
}

/// Failing flushes need `strace`, so the writing is done by a child under it.
#[cfg(target_os = "linux")]
fn with_failing_flushes(test: &str, when: &str) -> Option<String> {
    let probe = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        eprintln!("skipped: strace is not installed or may not trace");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"])
        .args(["-e", &format!("inject=fsync,fdatasync:error=EIO:when={when}")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, test)
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    Some(said)
}

#[cfg(target_os = "linux")]
#[test]
fn one_failed_flush_is_told_and_the_store_goes_on_after_a_check() {
    const NAME: &str = "one_failed_flush_is_told_and_the_store_goes_on_after_a_check";
    let Some(folder) = as_child(NAME) else {
        if let Some(said) = with_failing_flushes(NAME, "30") {
            assert!(said.contains("failed once and went on"), "{said}");
        }
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (store, _) = open(&folder);
        let (mut stored, mut failed) = (Vec::new(), Vec::new());
        for n in 0..60 {
            let key = format!("k{n:02}");
            match set(&store, key.clone()).await {
                Ok(()) => stored.push(key),
                Err(error) => failed.push(error),
            }
        }
        assert!(matches!(failed[..], [StoreError::Io { .. }]), "{failed:?}");
        let kept = keys(&store).await;
        assert!(stored.iter().all(|key| kept.contains(key)), "every acknowledged row is there");
        close(store).await;
        let (_, report) = open(&folder);
        assert!(report.checked_after_unclean_stop.is_some(), "the next start looks again");
        println!("failed once and went on");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_second_failed_flush_ends_all_acknowledging() {
    const NAME: &str = "a_second_failed_flush_ends_all_acknowledging";
    let Some(folder) = as_child(NAME) else {
        // Every fifteenth flush from the thirtieth on.
        if let Some(said) = with_failing_flushes(NAME, "30+15") {
            assert!(said.contains("suspended"), "{said}");
        }
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (store, _) = open(&folder);
        let mut answers = Vec::new();
        for n in 0..90 {
            answers.push(set(&store, format!("k{n:02}")).await.err());
        }
        let io = answers.iter().flatten().filter(|error| matches!(error, StoreError::Io { .. })).count();
        assert_eq!(io, 2, "{answers:?}");
        assert!(matches!(answers.last().unwrap(), Some(StoreError::Suspended { .. })), "{answers:?}");
        let refused =
            answers.iter().position(|answer| matches!(answer, Some(StoreError::Suspended { .. }))).unwrap();
        assert!(answers[refused..].iter().all(Option::is_some), "nothing is acknowledged after that");
        println!("suspended");
    });
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_is_acknowledged_while_the_folder_is_gone() {
    let parent = tempfile::tempdir().unwrap();
    let (here, away) = (parent.path().join("here"), parent.path().join("away"));
    std::fs::create_dir(&here).unwrap();
    let (store, _) = open(&here);
    set(&store, "before").await.unwrap();
    std::fs::rename(&here, &away).unwrap();
    assert_eq!(set(&store, "nowhere").await.unwrap_err().code(), "store_read_only");
    std::fs::rename(&away, &here).unwrap();
    set(&store, "after").await.unwrap();
    assert!(keys(&store).await.contains(&"after".to_owned()));
    close(store).await;
}

#[tokio::test]
async fn a_newer_database_is_refused_and_left_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let (store, _) = open(folder.path());
    set(&store, "a").await.unwrap();
    close(store).await;
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let files = || {
        let mut files: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), std::fs::read(path).unwrap()))
            .collect();
        files.sort();
        files
    };
    let before = files();
    let refused = Store::open(folder.path(), wall_clock()).err().unwrap();
    assert!(matches!(refused, OpenError::Newer { found: 99, .. }), "{refused}");
    assert!(files() == before, "a refused file is left as it was");
    assert_eq!(refused.code(), "store_newer");

    // As its own program left it when killed: the version is in the log only.
    let newer = Connection::open(&path).unwrap();
    newer
        .execute_batch(
            "PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = 1; PRAGMA wal_checkpoint(TRUNCATE)",
        )
        .unwrap();
    newer.pragma_update(None, "user_version", 98).unwrap();
    let copy = tempfile::tempdir().unwrap();
    for suffix in ["", "-wal"] {
        let name = format!("{FILE}{suffix}");
        std::fs::copy(folder.path().join(&name), copy.path().join(&name)).unwrap();
    }
    let read = |suffix: &str| std::fs::read(copy.path().join(format!("{FILE}{suffix}"))).unwrap();
    let before = (read(""), read("-wal"));
    let refused = Store::open(copy.path(), wall_clock()).err().unwrap();
    assert!(matches!(refused, OpenError::Newer { found: 98, .. }), "{refused}");
    assert!((read(""), read("-wal")) == before, "neither the file nor its log may change");
}

async fn store_with_backup(folder: &Path) {
    let (store, _) = open(folder);
    set(&store, "in the backup").await.unwrap();
    let made = store.back_up_if_due(wall_clock()()).await.unwrap();
    assert!(made.is_some());
    assert_eq!(store.back_up_if_due(wall_clock()()).await.unwrap(), None, "one a day");
    for n in 0..300 {
        let key = format!("later {n:03}");
        store.post("test", move |context| settings::set(context, &key, &"x".repeat(300))).await.unwrap();
    }
    close(store).await;
}

/// Spoils the file in a store that has a backup, and looks that the backup took its place.
async fn damaged(spoil: impl FnOnce(&Path)) -> DamageReason {
    let folder = tempfile::tempdir().unwrap();
    store_with_backup(folder.path()).await;
    let path = folder.path().join(FILE);
    spoil(&path);
    let spoiled = std::fs::read(&path).unwrap_or_default();
    let (store, report) = open(folder.path());
    let damage = report.damage.expect("the damage must be found");
    assert!(damage.restored_from.is_some());
    if damage.reason != DamageReason::Missing {
        assert!(std::fs::read(&damage.moved_to).unwrap() == spoiled, "the damaged file is kept as it was");
    }
    assert_eq!(keys(&store).await, ["in the backup"]);
    set(&store, "goes on").await.unwrap();
    close(store).await;
    let (_, report) = open(folder.path());
    assert_eq!(report, OpenReport::default(), "told once");
    damage.reason
}

fn unclean(path: &Path) {
    Connection::open(path).unwrap().execute("UPDATE meta SET value = '0' WHERE key = 'clean'", []).unwrap();
}

fn flip(path: &Path, at: impl Fn(usize) -> Vec<usize>) {
    let mut bytes = std::fs::read(path).unwrap();
    for place in at(bytes.len()) {
        bytes[place] ^= 0xff;
    }
    std::fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn a_file_without_its_header_is_set_aside() {
    let reason = damaged(|path| flip(path, |_| (0..16).collect())).await;
    assert!(matches!(reason, DamageReason::Refused { .. }), "{reason:?}");
}

#[tokio::test]
async fn damaged_pages_are_found_after_an_unclean_stop() {
    let reason = damaged(|path| {
        unclean(path);
        // The heads of all pages behind the first few.
        flip(path, |length| (8..length / 4096).flat_map(|page| page * 4096..page * 4096 + 12).collect());
    })
    .await;
    assert!(matches!(reason, DamageReason::Check { .. } | DamageReason::Refused { .. }), "{reason:?}");
}

#[tokio::test]
async fn a_file_cut_short_is_found_after_an_unclean_stop() {
    let reason = damaged(|path| {
        unclean(path);
        let length = std::fs::metadata(path).unwrap().len();
        std::fs::File::options().write(true).open(path).unwrap().set_len(length / 2 / 4096 * 4096).unwrap();
    })
    .await;
    assert!(matches!(reason, DamageReason::Check { .. } | DamageReason::Refused { .. }), "{reason:?}");
}

#[tokio::test]
async fn an_empty_file_is_set_aside() {
    assert_eq!(damaged(|path| std::fs::write(path, "").unwrap()).await, DamageReason::ZeroLength);
}

#[tokio::test]
async fn a_log_without_its_database_is_set_aside() {
    let reason = damaged(|path| {
        std::fs::remove_file(path).unwrap();
        std::fs::write(path.with_file_name("taskbell.db-wal"), [7; 64]).unwrap();
    })
    .await;
    assert_eq!(reason, DamageReason::Missing);
}

#[tokio::test]
async fn without_a_sound_backup_the_store_starts_empty_and_keeps_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    store_with_backup(folder.path()).await;
    let backups = folder.path().join("backups");
    let backup = std::fs::read_dir(&backups).unwrap().next().unwrap().unwrap().path();
    for path in [folder.path().join(FILE), backup.clone()] {
        std::fs::write(path, "not a database, and long enough to be looked at").unwrap();
    }
    let (store, report) = open(folder.path());
    let damage = report.damage.unwrap();
    assert_eq!(damage.restored_from, None);
    assert!(damage.moved_to.exists() && backup.exists());
    assert!(keys(&store).await.is_empty());
    close(store).await;
}

#[tokio::test]
async fn three_backups_are_kept_and_each_opens() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path());
    let day = 24 * 60 * 60 * 1000;
    let now = wall_clock()();
    for n in 0..5 {
        set(&store, format!("day {n}")).await.unwrap();
        let made = store.back_up_if_due(now + n * day).await.unwrap().unwrap();
        let copy = Connection::open(made).unwrap();
        let rows: i64 = copy.query_row("SELECT count(*) FROM settings", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, n + 1);
    }
    let left = std::fs::read_dir(folder.path().join("backups")).unwrap().count();
    assert_eq!(left, 3);
    close(store).await;
}

#[cfg(unix)]
#[tokio::test]
async fn every_file_is_for_its_user_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path());
    set(&store, "a").await.unwrap();
    let backup = store.back_up_if_due(wall_clock()()).await.unwrap().unwrap();
    let mut files: Vec<_> =
        ["", "-wal", "-shm"].map(|suffix| folder.path().join(format!("{FILE}{suffix}"))).into();
    files.push(backup);
    for path in files {
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600,
            "{}",
            path.display()
        );
    }
    close(store).await;
}

#[tokio::test]
async fn the_settings_that_the_promises_rest_on_are_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path());
    let number = |name: &'static str| {
        store.write(move |context| {
            Ok(context.tx.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0))?)
        })
    };
    assert_eq!(number("synchronous").await.unwrap(), 2, "FULL");
    assert_eq!(number("foreign_keys").await.unwrap(), 1);
    assert_eq!(number("trusted_schema").await.unwrap(), 0);
    assert_eq!(number("secure_delete").await.unwrap(), 1);
    let mode =
        store.read(|c| Ok(c.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0))?)).await;
    assert_eq!(mode.unwrap(), "wal");
    let version = rusqlite::version_number();
    assert!(version >= 3_051_003, "older ones have a bug that damages the log: {version}");
    let refused = store.read(|c| Ok(c.execute("DELETE FROM settings", [])?)).await.unwrap_err();
    assert_eq!(refused.code(), "store_read_only", "readers cannot write");
    close(store).await;
}

async fn wait_until(limit: Duration, mut reached: impl FnMut() -> bool) {
    let started = Instant::now();
    while !reached() {
        assert!(started.elapsed() < limit, "not reached within {limit:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
