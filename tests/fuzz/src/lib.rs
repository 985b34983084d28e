//! What the fuzz targets share. Each target is a promise about what strangers can send, and fails by panicking.

use serde_json::Value;
use taskbell_core::dialect::{Dialect, read};
use taskbell_core::json;
use taskbell_core::relay::event_line;
use taskbell_core::task::StreamEvent;

pub const DIALECTS: [Dialect; 2] = [Dialect::V03, Dialect::V1];

/// The first event that `octets` hold, in whatever shape.
pub fn event(octets: &[u8]) -> Option<StreamEvent> {
    read::stream_event(json::parse(octets).ok()?).ok()
}

/// What we write, we can read, and writing it once more changes nothing: clients that come back get the same octets.
pub fn assert_stable(event: &StreamEvent) {
    for dialect in DIALECTS {
        let line = event_line(event, dialect);
        assert!(!line.contains(['\n', '\r']), "a line of a stream is one line");
        let value: Value = json::parse_str(&line).expect("what we write is JSON within our own limits");
        let again = read::stream_event(value).expect("what we write is an event");
        assert_eq!(event_line(&again, dialect), line);
    }
}
