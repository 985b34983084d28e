//! Agents that answer what they should not: their client learns of it, and learns nothing else.

use serde_json::{Value, json};
use taskbell_tests::odd_servers::Monotone;
use taskbell_tests::raw_http::{RawAnswer, exchange, post};
use taskbell_tests::{Fault, FaultProxy, GatewayA, Taskbell, When};

use crate::support::{message, new_key};

const TOKEN: &str = "token-of-the-agent-itself";
const PATH: &str = "/agents/a/";

/// An agent that wants a token, a proxy before it, and a client of the gateway.
struct Behind {
    _agent: GatewayA,
    proxy: FaultProxy,
    taskbell: Taskbell,
    key: String,
}

impl Behind {
    async fn start() -> Self {
        let agent = GatewayA::start(TOKEN).await;
        let proxy = FaultProxy::before(agent.port()).await;
        let taskbell = Taskbell::start().await;
        taskbell.add_agent_with_token("a", &proxy.url(), TOKEN).await;
        let key = new_key(&taskbell, "tester").await;
        Self { _agent: agent, proxy, taskbell, key }
    }

    async fn ask(&self, headers: &[&str], method: &str, params: &Value) -> RawAnswer {
        let address = self.taskbell.ready().gateway.trim_start_matches("http://");
        let bearer = format!("Authorization: Bearer {}", self.key);
        let mut all = vec![bearer.as_str()];
        all.extend(headers);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let answer = exchange(address, &post(address, PATH, &all, body.as_bytes())).await;
        for text in [&answer.head, &answer.body] {
            assert!(!text.contains(TOKEN), "the agent's token reaches a client: {answer:?}");
        }
        answer
    }

    /// A send that waits for nothing.
    async fn send(&self) -> Value {
        let params = json!({"message": message(), "configuration": {"blocking": false}});
        let answer = self.ask(&[], "message/send", &params).await;
        assert_eq!(answer.status, 200, "our key is right, whatever the agent says of ours: {answer:?}");
        answer.json()
    }

    /// The same with a stream, whose first frame or refusal is returned.
    async fn stream(&self) -> Value {
        let answer = self.ask(&[], "message/stream", &json!({"message": message()})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let first = answer.body.lines().find_map(|line| line.strip_prefix("data: "));
        serde_json::from_str(first.unwrap_or(&answer.body)).unwrap_or_else(|_| panic!("no JSON: {answer:?}"))
    }
}

fn code(document: &Value) -> i64 {
    document["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {document}"))
}

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
