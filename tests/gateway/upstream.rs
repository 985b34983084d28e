//! Agents that answer what they should not: their client learns of it, and learns nothing else.

use serde_json::json;
use taskbell_tests::odd_servers::Monotone;
use taskbell_tests::taskbell::TaskName;
use taskbell_tests::{Fault, When, eventually};

use crate::behind::{Behind, TOKEN, code};
use crate::support::{PATIENCE, message};

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_sees_its_own_token_and_no_header_of_the_client() {
    let behind = Behind::start().await;
    let own = [
        "Cookie: session=of-the-client",
        "X-Secret: of-the-client",
        "X-Forwarded-For: 203.0.113.7",
        "Referer: http://127.0.0.1/of-the-client",
        "User-Agent: of-the-client",
        "traceparent: 00-of-the-client",
    ];
    let params = json!({"message": message(), "configuration": {"blocking": false}});
    let answer = behind.ask(&own, "message/send", &params).await;
    let task = answer.json()["result"]["id"].as_str().expect("a task").to_owned();
    behind.ask(&own, "tasks/get", &json!({"id": task})).await;
    behind.ask(&own, "tasks/cancel", &json!({"id": task})).await;
    let seen = behind.proxy.seen();
    assert!(seen.iter().any(taskbell_tests::proxy::Seen::is_send), "{seen:?}");
    for seen in seen.iter().filter(|seen| !seen.is_card()) {
        assert_eq!(seen.authorization, Some(format!("Bearer {TOKEN}")), "{}", seen.head);
    }
    for seen in &seen {
        for foreign in ["of-the-client", "203.0.113.7", &behind.key] {
            assert!(!seen.head.contains(foreign), "{foreign} went upstream: {}", seen.head);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed_and_the_token_goes_nowhere_else() {
    let behind = Behind::start().await;
    let elsewhere = Monotone::html().await;
    for status in [301, 302, 307, 308] {
        let headers = vec![("Location".to_owned(), elsewhere.url())];
        let (content_type, body) = ("text/plain".to_owned(), String::new());
        behind.proxy.set(When::Sends, Fault::Answer { status, content_type, headers, body });
        assert_eq!(code(&behind.send().await), -32006, "{status}");
        assert_eq!(code(&behind.stream().await), -32006, "{status}");
        behind.proxy.heal();
    }
    assert_eq!(elsewhere.asked(), 0, "nobody was sent there");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_wants_another_credential_is_no_401_for_the_client() {
    let behind = Behind::start().await;
    let elsewhere = Monotone::html().await;
    let headers = vec![(
        "WWW-Authenticate".to_owned(),
        format!("Bearer realm=\"a\", authorization_uri=\"{0}\", resource_metadata=\"{0}\"", elsewhere.url()),
    )];
    let (content_type, body) = ("text/plain".to_owned(), format!("wrong token {TOKEN}"));
    behind.proxy.set(When::Sends, Fault::Answer { status: 401, content_type, headers, body });
    assert_eq!(code(&behind.send().await), -32603);
    assert_eq!(code(&behind.stream().await), -32603);
    assert_eq!(elsewhere.asked(), 0, "a challenge leads nowhere");
    let shown = behind.taskbell.cli(&["agent", "list"]).await.ok().to_string();
    assert!(!shown.contains(TOKEN), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_a2a_is_an_invalid_answer_of_the_agent() {
    let behind = Behind::start().await;
    let page = "<!doctype html><title>Sign in</title><script>alert(1)</script>";
    for (kind, body) in [
        ("text/html; charset=utf-8", page),
        ("application/json", "{"),
        ("application/json", "[]"),
        ("application/json", "null"),
        ("application/json", r#"{"jsonrpc":"2.0","id":1,"result":7}"#),
    ] {
        behind.proxy.set(When::Sends, Fault::answer(200, kind, body));
        for refusal in [behind.send().await, behind.stream().await] {
            let told = code(&refusal);
            // Where the message may have arrived, its outcome is unknown and said to be.
            assert!([-32006, -32603].contains(&told), "{kind} {body}: {refusal}");
            assert!(!refusal.to_string().contains("<script>"), "{refusal}");
        }
        behind.proxy.heal();
    }
    // A proxy's page in place of an overloaded agent is an error of the call that was made, with its id.
    behind.proxy.set(When::Sends, Fault::answer(503, "text/html", page));
    for refusal in [behind.send().await, behind.stream().await] {
        assert_eq!((code(&refusal), &refusal["id"]), (-32603, &json!(1)), "{refusal}");
        assert!(!refusal.to_string().contains("<script>"), "{refusal}");
    }
    behind.proxy.heal();
    let tasks = behind.taskbell.cli(&["tasks"]).await.items();
    assert!(tasks.is_empty(), "{tasks:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_in_place_of_the_agent_is_named_changes_no_task_and_is_asked_again() {
    let behind = Behind::start().await;
    let id = behind.send().await["result"]["id"].as_str().expect("a task").to_owned();
    let task = TaskName::new("a", &id);
    behind.agent.work(&id, "well and alive");
    behind.taskbell.shows(&task, PATIENCE, "it works", |shown| shown.state() == "working").await;
    behind.proxy.set(
        When::Always,
        Fault::answer(200, "text/html", "<title>Sign in</title><script>alert(1)</script>"),
    );
    behind.agent.cut_streams();
    let before = behind.proxy.seen().len();
    eventually(PATIENCE, "the page was met, again and again", || behind.proxy.seen().len() >= before + 3)
        .await;
    let got = behind.ask(&[], "tasks/get", &json!({"id": id})).await.json();
    assert_eq!(got["result"]["status"]["state"], json!("working"), "what was known stays: {got}");
    let shown = behind.taskbell.show(&task).await;
    assert!(shown.0.to_string().contains("upstream_not_a2a"), "{}", shown.0);
    behind.proxy.heal();
    behind.agent.finish(&id, "the result");
    behind.taskbell.wait(&task).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_end_or_in_disguise_is_left_at_its_limit() {
    let behind = Behind::start().await;
    let piece = "x".repeat(1 << 20);
    let giant = Fault::Flood { content_type: "application/json".to_owned(), piece, times: 1024 };
    behind.proxy.set(When::Sends, giant);
    for refusal in [behind.send().await, behind.stream().await] {
        assert!([-32006, -32603].contains(&code(&refusal)), "{refusal}");
    }
    assert!(behind.proxy.flooded() < 200 << 20, "left early: {} octets", behind.proxy.flooded());
    behind.proxy.heal();
    let headers = vec![("Content-Encoding".to_owned(), "gzip".to_owned())];
    let (content_type, body) = ("application/json".to_owned(), "not gzip at all".to_owned());
    behind.proxy.set(When::Sends, Fault::Answer { status: 200, content_type, headers, body });
    for refusal in [behind.send().await, behind.stream().await] {
        assert!([-32006, -32603].contains(&code(&refusal)), "{refusal}");
    }
    let asked_for = behind.proxy.seen().into_iter().find(|seen| seen.is_send()).expect("a send").head;
    let plain = asked_for.to_lowercase();
    assert!(!plain.contains("accept-encoding") || plain.contains("accept-encoding: identity"), "{asked_for}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_whose_answer_is_lost_is_never_repeated_and_says_that_nobody_knows() {
    let behind = Behind::start().await;
    behind.proxy.set(When::Sends, Fault::SwallowAnswer);
    let refusal = behind.send().await;
    assert_eq!(code(&refusal), -32603, "{refusal}");
    assert!(refusal.to_string().contains("may or may not"), "{refusal}");
    behind.proxy.assert_sent_once_each(1);
}
