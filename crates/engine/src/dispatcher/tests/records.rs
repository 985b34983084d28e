//! What a receiver gets, and what is written down of it.

use serde_json::json;
use taskbell_core::delivery::DeliveryState;
use taskbell_core::dialect::v1::Extras;
use taskbell_core::dialect::{Dialect, v1, v03};

use super::world::{Receiver, World, until};
use crate::store::changes::changes_after;
use crate::store::targets::{self, PauseReason};
use crate::store::task_content;

#[tokio::test]
async fn an_end_is_told_once_with_the_task_as_a_read_has_it_and_every_proof() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    world.approve(&receiver).await;
    let task = world.task("t-1").await;
    let config = json!({ "url": receiver.url(), "token": "canary-token",
        "authentication": { "scheme": "bearer", "credentials": "canary-credential" } });
    world.register(task, config).await;
    world.chunk(task, "built").await;
    world.state(task, "completed").await;
    until("the end is told", async || {
        receiver.got().iter().any(|got| got.body.contains("COMPLETED")).then_some(())
    })
    .await;
    let got = receiver.got().into_iter().find(|got| got.body.contains("COMPLETED")).unwrap();
    let answer = v1::task(&world.content(task).await, Extras::Drop).to_string();
    assert_eq!(got.body, format!("{{\"task\":{answer}}}"));
    for name in ["a2a-notification-token", "x-a2a-notification-token"] {
        assert_eq!(got.header(name), Some("canary-token"));
    }
    assert_eq!(got.header("authorization"), Some("Bearer canary-credential"));
    assert_eq!(got.header("content-type"), Some("application/a2a+json"));
    assert_eq!(got.header("webhook-timestamp"), Some("1700000000"));
    let row = until("it is written down", async || {
        world.deliveries().await.into_iter().find(|row| {
            row.state == DeliveryState::Delivered && row.tries == 1 && row.task_state.is_terminal()
        })
    })
    .await;
    assert_eq!(got.header("webhook-id"), Some(row.webhook_id.as_str()));
    let attempts = world.attempts(&row).await;
    assert_eq!(attempts.len(), 1);
    assert_eq!((attempts[0].status, attempts[0].address.as_deref()), (Some(200), Some("127.0.0.1")));
    // A confirmation that brings nothing else is no second end.
    let answer = v1::task(&world.content(task).await, Extras::Keep);
    world.read(task, 9, answer).await;
    world.dispatcher.ring();
    world.pass(std::time::Duration::from_secs(60));
    let ends = world.deliveries().await.iter().filter(|row| row.task_state.is_terminal()).count();
    assert_eq!(ends, 1);
}

#[tokio::test]
async fn an_old_registration_gets_the_bare_task_or_its_status() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    world.approve(&receiver).await;
    let task = world.task("t-1").await;
    for (id, body) in [("whole", "task"), ("short", "status")] {
        let config = json!({ "pushNotificationConfig": { "id": id, "url": receiver.url() },
            "metadata": { "taskbell": { "body": body } } });
        world.register_as(task, config, Dialect::V03, false).await.unwrap();
    }
    world.state(task, "input-required").await;
    world.until_states(&[DeliveryState::Delivered; 2]).await;
    let got = receiver.got();
    let content = world.content(task).await;
    assert_eq!(got[0].body, v03::task(&content, Extras::Drop).to_string());
    assert_eq!(got[0].header("content-type"), Some("application/json"));
    let status = got[1].json();
    assert_eq!(
        (&status["kind"], &status["status"]["state"]),
        (&json!("status-update"), &json!("input-required"))
    );
    assert_eq!(got[1].json().get("artifacts"), None);
}

#[tokio::test]
async fn the_body_of_an_end_stays_what_it_was_at_the_change() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task_for("t-1", &receiver).await;
    receiver.answer(&[500]);
    world.state(task, "input-required").await;
    world.until_states(&[DeliveryState::Failed]).await;
    world.state(task, "working").await;
    world.pass(std::time::Duration::from_secs(10));
    until("it is sent again", async || (world.states().await[0] == DeliveryState::Delivered).then_some(()))
        .await;
    let sent: Vec<_> = receiver.got().into_iter().filter(|got| got.body.contains("INPUT_REQUIRED")).collect();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0].body, sent[1].body);
    assert_eq!(sent[0].header("webhook-id"), sent[1].header("webhook-id"));
    assert_ne!(sent[0].header("webhook-timestamp"), sent[1].header("webhook-timestamp"));
}

#[tokio::test]
async fn what_was_being_sent_at_a_kill_is_sent_again_under_the_same_id() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task_for("t-1", &receiver).await;
    receiver.hold();
    world.state(task, "completed").await;
    until("it is being sent", async || (receiver.open() == 1).then_some(())).await;
    let world = world.killed_and_started().await;
    receiver.let_go(100);
    world.until_states(&[DeliveryState::Delivered]).await;
    let row = world.deliveries().await.remove(0);
    let attempts = world.attempts(&row).await;
    assert_eq!(attempts[0].code.as_deref(), Some("outcome_unknown"));
    assert_eq!((attempts[0].counted, attempts[1].status), (false, Some(200)));
    let got = receiver.got();
    assert_eq!(got.len(), 2);
    assert!(got.iter().all(|got| got.header("webhook-id") == Some(row.webhook_id.as_str())));
}

#[tokio::test]
async fn what_was_written_with_the_change_and_never_tried_is_sent_after_a_kill() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task_for("t-1", &receiver).await;
    let key = world.target().await.key;
    let pause = move |context: &mut crate::store::WriteContext<'_>| {
        crate::store::targets::pause(context, key, crate::store::targets::PauseReason::User)
    };
    assert!(world.store.write(pause).await.unwrap());
    world.state(task, "failed").await;
    let world = world.killed_and_started().await;
    assert_eq!(world.states().await, [DeliveryState::Queued]);
    assert!(world.store.write(move |context| crate::store::targets::resume(context, key)).await.unwrap());
    world.dispatcher.ring();
    world.until_states(&[DeliveryState::Delivered]).await;
    assert_eq!(receiver.got().len(), 1);
}

#[tokio::test]
async fn a_body_that_nobody_can_want_is_dropped_and_one_that_failed_for_good_is_kept() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task_for("t-1", &receiver).await;
    let bodies = || async {
        let count = |connection: &rusqlite::Connection| {
            Ok(connection
                .query_row("SELECT count(*) FROM delivery_bodies", [], |row| row.get::<_, i64>(0))?)
        };
        world.store.read(count).await.unwrap()
    };
    world.state(task, "input-required").await;
    world.until_states(&[DeliveryState::Delivered]).await;
    assert_eq!(bodies().await, 0);
    receiver.answer(&[404, 404]);
    world.state(task, "auth-required").await;
    world.until_states(&[DeliveryState::Delivered, DeliveryState::Failed]).await;
    world.pass(std::time::Duration::from_secs(60));
    world.until_states(&[DeliveryState::Delivered, DeliveryState::Rejected]).await;
    assert_eq!(bodies().await, 1);
    let key = world.deliveries().await[1].key;
    let again =
        world.store.write(move |context| crate::store::deliveries::retry(context, key)).await.unwrap();
    assert_eq!(again, Ok(()));
    world.dispatcher.ring();
    world.until_states(&[DeliveryState::Delivered; 2]).await;
    assert_eq!(bodies().await, 0);
    assert!(world.store.read(move |connection| task_content::load(connection, task)).await.is_ok());
}

#[tokio::test]
async fn the_feed_tells_every_step_of_an_end_and_of_its_receiver_and_nothing_of_progress() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task_for("t-1", &receiver).await;
    let target = world.target().await.key;
    let told = async || {
        let changes = world.store.read(|connection| changes_after(connection, 0, 1_000)).await.unwrap();
        let ours = changes.into_iter().filter(|change| matches!(change.kind.as_str(), "delivery" | "target"));
        ours.map(|change| {
            let body: serde_json::Value = serde_json::from_str(&change.body_json).unwrap();
            assert_eq!(
                (change.task, &body["target"]),
                (None, &json!(target.0)),
                "it is no fact about a task"
            );
            body["state"].as_str().map_or(change.kind, str::to_owned)
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(told().await, ["target"], "the approval");
    world.chunk(task, "built").await;
    until("progress is told", async || (receiver.got().len() == 1).then_some(())).await;
    world.until_states(&[DeliveryState::Delivered]).await;
    assert_eq!(told().await, ["target"], "progress would be a flood of the feed as well");
    receiver.answer(&[500]);
    world.state(task, "completed").await;
    world.until_states(&[DeliveryState::Delivered, DeliveryState::Failed]).await;
    let mut expected = vec!["target", "queued", "sending", "target", "failed"];
    assert_eq!(told().await, expected);
    assert!(
        world.store.write(move |context| targets::pause(context, target, PauseReason::User)).await.unwrap()
    );
    assert!(world.store.write(move |context| targets::resume(context, target)).await.unwrap());
    world.dispatcher.ring();
    world.until_states(&[DeliveryState::Delivered; 2]).await;
    expected.extend(["target", "target", "sending", "delivered"]);
    assert_eq!(told().await, expected);
}
