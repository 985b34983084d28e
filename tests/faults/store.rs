//! The disk and the database fail under a running engine, or between two runs.

use std::{
    fs::{self, File},
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use taskbell_tests::{GatewayA, Taskbell, eventually, taskbell::TaskName, wait_until};
use tokio::time::sleep;

use crate::{
    PATIENCE, TOKEN,
    support::{Scene, add_agent, command, database, health, integrity, small_disk},
};

#[test]
fn a_full_disk_loses_nothing_and_heals_without_a_restart() {
    const NAME: &str = "store::a_full_disk_loses_nothing_and_heals_without_a_restart";
    let Some(disk) = small_disk(NAME, 12) else { return };
    tokio::runtime::Runtime::new().expect("a runtime").block_on(fill(&disk));
}

async fn fill(disk: &Path) {
    let scene = Scene::with(Taskbell::setup().credential_file("of these tests").below(disk)).await;
    let tasks = scene.attached(3).await;
    let ballast = disk.join("ballast");
    let mut file = File::create(&ballast).expect("room for a file");
    while file.write_all(&[0; 4096]).is_ok() {}
    let messages = scene.gateway.messages().len();
    // What was reserved before may still take some.
    let mut refused = None;
    for turn in 0..200 {
        let output = scene.taskbell.cli(&["send", "a", &format!("{turn} {}", "x".repeat(20_000))]).await;
        if output.code != Some(0) {
            refused = Some(output);
            break;
        }
    }
    let refused = refused.expect("a full disk refuses a send at last");
    assert_eq!(refused.error_code(1), "disk_full");
    let listed = scene.taskbell.cli(&["tasks"]).await.items().len();
    let arrived = scene.gateway.messages().len() - messages;
    assert_eq!(
        listed,
        tasks.len() + arrived,
        "what could not be noted was not sent, and what was sent is noted"
    );
    scene.gateway.work(tasks[0].id(), "while the disk is full");
    scene.gateway.finish(tasks[1].id(), "the report");
    sleep(Duration::from_secs(1)).await;
    assert!(!scene.taskbell.log().contains("panicked"), "{}", scene.taskbell.log());
    assert_eq!(health(&scene.taskbell, "store").await["state"], "bad", "the user is told");
    drop(file);
    fs::remove_file(&ballast).expect("it is ours");
    scene.taskbell.wait(&tasks[1]).await.exits(0);
    assert_eq!(scene.taskbell.show(&tasks[1]).await.text(), "the report");
    scene.gateway.finish(tasks[0].id(), "the other report");
    scene.taskbell.wait(&tasks[0]).await.exits(0);
    let later = scene.taskbell.send("a", "after the disk was freed").await;
    assert_ne!(health(&scene.taskbell, "store").await["state"], "bad", "and told that it is over");
    scene.gateway.finish(later.id(), "done");
    scene.taskbell.wait(&later).await.exits(0);
    let Scene { mut taskbell, .. } = scene;
    taskbell.stop().await;
    assert_eq!(integrity(&taskbell.data_dir()).await, "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_moved_away_stops_sending_and_loses_nothing() {
    let scene = Scene::start().await;
    let tasks = scene.attached(2).await;
    let (folder, moved) = (scene.taskbell.data_dir(), scene.taskbell.data_dir().with_extension("moved"));
    fs::rename(&folder, &moved).expect("it can be moved");
    let messages = scene.gateway.messages().len();
    let output = command(&moved, &["send", "a", "into nowhere"]).await;
    assert_eq!(output.error_code(1), "store_read_only", "{output:?}");
    assert_eq!(scene.gateway.messages().len(), messages, "what cannot be noted is not sent");
    scene.gateway.finish(tasks[0].id(), "the report");
    sleep(Duration::from_secs(1)).await;
    fs::rename(&moved, &folder).expect("and back");
    scene.taskbell.wait(&tasks[0]).await.exits(0);
    assert_eq!(scene.taskbell.show(&tasks[0]).await.text(), "the report");
    let later = scene.taskbell.send("a", "after it came back").await;
    scene.gateway.finish(later.id(), "done");
    scene.taskbell.wait(&later).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_held_for_three_seconds_by_another_program_loses_nothing() {
    let scene = Scene::start().await;
    let tasks = scene.attached(3).await;
    let folder = scene.taskbell.data_dir();
    let before = scene.gateway.messages().len();
    let lock = {
        let folder = folder.clone();
        tokio::spawn(async move {
            database(&folder, "import time\nd.execute('BEGIN IMMEDIATE')\nprint('held', flush=True)\ntime.sleep(3)\nd.execute('COMMIT')").await
        })
    };
    sleep(Duration::from_millis(500)).await;
    for (turn, task) in tasks.iter().enumerate() {
        scene.gateway.work(task.id(), &format!("said into the lock {turn}"));
    }
    let mut sends = Vec::new();
    for turn in 0..5 {
        let folder = folder.clone();
        sends.push(tokio::spawn(
            async move { command(&folder, &["send", "a", &format!("locked {turn}")]).await },
        ));
        sleep(Duration::from_millis(300)).await;
    }
    let mut sent = Vec::new();
    for send in sends {
        let output = send.await.expect("a command does not panic");
        match output.code {
            Some(0) => sent.push(TaskName::of(&output.json()["task"])),
            _ => assert_eq!(output.error_code(1), "store_busy"),
        }
    }
    assert_eq!(lock.await.expect("the lock was held"), "held");
    assert!(!sent.is_empty(), "a send waits two seconds for the lock");
    assert_eq!(scene.gateway.messages().len() - before, sent.len(), "a send that failed never left");
    let listed = scene.taskbell.cli(&["tasks"]).await.items().len();
    assert_eq!(listed, tasks.len() + sent.len(), "every send that succeeded is kept");
    for (turn, task) in tasks.iter().enumerate() {
        let said = format!("said into the lock {turn}");
        scene.taskbell.shows(task, PATIENCE, &said, |shown| shown.0.to_string().contains(&said)).await;
    }
}

/// An engine with three tasks, a backup that knows them, and one more task that ended while it was down.
async fn stopped_with_backup() -> (Scene, Vec<TaskName>) {
    let mut scene = Scene::start().await;
    let tasks = scene.attached(3).await;
    scene.taskbell.stop().await;
    let backups = scene.taskbell.data_dir().join("backups");
    if backups.exists() {
        fs::remove_dir_all(&backups).expect("it is ours");
    }
    scene.taskbell.come_up().await;
    eventually(PATIENCE, "a backup is made", || {
        fs::read_dir(&backups).is_ok_and(|entries| {
            entries.flatten().any(|entry| entry.path().extension().is_some_and(|end| end == "db"))
        })
    })
    .await;
    scene.taskbell.kill9().await;
    scene.gateway.finish(tasks[0].id(), "the report");
    (scene, tasks)
}

fn set_aside(folder: &Path) -> Option<PathBuf> {
    fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()).find(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.contains(".damaged-") && !name.ends_with("-wal") && !name.ends_with("-shm")
    })
}

async fn heals_after(spoil: impl FnOnce(&Path)) {
    let (mut scene, tasks) = stopped_with_backup().await;
    let folder = scene.taskbell.data_dir();
    spoil(&folder.join("taskbell.db"));
    let reads = scene.proxy.seen().len();
    scene.taskbell.come_up().await;
    let aside = set_aside(&folder).expect("the damaged file is kept");
    let doctor = scene.taskbell.cli(&["doctor"]).await;
    let said = doctor.json();
    let told = said["items"].as_array().into_iter().flatten().any(|item| {
        item["detail"].as_str().is_some_and(|detail| {
            detail.contains("damaged")
                && detail.contains(aside.file_name().expect("a name").to_string_lossy().as_ref())
        })
    });
    assert!(told, "the user is told, and where the file is: {said}");
    for task in &tasks {
        let read = scene.proxy.seen()[reads..]
            .iter()
            .any(|seen| seen.is_get() && seen.task.as_deref() == Some(task.id()));
        if !read {
            let what = format!("{} is read again", task.as_str());
            eventually(PATIENCE, &what, || {
                scene.proxy.seen()[reads..]
                    .iter()
                    .any(|seen| seen.is_get() && seen.task.as_deref() == Some(task.id()))
            })
            .await;
        }
    }
    scene.taskbell.wait(&tasks[0]).await.exits(0);
    assert_eq!(scene.taskbell.show(&tasks[0]).await.text(), "the report");
    eventually(PATIENCE, "the open ones are attached", || scene.proxy.open_streams() == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_pages_give_way_to_the_backup_and_every_task_is_read_again() {
    heals_after(|path| {
        let length = fs::metadata(path).expect("a database").len();
        let mut file = File::options().write(true).open(path).expect("a database");
        // Every page but the first loses its head.
        for page in 1..length / 4096 {
            file.seek(SeekFrom::Start(page * 4096)).expect("in the file");
            file.write_all(&[0xff; 16]).expect("in the file");
        }
        for end in ["-wal", "-shm"] {
            let log = PathBuf::from(format!("{}{end}", path.display()));
            if log.exists() {
                fs::remove_file(log).expect("it is ours");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_database_gives_way_to_the_backup_and_every_task_is_read_again() {
    heals_after(|path| {
        File::options().write(true).open(path).and_then(|file| file.set_len(0)).expect("a database");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_cut_short_opens_with_what_is_whole_and_every_task_is_read_again() {
    let mut scene = Scene::start().await;
    let tasks = scene.attached(3).await;
    for task in &tasks {
        scene.gateway.work(task.id(), "before the cut");
    }
    scene.taskbell.shows(&tasks[2], PATIENCE, "stored", |shown| shown.state() == "working").await;
    scene.taskbell.kill9().await;
    let log = scene.taskbell.data_dir().join("taskbell.db-wal");
    let length = fs::metadata(&log).map_or(0, |meta| meta.len());
    assert!(length > 0, "a killed engine leaves a log");
    File::options().write(true).open(&log).and_then(|file| file.set_len(length - 1000)).expect("a log");
    scene.gateway.finish(tasks[0].id(), "the report");
    scene.taskbell.come_up().await;
    assert_eq!(set_aside(&scene.taskbell.data_dir()), None, "half a transaction is no damage");
    let kept = scene.taskbell.cli(&["tasks"]).await.items().len();
    assert_eq!(kept, 3);
    scene.taskbell.wait(&tasks[0]).await.exits(0);
    wait_until(PATIENCE, "the open ones are attached", async || {
        (scene.proxy.open_streams() == 2).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_knows_nobody_makes_no_copy_that_would_be_the_newest_for_a_day() {
    let mut taskbell = Taskbell::setup().credential_file("of these tests").start().await;
    let copies = |taskbell: &Taskbell| {
        fs::read_dir(taskbell.data_dir().join("backups")).map_or(0, |entries| entries.flatten().count())
    };
    sleep(Duration::from_secs(1)).await;
    assert_eq!(copies(&taskbell), 0);
    let gateway = GatewayA::start(TOKEN).await;
    taskbell.add_agent_with_token("a", &gateway.url(), TOKEN).await;
    taskbell.stop().await;
    taskbell.come_up().await;
    eventually(PATIENCE, "a copy is made", || copies(&taskbell) == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_any_backup_the_engine_starts_empty_says_so_and_follows_again() {
    let mut scene = Scene::start().await;
    let tasks = scene.attached(1).await;
    scene.taskbell.stop().await;
    let folder = scene.taskbell.data_dir();
    let backups = folder.join("backups");
    if backups.exists() {
        fs::remove_dir_all(&backups).expect("it is ours");
    }
    fs::write(folder.join("taskbell.db"), "this was a database once").expect("it is ours");
    scene.taskbell.come_up().await;
    assert!(scene.taskbell.cli(&["tasks"]).await.items().is_empty());
    assert!(set_aside(&folder).is_some(), "nothing is deleted");
    add_agent(&scene.taskbell, "a", &scene.proxy).await;
    scene.taskbell.cli(&["watch", "a", tasks[0].id()]).await.exits(0);
    scene.gateway.finish(tasks[0].id(), "the report");
    scene.taskbell.wait(&tasks[0]).await.exits(0);
}
