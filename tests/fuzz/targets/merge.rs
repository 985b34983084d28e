//! Whatever arrives in whatever order, a final state stays final and the record stays within its bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use taskbell_core::dialect::read;
use taskbell_core::json;
use taskbell_core::merge::TaskRecord;
use taskbell_core::relay::news;

fuzz_target!(|octets: &[u8]| {
    let mut lines = octets.split(|octet| *octet == b'\n');
    let first = lines.next().and_then(|line| read::task(json::parse(line).ok()?).ok());
    let Some(task) = first else { return };
    let (id, mut record) = (task.id.clone(), TaskRecord::new(task, 1));
    for (order, line) in (2..).zip(lines) {
        let before = (record.state(), record.settled);
        let outcome = match line.split_first() {
            // A read that began some orders ago.
            Some((age @ b'0'..=b'9', answer)) => {
                let Some(answer) = json::parse(answer).ok().and_then(|value| read::task(value).ok()) else {
                    continue;
                };
                record.apply_read(answer, u64::saturating_sub(order, u64::from(age - b'0')))
            }
            _ => match taskbell_fuzz::event(line) {
                Some(event) => record.apply_event(event, order),
                None => continue,
            },
        };
        let (was, settled) = before;
        assert!(!was.is_terminal() || record.state().is_terminal(), "{was:?} is final");
        assert!(!settled || record.settled, "settled once is settled for good");
        assert_eq!(record.task.id, id);
        for event in news(&record.task, &outcome.changes) {
            taskbell_fuzz::assert_stable(&event);
        }
    }
});
