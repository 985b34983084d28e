//! What a callback is worth: its verdict, and that a false one changes nothing but its own record.

use serde_json::{Value, json};
use taskbell_tests::{Taskbell, wait_until};

use crate::{
    PATIENCE,
    load::{HOST, registrations},
    scene::{Registration, Scene},
    wire::{Wire, callback},
};

const PATH: &str = "worth000000000000000000000";
const TASK: &str = "task-of-worth";
const TOKEN: &str = "token-of-worth";

async fn scene(state: &'static str) -> Scene {
    Scene::start(Taskbell::setup(), state, &[Registration::with_token(PATH, TASK, TOKEN)]).await
}

fn says(task: &str, state: &str) -> String {
    json!({"statusUpdate": {"taskId": task, "status": {"state": state}, "final": true}}).to_string()
}

async fn post(scene: &Scene, token: &str, body: &str) -> u16 {
    let mut wire = Wire::connect(scene.inbox()).await;
    wire.send(&callback(HOST, PATH, &[("A2A-Notification-Token", token)], body)).await;
    wire.answer(PATIENCE).await.expect("an answer").status
}

async fn list(scene: &Scene, more: &[&str]) -> Vec<Value> {
    scene.taskbell.cli(&[&["inbox", "list"], more].concat()).await.items()
}

/// Waits for the one row with this verdict.
async fn judged(scene: &Scene, verdict: &str) -> Value {
    wait_until(PATIENCE, "a verdict", async || {
        let mut items = list(scene, &["--verdict", verdict]).await;
        (items.len() == 1).then(|| items.remove(0))
    })
    .await
}

async fn task_state(scene: &Scene) -> String {
    let shown = scene.taskbell.cli(&["show", &format!("a/{TASK}")]).await.ok();
    shown["state"].as_str().expect("a state").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lie_is_recorded_and_believed_by_nobody() {
    let scene = scene("working").await;
    assert_eq!(post(&scene, TOKEN, &says(TASK, "completed")).await, 200);
    let row = judged(&scene, "ahead").await;
    assert_eq!((&row["claimed"], &row["confirmed"]), (&json!("completed"), &json!("working")));
    assert_eq!(row["proofs"]["token"], "valid");
    assert_eq!(row["task"], format!("a/{TASK}"));
    assert_eq!(task_state(&scene).await, "working");
    assert_eq!(scene.taskbell.cli(&["notice", "list"]).await.items(), Vec::<Value>::new());

    let id = row["id"].as_str().expect("an id");
    let shown = scene.taskbell.cli(&["inbox", "show", id]).await.ok();
    assert_eq!(shown["claim"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(shown["confirmation"]["document"]["status"]["state"], "TASK_STATE_WORKING");
    assert_eq!(shown["differences"][0]["pointer"], "/status/state");
    assert!(!shown.to_string().contains(TOKEN), "a secret is never shown");
    assert!(!shown.to_string().contains(PATH), "nor the whole address");

    scene.teller.tell("completed");
    let replay = scene.taskbell.cli(&["inbox", "replay", id]).await.ok();
    assert_eq!((&replay["before"], &replay["verdict"]), (&json!("ahead"), &json!("confirmed")));
    let row = scene.look().text("SELECT verdict FROM callbacks");
    assert!(row == "ahead" || row == "confirmed", "a replay writes nothing; a poll may have come since");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_proof_and_another_tasks_id_leave_a_record_and_no_read() {
    let scene = scene("completed").await;
    let reads = scene.teller.reads();
    assert_eq!(post(&scene, "forged", &says(TASK, "failed")).await, 401);
    assert_eq!(post(&scene, TOKEN, &says("another-task", "failed")).await, 422);
    let refused = judged(&scene, "rejected").await;
    assert_eq!((&refused["count"], &refused["reason"]), (&json!(1), &json!("wrong_proof")));
    judged(&scene, "unmatched").await;
    assert_eq!(scene.teller.reads(), reads, "who proves nothing has nothing read");
    assert_eq!(task_state(&scene).await, "completed");
    let report = scene.taskbell.cli(&["agent", "show", "a"]).await.ok()["reportCard"].clone();
    assert_eq!((&report["wrongProof"], &report["unmatched"]), (&json!(1), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_replays_cost_two_reads_and_no_notice() {
    let scene = scene("completed").await;
    let body = says(TASK, "completed");
    assert_eq!(post(&scene, TOKEN, &body).await, 200);
    judged(&scene, "confirmed").await;
    let reads = scene.teller.reads();
    let began = std::time::Instant::now();
    let request = callback(HOST, PATH, &[("A2A-Notification-Token", TOKEN)], &body);
    let mut wire = Wire::connect(scene.inbox()).await;
    let (mut taken, mut told_to_wait) = (0, 0);
    for _ in 0..1_000 {
        wire.send(&request).await;
        match wire.answer(PATIENCE).await {
            Some(answer) if answer.status == 200 => taken += 1,
            Some(answer) => {
                assert_eq!(answer.status, 429);
                told_to_wait += 1;
                wire = Wire::connect(scene.inbox()).await;
            }
            None => wire = Wire::connect(scene.inbox()).await,
        }
    }
    scene.settled(PATIENCE).await;
    assert!(taken >= 200 && told_to_wait > 0, "{taken} taken, {told_to_wait} told to wait");
    let cost = scene.teller.reads() - reads;
    // One at once and one for all the rest; a slow machine's replays go on beyond that.
    let most = 2 + began.elapsed().as_secs() / 5;
    assert!((1..=most).contains(&cost), "{cost} reads for {taken} replays, {most} at most");
    let row = judged(&scene, "confirmed").await;
    assert_eq!(row["count"], json!(taken + 1));
    assert_eq!(scene.taskbell.cli(&["notice", "list"]).await.items(), Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_while_the_engine_was_stopped_is_reported_as_missed_with_its_reason() {
    let mut scene = scene("working").await;
    scene.taskbell.stop().await;
    scene.teller.tell("completed");
    scene.taskbell.come_up().await;
    scene.taskbell.cli(&["wait", &format!("a/{TASK}"), "--timeout", "30s"]).await.exits(0);
    let found = scene.taskbell.cli(&["reconcile", "--since", "1h"]).await.items();
    assert_eq!(found.len(), 1);
    let item = &found[0];
    assert_eq!((&item["missed"], &item["foundBy"]), (&json!(true), &json!("poll")));
    assert_eq!(item["missedWhy"], "taskbell was not running when it would have come");
    assert_eq!(scene.taskbell.cli(&["notice", "list"]).await.items().len(), 1, "told once");
}

/// Waits for the task's end and looks that it was told once.
async fn ends_with_one_notice(scene: &Scene) {
    wait_until(PATIENCE, "the end is known", async || (task_state(scene).await == "completed").then_some(()))
        .await;
    let notices = scene.taskbell.cli(&["notice", "list"]).await.items();
    let kinds: Vec<&Value> = notices.iter().map(|notice| &notice["kind"]).collect();
    assert_eq!(kinds, ["finished"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_of_the_end_stays_a_claim_while_the_agent_is_gone() {
    let mut scene = scene("working").await;
    scene.settled(PATIENCE).await;
    scene.teller.leave().await;
    assert_eq!(post(&scene, TOKEN, &says(TASK, "completed")).await, 200);
    judged(&scene, "unreachable").await;
    assert_eq!(task_state(&scene).await, "working");
    assert_eq!(scene.taskbell.cli(&["notice", "list"]).await.items(), Vec::<Value>::new());
    scene.teller.come_back("completed").await;
    judged(&scene, "confirmed").await;
    ends_with_one_notice(&scene).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_while_both_were_gone_is_found_and_told_once() {
    let mut scene = scene("working").await;
    scene.settled(PATIENCE).await;
    scene.taskbell.stop().await;
    scene.teller.leave().await;
    scene.taskbell.come_up().await;
    wait_until(PATIENCE, "the agent is missed", async || {
        let shown = scene.taskbell.cli(&["show", &format!("a/{TASK}")]).await.ok();
        (shown["following"]["mode"] == "reconnecting").then_some(())
    })
    .await;
    scene.teller.come_back("completed").await;
    ends_with_one_notice(&scene).await;
    let found = scene.taskbell.cli(&["reconcile", "--since", "1h"]).await.items();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["missed"], true, "{found:?}");
    assert!(found[0]["missedWhy"].is_string(), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_of_the_end_is_how_it_was_found() {
    let scene = scene("working").await;
    scene.teller.tell("completed");
    assert_eq!(post(&scene, TOKEN, &says(TASK, "completed")).await, 200);
    judged(&scene, "confirmed").await;
    let item = &scene.taskbell.cli(&["reconcile", &format!("a/{TASK}")]).await.items()[0];
    assert_eq!(item["missed"], false);
    // A poll may have been under way at that very moment.
    assert!(item["foundBy"] == "push" || item["foundBy"] == "poll", "{item}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_tries_itself_in_both_dialects_as_often_as_it_is_asked() {
    let scene = Scene::start(Taskbell::setup(), "working", &registrations(1)).await;
    for _ in 0..2 {
        let tests = scene.taskbell.cli(&["inbox", "test"]).await.items();
        let told: Vec<(&Value, &Value, &Value)> =
            tests.iter().map(|test| (&test["dialect"], &test["ok"], &test["stored"])).collect();
        assert_eq!(
            told,
            [(&json!("1.0"), &json!(true), &json!(true)), (&json!("0.3"), &json!(true), &json!(true))]
        );
    }
    assert_eq!(scene.look().number("SELECT count(*) FROM callbacks"), 0, "nothing of it is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_told_on_one_line() {
    let scene = scene("working").await;
    let taskbell = &scene.taskbell;
    assert_eq!(taskbell.cli(&["inbox", "show", "99"]).await.error_code(1), "unknown_callback");
    assert_eq!(taskbell.cli(&["inbox", "show", "nonsense"]).await.error_code(1), "unknown_callback");
    assert_eq!(taskbell.cli(&["inbox", "replay", "q1"]).await.error_code(1), "not_kept");
    taskbell.cli(&["inbox", "list", "--verdict", "maybe"]).await.exits(2);
    taskbell.cli(&["inbox", "list", "--cursor", "x"]).await.exits(2);
    assert_eq!(taskbell.cli(&["inbox", "list", "--agent", "nobody"]).await.error_code(1), "unknown_agent");
}
