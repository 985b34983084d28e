//! The `Retry-After` field of an HTTP answer (RFC 9110 §10.2.3), clamped.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::{rfc2822, strtime};
use jiff::tz::TimeZone;

/// No peer keeps us away for longer.
pub const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// How long from `now` the peer asks to be left alone, at most [`LONGEST`]; zero for a date that
/// has passed. `None` for anything that is neither seconds nor a date: the schedule decides alone.
///
/// The caller takes the later of this and its schedule.
pub fn parse(field: &str, now: Timestamp) -> Option<Duration> {
    let field = field.trim();
    if !field.is_empty() && field.bytes().all(|b| b.is_ascii_digit()) {
        // More seconds than a u64 holds are more than a day, too.
        return Some(field.parse().map_or(LONGEST, Duration::from_secs).min(LONGEST));
    }
    let wait = date(field)?.duration_since(now);
    Some(Duration::try_from(wait).unwrap_or(Duration::ZERO).min(LONGEST))
}

/// An HTTP date in its one current and two obsolete forms (RFC 9110 §5.6.7). All mean UTC.
fn date(field: &str) -> Option<Timestamp> {
    let utc = |civil: DateTime| civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    let with = |format: &str| strtime::parse(format, field).ok()?.to_datetime().ok();
    rfc2822::DateTimeParser::new()
        .parse_timestamp(field)
        .ok()
        .or_else(|| utc(with("%A, %d-%b-%y %H:%M:%S GMT")?))
        .or_else(|| utc(with("%a %b %e %H:%M:%S %Y")?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn now() -> Timestamp {
        "1994-11-06T08:49:00Z".parse().unwrap()
    }

    fn seconds(field: &str) -> Option<u64> {
        parse(field, now()).map(|wait| wait.as_secs())
    }

    #[test]
    fn seconds_are_taken_up_to_a_day() {
        assert_eq!(seconds("0"), Some(0));
        assert_eq!(seconds(" 3600 "), Some(3600));
        assert_eq!(seconds("315360000"), Some(24 * 3600));
        assert_eq!(seconds("99999999999999999999999999"), Some(24 * 3600));
    }

    #[test]
    fn dates_are_taken_in_all_three_forms() {
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(37));
        assert_eq!(seconds("Sunday, 06-Nov-94 08:49:37 GMT"), Some(37));
        assert_eq!(seconds("Sun Nov  6 08:49:37 1994"), Some(37));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:48:00 GMT"), Some(0), "a date that has passed");
        assert_eq!(seconds("Tue, 30 Nov 9999 23:59:59 GMT"), Some(24 * 3600));
    }

    #[test]
    fn anything_else_leaves_the_schedule_alone() {
        for other in ["", "-1", "abc", "1.5", "+5", "10s", "5, 10", "Sun, 06 Nov 1994", "0x10", "٣"] {
            assert_eq!(seconds(other), None, "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn no_field_panics_or_keeps_away_for_longer_than_a_day(field in any::<String>()) {
            prop_assert!(parse(&field, now()).is_none_or(|wait| wait <= LONGEST));
        }
    }
}
