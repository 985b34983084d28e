//! Saved views.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A query under a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SavedView {
    /// What it is a list of: `tasks` or `inbox`.
    pub screen: String,
    pub name: String,
    pub query: String,
    /// It is there from the start, and cannot be changed or deleted.
    pub built_in: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SaveViewRequest {
    pub query: String,
}
