//! What is round the engine: the desktop's notices, receivers of callbacks, file descriptors, the clock.

use super::Finding;
use crate::api::views::{HealthState, UtcTime};
use crate::store::notices::{NoticeOutcome, NoticeRow};
use crate::store::targets::{PauseReason, TargetRow};

/// Below this a thousand followed streams do not fit.
pub const DESCRIPTORS_WANTED: u64 = 4_096;

/// By what came of the last notice that the desktop was asked to show; the newest is first.
pub(super) fn notices(newest: &[NoticeRow]) -> Finding {
    const NAME: &str = "notices";
    let asked = newest.iter().find_map(|row| match row.outcome? {
        outcome @ (NoticeOutcome::Shown
        | NoticeOutcome::Failed
        | NoticeOutcome::NoDesktop
        | NoticeOutcome::NotPermitted) => Some((row, outcome)),
        NoticeOutcome::Suppressed | NoticeOutcome::Withdrawn | NoticeOutcome::Merged => None,
    });
    let Some((row, outcome)) = asked else {
        return Finding::new(NAME, HealthState::Ok, "none was to be shown yet");
    };
    let why = row.detail.as_deref().map(|detail| format!(": {detail}")).unwrap_or_default();
    let bad = |detail: String, fix: &str| {
        Finding::new(NAME, HealthState::Warn, detail).fix(fix).since(row.created_at_ms).action(
            "Show a test notice",
            "test_notice",
            "POST",
            "notices/test",
        )
    };
    match outcome {
        NoticeOutcome::Failed => bad(
            format!("the last one could not be shown{why}"),
            "see that a notification service runs in this session; nothing is lost, Needs you lists it",
        ),
        NoticeOutcome::NotPermitted => bad(
            format!("the desktop does not permit them{why}"),
            "allow notices of Taskbell in the settings of the desktop",
        ),
        NoticeOutcome::NoDesktop => {
            Finding::new(NAME, HealthState::Ok, "they are recorded only: no window is attached")
        }
        NoticeOutcome::Shown
        | NoticeOutcome::Suppressed
        | NoticeOutcome::Withdrawn
        | NoticeOutcome::Merged => Finding::new(NAME, HealthState::Ok, "the last one was shown"),
    }
}

/// One line for all, and one for each that does not get its callbacks.
pub(super) fn targets(targets: &[TargetRow]) -> Vec<Finding> {
    if targets.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for target in targets {
        let name = format!("target {} of {}", target.origin, target.client);
        let waiting = target.waiting;
        let resume = |finding: Finding| {
            let path = format!("targets/{}/resume", target.key.0);
            finding.action("Resume", "resume_target", "POST", &path)
        };
        if let Some((at_ms, reason)) = target.paused {
            let (state, why) = match reason {
                PauseReason::User => (HealthState::Warn, "paused by its user"),
                PauseReason::Failing => (HealthState::Bad, "paused after failing for days"),
            };
            let detail = format!("{why}; {waiting} callbacks wait for it");
            let fix = "see that the receiver runs, then resume it: what waits is delivered";
            found.push(resume(Finding::new(name, state, detail).fix(fix).since(at_ms)));
        } else if let Some(since_ms) = target.failing_since_ms.filter(|_| target.failures > 0) {
            let code = target.last_code.as_deref().unwrap_or("no answer");
            let detail =
                format!("{} tries in a row failed ({code}); {waiting} callbacks wait", target.failures);
            let fix = "see that the receiver runs; it is tried again by itself, at once with resume";
            found.push(resume(Finding::new(name, HealthState::Warn, detail).fix(fix).since(since_ms)));
        }
    }
    let bad = found.len();
    let detail = format!("{} receivers of callbacks, {bad} of them failing or paused", targets.len());
    found.insert(0, Finding::new("targets", HealthState::Ok, detail));
    found
}

pub(super) fn descriptors() -> Finding {
    #[cfg(unix)]
    {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        descriptors_found(limit, used_descriptors())
    }
    #[cfg(not(unix))]
    Finding::new("descriptors", HealthState::Ok, "no limit of this kind here")
}

/// How many this process has open, where the system tells.
#[cfg(unix)]
fn used_descriptors() -> Option<u64> {
    let entries = std::fs::read_dir("/proc/self/fd").ok()?;
    u64::try_from(entries.count()).ok()
}

#[cfg(unix)]
fn descriptors_found(limit: Option<u64>, used: Option<u64>) -> Finding {
    const NAME: &str = "descriptors";
    let used_text = used.map(|used| format!("{used} of ")).unwrap_or_default();
    match limit {
        None => Finding::new(NAME, HealthState::Ok, "there is no limit"),
        Some(limit) if used.is_some_and(|used| used.saturating_mul(5) > limit.saturating_mul(4)) => {
            Finding::new(NAME, HealthState::Bad, format!("{used_text}{limit} are in use"))
                .fix("raise the hard limit (ulimit -Hn) and start the engine again, or follow fewer tasks")
        }
        Some(limit) if limit < DESCRIPTORS_WANTED => {
            let detail = format!("{used_text}{limit} at most, which is little for many followed tasks");
            Finding::new(NAME, HealthState::Warn, detail)
                .fix("raise the hard limit (ulimit -Hn) and start the engine again")
        }
        Some(limit) => Finding::new(NAME, HealthState::Ok, format!("{used_text}{limit} are in use")),
    }
}

/// A jump ahead is what sleep looks like, and everything was read again after it.
pub(super) fn clock(jump: Option<(i64, i64)>, now_ms: i64) -> Finding {
    const NAME: &str = "clock";
    const RECENT_MS: i64 = 86_400_000;
    let seconds = |ms: i64| ms.unsigned_abs() / 1_000;
    match jump {
        Some((at_ms, ahead_ms)) if ahead_ms < 0 && now_ms.saturating_sub(at_ms) < RECENT_MS => {
            let detail =
                format!("it was set back by {} s; times around then are not in order", seconds(ahead_ms));
            Finding::new(NAME, HealthState::Warn, detail)
                .fix("see that the clock of the system is right; nothing is due twice for it")
                .since(at_ms)
        }
        Some((at_ms, ahead_ms)) if ahead_ms > 0 => {
            let (at, ahead) = (UtcTime::from_ms(at_ms), seconds(ahead_ms));
            let detail = format!(
                "the machine slept or the clock jumped by {ahead} s at {at}; all open tasks were read"
            );
            Finding::new(NAME, HealthState::Ok, detail)
        }
        Some(_) | None => Finding::new(NAME, HealthState::Ok, "it runs evenly"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn few_descriptors_are_a_warning_and_nearly_none_left_is_bad() {
        assert_eq!(descriptors_found(Some(65_536), Some(90)).state, HealthState::Ok);
        let few = descriptors_found(Some(1_024), Some(90));
        assert_eq!((few.state, few.fix.is_some()), (HealthState::Warn, true));
        let none_left = descriptors_found(Some(65_536), Some(60_000));
        assert_eq!((none_left.state, none_left.fix.is_some()), (HealthState::Bad, true));
    }

    #[test]
    fn sleep_is_told_and_is_no_fault_and_a_clock_set_back_is_one_for_a_day() {
        assert_eq!(clock(None, 0).state, HealthState::Ok);
        let slept = clock(Some((1_000, 28_800_000)), 2_000);
        assert!(slept.state == HealthState::Ok && slept.detail.contains("28800 s"), "{slept:?}");
        let back = clock(Some((1_000, -3_600_000)), 2_000);
        assert_eq!((back.state, back.since_ms, back.fix.is_some()), (HealthState::Warn, Some(1_000), true));
        assert_eq!(clock(Some((1_000, -3_600_000)), 100_000_000).state, HealthState::Ok);
    }
}
