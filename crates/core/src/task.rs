//! The canonical shape of what agents send, whichever dialect it came in.
//!
//! Field names are A2A 1.0's. Members that no version names are kept as received in `extra`,
//! so that nothing an agent says is lost on its way through.

use serde_json::{Map, Value};

use crate::ids::{ArtifactId, ContextId, MessageId, TaskId};
use crate::state::TaskState;

/// A task as its agent describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: TaskId,
    /// Required in 0.3, optional in practice.
    pub context_id: Option<ContextId>,
    pub status: TaskStatus,
    pub artifacts: Vec<Artifact>,
    pub history: Vec<Message>,
    pub metadata: Map<String, Value>,
    pub extra: Map<String, Value>,
}

/// State, the message that came with it, and the sender's clock.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskStatus {
    pub state: TaskState,
    /// The state's word as received; empty where the member was missing.
    pub raw_state: String,
    pub message: Option<Message>,
    /// As received. Shown, never used for order.
    pub timestamp: Option<String>,
    pub extra: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    User,
    Agent,
    Unspecified,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub message_id: MessageId,
    pub role: Role,
    pub parts: Vec<Part>,
    pub context_id: Option<ContextId>,
    pub task_id: Option<TaskId>,
    pub reference_task_ids: Vec<TaskId>,
    pub extensions: Vec<String>,
    pub metadata: Map<String, Value>,
    pub extra: Map<String, Value>,
}

/// One piece of content with what describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub content: PartContent,
    pub media_type: Option<String>,
    pub filename: Option<String>,
    pub metadata: Map<String, Value>,
    pub extra: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PartContent {
    Text(String),
    /// Base64 as received: standard or url-safe, padded or not.
    Raw(String),
    Url(String),
    /// Any JSON value in 1.0, an object in 0.3.
    Data(Value),
    /// A part of a shape that no version names, kept whole.
    Unknown(Value),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    pub artifact_id: ArtifactId,
    pub name: Option<String>,
    pub description: Option<String>,
    pub parts: Vec<Part>,
    pub extensions: Vec<String>,
    pub metadata: Map<String, Value>,
    pub extra: Map<String, Value>,
}

/// What one frame of a stream, or one callback body, says.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    Task(Task),
    Message(Message),
    Status(StatusUpdate),
    Artifact(ArtifactUpdate),
}

#[derive(Debug, Clone, PartialEq)]
pub struct StatusUpdate {
    /// Absent only in malformed frames; the stream's own task is meant then.
    pub task_id: Option<TaskId>,
    pub context_id: Option<ContextId>,
    pub status: TaskStatus,
    /// 0.3 only: the last event of this interaction, which need not be the last of the task.
    pub is_final: Option<bool>,
    pub metadata: Map<String, Value>,
    pub extra: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactUpdate {
    pub task_id: Option<TaskId>,
    pub context_id: Option<ContextId>,
    pub artifact: Artifact,
    /// Extend the artifact of that id rather than create or replace it.
    pub append: bool,
    pub last_chunk: bool,
    pub metadata: Map<String, Value>,
    pub extra: Map<String, Value>,
}

/// The answer to a send: a task to follow, or the whole answer at once.
#[derive(Debug, Clone, PartialEq)]
pub enum SendAnswer {
    Task(Task),
    Message(Message),
}

impl TaskStatus {
    pub fn new(state: TaskState) -> Self {
        Self { state, raw_state: state.word().to_owned(), message: None, timestamp: None, extra: Map::new() }
    }
}

impl Part {
    pub fn new(content: PartContent) -> Self {
        Self { content, media_type: None, filename: None, metadata: Map::new(), extra: Map::new() }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::new(PartContent::Text(text.into()))
    }
}

impl Message {
    pub fn new(message_id: MessageId, role: Role, parts: Vec<Part>) -> Self {
        Self {
            message_id,
            role,
            parts,
            context_id: None,
            task_id: None,
            reference_task_ids: Vec::new(),
            extensions: Vec::new(),
            metadata: Map::new(),
            extra: Map::new(),
        }
    }

    /// The text parts, joined by a line break.
    pub fn text(&self) -> String {
        join_text(&self.parts, "\n")
    }
}

impl Artifact {
    pub fn new(artifact_id: ArtifactId, parts: Vec<Part>) -> Self {
        Self {
            artifact_id,
            name: None,
            description: None,
            parts,
            extensions: Vec::new(),
            metadata: Map::new(),
            extra: Map::new(),
        }
    }

    /// Adjacent text parts are chunks of one text, so nothing stands between them.
    pub fn text(&self) -> String {
        join_text(&self.parts, "")
    }
}

fn join_text(parts: &[Part], separator: &str) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match &part.content {
            PartContent::Text(text) => Some(text.as_str()),
            PartContent::Raw(_) | PartContent::Url(_) | PartContent::Data(_) | PartContent::Unknown(_) => {
                None
            }
        })
        .collect();
    texts.join(separator)
}

impl StreamEvent {
    /// The task this event says it is about.
    pub fn task_id(&self) -> Option<&TaskId> {
        match self {
            Self::Task(task) => Some(&task.id),
            Self::Message(message) => message.task_id.as_ref(),
            Self::Status(update) => update.task_id.as_ref(),
            Self::Artifact(update) => update.task_id.as_ref(),
        }
    }
}
