//! What a callback's body claims.
//!
//! Every body that agents send is taken: 1.0's wrappers of a task, a message, a status or an artifact, and the
//! bare objects of 0.3, with state words of either version in any of them. Only the task's id is needed: a
//! claim is a hint, and the rest of it is shown and never applied.

use serde_json::{Map, Value};

use crate::ids::{ContextId, TaskId};
use crate::json::{self, JsonFault};
use crate::state::TaskState;

/// Characters of an id that is still one.
const MAX_ID: usize = 256;

/// What kind of document a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    Task,
    Message,
    Status,
    Artifact,
}

impl Shape {
    pub const ALL: [Self; 4] = [Self::Task, Self::Message, Self::Status, Self::Artifact];

    pub fn word(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Message => "message",
            Self::Status => "status",
            Self::Artifact => "artifact",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| shape.word() == word)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub shape: Shape,
    /// In a wrapper of 1.0; otherwise a bare object of 0.3.
    pub wrapped: bool,
    pub task_id: TaskId,
    pub context_id: Option<ContextId>,
    /// `None`: it says nothing of the task's state.
    pub state: Option<TaskState>,
    /// The state as written.
    pub raw_state: Option<String>,
    /// 0.3's mark that nothing more comes on this stream.
    pub is_final: bool,
    /// As the sender wrote it; shown only.
    pub timestamp: Option<String>,
}

/// Why a body is no claim.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimFault {
    #[error(transparent)]
    NotJson(#[from] JsonFault),
    #[error("a callback is one object, not {what}")]
    NotAnObject { what: &'static str },
    #[error("a callback holds exactly one of task, message, statusUpdate and artifactUpdate")]
    NotOneMember,
    #[error("{member} of a callback is not an object")]
    MemberNotAnObject { member: &'static str },
    #[error("a callback names its task by text of 1 to {MAX_ID} characters")]
    NoTaskId,
    #[error("neither a task, a message, a status update nor an artifact update")]
    UnknownShape,
}

impl ClaimFault {
    /// The stable word under which it is counted.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotJson(JsonFault::RepeatedKey { .. }) => "repeated_key",
            Self::NotJson(JsonFault::TooDeep) => "too_deep",
            Self::NotJson(_) => "not_json",
            Self::NotAnObject { .. } | Self::UnknownShape => "unknown_shape",
            Self::NotOneMember => "not_one_member",
            Self::MemberNotAnObject { .. } => "member_not_object",
            Self::NoTaskId => "no_task_id",
        }
    }
}

/// 1.0's wrappers under the names that peers give them.
const WRAPPERS: [(&[&str], Shape); 4] = [
    (&["task"], Shape::Task),
    (&["statusUpdate", "status_update"], Shape::Status),
    (&["artifactUpdate", "artifact_update"], Shape::Artifact),
    (&["message", "msg"], Shape::Message),
];

/// Reads a body. A JSON-RPC envelope is no callback: no sender wraps one, and what a result answers is a request.
pub fn read_claim(body: &[u8]) -> Result<Claim, ClaimFault> {
    let map = match json::parse(body)? {
        Value::Object(map) => map,
        Value::Array(_) => return Err(ClaimFault::NotAnObject { what: "a list" }),
        Value::Null => return Err(ClaimFault::NotAnObject { what: "null" }),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(ClaimFault::NotAnObject { what: "a single value" });
        }
    };
    match bare_shape(&map) {
        Some(shape) => claim(&map, shape, false),
        None => {
            let (shape, inner) = wrapped(&map)?;
            claim(inner, shape, true)
        }
    }
}

/// The shape of a bare 0.3 object: by its `kind`, else by the members that only it has.
fn bare_shape(map: &Map<String, Value>) -> Option<Shape> {
    match map.get("kind").and_then(Value::as_str) {
        Some("task") => return Some(Shape::Task),
        Some("message") => return Some(Shape::Message),
        Some("status-update") => return Some(Shape::Status),
        Some("artifact-update") => return Some(Shape::Artifact),
        Some(_) | None => (),
    }
    let has = |name: &str| map.contains_key(name);
    if has("jsonrpc") {
        None
    } else if has("status") && has("id") {
        Some(Shape::Task)
    } else if has("status") && (has("taskId") || has("task_id")) {
        Some(Shape::Status)
    } else if has("artifact") && (has("taskId") || has("task_id")) {
        Some(Shape::Artifact)
    } else if has("messageId") || has("message_id") {
        Some(Shape::Message)
    } else {
        None
    }
}

fn wrapped(map: &Map<String, Value>) -> Result<(Shape, &Map<String, Value>), ClaimFault> {
    let mut found = None;
    for (names, shape) in WRAPPERS {
        for name in names {
            // A message of null, as some writers leave members that are not set.
            match map.get(*name) {
                None | Some(Value::Null) => (),
                Some(_) if found.is_some() => return Err(ClaimFault::NotOneMember),
                Some(value) => found = Some((shape, names[0], value)),
            }
        }
    }
    match found {
        Some((shape, _, Value::Object(inner))) => Ok((shape, inner)),
        Some((_, member, _)) => Err(ClaimFault::MemberNotAnObject { member }),
        None => Err(ClaimFault::NotOneMember),
    }
}

fn claim(map: &Map<String, Value>, shape: Shape, wrapped: bool) -> Result<Claim, ClaimFault> {
    let text = |names: [&str; 2]| names.into_iter().find_map(|name| map.get(name)).and_then(Value::as_str);
    let id_names = match shape {
        Shape::Task => ["id", "id"],
        Shape::Message | Shape::Status | Shape::Artifact => ["taskId", "task_id"],
    };
    let task_id = text(id_names).filter(|id| is_id(id)).map(TaskId::new).ok_or(ClaimFault::NoTaskId)?;
    let context_id = text(["contextId", "context_id"]).filter(|id| is_id(id)).map(ContextId::new);
    let status = match shape {
        Shape::Task | Shape::Status => map.get("status").and_then(Value::as_object),
        Shape::Message | Shape::Artifact => None,
    };
    let (state, raw_state) = match status.and_then(|status| status.get("state")) {
        Some(Value::String(word)) => (Some(TaskState::from_word(word)), Some(word.clone())),
        Some(Value::Number(number)) => {
            (number.as_u64().map(TaskState::from_number), Some(number.to_string()))
        }
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => (None, None),
    };
    let timestamp = status.and_then(|status| status.get("timestamp")).and_then(Value::as_str);
    Ok(Claim {
        shape,
        wrapped,
        task_id,
        context_id,
        state,
        raw_state,
        is_final: map.get("final").and_then(Value::as_bool).unwrap_or(false),
        timestamp: timestamp.map(str::to_owned),
    })
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && text.chars().nth(MAX_ID).is_none()
}

#[cfg(test)]
mod tests;
