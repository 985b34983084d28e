//! Settings of notices: which kinds are told and how, and when it is quiet.

use rusqlite::Connection;
use taskbell_core::ids::AgentName;
use taskbell_core::notice::{NoticeKind, Quiet, TimeOfDay, Way};

use super::{Kind, Setting};
use crate::store::{StoreError, WriteContext, settings as rows};

/// How one kind of notice is told.
pub(super) const fn notice(key: &'static str, kind: NoticeKind) -> Setting {
    let meaning = match kind {
        NoticeKind::Waiting => {
            "how a question or an authorization that waits for you is told (sound, silent, off)"
        }
        NoticeKind::SignIn => "how it is told that an agent refuses its credential (sound, silent, off)",
        NoticeKind::Failed => "how a task that failed or was rejected is told (sound, silent, off)",
        NoticeKind::Finished => "how a task that has finished is told (sound, silent, off)",
        NoticeKind::Unconfirmed => {
            "how it is told, once, that nothing was heard of a task for 15 min (sound, silent, off)"
        }
        NoticeKind::Lost => "how it is told that an agent no longer shows a task (sound, silent, off)",
        NoticeKind::Paused => {
            "how it is told, once, that a receiver of callbacks is left alone (sound, silent, off)"
        }
        NoticeKind::Test => "",
    };
    let default = match kind {
        NoticeKind::Finished => "silent",
        _ => "sound",
    };
    Setting { key, default, meaning, kind: Kind::Words(&["sound", "silent", "off"]) }
}

/// The same of one agent.
pub(super) const fn agents_notice(key: &'static str) -> Setting {
    Setting {
        key,
        default: AS_OTHERS,
        meaning: "the same of this agent alone (default: as of all, sound, silent, off)",
        kind: Kind::Words(&[AS_OTHERS, "sound", "silent", "off"]),
    }
}

const AS_OTHERS: &str = "default";

/// Kinds that come by themselves.
pub(super) const TOLD: [NoticeKind; 7] = [
    NoticeKind::Waiting,
    NoticeKind::SignIn,
    NoticeKind::Failed,
    NoticeKind::Finished,
    NoticeKind::Unconfirmed,
    NoticeKind::Lost,
    NoticeKind::Paused,
];

/// `None`: one of the words is none of them.
pub(super) fn notice_kinds(text: &str) -> Option<Vec<NoticeKind>> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.map(|word| TOLD.into_iter().find(|kind| kind.word() == word)).collect()
}

/// How a notice of that kind is told of that agent's task: as set for the agent, for the kind, or as usual.
pub fn notice_way(
    connection: &Connection,
    kind: NoticeKind,
    agent: Option<&AgentName>,
) -> Result<Way, StoreError> {
    let set = |key: String| -> Result<Option<Way>, StoreError> {
        Ok(rows::get(connection, &key)?.as_deref().and_then(Way::from_word))
    };
    if let Some(agent) = agent
        && let Some(way) = set(format!("notice.{agent}.{}", kind.word()))?
    {
        return Ok(way);
    }
    Ok(set(format!("notice.{}", kind.word()))?.unwrap_or_else(|| kind.usual_way()))
}

/// The kinds that quiet hours do not hold up.
pub fn urgent_kinds(connection: &Connection) -> Result<Vec<NoticeKind>, StoreError> {
    Ok(rows::get(connection, "quiet.urgent")?.and_then(|text| notice_kinds(&text)).unwrap_or_default())
}

/// Until when the user asked for quiet, and until when the quiet hours do not hold. Not settings that anybody
/// types: what a press of a button leaves behind.
const QUIET_ASKED: &str = "quiet.asked_until_ms";
const QUIET_SKIPPED: &str = "quiet.skipped_until_ms";

/// When the user does not want to be told.
pub fn quiet(connection: &Connection) -> Result<Quiet, StoreError> {
    let time = |key: &str| -> Result<Option<TimeOfDay>, StoreError> {
        Ok(rows::get(connection, key)?.and_then(|text| text.parse().ok()))
    };
    let instant = |key: &str| -> Result<Option<i64>, StoreError> {
        Ok(rows::get(connection, key)?.and_then(|text| text.parse().ok()))
    };
    Ok(Quiet {
        hours: time("quiet.from")?.zip(time("quiet.to")?),
        asked_until_ms: instant(QUIET_ASKED)?,
        skipped_until_ms: instant(QUIET_SKIPPED)?,
    })
}

/// Quiet from now until then.
pub fn ask_for_quiet(context: &mut WriteContext<'_>, until_ms: i64) -> Result<(), StoreError> {
    rows::set(context, QUIET_ASKED, &until_ms.to_string())
}

/// What was asked for ends, and the quiet hours do not hold before `skipped_until_ms` where that is given.
pub fn end_quiet(context: &mut WriteContext<'_>, skipped_until_ms: Option<i64>) -> Result<(), StoreError> {
    rows::clear(context, QUIET_ASKED)?;
    match skipped_until_ms {
        Some(until_ms) => rows::set(context, QUIET_SKIPPED, &until_ms.to_string()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;

    #[test]
    fn an_agents_notices_are_set_between_its_name_and_the_kind() {
        let found = find("notice.builder.waiting").unwrap();
        assert_eq!(found.agent(), Some(AgentName::new("builder").unwrap()));
        assert!(found.setting.check("default").is_ok() && found.setting.check("loud").is_err());
        assert_eq!(find("notice.waiting").unwrap().agent(), None);
        // An agent may have the name of a kind.
        assert_eq!(find("notice.failed.waiting").unwrap().agent(), Some(AgentName::new("failed").unwrap()));
        for key in ["notice.", "notice..waiting", "notice.builder.test", "notice.*.waiting"] {
            assert_eq!(find(key).unwrap_err().code, "unknown_setting", "{key}");
        }
    }

    #[test]
    fn every_kind_of_notice_has_a_setting_whose_default_is_what_it_does() {
        for kind in TOLD {
            let setting = find(&format!("notice.{}", kind.word())).unwrap().setting;
            assert_eq!(setting.default, kind.usual_way().word(), "{}", kind.word());
        }
        assert_eq!(TOLD.len() + 1, NoticeKind::ALL.len(), "all but the test");
    }

    #[test]
    fn quiet_hours_are_times_of_day_and_what_comes_through_are_kinds() {
        let from = find("quiet.from").unwrap().setting;
        assert!(from.check("22:00").is_ok() && from.check("").is_ok());
        assert!(from.check("10 pm").unwrap_err().message.contains("HH:MM"));
        let urgent = find("quiet.urgent").unwrap().setting;
        assert!(urgent.check("waiting, failed").is_ok() && urgent.check("").is_ok());
        assert!(urgent.check("waiting,test").unwrap_err().message.contains("sign-in"));
    }
}
