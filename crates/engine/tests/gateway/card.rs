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
