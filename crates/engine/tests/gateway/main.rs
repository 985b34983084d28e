//! The gateway over real sockets, in front of the demo agent.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

mod methods;
mod support;
