//! Reads what any peer sends, by shape, in either dialect.
//!
//! Accepts both vocabularies and numeric enums, snake_case keys, 0.3's `kind` objects, 1.0's
//! wrappers, the ProtoJSON family of 0.3 REST (`content`, `TASK_STATE_CANCELLED`), file parts in
//! all four spellings. What no version names is kept in `extra`. Nothing here decides which
//! dialect a peer speaks: an unexpected shape is read all the same.

use serde_json::{Map, Value};

use crate::ids::{ArtifactId, ContextId, MessageId, TaskId};
use crate::state::TaskState;
use crate::task::{
    Artifact, ArtifactUpdate, Message, Part, PartContent, Role, SendAnswer, StatusUpdate, StreamEvent, Task,
    TaskStatus,
};

/// Why a document is not the thing that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadFault {
    #[error("expected an object for {what}")]
    NotAnObject { what: &'static str },
    #[error("{what} lacks its member {member}")]
    Missing { what: &'static str, member: &'static str },
    #[error("member {member} of {what} has the wrong type")]
    WrongType { what: &'static str, member: &'static str },
    #[error("neither a task, a message, a status update nor an artifact update")]
    UnknownShape,
}

/// Takes members out of an object under either spelling; what is left is the extra.
pub(crate) struct Members {
    what: &'static str,
    map: Map<String, Value>,
}

impl Members {
    pub(crate) fn of(value: Value, what: &'static str) -> Result<Self, ReadFault> {
        match value {
            Value::Object(map) => Ok(Self { what, map }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(ReadFault::NotAnObject { what })
            }
        }
    }

    /// The first of `names` that is present and not null.
    pub(crate) fn take(&mut self, names: &[&str]) -> Option<Value> {
        let mut found = None;
        for name in names {
            match self.map.remove(*name) {
                None | Some(Value::Null) => {}
                Some(value) if found.is_none() => found = Some(value),
                Some(_) => {}
            }
        }
        found
    }

    pub(crate) fn text(&mut self, names: &[&'static str]) -> Result<Option<String>, ReadFault> {
        match self.take(names) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            // ProtoJSON writes 64-bit numbers as strings; ids that come as numbers are read the same way.
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(ReadFault::WrongType { what: self.what, member: names[0] }),
        }
    }

    pub(crate) fn required_text(&mut self, names: &[&'static str]) -> Result<String, ReadFault> {
        match self.text(names)? {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(ReadFault::Missing { what: self.what, member: names[0] }),
        }
    }

    pub(crate) fn flag(&mut self, names: &[&'static str]) -> Result<Option<bool>, ReadFault> {
        match self.take(names) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(ReadFault::WrongType { what: self.what, member: names[0] }),
        }
    }

    fn list(&mut self, names: &[&'static str]) -> Result<Vec<Value>, ReadFault> {
        match self.take(names) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(ReadFault::WrongType { what: self.what, member: names[0] }),
        }
    }

    pub(crate) fn texts(&mut self, names: &[&'static str]) -> Result<Vec<String>, ReadFault> {
        let what = self.what;
        self.list(names)?
            .into_iter()
            .map(|item| match item {
                Value::String(text) => Ok(text),
                _ => Err(ReadFault::WrongType { what, member: names[0] }),
            })
            .collect()
    }

    fn object(&mut self, names: &[&'static str]) -> Result<Map<String, Value>, ReadFault> {
        match self.take(names) {
            None => Ok(Map::new()),
            Some(Value::Object(map)) => Ok(map),
            Some(_) => Err(ReadFault::WrongType { what: self.what, member: names[0] }),
        }
    }

    pub(crate) fn context_id(&mut self) -> Result<Option<ContextId>, ReadFault> {
        let text = self.text(&["contextId", "context_id"])?;
        Ok(text.filter(|text| !text.is_empty()).map(ContextId::new))
    }

    pub(crate) fn task_id(&mut self) -> Result<Option<TaskId>, ReadFault> {
        let text = self.text(&["taskId", "task_id"])?;
        Ok(text.filter(|text| !text.is_empty()).map(TaskId::new))
    }

    pub(crate) fn metadata(&mut self) -> Result<Map<String, Value>, ReadFault> {
        self.object(&["metadata"])
    }

    fn rest(mut self) -> Map<String, Value> {
        self.map.retain(|_, value| !value.is_null());
        // A map that was emptied keeps its first node, 600 octets for every message that is kept.
        if self.map.is_empty() { Map::new() } else { self.map }
    }
}

/// A bare Task: the result of GetTask, CancelTask, or the inside of `{"task": …}`.
pub fn task(value: Value) -> Result<Task, ReadFault> {
    let mut members = Members::of(value, "task")?;
    members.map.remove("kind");
    let id = TaskId::new(members.required_text(&["id"])?);
    let context_id = members.context_id()?;
    let status = match members.take(&["status"]) {
        Some(value) => status(value)?,
        None => return Err(ReadFault::Missing { what: "task", member: "status" }),
    };
    let artifacts = members.list(&["artifacts"])?;
    let artifacts = merge_same_ids(artifacts.into_iter().map(artifact).collect::<Result<_, _>>()?);
    let history = members.list(&["history"])?.into_iter().map(message).collect::<Result<Vec<_>, _>>()?;
    let metadata = members.metadata()?;
    Ok(Task { id, context_id, status, artifacts, history, metadata, extra: members.rest() })
}

/// The reference Rust server stored the chunks of one artifact as artifacts of the same id
/// (a2a-rs #295): they are one artifact.
fn merge_same_ids(artifacts: Vec<Artifact>) -> Vec<Artifact> {
    let mut merged: Vec<Artifact> = Vec::with_capacity(artifacts.len());
    for artifact in artifacts {
        match merged.iter_mut().find(|known| known.artifact_id == artifact.artifact_id) {
            Some(known) => known.parts.extend(artifact.parts),
            None => merged.push(artifact),
        }
    }
    merged
}

pub fn status(value: Value) -> Result<TaskStatus, ReadFault> {
    let mut members = Members::of(value, "status")?;
    let (state, raw_state) = match members.take(&["state"]) {
        None => (TaskState::Unknown, String::new()),
        Some(Value::String(word)) => (TaskState::from_word(&word), word),
        Some(Value::Number(number)) => {
            (TaskState::from_number(number.as_u64().unwrap_or_default()), number.to_string())
        }
        Some(_) => return Err(ReadFault::WrongType { what: "status", member: "state" }),
    };
    let message = match members.take(&["message", "update"]) {
        None => None,
        Some(value) => Some(message(value)?),
    };
    let timestamp = members.text(&["timestamp"])?;
    Ok(TaskStatus { state, raw_state, message, timestamp, extra: members.rest() })
}

pub fn message(value: Value) -> Result<Message, ReadFault> {
    let mut members = Members::of(value, "message")?;
    members.map.remove("kind");
    let message_id = MessageId::new(members.text(&["messageId", "message_id"])?.unwrap_or_default());
    let role = match members.take(&["role"]) {
        Some(Value::String(word)) => match word.to_ascii_lowercase().trim_start_matches("role_") {
            "user" => Role::User,
            "agent" => Role::Agent,
            _ => Role::Unspecified,
        },
        Some(Value::Number(number)) => match number.as_u64() {
            Some(1) => Role::User,
            Some(2) => Role::Agent,
            _ => Role::Unspecified,
        },
        None => Role::Unspecified,
        Some(_) => return Err(ReadFault::WrongType { what: "message", member: "role" }),
    };
    let parts = members.list(&["parts", "content"])?.into_iter().map(part).collect();
    let context_id = members.context_id()?;
    let task_id = members.task_id()?;
    let references = members.texts(&["referenceTaskIds", "reference_task_ids"])?;
    let extensions = members.texts(&["extensions"])?;
    let metadata = members.metadata()?;
    Ok(Message {
        message_id,
        role,
        parts,
        context_id,
        task_id,
        reference_task_ids: references.into_iter().map(TaskId::new).collect(),
        extensions,
        metadata,
        extra: members.rest(),
    })
}

pub fn artifact(value: Value) -> Result<Artifact, ReadFault> {
    let mut members = Members::of(value, "artifact")?;
    let artifact_id = ArtifactId::new(members.text(&["artifactId", "artifact_id"])?.unwrap_or_default());
    let name = members.text(&["name"])?.filter(|text| !text.is_empty());
    let description = members.text(&["description"])?.filter(|text| !text.is_empty());
    let parts = members.list(&["parts"])?.into_iter().map(part).collect();
    let extensions = members.texts(&["extensions"])?;
    let metadata = members.metadata()?;
    Ok(Artifact { artifact_id, name, description, parts, extensions, metadata, extra: members.rest() })
}

/// A part is never refused: what no version names is kept whole as [`PartContent::Unknown`].
pub fn part(value: Value) -> Part {
    match read_part(value.clone()) {
        Some(part) => part,
        None => Part::new(PartContent::Unknown(value)),
    }
}

fn read_part(value: Value) -> Option<Part> {
    let mut members = Members::of(value, "part").ok()?;
    members.map.remove("kind");
    // Protocol 0.1 named the kind `type`.
    if matches!(members.map.get("type"), Some(Value::String(word)) if ["text", "file", "data"].contains(&word.as_str()))
    {
        members.map.remove("type");
    }
    let mut media_type = members.text(&["mediaType", "media_type", "mimeType"]).ok()?;
    let mut filename = members.text(&["filename"]).ok()?;
    let metadata = members.metadata().ok()?;
    let content = if let Some(text) = members.text(&["text"]).ok()? {
        PartContent::Text(text)
    } else if let Some(raw) = members.text(&["raw"]).ok()? {
        PartContent::Raw(raw)
    } else if let Some(url) = members.text(&["url"]).ok()? {
        PartContent::Url(url)
    } else if let Some(file) = members.take(&["file"]) {
        let mut file = Members::of(file, "file").ok()?;
        media_type = media_type.or(file.text(&["mimeType", "mime_type", "mediaType", "media_type"]).ok()?);
        filename = filename.or(file.text(&["name", "filename"]).ok()?);
        if let Some(bytes) = file.text(&["bytes", "fileWithBytes", "file_with_bytes"]).ok()? {
            PartContent::Raw(bytes)
        } else {
            PartContent::Url(file.text(&["uri", "fileWithUri", "file_with_uri", "url"]).ok()??)
        }
    } else if members.map.contains_key("data") {
        let data = members.map.remove("data").unwrap_or_default();
        PartContent::Data(unwrap_proto_data(data))
    } else {
        return None;
    };
    let non_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
    Some(Part {
        content,
        media_type: non_empty(media_type),
        filename: non_empty(filename),
        metadata,
        extra: members.rest(),
    })
}

/// 0.3's ProtoJSON wraps a data part once more: `{"data": {"data": {…}}}`.
fn unwrap_proto_data(data: Value) -> Value {
    match data {
        Value::Object(mut map) if map.len() == 1 && matches!(map.get("data"), Some(Value::Object(_))) => {
            map.remove("data").unwrap_or_default()
        }
        other => other,
    }
}

/// The answer to a send: `{"task":…}`, `{"message":…}`, or a bare 0.3 object.
pub fn send_answer(value: Value) -> Result<SendAnswer, ReadFault> {
    match stream_event(value)? {
        StreamEvent::Task(task) => Ok(SendAnswer::Task(task)),
        StreamEvent::Message(message) => Ok(SendAnswer::Message(message)),
        StreamEvent::Status(_) | StreamEvent::Artifact(_) => Err(ReadFault::UnknownShape),
    }
}

/// One event: a 1.0 wrapper, a 0.3 object told by `kind`, or either by its shape alone.
pub fn stream_event(value: Value) -> Result<StreamEvent, ReadFault> {
    let Value::Object(mut map) = value else {
        return Err(ReadFault::NotAnObject { what: "event" });
    };
    // An unwrapped 0.3 object may hold a member named as a wrapper (a status update's `message` does
    // not, but `task` could be anything), so `kind` is looked at first.
    if let Some(Value::String(kind)) = map.get("kind") {
        match kind.as_str() {
            "task" => return Ok(StreamEvent::Task(task(Value::Object(map))?)),
            "message" => return Ok(StreamEvent::Message(message(Value::Object(map))?)),
            "status-update" => return Ok(StreamEvent::Status(status_update(Value::Object(map))?)),
            "artifact-update" => return Ok(StreamEvent::Artifact(artifact_update(Value::Object(map))?)),
            _ => {}
        }
    }
    if map.contains_key("id") && map.contains_key("status") {
        return Ok(StreamEvent::Task(task(Value::Object(map))?));
    }
    for (names, read) in WRAPPERS {
        for name in *names {
            if matches!(map.get(*name), Some(Value::Object(_))) {
                let inner = map.remove(*name).unwrap_or_default();
                return read(inner);
            }
        }
    }
    let shape = Value::Object(map);
    if shape.get("status").is_some() {
        Ok(StreamEvent::Status(status_update(shape)?))
    } else if shape.get("artifact").is_some() {
        Ok(StreamEvent::Artifact(artifact_update(shape)?))
    } else if shape.get("messageId").is_some() || shape.get("message_id").is_some() {
        Ok(StreamEvent::Message(message(shape)?))
    } else {
        Err(ReadFault::UnknownShape)
    }
}

type ReadInner = fn(Value) -> Result<StreamEvent, ReadFault>;

/// 1.0's wrappers, then the spellings of drafts and of snake_case peers.
const WRAPPERS: &[(&[&str], ReadInner)] = &[
    (&["task"], |inner| Ok(StreamEvent::Task(task(inner)?))),
    (&["statusUpdate", "status_update", "taskStatusUpdate"], |inner| {
        Ok(StreamEvent::Status(status_update(inner)?))
    }),
    (&["artifactUpdate", "artifact_update", "taskArtifactUpdate"], |inner| {
        Ok(StreamEvent::Artifact(artifact_update(inner)?))
    }),
    (&["message", "msg"], |inner| Ok(StreamEvent::Message(message(inner)?))),
];

fn status_update(value: Value) -> Result<StatusUpdate, ReadFault> {
    let mut members = Members::of(value, "status update")?;
    members.map.remove("kind");
    let task_id = members.task_id()?;
    let context_id = members.context_id()?;
    let status = match members.take(&["status"]) {
        Some(value) => status(value)?,
        None => return Err(ReadFault::Missing { what: "status update", member: "status" }),
    };
    let is_final = members.flag(&["final"])?;
    let metadata = members.metadata()?;
    Ok(StatusUpdate { task_id, context_id, status, is_final, metadata, extra: members.rest() })
}

fn artifact_update(value: Value) -> Result<ArtifactUpdate, ReadFault> {
    let mut members = Members::of(value, "artifact update")?;
    members.map.remove("kind");
    let task_id = members.task_id()?;
    let context_id = members.context_id()?;
    let artifact = match members.take(&["artifact"]) {
        Some(value) => artifact(value)?,
        None => return Err(ReadFault::Missing { what: "artifact update", member: "artifact" }),
    };
    let append = members.flag(&["append"])?.unwrap_or(false);
    let last_chunk = members.flag(&["lastChunk", "last_chunk"])?.unwrap_or(false);
    let metadata = members.metadata()?;
    Ok(ArtifactUpdate { task_id, context_id, artifact, append, last_chunk, metadata, extra: members.rest() })
}

/// One page of ListTasks.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskPage {
    pub tasks: Vec<Task>,
    /// Absent on the last page, where some peers write an empty string.
    pub next_page_token: Option<String>,
    /// Entries that could not be read as tasks; the rest of the page stands.
    pub unreadable: usize,
}

/// A page of tasks, in 1.0's shape or as a bare array.
pub fn task_page(value: Value) -> Result<TaskPage, ReadFault> {
    let (items, token) = match value {
        Value::Array(items) => (items, None),
        Value::Null => (Vec::new(), None),
        other => {
            let mut members = Members::of(other, "task page")?;
            let token = members.text(&["nextPageToken", "next_page_token"])?;
            (members.list(&["tasks"])?, token)
        }
    };
    let total = items.len();
    let tasks: Vec<Task> = items.into_iter().filter_map(|item| task(item).ok()).collect();
    Ok(TaskPage {
        unreadable: total - tasks.len(),
        tasks,
        next_page_token: token.filter(|token| !token.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_six_body_shapes_are_read() {
        let task = json!({"kind":"task","id":"t-1","contextId":"c-1","status":{"state":"completed"}});
        assert!(
            matches!(stream_event(task), Ok(StreamEvent::Task(task)) if task.status.state == TaskState::Completed)
        );
        let wrapped =
            json!({"task":{"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_COMPLETED"}}});
        assert!(matches!(stream_event(wrapped), Ok(StreamEvent::Task(_))));
        let mixed = json!({"statusUpdate":{"taskId":"t-1","contextId":"c-1",
            "status":{"state":"completed","timestamp":"2026-01-05T10:00:05.000Z"},"final":true}});
        let Ok(StreamEvent::Status(update)) = stream_event(mixed) else { panic!("a status update") };
        assert_eq!((update.is_final, update.status.state), (Some(true), TaskState::Completed));
        let old = json!({"kind":"status-update","taskId":"t-1","contextId":"c-1","status":{"state":"input-required"},"final":true});
        assert!(matches!(stream_event(old), Ok(StreamEvent::Status(_))));
        let artifact = json!({"artifactUpdate":{"taskId":"t-1","contextId":"c-1",
            "artifact":{"artifactId":"a-1","parts":[{"text":"x"}]},"append":true}});
        let Ok(StreamEvent::Artifact(update)) = stream_event(artifact) else { panic!("an artifact update") };
        assert_eq!((update.append, update.artifact.text().as_str()), (true, "x"));
        let message = json!({"message":{"messageId":"m-1","role":"ROLE_AGENT","parts":[{"text":"hello"}]}});
        assert!(
            matches!(stream_event(message), Ok(StreamEvent::Message(message)) if message.role == Role::Agent)
        );
    }

    #[test]
    fn file_parts_are_read_in_every_spelling() {
        for (value, content) in [
            (
                json!({"kind":"file","file":{"uri":"https://h/x","name":"n"}}),
                PartContent::Url("https://h/x".into()),
            ),
            (
                json!({"file":{"fileWithUri":"https://h/x","name":"n"}}),
                PartContent::Url("https://h/x".into()),
            ),
            (json!({"url":"https://h/x","filename":"n"}), PartContent::Url("https://h/x".into())),
            (json!({"kind":"file","file":{"bytes":"aGk=","name":"n"}}), PartContent::Raw("aGk=".into())),
            (json!({"file":{"fileWithBytes":"aGk=","name":"n"}}), PartContent::Raw("aGk=".into())),
            (json!({"raw":"aGk=","filename":"n"}), PartContent::Raw("aGk=".into())),
        ] {
            let part = part(value);
            assert_eq!(part.content, content);
            assert_eq!(part.filename.as_deref(), Some("n"));
        }
    }

    #[test]
    fn a_part_of_no_known_shape_is_kept_whole() {
        let odd = json!({"kind":"hologram","depth":3});
        assert_eq!(part(odd.clone()).content, PartContent::Unknown(odd));
        assert_eq!(part(json!(7)).content, PartContent::Unknown(json!(7)));
    }

    #[test]
    fn unknown_members_are_kept_and_nulls_are_absent() {
        let task = task(
            json!({"id":"t","status":{"state":"working","message":null},"generation":"7","artifacts":null}),
        )
        .unwrap();
        assert_eq!(task.extra.get("generation"), Some(&json!("7")));
        assert_eq!(task.status.message, None);
    }

    #[test]
    fn a_missing_state_is_unknown_and_a_task_without_status_is_refused() {
        assert_eq!(status(json!({})).unwrap().state, TaskState::Unknown);
        assert_eq!(task(json!({"id":"t"})), Err(ReadFault::Missing { what: "task", member: "status" }),);
    }

    #[test]
    fn chunks_stored_as_artifacts_of_one_id_are_one_artifact() {
        let task = task(json!({"id":"t","status":{"state":"completed"},"artifacts":[
            {"artifactId":"a","parts":[{"text":"x"}]},{"artifactId":"a","parts":[{"text":"y"}]}]}))
        .unwrap();
        assert_eq!(task.artifacts.len(), 1);
        assert_eq!(task.artifacts[0].text(), "xy");
    }

    #[test]
    fn numeric_enums_and_snake_case_keys_are_read() {
        let task = task(json!({"id":"t","context_id":"c","status":{"state":3},
            "history":[{"message_id":"m","role":2,"content":[{"text":"x"}]}]}))
        .unwrap();
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(task.history[0].role, Role::Agent);
        assert_eq!(task.history[0].text(), "x");
    }

    #[test]
    fn an_unreadable_entry_does_not_lose_the_page() {
        let page =
            task_page(json!({"tasks":[{"id":"t","status":{"state":"working"}},{"id":7}],"nextPageToken":""}));
        let page = page.unwrap();
        assert_eq!((page.tasks.len(), page.unreadable, page.next_page_token), (1, 1, None));
    }
}
