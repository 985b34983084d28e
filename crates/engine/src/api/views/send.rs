//! Sending: what is asked and what may come of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use taskbell_core::ids::{MessageId, TaskId, TaskRef};
use utoipa::ToSchema;

use super::ShownState;

/// A message for an agent. Sent once, never again by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendRequestView {
    pub text: String,
    /// Continues a conversation.
    #[serde(default)]
    pub context_id: Option<String>,
    /// A JSON value sent as a data part.
    #[serde(default)]
    pub data: Option<Value>,
    #[serde(default)]
    pub files: Vec<FilePart>,
    /// Whether the agent is to call back about the task; absent: as is set for the agent.
    #[serde(default)]
    pub push: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilePart {
    pub filename: String,
    pub media_type: String,
    /// The content in standard base64.
    pub base64: String,
}

/// What came of a send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum SendOutcome {
    /// A task, followed from now on.
    Task(SentTask),
    /// The whole answer at once: a 1.0 message.
    Message { message: Value },
    /// The request left, no answer came: the agent may have it or not.
    Unknown { unknown: UnknownOutcome },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SentTask {
    #[schema(value_type = String)]
    pub task: TaskRef,
    pub state: ShownState,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnknownOutcome {
    /// By which the user may find out.
    #[schema(value_type = String)]
    pub message_id: MessageId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WatchRequest {
    #[schema(value_type = String)]
    pub task_id: TaskId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReplyRequest {
    pub text: String,
}
