//! What a callback that leaves says: the task as it was at the change, in the dialect of the registration.

use crate::dialect::Dialect;
use crate::task::{StreamEvent, Task};
use crate::{json, relay};

/// Larger tasks go as a status update; the receiver reads the rest.
pub const TASK_MOST: usize = 1 << 20;

/// How much of a task a registration asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodyForm {
    Task,
    /// The status alone; 0.3 only.
    Status,
}

impl BodyForm {
    pub fn word(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Status => "status",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Task, Self::Status].into_iter().find(|form| form.word() == word)
    }
}

/// The media type of a dialect's callbacks.
pub fn content_type(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::V1 => "application/a2a+json",
        Dialect::V03 => "application/json",
    }
}

/// The body: in 1.0 `{"task":T}` with T octet for octet as our answer to GetTask has it, in 0.3 the bare task.
pub fn body(task: &Task, dialect: Dialect, form: BodyForm) -> String {
    if form == BodyForm::Task {
        let whole = json::write_line(&relay::task_value(task, dialect));
        let whole = match dialect {
            Dialect::V1 => format!("{{\"task\":{whole}}}"),
            Dialect::V03 => whole,
        };
        if whole.len() <= TASK_MOST {
            return whole;
        }
    }
    let mut update = relay::status_event(task);
    let status = relay::event_line(&update, dialect);
    if status.len() <= TASK_MOST {
        return status;
    }
    if let StreamEvent::Status(update) = &mut update {
        update.status.message = None;
    }
    relay::event_line(&update, dialect)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::dialect::read;

    fn task(text: &str) -> Task {
        read::task(json!({
            "id": "t-1", "contextId": "c-1", "unheardOf": 1,
            "status": { "state": "TASK_STATE_COMPLETED", "timestamp": "2026-11-30T10:00:00Z" },
            "artifacts": [{ "artifactId": "a-1", "parts": [{ "text": text }] }]
        }))
        .unwrap()
    }

    fn parsed(task: &Task, dialect: Dialect, form: BodyForm) -> Value {
        serde_json::from_str(&body(task, dialect, form)).unwrap()
    }

    #[test]
    fn in_v1_the_task_is_wrapped_and_is_what_a_read_answers() {
        let task = task("done");
        let read = json::write_line(&relay::task_value(&task, Dialect::V1));
        assert_eq!(body(&task, Dialect::V1, BodyForm::Task), format!("{{\"task\":{read}}}"));
        assert!(!read.contains("unheardOf"));
    }

    #[test]
    fn in_v03_it_is_the_bare_task_or_its_status_where_asked_for() {
        let whole = parsed(&task("done"), Dialect::V03, BodyForm::Task);
        assert_eq!((&whole["kind"], &whole["status"]["state"]), (&json!("task"), &json!("completed")));
        let status = parsed(&task("done"), Dialect::V03, BodyForm::Status);
        assert_eq!((&status["kind"], &status["taskId"]), (&json!("status-update"), &json!("t-1")));
        assert_eq!((&status["final"], status.get("artifacts")), (&json!(true), None));
    }

    #[test]
    fn a_task_over_a_mebibyte_goes_as_a_status_update() {
        let large = task(&"x".repeat(TASK_MOST));
        let update = parsed(&large, Dialect::V1, BodyForm::Task);
        assert_eq!(update["statusUpdate"]["status"]["state"], json!("TASK_STATE_COMPLETED"));
        assert_eq!(parsed(&large, Dialect::V03, BodyForm::Task)["kind"], json!("status-update"));
        let mut huge = large;
        huge.status.message = read::message(json!({
            "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "y".repeat(TASK_MOST) }]
        }))
        .ok();
        assert!(huge.status.message.is_some());
        assert!(body(&huge, Dialect::V1, BodyForm::Task).len() < 1_000);
    }
}
