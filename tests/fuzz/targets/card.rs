//! An agent's card is read or refused; whatever it names, a credential's origin is never another than the registered one,
//! and the card that we offer shows none of its addresses.
#![no_main]

use libfuzzer_sys::fuzz_target;
use taskbell_core::agent::offered::{self, Offer};
use taskbell_core::agent::{AgentCard, CardOrigin, candidates, choose};
use taskbell_core::json;
use url::Url;

fuzz_target!(|octets: &[u8]| {
    let Ok(value) = json::parse(octets) else { return };
    let base = Url::parse("https://agent.test/a2a").expect("a URL");
    let offer = Offer { base: "http://127.0.0.1:7420/agents/a", name: "a", push: true, extended_card: true };
    let offered = offered::card(Some(&value), offer);
    AgentCard::from_value(offered).expect("the card that we offer is a card");
    let Ok(card) = AgentCard::from_value(value) else { return };
    for interface in candidates(&card, &base) {
        let choice = choose(&interface.url, &base, CardOrigin::Record);
        for url in std::iter::once(choice.interface_url).chain(choice.otherwise) {
            assert_eq!(url.origin(), base.origin());
        }
    }
});
