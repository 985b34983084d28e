//! Event streams: octets in, events out, by the rules of WHATWG HTML §9.2 and with hard limits.
//!
//! The limits are ours, the grammar is not: a byte order mark is dropped once, CR, LF and CR LF
//! all end a line wherever the network cuts them, invalid UTF-8 becomes U+FFFD and the stream
//! goes on. An event that lies whole within one chunk is handed out as a slice of that chunk.
//! A quiet decoder holds almost nothing, because thousands of them wait at once.
//!
//! What an event means, when to reconnect and how long silence may last is decided elsewhere.
//! There is no resume here: A2A agents replay nothing.

use std::borrow::Cow;
use std::mem;
use std::time::Duration;

use memchr::{memchr, memchr2};

/// A buffer larger than this is given back as soon as its content is used up.
const KEPT_CAPACITY: usize = 4 * 1024;

/// A longer id is passed over like one with a NUL: it fits no `Last-Event-ID` header, and it
/// would be held for as long as the stream lives.
const MAX_ID: usize = 4 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

const FIELD_NAMES: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

/// How much one peer may make a decoder hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Octets of one line, its end not counted.
    pub line: usize,
    /// Octets of one event's data, with the line feeds that join its lines.
    pub event: usize,
    /// Data lines of one event. An empty one costs memory too.
    pub lines: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { line: 16 << 20, event: 16 << 20, lines: 65_536 }
    }
}

/// One event, borrowed from the chunk or from the decoder until the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The type; `message` where the stream names none.
    pub event: &'a str,
    /// The data lines, joined by line feeds.
    pub data: &'a str,
    /// The last id the stream gave, in this event or an earlier one. Empty if none.
    pub id: &'a str,
    /// A field of this event was not UTF-8 and was mended with U+FFFD.
    pub lossy: bool,
}

/// A limit the peer broke. The stream is of no further use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseFault {
    #[error("event stream line is longer than {limit} octets")]
    LineTooLong { limit: usize },
    #[error("event stream event is larger than {limit} octets")]
    EventTooLarge { limit: usize },
    #[error("event stream event has more than {limit} lines")]
    EventTooManyLines { limit: usize },
}

impl SseFault {
    /// The stable word for this fault.
    pub fn code(self) -> &'static str {
        match self {
            Self::LineTooLong { .. } => "line_too_long",
            Self::EventTooLarge { .. } => "event_too_large",
            Self::EventTooManyLines { .. } => "event_too_many_lines",
        }
    }
}

/// How a stream ended, as far as its octets tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// Between two events.
    Clean,
    /// Within an event or a line. What there was of it is dropped, as the specification says:
    /// half an event did not happen.
    IncompleteDiscarded,
}

/// The decoder of one stream. Push chunks as they arrive, then [`finish`](Decoder::finish).
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    /// A line whose end has not arrived.
    line: Vec<u8>,
    /// The event's data so far, unless it still lies in the chunk being read.
    data: Vec<u8>,
    data_lines: usize,
    event: String,
    /// As the last `id` field said, and as the last finished block left it. They differ within
    /// a block only: the id of a block that was cut must not count as received.
    id: String,
    last_id: String,
    retry: Option<Duration>,
    before_first_line: bool,
    after_cr: bool,
    event_lossy: bool,
    lossy: bool,
    had_event: bool,
    /// A line of no field that event streams have.
    foreign_line: bool,
    fault: Option<SseFault>,
}

impl Decoder {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            line: Vec::new(),
            data: Vec::new(),
            data_lines: 0,
            event: String::new(),
            id: String::new(),
            last_id: String::new(),
            retry: None,
            before_first_line: true,
            after_cr: false,
            event_lossy: false,
            lossy: false,
            had_event: false,
            foreign_line: false,
            fault: None,
        }
    }

    /// Reads a chunk and hands out every event that it completes, in order.
    ///
    /// After a fault nothing more is read: every later call returns the same fault.
    pub fn push(&mut self, chunk: &[u8], out: &mut impl FnMut(Event<'_>)) -> Result<(), SseFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        self.read(chunk, out).inspect_err(|fault| {
            self.fault = Some(*fault);
            self.line = Vec::new();
            self.forget_event();
        })
    }

    /// The stream is over; what is incomplete is dropped. [`lossy`](Self::lossy) is exact after this.
    pub fn finish(&mut self) -> StreamEnd {
        let mut line = mem::take(&mut self.line);
        line.drain(..self.mark_length(&line));
        let end = if line.is_empty() && self.data_lines == 0 && self.event.is_empty() {
            StreamEnd::Clean
        } else {
            StreamEnd::IncompleteDiscarded
        };
        self.lossy |= std::str::from_utf8(&line).is_err() || std::str::from_utf8(&self.data).is_err();
        // A field's name may be cut like anything else.
        let cut_name = FIELD_NAMES.iter().any(|name| name.starts_with(&line));
        self.foreign_line |= matches!(Field::of(&line), Field::Unknown(_)) && !cut_name;
        self.forget_event();
        end
    }

    /// This is no event stream: no event came, and something else did, such as a JSON document or
    /// compressed octets. Exact after [`finish`](Self::finish).
    pub fn is_something_else(&self) -> bool {
        self.foreign_line && !self.had_event
    }

    /// Some octet of the stream was not UTF-8, be it in an event or in a line that counts for nothing.
    pub fn lossy(&self) -> bool {
        self.lossy
    }

    /// The reconnection time the peer last asked for, as it wrote it: unclamped.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The id of the last block that arrived whole. Empty if none.
    pub fn last_event_id(&self) -> &str {
        &self.last_id
    }

    /// Octets held on the heap, for those who count them.
    pub fn held(&self) -> usize {
        self.line.capacity()
            + self.data.capacity()
            + self.event.capacity()
            + self.id.capacity()
            + self.last_id.capacity()
    }

    fn read(&mut self, chunk: &[u8], out: &mut impl FnMut(Event<'_>)) -> Result<(), SseFault> {
        let mut rest = chunk;
        // The event's only data line while it lies whole in this chunk: nothing is copied then.
        let mut uncopied: Option<&[u8]> = None;
        loop {
            if self.after_cr && !rest.is_empty() {
                self.after_cr = false;
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            let Some(length) = memchr2(b'\n', b'\r', rest) else { break };
            self.check_line(length)?;
            self.after_cr = rest[length] == b'\r';
            let piece = &rest[..length];
            rest = &rest[length + 1..];

            if self.line.is_empty() {
                let line = &piece[self.mark_length(piece)..];
                self.before_first_line = false;
                match Field::of(line) {
                    Field::End => self.dispatch(uncopied.take(), out)?,
                    Field::Data(value) => {
                        self.count_data(uncopied, value)?;
                        if self.data_lines == 1 {
                            uncopied = Some(value);
                        } else {
                            self.copy_first(uncopied.take());
                            self.append_data(value);
                        }
                    }
                    other => self.apply(other),
                }
            } else {
                self.line.extend_from_slice(piece);
                let mut line = mem::take(&mut self.line);
                line.drain(..self.mark_length(&line));
                self.before_first_line = false;
                match Field::of(&line) {
                    Field::End => self.dispatch(uncopied.take(), out)?,
                    Field::Data(value) => {
                        self.count_data(uncopied, value)?;
                        if self.data_lines == 1 {
                            // The line's buffer becomes the data's: a large event is held once.
                            line.drain(..line.len() - value.len());
                            mem::swap(&mut self.data, &mut line);
                        } else {
                            self.copy_first(uncopied.take());
                            self.append_data(value);
                        }
                    }
                    other => self.apply(other),
                }
                self.line = emptied(line);
            }
        }
        self.copy_first(uncopied);
        if !rest.is_empty() {
            self.check_line(rest.len())?;
            self.line.extend_from_slice(rest);
        }
        Ok(())
    }

    /// Refuses a line before its next `more` octets are held.
    fn check_line(&self, more: usize) -> Result<(), SseFault> {
        let limit = self.limits.line;
        if more > limit.saturating_sub(self.line.len()) {
            Err(SseFault::LineTooLong { limit })
        } else {
            Ok(())
        }
    }

    fn count_data(&mut self, uncopied: Option<&[u8]>, value: &[u8]) -> Result<(), SseFault> {
        let held = uncopied.map_or(self.data.len(), <[u8]>::len);
        let joint = usize::from(self.data_lines > 0);
        if held + joint + value.len() > self.limits.event {
            return Err(SseFault::EventTooLarge { limit: self.limits.event });
        }
        if self.data_lines == self.limits.lines {
            return Err(SseFault::EventTooManyLines { limit: self.limits.lines });
        }
        self.data_lines += 1;
        Ok(())
    }

    fn copy_first(&mut self, uncopied: Option<&[u8]>) {
        if let Some(value) = uncopied {
            self.data.extend_from_slice(value);
        }
    }

    fn append_data(&mut self, value: &[u8]) {
        self.data.push(b'\n');
        self.data.extend_from_slice(value);
    }

    fn apply(&mut self, field: Field<'_>) {
        match field {
            Field::End | Field::Data(_) => {}
            Field::Event(value) => {
                let text = self.mend(value);
                self.event.clear();
                self.event.push_str(&text);
            }
            Field::Id(value) => {
                let text = self.mend(value);
                if value.len() <= MAX_ID && memchr(0, value).is_none() {
                    self.id.clear();
                    self.id.push_str(&text);
                }
            }
            Field::Retry(value) => {
                let text = self.mend(value);
                if let Some(milliseconds) = digits(&text) {
                    self.retry = Some(Duration::from_millis(milliseconds));
                }
            }
            Field::Comment(line) => self.lossy |= std::str::from_utf8(line).is_err(),
            Field::Unknown(line) => {
                self.foreign_line = true;
                self.event_lossy |= std::str::from_utf8(line).is_err();
            }
        }
        self.lossy |= self.event_lossy;
    }

    fn mend<'v>(&mut self, value: &'v [u8]) -> Cow<'v, str> {
        let text = String::from_utf8_lossy(value);
        self.event_lossy |= matches!(text, Cow::Owned(_));
        text
    }

    /// A block is over: hands out its event if it had data.
    fn dispatch(&mut self, uncopied: Option<&[u8]>, out: &mut impl FnMut(Event<'_>)) -> Result<(), SseFault> {
        if self.last_id != self.id {
            self.last_id.clone_from(&self.id);
        }
        if self.data_lines > 0 {
            self.had_event = true;
            let octets = uncopied.unwrap_or(&self.data);
            // The whole is decoded at once: no character reaches across a line feed.
            let data = match std::str::from_utf8(octets) {
                Ok(data) => Cow::Borrowed(data),
                Err(_) => {
                    self.event_lossy = true;
                    self.lossy = true;
                    // Three octets may stand for one now, and the limit holds for what is handed out.
                    if mended_length(octets) > self.limits.event {
                        return Err(SseFault::EventTooLarge { limit: self.limits.event });
                    }
                    String::from_utf8_lossy(octets)
                }
            };
            out(Event {
                event: if self.event.is_empty() { "message" } else { &self.event },
                data: &data,
                id: &self.last_id,
                lossy: self.event_lossy,
            });
        }
        self.forget_event();
        Ok(())
    }

    fn forget_event(&mut self) {
        self.data = emptied(mem::take(&mut self.data));
        self.event = if self.event.capacity() > KEPT_CAPACITY {
            String::new()
        } else {
            let mut event = mem::take(&mut self.event);
            event.clear();
            event
        };
        self.data_lines = 0;
        self.event_lossy = false;
    }

    /// The length of the byte order mark before this line: it is dropped at the start of the
    /// stream only. Later it is part of a field's name.
    fn mark_length(&self, line: &[u8]) -> usize {
        if self.before_first_line && line.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 }
    }
}

/// What one line says. An unknown field and a comment are the whole line.
enum Field<'a> {
    End,
    Data(&'a [u8]),
    Event(&'a [u8]),
    Id(&'a [u8]),
    Retry(&'a [u8]),
    Comment(&'a [u8]),
    Unknown(&'a [u8]),
}

impl<'a> Field<'a> {
    fn of(line: &'a [u8]) -> Self {
        let (name, value) = match memchr(b':', line) {
            None if line.is_empty() => return Self::End,
            None => (line, &line[line.len()..]),
            Some(0) => return Self::Comment(line),
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
        };
        match name {
            b"data" => Self::Data(value),
            b"event" => Self::Event(value),
            b"id" => Self::Id(value),
            b"retry" => Self::Retry(value),
            _ => Self::Unknown(line),
        }
    }
}

/// A number of ASCII digits and nothing else; one too large for us is the largest.
fn digits(value: &str) -> Option<u64> {
    let only_digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    only_digits.then(|| value.parse().unwrap_or(u64::MAX))
}

fn mended_length(octets: &[u8]) -> usize {
    let mended = |chunk: std::str::Utf8Chunk<'_>| {
        chunk.valid().len() + if chunk.invalid().is_empty() { 0 } else { '\u{fffd}'.len_utf8() }
    };
    octets.utf8_chunks().map(mended).sum()
}

fn emptied(mut buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() > KEPT_CAPACITY {
        return Vec::new();
    }
    buffer.clear();
    buffer
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    struct Seen {
        event: String,
        data: String,
        id: String,
        lossy: bool,
    }

    #[derive(Debug, PartialEq, Eq)]
    struct Outcome {
        events: Vec<Seen>,
        end: Result<StreamEnd, SseFault>,
        retry: Option<Duration>,
        lossy: bool,
    }

    fn decode_with<'a>(limits: Limits, chunks: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
        let mut decoder = Decoder::new(limits);
        let mut events = Vec::new();
        let mut collect = |e: Event<'_>| {
            events.push(Seen {
                event: e.event.to_owned(),
                data: e.data.to_owned(),
                id: e.id.to_owned(),
                lossy: e.lossy,
            });
        };
        let pushed = chunks.into_iter().try_for_each(|chunk| decoder.push(chunk, &mut collect));
        let end = pushed.map(|()| decoder.finish());
        Outcome { events, end, retry: decoder.retry(), lossy: decoder.lossy() }
    }

    fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
        decode_with(Limits::default(), chunks)
    }

    fn data_of(outcome: &Outcome) -> Vec<&str> {
        outcome.events.iter().map(|e| e.data.as_str()).collect()
    }

    #[test]
    fn a_mark_and_characters_cut_between_chunks_arrive_whole() {
        let chunks: [&[u8]; 9] =
            [b"\xef", b"", b"\xbb", b"\xbf", b"data: \xc3", b"\xa9\xf0\x9f", b"", b"\x98\x80\n", b"\n"];
        let outcome = decode(chunks);
        assert_eq!(data_of(&outcome), ["é😀"]);
        assert!(!outcome.lossy, "a cut is no damage");
    }

    #[test]
    fn a_mark_on_a_later_line_makes_that_field_unknown() {
        let outcome = decode([b"data: a\n\xef\xbb\xbfdata: b\n\n".as_slice()]);
        assert_eq!(data_of(&outcome), ["a"]);
    }

    #[test]
    fn what_makes_no_event_and_is_no_comment_is_something_else() {
        let cases: [(&[u8], bool); 8] = [
            (b"{\"jsonrpc\":\"2.0\"}", true),
            (b"\x1f\x8b\x08\n\n", true),
            (b"<!doctype html>\n", true),
            (b"", false),
            (b": ping\n\n", false),
            (b": pi", false),
            (b"da", false),
            (b"x-trace: 1\ndata: one\n\n{", false),
        ];
        for (octets, expected) in cases {
            let mut decoder = Decoder::new(Limits::default());
            decoder.push(octets, &mut |_| {}).unwrap();
            decoder.finish();
            assert_eq!(decoder.is_something_else(), expected, "{}", octets.escape_ascii());
        }
    }

    #[test]
    fn a_stream_of_nothing_but_a_mark_ends_clean() {
        assert_eq!(decode([BYTE_ORDER_MARK]).end, Ok(StreamEnd::Clean));
        assert_eq!(decode([&BYTE_ORDER_MARK[..2]]).end, Ok(StreamEnd::IncompleteDiscarded));
    }

    #[test]
    fn the_id_of_a_block_that_was_cut_does_not_count_as_received() {
        let mut decoder = Decoder::new(Limits::default());
        decoder.push(b"id: 1\ndata: a\n\nid: 2\ndata: b\n", &mut |_| ()).unwrap();
        assert_eq!(decoder.last_event_id(), "1");
        decoder.push(b"\n", &mut |_| ()).unwrap();
        assert_eq!(decoder.last_event_id(), "2");
    }

    #[test]
    fn an_id_too_long_for_a_header_is_passed_over() {
        let stream = format!("id: 1\nid: {}\ndata: a\n\n", "9".repeat(MAX_ID + 1));
        assert_eq!(decode([stream.as_bytes()]).events[0].id, "1");
    }

    #[test]
    fn a_retry_is_digits_only_and_never_overflows() {
        let retry = |text: &str| decode([format!("retry:{text}\n").as_bytes()]).retry;
        assert_eq!(retry(" 3000"), Some(Duration::from_secs(3)));
        assert_eq!(retry(" 99999999999999999999"), Some(Duration::from_millis(u64::MAX)));
        for bad in ["", " ", " -1", " 1.5", " 10s", "  10"] {
            assert_eq!(retry(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn damage_in_a_line_that_counts_for_nothing_is_noted_for_the_stream() {
        for line in [b"id: 7\0\xff".as_slice(), b"retry: \xff", b"f\xff", b": \xff", b"data: \xff"] {
            let outcome = decode([line, b"\n"]);
            assert!(outcome.lossy && outcome.events.is_empty(), "{line:?}");
        }
        let outcome = decode([b": \xff\ndata: a\n\n".as_slice()]);
        assert!(outcome.lossy && !outcome.events[0].lossy, "a damaged comment damages no event");
    }

    #[test]
    fn limits_hold_to_the_octet() {
        let limits = Limits { line: 10, event: 8, lines: 3 };
        let end = |stream: &str| decode_with(limits, [stream.as_bytes()]).end;
        assert_eq!(end("0123456789\n"), Ok(StreamEnd::Clean));
        assert_eq!(end("0123456789a\n"), Err(SseFault::LineTooLong { limit: 10 }));
        assert_eq!(end("0123456789a"), Err(SseFault::LineTooLong { limit: 10 }));
        assert_eq!(end("data:1234\ndata:678\n\n"), Ok(StreamEnd::Clean), "8 octets with the joint");
        assert_eq!(end("data:1234\ndata:6789\n\n"), Err(SseFault::EventTooLarge { limit: 8 }));
        assert_eq!(end("data\ndata\ndata\n\n"), Ok(StreamEnd::Clean));
        assert_eq!(end("data\ndata\ndata\ndata\n\n"), Err(SseFault::EventTooManyLines { limit: 3 }));
        assert_eq!(end(":\n:\n:\n:\n:\n"), Ok(StreamEnd::Clean), "comments are no lines of an event");
        let mended = decode_with(limits, [b"data:\xff\xff\xff\n\n".as_slice()]).end;
        assert_eq!(mended, Err(SseFault::EventTooLarge { limit: 8 }), "mending must not pass the limit");
    }

    #[test]
    fn events_before_a_fault_are_handed_out_and_none_after() {
        let limits = Limits { line: 10, ..Limits::default() };
        let outcome = decode_with(limits, [b"data: a\n\n0123456789abc\n".as_slice(), b"data: b\n\n"]);
        assert_eq!(data_of(&outcome), ["a"]);
        assert_eq!(outcome.end, Err(SseFault::LineTooLong { limit: 10 }));
    }

    #[test]
    fn a_decoder_is_small_again_after_a_large_event() {
        let mut decoder = Decoder::new(Limits::default());
        let mut seen = 0;
        let mut count = |e: Event<'_>| seen = e.data.len();
        decoder.push(b"data: ", &mut count).unwrap();
        for _ in 0..8 {
            decoder.push(&[b'x'; 1 << 20], &mut count).unwrap();
        }
        assert!(decoder.held() >= 8 << 20);
        decoder.push(b"\ndata: y\n\ndata: the next, alre", &mut count).unwrap();
        assert_eq!(seen, (8 << 20) + 2);
        assert!(decoder.held() <= 2 * KEPT_CAPACITY, "{} octets held while quiet", decoder.held());
    }

    #[test]
    fn an_event_whole_in_its_chunk_is_not_copied() {
        let chunk = b"id: 1\ndata: {\"a\":1}\n\n";
        let mut inside = false;
        let mut decoder = Decoder::new(Limits::default());
        let mut look = |e: Event<'_>| inside = chunk.as_ptr_range().contains(&e.data.as_ptr());
        decoder.push(chunk, &mut look).unwrap();
        assert!(inside, "the data must be a slice of the chunk");
    }

    #[test]
    fn a_flood_of_comments_holds_nothing() {
        let mut decoder = Decoder::new(Limits::default());
        for _ in 0..100_000 {
            decoder.push(b": ping\n", &mut |_| panic!("a comment is no event")).unwrap();
        }
        assert_eq!(decoder.held(), 0);
    }

    /// The rules again as the specification words them: decode everything, then read line by line.
    fn by_the_book(bytes: &[u8]) -> Outcome {
        let lossy = std::str::from_utf8(bytes).is_err();
        let text = String::from_utf8_lossy(bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)).into_owned();
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let (mut data, mut event, mut id) = (String::new(), String::new(), String::new());
        let (mut events, mut retry) = (Vec::new(), None);
        let mut lines: Vec<&str> = text.split('\n').collect();
        let unfinished = lines.pop().unwrap_or_default();
        for line in lines {
            if line.is_empty() {
                if data.pop().is_some() {
                    let event = if event.is_empty() { "message".to_owned() } else { event.clone() };
                    events.push(Seen { event, data: data.clone(), id: id.clone(), lossy: false });
                }
                data.clear();
                event.clear();
                continue;
            }
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "data" => {
                    data.push_str(value);
                    data.push('\n');
                }
                "event" => event = value.to_owned(),
                "id" if !value.contains('\0') => id = value.to_owned(),
                "retry" if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) => {
                    retry = Some(Duration::from_millis(value.parse().unwrap_or(u64::MAX)));
                }
                _ => (),
            }
        }
        let whole = unfinished.is_empty() && data.is_empty() && event.is_empty();
        let end = Ok(if whole { StreamEnd::Clean } else { StreamEnd::IncompleteDiscarded });
        Outcome { events, end, retry, lossy }
    }

    /// Streams made of the pieces that matter, so that most of them hold events.
    fn any_stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => Just(b"\n".to_vec()),
            2 => Just(b"\r\n".to_vec()),
            2 => Just(b"\r".to_vec()),
            6 => Just(b"data: x".to_vec()),
            2 => Just(b"data:".to_vec()),
            1 => Just(b"data".to_vec()),
            1 => Just(b"event: e".to_vec()),
            1 => Just(b"id: 7".to_vec()),
            1 => Just(b"id: 7\0".to_vec()),
            1 => Just(b"retry: 15".to_vec()),
            1 => Just(b": ping".to_vec()),
            1 => Just(BYTE_ORDER_MARK.to_vec()),
            1 => Just("é😀".as_bytes().to_vec()),
            1 => prop::collection::vec(any::<u8>(), 1..4),
        ];
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    fn cut(bytes: &[u8], mut places: Vec<usize>) -> Vec<&[u8]> {
        places.sort_unstable();
        let mut start = 0;
        let mut chunks = Vec::new();
        for place in places {
            let end = (place % (bytes.len() + 1)).max(start);
            chunks.push(&bytes[start..end]);
            start = end;
        }
        chunks.push(&bytes[start..]);
        chunks
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_cut_of_the_octets_gives_the_same_outcome(
            bytes in any_stream(),
            places in prop::collection::vec(0_usize..400, 0..8),
        ) {
            prop_assert_eq!(decode(cut(&bytes, places)), decode([bytes.as_slice()]));
            prop_assert_eq!(decode(bytes.chunks(1)), decode([bytes.as_slice()]));
        }

        #[test]
        fn the_outcome_is_what_the_specification_says(bytes in any_stream()) {
            let mut ours = decode([bytes.as_slice()]);
            for event in &mut ours.events {
                event.lossy = false;
            }
            prop_assert_eq!(ours, by_the_book(&bytes));
        }

        #[test]
        fn arbitrary_octets_never_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            line in 0_usize..40,
            event in 0_usize..40,
            lines in 0_usize..4,
        ) {
            let _ = decode_with(Limits { line, event, lines }, bytes.chunks(7));
        }

        #[test]
        fn a_fault_does_not_depend_on_the_cut(
            bytes in any_stream(),
            line in 0_usize..16,
            event in 0_usize..8,
            lines in 0_usize..4,
        ) {
            let limits = Limits { line, event, lines };
            let whole = decode_with(limits, [bytes.as_slice()]);
            let cut = decode_with(limits, bytes.chunks(1));
            prop_assert_eq!((whole.events, whole.end), (cut.events, cut.end));
        }
    }
}
