//! The agent's card: one document that clients of both versions read.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use crate::extensions::Extensions;

/// The paths it is served at: today's, and that of 0.2 which old clients still ask for.
pub const PATHS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// The path below which HTTP+JSON of 1.0 is served.
pub const REST_PATH: &str = "/rest";

/// `base` without a slash at its end.
pub fn card(base: &str, wants_token: bool, extensions: &Extensions) -> Value {
    let rpc = format!("{base}/");
    let rest = format!("{base}{REST_PATH}");
    let mut card = json!({
        "name": "Taskbell demo agent",
        "description": "Works through a short script and tells of every step. Any text gets a friendly run; \
                        words such as steps=5 ask=2 say what is to happen.",
        "version": env!("CARGO_PKG_VERSION"),
        "supportedInterfaces": [
            { "url": rpc, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
            { "url": rpc, "protocolBinding": "JSONRPC", "protocolVersion": "0.3" },
            { "url": rest, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0" },
        ],
        "url": rpc,
        "preferredTransport": "JSONRPC",
        "protocolVersion": "0.3.0",
        "additionalInterfaces": [{ "url": rpc, "transport": "JSONRPC" }],
        "capabilities": { "streaming": true, "pushNotifications": true },
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{
            "id": "script",
            "name": "Pretend to work",
            "description": "Runs a scripted task with steps, questions and an answer.",
            "tags": ["demo", "test"],
            "examples": ["What should I know about cats?", "steps=5 interval=1 ask=3"],
        }],
    });
    if !extensions.0.is_empty() {
        card["capabilities"]["extensions"] = extensions.in_card();
    }
    if wants_token {
        // Scheme and requirement hold both encodings: clients look for their own key.
        card["securitySchemes"] = json!({ "bearer": {
            "httpAuthSecurityScheme": { "scheme": "Bearer" },
            "type": "http",
            "scheme": "Bearer",
        }});
        card["securityRequirements"] = json!([{ "schemes": { "bearer": { "list": [] } } }]);
        card["security"] = json!([{ "bearer": [] }]);
    }
    card
}

/// The entity tag of a document.
pub fn entity_tag(document: &str) -> String {
    let mut hasher = DefaultHasher::new();
    document.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_names_what_it_wants_in_both_encodings_and_nothing_where_it_wants_nothing() {
        let open = card("http://127.0.0.1:1", false, &Extensions(Vec::new()));
        assert!(open.get("security").is_none() && open.get("securitySchemes").is_none());
        let closed = card("http://127.0.0.1:1", true, &Extensions(Vec::new()));
        assert_eq!(closed["securitySchemes"]["bearer"]["type"], json!("http"));
        assert_eq!(closed["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]["scheme"], json!("Bearer"));
        assert_ne!(entity_tag(&open.to_string()), entity_tag(&closed.to_string()));
    }
}
