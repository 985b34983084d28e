//! What a follower does next, for every row of the event stream corpus: its column `client`.
//!
//! Each row goes the way of a real stream: decoder, frame reader, task record. The word is then read off
//! what these returned, never off the row.
//!
//! The rows about framing and limits carry filler for data (`one`, `{}`), which on a real stream would be
//! a frame that is no A2A and ask for a read. What they are about is the framing, so where such a row asks
//! for nothing, each of its events carries a status update that says nothing new, and its end is not the
//! end of the stream unless it was cut.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;
use taskbell_core::dialect::{Binding, read};
use taskbell_core::fault::FaultKind;
use taskbell_core::ids::TaskId;
use taskbell_core::merge::{TaskChange, TaskRecord};
use taskbell_core::oddity::Oddity;
use taskbell_core::sse::{Decoder, Event, Limits, StreamEnd};
use taskbell_core::state::TaskState;
use taskbell_core::stream::{FrameContent, FrameReader};

const REQUEST: u64 = 12;
const TASK: &str = "task-10";

/// What one decoder may hold while it hands out many small events.
const QUIET_DECODER: usize = 64 * 1024;

const NO_NEWS: &str = r#"{"jsonrpc":"2.0","id":12,"result":{"statusUpdate":{"taskId":"task-10","contextId":"conversation-10","status":{"state":"working"}}}}"#;

#[derive(Deserialize)]
struct Row {
    id: String,
    name: String,
    class: String,
    bytes_b64: Option<String>,
    r#gen: Option<Generator>,
    event_count: Option<usize>,
    client: String,
}

#[derive(Deserialize)]
struct Generator {
    prefix_b64: String,
    repeat_b64: String,
    count: usize,
    suffix_b64: String,
}

impl Row {
    fn bytes(&self) -> Vec<u8> {
        let decode = |text: &str| STANDARD.decode(text).unwrap_or_else(|e| panic!("{}: {e}", self.id));
        match (&self.bytes_b64, &self.r#gen) {
            (Some(text), None) => decode(text),
            (None, Some(g)) => {
                let mut bytes = decode(&g.prefix_b64);
                bytes.extend(decode(&g.repeat_b64).repeat(g.count));
                bytes.extend(decode(&g.suffix_b64));
                bytes
            }
            _ => panic!("{}: a row has octets or a generator", self.id),
        }
    }

    fn is_about_framing(&self) -> bool {
        matches!(self.class.as_str(), "framing" | "limits")
    }
}

fn rows() -> Vec<Row> {
    let folder = std::env::var_os("TASKBELL_HOSTILE").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hostile")),
        PathBuf::from,
    );
    let path = folder.join("sse_streams.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rows: Vec<Row> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    assert!(!rows.is_empty(), "the corpus must hold rows");
    rows
}

/// All that a follower learns from one stream.
struct Heard {
    record: TaskRecord,
    changes: Vec<TaskChange>,
    oddities: Vec<Oddity>,
    refused: Option<FaultKind>,
    wants_read: bool,
    events: usize,
    /// Octets came, whether or not they made an event.
    alive: bool,
    most_held: usize,
    end: Result<StreamEnd, &'static str>,
    something_else: bool,
}

fn hear(row: &Row, chunk: usize) -> Heard {
    let before = json!({"id": TASK, "contextId": "conversation-10", "status": {"state": "working"}});
    let mut heard = Heard {
        record: TaskRecord::new(read::task(before).expect("a task"), 1),
        changes: Vec::new(),
        oddities: Vec::new(),
        refused: None,
        wants_read: false,
        events: 0,
        alive: false,
        most_held: 0,
        end: Ok(StreamEnd::Clean),
        something_else: false,
    };
    let filler = row.is_about_framing();
    let mut decoder = Decoder::new(Limits::default());
    let mut reader = FrameReader::new(Binding::JsonRpc, REQUEST, Some(TaskId::new(TASK)));
    let mut order = 1;
    let mut fault = None;
    for piece in row.bytes().chunks(chunk) {
        heard.alive = true;
        let pushed = decoder.push(piece, &mut |event: Event<'_>| {
            heard.events += 1;
            order += 1;
            // What damage did to a frame must be seen on the frame itself.
            let data = if filler && !event.lossy { NO_NEWS } else { event.data };
            let frame = reader.read(event.event, data, event.lossy);
            heard.oddities.extend(frame.oddities);
            heard.wants_read |= frame.wants_read;
            match frame.content {
                FrameContent::Event(event) => {
                    let outcome = heard.record.apply_event(*event, order);
                    heard.changes.extend(outcome.changes);
                    heard.oddities.extend(outcome.oddities);
                    heard.wants_read |= outcome.wants_read;
                }
                FrameContent::Refused(error) => heard.refused = Some(error.kind()),
                FrameContent::Nothing => {}
            }
        });
        heard.most_held = heard.most_held.max(decoder.held());
        if let Err(broken) = pushed {
            fault = Some(broken.code());
            break;
        }
    }
    heard.end = match fault {
        Some(code) => Err(code),
        None => Ok(decoder.finish()),
    };
    heard.something_else = decoder.is_something_else();
    heard
}

/// The word for what happens next.
fn word(row: &Row, heard: &Heard) -> &'static str {
    let noted = |kinds: &[&str]| heard.oddities.iter().any(|oddity| kinds.contains(&oddity.kind()));
    if heard.end.is_err() {
        return "abort_reconcile";
    }
    if heard.record.state() == TaskState::Completed {
        assert!(heard.wants_read, "{}: a terminal state from a stream is confirmed by a read", row.id);
        return match (heard.record.incomplete.is_empty(), heard.oddities.is_empty()) {
            (false, _) => "task_completed_refetch_artifacts",
            (true, false) => "task_completed_with_warning",
            (true, true) => "task_completed",
        };
    }
    if let Some(kind) = heard.refused {
        assert!(heard.wants_read, "{}: a refusal is a reason to read the task", row.id);
        return if kind == FaultKind::TaskNotFound { "task_not_found" } else { "refused" };
    }
    if heard.something_else {
        return "protocol_error_reconcile";
    }
    if noted(&[
        "damaged_text",
        "not_json",
        "unsafe_json",
        "unknown_shape",
        "wrong_response_id",
        "foreign_task",
    ]) {
        assert!(heard.wants_read, "{}: what is not believed is a reason to read the task", row.id);
    }
    if noted(&["damaged_text"]) {
        return "mark_damaged_reconcile";
    }
    if noted(&["not_json", "unsafe_json", "unknown_shape"]) {
        return "protocol_error_reconcile";
    }
    if noted(&["wrong_response_id", "foreign_task"]) {
        return "ignore_and_reconcile";
    }
    let cut = heard.end == Ok(StreamEnd::IncompleteDiscarded) || !row.is_about_framing();
    if heard.wants_read || cut {
        return "reconcile_get_task";
    }
    assert_eq!(heard.record.state(), TaskState::Working, "{}: framing changes no task", row.id);
    assert!(heard.changes.is_empty(), "{}: framing changes no task: {:?}", row.id, heard.changes);
    match heard.events {
        0 if heard.alive => "reset_idle_timer",
        1000.. if heard.most_held < QUIET_DECODER => "backpressure",
        _ => "none",
    }
}

#[test]
fn every_row_leads_to_what_its_column_client_says() {
    for row in rows() {
        let length = row.bytes().len();
        let sizes: &[usize] = if length < 4 * 1024 { &[usize::MAX, 1, 7] } else { &[1024 * 1024, 4093] };
        for &size in sizes {
            let heard = hear(&row, size);
            let place = format!("{} {}, in chunks of {size}", row.id, row.name);
            assert_eq!(word(&row, &heard), row.client, "{place}: noted {:?}", heard.oddities);
            if let Some(count) = row.event_count {
                assert_eq!(heard.events, count, "{place}: events");
            }
        }
    }
}

fn heard(id: &str) -> Heard {
    let row = rows().into_iter().find(|row| row.id == id).unwrap_or_else(|| panic!("no row {id}"));
    hear(&row, usize::MAX)
}

#[test]
fn a_repeated_terminal_frame_is_one_change() {
    let ends = heard("sse-64")
        .changes
        .into_iter()
        .filter(|change| matches!(change, TaskChange::Status { to: TaskState::Completed, .. }));
    assert_eq!(ends.count(), 1, "the user is told once");
}

#[test]
fn chunks_of_an_artifact_are_one_text() {
    assert_eq!(heard("sse-68").record.task.artifacts[0].text(), "Hello");
}

#[test]
fn nothing_after_a_terminal_frame_is_applied() {
    let heard = heard("sse-58");
    let after: Vec<_> = heard.oddities.iter().filter(|oddity| oddity.kind() == "after_terminal").collect();
    assert_eq!(after.len(), 2, "each of the two late frames is noted: {:?}", heard.oddities);
}

#[test]
fn a_state_of_no_version_is_kept_by_its_word() {
    let heard = heard("sse-54");
    assert_eq!(heard.record.state(), TaskState::Unknown);
    assert_eq!(heard.record.task.status.raw_state, "paused");
}

#[test]
fn news_of_another_task_touches_nothing() {
    let heard = heard("sse-57");
    assert_eq!(heard.record.state(), TaskState::Working);
    assert!(heard.changes.is_empty(), "{:?}", heard.changes);
}

#[test]
fn a_flood_of_comments_is_held_in_no_memory() {
    assert!(heard("sse-47").most_held < QUIET_DECODER);
}
