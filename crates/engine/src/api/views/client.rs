//! Clients of the gateway, and what they asked.

use serde::{Deserialize, Serialize};
use taskbell_core::ids::ClientName;
use utoipa::ToSchema;

use super::UtcTime;

/// A program that may call agents through the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientView {
    #[schema(value_type = String)]
    pub name: ClientName,
    pub created_at: UtcTime,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewClientRequest {
    #[schema(value_type = String)]
    pub name: ClientName,
}

/// A new client with its key, which is told this once.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewClientView {
    #[schema(value_type = String)]
    pub name: ClientName,
    /// Goes into `Authorization: Bearer …` of every call.
    pub key: String,
}

impl std::fmt::Debug for NewClientView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewClientView").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A request of a client, without any content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrafficView {
    pub id: u64,
    pub at: UtcTime,
    /// By name; it may be revoked since.
    pub client: String,
    pub agent: String,
    /// `0.3` or `1.0`: the words it was asked in.
    pub dialect: String,
    /// `JSONRPC` or `HTTP+JSON`.
    pub binding: String,
    /// By its 1.0 name.
    pub method: String,
    /// Null: it was about no task, or about none that this client may see.
    pub task_id: Option<String>,
    /// Whether the task is here still.
    pub task_known: bool,
    /// The task's as it was answered, or told last: the lowercase words.
    pub state: Option<String>,
    /// The code of JSON-RPC; null: none.
    pub error_code: Option<i64>,
    /// Until the answer was whole, for a stream until it ended.
    pub took_ms: u64,
    pub octets_in: u64,
    pub octets_out: u64,
}
