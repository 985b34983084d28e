//! Settings: texts under their keys, with what they mean.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingView {
    pub key: String,
    /// The heading under which it is shown: General, Notices, Public address, Storage, Security or Following.
    pub group: String,
    /// The value that holds: the user's, else the default.
    pub value: String,
    pub default: String,
    /// One line for people.
    pub meaning: String,
    pub kind: SettingKind,
    /// It holds from the next start on; false: at once.
    pub restart: bool,
}

/// What a setting takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum SettingKind {
    /// One of these.
    Words { words: Vec<String> },
    /// From `least` to `most`, both included.
    Number { unit: String, least: f64, most: f64, whole: bool },
    /// A line; `what` says which.
    Text { what: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SettingRequest {
    pub value: String,
}

/// Settings as a file holds them: those that its user changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SettingsFile {
    /// The version of this form: 1.
    pub taskbell_settings: u32,
    pub settings: BTreeMap<String, String>,
    /// Changed ones whose values may hold a secret. They are to be set by hand.
    #[serde(default)]
    pub left_out: Vec<String>,
}

/// What an import changes, or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingChange {
    pub key: String,
    pub before: String,
    pub after: String,
}
