//! How much of what comes is told of: a burst, then so much a second. What is beyond it is kept as well, and is
//! found by whoever looks.

use std::collections::HashMap;

use super::keys::TaskKey;
use super::state::Remembered;
use super::writer::WriteContext;

/// Callbacks of one task that are told of one by one.
const CALLBACKS: Rate = Rate { burst: 200.0, a_second: 2.0 };
/// Tasks whose allowance is remembered; beyond that all begin anew.
const TASKS: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rate {
    pub burst: f64,
    pub a_second: f64,
}

/// What is left of a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Allowance {
    rate: Rate,
    left: f64,
    at_ms: i64,
}

impl Allowance {
    pub(super) fn new(rate: Rate, now_ms: i64) -> Self {
        Self { rate, left: rate.burst, at_ms: now_ms }
    }

    /// A clock set back gives nothing.
    pub(super) fn take(&mut self, now_ms: i64) -> bool {
        let seconds = now_ms.saturating_sub(self.at_ms).max(0) as f64 / 1_000.0;
        self.left = (self.left + seconds * self.rate.a_second).min(self.rate.burst);
        self.at_ms = now_ms;
        let enough = self.left >= 1.0;
        if enough {
            self.left -= 1.0;
        }
        enough
    }
}

#[derive(Default)]
struct OfTasks(HashMap<Option<TaskKey>, Allowance>);

impl Remembered for OfTasks {
    // An allowance used up by what was rolled back is no harm.
    fn rolled_back(&mut self) {}
}

/// Whether one more callback of this task is told of.
pub(super) fn take(context: &mut WriteContext<'_>, task: Option<TaskKey>) -> bool {
    let now_ms = context.now_ms;
    let of_tasks = &mut context.state.of::<OfTasks>().0;
    if of_tasks.len() >= TASKS {
        of_tasks.clear();
    }
    of_tasks.entry(task).or_insert_with(|| Allowance::new(CALLBACKS, now_ms)).take(now_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_burst_is_let_through_at_its_pace() {
        let rate = Rate { burst: 1_000.0, a_second: 50.0 };
        let mut allowance = Allowance::new(rate, 0);
        assert_eq!((0..2_000).filter(|_| allowance.take(0)).count(), 1_000);
        assert_eq!((0..2_000).filter(|_| allowance.take(2_000)).count(), 100, "two seconds later");
        assert!(!allowance.take(-5_000), "a clock set back gives nothing");
    }
}
