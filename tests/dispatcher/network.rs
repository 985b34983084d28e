//! Over real TLS to public addresses, in a network without a way out.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::stage::{Stage, failed_by, is};
use crate::world::{Network, OTHER, RECEIVER, state_of};

const HOOKS: &str = "hooks.example.com";
const SLOW: &str = "slow.example.net";

/// A listener inside that nothing may ever reach.
pub struct Trap(TcpListener);

impl Trap {
    pub fn set(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a port of one's own network");
        listener.set_nonblocking(true).expect("set");
        Self(listener)
    }

    pub fn saw_nothing(&self) {
        let error = self.0.accept().expect_err("a connection came inside");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}

#[tokio::test]
async fn a_callback_arrives_over_real_tls_whatever_proxy_the_environment_names() {
    let Some(network) = Network::enter("delivery over TLS") else { return };
    network.names(&[(HOOKS, RECEIVER)]);
    let (proxy, trap) = (Trap::set(9), Trap::set(443));
    let mut receiver = network.receiver(&[network.listener(443, &[HOOKS], |_| {})]).await;
    let stage = Stage::start(network.setup()).await;
    let task = stage.task("steps=3 interval=1 chunks=1", &[format!("https://{HOOKS}/ok?x=1")]).await;
    let delivery = stage.delivery(&task, "p-0", "it is delivered", is("delivered")).await;
    let attempt = &delivery["attempts"][0];
    assert_eq!((&attempt["status"], &attempt["address"]), (&json!(200), &json!(RECEIVER)));
    let seen = receiver.until("the end", |seen| state_of(seen) == "TASK_STATE_COMPLETED").await;
    assert_eq!(seen["path"], json!("/ok?x=1"));
    let headers = &seen["headers"];
    assert_eq!((&headers["host"], &headers["authorization"]), (&json!(HOOKS), &json!("Bearer cred-1")));
    assert_eq!(headers["a2a-notification-token"], json!("tok-1"));
    assert_eq!(headers["webhook-id"], delivery["webhookId"]);
    proxy.saw_nothing();
    trap.saw_nothing();
}

#[tokio::test]
async fn a_name_that_leads_inside_later_is_refused_at_every_attempt_and_nothing_is_sent_inside() {
    let Some(network) = Network::enter("rebinding") else { return };
    network.names(&[(HOOKS, RECEIVER), (SLOW, RECEIVER)]);
    let trap = Trap::set(443);
    let mut receiver = network.receiver(&[network.listener(443, &[HOOKS, SLOW], |_| {})]).await;
    let stage = Stage::start(network.setup()).await;
    // Between registration and the first attempt.
    let task = stage.task("steps=300 interval=0.1", &[format!("https://{HOOKS}/ok")]).await;
    network.names(&[(HOOKS, "127.0.0.1"), (SLOW, RECEIVER)]);
    stage.cancel(&task).await;
    let refused = stage.delivery(&task, "p-0", "it is refused", failed_by("dns_forbidden_answer")).await;
    assert_eq!(refused["attempts"][0]["status"], Value::Null);
    // A mixed answer, and at a retry only.
    let task = stage.task("steps=300 interval=0.1", &[format!("https://{SLOW}/500")]).await;
    stage.cancel(&task).await;
    stage.delivery(&task, "p-0", "the first try fails", failed_by("http_500")).await;
    network.names(&[(SLOW, RECEIVER), (SLOW, "127.0.0.1")]);
    stage.delivery(&task, "p-0", "the second is refused", failed_by("dns_forbidden_answer")).await;
    trap.saw_nothing();
    let ends = receiver.seen().await.iter().filter(|seen| state_of(seen) == "TASK_STATE_CANCELED").count();
    assert_eq!(ends, 1, "the first try of the second task, and nothing else");
}

#[tokio::test]
async fn every_way_to_fail_has_its_own_record_and_delays_nobody_else() {
    let Some(network) = Network::enter("failing receivers") else { return };
    network.names(&[(HOOKS, RECEIVER), (SLOW, OTHER), ("good.example.org", RECEIVER)]);
    let trap = Trap::set(443);
    let listeners = [
        network.listener(443, &[HOOKS, SLOW, "good.example.org"], |_| {}),
        network.listener(8444, &[HOOKS], |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1)),
        network.listener(8445, &["other.example.com"], |_| {}),
        network.self_signed(8446, HOOKS),
    ];
    let mut receiver = network.receiver(&listeners).await;
    let stage = Stage::start(network.setup()).await;
    let cases = [
        ("https://slow.example.net/hang", "timeout"),
        ("https://slow.example.net/trickle", "timeout"),
        ("https://hooks.example.com/redirect", "redirect_not_followed"),
        ("https://hooks.example.com:8444/ok", "tls_expired"),
        ("https://hooks.example.com:8445/ok", "tls_wrong_name"),
        ("https://hooks.example.com:8446/ok", "tls_unknown_issuer"),
        ("https://hooks.example.com/500", "http_500"),
        ("https://hooks.example.com/410", "http_410"),
        ("https://hooks.example.com/reset", "connection_closed"),
        ("https://hooks.example.com/later", "http_429"),
    ];
    // One task a case: callbacks about one task to one receiver go one after the other, and a breaker is a receiver's.
    let mut tasks = Vec::new();
    for (url, code) in cases {
        tasks.push((stage.task("steps=9 interval=60", &[url.to_owned()]).await, url, code));
    }
    let huge = stage.task("steps=9 interval=60", &["https://good.example.org/huge".to_owned()]).await;
    let good = stage.task("steps=9 interval=60", &["https://good.example.org/ok".to_owned()]).await;
    stage.cancel(&tasks[0].0).await;
    stage.cancel(&tasks[1].0).await;
    receiver
        .until("a hanging one is being called", |seen| {
            seen["path"] == "/hang" && state_of(seen) == "TASK_STATE_CANCELED"
        })
        .await;
    stage.cancel(&good).await;
    let delivered = stage.delivery(&good, "p-0", "the good one is delivered", is("delivered")).await;
    stage.cancel(&huge).await;
    stage.delivery(&huge, "p-0", "a gigabyte of an answer is no matter", is("delivered")).await;
    for (task, _, _) in tasks.iter().skip(2) {
        stage.cancel(task).await;
        // A breaker would open over so many failures; its user says that the receiver is to be called.
        let targets = stage.taskbell.cli(&["target", "list"]).await.json();
        let of_hooks = |target: &&Value| target["target"] == "https://hooks.example.com";
        for target in targets["items"].as_array().expect("items").iter().filter(of_hooks) {
            let id = target["id"].to_string();
            stage.taskbell.cli(&["target", "resume", &id]).await.exits(0);
        }
        stage
            .delivery(task, "p-0", "it was tried", |delivery| {
                delivery["attempts"].as_array().is_some_and(|all| !all.is_empty()).then_some(())
            })
            .await;
    }
    for (task, url, code) in &tasks {
        let record = stage.delivery(task, "p-0", url, failed_by(code)).await;
        let attempt = &record["attempts"][0];
        assert_eq!(attempt["counted"], json!(true), "{url}: {record}");
        match *code {
            "http_410" => assert_eq!(record["state"], json!("rejected")),
            "http_429" => {
                let (made, due) = (&record["createdAt"], &record["dueAt"]);
                assert!(minutes_between(made, due) >= 59, "{url}: due {due}, made {made}");
            }
            _ => assert_ne!(record["state"], json!("delivered"), "{url}: {record}"),
        }
    }
    let hang = stage.delivery(&tasks[0].0, "p-0", "the hanging one", failed_by("timeout")).await;
    let ended = |record: &Value| record["attempts"][0]["endedAt"].as_str().expect("a time").to_owned();
    assert!(ended(&delivered) < ended(&hang), "the good one did not wait for the hanging one");
    trap.saw_nothing();
}

/// Of two times of one day in RFC 3339, or of two days that follow.
fn minutes_between(one: &Value, other: &Value) -> i64 {
    let minutes = |at: &Value| {
        let text = at.as_str().expect("a time");
        let part = |from: usize| {
            text.get(from..from + 2).and_then(|part| part.parse::<i64>().ok()).expect("a number")
        };
        part(11) * 60 + part(14)
    };
    (minutes(other) - minutes(one)).rem_euclid(24 * 60)
}

#[tokio::test]
async fn a_machine_without_a_network_uses_up_no_try_and_delivers_when_it_is_back() {
    let Some(network) = Network::enter("a pulled cable") else { return };
    network.names(&[(HOOKS, RECEIVER)]);
    let mut receiver = network.receiver(&[network.listener(443, &[HOOKS], |_| {})]).await;
    let stage = Stage::start(network.setup()).await;
    let task = stage.task("steps=300 interval=0.1", &[format!("https://{HOOKS}/ok")]).await;
    network.plug(false);
    stage.cancel(&task).await;
    let waiting = stage
        .delivery(&task, "p-0", "it waits", |delivery| {
            (delivery["waitsFor"] == "offline").then(|| delivery.clone())
        })
        .await;
    assert_eq!((&waiting["tries"], &waiting["state"]), (&json!(0), &json!("queued")));
    network.plug(true);
    let delivered = stage.delivery(&task, "p-0", "it is delivered", is("delivered")).await;
    assert_eq!(delivered["tries"], json!(1));
    receiver.until("the end", |seen| state_of(seen) == "TASK_STATE_CANCELED").await;
}
