//! The two dialects of A2A on the wire.
//!
//! Read anything ([`read`]: tolerant, by shape, whatever dialect was agreed), write strictly
//! ([`v03`], [`v1`]: only members that the version names, because 1.0 peers in Python, Java and
//! Rust refuse unknown ones). As a client, [`call`] names the operations; which dialect a peer really
//! speaks is decided in [`probe`]. As a server, [`request`] and [`rest_route`] read what is asked, [`errors`] writes
//! refusals.

pub mod call;
pub mod errors;
pub mod probe;
mod push_call;
pub mod read;
pub mod request;
pub mod rest_route;
pub mod v03;
pub mod v1;

use std::fmt;

use serde::{Deserialize, Serialize};

/// A protocol version as far as the bytes differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Dialect {
    #[serde(rename = "0.3")]
    V03,
    #[serde(rename = "1.0")]
    V1,
}

/// How calls are carried. gRPC is not spoken here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Binding {
    #[serde(rename = "JSONRPC")]
    JsonRpc,
    /// HTTP+JSON of 1.0 only: each SDK's 0.3 REST bodies differ, so 0.3 is JSON-RPC only.
    #[serde(rename = "HTTP+JSON")]
    Rest,
}

impl Dialect {
    /// The value of the `A2A-Version` header: exactly this string, since some servers compare exactly.
    pub fn version(self) -> &'static str {
        match self {
            Self::V03 => "0.3",
            Self::V1 => "1.0",
        }
    }

    pub fn from_version(text: &str) -> Option<Self> {
        match text {
            "0.3" => Some(Self::V03),
            "1.0" => Some(Self::V1),
            _ => None,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.version())
    }
}

impl Binding {
    /// The word cards use. Cards are compared without regard to case.
    pub fn word(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::Rest => "HTTP+JSON",
        }
    }

    pub fn from_word(text: &str) -> Option<Self> {
        [Self::JsonRpc, Self::Rest].into_iter().find(|binding| binding.word().eq_ignore_ascii_case(text))
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
