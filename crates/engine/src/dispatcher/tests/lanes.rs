//! Progress beside ends.

use std::time::Duration;

use taskbell_core::delivery::{DeliveryState, Lane};

use super::world::{Receiver, World, until};

#[tokio::test]
async fn of_progress_the_newest_is_told_and_what_was_not_is_counted_exactly() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task_for("t-1", &receiver).await;
    receiver.hold();
    world.chunk(task, "0 ").await;
    until("the first is being sent", async || (receiver.open() == 1).then_some(())).await;
    for n in 1..=500 {
        world.chunk(task, &format!("{n} ")).await;
    }
    receiver.let_go(1_000);
    until("the newest is told", async || {
        receiver.got().iter().any(|got| got.body.contains("500 ")).then_some(())
    })
    .await;
    let target = until("all are counted", async || {
        let target = world.target().await;
        (target.updates == 501).then_some(target)
    })
    .await;
    let told = world.deliveries().await.len();
    assert_eq!(receiver.got().len(), told);
    assert_eq!(target.dropped, 501 - u64::try_from(told).unwrap());
    assert_eq!(told, 2, "what came meanwhile is one callback");
}

#[tokio::test]
async fn progress_that_failed_is_not_tried_again() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task_for("t-1", &receiver).await;
    receiver.answer(&[503]);
    world.chunk(task, "x").await;
    world.until_states(&[DeliveryState::Exhausted]).await;
    world.pass(Duration::from_secs(3_600));
    assert_eq!(receiver.got().len(), 1);
    let row = world.deliveries().await.remove(0);
    assert_eq!((row.lane, row.tries), (Lane::BestEffort, 1));
}

#[tokio::test]
async fn progress_that_failed_six_times_does_not_put_off_the_end() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task_for("t-1", &receiver).await;
    receiver.answer(&[503; 6]);
    let mut states = Vec::new();
    for _ in 0..6 {
        world.chunk(task, "x").await;
        states.push(DeliveryState::Exhausted);
        world.until_states(&states).await;
    }
    world.state(task, "completed").await;
    states.push(DeliveryState::Delivered);
    world.until_states(&states).await;
}

#[tokio::test]
async fn an_end_overtakes_the_progress_that_waits_behind_a_slow_receiver() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let mut tasks = Vec::new();
    for n in 0..6 {
        tasks.push(world.task_for(&format!("t-{n}"), &receiver).await);
    }
    receiver.hold();
    for task in &tasks {
        world.chunk(*task, "x").await;
    }
    until("progress takes its one place", async || (receiver.open() == 1).then_some(())).await;
    world.state(tasks[5], "completed").await;
    until("the end has a place of its own", async || (receiver.open() == 2).then_some(())).await;
    assert!(receiver.got().last().unwrap().body.contains("COMPLETED"));
    receiver.let_go(100);
}

#[tokio::test]
async fn progress_before_an_end_is_dropped_with_the_end() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task_for("t-1", &receiver).await;
    receiver.hold();
    world.chunk(task, "0").await;
    until("the first is being sent", async || (receiver.open() == 1).then_some(())).await;
    world.chunk(task, "1").await;
    world.state(task, "completed").await;
    receiver.let_go(100);
    world.until_states(&[DeliveryState::Delivered; 2]).await;
    until("the other is counted", async || (world.target().await.updates == 2).then_some(())).await;
    assert_eq!(world.target().await.dropped, 1);
    assert_eq!(receiver.got().len(), 2);
}

#[tokio::test]
async fn progress_too_old_to_matter_is_dropped_and_counted() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task_for("t-1", &receiver).await;
    receiver.hold();
    world.chunk(task, "0").await;
    until("the first is being sent", async || (receiver.open() == 1).then_some(())).await;
    world.chunk(task, "1").await;
    world.pass(Duration::from_secs(61));
    until("it is counted", async || (world.target().await.dropped == 1).then_some(())).await;
    receiver.let_go(100);
    assert_eq!(receiver.got().len(), 1);
}
