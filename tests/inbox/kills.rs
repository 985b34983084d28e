//! The engine is killed while callbacks come in: what was answered with 200 is there afterwards.

use std::time::Duration;

use taskbell_tests::{Taskbell, long_run, wait_until};

use crate::{
    PATIENCE,
    load::{Load, kill_at_random, scene, send, small_scene, stored},
    scene::Look,
    strace::Strace,
};

#[tokio::test(flavor = "multi_thread")]
async fn twenty_kills_at_random_lose_no_callback_that_was_acknowledged() {
    random(20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_kills_at_random_lose_no_callback_that_was_acknowledged() {
    if long_run("two hundred kills of the inbox") {
        random(200).await;
    }
}

async fn random(rounds: u32) {
    let mut scene = scene(Taskbell::setup()).await;
    let (lost, promised) = kill_at_random(&mut scene.taskbell, rounds).await;
    println!("{promised} callbacks acknowledged over {rounds} kills, {} lost", lost.len());
    assert!(promised > 20 * usize::try_from(rounds).expect("a count"), "only {promised} were acknowledged");
    assert!(lost.is_empty(), "acknowledged and gone: {lost:?}");
    scene.taskbell.stop().await;
    assert_eq!(Look::into(&scene.folder()).text("PRAGMA integrity_check"), "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_answers_before_it_stores_is_seen_to_lose_callbacks() {
    let mut scene = scene(Taskbell::setup().rehearsal().env("TASKBELL_FAULT", "answers-early")).await;
    let (lost, promised) = kill_at_random(&mut scene.taskbell, 6).await;
    println!("{} of {promised} lost, as they should be", lost.len());
    assert!(!lost.is_empty(), "the test of kills would not see a loss among {promised}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_at_writes_and_flushes_lose_no_callback_that_was_acknowledged() {
    placed(&[1, 2, 3, 5, 9, 14, 30]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_at_each_of_sixty_writes_and_flushes_lose_no_callback_that_was_acknowledged() {
    if long_run("a kill at each of sixty writes and flushes") {
        placed(&(1..=60).collect::<Vec<_>>()).await;
    }
}

async fn placed(places: &[u32]) {
    if !Strace::is_here("kills_at_writes_and_flushes") {
        return;
    }
    let mut scene = scene(Taskbell::setup()).await;
    let mut promised = std::collections::BTreeSet::new();
    for call in ["pwrite64", "fsync,fdatasync"] {
        for place in places {
            let inject = format!("inject={call}:signal=KILL:when={place}");
            let trace = Strace::attach(scene.taskbell.ready().pid, &["-e", &inject]).await;
            let load = Load::start(scene.inbox(), &format!("{call}{place}")).await;
            assert_eq!(scene.taskbell.ended(PATIENCE).await, None, "{inject}: killed by the signal");
            promised.extend(load.stop().await);
            trace.detach().await;
            scene.taskbell.come_up().await;
        }
    }
    let found = stored(&scene.look());
    let lost: Vec<_> = promised.iter().filter(|mark| !found.contains_key(*mark)).collect();
    println!("{} callbacks acknowledged over {} placed kills", promised.len(), 2 * places.len());
    assert!(lost.is_empty(), "acknowledged and gone: {lost:?}");
    assert!(found.values().all(|count| *count == 1), "a callback that was sent once is stored once");
    scene.taskbell.stop().await;
    assert_eq!(Look::into(&scene.folder()).text("PRAGMA integrity_check"), "ok");
}

/// Sends one callback to an engine that is killed at `place` on its way, sends it again after a restart, and
/// returns what the first was answered.
async fn killed_at(place: &str, stored_by_the_first: Option<bool>) -> Option<u16> {
    let mut scene = small_scene(Taskbell::setup().rehearsal()).await;
    scene.taskbell.stop().await;
    scene.taskbell.set_env("TASKBELL_CRASH_AT", Some(place));
    scene.taskbell.come_up().await;
    let first = send(scene.inbox(), 0, "once").await;
    assert_eq!(scene.taskbell.ended(PATIENCE).await, None, "{place}: it was killed");
    scene.taskbell.set_env("TASKBELL_CRASH_AT", None);
    let rows = scene.look().stock().rows;
    if let Some(there) = stored_by_the_first {
        assert_eq!(rows == 1, there, "{place}: {rows} rows");
    }
    assert!(first != Some(200) || rows == 1, "{place}: acknowledged and not stored");
    let reads = scene.teller.reads();
    scene.taskbell.come_up().await;
    if rows == 1 {
        // Whatever the kill left due is read after the restart, with nobody sending anything.
        wait_until(PATIENCE, "the task is read", async || (scene.teller.reads() > reads).then_some(())).await;
        scene.settled(PATIENCE).await;
    }
    assert_eq!(send(scene.inbox(), 0, "once").await, Some(200), "{place}: the sender tries again");
    assert_eq!(scene.look().stock().rows, 1, "{place}: one row, however often it came");
    scene.settled(PATIENCE).await;
    first
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_before_the_commit_acknowledges_nothing() {
    for place in ["body-read", "before-commit"] {
        assert_eq!(killed_at(place, Some(false)).await, None, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_after_the_commit_leaves_the_row_and_a_task_that_is_due() {
    assert_eq!(killed_at("after-commit", Some(true)).await, None);
    killed_at("after-answer", Some(true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_a_callback_and_the_read_it_asks_for_is_made_good_after_the_restart() {
    for place in ["before-read", "before-apply"] {
        killed_at(place, Some(true)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_a_read_and_its_notice_leaves_one_notice() {
    let registrations = crate::load::registrations(1);
    let mut scene =
        crate::scene::Scene::start(Taskbell::setup().rehearsal(), "working", &registrations).await;
    scene.taskbell.stop().await;
    scene.taskbell.set_env("TASKBELL_CRASH_AT", Some("before-notice"));
    scene.teller.tell("completed");
    // The read of the start or that of the callback finds the end; either way the kill comes before the notice,
    // and that of the start may come before the ready line.
    if scene.taskbell.come_up_unless_it_dies().await.is_ok() {
        let _ = send_if_there(scene.inbox()).await;
    }
    assert_eq!(scene.taskbell.ended(PATIENCE).await, None, "it was killed");
    scene.taskbell.set_env("TASKBELL_CRASH_AT", None);
    scene.taskbell.come_up().await;
    let look = scene.look();
    let told = "SELECT count(*) FROM notices WHERE outcome IS NOT NULL";
    wait_until(PATIENCE, "the notice is settled", async || (look.number(told) == 1).then_some(())).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(look.number("SELECT count(*) FROM notices"), 1, "told once");
}

/// The engine may be gone before it answers.
async fn send_if_there(inbox: &str) -> Option<u16> {
    let mut wire = crate::wire::Wire::try_connect(inbox).await?;
    wire.send(&crate::load::marked(0, "once")).await;
    wire.answer(PATIENCE).await.map(|answer| answer.status)
}
