//! Lengths of time as people write and read them: `90s`, `10m`, `40 s ago`. Pure: now is an argument.

use std::time::Duration;

/// Why a text is no length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    #[error("a length of time is written like 90s, 10m, 2h or 1h30m")]
    Shape,
    #[error("that is longer than a year")]
    TooLong,
}

const YEAR_MS: u64 = 366 * 24 * 3_600_000;

/// Reads `500ms`, `90s`, `10m`, `2h`, `3d`, and sums such as `1h30m`. A number alone is seconds.
pub fn parse(text: &str) -> Result<Duration, SpanError> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return checked(seconds.checked_mul(1000));
    }
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, after) = split_where(rest, |c| !c.is_ascii_digit());
        let (unit, after) = split_where(after, |c| c.is_ascii_digit());
        let number: u64 = number.parse().map_err(|_| SpanError::Shape)?;
        let scale: u64 = match unit.trim() {
            "ms" => 1,
            "s" | "sec" => 1000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(SpanError::Shape),
        };
        total =
            number.checked_mul(scale).and_then(|part| total.checked_add(part)).ok_or(SpanError::TooLong)?;
        rest = after;
    }
    if text.is_empty() { Err(SpanError::Shape) } else { checked(Some(total)) }
}

fn split_where(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

fn checked(ms: Option<u64>) -> Result<Duration, SpanError> {
    ms.filter(|ms| *ms <= YEAR_MS).map(Duration::from_millis).ok_or(SpanError::TooLong)
}

/// `40 s`, `4 min`, `3 h`, `12 d`: one number, rounded down.
pub fn short(length: Duration) -> String {
    match length.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds @ 3600..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// `40 s ago`. A moment ahead of `now_ms` (two clocks, or one that was set back) is `just now`.
pub fn ago(at_ms: i64, now_ms: i64) -> String {
    match u64::try_from(now_ms.saturating_sub(at_ms)) {
        Ok(ms) if ms >= 1000 => format!("{} ago", short(Duration::from_millis(ms))),
        Ok(_) | Err(_) => "just now".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_people_write_them() {
        for (text, ms) in [
            ("90s", 90_000),
            ("10m", 600_000),
            ("10 min", 600_000),
            ("2h", 7_200_000),
            ("1h30m", 5_400_000),
            ("500ms", 500),
            ("3d", 259_200_000),
            ("45", 45_000),
            ("0", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn what_is_no_length_is_refused_and_an_overflow_is_not_wrapped() {
        for text in ["", "m", "10x", "-5s", "1.5h", "10m5", "s10", "ten", "10 m in", "١٠m"] {
            assert_eq!(parse(text), Err(SpanError::Shape), "{text:?}");
        }
        for text in ["400d", "18446744073709551615h", "18446744073709551615", "99999999999999999999h"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_age_is_one_number_in_the_unit_that_fits() {
        for (ms, text) in [
            (0, "just now"),
            (999, "just now"),
            (40_500, "40 s ago"),
            (60_000, "1 min ago"),
            (3_599_000, "59 min ago"),
            (7_200_000, "2 h ago"),
            (172_800_000, "2 d ago"),
        ] {
            assert_eq!(ago(1_000_000, 1_000_000 + ms), text);
        }
    }

    #[test]
    fn a_moment_in_the_future_is_just_now() {
        assert_eq!(ago(5_000_000, 1_000_000), "just now");
        assert_eq!(ago(i64::MAX, i64::MIN), "just now");
        assert!(ago(i64::MIN, i64::MAX).ends_with(" d ago"));
    }
}
