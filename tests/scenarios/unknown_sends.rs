//! A send whose answer is lost: nobody knows whether the agent took it.

use std::time::Duration;

use taskbell_tests::{Fault, FaultProxy, GatewayA, Taskbell, When};

use crate::TOKEN;

async fn scene() -> (GatewayA, FaultProxy, Taskbell) {
    let gateway = GatewayA::start(TOKEN).await;
    let proxy = FaultProxy::before(gateway.port()).await;
    let taskbell = Taskbell::start().await;
    taskbell.add_agent_with_token("a", &proxy.url(), TOKEN).await;
    (gateway, proxy, taskbell)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_whose_answer_was_lost_is_unknown_and_never_repeated() {
    let (gateway, proxy, mut taskbell) = scene().await;
    proxy.set(When::Sends, Fault::SwallowAnswer);
    let output = taskbell.cli(&["send", "a", "pay the invoice"]).await;
    let answer = output.exits(9).json();
    let message =
        answer["unknown"]["messageId"].as_str().unwrap_or_else(|| panic!("no message id: {answer}"));
    assert_eq!(gateway.messages(), [message], "the agent took exactly this one");
    proxy.heal();
    tokio::time::sleep(Duration::from_secs(3)).await;
    taskbell.crash_and_restart().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(gateway.messages(), [message], "neither time nor a restart repeats it");
    proxy.assert_sent_once_each(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_page_in_place_of_the_answer_is_unknown_as_well() {
    let (_gateway, proxy, taskbell) = scene().await;
    proxy.set(When::Sends, Fault::bad_gateway());
    let output = taskbell.cli(&["send", "a", "pay the invoice"]).await;
    assert_ne!(output.code, Some(0), "{output:?}");
    proxy.assert_sent_once_each(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_to_an_agent_that_does_not_listen_was_not_sent() {
    let (gateway, mut proxy, taskbell) = scene().await;
    proxy.down().await;
    let code = taskbell.cli(&["send", "a", "pay the invoice"]).await.error_code(1);
    assert_eq!(code, "agent_unreachable", "no octet left, so the outcome is known");
    assert!(gateway.messages().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_whose_answer_was_lost_is_not_repeated() {
    let (gateway, proxy, taskbell) = scene().await;
    let task = taskbell.send("a", "a turn").await;
    gateway.ask(task.id(), "which?");
    taskbell.wait(&task).await.exits(6);
    proxy.set(When::Sends, Fault::SwallowAnswer);
    let output = taskbell.cli(&["reply", task.as_str(), "that one"]).await;
    assert_eq!(output.code, Some(9), "{output:?}");
    tokio::time::sleep(Duration::from_secs(2)).await;
    proxy.assert_sent_once_each(2);
}
