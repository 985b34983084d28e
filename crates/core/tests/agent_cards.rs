//! The cards of real agents, as their SDKs printed them: each names the same three facts.

use serde_json::Value;
use taskbell_core::agent::{AgentCard, DeclaredVersion, SecurityScheme, candidates};
use taskbell_core::dialect::Binding;
use taskbell_core::json;
use url::Url;

struct RealCard {
    sdk: &'static str,
    octets: &'static [u8],
    /// Path, binding and version of what is tried, in order.
    tried: &'static [(&'static str, Binding, DeclaredVersion)],
}

const V1: DeclaredVersion = DeclaredVersion::V1;
const V03: DeclaredVersion = DeclaredVersion::V03;
const BOTH_DIALECTS: &[(&str, Binding, DeclaredVersion)] =
    &[("/", Binding::JsonRpc, V1), ("/rest", Binding::Rest, V1), ("/", Binding::JsonRpc, V03)];
const ONLY_0_3: &[(&str, Binding, DeclaredVersion)] = &[("/", Binding::JsonRpc, V03)];

const CARDS: [RealCard; 5] = [
    RealCard { sdk: "Python 0.3.26", octets: include_bytes!("cards/python-0.3.26.json"), tried: ONLY_0_3 },
    RealCard { sdk: "Python 1.3.0", octets: include_bytes!("cards/python-1.3.0.json"), tried: BOTH_DIALECTS },
    RealCard { sdk: "JavaScript 0.3.14", octets: include_bytes!("cards/js-0.3.14.json"), tried: ONLY_0_3 },
    RealCard {
        sdk: "JavaScript 1.3.0, asked without a version",
        octets: include_bytes!("cards/js-1.3.0-plain.json"),
        tried: BOTH_DIALECTS,
    },
    RealCard {
        sdk: "JavaScript 1.3.0, asked for 1.0",
        octets: include_bytes!("cards/js-1.3.0-v1.json"),
        tried: BOTH_DIALECTS,
    },
];

#[test]
fn cards_of_real_agents_say_how_to_call_them() {
    for real in CARDS {
        let raw: Value = json::parse(real.octets).unwrap();
        let card = AgentCard::from_value(raw.clone()).unwrap();
        let base = Url::parse(&card.interfaces[0].url).unwrap();
        let candidates = candidates(&card, &base);
        let tried: Vec<_> = candidates.iter().map(|i| (i.url.path(), i.binding, i.version.clone())).collect();
        assert_eq!(tried, real.tried, "{}", real.sdk);
        assert!(candidates.iter().all(|i| i.tenant.is_none()), "{}: an empty tenant is none", real.sdk);
        assert_eq!(card.raw, raw, "{}: the card is kept as received", real.sdk);
    }
}

#[test]
fn cards_of_real_agents_say_what_they_can_and_what_they_ask() {
    for real in CARDS {
        let card = AgentCard::from_value(json::parse(real.octets).unwrap()).unwrap();
        assert!(card.capabilities.streaming && card.capabilities.push_notifications, "{}", real.sdk);
        let bearer = SecurityScheme::Http { scheme: "bearer".to_owned() };
        assert_eq!(card.security_schemes.get("bearer"), Some(&bearer), "{}", real.sdk);
        assert_eq!(card.security.len(), 1, "{}", real.sdk);
        assert_eq!(card.security[0].get("bearer"), Some(&Vec::new()), "{}", real.sdk);
        assert_eq!(card.skills[0].id, "script", "{}", real.sdk);
    }
}
