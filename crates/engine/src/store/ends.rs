//! How each end of a task came to be known, and whether it was missed. Decided in `taskbell_core::missed`;
//! the row is written in the transaction that ends the task.

use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::json;
use taskbell_core::missed::{self, End, Finding, FoundBy, Way, Why};
use taskbell_core::state::TaskState;

use super::agents::{decoded, decoded_option};
use super::error::StoreError;
use super::keys::TaskKey;
use super::tasks::{Channel, FollowMode, announce};
use super::writer::WriteContext;

/// What is known of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndRow {
    pub found_by: Channel,
    pub at_ms: i64,
    /// To be judged then; `None`: judged.
    pub judge_at_ms: Option<i64>,
    /// When the first callback came that claimed it.
    pub told_at_ms: Option<i64>,
    /// `None`: not missed, or not judged yet.
    pub missed: Option<(Way, Why)>,
}

/// Notes when this run of the engine began: what ended before was not ours to hear.
pub fn note_run(context: &mut WriteContext<'_>) -> Result<(), StoreError> {
    let sql = "INSERT INTO meta (key, value) VALUES ('run_started_ms', ?1)
               ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    context.tx.prepare_cached(sql)?.execute([context.now_ms.to_string()])?;
    Ok(())
}

/// A task that went on ends as `state`, and `channel` tells it first. Called before the task's row is changed.
pub(super) fn record(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    state: TaskState,
    channel: Channel,
) -> Result<(), StoreError> {
    // A callback may have claimed it before, and waits for this very read.
    let sql = "INSERT INTO ends (task_ref, agent_id, at_ms, found_by, mode, known_since_ms, heard_before_ms,
                   trouble, run_started_ms, registered_at_ms, told_at_ms, missed)
               SELECT t.id, t.agent_id, ?2, ?3, t.mode, t.created_at_ms, t.confirmed_at_ms, t.trouble,
                   coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'run_started_ms'), 0),
                   (SELECT min(r.registered_at_ms) FROM registrations r WHERE r.task_ref = t.id
                       AND r.removed_at_ms IS NULL AND r.state IN ('active', 'ended')),
                   (SELECT min(c.at_ms) FROM callbacks c WHERE c.task_ref = t.id AND c.claimed_state = ?4
                       AND c.verdict IN ('pending', 'unreachable', 'ahead')),
                   0
               FROM tasks t WHERE t.id = ?1
               ON CONFLICT (task_ref) DO NOTHING";
    let values = (key, context.now_ms, channel.word(), state.word());
    if context.tx.prepare_cached(sql)?.execute(values)? > 0 {
        judge(context, key)?;
    }
    Ok(())
}

/// A callback that came at `at_ms` claimed the end that the task has. What seemed missed was late.
pub(super) fn note_told(context: &mut WriteContext<'_>, key: TaskKey, at_ms: i64) -> Result<(), StoreError> {
    let sql = "UPDATE ends SET told_at_ms = ?2 WHERE task_ref = ?1 AND told_at_ms IS NULL RETURNING missed";
    let missed: Option<bool> =
        context.tx.prepare_cached(sql)?.query_row((key, at_ms), |row| row.get(0)).optional()?;
    match missed {
        None => Ok(()),
        Some(was_missed) => {
            judge(context, key)?;
            if was_missed {
                announce(context, key, "push", "task", &json!({ "missed": false, "late": true }))?;
            }
            Ok(())
        }
    }
}

/// When the next end is to be judged.
pub fn next_judgement(connection: &Connection) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT min(judge_at_ms) FROM ends WHERE judge_at_ms IS NOT NULL";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Judges the ends whose time has come, `limit` at most.
pub fn judge_due(context: &mut WriteContext<'_>, limit: u32) -> Result<(), StoreError> {
    let sql = "SELECT task_ref FROM ends WHERE judge_at_ms <= ?1 ORDER BY judge_at_ms LIMIT ?2";
    let mut statement = context.tx.prepare_cached(sql)?;
    let due = statement.query_map((context.now_ms, limit), |row| row.get(0))?;
    let due: Vec<TaskKey> = due.collect::<Result<_, _>>()?;
    drop(statement);
    for key in due {
        judge(context, key)?;
    }
    Ok(())
}

fn judge(context: &mut WriteContext<'_>, key: TaskKey) -> Result<(), StoreError> {
    let sql = "SELECT found_by, at_ms, mode, known_since_ms, heard_before_ms, trouble, run_started_ms,
                   registered_at_ms, told_at_ms FROM ends WHERE task_ref = ?1";
    let end = context.tx.prepare_cached(sql)?.query_row([key], read_end)?;
    let (missed, judge_at_ms) = match missed::judge(end, context.now_ms) {
        Finding::NotMissed => (None, None),
        Finding::Missed { way, why } => (Some((way, why)), None),
        Finding::WaitUntil(at_ms) => (None, Some(at_ms)),
    };
    let sql = "UPDATE ends SET judge_at_ms = ?2, missed = ?3, way = ?4, why = ?5 WHERE task_ref = ?1";
    let (way, why) = (missed.map(|(way, _)| way.word()), missed.map(|(_, why)| why.word()));
    context.tx.prepare_cached(sql)?.execute((key, judge_at_ms, missed.is_some(), way, why))?;
    if let Some((way, why)) = missed {
        let body = json!({ "missed": true, "way": way.word(), "why": why.word(), "text": why.sentence() });
        announce(context, key, "poll", "task", &body)?;
    }
    Ok(())
}

/// The end of a task, where it ended while we knew it.
pub fn get(connection: &Connection, key: TaskKey) -> Result<Option<EndRow>, StoreError> {
    let sql = "SELECT found_by, at_ms, judge_at_ms, told_at_ms, way, why FROM ends WHERE task_ref = ?1";
    let row = connection.prepare_cached(sql)?.query_row([key], |row| {
        let way = decoded_option(row, 4, Way::from_word)?;
        Ok(EndRow {
            found_by: decoded(row, 0, Channel::from_word)?,
            at_ms: row.get(1)?,
            judge_at_ms: row.get(2)?,
            told_at_ms: row.get(3)?,
            missed: way.zip(decoded_option(row, 5, Why::from_word)?),
        })
    });
    Ok(row.optional()?)
}

/// The same for several, in their order.
pub fn of_tasks(connection: &Connection, keys: &[TaskKey]) -> Result<Vec<Option<EndRow>>, StoreError> {
    keys.iter().map(|key| get(connection, *key)).collect()
}

fn read_end(row: &Row<'_>) -> rusqlite::Result<End> {
    let found_by = match decoded(row, 0, Channel::from_word)? {
        Channel::Poll => FoundBy::Poll,
        Channel::Manual => FoundBy::Manual,
        Channel::Stream | Channel::Push | Channel::Gateway => FoundBy::Told,
    };
    let following = match decoded(row, 2, FollowMode::from_word)? {
        FollowMode::Stream => missed::Following::Stream,
        FollowMode::Reconnecting => missed::Following::BetweenStreams,
        FollowMode::Poll | FollowMode::PushAndPoll | FollowMode::Ended => missed::Following::Poll,
        FollowMode::Paused => missed::Following::Paused,
    };
    let trouble: Option<String> = row.get(5)?;
    Ok(End {
        found_by,
        at_ms: row.get(1)?,
        following,
        known_since_ms: row.get(3)?,
        heard_before_ms: row.get(4)?,
        unreachable: trouble.as_deref() == Some("agent_unreachable"),
        run_started_ms: row.get(6)?,
        registered_at_ms: row.get(7)?,
        told_at_ms: row.get(8)?,
    })
}
