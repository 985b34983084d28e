//! An agent as it describes itself: where its card is, what the card says, which of its
//! interfaces is called and how.
//!
//! A card is a claim. Nothing in it selects a host, a tool or a permission by itself: the origin
//! that the user registered stays, and another one in the card is only recorded. Which dialect an
//! interface really speaks is found out by [`crate::dialect::probe`]; fetching is not done here.

mod address;
mod card;
mod interface;
pub mod offered;

pub use address::{
    CardOrigin, Choice, PlainHttp, TransportRule, base_of, card_urls, choose, is_loopback, transport_rule,
};
pub use card::{
    AgentCard, Capabilities, CardFault, DeclaredInterface, Extension, SecurityRequirement, SecurityScheme,
    Skill,
};
pub use interface::{DeclaredVersion, Interface, candidates, without_card};
