//! The demo agent on real sockets, read by the readers Taskbell uses on every agent.

// Clippy counts only functions marked as tests as tests; all of this is one.
#![allow(clippy::unwrap_used)]

mod calls;
mod push;
mod rest;
mod restart;
mod streams;
mod support;
mod tokens;
