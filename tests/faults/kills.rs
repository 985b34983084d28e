//! The engine is killed at moments that nobody chose.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use taskbell_tests::{eventually, long_run, taskbell::TaskName};
use tokio::time::sleep;

use crate::{
    PATIENCE,
    support::{Scene, command, integrity},
};

const TASKS: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn ten_kills_at_random_lose_no_task_and_every_watch_comes_back() {
    kill(10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_kills_at_random_lose_no_task_and_every_watch_comes_back() {
    if long_run("a hundred kills") {
        kill(100).await;
    }
}

async fn kill(rounds: u32) {
    let Scene { gateway, proxy, mut taskbell } = Scene::start().await;
    let gateway = Arc::new(gateway);
    let mut first = Vec::new();
    for turn in 0..TASKS {
        first.push(taskbell.send("a", &format!("turn {turn}")).await);
    }
    eventually(PATIENCE, "all are attached", || proxy.open_streams() == TASKS).await;
    let load = {
        let (gateway, ids) = (Arc::clone(&gateway), first.clone());
        let going = Arc::new(AtomicBool::new(true));
        let stop = Arc::clone(&going);
        let worker = tokio::spawn(async move {
            for step in 0_u64.. {
                if !going.load(Ordering::Relaxed) {
                    break;
                }
                for id in &ids {
                    gateway.work(id.id(), &format!("step {step}"));
                }
                sleep(Duration::from_millis(20)).await;
            }
        });
        (worker, stop)
    };
    let mut known: BTreeSet<String> = first.iter().map(|name| name.as_str().to_owned()).collect();
    // A fixed sequence, so that a failure can be met again.
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..rounds {
        let folder = taskbell.data_dir();
        let sender =
            tokio::spawn(async move { command(&folder, &["send", "a", &format!("round {round}")]).await });
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        sleep(Duration::from_millis(random % 400)).await;
        taskbell.kill9().await;
        let sent = sender.await.expect("the command does not panic");
        if sent.code == Some(0) {
            known.insert(TaskName::of(&sent.json()["task"]).as_str().to_owned());
        }
        taskbell.come_up().await;
        let listed: BTreeSet<String> = taskbell
            .cli(&["tasks"])
            .await
            .items()
            .iter()
            .map(|item| TaskName::of(&item["task"]).as_str().to_owned())
            .collect();
        let missing: Vec<_> = known.difference(&listed).collect();
        assert!(missing.is_empty(), "acknowledged and gone after kill {round}: {missing:?}");
        // A send whose answer never came may have been stored all the same.
        known.extend(listed);
    }
    load.1.store(false, Ordering::Relaxed);
    load.0.await.expect("the load does not panic");
    assert!(
        proxy.sends().values().all(|&times| times == 1),
        "a kill repeats no message: {:?}",
        proxy.sends()
    );
    eventually(PATIENCE, "every watch is back", || proxy.open_streams() == known.len()).await;
    for name in &first {
        let shown = taskbell.show(name).await;
        assert!(shown.has_gap(), "nobody listened while the engine was down: {}", name.as_str());
    }
    for name in &known {
        gateway.finish(name.split_once('/').expect("a name").1, "the report");
    }
    for name in &first {
        taskbell.wait(name).await.exits(0);
        assert_eq!(taskbell.show(name).await.text(), "the report");
    }
    taskbell.stop().await;
    assert_eq!(integrity(&taskbell.data_dir()).await, "ok");
}
