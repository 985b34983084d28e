//! Notices that the machine slept: the wall clock moved further than the monotonic one, which stands
//! still during sleep on Linux and macOS. A jump of the clock looks the same and is treated the same.

use std::time::{Duration, Instant};

use crate::parts::Parts;

const LOOK: Duration = Duration::from_secs(1);
/// Smaller differences are the clock being set right.
const JUMP: Duration = Duration::from_secs(30);

/// Compares both clocks.
#[derive(Debug, Clone, Copy)]
pub struct WakeWatch {
    wall_ms: i64,
    monotonic: Instant,
}

impl WakeWatch {
    pub fn new(wall_ms: i64, monotonic: Instant) -> Self {
        Self { wall_ms, monotonic }
    }

    /// How far the wall clock has jumped since the last look, in milliseconds, back below 0. A jump back is no
    /// sleep: nothing was missed, and due times are monotonic.
    pub fn look(&mut self, wall_ms: i64, monotonic: Instant) -> Option<i64> {
        let passed = monotonic.saturating_duration_since(self.monotonic);
        let passed_ms = i64::try_from(passed.as_millis()).unwrap_or(i64::MAX);
        let ahead_ms = wall_ms.saturating_sub(self.wall_ms).saturating_sub(passed_ms);
        *self = Self::new(wall_ms, monotonic);
        let is_jump = ahead_ms.unsigned_abs() > u64::try_from(JUMP.as_millis()).unwrap_or(u64::MAX);
        is_jump.then_some(ahead_ms)
    }
}

/// Looks once a second, for ever.
pub async fn run(parts: Parts) {
    let mut watch = WakeWatch::new(parts.now_ms(), Instant::now());
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(ahead_ms) = watch.look(parts.now_ms(), Instant::now()) else { continue };
        parts.notes().note_jump(parts.now_ms(), ahead_ms);
        if ahead_ms > 0 {
            tracing::info!("the clock jumped ahead: all streams are distrusted and all open tasks read");
            parts.ring_wake();
        } else {
            tracing::warn!("the clock went back; times of before and after are not in order");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_ahead_is_sleep_and_drift_or_a_jump_back_is_not() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut watch = WakeWatch::new(0, start);
        assert_eq!(watch.look(1_000, start + second), None);
        assert_eq!(watch.look(31_000, start + 2 * second), None, "half a minute of drift");
        assert_eq!(watch.look(3_631_000, start + 3 * second), Some(3_599_000), "an hour passed in a second");
        assert_eq!(watch.look(3_632_000, start + 4 * second), None, "told once");
        assert_eq!(watch.look(0, start + 5 * second), Some(-3_633_000), "back to 1970");
    }
}
