//! How a client makes sure of the engine, and how a page gets in.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The engine's proof that it knows the token, without the token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelloView {
    /// HMAC-SHA256 over the challenge with the API token as its key, in lowercase hex.
    pub hello: String,
    /// The engine's version.
    pub version: String,
}

#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionRequest {
    /// From the address `…/#login=<nonce>`; good once and for a minute.
    pub nonce: String,
}

/// Where to open the page, signed in.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageLoginView {
    /// Carries a nonce that is good once and for a minute.
    pub url: String,
}
