//! Stopping in the middle of work, and running out of descriptors.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use taskbell_tests::{
    GatewayA, Taskbell,
    a2a::{Dialect, Direct},
    eventually,
    session::Session,
    taskbell::{Shown, TaskName},
};
use tokio::time::sleep;

use crate::{
    PATIENCE, TOKEN,
    support::{Scene, command, database, integrity},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_in_the_middle_of_work_is_quick_and_leaves_a_clean_store() {
    let scene = Scene::start().await;
    let tasks = scene.attached(10).await;
    let Scene { gateway, proxy, mut taskbell } = scene;
    let gateway = Arc::new(gateway);
    let going = Arc::new(AtomicBool::new(true));
    let load = {
        let (gateway, going) = (Arc::clone(&gateway), Arc::clone(&going));
        tokio::spawn(async move {
            for step in 0_u64.. {
                if !going.load(Ordering::Relaxed) {
                    break;
                }
                for task in &tasks {
                    gateway.work(task.id(), &format!("step {step} {}", "x".repeat(2_000)));
                }
                sleep(Duration::from_millis(10)).await;
            }
        })
    };
    let folder = taskbell.data_dir();
    // Somebody follows, somebody waits, somebody sends.
    let name = TaskName::of(&taskbell.cli(&["tasks"]).await.items()[0]["task"]).as_str().to_owned();
    let mut clients = Vec::new();
    for arguments in [vec!["follow", &name], vec!["wait", &name], vec!["send", "a", "just now"]] {
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        let folder = folder.clone();
        clients.push(tokio::spawn(async move {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            command(&folder, &arguments).await
        }));
    }
    sleep(Duration::from_secs(1)).await;
    // Asserts the three seconds and the exit code.
    taskbell.stop().await;
    assert!(!folder.join("runtime.json").exists(), "the run file names an engine that is gone");
    let mark =
        database(&folder, "print(d.execute(\"SELECT value FROM meta WHERE key = 'clean'\").fetchone()[0])")
            .await;
    assert_eq!(mark, "1", "a stopped store is marked as closed");
    for client in clients {
        // None of them hangs; what they say of the engine that went is their business.
        client.await.expect("a command does not panic");
    }
    assert_eq!(integrity(&folder).await, "ok");
    going.store(false, Ordering::Relaxed);
    load.await.expect("the load does not panic");
    taskbell.come_up().await;
    let known = taskbell.cli(&["tasks"]).await.items().len();
    eventually(PATIENCE, "every watch is back", || proxy.open_streams() == known).await;
    assert!(proxy.sends().values().all(|&times| times == 1), "{:?}", proxy.sends());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_the_keyring_never_answers_is_quick_too() {
    if !Session::is_possible() {
        println!("skipped: this machine has no dbus-daemon, dbus-send or gnome-keyring-daemon");
        return;
    }
    let session = Session::start().await;
    let gateway = GatewayA::start(TOKEN).await;
    let mut taskbell = session.engine().start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), TOKEN).await;
    taskbell.send("a", "a turn").await;
    eventually(PATIENCE, "attached", || gateway.open_streams() == 1).await;
    session.freeze_keyring();
    let folder = taskbell.data_dir();
    let url = gateway.url();
    let hanging = tokio::spawn(async move {
        let mut all = vec!["agent", "add", &url, "--name", "late", "--token-command"];
        all.push("echo hanging");
        command(&folder, &all).await
    });
    sleep(Duration::from_millis(500)).await;
    taskbell.stop().await;
    session.thaw_keyring();
    hanging.await.expect("a command does not panic");
    let folder = taskbell.data_dir();
    let mark =
        database(&folder, "print(d.execute(\"SELECT value FROM meta WHERE key = 'clean'\").fetchone()[0])")
            .await;
    assert_eq!(mark, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_descriptors_nothing_panics_and_all_is_well_once_there_are_some() {
    if !std::path::Path::new("/usr/bin/prlimit").exists() {
        println!("skipped: this machine has no prlimit");
        return;
    }
    let gateway = GatewayA::start(TOKEN).await;
    let mut taskbell = Taskbell::setup().under(&["/usr/bin/prlimit", "--nofile=64"]).start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), TOKEN).await;
    let direct = Direct::new(&format!("{}a2a/coder", gateway.url()), Dialect::V03).with_token(TOKEN);
    let mut ids = Vec::new();
    for turn in 0..90 {
        ids.push(direct.send(&format!("turn {turn}")).await);
    }
    // More streams than there are descriptors. Some commands are refused or wait for a place.
    let mut watched = Vec::new();
    for id in &ids {
        let folder = taskbell.data_dir();
        let id = id.clone();
        watched.push(tokio::spawn(async move {
            let output =
                tokio::time::timeout(Duration::from_secs(3), command(&folder, &["watch", "a", &id])).await;
            output.is_ok_and(|output| output.code == Some(0)).then_some(id)
        }));
        if watched.len() % 10 == 0 {
            sleep(Duration::from_millis(300)).await;
        }
    }
    let mut followed = Vec::new();
    for one in watched {
        followed.extend(one.await.expect("a command does not panic"));
    }
    assert!(followed.len() > 5, "some were taken: {}", followed.len());
    assert!(taskbell.engine().is_running(), "it lives");
    for id in &ids {
        gateway.finish(id, "the report");
    }
    for id in &followed {
        let name = TaskName::new("a", id);
        // While streams hold every descriptor a command may find no place to connect to.
        let shown = taskbell_tests::wait_until(PATIENCE, "completed", async || {
            let output = taskbell.cli(&["show", name.as_str()]).await;
            let shown = (output.code == Some(0)).then(|| Shown(output.json()))?;
            (shown.state() == "completed").then_some(shown)
        })
        .await;
        assert_eq!(shown.text(), "the report");
    }
    let log = taskbell.log();
    assert!(!log.contains("panicked"), "{log}");
    let later = taskbell.send("a", "afterwards").await;
    gateway.finish(later.id(), "done");
    taskbell.wait(&later).await.exits(0);
    taskbell.stop().await;
}
