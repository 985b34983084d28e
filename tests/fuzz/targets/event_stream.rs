//! A stream's octets are the same events however the network cuts them, and never need more memory than the limits say.
#![no_main]

use libfuzzer_sys::fuzz_target;
use taskbell_core::dialect::Binding;
use taskbell_core::ids::TaskId;
use taskbell_core::sse::{Decoder, Event, Limits};
use taskbell_core::stream::FrameReader;

const LIMITS: Limits = Limits { line: 512, event: 1_024, lines: 16 };

type Seen = (Vec<(String, String, String, bool)>, String);

fn decode<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Seen {
    let mut decoder = Decoder::new(LIMITS);
    let mut events = Vec::new();
    let mut collect = |event: Event<'_>| {
        events.push((event.event.to_owned(), event.data.to_owned(), event.id.to_owned(), event.lossy));
    };
    let mut end = None;
    for chunk in chunks {
        if let Err(fault) = decoder.push(chunk, &mut collect) {
            end = Some(format!("{fault:?}"));
            break;
        }
        assert!(decoder.held() <= 4 * (LIMITS.line + LIMITS.event), "holds {} octets", decoder.held());
    }
    let end = end.unwrap_or_else(|| format!("{:?}", decoder.finish()));
    (events, format!("{end} {:?} {} {}", decoder.retry(), decoder.lossy(), decoder.last_event_id()))
}

fuzz_target!(|octets: &[u8]| {
    let Some((&size, stream)) = octets.split_first() else { return };
    let whole = decode(std::iter::once(stream));
    assert_eq!(whole, decode(stream.chunks(usize::from(size % 16) + 1)));
    for binding in [Binding::JsonRpc, Binding::Rest] {
        let mut reader = FrameReader::new(binding, 1, Some(TaskId::new("t")));
        for (event_type, data, _, lossy) in &whole.0 {
            reader.read(event_type, data, *lossy);
        }
    }
});
