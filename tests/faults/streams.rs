//! Streams that fall silent, crawl, stop half way or say what they should not.

use std::time::Duration;

use taskbell_tests::{Cut, Fault, Taskbell, When, eventually, long_run};
use tokio::time::sleep;

use crate::{
    PATIENCE,
    support::{Scene, memory, oddities, stream_of, told, update},
};

/// Seconds.
const SILENCE: u32 = 2;

async fn scene() -> Scene {
    Scene::with(Taskbell::setup().silence(SILENCE)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn news_that_a_half_open_connection_swallows_is_found_and_the_stream_replaced() {
    let scene = scene().await;
    let tasks = scene.attached(2).await;
    scene.proxy.cut_streams(Cut::Silence);
    let subscribed = scene.proxy.count(When::Subscribes);
    scene.gateway.work(tasks[0].id(), "said into the silence");
    scene
        .taskbell
        .shows(&tasks[0], PATIENCE, "the read found it", |shown| {
            shown.0.to_string().contains("into the silence")
        })
        .await;
    eventually(PATIENCE, "attached anew", || scene.proxy.count(When::Subscribes) > subscribed).await;
    let shown =
        scene.taskbell.shows(&tasks[0], PATIENCE, "streaming", |shown| shown.mode() == "stream").await;
    assert!(shown.has_gap(), "the dead stretch is drawn: {}", shown.0);
    for task in &tasks {
        scene.gateway.finish(task.id(), "the report");
        scene.taskbell.wait(task).await.exits(0);
    }
    scene.proxy.assert_sent_once_each(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_task_keeps_its_stream_and_is_asked_ever_more_rarely() {
    let scene = scene().await;
    let tasks = scene.attached(1).await;
    let (gets, subscribes) = (scene.proxy.count(When::Gets), scene.proxy.count(When::Subscribes));
    sleep(Duration::from_secs(7)).await;
    // After 2 s, and after 4 s more.
    let asked = scene.proxy.count(When::Gets) - gets;
    assert!((1..=3).contains(&asked), "read {asked} times in seven quiet seconds");
    assert_eq!(scene.proxy.count(When::Subscribes), subscribes, "the stream was never in doubt");
    assert_eq!(scene.taskbell.show(&tasks[0]).await.mode(), "stream");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_stalls_after_its_head_is_read_past() {
    let scene = scene().await;
    scene.proxy.set_times(When::Subscribes, Fault::CutAfter(0, Cut::Silence), 1);
    let task = scene.taskbell.send("a", "a turn").await;
    eventually(PATIENCE, "asked for a stream", || scene.proxy.count(When::Subscribes) == 1).await;
    scene.gateway.work(task.id(), "said behind the stall");
    scene
        .taskbell
        .shows(&task, PATIENCE, "a read found it", |shown| shown.0.to_string().contains("behind the stall"))
        .await;
    scene.gateway.finish(task.id(), "the report");
    scene.taskbell.wait(&task).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_one_octet_a_second_holds_nobody_up() {
    let Scene { gateway, proxy, mut taskbell } = scene().await;
    taskbell.cli(&["settings", "set", "follow.slow_read", "3"]).await.exits(0);
    proxy.set(When::Subscribes, Fault::Drip(Duration::from_millis(500)));
    let mut tasks = Vec::new();
    for turn in 0..10 {
        tasks.push(taskbell.send("a", &format!("turn {turn}")).await);
    }
    eventually(PATIENCE, "asked for streams", || proxy.count(When::Subscribes) >= 10).await;
    let pid = taskbell.engine().pid();
    let before = memory(pid, "VmRSS");
    sleep(Duration::from_secs(4)).await;
    let grown = memory(pid, "VmRSS").saturating_sub(before);
    assert!(grown < 8 * 1024, "ten crawling streams took {grown} KiB");
    for task in &tasks {
        gateway.finish(task.id(), "the report");
    }
    for task in &tasks {
        taskbell.wait(task).await.exits(0);
        assert_eq!(taskbell.show(task).await.text(), "the report");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_final_event_cut_at_any_octet_did_not_happen_until_a_read_says_so() {
    cut_at((1..).step_by(37).take(24)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_final_event_cut_at_every_octet_did_not_happen_until_a_read_says_so() {
    if long_run("cutting at every octet") {
        for start in (1..900).step_by(60) {
            cut_at(start..start + 60).await;
        }
    }
}

/// One task for each octet at which its first stream is cut.
async fn cut_at(octets: impl Iterator<Item = usize>) {
    let scene = scene().await;
    let octets: Vec<usize> = octets.collect();
    for (number, &octet) in octets.iter().enumerate() {
        let cut = if number % 2 == 0 { Cut::CleanEnd } else { Cut::Reset };
        scene.proxy.set_times(When::Subscribes, Fault::CutAfter(octet, cut), 1);
    }
    let mut tasks = Vec::new();
    for octet in &octets {
        tasks.push(scene.taskbell.send("a", &format!("cut at {octet}")).await);
    }
    eventually(PATIENCE, "all were attached", || scene.proxy.count(When::Subscribes) >= octets.len()).await;
    for task in &tasks {
        scene.gateway.finish(task.id(), "the report");
    }
    for (task, octet) in tasks.iter().zip(&octets) {
        scene.taskbell.wait(task).await.exits(0);
        let shown = scene.taskbell.show(task).await;
        assert_eq!(shown.text(), "the report", "cut at {octet}: {}", shown.0);
    }
    scene.proxy.assert_sent_once_each(octets.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_another_task_touch_neither_and_are_noted() {
    let scene = scene().await;
    let task = scene.attached(1).await.remove(0);
    let foreign = [told(task.id(), "working"), update("task-666", "completed"), told("task-666", "failed")];
    scene.proxy.set_times(When::Subscribes, stream_of(&foreign), 1);
    scene.proxy.cut_streams(Cut::Reset);
    eventually(PATIENCE, "attached again", || scene.proxy.count(When::Subscribes) >= 3).await;
    let listed = scene.taskbell.cli(&["tasks"]).await.items();
    assert_eq!(listed.len(), 1, "no task comes into being by another's stream: {listed:?}");
    assert!(!scene.taskbell.show(&task).await.is_terminal());
    assert!(oddities(&scene.taskbell, "a").await.contains(&"foreign_task".to_owned()));
    scene.gateway.finish(task.id(), "the report");
    scene.taskbell.wait(&task).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_works_after_it_completed_stays_completed_and_the_agent_is_noted() {
    let scene = scene().await;
    let task = scene.attached(1).await.remove(0);
    let late = [
        told(task.id(), "working"),
        update(task.id(), "completed"),
        update(task.id(), "working"),
        update(task.id(), "failed"),
    ];
    scene.proxy.set_times(When::Subscribes, stream_of(&late), 1);
    // The read that settles the end finds it completed; the stream that is replaced never says so.
    let stream_less = scene.proxy.count(When::Subscribes);
    scene.proxy.cut_streams(Cut::Silence);
    scene.gateway.work(task.id(), "makes the silent stream be replaced");
    eventually(PATIENCE, "the odd stream was opened", || scene.proxy.count(When::Subscribes) > stream_less)
        .await;
    scene.gateway.finish(task.id(), "the report");
    scene.taskbell.wait(&task).await.exits(0);
    scene.taskbell.shows(&task, PATIENCE, "settled", |shown| shown.0["settled"] == true).await;
    let shown = scene.taskbell.show(&task).await;
    assert_eq!((shown.state(), shown.text().as_str()), ("completed", "the report"), "{}", shown.0);
    assert!(oddities(&scene.taskbell, "a").await.contains(&"after_terminal".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_octets_under_the_name_of_a_stream_are_noted_and_read_past() {
    let scene = scene().await;
    let task = scene.attached(1).await.remove(0);
    let octets = Fault::answer(200, "text/event-stream", "\u{1f}\u{8b}\u{8}\u{0}K\n\n");
    scene.proxy.set_times(When::Subscribes, octets, 1);
    scene.proxy.cut_streams(Cut::Reset);
    eventually(PATIENCE, "attached again", || scene.proxy.count(When::Subscribes) >= 3).await;
    assert!(oddities(&scene.taskbell, "a").await.contains(&"not_events".to_owned()));
    scene.gateway.finish(task.id(), "the report");
    scene.taskbell.wait(&task).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_without_end_is_given_up_and_the_task_polled() {
    let Scene { gateway, proxy, mut taskbell } = scene().await;
    let task = taskbell.send("a", "a turn").await;
    eventually(PATIENCE, "attached", || proxy.open_streams() == 1).await;
    let pid = taskbell.engine().pid();
    let before = memory(pid, "VmRSS");
    let line = Fault::Flood {
        content_type: "text/event-stream".to_owned(),
        piece: "x".repeat(1 << 16),
        times: 1 << 14,
    };
    proxy.set_times(When::Subscribes, line, 1);
    proxy.cut_streams(Cut::Reset);
    let shown = taskbell.shows(&task, PATIENCE, "polled", |shown| shown.mode() == "poll").await;
    assert!(!shown.is_terminal());
    let grown = memory(pid, "VmHWM").saturating_sub(before);
    assert!(grown < 64 * 1024, "a line of a gibibyte took {grown} KiB");
    assert!(proxy.flooded() < 64 << 20, "{} octets were taken before it was given up", proxy.flooded());
    assert!(oddities(&taskbell, "a").await.contains(&"over_limit".to_owned()));
    gateway.finish(task.id(), "the report");
    taskbell.wait(&task).await.exits(0);
}
