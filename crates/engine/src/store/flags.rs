//! What their users keep of tasks: pinned, out of the lists, without notices, put off, with a note. Each says so in the
//! feed.

use rusqlite::{Connection, OptionalExtension};
use serde_json::json;

use super::error::StoreError;
use super::keys::TaskKey;
use super::tasks::announce;
use super::writer::WriteContext;

/// Characters of a note.
pub const NOTE_MAX: usize = 10_000;

/// A flag that is on since a time, or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// Kept however old it gets.
    Pinned,
    /// Out of the lists.
    Archived,
    /// Without notices.
    Muted,
}

impl Flag {
    fn word(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Archived => "archived",
            Self::Muted => "muted",
        }
    }

    fn update(self) -> &'static str {
        match self {
            Self::Pinned => {
                "UPDATE tasks SET pinned_at_ms = ?2 WHERE id = ?1 AND (pinned_at_ms IS NULL) = (?2 IS NOT NULL)"
            }
            Self::Archived => {
                "UPDATE tasks SET archived_at_ms = ?2 WHERE id = ?1 AND (archived_at_ms IS NULL) = (?2 IS NOT NULL)"
            }
            Self::Muted => {
                "UPDATE tasks SET muted_at_ms = ?2 WHERE id = ?1 AND (muted_at_ms IS NULL) = (?2 IS NOT NULL)"
            }
        }
    }
}

/// Sets a flag, or takes it off. What is so already is no change.
pub fn set(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    flag: Flag,
    at_ms: Option<i64>,
) -> Result<(), StoreError> {
    if context.tx.prepare_cached(flag.update())?.execute((key, at_ms))? > 0 {
        announce(context, key, "manual", "task", &json!({ flag.word(): at_ms.is_some() }))?;
    }
    Ok(())
}

/// Puts the question that waits off until then, or not any more. The notice is [`super::notices`]'.
pub(super) fn set_snoozed(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    until_ms: Option<i64>,
) -> Result<(), StoreError> {
    let sql =
        "UPDATE tasks SET snoozed_at_ms = CASE WHEN ?2 IS NULL THEN NULL ELSE ?3 END, snoozed_until_ms = ?2
               WHERE id = ?1 AND (snoozed_until_ms IS NOT NULL OR ?2 IS NOT NULL)";
    if context.tx.prepare_cached(sql)?.execute((key, until_ms, context.now_ms))? > 0 {
        let body = match until_ms {
            Some(until_ms) => json!({ "snoozed": true, "snoozedUntilMs": until_ms }),
            None => json!({ "snoozed": false }),
        };
        announce(context, key, "manual", "task", &body)?;
    }
    Ok(())
}

/// Writes the note of a task; an empty one is none. The caller has counted its characters.
pub fn set_note(context: &mut WriteContext<'_>, key: TaskKey, text: &str) -> Result<(), StoreError> {
    let changed = if text.is_empty() {
        context.tx.prepare_cached("DELETE FROM task_notes WHERE task_ref = ?1")?.execute([key])?
    } else {
        let sql = "INSERT INTO task_notes (task_ref, text, at_ms) VALUES (?1, ?2, ?3)
                   ON CONFLICT (task_ref) DO UPDATE SET text = excluded.text, at_ms = excluded.at_ms
                   WHERE text <> excluded.text";
        context.tx.prepare_cached(sql)?.execute((key, text, context.now_ms))?
    };
    if changed > 0 {
        super::search::set_due(context, key)?;
        announce(context, key, "manual", "task", &json!({ "note": !text.is_empty() }))?;
    }
    Ok(())
}

pub fn note(connection: &Connection, key: TaskKey) -> Result<Option<String>, StoreError> {
    let sql = "SELECT text FROM task_notes WHERE task_ref = ?1";
    Ok(connection.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()?)
}
