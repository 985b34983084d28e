//! Where a claim and the confirmed task differ, as JSON pointers into the claim brought to the task's shape.

use serde_json::{Map, Value, json};

use crate::dialect::v1::{self, Extras};
use crate::task::{StreamEvent, Task};

/// Differences that are listed at most.
pub const DIFFERENCES_MAX: usize = 200;

/// One place in which the two documents differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Into the task: `/status/state`, `/artifacts/0/parts/1/text`.
    pub pointer: String,
    pub claimed: Value,
    /// None: the confirmed task has nothing there.
    pub confirmed: Option<Value>,
}

/// What the claim says of the task, in the task's own shape: only the members it has.
pub fn as_task(claim: &StreamEvent) -> Value {
    let mut map = Map::new();
    match claim {
        StreamEvent::Task(task) => return v1::task(task, Extras::Keep),
        StreamEvent::Status(update) => {
            v1::put_some(&mut map, "id", update.task_id.as_ref());
            v1::put_some(&mut map, "contextId", update.context_id.as_ref());
            map.insert("status".into(), v1::status(&update.status, Extras::Keep));
        }
        StreamEvent::Artifact(update) => {
            v1::put_some(&mut map, "id", update.task_id.as_ref());
            v1::put_some(&mut map, "contextId", update.context_id.as_ref());
            map.insert("artifacts".into(), json!([v1::artifact(&update.artifact, Extras::Keep)]));
        }
        StreamEvent::Message(message) => {
            v1::put_some(&mut map, "id", message.task_id.as_ref());
            v1::put_some(&mut map, "contextId", message.context_id.as_ref());
            map.insert("history".into(), json!([v1::message(message, Extras::Keep)]));
        }
    }
    Value::Object(map)
}

/// Everything that the claim says and the task does not, [`DIFFERENCES_MAX`] at most. What only the task
/// says is no difference: a claim need not tell everything. Artifacts and messages go by their ids.
pub fn differences(claim: &StreamEvent, task: &Task) -> Vec<Difference> {
    let claimed = as_task(claim);
    let confirmed = v1::task(task, Extras::Keep);
    let mut found = Vec::new();
    compare(&mut String::new(), &claimed, Some(&confirmed), &mut found);
    found
}

fn compare(pointer: &mut String, claimed: &Value, confirmed: Option<&Value>, found: &mut Vec<Difference>) {
    if found.len() >= DIFFERENCES_MAX || Some(claimed) == confirmed {
        return;
    }
    let length = pointer.len();
    match (claimed, confirmed) {
        (Value::Object(claimed), Some(Value::Object(confirmed))) => {
            for (name, value) in claimed {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                compare(pointer, value, confirmed.get(name), found);
                pointer.truncate(length);
            }
        }
        (Value::Array(claimed), Some(Value::Array(confirmed))) => {
            for (index, value) in claimed.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                compare(pointer, value, counterpart(value, index, confirmed), found);
                pointer.truncate(length);
            }
        }
        _ => found.push(Difference {
            pointer: pointer.clone(),
            claimed: claimed.clone(),
            confirmed: confirmed.cloned(),
        }),
    }
}

/// The item that is meant by the same id, or stands in the same place where there is none.
fn counterpart<'a>(value: &Value, index: usize, confirmed: &'a [Value]) -> Option<&'a Value> {
    let id = ["artifactId", "messageId"].into_iter().find_map(|name| {
        value.get(name).filter(|id| id.as_str().is_some_and(|id| !id.is_empty())).map(|id| (name, id))
    });
    match id {
        Some((name, id)) => confirmed.iter().find(|item| item.get(name) == Some(id)),
        None => confirmed.get(index),
    }
}
