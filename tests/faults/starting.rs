//! Starting where another engine is, or something else.

use std::{net::TcpListener, time::Duration};

use serde_json::Value;
use taskbell_tests::{Output, Taskbell, long_run, process::Process, taskbell::binary};

use crate::support::{command, database, small_disk};

const FREE_PORTS: [&str; 4] = ["--gateway", "127.0.0.1:0", "--inbox", "127.0.0.1:0"];

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_engines_that_start_at_once_exactly_one_wins() {
    race(20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_engines_that_start_at_once_exactly_one_wins_a_hundred_times() {
    if long_run("a hundred races of two") {
        for _ in 0..100 {
            race(2).await;
        }
    }
}

async fn race(engines: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut all: Vec<Process> = (0..engines)
        .map(|number| {
            Process::start(&format!("engine {number}"), binary(), |command| {
                command.args(["serve", "--json", "--credential-store", "memory"]).args(FREE_PORTS);
                command.arg("--data-dir").arg(folder.path());
            })
        })
        .collect();
    let mut winners = Vec::new();
    let mut losers = Vec::new();
    for engine in &mut all {
        let line = engine.next_line(Duration::from_secs(30)).await.expect("a line from everyone");
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if said["ready"] == true {
            winners.push(engine.pid());
        } else {
            let status = engine.ended(Duration::from_secs(10)).await;
            assert_eq!(status.code(), Some(1), "{line}");
            losers.push(said["error"]["message"].as_str().unwrap_or_default().to_owned());
        }
    }
    assert_eq!((winners.len(), losers.len()), (1, engines - 1), "{losers:?}");
    let holder = winners[0].to_string();
    for message in &losers {
        assert!(message.contains(&holder), "the holder {holder} is named: {message}");
    }
    let tasks = command(folder.path(), &["tasks"]).await;
    tasks.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_holds_a_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound").to_string();
    let taskbell = Taskbell::without_engine();
    let said = taskbell
        .cli_text(&["serve", "--credential-store", "memory", "--gateway", &address, "--inbox", "127.0.0.1:0"])
        .await;
    fails_with(&said, &address);
    fails_with(&said, &format!("process {}", std::process::id()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_a_newer_program_is_refused_and_left_octet_for_octet() {
    let mut taskbell = Taskbell::start().await;
    taskbell.stop().await;
    let folder = taskbell.data_dir();
    database(
        &folder,
        "d.execute('PRAGMA user_version = 9999')\nd.execute('PRAGMA wal_checkpoint(TRUNCATE)')",
    )
    .await;
    let octets = || std::fs::read(folder.join("taskbell.db")).expect("a database");
    let before = octets();
    let said = taskbell.cli_text(&serve(&["--credential-store", "memory"])).await;
    fails_with(&said, "9999");
    fails_with(&said, &folder.join("taskbell.db").display().to_string());
    assert_eq!(taskbell.serve_again(&FREE_PORTS).await.error_code(1), "store_newer");
    assert!(octets() == before, "a newer database is not touched");
}

fn serve<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["serve"];
    all.extend(FREE_PORTS);
    all.extend(more);
    all
}

/// Asserts that a start failed with one line that says `what`. Lines of the log may stand before it.
fn fails_with(output: &Output, what: &str) {
    output.exits(1);
    let said: Vec<&str> = output.stderr.lines().filter(|line| line.starts_with("taskbell: ")).collect();
    assert_eq!(said.len(), 1, "{output:?}");
    assert!(
        said[0].contains(what) && output.stderr.ends_with(&format!("{}\n", said[0])),
        "{what}: {output:?}"
    );
    assert!(!output.stderr.contains("panicked") && output.stdout.is_empty(), "{output:?}");
}

#[test]
fn a_folder_on_a_read_only_disk_is_refused_by_its_path() {
    const NAME: &str = "starting::a_folder_on_a_read_only_disk_is_refused_by_its_path";
    let Some(disk) = small_disk(NAME, 8) else { return };
    tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
        let mut taskbell = Taskbell::setup().below(&disk).start().await;
        taskbell.stop().await;
        let mounted = std::process::Command::new("mount").args(["-o", "remount,ro"]).arg(&disk).status();
        assert!(mounted.is_ok_and(|status| status.success()), "the disk cannot be made read-only");
        let existing = taskbell.data_dir().display().to_string();
        fails_with(&taskbell.cli_text(&serve(&["--credential-store", "memory"])).await, &existing);
        let path = disk.join("not-there").display().to_string();
        let output = taskbell.cli_text(&serve(&["--credential-store", "memory", "--data-dir", &path])).await;
        fails_with(&output, &path);
        let again = std::process::Command::new("mount").args(["-o", "remount,rw"]).arg(&disk).status();
        assert!(again.is_ok_and(|status| status.success()), "the disk cannot be made writable");
        taskbell.come_up().await;
        taskbell.cli(&["tasks"]).await.exits(0);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_file_that_others_could_read_is_replaced_with_a_new_token() {
    use std::os::unix::fs::PermissionsExt;
    let mut taskbell = Taskbell::start().await;
    let path = taskbell.data_dir().join("runtime.json");
    let before = std::fs::read_to_string(&path).expect("a run file");
    taskbell.kill9().await;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    taskbell.come_up().await;
    let mode = std::fs::metadata(&path).expect("a run file").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let token = |text: &str| serde_json::from_str::<Value>(text).expect("JSON")["token"].clone();
    let after = std::fs::read_to_string(&path).expect("a run file");
    assert_ne!(token(&before), token(&after), "whoever read the old one has nothing");
}
