//! Real agents of five SDKs: registered at, called back by, confirmed.

use taskbell_tests::canary::Canary;
use taskbell_tests::{PeerKind, wait_until};

use crate::stage::{PATIENCE, Stage, callbacks, count, is_create, is_delete, registration, secrets};

const SCRIPT: &str = "steps=6 interval=0.5 chunks=3";
const TEXT: &str = "chunk 1/3;chunk 2/3;chunk 3/3;";

macro_rules! with_every_peer {
    ($($scenario:ident),* $(,)?) => {
        with_every_peer!(@ py03 Py03 $($scenario)*);
        with_every_peer!(@ py1 Py1 $($scenario)*);
        with_every_peer!(@ js03 Js03 $($scenario)*);
        with_every_peer!(@ js1 Js1 $($scenario)*);
        // The reference server takes minutes to build.
        mod rs {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $scenario() {
                    if taskbell_tests::long_run(stringify!($scenario)) {
                        super::$scenario(taskbell_tests::PeerKind::Rs).await;
                    }
                }
            )*
        }
    };
    (@ $module:ident $kind:ident $($scenario:ident)*) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $scenario() {
                    super::$scenario(taskbell_tests::PeerKind::$kind).await;
                }
            )*
        }
    };
}

with_every_peer!(
    a_task_is_registered_called_back_about_confirmed_and_taken_back,
    without_streams_callbacks_tell_how_the_task_goes,
    after_a_late_registration_the_task_is_read,
);

async fn a_task_is_registered_called_back_about_confirmed_and_taken_back(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let task = stage.taskbell.send("peer", SCRIPT).await;
    registration(&stage.taskbell, &task, "active").await;
    stage.taskbell.wait(&task).await.exits(0);
    let shown = stage.taskbell.show(&task).await;
    assert_eq!((shown.state(), shown.text().as_str()), ("completed", TEXT));
    let last = wait_until(PATIENCE, "the end is called back about and confirmed", async || {
        let found = callbacks(&stage.taskbell, &task).await;
        found.into_iter().find(|one| one["claimed"] == "completed" && one["verdict"] == "confirmed")
    });
    let last = last.await;
    let proofs = [&last["proofs"]["token"], &last["proofs"]["authorization"]];
    assert!(proofs.iter().any(|proof| **proof == "valid"), "{last}");
    assert!(proofs.iter().all(|proof| **proof != "wrong"), "{last}");
    let ended = registration(&stage.taskbell, &task, "ended").await;
    wait_until(PATIENCE, "it is taken back at the agent", async || {
        (count(&stage.proxy, is_delete) == 1).then_some(())
    })
    .await;
    assert_eq!(count(&stage.proxy, is_create), 1, "and was asked for once: {ended}");
    // All five write secrets into their answers.
    assert_eq!(ended["echoed"], true, "{ended}");
    let agent = stage.taskbell.cli(&["agent", "show", "peer"]).await.ok();
    let echoes: Vec<_> = agent["oddities"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|oddity| oddity["kind"] == "echoed_secret")
        .collect();
    assert_eq!(echoes.len(), 1, "{agent}");
    assert_eq!(echoes[0]["count"], 1, "noted once an agent");
    for secret in secrets(&stage.proxy) {
        Canary::known(&secret).assert_not_kept_by(&stage.taskbell);
    }
}

async fn without_streams_callbacks_tell_how_the_task_goes(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    stage.forbid_streams();
    let task = stage.taskbell.send("peer", SCRIPT).await;
    registration(&stage.taskbell, &task, "active").await;
    stage.taskbell.wait(&task).await.exits(0);
    let shown = stage.taskbell.show(&task).await;
    assert_eq!((shown.state(), shown.text().as_str()), ("completed", TEXT));
    let modes: Vec<_> = shown.timeline("following").iter().map(|change| change["mode"].clone()).collect();
    assert!(modes.iter().any(|mode| *mode == "push+poll"), "{modes:?}");
    assert!(!callbacks(&stage.taskbell, &task).await.is_empty());
}

async fn after_a_late_registration_the_task_is_read(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    stage.taskbell.cli(&["settings", "set", "push.peer", "off"]).await.exits(0);
    let task = stage.taskbell.send("peer", "ask=1 steps=2 interval=0.1").await;
    stage.taskbell.wait(&task).await.exits(6);
    assert_eq!(count(&stage.proxy, is_create), 0, "it was turned off");
    let made = stage.taskbell.cli(&["push", "register", task.as_str()]).await.ok();
    assert_eq!(made["state"], "active", "{made}");
    // At once, and once more ten seconds later, with a look at what the agent has.
    wait_until(PATIENCE, "the task is read after it was registered for, and again", async || {
        let seen = stage.proxy.seen();
        let made = seen.iter().position(|one| one.method.as_deref().is_some_and(is_create))?;
        let later = seen.get(made..)?;
        let listed = later.iter().position(|one| {
            one.method.as_deref().is_some_and(|method| {
                matches!(method, "tasks/pushNotificationConfig/list" | "ListTaskPushNotificationConfigs")
            })
        })?;
        let at_once = later.get(..listed)?.iter().any(taskbell_tests::proxy::Seen::is_get);
        let again = later.get(listed..)?.iter().any(taskbell_tests::proxy::Seen::is_get);
        (at_once && again).then_some(())
    })
    .await;
    stage.taskbell.cli(&["reply", task.as_str(), "go on"]).await.exits(0);
    stage.taskbell.wait(&task).await.exits(0);
}
