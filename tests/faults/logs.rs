//! A log that cannot be kept stops nothing.

use std::fs;
use std::process::{Command, Stdio};

use taskbell_tests::{Taskbell, wait_until};

use crate::{
    PATIENCE,
    support::{Scene, health},
};

/// Mounts two pages of memory over the folder of the logs, and fills them, in a mount namespace of the engine's own.
/// The last argument is the data folder.
const FULL_LOGS: &str = r#"
for data; do :; done
mkdir -p "$data/logs" && mount -t tmpfs -o size=8k,mode=700 tmpfs "$data/logs" || exit
head -c 8192 /dev/zero >"$data/logs/ballast" && exec "$@"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_folder_of_logs_is_named_and_stops_nothing_and_heals_when_freed() {
    let may = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        println!("skipped: a private mount namespace needs root and unshare");
        return;
    }
    let under = ["/usr/bin/unshare", "--mount", "sh", "-c", FULL_LOGS, "sh"];
    let scene = Scene::with(Taskbell::setup().under(&under)).await;
    let tasks = scene.attached(1).await;
    let full = wait_until(PATIENCE, "the log is full", async || {
        let log = health(&scene.taskbell, "log").await;
        (log["state"] == "warn").then_some(log)
    })
    .await;
    assert!(full["detail"].as_str().is_some_and(|detail| detail.contains("could not be kept")), "{full}");
    scene.gateway.finish(tasks[0].id(), "the report");
    scene.taskbell.wait(&tasks[0]).await.exits(0);
    assert_eq!(scene.taskbell.show(&tasks[0]).await.text(), "the report");
    let data = scene.taskbell.data_dir();
    let ballast = format!("/proc/{}/root{}/logs/ballast", scene.taskbell.ready().pid, data.display());
    fs::remove_file(ballast).expect("the ballast is there");
    wait_until(PATIENCE, "the log is kept again", async || {
        (health(&scene.taskbell, "log").await["state"] == "ok").then_some(())
    })
    .await;
}
