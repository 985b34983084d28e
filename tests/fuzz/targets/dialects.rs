//! Whatever an agent says is passed on as an event of either version that clients can read, the same each time; and what
//! the store keeps of it is what was said.
#![no_main]

use libfuzzer_sys::fuzz_target;
use taskbell_core::dialect::v1::{self, Extras};
use taskbell_core::dialect::{Dialect, read};
use taskbell_core::json;
use taskbell_core::relay::{complete, event_line};

fuzz_target!(|octets: &[u8]| {
    let Ok(value) = json::parse(octets) else { return };
    if let Ok(task) = read::task(value.clone()) {
        let kept = v1::task(&task, Extras::Keep);
        let again = read::task(kept.clone()).expect("what is stored is read again");
        assert_eq!(v1::task(&again, Extras::Keep), kept);
    }
    if let Ok(mut event) = read::stream_event(value) {
        taskbell_fuzz::assert_stable(&event);
        let task_id = event.task_id().cloned().unwrap_or_else(|| taskbell_core::ids::TaskId::new("t"));
        complete(&mut event, &task_id, None);
        taskbell_fuzz::assert_stable(&event);
        // By way of the other version, and no further: what 1.0 cannot say is gone after the first way there.
        let old = event_line(&event, Dialect::V03);
        let read_old = taskbell_fuzz::event(old.as_bytes()).expect("what we write is an event");
        taskbell_fuzz::assert_stable(&read_old);
    }
});
