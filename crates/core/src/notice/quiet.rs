//! Quiet hours: until when nothing is told but what is urgent.
//!
//! Hours are local times of day. Each night's is a stretch between two instants, so a clock that is set forward
//! or back within it makes it shorter or longer and never two.

use std::str::FromStr;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};

/// "Until tomorrow", where no quiet hours say when the day begins.
const MORNING: Time = Time::constant(8, 0, 0, 0);
/// Up to this hour somebody who says tomorrow means the morning that comes.
const SMALL_HOURS: i8 = 4;

/// A local time of day, `HH:MM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay(Time);

/// A text that is no time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a time of day: it is written HH:MM, from 00:00 to 23:59")]
pub struct NotATime;

impl FromStr for TimeOfDay {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        let digits = |part: &str| {
            (part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit())).then(|| part.parse::<i8>())
        };
        let (hour, minute) = text.split_once(':').ok_or(NotATime)?;
        match (digits(hour), digits(minute)) {
            (Some(Ok(hour)), Some(Ok(minute))) => {
                Time::new(hour, minute, 0, 0).map(Self).map_err(|_| NotATime)
            }
            _ => Err(NotATime),
        }
    }
}

/// When the user does not want to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quiet {
    /// From and to, each day; over midnight where the first is the later. Two equal times are no hours.
    pub hours: Option<(TimeOfDay, TimeOfDay)>,
    /// "Quiet for 1 h": until then, whatever the hour. Milliseconds since 1970.
    pub asked_until_ms: Option<i64>,
    /// The user ended the hours of this night: they do not hold before this.
    pub skipped_until_ms: Option<i64>,
}

impl Quiet {
    /// The end of the quiet that holds at `now_ms`; `None`: it is not quiet.
    pub fn until(&self, now_ms: i64, zone: &TimeZone) -> Option<i64> {
        let asked = self.asked_until_ms.filter(|until| *until > now_ms);
        asked.max(self.hours_until(now_ms, zone))
    }

    /// The same of the daily hours alone.
    pub fn hours_until(&self, now_ms: i64, zone: &TimeZone) -> Option<i64> {
        if self.skipped_until_ms.is_some_and(|until| now_ms < until) {
            return None;
        }
        let (from, to) = self.hours.filter(|(from, to)| from != to)?;
        let today = local(now_ms, zone)?.date();
        // What began yesterday may last until this morning.
        [today.yesterday().ok()?, today].into_iter().find_map(|day| {
            let ends_on = if from < to { day } else { day.tomorrow().ok()? };
            let (begin, end) = (instant(day, from.0, zone)?, instant(ends_on, to.0, zone)?);
            (begin <= now_ms && now_ms < end).then_some(end)
        })
    }

    /// What "until tomorrow" means at `now_ms`: the end of the quiet hours, or 8 o'clock, of the next morning.
    pub fn tomorrow(&self, now_ms: i64, zone: &TimeZone) -> Option<i64> {
        let now = local(now_ms, zone)?;
        let at = self.hours.filter(|(from, to)| from != to).map_or(MORNING, |(_, to)| to.0);
        let day = if now.hour() < SMALL_HOURS { now.date() } else { now.date().tomorrow().ok()? };
        let end = instant(day, at, zone)?;
        if end > now_ms { Some(end) } else { instant(day.checked_add(1.day()).ok()?, at, zone) }
    }
}

/// That instant as the clock on the wall shows it, `HH:MM`.
pub fn wall_clock(at_ms: i64, zone: &TimeZone) -> String {
    local(at_ms, zone).map_or_else(String::new, |at| format!("{:02}:{:02}", at.hour(), at.minute()))
}

fn local(at_ms: i64, zone: &TimeZone) -> Option<Zoned> {
    Some(Timestamp::from_millisecond(at_ms).ok()?.to_zoned(zone.clone()))
}

/// A time that the clock skips is the one as long after; of one that it shows twice, the first.
fn instant(day: Date, time: Time, zone: &TimeZone) -> Option<i64> {
    Some(day.to_datetime(time).to_zoned(zone.clone()).ok()?.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Central European time, without asking the machine for its time zones.
    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    fn at(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    fn hours(from: &str, to: &str) -> Quiet {
        Quiet { hours: Some((from.parse().unwrap(), to.parse().unwrap())), ..Quiet::default() }
    }

    #[test]
    fn a_night_is_quiet_over_midnight_and_ends_in_the_morning() {
        let (night, zone) = (hours("22:00", "07:00"), berlin());
        let end = Some(at("2026-01-16T06:00:00Z"));
        for (now, until) in [
            ("2026-01-15T20:59:59.999Z", None),
            ("2026-01-15T21:00:00Z", end),
            ("2026-01-15T23:30:00Z", end),
            ("2026-01-16T05:59:59.999Z", end),
            ("2026-01-16T06:00:00Z", None),
        ] {
            assert_eq!(night.until(at(now), &zone), until, "{now}");
        }
    }

    #[test]
    fn hours_within_a_day_do_not_reach_into_the_next() {
        let (lunch, zone) = (hours("12:00", "13:30"), berlin());
        assert_eq!(lunch.until(at("2026-01-15T11:15:00Z"), &zone), Some(at("2026-01-15T12:30:00Z")));
        assert_eq!(lunch.until(at("2026-01-15T22:00:00Z"), &zone), None);
        assert_eq!(hours("09:00", "09:00").until(at("2026-01-15T08:00:00Z"), &zone), None, "no hours at all");
    }

    #[test]
    fn the_night_in_which_the_clock_is_set_forward_is_an_hour_shorter() {
        let (night, zone) = (hours("22:00", "07:00"), berlin());
        let end = night.until(at("2026-03-28T21:00:00Z"), &zone).unwrap();
        assert_eq!(end, at("2026-03-29T05:00:00Z"), "07:00 in summer");
        // 02:30 is skipped that night.
        let skipped = hours("22:00", "02:30");
        assert_eq!(skipped.until(at("2026-03-29T00:59:00Z"), &zone), Some(at("2026-03-29T01:30:00Z")));
    }

    #[test]
    fn an_hour_that_the_clock_shows_twice_is_quiet_once() {
        let (night, zone) = (hours("22:00", "02:30"), berlin());
        // 02:30 comes at 00:30Z and again at 01:30Z.
        let end = at("2026-10-25T00:30:00Z");
        assert_eq!(night.until(end - 1, &zone), Some(end));
        for later in ["2026-10-25T00:30:00Z", "2026-10-25T01:10:00Z", "2026-10-25T01:40:00Z"] {
            assert_eq!(night.until(at(later), &zone), None, "{later}");
        }
    }

    #[test]
    fn quiet_for_an_hour_holds_at_any_time_and_never_shortens_the_night() {
        let zone = berlin();
        let now = at("2026-01-15T12:00:00Z");
        let asked = Quiet { asked_until_ms: Some(now + 3_600_000), ..hours("22:00", "07:00") };
        assert_eq!(asked.until(now, &zone), Some(now + 3_600_000));
        assert_eq!(asked.until(now + 3_600_000, &zone), None);
        let evening = at("2026-01-15T22:00:00Z");
        let asked = Quiet { asked_until_ms: Some(evening + 3_600_000), ..hours("22:00", "07:00") };
        assert_eq!(asked.until(evening, &zone), Some(at("2026-01-16T06:00:00Z")));
    }

    #[test]
    fn a_night_that_the_user_ended_is_over_and_the_next_one_is_not() {
        let zone = berlin();
        let ended = Quiet { skipped_until_ms: Some(at("2026-01-16T06:00:00Z")), ..hours("22:00", "07:00") };
        assert_eq!(ended.until(at("2026-01-16T01:00:00Z"), &zone), None);
        assert_eq!(ended.until(at("2026-01-16T23:00:00Z"), &zone), Some(at("2026-01-17T06:00:00Z")));
    }

    #[test]
    fn tomorrow_is_the_next_morning_also_for_somebody_who_is_up_late() {
        let (usual, zone) = (Quiet::default(), berlin());
        assert_eq!(usual.tomorrow(at("2026-01-15T12:00:00Z"), &zone), Some(at("2026-01-16T07:00:00Z")));
        assert_eq!(usual.tomorrow(at("2026-01-16T00:30:00Z"), &zone), Some(at("2026-01-16T07:00:00Z")));
        let early = hours("22:00", "06:30");
        assert_eq!(early.tomorrow(at("2026-01-15T12:00:00Z"), &zone), Some(at("2026-01-16T05:30:00Z")));
        let night_worker = hours("18:00", "02:00");
        assert_eq!(
            night_worker.tomorrow(at("2026-01-16T02:00:00Z"), &zone),
            Some(at("2026-01-17T01:00:00Z")),
            "never a time that has passed"
        );
    }

    #[test]
    fn a_time_of_day_is_four_digits_and_a_colon() {
        for good in ["00:00", "07:05", "23:59"] {
            assert!(good.parse::<TimeOfDay>().is_ok(), "{good}");
        }
        for bad in ["", "7:00", "24:00", "07:60", "07", "07:00:00", " 07:00", "+7:00", "٠٧:٠٠", "aa:bb"] {
            assert_eq!(bad.parse::<TimeOfDay>(), Err(NotATime), "{bad}");
        }
        assert_eq!(wall_clock(at("2026-01-16T06:05:00Z"), &berlin()), "07:05");
    }
}
