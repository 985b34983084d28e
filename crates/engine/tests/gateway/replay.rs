//! Clients that come back: exactly what they missed, octet for octet, or the task and a word about the gap.

use serde_json::json;
use taskbell_core::dialect::Dialect;

use crate::support::{BOTH, Heard, Next, Words, World, artifact_text};

const SCRIPT: &str = "steps=6 interval=0.05 chunks=4";

fn octets(events: &[Heard]) -> Vec<(&str, &str)> {
    events.iter().map(|event| (event.id.as_str(), event.octets())).collect()
}

#[tokio::test]
async fn a_client_killed_in_the_middle_gets_exactly_what_it_missed_octet_for_octet() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for agents in [Dialect::V03, Dialect::V1] {
        world.pin(agents).await;
        for words in BOTH {
            let task = client.start(words, SCRIPT).await;
            let mut witness = client.subscribe(words, &task, None).await;
            let mut killed = client.subscribe(words, &task, None).await;
            let mut had = vec![killed.event().await];
            for _ in 0..3 {
                had.push(killed.event().await);
            }
            drop(killed);
            let seen = witness.rest().await;
            // It comes back after the end, and again from where it was.
            let last = had.last().unwrap().id.clone();
            for _ in 0..2 {
                let missed = client.subscribe(words, &task, Some(&last)).await.rest().await;
                let after: Vec<Heard> =
                    seen.iter().skip_while(|event| event.id != last).skip(1).cloned().collect();
                assert!(!after.is_empty() && octets(&missed) == octets(&after), "{missed:#?}\n{after:#?}");
                let whole: Vec<Heard> = had.iter().chain(&missed).cloned().collect();
                assert_eq!(artifact_text(&whole), "chunk 1/4;chunk 2/4;chunk 3/4;chunk 4/4;");
                assert_eq!(missed.last().unwrap().state(), Some(words.state("completed")));
            }
        }
    }
}

#[tokio::test]
async fn a_client_that_comes_back_while_the_task_runs_hears_the_rest_live_and_nothing_twice() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let words = Words(Dialect::V1);
    let params = json!({"message": words.message("steps=12 interval=0.05 chunks=3")});
    let mut first = client.stream("SendStreamingMessage", params, None).await;
    let task = words.task(&first.event().await.result())["id"].as_str().unwrap().to_owned();
    let mut witness = client.subscribe(words, &task, None).await;
    let mut last = first.event().await.id;
    drop(first);
    let mut heard = Vec::new();
    // Again and again, each time after two events.
    'all: loop {
        let mut again = client.subscribe(words, &task, Some(&last)).await;
        for _ in 0..2 {
            match again.next().await {
                Next::Event(event) => {
                    last = event.id.clone();
                    heard.push(event);
                }
                Next::End => break 'all,
                Next::Broken => panic!("broken"),
            }
        }
    }
    let seen = witness.rest().await;
    let ids: Vec<&str> = heard.iter().map(|event| event.id.as_str()).collect();
    let mut unique = ids.clone();
    unique.dedup();
    assert_eq!(ids, unique);
    let after: Vec<Heard> = seen.iter().skip_while(|event| event.id != ids[0]).cloned().collect();
    assert_eq!(octets(&heard), octets(&after));
}

#[tokio::test]
async fn an_id_that_is_not_known_gives_the_task_and_says_that_there_is_a_gap() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for words in BOTH {
        let task = client.start(words, "steps=100 interval=0.05").await;
        let mut events = client.subscribe(words, &task, None).await;
        let known = events.event().await.id;
        let (start, _) = known.split_once('-').unwrap();
        for id in ["7-1", "x", &format!("{start}-999999"), &format!("{start}-01")] {
            let mut again = client.subscribe(words, &task, Some(id)).await;
            let first = again.event().await;
            assert_eq!(first.kind(), "task", "{id}");
            let task = first.result();
            let metadata =
                if words.0 == Dialect::V03 { &task["metadata"] } else { &task["task"]["metadata"] };
            assert_eq!(metadata["taskbell.gap"], json!(true));
            assert!(String::from_utf8_lossy(&again.raw).starts_with(": gap"), "a comment");
        }
        client.call(words.method("tasks/cancel", "CancelTask"), json!({"id": task})).await;
    }
}

#[tokio::test]
async fn what_was_told_before_a_restart_is_known_after_it() {
    let mut world = World::new().await;
    let client = world.client("editor").await;
    let words = Words(Dialect::V03);
    let task = client.start(words, "steps=20 interval=0.1 chunks=3").await;
    let mut events = client.subscribe(words, &task, None).await;
    let mut had = vec![events.event().await];
    for _ in 0..4 {
        had.push(events.event().await);
    }
    // Three are thrown away again: it missed them.
    let last = had[1].id.clone();
    world.restart_engine().await;
    let client = client.at(&world);
    let missed = client.subscribe(words, &task, Some(&last)).await.rest().await;
    assert_eq!(octets(&missed[..3]), octets(&had[2..]));
    assert_eq!(missed.last().unwrap().state().as_deref(), Some("completed"));
    let whole: Vec<Heard> = had[..2].iter().chain(&missed).cloned().collect();
    assert_eq!(artifact_text(&whole), "chunk 1/3;chunk 2/3;chunk 3/3;");
    let starts: std::collections::BTreeSet<&str> =
        missed.iter().map(|event| event.id.split_once('-').unwrap().0).collect();
    assert_eq!(starts.len(), 2, "two runs of the engine told it: {starts:?}");
    // And all of it once more, long after.
    let again = client.subscribe(words, &task, Some(&last)).await.rest().await;
    assert_eq!(octets(&again), octets(&missed));
}

#[tokio::test]
async fn somebody_who_listened_in_one_dialect_is_told_what_it_missed_in_the_other() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let [old, new] = BOTH;
    let task = client.start(new, SCRIPT).await;
    let mut events = client.subscribe(new, &task, None).await;
    let last = events.event().await.id;
    let heard = events.rest().await;
    let missed = client.subscribe(old, &task, Some(&last)).await.rest().await;
    let ids = |events: &[Heard]| events.iter().map(|event| event.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&missed), ids(&heard));
    assert!(
        missed.iter().all(|event| !event.data.contains("TASK_STATE_") && event.data.contains("\"kind\""))
    );
    assert_eq!(missed.last().unwrap().result()["final"], json!(true));
}
