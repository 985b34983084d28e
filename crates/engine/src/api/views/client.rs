//! Clients of the gateway.

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
