//! Answers that are none: pages, floods, redirects, refusals for a while, somebody else's task.

use std::time::Duration;

use serde_json::json;
use taskbell_tests::{
    Cut, Fault, FaultProxy, GatewayA, Taskbell, When, eventually,
    odd_servers::{Monotone, card_03},
    ports::free_port,
    taskbell::TaskName,
};
use tokio::time::{Instant, sleep};

use crate::{
    PATIENCE, TOKEN,
    support::{Scene, command, memory, oddities, result, told, trouble},
};

/// A task that is followed, and cut off so that the next thing the agent is asked meets the fault.
async fn cut_into(scene: &Scene, when: When, fault: Fault) -> TaskName {
    let task = scene.attached(1).await.remove(0);
    scene.proxy.set(when, fault);
    scene.proxy.cut_streams(Cut::Reset);
    task
}

async fn ends_well(scene: &Scene, task: &TaskName) {
    scene.gateway.finish(task.id(), "the report");
    scene.taskbell.wait(task).await.exits(0);
    assert_eq!(scene.taskbell.show(task).await.text(), "the report");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_page_in_the_middle_of_a_task_is_trouble_and_no_news() {
    let scene = Scene::start().await;
    let page = Fault::answer(200, "text/html; charset=utf-8", "<!doctype html><title>Welcome</title>");
    let task = cut_into(&scene, When::Always, page).await;
    let shown = scene.taskbell.shows(&task, PATIENCE, "named", |shown| trouble(shown).is_some()).await;
    assert_eq!(trouble(&shown), Some("upstream_not_a2a"), "{}", shown.0);
    assert_eq!(shown.state(), "submitted", "{}", shown.0);
    scene.proxy.heal();
    let shown = scene.taskbell.shows(&task, PATIENCE, "healed", |shown| shown.mode() == "stream").await;
    assert_eq!(trouble(&shown), None, "{}", shown.0);
    ends_well(&scene, &task).await;
}

fn later(status: u16, after: &str) -> Fault {
    Fault::Answer {
        status,
        content_type: "text/plain".to_owned(),
        headers: vec![("Retry-After".to_owned(), after.to_owned())],
        body: "later".to_owned(),
    }
}

/// The time between the first call that was refused and the next call.
async fn pause_after_refusal(scene: &Scene, seen_before: usize, limit: Duration) -> Duration {
    eventually(limit, "asked again", || scene.proxy.seen().len() >= seen_before + 2).await;
    let seen = scene.proxy.seen();
    seen[seen_before + 1].at.duration_since(seen[seen_before].at)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_in_seconds_is_kept_by_429_and_503() {
    for status in [429, 503] {
        let scene = Scene::start().await;
        let task = scene.attached(1).await.remove(0);
        let before = scene.proxy.seen().len();
        scene.proxy.set(When::Calls, later(status, "3"));
        scene.proxy.cut_streams(Cut::Reset);
        let pause = pause_after_refusal(&scene, before, PATIENCE).await;
        assert!(pause >= Duration::from_millis(2_900), "{status}: asked again after {pause:?}");
        scene.proxy.heal();
        ends_well(&scene, &task).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_until_a_date_is_kept() {
    let scene = Scene::start().await;
    let task = scene.attached(1).await.remove(0);
    let before = scene.proxy.seen().len();
    let output = std::process::Command::new("date")
        .args(["-u", "-R", "-d", "+5 seconds"])
        .env("LC_ALL", "C")
        .output()
        .expect("date is installed");
    let date = String::from_utf8_lossy(&output.stdout).trim().replace("+0000", "GMT");
    scene.proxy.set(When::Calls, later(429, &date));
    scene.proxy.cut_streams(Cut::Reset);
    let pause = pause_after_refusal(&scene, before, PATIENCE).await;
    // A date has whole seconds, and one may have passed.
    assert!(pause >= Duration::from_secs(3), "{date}: asked again after {pause:?}");
    scene.proxy.heal();
    ends_well(&scene, &task).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_makes_no_sense_leaves_the_schedule_alone() {
    for nonsense in ["soon", "-5", "1.5"] {
        let scene = Scene::start().await;
        let task = scene.attached(1).await.remove(0);
        let before = scene.proxy.seen().len();
        scene.proxy.set(When::Calls, later(429, nonsense));
        scene.proxy.cut_streams(Cut::Reset);
        let pause = pause_after_refusal(&scene, before, PATIENCE).await;
        assert!(pause < Duration::from_secs(5), "{nonsense}: asked again after {pause:?}");
        scene.proxy.heal();
        ends_well(&scene, &task).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_of_years_is_kept_but_the_user_may_look_and_then_all_goes_on() {
    let scene = Scene::start().await;
    let task = scene.attached(1).await.remove(0);
    let before = scene.proxy.seen().len();
    scene.proxy.set(When::Calls, later(503, "99999999999999999999"));
    scene.proxy.cut_streams(Cut::Reset);
    eventually(PATIENCE, "refused", || scene.proxy.seen().len() > before).await;
    let refused = scene.proxy.seen().len();
    sleep(Duration::from_secs(4)).await;
    assert!(scene.proxy.seen().len() <= refused + 1, "it was asked to be left alone");
    assert_eq!(scene.taskbell.show(&task).await.state(), "submitted");
    scene.proxy.heal();
    scene.taskbell.cli(&["reconcile", task.as_str()]).await.exits(0);
    scene.taskbell.shows(&task, PATIENCE, "followed again", |shown| shown.mode() == "stream").await;
    ends_well(&scene, &task).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_a_gibibyte_is_stopped_at_sixteen_mebibytes() {
    let Scene { gateway, proxy, mut taskbell } = Scene::start().await;
    let task = taskbell.send("a", "a turn").await;
    eventually(PATIENCE, "attached", || proxy.open_streams() == 1).await;
    let pid = taskbell.engine().pid();
    let before = memory(pid, "VmRSS");
    let flood = Fault::Flood {
        content_type: "application/json".to_owned(),
        piece: " ".repeat(1 << 16),
        times: 1 << 14,
    };
    proxy.set_times(When::Gets, flood, 1);
    let start = Instant::now();
    let items = taskbell.cli(&["reconcile", task.as_str()]).await.items();
    assert!(start.elapsed() < Duration::from_secs(10), "given up after {:?}", start.elapsed());
    assert_eq!(items[0]["verdict"], "unreachable", "{items:?}");
    let grown = memory(pid, "VmHWM").saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB");
    assert!(proxy.flooded() < 64 << 20, "{} octets were taken", proxy.flooded());
    gateway.finish(task.id(), "the report");
    taskbell.wait(&task).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encoding_that_was_not_asked_for_is_refused() {
    let scene = Scene::start().await;
    let task = scene.attached(1).await.remove(0);
    let bomb = Fault::Answer {
        status: 200,
        content_type: "application/json".to_owned(),
        headers: vec![("Content-Encoding".to_owned(), "gzip".to_owned())],
        body: "\u{1f}".repeat(1000),
    };
    scene.proxy.set_times(When::Gets, bomb, 1);
    let items = scene.taskbell.cli(&["reconcile", task.as_str()]).await.items();
    assert!(items[0]["error"].as_str().is_some_and(|error| error.contains("gzip")), "{items:?}");
    ends_well(&scene, &task).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_gets_the_token_at_its_first_origin_only() {
    let gateway = GatewayA::start(TOKEN).await;
    let (proxy, evil) = (FaultProxy::before(gateway.port()).await, FaultProxy::before(gateway.port()).await);
    let taskbell = Taskbell::start().await;
    taskbell.add_agent_with_token("a", &proxy.url(), TOKEN).await;
    let task = taskbell.send("a", "a turn").await;
    eventually(PATIENCE, "attached", || proxy.open_streams() == 1).await;
    let redirect = Fault::Answer {
        status: 307,
        content_type: "text/plain".to_owned(),
        headers: vec![("Location".to_owned(), evil.url())],
        body: String::new(),
    };
    let before = proxy.seen().len();
    proxy.set(When::Calls, redirect);
    assert_eq!(taskbell.cli(&["send", "a", "another turn"]).await.error_code(1), "upstream_redirect");
    let tokens =
        proxy.seen()[before..].iter().filter(|seen| seen.is_send() && seen.authorization.is_some()).count();
    assert_eq!(tokens, 1, "sent once");
    taskbell.cli(&["reconcile", task.as_str()]).await.exits(0);
    proxy.cut_streams(Cut::Reset);
    taskbell.shows(&task, PATIENCE, "named", |shown| trouble(shown) == Some("upstream_redirect")).await;
    assert!(evil.seen().is_empty(), "nothing went where the redirect pointed: {:?}", evil.seen());
    assert_eq!(taskbell.show(&task).await.state(), "submitted");
    proxy.heal();
    gateway.finish(task.id(), "the report");
    taskbell.wait(&task).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_that_names_another_server_sends_nothing_there() {
    let evil = Monotone::html().await;
    let scene = Scene::start().await;
    let elsewhere = format!("Bearer resource_metadata=\"{0}.well-known/x\", as_uri=\"{0}\"", evil.url());
    let challenge = Fault::Answer {
        status: 401,
        content_type: "application/json".to_owned(),
        headers: vec![("WWW-Authenticate".to_owned(), elsewhere)],
        body: "{}".to_owned(),
    };
    let task = cut_into(&scene, When::Calls, challenge).await;
    let shown = scene.taskbell.shows(&task, PATIENCE, "named", |shown| trouble(shown).is_some()).await;
    assert_eq!(trouble(&shown), Some("unauthorized"), "{}", shown.0);
    assert_eq!(shown.0["needsSignIn"], true, "{}", shown.0);
    assert_eq!(evil.asked(), 0, "a challenge is not a place to go to");
    assert_eq!(shown.state(), "submitted");
    scene.proxy.heal();
    let arguments = ["agent", "set-credential", "a", "--token-env", "TEST_AGENT_TOKEN"];
    scene.taskbell.cli_env(&arguments, &[("TEST_AGENT_TOKEN", TOKEN)]).await.exits(0);
    let shown = scene.taskbell.shows(&task, PATIENCE, "signed in", |shown| shown.mode() == "stream").await;
    assert_eq!(shown.0["needsSignIn"], false, "{}", shown.0);
    ends_well(&scene, &task).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_origin_that_a_card_names_is_recorded_and_not_used() {
    let elsewhere = FaultProxy::before(free_port()).await;
    let gateway = GatewayA::start(TOKEN).await;
    let proxy = FaultProxy::before(gateway.port()).await;
    let declared = format!("{}a2a/coder", elsewhere.url());
    proxy.serve_card(card_03(&declared));
    let taskbell = Taskbell::start().await;
    taskbell.add_agent_with_token("mover", &proxy.url(), TOKEN).await;
    let shown = taskbell.cli(&["agent", "show", "mover"]).await.ok();
    assert_eq!(shown["declaredUrl"], declared, "{shown}");
    let task = taskbell.send("mover", "a run").await;
    gateway.finish(task.id(), "the report");
    taskbell.wait(&task).await.exits(0);
    taskbell.cli(&["agent", "test", "mover"]).await.exits(0);
    assert!(elsewhere.seen().is_empty(), "no call, and no credential, to an origin that a card names");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_about_another_task_is_thrown_away_and_noted() {
    let scene = Scene::start().await;
    let task = scene.attached(1).await.remove(0);
    scene.proxy.set_times(When::Gets, result(told("task-666", "failed")), 1);
    let items = scene.taskbell.cli(&["reconcile", task.as_str()]).await.items();
    let error = items[0]["error"].as_str().unwrap_or_default();
    assert!(error.contains("task-666"), "{items:?}");
    assert_eq!(scene.taskbell.show(&task).await.state(), "submitted");
    assert!(oddities(&scene.taskbell, "a").await.contains(&"foreign_task".to_owned()), "the agent is noted");
    assert_eq!(scene.taskbell.cli(&["tasks"]).await.items().len(), 1);
    ends_well(&scene, &task).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_takes_an_end_back_is_noted_and_changes_nothing() {
    let scene = Scene::start().await;
    let task = scene.attached(1).await.remove(0);
    ends_well(&scene, &task).await;
    scene.taskbell.shows(&task, PATIENCE, "settled", |shown| shown.0["settled"] == true).await;
    for state in ["working", "submitted"] {
        scene.proxy.set_times(When::Gets, result(told(task.id(), state)), 1);
        scene.taskbell.cli(&["reconcile", task.as_str()]).await.exits(0);
        let shown = scene.taskbell.show(&task).await;
        assert_eq!((shown.state(), shown.text().as_str()), ("completed", "the report"), "{state}");
    }
    assert!(oddities(&scene.taskbell, "a").await.contains(&"regression".to_owned()));
    assert_eq!(scene.proxy.open_streams(), 0, "a finished task is not followed again");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_overlapping_reads_the_one_asked_later_stands() {
    let scene = Scene::start().await;
    // Without streams: a frame that came in between would do away with the older answer as well.
    let none = json!({"jsonrpc": "2.0", "id": "$id", "error": {"code": -32603, "message": "not now"}});
    scene.proxy.set(When::Subscribes, Fault::answer(200, "application/json", &none.to_string()));
    let task = scene.taskbell.send("a", "a turn").await;
    // What the first read finds is from before the question, and comes after it.
    let stale = Fault::Late(Duration::from_secs(3), Box::new(result(told(task.id(), "submitted"))));
    let gets = scene.proxy.count(When::Gets);
    scene.proxy.set_times(When::Gets, stale, 1);
    let folder = scene.taskbell.data_dir();
    let name = task.as_str().to_owned();
    let slow = tokio::spawn(async move { command(&folder, &["reconcile", &name]).await });
    eventually(PATIENCE, "the slow read is under way", || scene.proxy.count(When::Gets) > gets).await;
    scene.gateway.ask(task.id(), "which?");
    let shown = scene.taskbell.cli(&["reconcile", task.as_str()]).await.items();
    assert_eq!(shown[0]["after"], "input-required", "{shown:?}");
    slow.await.expect("a command does not panic").exits(0);
    sleep(Duration::from_secs(3)).await;
    let shown = scene.taskbell.show(&task).await;
    let told: Vec<_> = shown.timeline("status").iter().map(|entry| entry["state"].clone()).collect();
    assert_eq!(told, ["input-required"], "the older answer came last and changed nothing");
}
