//! The card: found without a key, ours in every address, honest about what is offered.

use serde_json::{Value, json};
use taskbell_core::agent::AgentCard;

use crate::support::World;

#[tokio::test]
async fn the_card_is_for_everybody_at_both_paths_and_names_our_addresses_alone() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for path in ["/.well-known/agent-card.json", "/.well-known/agent.json"] {
        let answer =
            client.request(reqwest::Method::GET, path).header("authorization", "").send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        let tag = answer.headers()["etag"].clone();
        assert_eq!(answer.headers()["vary"], "A2A-Version");
        let text = answer.text().await.unwrap();
        assert!(!text.contains(&world.agent().local_addr().port().to_string()), "{text}");
        let card = AgentCard::from_value(serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(card.name.as_deref(), Some("Taskbell demo agent"));
        assert!(
            card.capabilities.streaming && card.interfaces.iter().all(|at| at.url.starts_with(&client.base))
        );
        let again =
            client.request(reqwest::Method::GET, path).header("if-none-match", tag).send().await.unwrap();
        assert_eq!(again.status(), 304);
    }
    let answer = client.request(reqwest::Method::POST, "/.well-known/agent-card.json").send().await.unwrap();
    assert_eq!(answer.status(), 405);
}

#[tokio::test]
async fn an_agent_that_is_not_set_up_has_no_card() {
    let world = World::new().await;
    let mut client = world.client("editor").await;
    for name in ["nobody", "UPPER", "a%2Fb", "..%2f"] {
        client.base = format!("{}/agents/{name}", world.address());
        let answer =
            client.request(reqwest::Method::GET, "/.well-known/agent-card.json").send().await.unwrap();
        assert_eq!(answer.status(), 404, "{name}");
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["error"]["code"], json!("unknown_agent"));
    }
}

/// An agent that shows more to who is authenticated.
async fn agent_with_more() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let skill = |id: &str| json!({"id": id, "name": id, "description": "", "tags": []});
    let card = json!({"name": "more", "description": "", "version": "1", "skills": [skill("for all")],
        "capabilities": {"extendedAgentCard": true}, "defaultInputModes": ["text/plain"],
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]});
    let mut extended = card.clone();
    extended["skills"] = json!([skill("for all"), skill("for some")]);
    extended["securitySchemes"] =
        json!({"k": {"apiKeySecurityScheme": {"name": "X-Of-The-Agent", "location": "header"}}});
    extended["signatures"] = json!([{"protected": "e30", "signature": "c2ln"}]);
    let answer = async move |axum::Json(asked): axum::Json<Value>| {
        axum::Json(if asked["method"] == "GetExtendedAgentCard" {
            json!({"jsonrpc": "2.0", "id": asked["id"], "result": extended})
        } else {
            let error = json!({"code": -32001, "message": "task not found"});
            json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})
        })
    };
    let router = axum::Router::new()
        .route("/", axum::routing::post(answer))
        .route("/.well-known/agent-card.json", axum::routing::get(async move || axum::Json(card)));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

#[tokio::test]
async fn an_extended_card_is_for_clients_and_rewritten_like_the_public_one() {
    let world = World::new().await;
    world.add_agent("more", &agent_with_more().await).await;
    let mut client = world.client("editor").await;
    client.base = client.base.replace("/agents/demo", "/agents/more");
    let public = client.request(reqwest::Method::GET, "/.well-known/agent-card.json").send().await.unwrap();
    let public: Value = public.json().await.unwrap();
    assert_eq!(public["skills"].as_array().unwrap().len(), 1);
    assert_eq!(public["capabilities"]["extendedAgentCard"], json!(true));
    assert_eq!(public["supportsAuthenticatedExtendedCard"], json!(true));
    let by_path = client.request(reqwest::Method::GET, "/extendedAgentCard").send().await.unwrap();
    let by_path: Value = by_path.json().await.unwrap();
    for extended in [
        client.call("GetExtendedAgentCard", json!({})).await,
        client.call("agent/getAuthenticatedExtendedCard", json!({})).await,
        by_path,
    ] {
        assert_eq!(extended["skills"][1]["id"], json!("for some"), "{extended}");
        assert_eq!(extended["supportedInterfaces"], public["supportedInterfaces"], "our addresses");
        assert_eq!(extended["securitySchemes"], public["securitySchemes"], "our scheme");
        assert!(extended.get("signatures").is_none(), "{extended}");
    }
    client.key = "tbk_nobody".to_owned();
    let refused = client.request(reqwest::Method::GET, "/extendedAgentCard").send().await.unwrap();
    assert_eq!(refused.status(), 401);
}
