//! Agents: what the user registered and what was found out.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use taskbell_core::credential::{CredentialKind, Secret};
use taskbell_core::dialect::Dialect;
use taskbell_core::ids::{AgentName, TaskRef};
use utoipa::ToSchema;

use super::UtcTime;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    #[schema(value_type = String)]
    pub name: AgentName,
    /// As registered.
    pub url: String,
    /// Where its card was found.
    pub card_url: Option<String>,
    /// Where calls go.
    pub interface_url: Option<String>,
    /// `JSONRPC` or `HTTP+JSON`.
    pub binding: Option<String>,
    /// What it really speaks.
    #[schema(value_type = Option<String>)]
    pub dialect: Option<Dialect>,
    /// The user's word, which beats what was observed.
    #[schema(value_type = Option<String>)]
    pub pinned_dialect: Option<Dialect>,
    /// The address of another origin that its card names and that is not used without consent.
    pub declared_url: Option<String>,
    pub tenant: Option<String>,
    /// That it has a credential; never the credential.
    pub credential: Option<CredentialView>,
    pub capabilities: CapabilitiesView,
    /// What it needs treated otherwise, by stable names.
    #[schema(value_type = Object, additional_properties)]
    pub quirks: Map<String, Value>,
    /// Its report card.
    pub oddities: Vec<OddityView>,
    pub link: LinkView,
    /// Tasks of it that are not terminal.
    pub open_tasks: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialView {
    /// `bearer`, `basic`, `headers` or `token-command`.
    #[schema(value_type = String)]
    pub kind: CredentialKind,
    pub changed_at: Option<UtcTime>,
}

/// What its card says it can.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilitiesView {
    pub streaming: bool,
    pub push_notifications: bool,
}

/// Something that an agent did and the protocol does not foresee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OddityView {
    /// A stable word.
    pub kind: String,
    /// The newest case, one line for people.
    pub detail: String,
    pub count: u64,
    pub last_at: UtcTime,
}

/// Whether it can be reached, as far as the last calls tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkView {
    Up,
    Down,
    Unknown,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewAgentRequest {
    /// Of its card, or of the agent.
    pub url: String,
    #[schema(value_type = String)]
    pub name: AgentName,
    /// Follow the card's address even to another origin.
    #[serde(default)]
    pub use_card_url: bool,
    /// Plain http to another machine; such an agent gets no credential.
    #[serde(default)]
    pub allow_http: bool,
    #[serde(default)]
    pub credential: Option<CredentialRequest>,
}

/// A credential on its way in. Write-only: no answer ever holds one.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CredentialRequest {
    /// The agent gets none any more.
    None,
    Bearer {
        #[schema(value_type = String, write_only)]
        token: SecretText,
    },
    Basic {
        user: String,
        #[schema(value_type = String, write_only)]
        password: SecretText,
    },
    Headers {
        #[schema(value_type = BTreeMap<String, String>, write_only)]
        headers: BTreeMap<String, SecretText>,
    },
    /// A command line that prints a token; run again once on a 401.
    TokenCommand { command: String },
}

/// A secret in a request: the one place where a secret is JSON. `Debug` says REDACTED.
#[derive(Debug, Clone)]
pub struct SecretText(Secret);

impl SecretText {
    pub fn new(text: impl Into<String>) -> Self {
        Self(Secret::new(text))
    }

    pub fn into_secret(self) -> Secret {
        self.0
    }
}

impl Serialize for SecretText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose())
    }
}

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PinDialectRequest {
    /// `0.3` or `1.0`; null: as observed.
    #[schema(value_type = Option<String>)]
    pub dialect: Option<Dialect>,
}

/// What a test of an agent found. Nothing was sent but reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentTestView {
    pub reachable: bool,
    #[schema(value_type = Option<String>)]
    pub dialect: Option<Dialect>,
    /// The card as received.
    pub card: Option<Value>,
    /// Whether it really streams; null: not known.
    pub streaming: Option<bool>,
    /// Lines for people.
    pub notes: Vec<String>,
}

/// What an import by ListTasks found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportOutcome {
    /// Followed from now on.
    #[schema(value_type = Vec<String>)]
    pub adopted: Vec<TaskRef>,
    /// Followed before.
    pub known: u64,
    /// Listed, but of no readable shape.
    pub unreadable: u64,
}

/// What an agent's callbacks are worth, counted over what is kept: some thirty days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportCardView {
    #[schema(value_type = String)]
    pub agent: AgentName,
    /// Tasks that ended with a registration in place: so many last callbacks were to come.
    pub expected: u64,
    pub arrived: u64,
    /// Came after the end had been found another way.
    pub late: u64,
    pub late_median_ms: Option<u64>,
    /// Never came.
    pub missed: u64,
    pub received: u64,
    pub confirmed: u64,
    pub duplicate: u64,
    pub out_of_order: u64,
    /// Did not fit their task.
    pub unmatched: u64,
    pub wrong_proof: u64,
    /// Refused for any other reason.
    pub refused: u64,
    /// Registrations whose secret the agent wrote into an answer.
    pub echoed_secrets: u64,
    /// What it did that the protocol does not foresee.
    pub oddities: Vec<OddityView>,
}
