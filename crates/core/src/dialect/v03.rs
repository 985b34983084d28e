//! Writes 0.3 for JSON-RPC: `kind` on every object and part, lowercase states and roles, `contextId`
//! always, `final` on every status update (the old clients crash without it).

use serde_json::{Map, Value, json};

use super::v1::{Extras, put_extra, put_list, put_object, put_some};
use crate::task::{
    Artifact, ArtifactUpdate, Message, Part, PartContent, Role, StatusUpdate, StreamEvent, Task, TaskStatus,
};

pub fn task(task: &Task, extras: Extras) -> Value {
    let mut map = Map::new();
    map.insert("kind".into(), json!("task"));
    map.insert("id".into(), json!(task.id));
    map.insert("contextId".into(), json!(task.context_id.as_ref().map_or("", |id| id.as_str())));
    map.insert("status".into(), status(&task.status, extras));
    put_list(&mut map, "artifacts", task.artifacts.iter().map(|item| artifact(item, extras)).collect());
    put_list(&mut map, "history", task.history.iter().map(|item| message(item, extras)).collect());
    put_object(&mut map, "metadata", &task.metadata);
    put_extra(&mut map, &task.extra, extras);
    Value::Object(map)
}

pub fn status(status: &TaskStatus, extras: Extras) -> Value {
    let mut map = Map::new();
    map.insert("state".into(), json!(status.state.word()));
    if let Some(inner) = &status.message {
        map.insert("message".into(), message(inner, extras));
    }
    put_some(&mut map, "timestamp", status.timestamp.as_ref());
    put_extra(&mut map, &status.extra, extras);
    Value::Object(map)
}

pub fn message(message: &Message, extras: Extras) -> Value {
    let mut map = Map::new();
    map.insert("kind".into(), json!("message"));
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

/// 0.3 knows two roles; whoever is unnamed is not the user.
fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Agent | Role::Unspecified => "agent",
    }
}

pub fn artifact(artifact: &Artifact, extras: Extras) -> Value {
    let Value::Object(mut map) = super::v1::artifact_head(artifact, extras) else { return Value::Null };
    map.insert("parts".into(), artifact.parts.iter().map(|item| part(item, extras)).collect());
    Value::Object(map)
}

pub fn part(part: &Part, extras: Extras) -> Value {
    let mut map = Map::new();
    let mut file = |place: &str, content: &str| {
        let mut inner = Map::new();
        inner.insert(place.into(), json!(content));
        put_some(&mut inner, "mimeType", part.media_type.as_ref());
        put_some(&mut inner, "name", part.filename.as_ref());
        map.insert("kind".into(), json!("file"));
        map.insert("file".into(), Value::Object(inner));
    };
    match &part.content {
        PartContent::Text(text) => {
            map.insert("kind".into(), json!("text"));
            map.insert("text".into(), json!(text));
        }
        PartContent::Raw(raw) => file("bytes", raw),
        PartContent::Url(url) => file("uri", url),
        PartContent::Data(data) => {
            map.insert("kind".into(), json!("data"));
            map.insert("data".into(), data_object(data));
        }
        PartContent::Unknown(value) => match extras {
            Extras::Keep => return value.clone(),
            Extras::Drop | Extras::Members => {
                map.insert("kind".into(), json!("data"));
                map.insert("data".into(), data_object(value));
            }
        },
    }
    put_object(&mut map, "metadata", &part.metadata);
    put_extra(&mut map, &part.extra, extras);
    Value::Object(map)
}

/// 0.3's data is an object, 1.0's any JSON value: anything else is put under `value`.
fn data_object(data: &Value) -> Value {
    match data {
        Value::Object(_) => data.clone(),
        other => json!({ "value": other }),
    }
}

/// A stream event as the bare 0.3 object.
pub fn stream_event(event: &StreamEvent, extras: Extras) -> Value {
    match event {
        StreamEvent::Task(inner) => task(inner, extras),
        StreamEvent::Message(inner) => message(inner, extras),
        StreamEvent::Status(inner) => status_update(inner, extras),
        StreamEvent::Artifact(inner) => artifact_update(inner, extras),
    }
}

fn status_update(update: &StatusUpdate, extras: Extras) -> Value {
    let mut map = update_head("status-update", update.task_id.as_ref(), update.context_id.as_ref());
    map.insert("status".into(), status(&update.status, extras));
    let is_final = update.is_final.unwrap_or_else(|| update.status.state.is_terminal());
    map.insert("final".into(), Value::Bool(is_final));
    put_object(&mut map, "metadata", &update.metadata);
    put_extra(&mut map, &update.extra, extras);
    Value::Object(map)
}

fn artifact_update(update: &ArtifactUpdate, extras: Extras) -> Value {
    let mut map = update_head("artifact-update", update.task_id.as_ref(), update.context_id.as_ref());
    map.insert("artifact".into(), artifact(&update.artifact, extras));
    map.insert("append".into(), Value::Bool(update.append));
    map.insert("lastChunk".into(), Value::Bool(update.last_chunk));
    put_object(&mut map, "metadata", &update.metadata);
    put_extra(&mut map, &update.extra, extras);
    Value::Object(map)
}

fn update_head(
    kind: &str,
    task_id: Option<&crate::ids::TaskId>,
    context_id: Option<&crate::ids::ContextId>,
) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("kind".into(), json!(kind));
    map.insert("taskId".into(), json!(task_id.map_or("", |id| id.as_str())));
    map.insert("contextId".into(), json!(context_id.map_or("", |id| id.as_str())));
    map
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::read;

    #[test]
    fn a_1_0_task_becomes_a_0_3_task() {
        let read = read::task(json!({"id":"t","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED"},
            "artifacts":[{"artifactId":"a","parts":[{"text":"x"},{"url":"https://h/x","mediaType":"text/plain"},{"data":[1]}]}],
            "history":[{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}]}))
        .unwrap();
        assert_eq!(
            task(&read, Extras::Drop),
            json!({"kind":"task","id":"t","contextId":"c","status":{"state":"input-required"},
                "artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"x"},
                    {"kind":"file","file":{"uri":"https://h/x","mimeType":"text/plain"}},
                    {"kind":"data","data":{"value":[1]}}]}],
                "history":[{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"hi"}]}]})
        );
    }

    #[test]
    fn every_status_update_says_whether_it_is_final() {
        for (state, is_final) in [("TASK_STATE_WORKING", false), ("TASK_STATE_COMPLETED", true)] {
            let event =
                read::stream_event(json!({"statusUpdate":{"taskId":"t","status":{"state":state}}})).unwrap();
            assert_eq!(stream_event(&event, Extras::Drop)["final"], json!(is_final));
        }
    }
}
