//! No text of a callback address leads inside: what is accepted is https with a public name or address, as written and as the
//! URL standard's parser reads it.
#![no_main]

use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use taskbell_core::public_url::PublicUrl;
use taskbell_core::retry_after;
use taskbell_core::target::{CallbackTarget, LoopbackTarget, TargetHost, classify};
use taskbell_core::tunnel;
use url::Url;

fuzz_target!(|text: &str| {
    if let Ok(target) = CallbackTarget::parse(text) {
        let url = Url::parse(text).expect("what is accepted is a URL");
        assert_eq!(url.scheme(), "https");
        assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
        match target.host() {
            TargetHost::Address(address) => assert_eq!(classify(*address), None, "{address} is not public"),
            TargetHost::Name(name) => {
                assert!(name.parse::<IpAddr>().is_err());
                assert!(name.contains('.') && !name.ends_with(".local") && name != "localhost");
            }
        }
        let again = CallbackTarget::parse(target.as_str()).expect("what is stored is accepted again");
        assert_eq!(again, target);
        assert!(!format!("{target:?}").contains('?'), "a query may hold a secret");
    }
    if let Ok(Some(target)) = LoopbackTarget::parse(text) {
        assert!(target.address().is_loopback());
        assert_eq!(target.url().scheme(), "http");
    }
    if let Ok(url) = text.parse::<PublicUrl>() {
        let stored = url.to_string();
        assert_eq!(
            stored.parse::<PublicUrl>().expect("what is stored is accepted again").to_string(),
            stored
        );
    }
    tunnel::address_in(text);
    if let Some(wait) = retry_after::parse(text, "2026-01-01T00:00:00Z".parse().expect("an instant")) {
        assert!(wait <= std::time::Duration::from_secs(24 * 3_600));
    }
});
