//! Every row of the event stream corpus, whole, octet by octet, and cut in two.
//!
//! The column `client`, what a follower does next, is not looked at here.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use taskbell_core::sse::{Decoder, Event, Limits, StreamEnd};

/// Rows up to this size are cut at every position; larger ones at a few that matter.
const CUT_EVERYWHERE: usize = 4 * 1024;

/// Rows up to this size are fed octet by octet.
const OCTET_BY_OCTET: usize = 1024 * 1024;

#[derive(Deserialize)]
struct Row {
    id: String,
    name: String,
    bytes_b64: Option<String>,
    r#gen: Option<Generator>,
    events: Vec<Seen>,
    /// For rows whose events are too many to list.
    event_count: Option<usize>,
    /// Milliseconds.
    retry: Option<u64>,
    end: String,
    lossy: bool,
}

#[derive(Deserialize)]
struct Generator {
    prefix_b64: String,
    repeat_b64: String,
    count: usize,
    suffix_b64: String,
}

#[derive(Deserialize, Debug, PartialEq, Eq)]
struct Seen {
    event: String,
    data: String,
    id: String,
}

#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    events: Vec<Seen>,
    retry: Option<Duration>,
    end: String,
    lossy: bool,
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

    fn check(&self, outcome: &Outcome, how: &str) {
        let place = format!("{} {}, {how}", self.id, self.name);
        match self.event_count {
            Some(count) => assert_eq!(outcome.events.len(), count, "{place}: events"),
            None => assert_eq!(outcome.events, self.events, "{place}: events"),
        }
        assert_eq!(outcome.end, self.end, "{place}: end");
        assert_eq!(outcome.lossy, self.lossy, "{place}: lossy");
        assert_eq!(outcome.retry, self.retry.map(Duration::from_millis), "{place}: retry");
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

fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut decoder = Decoder::new(Limits::default());
    let mut events = Vec::new();
    let mut collect = |e: Event<'_>| {
        events.push(Seen { event: e.event.to_owned(), data: e.data.to_owned(), id: e.id.to_owned() });
    };
    let pushed = chunks.into_iter().try_for_each(|chunk| decoder.push(chunk, &mut collect));
    let end = match pushed.map(|()| decoder.finish()) {
        Ok(StreamEnd::Clean) => "clean".to_owned(),
        Ok(StreamEnd::IncompleteDiscarded) => "incomplete_discarded".to_owned(),
        Err(fault) => format!("error:{}", fault.code()),
    };
    Outcome { events, retry: decoder.retry(), end, lossy: decoder.lossy() }
}

#[test]
fn every_row_decodes_whole() {
    for row in rows() {
        row.check(&decode([row.bytes().as_slice()]), "whole");
    }
}

#[test]
fn every_row_decodes_octet_by_octet() {
    for row in rows() {
        let bytes = row.bytes();
        let size = if bytes.len() <= OCTET_BY_OCTET { 1 } else { 4093 };
        row.check(&decode(bytes.chunks(size)), &format!("in chunks of {size}"));
    }
}

#[test]
fn every_row_decodes_cut_in_two_anywhere() {
    for row in rows() {
        let bytes = row.bytes();
        let last = bytes.len();
        let places: Vec<usize> = if last <= CUT_EVERYWHERE {
            (0..=last).collect()
        } else {
            let spread = (1..8).map(|n| n * (last / 8) + n);
            (0..8).chain(spread).chain(last - 4..=last).collect()
        };
        for place in places {
            let (first, second) = bytes.split_at(place);
            row.check(&decode([first, second]), &format!("cut at {place}"));
        }
    }
}
