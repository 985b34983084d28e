//! Receivers of callbacks that clients registered, and what was sent to them.

use serde::{Deserialize, Serialize};
use taskbell_core::ids::{ClientName, TaskRef};
use utoipa::ToSchema;

use super::UtcTime;

/// A receiver, one a client and origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetView {
    pub id: u64,
    #[schema(value_type = String)]
    pub client: ClientName,
    /// Scheme, host and port.
    pub target: String,
    /// `public`, or `loopback`: on this machine.
    pub kind: String,
    /// `ok`, `failing` (called less often), `paused`, or `not-approved` (on this machine, and no longer allowed).
    pub state: String,
    pub approved_at: Option<UtcTime>,
    pub paused_at: Option<UtcTime>,
    /// `user`, or `failing`: it failed for days.
    pub pause_reason: Option<String>,
    /// In a row.
    pub failures: u32,
    /// Of the last failure: `http_500`, `timeout`, `tls_expired`, …
    pub last_error: Option<String>,
    pub last_failed_at: Option<UtcTime>,
    pub delivered_at: Option<UtcTime>,
    /// Not called before.
    pub next_at: Option<UtcTime>,
    /// Reserved deliveries that are still to arrive.
    pub waiting: u64,
    /// Best effort: changes that could have been told.
    pub updates: u64,
    /// Of these, never tried.
    pub dropped: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AllowTargetRequest {
    #[schema(value_type = String)]
    pub client: ClientName,
    /// Of this machine, over plain http.
    pub port: u16,
}

/// A callback that leaves, with its attempts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryView {
    pub id: u64,
    /// Header `webhook-id`: the same in every attempt.
    pub webhook_id: String,
    /// `AGENT/TASKID`.
    #[schema(value_type = String)]
    pub task: TaskRef,
    #[schema(value_type = String)]
    pub client: ClientName,
    /// Null: its registration is gone.
    pub config_id: Option<String>,
    pub target: String,
    /// `reserved` or `best-effort`.
    pub lane: String,
    /// `queued`, `sending`, `delivered`, `failed`, `outcome-unknown`, `exhausted`, `rejected`, `refused-by-policy`,
    /// `superseded`, `dropped` or `cancelled`.
    pub state: String,
    /// What it tells of the task: the lowercase words.
    pub task_state: String,
    /// Attempts that counted.
    pub tries: u32,
    /// Attempts at most, as the setting `delivery.retry` is now; best effort has one.
    pub tries_max: u32,
    /// When it is tried next; null: not by itself.
    pub due_at: Option<UtcTime>,
    /// What on this machine keeps it: `keyring_locked`, `offline`, `target_paused`, …
    pub waits_for: Option<String>,
    pub last_error: Option<String>,
    pub created_at: UtcTime,
    pub done_at: Option<UtcTime>,
    /// The oldest first.
    pub attempts: Vec<AttemptView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    pub started_at: UtcTime,
    /// Null: it runs.
    pub ended_at: Option<UtcTime>,
    /// Whether it used up a try.
    pub counted: bool,
    /// The final status of the receiver; null: none came.
    pub status: Option<u16>,
    /// Why it failed, where no status says so.
    pub error: Option<String>,
    /// The judged address that was connected to.
    pub address: Option<String>,
}
