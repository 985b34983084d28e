//! The settings there are: what each means, what it is when nobody set it, which texts it takes.
//!
//! Kept as texts under their keys. A key that is not here is refused, so a typing error is no setting.

use std::time::Duration;

use rusqlite::Connection;
use taskbell_core::follow::FollowTimes;

use crate::error::EngineError;
use crate::store::{StoreError, settings as rows};

/// One setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    pub key: &'static str,
    pub default: &'static str,
    pub meaning: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Whole or decimal, within these bounds.
    Seconds {
        least: f64,
        most: f64,
    },
    Days {
        least: u32,
        most: u32,
    },
}

pub const ALL: &[Setting] = &[
    Setting {
        key: "follow.silence",
        default: "45",
        meaning: "seconds without a byte after which a stream is doubted and its task read",
        kind: Kind::Seconds { least: 1.0, most: 3_600.0 },
    },
    Setting {
        key: "follow.slow_read",
        default: "300",
        meaning: "seconds after which a task is read even though its stream seems to be well",
        kind: Kind::Seconds { least: 1.0, most: 86_400.0 },
    },
    Setting {
        key: "follow.poll_max",
        default: "30",
        meaning: "longest time in seconds between two reads of a task that is polled",
        kind: Kind::Seconds { least: 1.0, most: 3_600.0 },
    },
    Setting {
        key: "follow.reattach_max",
        default: "60",
        meaning: "longest time in seconds before a stream that was cut is asked for again",
        kind: Kind::Seconds { least: 1.0, most: 3_600.0 },
    },
    Setting {
        key: "retention.days",
        default: "30",
        meaning: "days that a task is kept after its end, unless it is pinned",
        kind: Kind::Days { least: 1, most: 3_650 },
    },
];

/// The setting of that key.
pub fn find(key: &str) -> Result<&'static Setting, EngineError> {
    ALL.iter().find(|setting| setting.key == key).ok_or_else(|| {
        EngineError::new(
            "unknown_setting",
            format!("no setting is named {key:?}; see `taskbell settings list`"),
        )
    })
}

impl Setting {
    /// Refuses what the setting does not take.
    pub fn check(&self, value: &str) -> Result<(), EngineError> {
        let refused = |takes: String| {
            Err(EngineError::new("usage", format!("setting {} takes {takes}, not {value:?}", self.key)))
        };
        match self.kind {
            Kind::Seconds { least, most } => match value.parse::<f64>() {
                Ok(seconds) if (least..=most).contains(&seconds) => Ok(()),
                _ => refused(format!("seconds from {least} to {most}")),
            },
            Kind::Days { least, most } => match value.parse::<u32>() {
                Ok(days) if (least..=most).contains(&days) => Ok(()),
                _ => refused(format!("whole days from {least} to {most}")),
            },
        }
    }
}

/// The value that holds: as set, or the default.
pub fn value(connection: &Connection, setting: &Setting) -> Result<String, StoreError> {
    Ok(rows::get(connection, setting.key)?.unwrap_or_else(|| setting.default.to_owned()))
}

/// The pace of following as set.
pub fn follow_times(connection: &Connection) -> Result<FollowTimes, StoreError> {
    let seconds = |key: &str| -> Result<Option<Duration>, StoreError> {
        Ok(rows::get(connection, key)?
            .and_then(|text| text.parse::<f64>().ok())
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()))
    };
    let mut times = FollowTimes::default();
    if let Some(silence) = seconds("follow.silence")? {
        times.silence = silence;
        times.silence_max = times.silence_max.max(silence);
    }
    if let Some(slow_read) = seconds("follow.slow_read")? {
        times.slow_read = slow_read;
    }
    if let Some(poll_max) = seconds("follow.poll_max")? {
        times.poll_max = poll_max.max(times.poll_min);
        times.waiting_poll_max = times.waiting_poll_max.max(times.poll_max);
    }
    if let Some(reattach_max) = seconds("follow.reattach_max")? {
        times.reattach_max = reattach_max;
    }
    Ok(times)
}

/// Days that an ended task is kept.
pub fn retention_days(connection: &Connection) -> Result<u32, StoreError> {
    let setting = ALL.iter().find(|setting| setting.key == "retention.days").expect("in the list above");
    Ok(value(connection, setting)?.parse().unwrap_or(30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_taken_by_its_own_setting() {
        for setting in ALL {
            assert!(setting.check(setting.default).is_ok(), "{}", setting.key);
        }
    }

    #[test]
    fn what_a_setting_does_not_take_is_refused_with_what_it_does() {
        let silence = find("follow.silence").unwrap();
        for bad in ["", "0", "-1", "NaN", "inf", "soon"] {
            let error = silence.check(bad).unwrap_err();
            assert!(error.message.contains("seconds from 1 to 3600"), "{error}");
        }
        assert_eq!(find("follow.silense").unwrap_err().code, "unknown_setting");
    }
}
