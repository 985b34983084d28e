//! What a client of ours gets to see of a task: events as lines of its dialect, numbered so that whoever
//! comes back is told what it missed.
//!
//! Stream frames are passed on as they are. What a read found is told as events, too: artifacts whole, so
//! that telling something twice does no harm, and the status last. A task frame in the middle of an upstream
//! stream is not passed on: Python's clients stop at a second one.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

use crate::dialect::v1::Extras;
use crate::dialect::{Dialect, v1, v03};
use crate::ids::{ContextId, TaskId};
use crate::json::write_line;
use crate::merge::TaskChange;
use crate::state::TaskState;
use crate::task::{ArtifactUpdate, Message, SendAnswer, StatusUpdate, StreamEvent, Task, TaskStatus};

/// A place in what was told of a task: `<start of the engine>-<n>`, the start in Unix milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventId {
    pub start_ms: i64,
    pub n: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.start_ms, self.n)
    }
}

/// Not an id of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an event id of ours")]
pub struct NotAnEventId;

impl FromStr for EventId {
    type Err = NotAnEventId;

    fn from_str(text: &str) -> Result<Self, NotAnEventId> {
        let (start, n) = text.split_once('-').ok_or(NotAnEventId)?;
        let id = Self {
            start_ms: start.parse().map_err(|_| NotAnEventId)?,
            n: n.parse().map_err(|_| NotAnEventId)?,
        };
        // One spelling only: "+1", "01" and the like were never sent.
        if id.to_string() == text { Ok(id) } else { Err(NotAnEventId) }
    }
}

/// What an event means for those who listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// More may come.
    Goes,
    /// The agent waits for an answer: who listens to one turn is done.
    TurnOver,
    /// The task has ended: everybody is done.
    TaskOver,
}

/// What stands after an event. Being signed in elsewhere may let a task go on by itself (1.0 §7.6), so that
/// `auth-required` ends nothing.
pub fn after(event: &StreamEvent) -> After {
    state_of(event).map_or(After::Goes, after_state)
}

/// The task's state, where an event says it.
pub fn state_of(event: &StreamEvent) -> Option<TaskState> {
    match event {
        StreamEvent::Task(task) => Some(task.status.state),
        StreamEvent::Status(update) => Some(update.status.state),
        StreamEvent::Message(_) | StreamEvent::Artifact(_) => None,
    }
}

pub fn after_state(state: TaskState) -> After {
    match state {
        state if state.is_terminal() => After::TaskOver,
        TaskState::InputRequired => After::TurnOver,
        _ => After::Goes,
    }
}

/// Names task and context where the agent did not, and says of a status whether it is 0.3's last word.
pub fn complete(event: &mut StreamEvent, task_id: &TaskId, context_id: Option<&ContextId>) {
    let is_final = after(event) != After::Goes;
    match event {
        StreamEvent::Task(task) => {
            task.context_id = task.context_id.take().or_else(|| context_id.cloned());
        }
        StreamEvent::Status(update) => {
            update.task_id.get_or_insert_with(|| task_id.clone());
            update.context_id = update.context_id.take().or_else(|| context_id.cloned());
            update.is_final = Some(is_final);
        }
        StreamEvent::Artifact(update) => {
            update.task_id.get_or_insert_with(|| task_id.clone());
            update.context_id = update.context_id.take().or_else(|| context_id.cloned());
        }
        StreamEvent::Message(message) => {
            message.task_id.get_or_insert_with(|| task_id.clone());
            message.context_id = message.context_id.take().or_else(|| context_id.cloned());
        }
    }
}

/// What changed of a task, as events. History is not among them: no version has an event for it.
pub fn news(task: &Task, changes: &[TaskChange]) -> Vec<StreamEvent> {
    let mut wanted = Vec::new();
    let mut status = false;
    for change in changes {
        match change {
            TaskChange::Status { .. } => status = true,
            TaskChange::ArtifactReplaced { index } | TaskChange::ArtifactExtended { index, .. } => {
                if !wanted.contains(index) {
                    wanted.push(*index);
                }
            }
            TaskChange::ArtifactsReplaced => wanted = (0..task.artifacts.len()).collect(),
            TaskChange::HistoryExtended { .. }
            | TaskChange::HistoryReplaced
            | TaskChange::Details
            | TaskChange::Settled => {}
        }
    }
    let artifacts = wanted.into_iter().filter_map(|index| task.artifacts.get(index));
    let mut events: Vec<StreamEvent> = artifacts
        .map(|artifact| {
            StreamEvent::Artifact(ArtifactUpdate {
                task_id: Some(task.id.clone()),
                context_id: task.context_id.clone(),
                artifact: artifact.clone(),
                append: false,
                last_chunk: false,
                metadata: Map::new(),
                extra: Map::new(),
            })
        })
        .collect();
    if status {
        events.push(status_event(task));
    }
    events
}

/// The present status as an event.
pub fn status_event(task: &Task) -> StreamEvent {
    let mut event = StreamEvent::Status(StatusUpdate {
        task_id: Some(task.id.clone()),
        context_id: task.context_id.clone(),
        status: task.status.clone(),
        is_final: None,
        metadata: Map::new(),
        extra: Map::new(),
    });
    complete(&mut event, &task.id, task.context_id.as_ref());
    event
}

/// An event as it stands under `result`, on one line.
pub fn event_line(event: &StreamEvent, dialect: Dialect) -> String {
    write_line(&match dialect {
        Dialect::V03 => v03::stream_event(event, Extras::Members),
        Dialect::V1 => {
            let mut value = v1::stream_event(event, Extras::Drop);
            mend_times(&mut value);
            value
        }
    })
}

/// A task as the answer to a read or a cancellation.
pub fn task_value(task: &Task, dialect: Dialect) -> Value {
    match dialect {
        Dialect::V03 => v03::task(task, Extras::Members),
        Dialect::V1 => {
            let mut value = v1::task(task, Extras::Drop);
            mend_times(&mut value);
            value
        }
    }
}

/// The answer to a send: bare in 0.3, wrapped in 1.0.
pub fn answer_value(answer: &SendAnswer, dialect: Dialect) -> Value {
    match (answer, dialect) {
        (SendAnswer::Task(task), Dialect::V03) => task_value(task, dialect),
        (SendAnswer::Task(task), Dialect::V1) => serde_json::json!({ "task": task_value(task, dialect) }),
        (SendAnswer::Message(message), Dialect::V03) => v03::message(message, Extras::Members),
        (SendAnswer::Message(message), Dialect::V1) => {
            serde_json::json!({ "message": v1::message(message, Extras::Drop) })
        }
    }
}

/// The last `length` messages; all where nobody said how many.
pub fn cut_history(history: &mut Vec<Message>, length: Option<u32>) {
    if let Some(length) = length {
        let excess = history.len().saturating_sub(length as usize);
        history.drain(..excess);
    }
}

/// 1.0 wants instants in UTC with a zone, and the Python SDK refuses others: agents' timestamps of a status
/// are put right where they can be read, and left out where not.
fn mend_times(value: &mut Value) {
    let status = ["/status", "/task/status", "/statusUpdate/status"];
    let Some(place) = status.into_iter().find(|place| value.pointer(place).is_some()) else { return };
    let Some(Value::Object(status)) = value.pointer_mut(place) else { return };
    let Some(given) = status.get("timestamp") else { return };
    match given.as_str().and_then(instant) {
        Some(text) => {
            status.insert("timestamp".into(), Value::String(text));
        }
        None => {
            status.remove("timestamp");
        }
    }
}

/// As received where it is in UTC already; with a zone where it has none, or another.
fn instant(text: &str) -> Option<String> {
    match text.parse::<jiff::Timestamp>() {
        Ok(_) if text.ends_with('Z') => Some(text.to_owned()),
        Ok(at) => Some(at.to_string()),
        Err(_) => {
            let local: jiff::civil::DateTime = text.parse().ok()?;
            let at = local.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
            Some(at.to_string())
        }
    }
}

/// A task as first heard of by one of its events, where an agent's stream does not begin with the task.
pub fn task_of_event(event: &StreamEvent) -> Option<Task> {
    let (id, context_id) = match event {
        StreamEvent::Task(task) => return Some(task.clone()),
        StreamEvent::Status(update) => (update.task_id.clone()?, update.context_id.clone()),
        StreamEvent::Artifact(update) => (update.task_id.clone()?, update.context_id.clone()),
        StreamEvent::Message(_) => return None,
    };
    Some(Task {
        id,
        context_id,
        status: TaskStatus::new(TaskState::Submitted),
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: Map::new(),
        extra: Map::new(),
    })
}

#[cfg(test)]
mod tests;
