//! Where a card is looked for, and where calls really go.
//!
//! The user registered an origin; that is the one that gets calls and credentials. A card names
//! addresses too, and behind a proxy they are often wrong (`http://0.0.0.0:8001/`), so their path
//! is used and their host is not, unless the user accepts it.

use std::net::IpAddr;

use url::{Host, Origin, Url};

/// Current and former file name of a card (0.3.0 §5.3; up to 0.2).
const CARD_FILES: [&str; 2] = ["agent-card.json", "agent.json"];

const WELL_KNOWN: &str = "/.well-known/";

/// Where the card of the agent registered as `given` is looked for, in order.
///
/// An address that names a card's file is the only one tried. Else the registered path comes
/// before the origin's root, so that one of many agents on an origin is not taken for another;
/// the address itself comes last, for cards at a path of their own.
pub fn card_urls(given: &Url) -> Vec<Url> {
    if names_a_card(given) {
        return vec![given.clone()];
    }
    let path = given.path().trim_end_matches('/');
    let mut found: Vec<Url> = Vec::new();
    for file in CARD_FILES {
        for folder in [path, ""] {
            let url = with_path(given, &format!("{folder}{WELL_KNOWN}{file}"));
            if !found.contains(&url) {
                found.push(url);
            }
        }
    }
    if !path.is_empty() {
        found.push(given.clone());
    }
    found
}

/// The agent's own address, where `given` may be that or its card's.
pub fn base_of(given: &Url) -> Url {
    if !names_a_card(given) {
        return given.clone();
    }
    // A card elsewhere than in the well-known folder says nothing about the agent's path.
    let folder = given.path().find(WELL_KNOWN).and_then(|end| given.path().get(..end)).unwrap_or_default();
    with_path(given, if folder.is_empty() { "/" } else { folder })
}

fn names_a_card(url: &Url) -> bool {
    url.path().ends_with(".json")
}

fn with_path(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// What to do about an origin in the card that is not the registered one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardOrigin {
    /// The default: calls stay on the registered origin.
    Record,
    /// The user accepted the card's.
    Use,
}

/// Where calls to an interface go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub interface_url: Url,
    /// The second address to try where the first does not speak A2A.
    pub otherwise: Option<Url>,
    pub declared_url: Url,
    /// The card's origin, where it is not the registered one. It gets no credential unless the
    /// user accepted it.
    pub foreign_origin: Option<Origin>,
}

/// Puts a declared address on the registered origin.
///
/// A declared path that lies within the registered one, or a registered address without a path,
/// leaves one reading. Otherwise a proxy may have taken the registered path away before the agent
/// saw it; so the declared path is tried within the registered one first, and alone after that:
/// the origin's root may belong to another agent, which would pass for this one.
pub fn choose(declared: &Url, registered: &Url, policy: CardOrigin) -> Choice {
    let foreign_origin = (declared.origin() != registered.origin()).then(|| declared.origin());
    let keep = Choice {
        interface_url: declared.clone(),
        otherwise: None,
        declared_url: declared.clone(),
        foreign_origin: foreign_origin.clone(),
    };
    if foreign_origin.is_none() || policy == CardOrigin::Use {
        return keep;
    }
    let on_registered = |path: &str| {
        let mut url = with_path(registered, path);
        url.set_query(declared.query());
        url
    };
    let alone = on_registered(declared.path());
    let prefix = registered.path().trim_end_matches('/');
    if prefix.is_empty() || lies_within(declared.path(), prefix) {
        return Choice { interface_url: alone, ..keep };
    }
    let within = match declared.path() {
        "/" => on_registered(registered.path()),
        path => on_registered(&format!("{prefix}{path}")),
    };
    Choice { interface_url: within, otherwise: Some(alone), ..keep }
}

fn lies_within(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether the user lets calls leave this machine unencrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainHttp {
    LoopbackOnly,
    Anywhere,
}

/// How an address may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportRule {
    Tls,
    /// Unencrypted, but it does not leave this machine: credentials may go along.
    LoopbackPlain,
    /// Unencrypted over a network because the user allowed it; no credential goes along.
    PlainWithoutCredential,
    Refused,
}

pub fn transport_rule(url: &Url, plain: PlainHttp) -> TransportRule {
    match (url.scheme(), plain) {
        ("https", _) => TransportRule::Tls,
        ("http", _) if is_loopback(url) => TransportRule::LoopbackPlain,
        ("http", PlainHttp::Anywhere) => TransportRule::PlainWithoutCredential,
        _ => TransportRule::Refused,
    }
}

/// By the number or the one name that is loopback everywhere. Other names that resolve to
/// loopback here may resolve elsewhere tomorrow.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn looked_for(given: &str) -> Vec<String> {
        card_urls(&url(given)).iter().map(Url::to_string).collect()
    }

    #[test]
    fn a_card_is_looked_for_within_the_path_then_at_the_root_then_by_its_old_name() {
        assert_eq!(
            looked_for("https://h.example/agents/alpha/?x=1"),
            [
                "https://h.example/agents/alpha/.well-known/agent-card.json",
                "https://h.example/.well-known/agent-card.json",
                "https://h.example/agents/alpha/.well-known/agent.json",
                "https://h.example/.well-known/agent.json",
                "https://h.example/agents/alpha/?x=1",
            ]
        );
        assert_eq!(
            looked_for("https://h.example"),
            ["https://h.example/.well-known/agent-card.json", "https://h.example/.well-known/agent.json"]
        );
    }

    #[test]
    fn an_explicit_card_url_wins() {
        let card = "https://h.example/cards/alpha.json?v=2";
        assert_eq!(looked_for(card), [card]);
        assert_eq!(base_of(&url(card)).as_str(), "https://h.example/");
    }

    #[test]
    fn the_base_of_a_well_known_card_is_the_folder_above() {
        let base = |text: &str| base_of(&url(text)).to_string();
        assert_eq!(base("https://h.example/a/.well-known/agent-card.json"), "https://h.example/a");
        assert_eq!(base("https://h.example/.well-known/agent.json?x"), "https://h.example/");
        assert_eq!(base("https://h.example/a/?x=1"), "https://h.example/a/?x=1");
    }

    #[track_caller]
    fn check_choice(declared: &str, registered: &str, expected: &str, otherwise: Option<&str>) {
        let choice = choose(&url(declared), &url(registered), CardOrigin::Record);
        assert_eq!(choice.interface_url.as_str(), expected);
        assert_eq!(choice.otherwise.as_ref().map(Url::as_str), otherwise);
        assert_eq!(choice.declared_url, url(declared));
    }

    #[test]
    fn a_foreign_origin_is_replaced_by_the_registered_one() {
        check_choice("http://0.0.0.0:8001/", "https://h.example", "https://h.example/", None);
        check_choice("http://h.example/rpc?x=1", "https://h.example/", "https://h.example/rpc?x=1", None);
        check_choice("https://evil.example/a2a", "https://h.example/", "https://h.example/a2a", None);
    }

    #[test]
    fn a_prefix_is_not_doubled() {
        let registered = "https://h.example/agents/alpha";
        check_choice(
            "http://localhost:8001/agents/alpha/",
            registered,
            "https://h.example/agents/alpha/",
            None,
        );
        check_choice("http://localhost:8001/agents/alpha", registered, registered, None);
    }

    #[test]
    fn a_prefix_that_a_proxy_took_away_is_put_back_before_the_root_is_tried() {
        let registered = "https://h.example/agents/alpha";
        check_choice("http://0.0.0.0:8001/", registered, registered, Some("https://h.example/"));
        check_choice(
            "http://0.0.0.0:8001/agents/alphabet",
            registered,
            "https://h.example/agents/alpha/agents/alphabet",
            Some("https://h.example/agents/alphabet"),
        );
    }

    #[test]
    fn an_address_on_the_registered_origin_is_used_as_declared() {
        let declared = "https://h.example/rpc";
        check_choice(declared, "https://h.example/agents/alpha", declared, None);
        let choice = choose(&url(declared), &url("https://h.example:443/"), CardOrigin::Record);
        assert_eq!(choice.foreign_origin, None, "the default port is no other origin");
    }

    #[test]
    fn a_foreign_origin_is_used_only_when_the_user_accepts_it_and_is_named_either_way() {
        let (declared, registered) = (url("https://other.example/a2a"), url("https://h.example/"));
        let accepted = choose(&declared, &registered, CardOrigin::Use);
        assert_eq!(accepted.interface_url, declared);
        assert_eq!(accepted.foreign_origin, Some(declared.origin()));
        let recorded = choose(&declared, &registered, CardOrigin::Record);
        assert_eq!(recorded.foreign_origin, Some(declared.origin()));
    }

    #[test]
    fn plain_http_stays_on_this_machine_or_carries_no_credential() {
        let rule = |text: &str, plain| transport_rule(&url(text), plain);
        for near in ["http://127.0.0.1:1/", "http://127.9.9.9/", "http://[::1]/", "http://localhost:9/"] {
            assert_eq!(rule(near, PlainHttp::LoopbackOnly), TransportRule::LoopbackPlain, "{near}");
        }
        for far in [
            "http://h.example/",
            "http://0.0.0.0/",
            "http://10.0.0.1/",
            "http://localhost.h.example/",
            "http://[::]/",
        ] {
            assert_eq!(rule(far, PlainHttp::LoopbackOnly), TransportRule::Refused, "{far}");
            assert_eq!(rule(far, PlainHttp::Anywhere), TransportRule::PlainWithoutCredential, "{far}");
        }
        assert_eq!(rule("https://127.0.0.1/", PlainHttp::LoopbackOnly), TransportRule::Tls);
        assert_eq!(rule("ftp://127.0.0.1/", PlainHttp::Anywhere), TransportRule::Refused);
    }
}
