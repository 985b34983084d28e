//! How long to wait before the next try. Jitter is an argument, so nothing here is random.

use std::time::Duration;

/// Waits that double with each failure in a row, up to a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// Before the try after the first failure.
    pub first: Duration,
    /// Never longer than this, jitter included.
    pub most: Duration,
    /// How far jitter moves a wait to either side, as a part of it: 0.2 is ±20 %.
    pub spread: f64,
}

impl Backoff {
    /// The wait after `failures` failures in a row, the first being 1. `jitter` is evenly
    /// distributed in 0..1; each waiter draws its own, or all come back at once.
    pub fn wait(&self, failures: u32, jitter: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let step = self.first.saturating_mul(1 << doublings).min(self.most);
        around(step, self.spread, jitter).min(self.most)
    }
}

/// `middle`, moved by at most the part `spread` of it to either side. `jitter` in 0..1; 0.5
/// changes nothing. Values outside their range are taken as its nearest end.
pub fn around(middle: Duration, spread: f64, jitter: f64) -> Duration {
    // clamp alone would let NaN through.
    let within = |value: f64| if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) };
    let factor = 1.0 + within(spread) * (2.0 * within(jitter) - 1.0);
    Duration::try_from_secs_f64(middle.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn to_a_minute(spread: f64) -> Backoff {
        Backoff { first: SECOND, most: 60 * SECOND, spread }
    }

    #[test]
    fn waits_double_up_to_the_limit() {
        let waits: Vec<u64> = (1..=8).map(|n| to_a_minute(0.5).wait(n, 0.5).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(to_a_minute(0.0).wait(u32::MAX, 0.5), 60 * SECOND);
        assert_eq!(to_a_minute(0.0).wait(0, 0.5), SECOND, "no failure counts as one");
    }

    #[test]
    fn jitter_moves_a_wait_to_both_sides() {
        assert_eq!(around(10 * SECOND, 0.2, 0.0), 8 * SECOND);
        assert_eq!(around(10 * SECOND, 0.2, 1.0), 12 * SECOND);
        assert_eq!(around(10 * SECOND, 0.2, f64::NAN), 8 * SECOND);
    }

    proptest! {
        #[test]
        fn no_wait_leaves_its_limits(failures in any::<u32>(), spread in any::<f64>(), jitter in any::<f64>()) {
            let wait = to_a_minute(spread).wait(failures, jitter);
            prop_assert!(wait <= 60 * SECOND);
        }
    }
}
