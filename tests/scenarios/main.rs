//! Stories of one user, driven from outside against the finished program.

mod answers;
mod crashes;
mod credentials;
mod finding;
mod gateway_a;
mod gateway_b;
mod keyring;
mod mistakes;
mod odd_agents;
mod outcomes;
mod secrets;
mod starting;
mod unknown_sends;

use std::time::Duration;

/// Long enough for any step here on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// A token of the gateways' only owner.
pub const TOKEN: &str = "token-of-alice";
