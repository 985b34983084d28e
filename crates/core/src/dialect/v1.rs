//! Writes 1.0: only members that the proto names, defaults left out, `TASK_STATE_*`, `ROLE_*`.
//!
//! With [`Extras::Keep`] members that we do not know are written too: for our own store and API, where
//! they were received. Peers in Python, Java and Rust refuse them, so a wire never carries them.

use serde_json::{Map, Value, json};

use crate::task::{
    Artifact, ArtifactUpdate, Message, Part, PartContent, Role, StatusUpdate, StreamEvent, Task, TaskStatus,
};

/// Whether members that no version names are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extras {
    /// For a peer.
    Drop,
    /// For a peer of 0.3, which skips members that it does not know. Parts it would refuse.
    Members,
    /// For our own store and views.
    Keep,
}

pub fn task(task: &Task, extras: Extras) -> Value {
    let mut map = Map::new();
    map.insert("id".into(), json!(task.id));
    put_some(&mut map, "contextId", task.context_id.as_ref());
    map.insert("status".into(), status(&task.status, extras));
    put_list(&mut map, "artifacts", task.artifacts.iter().map(|item| artifact(item, extras)).collect());
    put_list(&mut map, "history", task.history.iter().map(|item| message(item, extras)).collect());
    put_object(&mut map, "metadata", &task.metadata);
    put_extra(&mut map, &task.extra, extras);
    Value::Object(map)
}

pub fn status(status: &TaskStatus, extras: Extras) -> Value {
    let mut map = Map::new();
    map.insert("state".into(), json!(status.state.v1_word()));
    if let Some(inner) = &status.message {
        map.insert("message".into(), message(inner, extras));
    }
    put_some(&mut map, "timestamp", status.timestamp.as_ref());
    put_extra(&mut map, &status.extra, extras);
    Value::Object(map)
}

pub fn message(message: &Message, extras: Extras) -> Value {
    let mut map = Map::new();
    map.insert("messageId".into(), json!(message.message_id));
    put_some(&mut map, "contextId", message.context_id.as_ref());
    put_some(&mut map, "taskId", message.task_id.as_ref());
    map.insert("role".into(), json!(role(message.role)));
    map.insert("parts".into(), message.parts.iter().map(|item| part(item, extras)).collect());
    put_object(&mut map, "metadata", &message.metadata);
    put_list(&mut map, "extensions", message.extensions.iter().map(|item| json!(item)).collect());
    put_list(
        &mut map,
        "referenceTaskIds",
        message.reference_task_ids.iter().map(|item| json!(item)).collect(),
    );
    put_extra(&mut map, &message.extra, extras);
    Value::Object(map)
}

pub fn role(role: Role) -> &'static str {
    match role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
        Role::Unspecified => "ROLE_UNSPECIFIED",
    }
}

pub fn artifact(artifact: &Artifact, extras: Extras) -> Value {
    let Value::Object(mut map) = artifact_head(artifact, extras) else { return Value::Null };
    map.insert("parts".into(), artifact.parts.iter().map(|item| part(item, extras)).collect());
    Value::Object(map)
}

/// An artifact without its parts: what the store keeps beside them.
pub fn artifact_head(artifact: &Artifact, extras: Extras) -> Value {
    let mut map = Map::new();
    map.insert("artifactId".into(), json!(artifact.artifact_id));
    put_some(&mut map, "name", artifact.name.as_ref());
    put_some(&mut map, "description", artifact.description.as_ref());
    put_object(&mut map, "metadata", &artifact.metadata);
    put_list(&mut map, "extensions", artifact.extensions.iter().map(|item| json!(item)).collect());
    put_extra(&mut map, &artifact.extra, extras);
    Value::Object(map)
}

pub fn part(part: &Part, extras: Extras) -> Value {
    let mut map = Map::new();
    match &part.content {
        PartContent::Text(text) => map.insert("text".into(), json!(text)),
        PartContent::Raw(raw) => map.insert("raw".into(), json!(raw)),
        PartContent::Url(url) => map.insert("url".into(), json!(url)),
        PartContent::Data(data) => map.insert("data".into(), data.clone()),
        PartContent::Unknown(value) => match extras {
            Extras::Keep => return value.clone(),
            // 1.0 has a place for any JSON value; the reader still sees what came.
            Extras::Drop | Extras::Members => map.insert("data".into(), value.clone()),
        },
    };
    put_object(&mut map, "metadata", &part.metadata);
    put_some(&mut map, "filename", part.filename.as_ref());
    put_some(&mut map, "mediaType", part.media_type.as_ref());
    put_extra(&mut map, &part.extra, extras);
    Value::Object(map)
}

/// A stream event in its 1.0 wrapper (`StreamResponse`).
pub fn stream_event(event: &StreamEvent, extras: Extras) -> Value {
    match event {
        StreamEvent::Task(inner) => json!({ "task": task(inner, extras) }),
        StreamEvent::Message(inner) => json!({ "message": message(inner, extras) }),
        StreamEvent::Status(inner) => json!({ "statusUpdate": status_update(inner, extras) }),
        StreamEvent::Artifact(inner) => json!({ "artifactUpdate": artifact_update(inner, extras) }),
    }
}

fn status_update(update: &StatusUpdate, extras: Extras) -> Value {
    let mut map = Map::new();
    put_some(&mut map, "taskId", update.task_id.as_ref());
    put_some(&mut map, "contextId", update.context_id.as_ref());
    map.insert("status".into(), status(&update.status, extras));
    put_object(&mut map, "metadata", &update.metadata);
    put_extra(&mut map, &update.extra, extras);
    Value::Object(map)
}

fn artifact_update(update: &ArtifactUpdate, extras: Extras) -> Value {
    let mut map = Map::new();
    put_some(&mut map, "taskId", update.task_id.as_ref());
    put_some(&mut map, "contextId", update.context_id.as_ref());
    map.insert("artifact".into(), artifact(&update.artifact, extras));
    put_flag(&mut map, "append", update.append);
    put_flag(&mut map, "lastChunk", update.last_chunk);
    put_object(&mut map, "metadata", &update.metadata);
    put_extra(&mut map, &update.extra, extras);
    Value::Object(map)
}

pub(crate) fn put_some(map: &mut Map<String, Value>, name: &str, value: Option<&impl serde::Serialize>) {
    if let Some(value) = value {
        map.insert(name.into(), json!(value));
    }
}

pub(crate) fn put_flag(map: &mut Map<String, Value>, name: &str, flag: bool) {
    if flag {
        map.insert(name.into(), Value::Bool(true));
    }
}

pub(crate) fn put_list(map: &mut Map<String, Value>, name: &str, items: Vec<Value>) {
    if !items.is_empty() {
        map.insert(name.into(), Value::Array(items));
    }
}

pub(crate) fn put_object(map: &mut Map<String, Value>, name: &str, object: &Map<String, Value>) {
    if !object.is_empty() {
        map.insert(name.into(), Value::Object(object.clone()));
    }
}

pub(crate) fn put_extra(map: &mut Map<String, Value>, extra: &Map<String, Value>, extras: Extras) {
    match extras {
        Extras::Drop => {}
        Extras::Keep | Extras::Members => {
            for (name, value) in extra {
                map.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::read;

    fn rich() -> Value {
        json!({"id":"t-1","contextId":"c-1",
            "status":{"state":"TASK_STATE_WORKING","timestamp":"2026-01-05T10:00:05Z",
                "message":{"messageId":"m-2","role":"ROLE_AGENT","parts":[{"text":"step"}]}},
            "artifacts":[{"artifactId":"a","name":"n","parts":[
                {"text":"x"},{"raw":"aGk=","filename":"f","mediaType":"text/plain"},
                {"url":"https://h/x"},{"data":[1,2]}]}],
            "history":[{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"hi"}],"referenceTaskIds":["t-0"]}],
            "metadata":{"k":1}})
    }

    #[test]
    fn what_is_read_is_written_back_the_same() {
        let read = read::task(rich()).unwrap();
        assert_eq!(task(&read, Extras::Drop), rich());
    }

    #[test]
    fn a_peer_never_gets_a_member_that_the_proto_does_not_name() {
        let mut value = rich();
        value["kind"] = json!("task");
        value["generation"] = json!("7");
        let read = read::task(value).unwrap();
        assert_eq!(task(&read, Extras::Drop), rich());
        assert_eq!(task(&read, Extras::Keep)["generation"], json!("7"));
    }

    #[test]
    fn false_flags_are_left_out() {
        let value = json!({"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"a","parts":[{"text":"x"}]},
            "append":false,"lastChunk":true}});
        let written = stream_event(&read::stream_event(value).unwrap(), Extras::Drop);
        assert_eq!(written["artifactUpdate"].get("append"), None);
        assert_eq!(written["artifactUpdate"]["lastChunk"], json!(true));
    }
}
