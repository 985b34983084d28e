//! The settings there are: what each means, what it is when nobody set it, which texts it takes.
//!
//! Kept as texts under their keys. A key that is not here is refused, so a typing error is no setting.

use std::time::Duration;

use rusqlite::Connection;
use taskbell_core::callback::ProofPolicy;
use taskbell_core::delivery::Schedule;
use taskbell_core::follow::FollowTimes;
use taskbell_core::ids::AgentName;
use taskbell_core::notice::{NoticeKind, TimeOfDay};
use taskbell_core::public_url::PublicUrl;

use crate::error::EngineError;
use crate::store::bodies::BODY_DAYS;
use crate::store::gateway_tasks::SHARE_TASKS;
use crate::store::{StoreError, settings as rows};

mod describe;
mod notices;

use notices::{TOLD, agents_notice, notice, notice_kinds};
pub use notices::{ask_for_quiet, end_quiet, notice_way, quiet, urgent_kinds};

/// The longest command line.
const COMMAND: usize = 4_096;

/// One setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// In [`OF_AGENTS`] with [`AGENT`] where the agent's name stands.
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
    Words(&'static [&'static str]),
    /// Of the inbox; empty: none.
    PublicAddress,
    /// One line; empty: none.
    Command,
    /// Local; empty: none.
    TimeOfDay,
    /// Several with commas; empty: none.
    NoticeKinds,
}

/// Stands for an agent's name.
const AGENT: &str = "*";

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
        key: "public_url",
        default: "",
        meaning: "https address under which agents elsewhere reach the inbox; empty: none, or the tunnel's",
        kind: Kind::PublicAddress,
    },
    Setting {
        key: "tunnel.command",
        default: "",
        meaning: "command line that keeps a tunnel to the inbox and prints its https address; empty: none",
        kind: Kind::Command,
    },
    Setting {
        key: "delivery.retry",
        default: "series",
        meaning: "how often a callback about an end or a question is tried again: series (28 hours), once",
        kind: Kind::Words(&["series", "once"]),
    },
    Setting {
        key: "retention.days",
        default: "30",
        meaning: "days that a task is kept after its end, unless it is pinned",
        kind: Kind::Days { least: 1, most: 3_650 },
    },
    Setting {
        key: "retention.bodies",
        default: "7",
        meaning: "days that the body of a callback is kept after it came; what came of it is kept for 30",
        kind: Kind::Days { least: 1, most: 30 },
    },
    Setting {
        key: "log.level",
        default: "info",
        meaning: "how much is written into the log in the data folder: error, warn, info, debug, trace",
        kind: Kind::Words(&["error", "warn", "info", "debug", "trace"]),
    },
    Setting {
        key: SHARE_TASKS,
        default: "no",
        meaning: "whether every client of the gateway sees all tasks of an agent, not only its own (yes, no)",
        kind: Kind::Words(&["yes", "no"]),
    },
    Setting {
        key: "autostart",
        default: "off",
        meaning: "whether the window's program starts with the desktop session, hidden in the tray (on, off)",
        kind: Kind::Words(&["on", "off"]),
    },
    Setting {
        key: "quiet.from",
        default: "",
        meaning: "local time, HH:MM, at which the quiet hours of each day begin; empty: there are none",
        kind: Kind::TimeOfDay,
    },
    Setting {
        key: "quiet.to",
        default: "",
        meaning: "local time, HH:MM, at which the quiet hours end and what came in them is told at once",
        kind: Kind::TimeOfDay,
    },
    Setting {
        key: "quiet.urgent",
        default: "",
        meaning: "kinds of notices that are shown in quiet hours all the same, with commas; empty: none",
        kind: Kind::NoticeKinds,
    },
    notice("notice.waiting", NoticeKind::Waiting),
    notice("notice.sign-in", NoticeKind::SignIn),
    notice("notice.failed", NoticeKind::Failed),
    notice("notice.finished", NoticeKind::Finished),
    notice("notice.unconfirmed", NoticeKind::Unconfirmed),
    notice("notice.lost", NoticeKind::Lost),
    notice("notice.paused", NoticeKind::Paused),
];

/// Those that each agent has for itself: `push.builder`.
pub const OF_AGENTS: &[Setting] = &[
    Setting {
        key: "push.*",
        default: "on",
        meaning: "whether this agent is asked to call us back about its tasks (on, off)",
        kind: Kind::Words(&["on", "off"]),
    },
    Setting {
        key: "proof.*",
        default: "any",
        meaning: "how many of the registered proofs a callback of this agent must show (any, all)",
        kind: Kind::Words(&["any", "all"]),
    },
    agents_notice("notice.*.waiting"),
    agents_notice("notice.*.sign-in"),
    agents_notice("notice.*.failed"),
    agents_notice("notice.*.finished"),
    agents_notice("notice.*.unconfirmed"),
    agents_notice("notice.*.lost"),
];

/// A setting under the key that it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub setting: &'static Setting,
    pub key: String,
}

/// The setting of that key. Of an agent's settings that there is such an agent is the caller's matter.
pub fn find(key: &str) -> Result<Found, EngineError> {
    let of_agent = |setting: &&Setting| setting.agent_in(key).is_some();
    let setting = ALL.iter().find(|setting| setting.key == key);
    match setting.or_else(|| OF_AGENTS.iter().find(of_agent)) {
        Some(setting) => Ok(Found { setting, key: key.to_owned() }),
        None => Err(EngineError::new(
            "unknown_setting",
            format!("no setting is named {key:?}; see `taskbell settings list`"),
        )),
    }
}

/// All there are, with those of each living agent.
pub fn all(connection: &Connection) -> Result<Vec<Found>, StoreError> {
    let mut found: Vec<Found> =
        ALL.iter().map(|setting| Found { setting, key: setting.key.to_owned() }).collect();
    let agents = crate::store::agents::list(connection)?;
    for setting in OF_AGENTS {
        found.extend(agents.iter().map(|row| Found { setting, key: setting.key_of(&row.name) }));
    }
    Ok(found)
}

/// The keys of an agent's own settings.
pub fn keys_of(agent: &AgentName) -> Vec<String> {
    OF_AGENTS.iter().map(|setting| setting.key_of(agent)).collect()
}

impl Found {
    /// The agent whose setting it is.
    pub fn agent(&self) -> Option<AgentName> {
        self.setting.agent_in(&self.key)
    }

    /// The value that holds: as set, or the default.
    pub fn value(&self, connection: &Connection) -> Result<String, StoreError> {
        Ok(rows::get(connection, &self.key)?.unwrap_or_else(|| self.setting.default.to_owned()))
    }
}

/// Whether an agent may be asked to call us back.
pub fn push_is_on(connection: &Connection, agent: &AgentName) -> Result<bool, StoreError> {
    Ok(rows::get(connection, &format!("push.{agent}"))?.as_deref() != Some("off"))
}

/// How many proofs an agent's callbacks must show.
pub fn proof_policy(connection: &Connection, agent: &AgentName) -> Result<ProofPolicy, StoreError> {
    let word = rows::get(connection, &format!("proof.{agent}"))?;
    Ok(word.and_then(|word| ProofPolicy::from_word(&word)).unwrap_or_default())
}

/// The address of the inbox for agents elsewhere, as set.
pub fn public_url(connection: &Connection) -> Result<Option<PublicUrl>, StoreError> {
    Ok(rows::get(connection, "public_url")?.and_then(|text| text.parse().ok()))
}

/// The command that keeps the tunnel.
pub fn tunnel_command(connection: &Connection) -> Result<Option<String>, StoreError> {
    Ok(rows::get(connection, "tunnel.command")?.filter(|line| !line.trim().is_empty()))
}

impl Setting {
    fn key_of(&self, agent: &AgentName) -> String {
        self.key.replace(AGENT, agent.as_str())
    }

    /// The agent whose setting a key names, where this is one of agents.
    fn agent_in(&self, key: &str) -> Option<AgentName> {
        let (before, after) = self.key.split_once(AGENT)?;
        AgentName::new(key.strip_prefix(before)?.strip_suffix(after)?).ok()
    }

    /// Refuses what the setting does not take.
    pub fn check(&self, value: &str) -> Result<(), EngineError> {
        let refused = |takes: String| {
            Err(EngineError::new("usage", format!("setting {} takes {takes}, not {value:?}", self.key)))
        };
        match self.kind {
            Kind::Words(words) if words.contains(&value) => Ok(()),
            Kind::Words(words) => refused(words.join(" or ")),
            Kind::PublicAddress if value.is_empty() => Ok(()),
            Kind::PublicAddress => match value.parse::<PublicUrl>() {
                Ok(_) => Ok(()),
                Err(error) => Err(EngineError::new("usage", format!("{value:?} is not taken: {error}"))),
            },
            Kind::Command if value.len() <= COMMAND && !value.chars().any(char::is_control) => Ok(()),
            Kind::Command => refused(format!("one line of at most {COMMAND} octets")),
            Kind::TimeOfDay if value.is_empty() || value.parse::<TimeOfDay>().is_ok() => Ok(()),
            Kind::TimeOfDay => refused("a time of day as HH:MM, or nothing".to_owned()),
            Kind::NoticeKinds if notice_kinds(value).is_some() => Ok(()),
            Kind::NoticeKinds => {
                let words: Vec<&str> = TOLD.iter().map(|kind| kind.word()).collect();
                refused(format!("some of {} with commas, or nothing", words.join(", ")))
            }
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

/// How often reserved callbacks are tried again.
pub fn delivery_schedule(connection: &Connection) -> Result<Schedule, StoreError> {
    Ok(match rows::get(connection, "delivery.retry")?.as_deref() {
        Some("once") => Schedule::Once,
        Some(_) | None => Schedule::Series,
    })
}

/// Days that an ended task is kept.
pub fn retention_days(connection: &Connection) -> Result<u32, StoreError> {
    Ok(rows::get(connection, "retention.days")?.and_then(|days| days.parse().ok()).unwrap_or(30))
}

/// Days that the body of a callback is kept.
pub fn body_days(connection: &Connection) -> Result<i64, StoreError> {
    Ok(rows::get(connection, "retention.bodies")?.and_then(|days| days.parse().ok()).unwrap_or(BODY_DAYS))
}

/// How much is written into the log.
pub fn log_level(connection: &Connection) -> Result<String, StoreError> {
    Ok(rows::get(connection, "log.level")?.unwrap_or_else(|| "info".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_setting_is_found_under_its_name_and_no_other() {
        let found = find("push.builder").unwrap();
        assert_eq!(found.agent(), Some(AgentName::new("builder").unwrap()));
        assert!(found.setting.check("off").is_ok() && found.setting.check("perhaps").is_err());
        for key in ["push", "push.", "push.Big Name", "proof"] {
            assert_eq!(find(key).unwrap_err().code, "unknown_setting", "{key}");
        }
        assert_eq!(find("follow.silence").unwrap().agent(), None);
    }

    #[test]
    fn a_public_address_is_one_that_agents_can_call() {
        let setting = find("public_url").unwrap().setting;
        assert!(setting.check("https://h.example/tb").is_ok() && setting.check("").is_ok());
        let error = setting.check("http://h.example").unwrap_err();
        assert!(error.message.contains("is https"), "{error}");
        let tunnel = find("tunnel.command").unwrap().setting;
        assert!(tunnel.check("a\nb").is_err() && tunnel.check("ssh -R 80:localhost:7421 h.example").is_ok());
    }

    #[test]
    fn every_default_is_taken_by_its_own_setting() {
        for setting in ALL.iter().chain(OF_AGENTS) {
            assert!(setting.check(setting.default).is_ok(), "{}", setting.key);
        }
    }

    #[test]
    fn what_a_setting_does_not_take_is_refused_with_what_it_does() {
        let silence = find("follow.silence").unwrap().setting;
        for bad in ["", "0", "-1", "NaN", "inf", "soon"] {
            let error = silence.check(bad).unwrap_err();
            assert!(error.message.contains("seconds from 1 to 3600"), "{error}");
        }
        assert_eq!(find("follow.silense").unwrap_err().code, "unknown_setting");
    }
}
