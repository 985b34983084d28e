//! Health: what runs, what does not, and what helps.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::UtcTime;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthView {
    pub items: Vec<HealthItem>,
    /// Where programs of this machine reach gateway and API, such as `http://127.0.0.1:7420`; none while another
    /// program has the port.
    pub gateway: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthItem {
    /// A stable word: `store`, `gateway`, `inbox`, `keychain`, …
    pub component: String,
    pub state: HealthState,
    /// Since when it is in this state.
    pub since: UtcTime,
    /// One line for people.
    pub detail: String,
    /// What to do about it.
    pub fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum HealthState {
    Ok,
    Warn,
    Bad,
}
