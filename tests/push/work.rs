//! What is done with registrations: removed, rotated, renewed, left alone, cleaned up.

use reqwest::StatusCode;
use serde_json::{Value, json};
use taskbell_tests::gateways::Tunnel;
use taskbell_tests::{
    Fault, FaultProxy, GatewayB, Taskbell, When, eventually, taskbell::TaskName, wait_until,
};

use crate::stage::{PATIENCE, count, is_create, list, registration};

const TOKEN: &str = "token-of-alice";
const PUBLIC: &str = "https://hooks.example.com";

struct Scene {
    taskbell: Taskbell,
    proxy: FaultProxy,
    gateway: GatewayB,
}

async fn scene() -> Scene {
    let mut gateway = GatewayB::start(TOKEN).await;
    let taskbell = Taskbell::setup().silence(2).start().await;
    taskbell.cli(&["settings", "set", "public_url", PUBLIC]).await.exits(0);
    gateway.set_tunnel(Tunnel { public: PUBLIC.to_owned(), local: taskbell.ready().inbox.clone() });
    let proxy = FaultProxy::before(gateway.port()).await;
    taskbell.add_agent_with_token("b", &proxy.url(), TOKEN).await;
    Scene { taskbell, proxy, gateway }
}

impl Scene {
    async fn registered(&self) -> TaskName {
        let task = self.taskbell.send("b", "a long run").await;
        registration(&self.taskbell, &task, "active").await;
        task
    }

    /// What the last registration gave the agent.
    fn last_params(&self) -> Value {
        let seen = self.proxy.seen();
        let last = seen.iter().rev().find(|one| one.method.as_deref().is_some_and(is_create));
        last.and_then(|one| one.body.as_ref()).map(|body| body["params"].clone()).expect("one was made")
    }

    /// Calls back as the agent would with what it was given.
    async fn call_back(&self, task: &TaskName, params: &Value) -> StatusCode {
        let path = params["url"].as_str().and_then(|url| url.split_once("/a2a/")).expect("a callback").1;
        let body = json!({"task": {"id": task.id(), "contextId": "c", "status": {"state": "TASK_STATE_WORKING"},
            "metadata": {"nonce": format!("{params}")}}});
        let answer = taskbell_tests::a2a::http()
            .post(format!("{}/a2a/{path}", self.taskbell.ready().inbox))
            .header("Host", "hooks.example.com")
            .header("A2A-Notification-Token", params["token"].as_str().expect("a token"))
            .json(&body)
            .send()
            .await;
        answer.expect("the inbox answers").status()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_its_user_removed_is_gone_at_both_ends_and_stays_so() {
    let scene = scene().await;
    let task = scene.registered().await;
    let given = scene.last_params();
    assert_eq!(scene.call_back(&task, &given).await, StatusCode::OK);
    scene.taskbell.cli(&["push", "remove", task.as_str()]).await.exits(0);
    assert_eq!(scene.call_back(&task, &given).await, StatusCode::GONE, "at once");
    eventually(PATIENCE, "it is taken back at the agent", || scene.gateway.callbacks(task.id()) == 0).await;
    // Nothing makes it again by itself, but its user may.
    scene.gateway.finish(task.id(), "done");
    scene.taskbell.wait(&task).await.exits(0);
    assert_eq!(count(&scene.proxy, is_create), 2, "the refused loopback address and the public one");
    let again = scene.taskbell.cli(&["push", "remove", task.as_str()]).await;
    assert_eq!(again.error_code(1), "no_registration");
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_goes_on_until_the_agent_has_taken_it_back() {
    let scene = scene().await;
    let task = scene.registered().await;
    scene.proxy.set_times(When::Calls, Fault::bad_gateway(), 3);
    scene.taskbell.cli(&["push", "remove", task.as_str()]).await.exits(0);
    eventually(PATIENCE, "it is taken back after all", || scene.gateway.callbacks(task.id()) == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_rotation_both_proofs_hold_and_the_agent_has_the_new_one() {
    let scene = scene().await;
    let task = scene.registered().await;
    let old = scene.last_params();
    let rotated = scene.taskbell.cli(&["push", "rotate", task.as_str()]).await.ok();
    assert_eq!((&rotated["state"], &rotated["keyVersion"]), (&json!("active"), &json!(2)), "{rotated}");
    assert!(rotated["oldProofUntil"].is_string(), "{rotated}");
    let new = scene.last_params();
    assert_eq!(old["id"], new["id"], "the same registration");
    assert_ne!(old["token"], new["token"]);
    assert_ne!(old["authentication"]["credentials"], new["authentication"]["credentials"]);
    assert_eq!(scene.call_back(&task, &old).await, StatusCode::OK);
    assert_eq!(scene.call_back(&task, &new).await, StatusCode::OK);
    let mut wrong = new.clone();
    wrong["token"] = json!("guess");
    assert_eq!(scene.call_back(&task, &wrong).await, StatusCode::UNAUTHORIZED);
    assert_eq!(scene.gateway.callbacks(task.id()), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_public_address_renews_every_registration() {
    let scene = scene().await;
    let tasks = [scene.registered().await, scene.registered().await, scene.registered().await];
    let moved = "https://elsewhere.example.com/taskbell";
    scene.taskbell.cli(&["settings", "set", "public_url", moved]).await.exits(0);
    for task in &tasks {
        wait_until(PATIENCE, "it has the new address", async || {
            let items = list(&scene.taskbell, task).await;
            let has = |item: &Value| item["url"].as_str().is_some_and(|url| url.starts_with(moved));
            (items.len() == 1 && has(&items[0]) && items[0]["state"] == "active").then_some(())
        })
        .await;
        assert_eq!(scene.gateway.callbacks(task.id()), 1, "replaced and not doubled");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_has_no_push_is_asked_once_and_left_alone() {
    let scene = scene().await;
    let body = r#"{"jsonrpc":"2.0","id":"$id","error":{"code":-32003,"message":"Push Notification is not supported"}}"#;
    scene.proxy.set(When::Registers, Fault::answer(200, "application/json", body));
    let task = scene.taskbell.send("b", "a long run").await;
    let failed = registration(&scene.taskbell, &task, "failed").await;
    assert_eq!(failed["failure"]["code"], "push_not_supported", "{failed}");
    assert!(failed["nextTryAt"].is_null(), "{failed}");
    let other = scene.taskbell.send("b", "another").await;
    let view = scene.taskbell.cli(&["push", "list", other.as_str()]).await.ok();
    assert_eq!((&view["items"], &view["reason"]["code"]), (&json!([]), &json!("not_offered")), "{view}");
    for task in [&task, &other] {
        scene.gateway.finish(task.id(), "done");
        scene.taskbell.wait(task).await.exits(0);
    }
    assert_eq!(count(&scene.proxy, is_create), 1, "no push is no reason to ask again");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_public_address_an_agent_elsewhere_is_followed_all_the_same_and_it_is_said() {
    let gateway = GatewayB::start(TOKEN).await;
    let taskbell = Taskbell::setup().silence(2).start().await;
    taskbell.add_agent_with_token("b", &gateway.url(), TOKEN).await;
    let task = taskbell.send("b", "a long run").await;
    let refused = registration(&taskbell, &task, "failed").await;
    assert_eq!(refused["failure"]["code"], "invalid_params", "it takes no loopback address: {refused}");
    let other = taskbell.send("b", "another").await;
    let view = taskbell.cli(&["push", "list", other.as_str()]).await.ok();
    assert_eq!(view["reason"]["code"], "no_public_address", "{view}");
    let doctor = taskbell.cli_text(&["doctor"]).await;
    assert!(doctor.stdout.contains("there is no public address"), "{}", doctor.stdout);
    for task in [&task, &other] {
        gateway.finish(task.id(), "done");
        taskbell.wait(task).await.exits(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_over_of_ours_is_taken_back_and_what_is_not_ours_stays() {
    let scene = scene().await;
    let task = scene.taskbell.send("b", "a long run").await;
    let create = |id: &str, url: &str| {
        json!({"jsonrpc": "2.0", "id": 1, "method": "CreateTaskPushNotificationConfig",
            "params": {"taskId": task.id(), "id": id, "url": url}})
    };
    for (id, url) in [
        ("left-over", format!("{PUBLIC}/a2a/callbacks/abcdefghijklmnopqrstuvwxyz")),
        ("of-somebody", "https://other.example.com/hook".to_owned()),
    ] {
        let answer = taskbell_tests::a2a::http()
            .post(scene.gateway.url())
            .header("Authorization", format!("Bearer {TOKEN}"))
            .header("A2A-Version", "1.0")
            .json(&create(id, &url))
            .send()
            .await;
        assert!(answer.expect("the gateway answers").status().is_success());
    }
    registration(&scene.taskbell, &task, "active").await;
    eventually(PATIENCE, "ours of an earlier life is gone", || scene.gateway.callbacks(task.id()) == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_for_one_task_beats_what_is_set_for_its_agent() {
    let scene = scene().await;
    let quiet = scene.taskbell.cli(&["send", "b", "a run", "--no-push"]).await.ok();
    scene.taskbell.cli(&["settings", "set", "push.b", "off"]).await.exits(0);
    let loud = scene.taskbell.cli(&["send", "b", "a run", "--push"]).await.ok();
    let loud = TaskName::of(&loud["task"]);
    registration(&scene.taskbell, &loud, "active").await;
    assert!(list(&scene.taskbell, &TaskName::of(&quiet["task"])).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_task_and_a_removed_agent_take_their_registrations_with_them() {
    let scene = scene().await;
    let (deleted, kept) = (scene.registered().await, scene.registered().await);
    scene.taskbell.cli(&["task", "delete", deleted.as_str()]).await.exits(0);
    eventually(PATIENCE, "nobody is called back about it", || scene.gateway.callbacks(deleted.id()) == 0)
        .await;
    assert_eq!(scene.gateway.callbacks(kept.id()), 1, "and about the other as ever");
    scene.taskbell.cli(&["settings", "set", "push.b", "off"]).await.exits(0);
    scene.taskbell.cli(&["agent", "remove", "b"]).await.exits(0);
    assert_eq!(scene.gateway.callbacks(kept.id()), 0);
    scene.taskbell.add_agent_with_token("b", &scene.proxy.url(), TOKEN).await;
    let setting = scene.taskbell.cli(&["settings", "get", "push.b"]).await.ok();
    assert_eq!(setting["value"], "on", "a namesake is another agent: {setting}");
}
