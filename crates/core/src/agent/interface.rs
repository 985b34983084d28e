//! Which of a card's interfaces are tried, and in what order.

use serde_json::Value;
use url::Url;

use super::card::AgentCard;
use crate::dialect::{Binding, Dialect};

/// How much of a version that we do not know is kept.
const SHOWN_VERSION: usize = 32;

/// A place to call, as a card declares it. Whether calls go to that host is decided by
/// [`choose`](super::choose).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub url: Url,
    pub binding: Binding,
    pub version: DeclaredVersion,
    pub tenant: Option<String>,
}

/// The protocol version that a card states for an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeclaredVersion {
    /// 0.3, and 0.2, which differs in nothing that is used here.
    V03,
    V1,
    /// Nothing stated: only a probe tells.
    Unstated,
    /// Shortened, not cleaned.
    Unsupported(String),
}

impl DeclaredVersion {
    /// Reads `protocolVersion`: major and minor decide, a patch number does not.
    pub(super) fn read(value: Option<&Value>) -> Self {
        let text = match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(_) | None => return Self::Unstated,
        };
        let text = text.trim().trim_start_matches(['v', 'V']);
        let mut numbers = text.split('.');
        match (numbers.next().unwrap_or_default(), numbers.next()) {
            ("", None) => Self::Unstated,
            ("1", _) => Self::V1,
            ("0", Some("3" | "2")) => Self::V03,
            _ => Self::Unsupported(text.chars().take(SHOWN_VERSION).collect()),
        }
    }
}

impl Interface {
    /// The dialects to probe here, most likely first. A card may declare one and serve the other.
    /// 0.3 is spoken over JSON-RPC only, so REST has nothing to fall back to.
    pub fn dialects_to_try(&self) -> &'static [Dialect] {
        match (self.binding, &self.version) {
            (_, DeclaredVersion::Unsupported(_)) => &[],
            (Binding::Rest, DeclaredVersion::V03) => &[],
            (Binding::Rest, DeclaredVersion::V1 | DeclaredVersion::Unstated) => &[Dialect::V1],
            (Binding::JsonRpc, DeclaredVersion::V03) => &[Dialect::V03, Dialect::V1],
            (Binding::JsonRpc, DeclaredVersion::V1 | DeclaredVersion::Unstated) => {
                &[Dialect::V1, Dialect::V03]
            }
        }
    }
}

/// The interfaces of a card that can be called, best first: 1.0, then unstated, then 0.3, and
/// the card's order among equals. Relative addresses are taken from `base`.
///
/// Empty where the card offers only what is not spoken here. A card that names no address at all
/// is called at `base`, as some clients do.
pub fn candidates(card: &AgentCard, base: &Url) -> Vec<Interface> {
    if card.interfaces.is_empty() {
        return without_card(base);
    }
    let mut found: Vec<Interface> = Vec::new();
    for declared in &card.interfaces {
        let Some(binding) = Binding::from_word(declared.binding.trim()) else { continue };
        let Some(url) = callable(&declared.url, base) else { continue };
        let interface =
            Interface { url, binding, version: declared.version.clone(), tenant: declared.tenant.clone() };
        if !interface.dialects_to_try().is_empty() && !found.contains(&interface) {
            found.push(interface);
        }
    }
    found.sort_by_key(|interface| match interface.version {
        DeclaredVersion::V1 => 0,
        DeclaredVersion::Unstated => 1,
        DeclaredVersion::V03 => 2,
        DeclaredVersion::Unsupported(_) => 3,
    });
    found
}

/// What is tried where no card was found.
pub fn without_card(base: &Url) -> Vec<Interface> {
    vec![Interface {
        url: base.clone(),
        binding: Binding::JsonRpc,
        version: DeclaredVersion::Unstated,
        tenant: None,
    }]
}

/// A user name or password in a card's address is dropped: it would become a credential that
/// nobody here gave.
fn callable(text: &str, base: &Url) -> Option<Url> {
    let mut url = base.join(text.trim()).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    url.set_fragment(None);
    Some(url)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn base() -> Url {
        Url::parse("https://agent.example/a").unwrap()
    }

    fn ranked(card: Value) -> Vec<(String, Binding, DeclaredVersion)> {
        let card = AgentCard::from_value(card).unwrap();
        candidates(&card, &base()).into_iter().map(|i| (i.url.to_string(), i.binding, i.version)).collect()
    }

    #[test]
    fn versions_are_told_by_major_and_minor() {
        let read = |value: Value| DeclaredVersion::read(Some(&value));
        for v1 in ["1.0", "1.0.1", "1.7", "1", "v1.0", " 1.0 "] {
            assert_eq!(read(json!(v1)), DeclaredVersion::V1, "{v1:?}");
        }
        for v03 in ["0.3", "0.3.0", "0.2.5"] {
            assert_eq!(read(json!(v03)), DeclaredVersion::V03, "{v03:?}");
        }
        for unstated in [json!(""), json!(null), json!({}), json!(true)] {
            assert_eq!(read(unstated.clone()), DeclaredVersion::Unstated, "{unstated}");
        }
        for unsupported in ["2.0", "0.1.0", "10.0", "latest"] {
            assert_eq!(read(json!(unsupported)), DeclaredVersion::Unsupported(unsupported.to_owned()));
        }
        assert_eq!(read(json!(1.0)), DeclaredVersion::V1, "some cards write a number");
    }

    #[test]
    fn newer_comes_first_and_what_is_not_spoken_is_left_out() {
        let found = ranked(json!({
            "name": "x", "url": "https://agent.example/old", "protocolVersion": "0.3.0",
            "additionalInterfaces": [{"url": "https://agent.example/rest03", "transport": "HTTP+JSON"}],
            "supportedInterfaces": [
                {"url": "https://agent.example/grpc", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
                {"url": "https://agent.example/any", "protocolBinding": "jsonrpc"},
                {"url": "/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
                {"url": "https://agent.example/two", "protocolBinding": "JSONRPC", "protocolVersion": "2.0"},
                {"url": "https://agent.example/one", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]
        }));
        let address = |path: &str| format!("https://agent.example{path}");
        assert_eq!(
            found,
            [
                (address("/rest"), Binding::Rest, DeclaredVersion::V1),
                (address("/one"), Binding::JsonRpc, DeclaredVersion::V1),
                (address("/any"), Binding::JsonRpc, DeclaredVersion::Unstated),
                (address("/old"), Binding::JsonRpc, DeclaredVersion::V03),
            ]
        );
    }

    #[test]
    fn a_card_without_an_address_is_called_where_it_was_found() {
        let found = ranked(json!({"name": "x", "skills": []}));
        assert_eq!(found, [(base().to_string(), Binding::JsonRpc, DeclaredVersion::Unstated)]);
    }

    #[test]
    fn a_card_that_offers_only_grpc_has_no_candidate() {
        assert!(
            ranked(json!({"supportedInterfaces": [{"url": "h:1", "protocolBinding": "GRPC"}]})).is_empty()
        );
    }

    #[test]
    fn an_address_brings_no_credential_and_no_other_scheme() {
        let found = ranked(json!({"supportedInterfaces": [
            {"url": "https://user:pass@agent.example/#x", "protocolBinding": "JSONRPC"},
            {"url": "file:///etc/passwd", "protocolBinding": "JSONRPC"},
            {"url": "https://[", "protocolBinding": "JSONRPC"}]}));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "https://agent.example/");
    }
}
