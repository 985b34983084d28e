//! The keyring and the secrets that clients gave for their callbacks.

use serde_json::json;
use taskbell_tests::session::Session;

use crate::stage::{Stage, is};
use crate::world::{Receiver, state_of};

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_waits_for_a_locked_keyring_and_uses_up_no_try() {
    if !Session::is_possible() {
        println!("skipped: this machine has no dbus-daemon, dbus-send or gnome-keyring-daemon");
        return;
    }
    let mut session = Session::start().await;
    let mut stage = Stage::start(session.engine()).await;
    let mut receiver = Receiver::python().await;
    stage.allow(receiver.port).await;
    let task = stage.task("steps=9 interval=60", &[receiver.url()]).await;
    stage.taskbell.stop().await;
    session.lock().await;
    stage.taskbell.come_up().await;
    stage.cancel(&task).await;
    let waiting = stage
        .delivery(&task, "p-0", "it waits", |delivery| {
            (delivery["waitsFor"] == "keyring_locked").then(|| delivery.clone())
        })
        .await;
    assert_eq!((&waiting["tries"], &waiting["state"]), (&json!(0), &json!("queued")));
    assert_eq!(waiting["attempts"], json!([]), "nothing was begun");
    let config = json!({ "taskId": task, "url": receiver.url(), "token": "another-secret" });
    let refused = stage.ask("CreateTaskPushNotificationConfig", config).await;
    assert_eq!(refused["error"]["data"][0]["metadata"]["code"], json!("keyring_locked"), "{refused}");
    assert!(receiver.seen().await.iter().all(|seen| state_of(seen) != "TASK_STATE_CANCELED"));
    session.kill_keyring().await;
    session.restart_keyring().await;
    let delivered = stage.delivery(&task, "p-0", "it is delivered", is("delivered")).await;
    assert_eq!(delivered["tries"], json!(1));
    let seen = receiver.until("the end", |seen| state_of(seen) == "TASK_STATE_CANCELED").await;
    assert_eq!(seen["headers"]["authorization"], json!("Bearer cred-1"));
}
