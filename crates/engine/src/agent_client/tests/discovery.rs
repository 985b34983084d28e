//! Finding an agent from what a user typed.

use taskbell_core::agent::CardOrigin;

use super::raw::{RawAgent, Received, answer, answer_with, finish, json_answer};
use super::*;
use crate::agent_client::{CallError, Confidence, Discovery, DiscoveryOptions, discover, refresh_card};

const CARD: &str = "GET /.well-known/agent-card.json HTTP/1.1";

/// Answers card requests with what `card` gives, and calls with what `call` gives.
async fn site(
    card: impl Fn(&Received) -> Option<Vec<u8>> + Send + Sync + 'static,
    call: impl Fn(&Received) -> Vec<u8> + Send + Sync + 'static,
) -> RawAgent {
    RawAgent::start(move |received, mut socket| {
        let missing = || answer("404 Not Found", "text/html", b"<h1>Not Found</h1>");
        let octets = match received.line.starts_with("GET ") && !received.line.contains("/tasks/") {
            true => card(&received).unwrap_or_else(missing),
            false => call(&received),
        };
        async move { finish(&mut socket, &octets).await }
    })
    .await
}

fn speaks(method: &'static str) -> impl Fn(&Received) -> Vec<u8> + Send + Sync {
    move |received| {
        let request = received.json();
        let error = match request["method"] == method {
            true => json!({"code":-32001,"message":"Task not found"}),
            false => json!({"code":-32601,"message":"Method not found"}),
        };
        json_answer(&json!({"jsonrpc":"2.0","id":request["id"],"error":error}))
    }
}

fn old_card(url: &str) -> Value {
    json!({"name":"peer","url":url,"protocolVersion":"0.3.0","capabilities":{"streaming":true},"skills":[]})
}

fn options() -> DiscoveryOptions {
    DiscoveryOptions { plain_http: PlainHttp::LoopbackOnly, card_origin: CardOrigin::Record, only: None }
}

async fn look_with(
    url: &str,
    source: Arc<dyn CredentialSource>,
    options: &DiscoveryOptions,
) -> Result<Discovery, CallError> {
    let http = Http::new(HttpSettings { limits: short_limits(), proxy: None }).unwrap();
    discover(&http, &AgentName::new("builder").unwrap(), &Url::parse(url).unwrap(), source, options).await
}

async fn look(url: &str) -> Result<Discovery, CallError> {
    look_with(url, Arc::new(FixedCredential(None)), &options()).await
}

fn root(agent: &RawAgent) -> String {
    agent.url.trim_end_matches("a2a").to_owned()
}

#[tokio::test]
async fn a_card_is_found_and_the_dialect_it_declares_is_confirmed() {
    let agent =
        site(|received| (received.line == CARD).then(|| json_answer(&old_card("/rpc"))), speaks("tasks/get"))
            .await;
    let found = look(&root(&agent)).await.unwrap();
    assert_eq!(found.endpoint.interface_url.as_str(), format!("{}rpc", root(&agent)));
    assert_eq!((found.endpoint.dialect, found.confidence), (Dialect::V03, Confidence::Confirmed));
    assert_eq!(found.foreign_origin, None);
    let [card, probe] = [agent.request(0), agent.request(1)];
    assert_eq!((card.line.as_str(), card.header("a2a-version")), (CARD, Some("1.0")));
    assert_eq!(
        (probe.json()["method"].as_str(), probe.header("a2a-version")),
        (Some("tasks/get"), Some("0.3"))
    );
    assert_eq!(agent.count(), 2);
}

#[tokio::test]
async fn a_card_that_declares_0_3_while_1_0_is_spoken_is_found_out() {
    let agent =
        site(|received| (received.line == CARD).then(|| json_answer(&old_card("/"))), speaks("GetTask"))
            .await;
    assert_eq!(look(&root(&agent)).await.unwrap().endpoint.dialect, Dialect::V1);
}

#[tokio::test]
async fn an_interface_without_any_card_is_probed_where_it_is() {
    let agent = site(|_| None, speaks("tasks/get")).await;
    let found = look(&agent.url).await.unwrap();
    assert!(found.card.is_none());
    assert_eq!(found.endpoint.interface_url.as_str(), agent.url);
    assert_eq!((found.endpoint.dialect, found.confidence), (Dialect::V03, Confidence::Confirmed));
}

#[tokio::test]
async fn a_card_url_is_fetched_and_nothing_else_is_tried() {
    let agent = site(
        |received| received.line.starts_with("GET /cards/x.json").then(|| json_answer(&old_card("/rpc"))),
        speaks("tasks/get"),
    )
    .await;
    let found = look(&format!("{}cards/x.json?v=1", root(&agent))).await.unwrap();
    assert_eq!(found.endpoint.interface_url.path(), "/rpc");
    assert_eq!(agent.count(), 2);
}

#[tokio::test]
async fn a_server_that_dislikes_the_version_header_is_asked_without() {
    let agent = site(
        |received| match received.header("a2a-version") {
            Some(_) => Some(answer("400 Bad Request", "application/json", b"{}")),
            None => Some(json_answer(&old_card("/"))),
        },
        speaks("tasks/get"),
    )
    .await;
    assert!(look(&root(&agent)).await.unwrap().card.is_some());
}

#[tokio::test]
async fn a_card_that_names_another_origin_moves_neither_calls_nor_credential() {
    let evil = RawAgent::with_result(working()).await;
    let there = evil.url.clone();
    let agent = site(move |_| Some(json_answer(&old_card(&there))), speaks("tasks/get")).await;
    let source = bearer(&agent.url, "canary-token");
    let found = look_with(&root(&agent), source.clone(), &options()).await.unwrap();
    assert_eq!(found.endpoint.interface_url.as_str(), agent.url);
    assert_eq!(found.declared_url.as_str(), evil.url);
    assert!(found.foreign_origin.is_some());
    assert_eq!(evil.count(), 0);
    assert_eq!(agent.request(1).header("authorization"), Some("Bearer canary-token"));
    // Accepted by the user, it is called, and still gets no credential of another origin.
    let accepted = DiscoveryOptions { card_origin: CardOrigin::Use, ..options() };
    let _ = look_with(&root(&agent), source, &accepted).await;
    assert!(evil.count() > 0);
    for index in 0..evil.count() {
        assert_eq!(evil.request(index).header("authorization"), None);
    }
}

#[tokio::test]
async fn an_agent_that_wants_a_credential_first_stays_as_its_card_declares() {
    let agent = site(
        |received| (received.line == CARD).then(|| json_answer(&old_card("/"))),
        |_| answer_with("401 Unauthorized", "www-authenticate: Bearer\r\n", b""),
    )
    .await;
    let found = look(&root(&agent)).await.unwrap();
    assert_eq!((found.endpoint.dialect, found.confidence), (Dialect::V03, Confidence::Declared));
    let hidden = RawAgent::always(answer_with("401 Unauthorized", "", b"")).await;
    assert_eq!(look(&root(&hidden)).await.unwrap_err().code(), "unauthorized");
}

#[tokio::test]
async fn a_web_site_is_no_agent() {
    let page = RawAgent::always(answer("200 OK", "text/html", b"<html>welcome</html>")).await;
    let error = look(&root(&page)).await.unwrap_err();
    assert_eq!(error.code(), "upstream_not_a2a");
    assert!(error.to_string().contains("<html>welcome</html>"), "{error}");
    let moved =
        RawAgent::always(answer_with("302 Found", "location: https://login.example/?next=x\r\n", b"")).await;
    let error = look(&root(&moved)).await.unwrap_err();
    assert_eq!(error.code(), "upstream_redirect");
    assert!(error.to_string().contains("login.example") && !error.to_string().contains("next"), "{error}");
}

#[tokio::test]
async fn a_card_of_a_binding_that_is_not_spoken_says_so() {
    let card = json!({"name":"g","capabilities":{},"supportedInterfaces":[
        {"url":"https://h.example:443","protocolBinding":"GRPC","protocolVersion":"1.0"}]});
    let agent = site(move |_| Some(json_answer(&card)), speaks("GetTask")).await;
    assert_eq!(look(&root(&agent)).await.unwrap_err().code(), "no_interface");
    assert_eq!(agent.count(), 1);
}

#[tokio::test]
async fn a_giant_card_is_not_read() {
    let mut card = old_card("/");
    card["description"] = "x".repeat(2 << 20).into();
    let agent = site(move |_| Some(json_answer(&card)), speaks("tasks/get")).await;
    let found = look(&root(&agent)).await.unwrap();
    assert!(found.card.is_none(), "the interface is still found by asking");
}

#[tokio::test]
async fn an_unreachable_agent_is_said_to_be_so_at_once() {
    let agent = RawAgent::start(|_, socket| async move {
        let _kept_open = socket;
        std::future::pending().await
    })
    .await;
    let started = std::time::Instant::now();
    assert_eq!(look(&root(&agent)).await.unwrap_err().code(), "agent_timed_out");
    assert_eq!(agent.count(), 1, "one silence is enough");
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_card_read_again_is_new_only_if_it_differs() {
    let version = Arc::new(std::sync::atomic::AtomicUsize::new(1));
    let shown = version.clone();
    let agent = site(
        move |_| {
            let mut card = old_card("/");
            card["version"] = shown.load(std::sync::atomic::Ordering::Relaxed).to_string().into();
            Some(json_answer(&card))
        },
        speaks("tasks/get"),
    )
    .await;
    let found = look(&root(&agent)).await.unwrap().card.unwrap();
    let http = Http::new(HttpSettings::default()).unwrap();
    let name = AgentName::new("builder").unwrap();
    let none: Arc<dyn CredentialSource> = Arc::new(FixedCredential(None));
    let again = || refresh_card(&http, &name, &found, none.clone(), PlainHttp::LoopbackOnly);
    assert!(again().await.unwrap().is_none());
    version.store(2, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(again().await.unwrap().unwrap().card.version.as_deref(), Some("2"));
}
