//! The public address, tested by a callback of our own through a real web server.

use serde_json::Value;
use taskbell_tests::{Taskbell, wait_until};

use crate::front::{Place, passes};
use crate::stage::{PATIENCE, api};

async fn test(taskbell: &Taskbell) -> (Option<i32>, Value) {
    let output = taskbell.cli(&["push", "test"]).await;
    (output.code, output.json())
}

async fn fails_with(taskbell: &Taskbell, code: &str) {
    let (exit, view) = test(taskbell).await;
    assert_eq!((exit, view["test"].as_str()), (Some(1), Some("failing")), "{view}");
    assert_eq!(view["testFailure"]["code"], code, "{view}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_address_that_breaks_is_noticed_named_and_noticed_again_when_it_is_back() {
    let Some(place) = Place::new() else { return };
    let taskbell = place.setup().arg("--public-url").arg(&place.url("/taskbell")).start().await;
    let inbox = taskbell.ready().inbox.clone();
    let front = place.serve(&passes("/taskbell", &inbox)).await;
    let (exit, view) = test(&taskbell).await;
    assert_eq!((exit, view["test"].as_str()), (Some(0), Some("reached")), "{view}");
    assert_eq!(view["source"], "start");
    let doctor = taskbell.cli_text(&["doctor"]).await;
    assert!(doctor.stdout.contains("a callback of our own arrived"), "{}", doctor.stdout);
    let items = taskbell.cli(&["inbox", "list"]).await.items();
    assert!(items.is_empty(), "the test leaves nothing behind: {items:?}");

    front.stop().await;
    fails_with(&taskbell, "unreachable").await;
    let doctor = taskbell.cli_text(&["doctor"]).await;
    assert!(doctor.stdout.contains("do not arrive"), "{}", doctor.stdout);

    let front = place.serve(&passes("/taskbell", "http://127.0.0.1:9")).await;
    fails_with(&taskbell, "tunnel_broken").await;
    front.stop().await;
    let front =
        place.serve(&format!("location / {{ proxy_pass {inbox}; proxy_set_header Host $http_host; }}")).await;
    let (exit, view) = test(&taskbell).await;
    assert_eq!(exit, Some(0), "the inbox knows its prefix where a proxy leaves it on: {view}");
    front.stop().await;
    let front = place.serve("location / { return 404; }").await;
    fails_with(&taskbell, "not_found").await;
    front.stop().await;
    let _front = place.serve("location / { return 200 'welcome'; }").await;
    fails_with(&taskbell, "not_ours").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repaired_public_address_is_found_without_being_asked() {
    let Some(place) = Place::new() else { return };
    let taskbell = place.setup().arg("--public-url").arg(&place.url("")).start().await;
    wait_until(PATIENCE, "the broken address is noticed", async || {
        (api(&taskbell, "reachability").await["test"] == "failing").then_some(())
    })
    .await;
    let _front = place.serve(&passes("", &taskbell.ready().inbox)).await;
    wait_until(PATIENCE, "and that it works", async || {
        (api(&taskbell, "reachability").await["test"] == "reached").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_answers_at_the_public_address_is_named() {
    let Some(place) = Place::new() else { return };
    let taskbell = place.setup().arg("--public-url").arg(&place.url("")).start().await;
    let (inbox, gateway) = (taskbell.ready().inbox.clone(), taskbell.ready().gateway.clone());
    let callbacks =
        format!("location /a2a/callbacks/ {{ proxy_pass {inbox}; proxy_set_header Host $http_host; }}\n");
    // As a careless configuration does it, and as one that also pretends to be this machine.
    for host in ["$http_host", gateway.trim_start_matches("http://")] {
        let rest = format!("location / {{ proxy_pass {gateway}; proxy_set_header Host {host}; }}\n");
        let front = place.serve(&format!("{callbacks}{rest}")).await;
        fails_with(&taskbell, "gateway_exposed").await;
        front.stop().await;
    }
    let _front = place.serve(&callbacks).await;
    let (exit, view) = test(&taskbell).await;
    assert_eq!(exit, Some(0), "callbacks alone are right: {view}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_no_agent_can_call_is_refused_with_the_reason() {
    let taskbell = Taskbell::start().await;
    for (address, reason) in [
        ("http://inbox.example.com", "https"),
        ("https://127.0.0.1:7421", "this machine"),
        ("https://user:secret@inbox.example.com", "no user name"),
    ] {
        let refused = taskbell.cli(&["settings", "set", "public_url", address]).await;
        refused.error_code(2);
        assert!(refused.stdout.contains(reason), "{refused:?}");
    }
    let none = taskbell.cli(&["push", "test"]).await;
    assert_eq!(none.error_code(1), "no_address");
}
