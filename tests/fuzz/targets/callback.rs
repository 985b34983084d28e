//! A callback's body is read or refused with a word, and a verdict on it never says more than the task bears out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use taskbell_core::callback::read_claim;
use taskbell_core::dialect::read;
use taskbell_core::json;
use taskbell_core::state::TaskState;
use taskbell_core::verdict::{
    DIFFERENCES_MAX, Fact, Verdict, as_task, claimed_status, differences, judge, sameness,
};

fuzz_target!(|octets: &[u8]| {
    let cut = octets.iter().position(|octet| *octet == b'\n').unwrap_or(octets.len());
    let (body, rest) = octets.split_at(cut);
    let claim = match read_claim(body) {
        Ok(claim) => claim,
        Err(fault) => {
            assert!(!fault.code().is_empty());
            return;
        }
    };
    assert!(!claim.task_id.as_str().is_empty(), "a claim is about a task");
    let Some(event) = taskbell_fuzz::event(body) else { return };
    as_task(&event);
    sameness(&event);
    let Some(task) = json::parse(rest).ok().and_then(|value| read::task(value).ok()) else { return };
    assert!(differences(&event, &task).len() <= DIFFERENCES_MAX);
    let fact = Fact { task: &task, was_in: &[TaskState::Working] };
    let judged = judge(&event, fact, false);
    if judged.verdict == Verdict::Confirmed {
        assert!(event.task_id().is_none_or(|id| *id == task.id));
        if let Some(status) = claimed_status(&event) {
            assert_eq!(status.state, task.status.state, "confirmed means that the task says so too");
        }
    }
    assert_eq!(Verdict::from_word(judged.verdict.word()), Some(judged.verdict));
});
