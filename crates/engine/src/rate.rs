//! How many requests one kind of caller may make, so that a flood of one leaves the others their share.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A token bucket. A generous one: it stops runaway loops, not work.
#[derive(Debug)]
pub(crate) struct Bucket {
    per_second: f64,
    burst: f64,
    level: Mutex<Level>,
}

#[derive(Debug)]
struct Level {
    left: f64,
    at: Instant,
}

impl Bucket {
    pub(crate) fn new(per_second: u32, burst: u32, now: Instant) -> Self {
        let burst = f64::from(burst);
        Self { per_second: f64::from(per_second), burst, level: Mutex::new(Level { left: burst, at: now }) }
    }

    /// Takes one, where there is one.
    pub(crate) fn take(&self, now: Instant) -> bool {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let gained = now.saturating_duration_since(level.at).as_secs_f64() * self.per_second;
        level.left = (level.left + gained).min(self.burst);
        level.at = level.at.max(now);
        let enough = level.left >= 1.0;
        if enough {
            level.left -= 1.0;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_passes_then_only_the_rate() {
        let start = Instant::now();
        let bucket = Bucket::new(2_000, 4_000, start);
        let passed = (0..10_000).filter(|_| bucket.take(start)).count();
        assert_eq!(passed, 4_000);
        let passed = (0..10_000).filter(|_| bucket.take(start + Duration::from_millis(500))).count();
        assert_eq!(passed, 1_000);
        let late = start + Duration::from_secs(60);
        assert_eq!((0..10_000).filter(|_| bucket.take(late)).count(), 4_000, "never more than a burst");
    }
}
