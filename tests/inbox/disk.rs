//! The disk is slow, full, locked or broken: nothing is acknowledged that is not stored, and it heals.

use std::time::Duration;

use taskbell_tests::{Taskbell, wait_until};

use crate::{
    PATIENCE,
    load::{marked, send, small_scene, stored},
    scene::Scene,
    strace::{Strace, calls},
    wire::Wire,
};

/// Sends one callback; its answer must be 503 and say when to come again.
async fn is_put_off(scene: &Scene, mark: &str) {
    let mut wire = Wire::connect(scene.inbox()).await;
    wire.send(&marked(0, mark)).await;
    let answer = wire.answer(PATIENCE).await.expect("an answer");
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")), "{answer:?}");
}

/// Sends again until it is taken: what a sender does after 503.
async fn is_taken_at_last(scene: &Scene, mark: &str) {
    wait_until(PATIENCE, "a retry is taken", async || {
        (send(scene.inbox(), 0, mark).await == Some(200)).then_some(())
    })
    .await;
}

/// Waits until the engine writes nothing of its own: the fault is for the next callback.
async fn is_quiet(scene: &Scene) {
    let wal = scene.folder().join("taskbell.db-wal");
    wait_until(PATIENCE, "a quiet store", async || {
        let written = wal.metadata().and_then(|file| file.modified()).ok()?;
        written.elapsed().is_ok_and(|since| since > Duration::from_secs(1)).then_some(())
    })
    .await;
}

async fn store_is(scene: &Scene, state: &str) -> bool {
    let doctor = scene.taskbell.cli(&["doctor"]).await.json();
    let items = doctor["items"].as_array().cloned().unwrap_or_default();
    items.iter().any(|item| item["check"] == "store" && item["state"] == state)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_leaves_before_its_row_is_flushed() {
    if !Strace::is_here("no_answer_leaves_before_its_row_is_flushed") {
        return;
    }
    const SENT: usize = 50;
    let mut scene = small_scene(Taskbell::setup()).await;
    let trace = scene.folder().with_extension("trace");
    let output = trace.display().to_string();
    let watched = "trace=pwrite64,fsync,fdatasync,write,writev,sendto,sendmsg";
    let arguments = ["-y", "-s", "9000", "-e", watched, "-o", output.as_str()];
    let strace = Strace::attach(scene.taskbell.ready().pid, &arguments).await;
    for count in 0..SENT {
        assert_eq!(send(scene.inbox(), 0, &format!("mark-{count:04}")).await, Some(200));
    }
    strace.detach().await;
    scene.taskbell.stop().await;
    let calls = calls(&trace);
    std::fs::remove_file(&trace).expect("it is ours");
    let after = |from: usize, what: &str, fits: &dyn Fn(&crate::strace::Call) -> bool| {
        let found = calls.iter().skip(from).position(fits);
        from + found.unwrap_or_else(|| panic!("no {what} after call {from} of {}", calls.len()))
    };
    let mut place = 0;
    for count in 0..SENT {
        let mark = format!("mark-{count:04}");
        let written = after(place, "row", &|call| {
            call.name == "pwrite64" && call.text.contains("db-wal>") && call.text.contains(&mark)
        });
        let flushed = after(written, "flush", &|call| {
            call.name.contains("sync") && call.text.contains("db-wal>") && call.text.contains("= 0")
        });
        let answered = after(place, "answer", &|call| call.text.contains("HTTP/1.1 200"));
        assert!(flushed < answered, "{mark} was answered at {answered} and flushed at {flushed}");
        place = answered + 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_puts_senders_off_and_takes_them_once_there_is_room() {
    if !Strace::is_here("a_full_disk_puts_senders_off") {
        return;
    }
    let scene = small_scene(Taskbell::setup()).await;
    assert_eq!(send(scene.inbox(), 0, "before").await, Some(200));
    let inject = "inject=pwrite64:error=ENOSPC";
    let strace = Strace::attach(scene.taskbell.ready().pid, &["-e", inject]).await;
    for count in 0..3 {
        is_put_off(&scene, &format!("full-{count}")).await;
    }
    assert!(store_is(&scene, "bad").await, "the user is told");
    strace.detach().await;
    for count in 0..3 {
        is_taken_at_last(&scene, &format!("full-{count}")).await;
    }
    assert!(!store_is(&scene, "bad").await, "and told that it is over");
    let marks = stored(&scene.look());
    assert_eq!(marks.keys().collect::<Vec<_>>(), ["before", "full-0", "full-1", "full-2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failed_flush_the_file_is_opened_anew_and_after_a_second_nothing_is_acknowledged() {
    if !Strace::is_here("after_a_failed_flush") {
        return;
    }
    let mut scene = small_scene(Taskbell::setup()).await;
    let inject = "inject=fsync,fdatasync:error=EIO:when=1";
    is_quiet(&scene).await;
    let strace = Strace::attach(scene.taskbell.ready().pid, &["-e", inject]).await;
    is_put_off(&scene, "first").await;
    strace.detach().await;
    is_taken_at_last(&scene, "first").await;
    is_quiet(&scene).await;
    let strace = Strace::attach(scene.taskbell.ready().pid, &["-e", inject]).await;
    is_put_off(&scene, "second").await;
    strace.detach().await;
    for _ in 0..3 {
        is_put_off(&scene, "third").await;
    }
    scene.taskbell.kill9().await;
    scene.taskbell.come_up().await;
    is_taken_at_last(&scene, "third").await;
    assert!(stored(&scene.look()).contains_key("first"), "what was acknowledged is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flush_that_takes_six_seconds_puts_the_sender_off_and_the_repeat_is_one_row() {
    if !Strace::is_here("a_flush_that_takes_six_seconds") {
        return;
    }
    let scene = small_scene(Taskbell::setup()).await;
    let inject = "inject=fsync,fdatasync:delay_enter=6000000:when=1";
    let strace = Strace::attach(scene.taskbell.ready().pid, &["-e", inject]).await;
    is_put_off(&scene, "slow").await;
    is_taken_at_last(&scene, "slow").await;
    strace.detach().await;
    assert_eq!(scene.look().stock().rows, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_held_by_another_program_puts_senders_off_and_no_thread_is_stuck() {
    let scene = small_scene(Taskbell::setup()).await;
    let mut other = rusqlite::Connection::open(scene.folder().join("taskbell.db")).expect("it opens");
    let held = other.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).expect("the lock");
    let (one, two) = tokio::join!(is_put_off(&scene, "one"), is_put_off(&scene, "two"));
    let ((), ()) = (one, two);
    held.rollback().expect("it was held");
    for mark in ["one", "two", "three"] {
        is_taken_at_last(&scene, mark).await;
    }
    // Of those that were put off a sender may hear no more: their tasks are read all the same.
    scene.settled(Duration::from_secs(60)).await;
    assert!(scene.teller.reads() > 0);
}
