//! Notices, and what the window tells of itself so that none is too many.

use serde::{Deserialize, Serialize};
use taskbell_core::ids::TaskRef;
use utoipa::ToSchema;

use super::UtcTime;

/// What was told, or is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NoticeView {
    pub id: u64,
    /// `AGENT/TASKID`; null: of no task.
    #[schema(value_type = Option<String>)]
    pub task: Option<TaskRef>,
    /// `waiting`, `sign-in`, `failed`, `finished`, `unconfirmed`, `lost`, `paused` or `test`.
    pub kind: String,
    pub title: String,
    /// One line; may be an agent's words.
    pub body: String,
    pub at: UtcTime,
    pub shown_at: Option<UtcTime>,
    /// `shown`, `suppressed`, `failed`, `no-desktop`, `not-permitted`, `withdrawn` or `merged`; null: pending.
    pub outcome: Option<String>,
    /// Why; of a pending one, until when it is held up.
    pub detail: Option<String>,
    pub snoozed_until: Option<UtcTime>,
}

/// Which task the window shows while it has the focus. Renewed while that lasts: it holds for 10 s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FocusRequest {
    #[schema(value_type = Option<String>)]
    pub task: Option<TaskRef>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SnoozeRequest {
    /// 1 to 43200, which is thirty days. Either this or `until` is given.
    #[serde(default)]
    pub minutes: Option<u32>,
    #[serde(default)]
    pub until: Option<UtcTime>,
}

/// Whether notices are held up now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuietView {
    pub quiet: bool,
    /// When what is held up is told, as one digest; null: it is not quiet.
    pub until: Option<UtcTime>,
    /// The user asked for quiet; else the quiet hours hold, where it is quiet.
    pub asked: bool,
    /// Kinds that are told all the same.
    pub urgent: Vec<String>,
}

/// Quiet from now on: one of the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuietRequest {
    /// 1 to 10080, which is a week.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u32>,
    /// `tomorrow`: the end of the quiet hours, or 8 o'clock, of the next morning here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// A `taskbell:` link as the desktop handed it over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LinkRequest {
    pub link: String,
}
