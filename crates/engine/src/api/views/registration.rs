//! Our registrations at the agents, and where they reach us. No secret is in here: of an address only the
//! beginning of its last segment.

use serde::{Deserialize, Serialize};
use taskbell_core::ids::{AgentName, TaskRef};
use utoipa::ToSchema;

use super::UtcTime;

/// One registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistrationView {
    pub id: u64,
    #[schema(value_type = String)]
    pub task: TaskRef,
    #[schema(value_type = String)]
    pub agent: AgentName,
    /// `pending`, `active`, `failed`, `ended` or `removed`.
    pub state: String,
    /// The address that the agent was given, its last segment cut short.
    pub url: String,
    /// Ours.
    pub config_id: String,
    /// What the agent calls it.
    pub remote_id: Option<String>,
    /// `bearer` or `basic`.
    pub scheme: Option<String>,
    /// `any` or `all`: how many of the proofs a callback must show.
    pub policy: String,
    /// Counts the rotations from 1.
    pub key_version: u64,
    /// Until then the proofs before the last rotation hold as well.
    pub old_proof_until: Option<UtcTime>,
    /// The agent wrote a secret of it into an answer.
    pub echoed: bool,
    pub failure: Option<ReasonView>,
    /// When it is tried again by itself.
    pub next_try_at: Option<UtcTime>,
    pub created_at: UtcTime,
    pub registered_at: Option<UtcTime>,
    /// Its task has ended: callbacks are taken until `answersUntil`.
    pub ended_at: Option<UtcTime>,
    pub answers_until: Option<UtcTime>,
    pub removed_at: Option<UtcTime>,
    /// It was taken back at the agent.
    pub withdrawn_at: Option<UtcTime>,
    pub last_callback_at: Option<UtcTime>,
}

/// Why something is not so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasonView {
    /// Stable.
    pub code: String,
    /// One line for people.
    pub detail: String,
}

/// Registrations, and why there are not more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistrationsView {
    pub items: Vec<RegistrationView>,
    /// Always null: the list is whole.
    pub next: Option<String>,
    /// Why tasks of this agent, or of agents elsewhere where none is named, are not registered by themselves.
    pub reason: Option<ReasonView>,
}

/// How a registration is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegisterRequest {
    /// `bearer`, which is the default, or `basic`.
    #[serde(default)]
    pub scheme: Option<String>,
}

/// Where agents reach the inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReachView {
    /// Where the inbox listens on this machine.
    pub inbox: Option<String>,
    /// What agents elsewhere are given.
    pub public_url: Option<String>,
    /// `start`, `setting` or `tunnel`.
    pub source: Option<String>,
    /// `off`, `starting`, `up` or `down`.
    pub tunnel: String,
    pub tunnel_detail: Option<String>,
    /// `never`, `reached` or `failing`.
    pub test: String,
    /// When it was reached, or since when it fails.
    pub test_at: Option<UtcTime>,
    pub test_failure: Option<ReasonView>,
}
