//! Receivers that fail, and what follows.

use std::time::Duration;

use serde_json::json;
use taskbell_core::delivery::DeliveryState::{self, Cancelled, Delivered, Exhausted, Failed, Rejected};

use super::world::{Receiver, World, until};
use crate::store::targets::{self, PauseReason};

const DAY: Duration = Duration::from_secs(86_400);

#[tokio::test]
async fn a_receiver_that_recovers_gets_it_and_the_record_tells_every_try() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task_for("t-1", &receiver).await;
    receiver.answer(&[500, 500, 204]);
    world.state(task, "completed").await;
    world.until_states(&[Failed]).await;
    world.pass(Duration::from_secs(7));
    until("the second try", async || (receiver.got().len() == 2).then_some(())).await;
    world.until_states(&[Failed]).await;
    world.pass(Duration::from_secs(80));
    world.until_states(&[Delivered]).await;
    let row = world.deliveries().await.remove(0);
    let statuses: Vec<_> = world.attempts(&row).await.iter().map(|attempt| attempt.status).collect();
    assert_eq!((row.tries, statuses), (3, vec![Some(500), Some(500), Some(204)]));
    assert_eq!(
        (world.target().await.failures, world.target().await.last_code.as_deref()),
        (0, Some("http_500"))
    );
}

#[tokio::test]
async fn gone_disables_the_registration_and_later_changes_are_recorded_as_not_attempted() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task_for("t-1", &receiver).await;
    receiver.answer(&[410]);
    world.state(task, "input-required").await;
    world.until_states(&[Rejected]).await;
    world.state(task, "completed").await;
    world.pass(DAY);
    world.until_states(&[Rejected, Cancelled]).await;
    assert_eq!(world.deliveries().await[1].last_code.as_deref(), Some("config_disabled"));
    assert_eq!(receiver.got().len(), 1);
}

#[tokio::test]
async fn one_retry_where_the_plain_contract_is_set() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let set = |context: &mut crate::store::WriteContext<'_>| {
        crate::store::settings::set(context, "delivery.retry", "once")
    };
    world.store.write(set).await.unwrap();
    let task = world.task_for("t-1", &receiver).await;
    receiver.answer(&[503, 503]);
    world.state(task, "completed").await;
    world.until_states(&[Failed]).await;
    world.pass(Duration::from_secs(7));
    world.until_states(&[Exhausted]).await;
    world.pass(DAY);
    assert_eq!(receiver.got().len(), 2);
}

#[tokio::test]
async fn a_receiver_that_is_down_is_given_up_after_nine_tries_and_a_user_may_send_again() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task_for("t-1", &receiver).await;
    receiver.answer(&[500; 9]);
    world.state(task, "completed").await;
    for tries in 1..9 {
        until(&format!("try {tries}"), async || {
            let row = world.deliveries().await.remove(0);
            (row.state == Failed && row.tries == tries).then_some(())
        })
        .await;
        world.pass(Duration::from_secs(13 * 3_600));
    }
    world.until_states(&[Exhausted]).await;
    let target = world.target().await;
    assert_eq!((target.failures, target.last_code.as_deref()), (9, Some("http_500")));
    let key = world.deliveries().await[0].key;
    world.store.write(move |context| crate::store::deliveries::retry(context, key)).await.unwrap().unwrap();
    world.dispatcher.ring();
    world.until_states(&[Delivered]).await;
    assert_eq!(receiver.got().len(), 10);
}

#[tokio::test]
async fn after_five_failures_a_target_is_probed_and_a_success_lets_all_go() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    receiver.answer(&[500; 5]);
    let mut tasks = Vec::new();
    for n in 0..8 {
        tasks.push(world.task_for(&format!("t-{n}"), &receiver).await);
    }
    for (task, failures) in tasks.iter().zip(1..=5) {
        world.state(*task, "completed").await;
        until("a failure", async || (world.target().await.failures == failures).then_some(())).await;
    }
    assert!(world.target().await.probe_at_ms.is_some());
    for task in tasks.iter().skip(5) {
        world.state(*task, "completed").await;
    }
    world.pass(Duration::from_secs(200));
    assert_eq!(receiver.got().len(), 5);
    world.pass(Duration::from_secs(101));
    world.until_states(&[Delivered; 8]).await;
    assert_eq!(world.target().await.failures, 0);
}

#[tokio::test]
async fn a_target_that_failed_for_days_is_paused_until_its_user_resumes_it() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    receiver.answer(&[500; 5]);
    let first = world.task_for("t-0", &receiver).await;
    world.state(first, "completed").await;
    for tries in 1..6 {
        until(&format!("try {tries}"), async || {
            (receiver.got().len() == tries
                && world.deliveries().await[0].tries == u32::try_from(tries).unwrap())
            .then_some(())
        })
        .await;
        world.pass(DAY + DAY / 4);
    }
    until("it is paused", async || world.target().await.paused).await;
    assert_eq!(world.target().await.paused.unwrap().1, PauseReason::Failing);
    let told = || world.store.read(|connection| crate::store::notices::list(connection, None, 100));
    let paused: Vec<_> =
        told().await.unwrap().into_iter().filter(|row| row.kind.word() == "paused").collect();
    assert_eq!(paused.len(), 1, "the user is told, once");
    assert!(paused[0].body.starts_with("http://127.0.0.1:"), "{}", paused[0].body);
    let second = world.task_for("t-1", &receiver).await;
    world.state(second, "completed").await;
    world.pass(DAY);
    let key = world.target().await.key;
    assert_eq!(receiver.got().len(), 5);
    world.store.write(move |context| targets::resume(context, key)).await.unwrap();
    world.dispatcher.ring();
    world.until_states(&[Delivered, Delivered]).await;
}

#[tokio::test]
async fn a_newer_end_that_arrived_makes_older_news_pointless() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task_for("t-1", &receiver).await;
    receiver.answer(&[500, 500, 200]);
    world.state(task, "input-required").await;
    world.until_states(&[Failed]).await;
    world.state(task, "completed").await;
    world.until_states(&[Failed, Failed]).await;
    let keys: Vec<_> = world.deliveries().await.iter().map(|row| row.key).collect();
    let newest = keys[1];
    world
        .store
        .write(move |context| crate::store::deliveries::retry(context, newest))
        .await
        .unwrap()
        .unwrap();
    world.dispatcher.ring();
    world.until_states(&[DeliveryState::Superseded, Delivered]).await;
    world.pass(DAY);
    assert_eq!(receiver.got().len(), 3);
}

#[tokio::test]
async fn the_first_try_of_an_older_one_comes_before_a_newer_one() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task_for("t-1", &receiver).await;
    receiver.hold();
    for state in ["input-required", "auth-required", "completed"] {
        world.state(task, state).await;
    }
    until("the first is being sent", async || (receiver.open() == 1).then_some(())).await;
    receiver.let_go(100);
    world.until_states(&[Delivered; 3]).await;
    let told: Vec<String> = receiver
        .got()
        .iter()
        .map(|got| got.json()["task"]["status"]["state"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(told, ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED", "TASK_STATE_COMPLETED"]);
}

#[tokio::test]
async fn a_config_deleted_while_its_callback_is_sent_starts_no_other() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    world.approve(&receiver).await;
    let task = world.task("t-1").await;
    world.register(task, json!({ "id": "p", "url": receiver.url() })).await;
    receiver.hold();
    receiver.answer(&[500]);
    world.state(task, "input-required").await;
    until("it is being sent", async || (receiver.open() == 1).then_some(())).await;
    world.state(task, "completed").await;
    world.dispatcher.delete_config(task, "p").await.unwrap();
    receiver.let_go(100);
    world.until_states(&[Cancelled, Cancelled]).await;
    world.pass(DAY);
    assert_eq!(receiver.got().len(), 1);
    let row = world.deliveries().await.remove(0);
    assert_eq!(world.attempts(&row).await[0].status, Some(500), "the attempt that ran is recorded");
}

#[tokio::test]
async fn an_approval_that_was_taken_back_is_refused_at_the_next_attempt_and_nothing_is_sent() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task_for("t-1", &receiver).await;
    let key = world.target().await.key;
    assert!(world.store.write(move |context| targets::remove(context, key)).await.unwrap());
    world.state(task, "completed").await;
    for tries in 1..3 {
        until("a refusal", async || (world.deliveries().await[0].tries == tries).then_some(())).await;
        world.pass(Duration::from_secs(80));
    }
    world.until_states(&[DeliveryState::RefusedByPolicy]).await;
    assert_eq!(world.deliveries().await[0].last_code.as_deref(), Some("target_not_approved"));
    assert!(receiver.got().is_empty());
}
