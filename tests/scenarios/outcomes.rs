//! How `wait` and `send --wait` leave, for every way a task can go.

use taskbell_tests::{GatewayA, Taskbell, eventually, taskbell::TaskName};

use crate::{PATIENCE, TOKEN};

async fn scene() -> (GatewayA, Taskbell, TaskName) {
    let gateway = GatewayA::start(TOKEN).await;
    let taskbell = Taskbell::start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), TOKEN).await;
    let task = taskbell.send("a", "a turn").await;
    eventually(PATIENCE, "attached", || gateway.open_streams() == 1).await;
    (gateway, taskbell, task)
}

#[tokio::test(flavor = "multi_thread")]
async fn completed_is_0() {
    let (gateway, taskbell, task) = scene().await;
    gateway.finish(task.id(), "done");
    taskbell.wait(&task).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_is_3() {
    let (gateway, taskbell, task) = scene().await;
    gateway.fail(task.id());
    taskbell.wait(&task).await.exits(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn canceled_is_5() {
    let (_gateway, taskbell, task) = scene().await;
    taskbell.cli(&["cancel", task.as_str()]).await.exits(0);
    taskbell.wait(&task).await.exits(5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_6_and_only_until_it_is_answered() {
    let (gateway, taskbell, task) = scene().await;
    gateway.ask(task.id(), "which?");
    taskbell.wait(&task).await.exits(6);
    taskbell.cli(&["reply", task.as_str(), "that one"]).await.exits(0);
    taskbell.cli(&["wait", task.as_str(), "--timeout", "2s"]).await.exits(124);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_that_does_not_come_is_124() {
    let (_gateway, taskbell, task) = scene().await;
    taskbell.cli(&["wait", task.as_str(), "--timeout", "1s"]).await.exits(124);
    assert_ne!(taskbell.show(&task).await.mode(), "ended", "waiting no longer is not following no longer");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_owner_s_token_makes_the_identity_wrong_and_that_is_10() {
    let (gateway, taskbell, task) = scene().await;
    gateway.accept("token-of-bob", "bob");
    let arguments = ["agent", "set-credential", "a", "--token-env", "TEST_AGENT_TOKEN"];
    taskbell.cli_env(&arguments, &[("TEST_AGENT_TOKEN", "token-of-bob")]).await.exits(0);
    gateway.cut_streams();
    taskbell.wait(&task).await.exits(10);
    assert_eq!(taskbell.show(&task).await.state(), "wrong-identity", "it is neither lost nor failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_odd_timeout_is_2() {
    let (_gateway, taskbell, task) = scene().await;
    taskbell.cli(&["wait", task.as_str(), "--timeout", "soon"]).await.exits(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn sending_and_waiting_in_one_leaves_the_same() {
    let (gateway, taskbell, first) = scene().await;
    let known = first.id().to_owned();
    let sender = taskbell.cli(&["send", "a", "another", "--wait"]);
    let finisher = async {
        // The second task is the one that is not the first.
        let id = taskbell_tests::wait_until(PATIENCE, "the second task", async || {
            let items = taskbell.cli(&["tasks"]).await.items();
            let names = items.iter().map(|item| TaskName::of(&item["task"]));
            names.map(|name| name.id().to_owned()).find(|id| *id != known)
        })
        .await;
        gateway.fail(&id);
    };
    let (sent, ()) = tokio::join!(sender, finisher);
    sent.exits(3);
}
