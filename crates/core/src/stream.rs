//! Reads the frames of one event stream: what each says of the task the stream was opened for.
//!
//! Byte framing is [`crate::sse`]; what a frame changes is [`crate::merge`]. Here it is decided whether
//! a frame may be believed at all: it must answer our request, be about our task, and be readable.
//! Whatever is not believed asks for a read of the task instead.

use crate::dialect::{Binding, read};
use crate::fault::RemoteError;
use crate::ids::TaskId;
use crate::json::{self, JsonFault};
use crate::jsonrpc::Response;
use crate::oddity::Oddity;
use crate::state::{TaskState, Vocabulary, vocabulary_of};
use crate::task::StreamEvent;

/// Reads one stream's frames. One per attempt: the request id changes with each.
#[derive(Debug, Clone)]
pub struct FrameReader {
    binding: Binding,
    request_id: u64,
    /// None while a streaming send has not yet told which task it made.
    task_id: Option<TaskId>,
    vocabulary: Option<Vocabulary>,
}

/// What a frame is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadFrame {
    pub content: FrameContent,
    pub oddities: Vec<Oddity>,
    /// The task must be read: this frame was not what it should be.
    pub wants_read: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FrameContent {
    Event(Box<StreamEvent>),
    /// The peer ends the stream with an error. It says nothing of the task.
    Refused(RemoteError),
    Nothing,
}

impl ReadFrame {
    fn event(event: StreamEvent, oddities: Vec<Oddity>, wants_read: bool) -> Self {
        Self { content: FrameContent::Event(Box::new(event)), oddities, wants_read }
    }

    fn nothing() -> Self {
        Self { content: FrameContent::Nothing, oddities: Vec::new(), wants_read: false }
    }

    fn unbelieved(oddity: Oddity) -> Self {
        Self { content: FrameContent::Nothing, oddities: vec![oddity], wants_read: true }
    }
}

impl FrameReader {
    pub fn new(binding: Binding, request_id: u64, task_id: Option<TaskId>) -> Self {
        Self { binding, request_id, task_id, vocabulary: None }
    }

    /// Reads one complete event. `event_type` is the SSE event type: frames of another name than
    /// `message` are read for an error only (JavaScript and Python use `event: error`).
    pub fn read(&mut self, event_type: &str, data: &str, lossy: bool) -> ReadFrame {
        // Keep-alives with an empty data line, and the sentinel of other streaming APIs.
        if data.is_empty() || data == "[DONE]" {
            return ReadFrame::nothing();
        }
        let value = match json::parse_str(data) {
            Ok(value) => value,
            Err(_) if event_type != "message" && event_type != "error" => return ReadFrame::nothing(),
            // The damage is why it cannot be read.
            Err(_) if lossy => return ReadFrame::unbelieved(Oddity::Damaged),
            Err(JsonFault::TooDeep | JsonFault::RepeatedKey { .. }) => {
                return ReadFrame::unbelieved(Oddity::UnsafeJson);
            }
            Err(_) => return ReadFrame::unbelieved(Oddity::NotJson),
        };
        // Frames of another name are other people's: heartbeats, counters, whatever shape they have.
        if event_type != "message" && value.get("error").is_none() && !is_rest_error(&value) {
            return ReadFrame::nothing();
        }
        let result = match self.binding {
            Binding::JsonRpc => match Response::read(value, None) {
                Ok(response) if !response.answers(self.request_id) => {
                    return ReadFrame::unbelieved(Oddity::WrongResponseId);
                }
                Ok(response) => response.outcome,
                Err(_) => return ReadFrame::unbelieved(Oddity::UnknownShape),
            },
            Binding::Rest if is_rest_error(&value) => Err(RemoteError::from_body(&value, None)),
            Binding::Rest => Ok(value),
        };
        let value = match result {
            Err(error) => {
                return ReadFrame {
                    content: FrameContent::Refused(error),
                    oddities: Vec::new(),
                    wants_read: true,
                };
            }
            Ok(value) => value,
        };
        match read::stream_event(value) {
            Ok(event) => self.judge(event, lossy),
            Err(_) => ReadFrame::unbelieved(Oddity::UnknownShape),
        }
    }

    fn judge(&mut self, event: StreamEvent, lossy: bool) -> ReadFrame {
        match (&self.task_id, event.task_id()) {
            // JavaScript's crash report names a task id of its own making: it is not ours to apply.
            (Some(ours), Some(theirs)) if ours != theirs => {
                return ReadFrame::unbelieved(Oddity::ForeignTask);
            }
            (None, Some(theirs)) => self.task_id = Some(theirs.clone()),
            (Some(_) | None, _) => {}
        }
        let mut oddities = Vec::new();
        let mut wants_read = false;
        if lossy {
            oddities.push(Oddity::Damaged);
            wants_read = true;
        }
        if let Some(status) = match &event {
            StreamEvent::Task(task) => Some(&task.status),
            StreamEvent::Status(update) => Some(&update.status),
            StreamEvent::Message(_) | StreamEvent::Artifact(_) => None,
        } {
            let vocabulary = vocabulary_of(&status.raw_state);
            if let (Some(before), Some(now)) = (self.vocabulary, vocabulary)
                && before != now
            {
                oddities.push(Oddity::MixedVocabulary);
            }
            self.vocabulary = vocabulary.or(self.vocabulary);
            if status.state == TaskState::Unknown {
                oddities.push(Oddity::UnknownState { raw: status.raw_state.clone() });
                wants_read = true;
            }
        }
        ReadFrame::event(event, oddities, wants_read)
    }
}

/// REST error frames: `{"error":{…}}`, or the reference Rust server's bare `{"code":-32001,"message":…}`.
fn is_rest_error(value: &serde_json::Value) -> bool {
    value.get("error").is_some_and(serde_json::Value::is_object)
        || (value.get("code").is_some_and(serde_json::Value::is_i64) && value.get("message").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultKind;

    fn reader() -> FrameReader {
        FrameReader::new(Binding::JsonRpc, 12, Some(TaskId::new("t")))
    }

    fn frame(task: &str, state: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":12,"result":{{"kind":"status-update","taskId":"{task}","status":{{"state":"{state}"}}}}}}"#
        )
    }

    #[test]
    fn an_event_of_our_task_is_believed() {
        let read = reader().read("message", &frame("t", "working"), false);
        assert!(matches!(read.content, FrameContent::Event(_)) && !read.wants_read);
    }

    #[test]
    fn an_event_of_another_task_touches_nothing_and_asks_for_a_read() {
        let read = reader().read("message", &frame("other", "failed"), false);
        assert_eq!(read, ReadFrame::unbelieved(Oddity::ForeignTask));
    }

    #[test]
    fn an_error_frame_is_read_with_and_without_its_name() {
        for name in ["message", "error"] {
            let data = r#"{"jsonrpc":"2.0","id":12,"error":{"code":-32001,"message":"Task not found"}}"#;
            let FrameContent::Refused(error) = reader().read(name, data, false).content else {
                panic!("an error under {name}")
            };
            assert_eq!(error.kind(), FaultKind::TaskNotFound);
        }
    }

    #[test]
    fn a_frame_of_another_name_without_an_error_is_ignored() {
        assert_eq!(reader().read("ping", &frame("t", "failed"), false), ReadFrame::nothing());
        for data in ["hello", "{}", "[1]", "7"] {
            assert_eq!(reader().read("ping", data, false), ReadFrame::nothing(), "{data}");
        }
    }

    #[test]
    fn mixed_vocabularies_are_read_and_noted() {
        let mut reader = reader();
        assert!(reader.read("message", &frame("t", "working"), false).oddities.is_empty());
        let read = reader.read("message", &frame("t", "TASK_STATE_COMPLETED"), false);
        assert_eq!(read.oddities, vec![Oddity::MixedVocabulary]);
        assert!(matches!(read.content, FrameContent::Event(_)));
    }

    #[test]
    fn a_frame_that_damage_made_unreadable_is_damaged_and_not_bad_json() {
        let read = reader().read("message", "{\"x\":\u{fffd}}", true);
        assert_eq!(read, ReadFrame::unbelieved(Oddity::Damaged));
        let read = reader().read("message", "{\"x\":\u{fffd}}", false);
        assert_eq!(read, ReadFrame::unbelieved(Oddity::NotJson));
    }

    #[test]
    fn a_sentinel_or_an_empty_event_means_nothing() {
        assert_eq!(reader().read("message", "[DONE]", false), ReadFrame::nothing());
        assert_eq!(reader().read("message", "", false), ReadFrame::nothing());
    }

    #[test]
    fn a_streaming_send_learns_its_task_from_the_first_frame() {
        let mut reader = FrameReader::new(Binding::JsonRpc, 12, None);
        assert!(!reader.read("message", &frame("t-9", "working"), false).wants_read);
        assert!(reader.read("message", &frame("t-8", "working"), false).wants_read);
    }
}
