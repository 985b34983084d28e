//! Two gateways as their public documents describe them, to the letter.
//!
//! [`following::GatewayA`] is the one that is followed by reattaching,
//! [`push::GatewayB`] the one that is followed by callbacks. Their tasks do
//! nothing by themselves: a test says what happens next.

pub mod following;
pub mod push;

mod callbacks;
mod ledger;
mod sse;

pub use callbacks::Tunnel;
pub use ledger::Call;
