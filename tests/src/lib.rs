//! The harness of the tests that drive Taskbell from outside.
//!
//! Everything here talks to the finished `taskbell` program as a user or an
//! agent would: processes, sockets, HTTP, JSON on standard output. Nothing
//! links the engine, so a test cannot pass because it knows an internal.
//!
//! It does not judge: assertions about the product live in `peers/` and
//! `scenarios/`, and `harness/` proves that these tools do what they say.

pub mod a2a;
pub mod canary;
pub mod cli;
pub mod gateways;
pub mod odd_servers;
pub mod peers;
pub mod ports;
pub mod process;
pub mod proxy;
pub mod raw_http;
pub mod sdk_clients;
pub mod session;
pub mod taskbell;
pub mod wait;

pub use cli::Output;
pub use gateways::{following::GatewayA, push::GatewayB};
pub use peers::{Peer, PeerKind};
pub use proxy::{Cut, Fault, FaultProxy, When};
pub use sdk_clients::SdkClient;
pub use taskbell::Taskbell;
pub use wait::{eventually, wait_until};

/// All artifact text of the lines that `follow` printed, in their order.
pub fn artifact_text_of_lines(lines: &[serde_json::Value]) -> String {
    fn collect(value: &serde_json::Value, text: &mut String) {
        match value {
            serde_json::Value::Object(members) => {
                if let Some(found) = members.get("text").and_then(serde_json::Value::as_str) {
                    text.push_str(found);
                }
                members.values().for_each(|member| collect(member, text));
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, text)),
            _ => {}
        }
    }
    let mut text = String::new();
    let artifacts = lines.iter().filter(|line| matches!(line["kind"].as_str(), Some("artifact" | "task")));
    artifacts.for_each(|line| collect(line, &mut text));
    text
}

/// Whether the long variants of the tests run (`TASKBELL_LONG=1`).
///
/// A test that is long asks this first and leaves with the line printed here,
/// so that a short run shows what it did not do.
pub fn long_run(test: &str) -> bool {
    let long = std::env::var_os("TASKBELL_LONG").is_some_and(|value| value == "1");
    if !long {
        println!("skipped: {test} is long, set TASKBELL_LONG=1 to run it");
    }
    long
}
