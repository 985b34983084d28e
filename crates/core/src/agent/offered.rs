//! The card of an agent as the gateway offers it: what the agent says of itself and its skills, with our
//! addresses, our scheme and what we can do in place of what it can.
//!
//! Only members that a version names are taken over, extensions among them: their headers are passed on. Signatures
//! are not: they would be wrong. Neither are the agent's own schemes, whose credentials are ours alone.

use serde_json::{Map, Value, json};

use crate::extensions;

/// What is offered whatever the agent can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer<'a> {
    /// Where it is called, without a slash at its end.
    pub base: &'a str,
    /// The name for an agent that has no card.
    pub name: &'a str,
    pub push: bool,
    pub extended_card: bool,
}

/// One document that clients of both versions read.
pub fn card(agents: Option<&Value>, offer: Offer<'_>) -> Value {
    let empty = Map::new();
    let agents = agents.and_then(Value::as_object).unwrap_or(&empty);
    let text = |name: &str| agents.get(name).and_then(Value::as_str).map(str::to_owned);
    let modes = |camel: &str, snake: &str| {
        let listed = agents.get(camel).or_else(|| agents.get(snake)).and_then(Value::as_array);
        let modes: Vec<&str> = listed.into_iter().flatten().filter_map(Value::as_str).collect();
        if modes.is_empty() { json!(["text/plain"]) } else { json!(modes) }
    };
    let rpc = format!("{}/", offer.base);
    let mut card = json!({
        "name": text("name").unwrap_or_else(|| offer.name.to_owned()),
        "description": text("description").unwrap_or_else(|| format!("The agent {}.", offer.name)),
        "version": text("version").unwrap_or_else(|| "0".to_owned()),
        "supportedInterfaces": [
            { "url": rpc, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
            { "url": rpc, "protocolBinding": "JSONRPC", "protocolVersion": "0.3" },
            { "url": offer.base, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0" },
        ],
        "url": rpc,
        "preferredTransport": "JSONRPC",
        "protocolVersion": "0.3.0",
        "additionalInterfaces": [{ "url": rpc, "transport": "JSONRPC" }],
        "capabilities": {
            "streaming": true,
            "pushNotifications": offer.push,
            "extendedAgentCard": offer.extended_card,
        },
        "supportsAuthenticatedExtendedCard": offer.extended_card,
        "defaultInputModes": modes("defaultInputModes", "default_input_modes"),
        "defaultOutputModes": modes("defaultOutputModes", "default_output_modes"),
        "skills": skills(agents),
        // Scheme and requirement hold both encodings: clients look for their own key.
        "securitySchemes": { "bearer": {
            "httpAuthSecurityScheme": { "scheme": "Bearer" },
            "type": "http",
            "scheme": "Bearer",
        }},
        "securityRequirements": [{ "schemes": { "bearer": { "list": [] } } }],
        "security": [{ "bearer": [] }],
    });
    let extensions = extensions(agents);
    if !extensions.is_empty() {
        card["capabilities"]["extensions"] = Value::Array(extensions);
    }
    if let Some(provider) = agents.get("provider").and_then(provider) {
        card["provider"] = provider;
    }
    for name in ["documentationUrl", "iconUrl"] {
        if let Some(url) = text(name) {
            card[name] = json!(url);
        }
    }
    card
}

fn provider(value: &Value) -> Option<Value> {
    let text = |name: &str| value.get(name)?.as_str();
    Some(json!({ "organization": text("organization")?, "url": text("url").unwrap_or_default() }))
}

/// Extensions as a list of URIs can ask for them; one that cannot be asked for is none.
fn extensions(agents: &Map<String, Value>) -> Vec<Value> {
    let listed =
        agents.get("capabilities").and_then(|stated| stated.get("extensions")).and_then(Value::as_array);
    let extension = |value: &Value| {
        let uri = value.get("uri").and_then(Value::as_str)?;
        let read = extensions::read([uri.as_bytes()]).ok()?;
        if read != [uri] {
            return None;
        }
        let mut extension = json!({ "uri": uri });
        if let Some(description) = value.get("description").and_then(Value::as_str) {
            extension["description"] = json!(description);
        }
        if value.get("required").and_then(Value::as_bool) == Some(true) {
            extension["required"] = json!(true);
        }
        if let Some(params) = value.get("params").filter(|params| params.is_object()) {
            extension["params"] = params.clone();
        }
        Some(extension)
    };
    listed.into_iter().flatten().filter_map(extension).collect()
}

/// Skills with all that is required of them; one without an id is no skill.
fn skills(agents: &Map<String, Value>) -> Value {
    let listed = agents.get("skills").and_then(Value::as_array);
    let skill = |value: &Value| {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let texts = |name: &str| -> Vec<String> {
            let items = value.get(name).and_then(Value::as_array);
            items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let id = text("id").filter(|id| !id.is_empty())?;
        let mut skill = json!({
            "id": id,
            "name": text("name").unwrap_or_else(|| id.clone()),
            "description": text("description").unwrap_or_default(),
            "tags": texts("tags"),
        });
        for name in ["examples", "inputModes", "outputModes"] {
            let items = texts(name);
            if !items.is_empty() {
                skill[name] = json!(items);
            }
        }
        Some(skill)
    };
    Value::Array(listed.into_iter().flatten().filter_map(skill).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentCard;

    const OFFER: Offer<'static> = Offer {
        base: "http://127.0.0.1:7420/agents/builder",
        name: "builder",
        push: true,
        extended_card: false,
    };

    fn agents() -> Value {
        json!({
            "name": "Builder", "description": "Builds.", "version": "7", "url": "http://0.0.0.0:8001/",
            "supportedInterfaces": [{"url":"http://localhost:8001/agents/builder/","protocolBinding":"GRPC"}],
            "capabilities": {"streaming": false, "extensions":[
                {"uri":"https://x.example/e","required":true,"params":{"a":1},"somethingNew":1}, {"uri":"no uri"}, {}]},
            "signatures": [{"protected":"e30","signature":"c2ln"}],
            "securitySchemes": {"k": {"type":"apiKey","in":"header","name":"X-Secret-Name"}},
            "defaultInputModes": ["text/plain","image/png"], "defaultOutputModes": [],
            "skills": [{"id":"s","name":"S","tags":["t"],"security":[{"k":[]}],"examples":["x"]}, {"name":"no id"}],
            "provider": {"organization":"Example","url":"https://x.example"},
            "somethingNew": {"a":1},
        })
    }

    #[test]
    fn what_the_agent_says_of_itself_stays_and_where_it_is_does_not() {
        let offered = card(Some(&agents()), OFFER);
        assert_eq!((&offered["name"], &offered["version"]), (&json!("Builder"), &json!("7")));
        assert_eq!(
            offered["skills"],
            json!([{"id":"s","name":"S","description":"","tags":["t"],"examples":["x"]}])
        );
        assert_eq!(offered["defaultInputModes"], json!(["text/plain", "image/png"]));
        assert_eq!(offered["defaultOutputModes"], json!(["text/plain"]));
        let text = offered.to_string();
        for gone in ["8001", "signatures", "X-Secret-Name", "no uri", "somethingNew", "GRPC"] {
            assert!(!text.contains(gone), "{gone} in {text}");
        }
    }

    #[test]
    fn extensions_that_can_be_asked_for_stay() {
        let offered = card(Some(&agents()), OFFER);
        assert_eq!(
            offered["capabilities"]["extensions"],
            json!([{"uri":"https://x.example/e","required":true,"params":{"a":1}}])
        );
        assert_eq!(card(None, OFFER)["capabilities"].get("extensions"), None);
    }

    #[test]
    fn streams_are_offered_for_agents_without_them_and_every_address_is_ours() {
        let read = AgentCard::from_value(card(Some(&agents()), OFFER)).unwrap();
        assert!(read.capabilities.streaming && read.capabilities.push_notifications);
        assert!(read.interfaces.iter().all(|interface| interface.url.starts_with(OFFER.base)));
        assert_eq!(read.interfaces.len(), 3, "{:?}", read.interfaces);
        assert_eq!(read.signatures, 0);
    }

    #[test]
    fn an_agent_without_a_card_is_offered_under_the_users_name_for_it() {
        let offered = card(None, OFFER);
        assert_eq!((&offered["name"], &offered["skills"]), (&json!("builder"), &json!([])));
        assert!(AgentCard::from_value(offered).is_ok());
    }
}
