//! Reads an agent card of 0.3, of 1.0, of both at once, and as JavaScript SDKs print their own unions.
//!
//! A member of the wrong type counts as absent: a card is shown and probed, never trusted, so a
//! flaw in its skills is no reason to refuse the agent. Texts are as received; whoever shows them
//! cleans them first. Signatures are not verified here.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::interface::DeclaredVersion;

/// A card, and the document it was read from.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentCard {
    pub name: Option<String>,
    pub description: Option<String>,
    /// The agent's own version, not the protocol's.
    pub version: Option<String>,
    pub provider: Option<String>,
    pub documentation_url: Option<String>,
    /// In the card's order of preference: 1.0's list, then what 0.3's members add to it.
    pub interfaces: Vec<DeclaredInterface>,
    pub capabilities: Capabilities,
    pub skills: Vec<Skill>,
    pub default_input_modes: Vec<String>,
    pub default_output_modes: Vec<String>,
    pub security_schemes: BTreeMap<String, SecurityScheme>,
    /// One of these must be met. None at all: no credential is asked for.
    pub security: Vec<SecurityRequirement>,
    /// How many signatures the card carries. They say nothing until a key is pinned.
    pub signatures: usize,
    pub raw: Value,
}

/// Where an agent says it can be called, word for word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredInterface {
    pub url: String,
    pub binding: String,
    pub version: DeclaredVersion,
    /// Goes into every request where set (1.0 §8.3.2). JavaScript SDKs write an empty one for none.
    pub tenant: Option<String>,
}

/// What the agent says it can do. Both dialects mean "no" by silence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    pub streaming: bool,
    pub push_notifications: bool,
    pub extended_card: bool,
    pub extensions: Vec<Extension>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    pub uri: String,
    pub required: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
}

/// How the agent wants to be authenticated to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecurityScheme {
    /// `place` is `header`, `query` or `cookie`, as received.
    ApiKey {
        name: String,
        place: String,
    },
    /// An HTTP authentication scheme; compare without regard to case.
    Http {
        scheme: String,
    },
    OAuth2 {
        flows: Vec<String>,
    },
    OpenIdConnect {
        url: String,
    },
    MutualTls,
    /// A kind that no version names.
    Other {
        kind: String,
    },
}

/// Schemes that are needed together, each with its scopes.
pub type SecurityRequirement = BTreeMap<String, Vec<String>>;

/// Why a document is no agent card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CardFault {
    #[error("agent card is not a JSON object")]
    NotAnObject,
    /// An object about something else, such as a web framework's 404.
    #[error(
        "document has neither an interface nor a name with capabilities or skills, so it is no agent card"
    )]
    NotACard,
}

impl AgentCard {
    pub fn from_value(raw: Value) -> Result<Self, CardFault> {
        let Some(card) = raw.as_object() else { return Err(CardFault::NotAnObject) };
        let described = |name| member(card, &[name]).is_some();
        let has_address = text(card, &["url"]).is_some()
            || !list(card, &["supportedInterfaces", "supported_interfaces"]).is_empty();
        if !has_address && !(described("name") && (described("capabilities") || described("skills"))) {
            return Err(CardFault::NotACard);
        }
        Ok(Self {
            name: text(card, &["name"]),
            description: text(card, &["description"]),
            version: text(card, &["version"]),
            provider: object(card, &["provider"]).and_then(|provider| text(provider, &["organization"])),
            documentation_url: text(card, &["documentationUrl", "documentation_url"]),
            interfaces: interfaces(card),
            capabilities: capabilities(card),
            skills: objects(card, &["skills"]).filter_map(skill).collect(),
            default_input_modes: texts(member(card, &["defaultInputModes", "default_input_modes"])),
            default_output_modes: texts(member(card, &["defaultOutputModes", "default_output_modes"])),
            security_schemes: security_schemes(card),
            security: security(card),
            signatures: list(card, &["signatures"]).len(),
            raw,
        })
    }
}

fn interfaces(card: &Map<String, Value>) -> Vec<DeclaredInterface> {
    let mut found: Vec<DeclaredInterface> = objects(card, &["supportedInterfaces", "supported_interfaces"])
        .filter_map(|entry| {
            Some(DeclaredInterface {
                url: text(entry, &["url"])?,
                binding: text(entry, &["protocolBinding", "protocol_binding", "transport"])
                    .unwrap_or_else(|| "JSONRPC".to_owned()),
                version: DeclaredVersion::read(member(entry, &["protocolVersion", "protocol_version"])),
                tenant: text(entry, &["tenant"]),
            })
        })
        .collect();

    // 0.3 states one version for all its interfaces, and 0.3 where it states none.
    let version = match DeclaredVersion::read(member(card, &["protocolVersion", "protocol_version"])) {
        DeclaredVersion::Unstated => DeclaredVersion::V03,
        stated => stated,
    };
    let main = text(card, &["url"]).map(|url| {
        let binding = text(card, &["preferredTransport", "preferred_transport"]);
        (url, binding.unwrap_or_else(|| "JSONRPC".to_owned()))
    });
    let others = objects(card, &["additionalInterfaces", "additional_interfaces"])
        .filter_map(|entry| Some((text(entry, &["url"])?, text(entry, &["transport", "protocolBinding"])?)));
    for (url, binding) in main.into_iter().chain(others) {
        let known = |known: &DeclaredInterface| {
            known.url == url && known.binding.eq_ignore_ascii_case(&binding) && known.version == version
        };
        if !found.iter().any(known) {
            found.push(DeclaredInterface { url, binding, version: version.clone(), tenant: None });
        }
    }
    found
}

fn capabilities(card: &Map<String, Value>) -> Capabilities {
    let empty = Map::new();
    let stated = object(card, &["capabilities"]).unwrap_or(&empty);
    Capabilities {
        streaming: flag(stated, &["streaming"]),
        push_notifications: flag(stated, &["pushNotifications", "push_notifications"]),
        extended_card: flag(stated, &["extendedAgentCard", "extended_agent_card"])
            || flag(card, &["supportsAuthenticatedExtendedCard", "supports_authenticated_extended_card"])
            || flag(card, &["supportsExtendedAgentCard"]),
        extensions: objects(stated, &["extensions"])
            .filter_map(|entry| {
                Some(Extension { uri: text(entry, &["uri"])?, required: flag(entry, &["required"]) })
            })
            .collect(),
    }
}

fn skill(entry: &Map<String, Value>) -> Option<Skill> {
    let id = text(entry, &["id"]);
    let name = text(entry, &["name"]);
    Some(Skill {
        id: id.clone().or_else(|| name.clone())?,
        name: name.or(id)?,
        description: text(entry, &["description"]).unwrap_or_default(),
        tags: texts(member(entry, &["tags"])),
    })
}

fn security_schemes(card: &Map<String, Value>) -> BTreeMap<String, SecurityScheme> {
    let schemes = object(card, &["securitySchemes", "security_schemes"]);
    let read = |(name, value): (&String, &Value)| Some((name.clone(), security_scheme(value.as_object()?)));
    schemes.into_iter().flatten().filter_map(read).collect()
}

fn security_scheme(entry: &Map<String, Value>) -> SecurityScheme {
    // Python's cards hold both forms in one object; the wrapper is the one its own client reads.
    if let Some((kind, inner)) =
        entry.iter().find_map(|(key, value)| Some((scheme_kind(key)?, value.as_object()?)))
    {
        return scheme_of_kind(kind, inner);
    }
    // {"scheme":{"$case":"httpAuthSecurityScheme","value":{…}}}: an inner union of the JavaScript SDK.
    if let Some(union) = object(entry, &["scheme"])
        && let Some(case) = text(union, &["$case"])
    {
        let empty = Map::new();
        let inner = object(union, &["value"]).unwrap_or(&empty);
        return match scheme_kind(&case) {
            Some(kind) => scheme_of_kind(kind, inner),
            None => SecurityScheme::Other { kind: case },
        };
    }
    scheme_of_kind(&text(entry, &["type"]).unwrap_or_default(), entry)
}

/// 0.3's word for a wrapper key of 1.0.
fn scheme_kind(wrapper: &str) -> Option<&'static str> {
    Some(match wrapper {
        "apiKeySecurityScheme" | "api_key_security_scheme" => "apiKey",
        "httpAuthSecurityScheme" | "http_auth_security_scheme" => "http",
        "oauth2SecurityScheme" | "oauth2_security_scheme" => "oauth2",
        "openIdConnectSecurityScheme" | "open_id_connect_security_scheme" => "openIdConnect",
        "mtlsSecurityScheme" | "mtls_security_scheme" => "mutualTLS",
        _ => return None,
    })
}

fn scheme_of_kind(kind: &str, entry: &Map<String, Value>) -> SecurityScheme {
    match kind {
        "apiKey" => SecurityScheme::ApiKey {
            name: text(entry, &["name"]).unwrap_or_default(),
            place: text(entry, &["in", "location"]).unwrap_or_default(),
        },
        "http" => SecurityScheme::Http { scheme: text(entry, &["scheme"]).unwrap_or_default() },
        "oauth2" => SecurityScheme::OAuth2 { flows: oauth_flows(entry) },
        "openIdConnect" => SecurityScheme::OpenIdConnect {
            url: text(entry, &["openIdConnectUrl", "open_id_connect_url"]).unwrap_or_default(),
        },
        "mutualTLS" => SecurityScheme::MutualTls,
        other => SecurityScheme::Other { kind: other.to_owned() },
    }
}

fn oauth_flows(entry: &Map<String, Value>) -> Vec<String> {
    let Some(flows) = object(entry, &["flows"]) else { return Vec::new() };
    match object(flows, &["flow"]).and_then(|union| text(union, &["$case"])) {
        Some(case) => vec![case],
        None => flows.iter().filter(|(_, flow)| flow.is_object()).map(|(name, _)| name.clone()).collect(),
    }
}

fn security(card: &Map<String, Value>) -> Vec<SecurityRequirement> {
    objects(card, &["securityRequirements", "security_requirements", "security"])
        .map(|entry| {
            let schemes = object(entry, &["schemes"]).unwrap_or(entry);
            schemes
                .iter()
                .map(|(name, scopes)| {
                    let scopes = scopes.as_object().and_then(|wrapper| wrapper.get("list")).or(Some(scopes));
                    (name.clone(), texts(scopes))
                })
                .collect()
        })
        .collect()
}

/// The first of `names` that is present and not null.
fn member<'v>(map: &'v Map<String, Value>, names: &[&str]) -> Option<&'v Value> {
    names.iter().find_map(|name| map.get(*name).filter(|value| !value.is_null()))
}

/// An empty text is ProtoJSON's way to say nothing.
fn text(map: &Map<String, Value>, names: &[&str]) -> Option<String> {
    member(map, names).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn flag(map: &Map<String, Value>, names: &[&str]) -> bool {
    member(map, names).and_then(Value::as_bool).unwrap_or(false)
}

fn object<'v>(map: &'v Map<String, Value>, names: &[&str]) -> Option<&'v Map<String, Value>> {
    member(map, names).and_then(Value::as_object)
}

fn list<'v>(map: &'v Map<String, Value>, names: &[&str]) -> &'v [Value] {
    member(map, names).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn objects<'v>(
    map: &'v Map<String, Value>,
    names: &[&str],
) -> impl Iterator<Item = &'v Map<String, Value>> + use<'v> {
    list(map, names).iter().filter_map(Value::as_object)
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn card(value: Value) -> AgentCard {
        AgentCard::from_value(value).unwrap()
    }

    fn addresses(card: &AgentCard) -> Vec<(&str, &str, &DeclaredVersion)> {
        card.interfaces.iter().map(|i| (i.url.as_str(), i.binding.as_str(), &i.version)).collect()
    }

    #[test]
    fn a_card_of_0_3_declares_its_url_and_its_additional_interfaces() {
        let card = card(json!({
            "name": "peer", "protocolVersion": "0.3.0", "url": "http://h/", "preferredTransport": "JSONRPC",
            "supportsAuthenticatedExtendedCard": true,
            "capabilities": {"streaming": true, "pushNotifications": true}, "skills": [],
            "additionalInterfaces": [
                {"url": "http://h/", "transport": "JSONRPC"}, {"url": "http://h/rest", "transport": "HTTP+JSON"}]
        }));
        let v03 = &DeclaredVersion::V03;
        assert_eq!(addresses(&card), [("http://h/", "JSONRPC", v03), ("http://h/rest", "HTTP+JSON", v03)]);
        let extended = card.capabilities.extended_card;
        assert!(card.capabilities.streaming && card.capabilities.push_notifications && extended);
    }

    #[test]
    fn a_superset_card_puts_its_1_0_interfaces_first_and_repeats_none() {
        let card = card(json!({
            "name": "peer", "url": "http://h/", "protocolVersion": "0.3", "preferredTransport": "JSONRPC",
            "supportedInterfaces": [
                {"url": "http://h/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": ""},
                {"url": "http://h/old", "protocolBinding": "JSONRPC"},
                {"url": "http://h/t", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0", "tenant": "t1"}]
        }));
        assert_eq!(
            addresses(&card),
            [
                ("http://h/", "JSONRPC", &DeclaredVersion::V1),
                ("http://h/old", "JSONRPC", &DeclaredVersion::Unstated),
                ("http://h/t", "HTTP+JSON", &DeclaredVersion::V1),
                ("http://h/", "JSONRPC", &DeclaredVersion::V03),
            ]
        );
        assert_eq!(card.interfaces[0].tenant, None, "an empty tenant is none");
        assert_eq!(card.interfaces[2].tenant.as_deref(), Some("t1"));
    }

    #[test]
    fn all_four_spellings_of_a_scheme_mean_the_same() {
        let card = card(json!({"name": "a", "url": "http://h/", "securitySchemes": {
            "plain": {"type": "http", "scheme": "Bearer"},
            "wrapped": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
            "both": {"httpAuthSecurityScheme": {"scheme": "Bearer"}, "scheme": "Bearer", "type": "http"},
            "union": {"scheme": {"$case": "httpAuthSecurityScheme", "value": {"scheme": "Bearer"}}}
        }}));
        assert_eq!(card.security_schemes.len(), 4);
        for (name, scheme) in &card.security_schemes {
            assert_eq!(*scheme, SecurityScheme::Http { scheme: "Bearer".to_owned() }, "{name}");
        }
    }

    #[test]
    fn other_schemes_are_read_in_both_vocabularies() {
        let card = card(json!({"name": "a", "url": "http://h/", "securitySchemes": {
            "k03": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "k1": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
            "o": {"oauth2SecurityScheme": {"flows": {"deviceCode": {"scopes": {}}}}},
            "ou": {"scheme": {"$case": "oauth2SecurityScheme", "value":
                {"flows": {"flow": {"$case": "clientCredentials", "value": {}}}}}},
            "m": {"type": "mutualTLS"}, "new": {"type": "quantum"}, "broken": 7
        }}));
        let key = SecurityScheme::ApiKey { name: "X-Key".to_owned(), place: "header".to_owned() };
        assert_eq!((&card.security_schemes["k03"], &card.security_schemes["k1"]), (&key, &key));
        let flows = |name: &str| SecurityScheme::OAuth2 { flows: vec![name.to_owned()] };
        assert_eq!(card.security_schemes["o"], flows("deviceCode"));
        assert_eq!(card.security_schemes["ou"], flows("clientCredentials"));
        assert_eq!(card.security_schemes["m"], SecurityScheme::MutualTls);
        assert_eq!(card.security_schemes["new"], SecurityScheme::Other { kind: "quantum".to_owned() });
        assert!(!card.security_schemes.contains_key("broken"));
    }

    #[test]
    fn security_is_read_in_both_forms() {
        let expected = vec![BTreeMap::from([("oauth".to_owned(), vec!["read".to_owned()])])];
        let old = card(json!({"name": "a", "url": "http://h/", "security": [{"oauth": ["read"]}]}));
        let new = card(json!({"name": "a", "url": "http://h/",
            "securityRequirements": [{"schemes": {"oauth": {"list": ["read"]}}}]}));
        assert_eq!((&old.security, &new.security), (&expected, &expected));
    }

    #[test]
    fn members_of_the_wrong_type_are_passed_over() {
        let card = card(json!({
            "name": 7, "url": "http://h/", "capabilities": [], "skills": {"a": 1}, "signatures": "x",
            "supportedInterfaces": [3, {"url": 4}, {"protocolBinding": "JSONRPC"}], "additionalInterfaces": null,
            "security": "none", "securitySchemes": [], "provider": "p"
        }));
        assert_eq!(addresses(&card), [("http://h/", "JSONRPC", &DeclaredVersion::V03)]);
        assert_eq!(card.capabilities, Capabilities::default());
    }

    #[test]
    fn another_document_is_no_card() {
        assert_eq!(AgentCard::from_value(json!([])), Err(CardFault::NotAnObject));
        for other in [json!({"detail": "Not Found"}), json!({"error": {"code": 404}}), json!({"name": "x"})] {
            assert_eq!(AgentCard::from_value(other), Err(CardFault::NotACard));
        }
        assert!(
            AgentCard::from_value(json!({"name": "x", "capabilities": {}})).is_ok(),
            "an address may be missing"
        );
    }
}
