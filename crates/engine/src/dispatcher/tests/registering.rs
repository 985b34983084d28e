//! What clients register, and what becomes of their secrets.

use serde_json::json;
use taskbell_core::delivery::DeliveryState;
use taskbell_core::dialect::Dialect;
use taskbell_core::push_rules::Field;

use super::super::RegisterError;
use super::world::{Receiver, World, until};
use crate::store::client_push_configs as rows;
use crate::store::{SecretKey, WriteContext, clients};

const CANARIES: [&str; 2] = ["canary-token-99f1", "canary-credential-77aa"];

fn with_secrets(receiver: &Receiver, id: &str) -> serde_json::Value {
    json!({ "id": id, "url": receiver.url(), "token": CANARIES[0],
        "authentication": { "scheme": "Basic", "credentials": CANARIES[1] } })
}

async fn secrets(world: &World) -> Vec<SecretKey> {
    let read = |connection: &rusqlite::Connection| {
        let mut statement = connection.prepare("SELECT id FROM client_secrets ORDER BY id")?;
        let rows = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(rows)
    };
    world.store.read(read).await.unwrap()
}

#[tokio::test]
async fn a_registration_is_answered_without_secrets_and_named_where_it_has_no_name() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    world.approve(&receiver).await;
    let task = world.task("t-1").await;
    let named = world.register(task, with_secrets(&receiver, "p-1")).await;
    assert_eq!(named.config.id.as_deref(), Some("p-1"));
    let unnamed = world.register(task, json!({ "url": receiver.url() })).await;
    assert!(unnamed.config.id.as_ref().is_some_and(|id| id.len() == 36));
    let one = world.dispatcher.config(task, "p-1").await.unwrap().unwrap();
    let all = world.dispatcher.configs(task).await.unwrap();
    assert_eq!(all.len(), 2);
    for config in all.iter().chain([&named.config, &one]) {
        assert!(config.notification_token.is_none());
        assert!(config.authentication.as_ref().is_none_or(|own| own.credentials.is_none()));
    }
    world.dispatcher.delete_config(task, "p-1").await.unwrap();
    world.dispatcher.delete_config(task, "p-1").await.unwrap();
    assert!(world.dispatcher.config(task, "p-1").await.unwrap().is_none());
}

#[tokio::test]
async fn a_secret_is_one_item_however_often_it_is_used_and_gone_with_its_last_user() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    world.approve(&receiver).await;
    let task = world.task("t-1").await;
    for id in ["p-1", "p-2", "p-3"] {
        world.register(task, with_secrets(&receiver, id)).await;
    }
    let keys = secrets(&world).await;
    assert_eq!(keys.len(), 2);
    let kept = world.keychain.get(&keys[0].handle()).await.unwrap();
    assert_eq!(kept.expose(), CANARIES[0]);
    world.dispatcher.delete_config(task, "p-1").await.unwrap();
    world.dispatcher.delete_config(task, "p-2").await.unwrap();
    world.register(task, json!({ "id": "p-9", "url": receiver.url() })).await;
    assert_eq!(secrets(&world).await, keys);
    world.dispatcher.delete_config(task, "p-3").await.unwrap();
    until("both are deleted", async || secrets(&world).await.is_empty().then_some(())).await;
    assert!(world.keychain.get(&keys[0].handle()).await.is_err());
    let whole = files(world.folder.path());
    for canary in CANARIES {
        assert!(!whole.windows(canary.len()).any(|part| part == canary.as_bytes()), "{canary} is in a file");
    }
}

fn files(folder: &std::path::Path) -> Vec<u8> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .flat_map(|path| std::fs::read(path).unwrap())
        .collect()
}

#[tokio::test]
async fn editing_without_the_secret_keeps_it_for_the_same_receiver_only() {
    let (world, receiver, other) = (World::new().await, Receiver::start().await, Receiver::start().await);
    world.approve(&receiver).await;
    world.approve(&other).await;
    let task = world.task("t-1").await;
    world.register(task, with_secrets(&receiver, "p-1")).await;
    world.register(task, json!({ "id": "p-1", "url": format!("{}/new", receiver.url()) })).await;
    world.state(task, "input-required").await;
    world.until_states(&[DeliveryState::Delivered]).await;
    let got = receiver.got().remove(0);
    assert_eq!(got.header("a2a-notification-token"), Some(CANARIES[0]));
    assert_eq!(got.header("authorization"), Some("Basic canary-credential-77aa"));
    world.register(task, json!({ "id": "p-1", "url": other.url() })).await;
    world.state(task, "completed").await;
    world.until_states(&[DeliveryState::Delivered; 2]).await;
    let got = other.got().remove(0);
    assert_eq!((got.header("a2a-notification-token"), got.header("authorization")), (None, None));
}

#[tokio::test]
async fn what_is_refused_leaves_nothing_behind() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    let task = world.task("t-1").await;
    let refused =
        world.register_as(task, with_secrets(&receiver, "p"), Dialect::V1, false).await.unwrap_err();
    assert!(matches!(&refused, RegisterError::NotApproved { port, .. } if *port == receiver.port()));
    assert!(refused.to_string().contains(&format!("taskbell target allow editor {}", receiver.port())));
    let digest = json!({ "url": "https://hooks.example.com/", "token": CANARIES[0],
        "authentication": { "scheme": "digest", "credentials": CANARIES[1] } });
    let refused = world.register_as(task, digest, Dialect::V1, false).await.unwrap_err();
    assert!(matches!(refused, RegisterError::Refused(refusal) if refusal.field == Field::Scheme));
    assert!(secrets(&world).await.is_empty());
    assert!(world.dispatcher.configs(task).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_task_takes_twenty_configs_and_no_more() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    world.approve(&receiver).await;
    let task = world.task("t-1").await;
    for n in 0..20 {
        world.register(task, json!({ "id": format!("p-{n}"), "url": receiver.url() })).await;
    }
    let one_more = json!({ "id": "p-20", "url": receiver.url() });
    let refused = world.register_as(task, one_more, Dialect::V1, false).await;
    assert_eq!(refused.unwrap_err(), RegisterError::TooMany);
    world.register(task, json!({ "id": "p-7", "url": receiver.url() })).await;
}

#[tokio::test]
async fn a_config_that_came_with_the_send_hears_of_an_end_that_the_answer_had_already() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    world.approve(&receiver).await;
    let task = world.task("t-1").await;
    world.state(task, "completed").await;
    world.register_as(task, json!({ "url": receiver.url() }), Dialect::V1, true).await.unwrap();
    world.until_states(&[DeliveryState::Delivered]).await;
    let late = world.task("t-2").await;
    world.state(late, "completed").await;
    world.register(late, json!({ "url": receiver.url() })).await;
    assert_eq!(world.deliveries().await.len(), 1, "registering later replays nothing");
}

#[tokio::test]
async fn a_revoked_client_is_called_no_more_and_its_secrets_go() {
    let (world, receiver) = (World::new().await, Receiver::start().await);
    world.approve(&receiver).await;
    let task = world.task("t-1").await;
    world.register(task, with_secrets(&receiver, "p-1")).await;
    let revoke = |context: &mut WriteContext<'_>| {
        clients::revoke(context, &taskbell_core::ids::ClientName::new("editor").unwrap())
    };
    world.store.write(revoke).await.unwrap();
    world.state(task, "completed").await;
    world.dispatcher.sweep().await.unwrap();
    // None, where its config was removed before the change.
    assert!(world.states().await.iter().all(|state| *state == DeliveryState::Cancelled));
    assert!(secrets(&world).await.is_empty());
    assert!(world.store.read(move |connection| rows::of_task(connection, task)).await.unwrap().is_empty());
    assert!(receiver.got().is_empty());
}
