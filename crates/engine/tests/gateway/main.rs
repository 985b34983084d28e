//! The gateway over real sockets, in front of the demo agent.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

mod access;
mod card;
mod extensions;
mod hostile;
mod listeners;
mod methods;
mod outages;
mod push;
mod replay;
mod rest;
mod support;
mod traffic;
