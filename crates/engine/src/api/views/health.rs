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
    /// A stable word: `store`, `backup`, `keyring`, `gateway`, `inbox`, `public address`, `targets`, `agent NAME`, …
    pub component: String,
    pub state: HealthState,
    /// When it came into this state, also before the engine was started.
    pub since: UtcTime,
    /// One line for people.
    pub detail: String,
    /// What to do about it.
    pub fix: Option<String>,
    /// What of it one click can do.
    pub action: Option<HealthAction>,
}

/// An operation of this API that helps, with all that it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthAction {
    /// A few words for a button.
    pub label: String,
    /// Its `operationId`. `show_setting`: the setting is to be shown for changing.
    pub operation: String,
    pub method: String,
    /// With everything filled in, such as `/api/v1/targets/3/resume`.
    pub path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum HealthState {
    Ok,
    Warn,
    Bad,
}

impl HealthState {
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Ok, Self::Warn, Self::Bad].into_iter().find(|state| state.word() == word)
    }
}

/// A component came into a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthChange {
    pub component: String,
    pub state: HealthState,
    pub at: UtcTime,
    pub detail: String,
}

/// One part of the diagnostics, as it stands in the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosticsPart {
    /// Its file name in the bundle.
    pub name: String,
    pub text: String,
}

/// What one part did when it was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelfTestItem {
    pub component: String,
    pub ok: bool,
    /// One line for people.
    pub detail: String,
    pub took_ms: u64,
}
