//! Others are loud: good callbacks are answered all the same.

use std::time::Duration;

use taskbell_tests::Taskbell;
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet, time::sleep};

use crate::{
    PATIENCE,
    load::{HOST, path, scene, send, small_scene},
    wire::{Wire, callback},
};

const SLOW: usize = 2_000;
const GOOD: usize = 60;

/// A descriptor for each slow connection; the usual soft limit is 1024.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("the soft limit may be raised to the hard one");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_slow_connections_keep_no_good_callback_out() {
    raise_descriptor_limit();
    let scene = scene(Taskbell::setup()).await;
    let address = scene.inbox().trim_start_matches("http://").to_owned();
    let mut slow = JoinSet::new();
    for number in 0..SLOW {
        let address = address.clone();
        slow.spawn(async move {
            sleep(Duration::from_micros(2_500 * number as u64)).await;
            let Ok(mut socket) = TcpStream::connect(&address).await else { return };
            let _ = socket.write_all(b"POST /a2a/callbacks/").await;
            // Until it is cut.
            while socket.write_all(b"a").await.is_ok() {
                sleep(Duration::from_millis(500)).await;
            }
        });
    }
    good_callbacks_are_taken(scene.inbox()).await;
    slow.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_wrong_secrets_keeps_no_good_callback_out_and_writes_nothing() {
    let scene = scene(Taskbell::setup()).await;
    let mut flood = JoinSet::new();
    for number in 0..32 {
        let inbox = scene.inbox().to_owned();
        flood.spawn(async move {
            let path = if number % 2 == 0 { path(number) } else { "unknownunknownunknownunkno".to_owned() };
            let wrong = callback(HOST, &path, &[("Authorization", "Bearer wrong")], "");
            let mut wire = Wire::connect(&inbox).await;
            loop {
                if !wire.send(&wrong).await || wire.answer(PATIENCE).await.is_none() {
                    wire = Wire::connect(&inbox).await;
                }
            }
        });
    }
    good_callbacks_are_taken(scene.inbox()).await;
    flood.shutdown().await;
    let stock = scene.look().stock();
    assert_eq!((stock.arrivals, stock.quarantined), (i64::try_from(GOOD).expect("a count"), 0));
    let sql = "SELECT coalesce(max(id), 0) FROM callbacks";
    assert_eq!(scene.look().number(sql), i64::try_from(GOOD).expect("a count"));
    let refusals = scene.look().number("SELECT count(*) FROM refusals");
    assert!(refusals <= 32, "a flood is counted and not kept: {refusals} rows");
}

async fn good_callbacks_are_taken(inbox: &str) {
    for count in 0..GOOD {
        assert_eq!(send(inbox, count % 8, &format!("good-{count}")).await, Some(200), "callback {count}");
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_noisy_agent_is_slowed_down_and_its_task_is_read_all_the_same() {
    let scene = small_scene(Taskbell::setup()).await;
    let mut wire = Wire::connect(scene.inbox()).await;
    let (mut taken, mut slowed) = (0, 0);
    while slowed == 0 {
        wire.send(&crate::load::marked(0, &format!("noise-{taken}"))).await;
        let answer = wire.answer(PATIENCE).await.expect("an answer");
        match answer.status {
            200 => taken += 1,
            429 => {
                assert_eq!(answer.header("retry-after"), Some("1"));
                slowed += 1;
            }
            other => panic!("answered with {other}"),
        }
        assert!(taken < 20_000, "never slowed down");
    }
    assert!(taken >= 200, "a burst of 200 is taken, not {taken}");
    scene.settled(PATIENCE).await;
    let dirty = scene.look().stock().dirty;
    assert!(dirty > i64::from(taken), "what was refused makes its task due once more: {dirty} after {taken}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_panics_is_a_500_and_the_engine_goes_on() {
    let scene = small_scene(Taskbell::setup().rehearsal().env("TASKBELL_FAULT", "panics")).await;
    for _ in 0..2 {
        let mut wire = Wire::connect(scene.inbox()).await;
        wire.send(&crate::load::marked(0, "x")).await;
        assert_eq!(wire.answer(PATIENCE).await.map(|answer| answer.status), Some(500));
        assert!(wire.ends(PATIENCE).await, "and its connection ends");
    }
    scene.taskbell.cli(&["tasks"]).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_whose_store_has_died_leaves_with_70() {
    let mut scene = small_scene(Taskbell::setup().rehearsal().env("TASKBELL_FAULT", "writer-dies")).await;
    let answered = send(scene.inbox(), 0, "x").await;
    assert!(matches!(answered, None | Some(503)), "{answered:?}");
    assert_eq!(scene.taskbell.ended(PATIENCE).await, Some(70));
}
