//! Extensions, both ways: what a client asks for reaches its agent, and what the agent activates reaches the client.

use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use taskbell_core::dialect::Dialect;
use taskbell_demo_agent::{DeclaredExtension, DemoAgent, Options};

use crate::support::{BOTH, Client, World};

const OFFERED: &str = "https://extensions.example/trace/v1";
const REQUIRED: &str = "urn:example:receipts";

/// The extension's name in the words of the client.
const NAMES: [&str; 2] = ["x-a2a-extensions", "a2a-extensions"];

struct Scene {
    world: World,
    client: Client,
    _agent: DemoAgent,
}

impl Scene {
    async fn new() -> Self {
        let world = World::new().await;
        let extension = |uri: &str, required| DeclaredExtension { uri: uri.to_owned(), required };
        let extensions = vec![extension(OFFERED, false), extension(REQUIRED, true)];
        let agent = taskbell_demo_agent::start(Options { extensions, ..Options::default() }).await.unwrap();
        world.add_agent("extended", agent.base_url()).await;
        let mut client = world.client("editor").await;
        client.base = client.base.replace("/agents/demo", "/agents/extended");
        Self { world, client, _agent: agent }
    }

    /// Headers and document of a call with this header.
    async fn ask(&self, header: (&str, &str), method: &str, params: Value) -> (HeaderMap, Value) {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let answer = self.client.post().header(header.0, header.1).json(&body).send().await.unwrap();
        let headers = answer.headers().clone();
        let text = answer.text().await.unwrap();
        // Of a stream the first event.
        let text = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
        (headers, serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}")))
    }
}

fn activated(headers: &HeaderMap) -> Vec<(&str, &str)> {
    let of = |name: &'static str| headers.get(name).map(|value| (name, value.to_str().unwrap()));
    NAMES.into_iter().filter_map(of).collect()
}

#[tokio::test]
async fn what_a_client_asks_for_is_activated_by_its_agent_whatever_either_speaks() {
    let scene = Scene::new().await;
    let asked = format!("{OFFERED}, urn:nobody:knows,{REQUIRED}");
    let both = format!("{OFFERED}, {REQUIRED}");
    let name = taskbell_core::ids::AgentName::new("extended").unwrap();
    for agents in [Dialect::V03, Dialect::V1] {
        scene.world.engine().engine().pin_dialect(&name, Some(agents)).await.unwrap();
        for words in BOTH {
            let told_by = words.method(NAMES[0], NAMES[1]);
            for (old, new) in [("message/send", "SendMessage"), ("message/stream", "SendStreamingMessage")] {
                for asked_by in NAMES {
                    let params = json!({"message": words.message("steps=1 interval=0.01")});
                    let method = words.method(old, new);
                    let (headers, answer) = scene.ask((asked_by, &asked), method, params).await;
                    assert!(answer.get("result").is_some(), "{method} {agents:?}: {answer}");
                    assert_eq!(activated(&headers), [(told_by, both.as_str())], "{method} {agents:?}");
                }
            }
        }
    }
    let told_by = NAMES[1];
    let message = json!({"message": BOTH[1].message("steps=1 interval=0.01")});
    let sent = scene.client.request(reqwest::Method::POST, "/message:send").header(told_by, &asked);
    let answer = sent.json(&message).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(activated(answer.headers()), [(told_by, both.as_str())], "over HTTP+JSON");
}

#[tokio::test]
async fn a_required_extension_that_is_not_asked_for_is_the_agents_refusal_in_the_clients_words() {
    let scene = Scene::new().await;
    for words in BOTH {
        for (old, new) in [("message/send", "SendMessage"), ("message/stream", "SendStreamingMessage")] {
            let params = json!({"message": words.message("steps=1")});
            let (headers, answer) = scene.ask((NAMES[1], OFFERED), words.method(old, new), params).await;
            assert_eq!(answer["error"]["code"], -32008, "{answer}");
            assert_eq!(answer["id"], 7);
            assert!(answer["error"]["message"].as_str().unwrap().contains(REQUIRED), "{answer}");
            assert_eq!(activated(&headers).len(), 1, "what the agent did activate is told all the same");
        }
    }
}

#[tokio::test]
async fn a_list_that_is_none_is_refused_and_nothing_is_sent() {
    let scene = Scene::new().await;
    let many = (0..40).map(|number| format!("urn:x:{number}")).collect::<Vec<_>>().join(",");
    for bad in ["no uri", "Bearer abc", many.as_str()] {
        for words in BOTH {
            let params = json!({"message": words.message("steps=1")});
            let method = words.method("message/send", "SendMessage");
            let (headers, answer) = scene.ask((NAMES[0], bad), method, params).await;
            assert_eq!(answer["error"]["code"], -32600, "{bad}: {answer}");
            assert_eq!(activated(&headers), []);
        }
    }
    let listed = scene.client.call("ListTasks", json!({})).await;
    assert_eq!(listed["totalSize"], 0, "{listed}");
}

#[tokio::test]
async fn the_card_names_the_agents_extensions() {
    let scene = Scene::new().await;
    let url = format!("{}/.well-known/agent-card.json", scene.client.base);
    let card =
        scene.client.request(reqwest::Method::GET, "/.well-known/agent-card.json").send().await.unwrap();
    let card: Value = card.json().await.unwrap();
    let expected = json!([{"uri": OFFERED}, {"uri": REQUIRED, "required": true}]);
    assert_eq!(card["capabilities"]["extensions"], expected, "{url}");
}
