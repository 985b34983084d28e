//! How far the work on each registration is: what was sent to the agent, what failed, what comes next.
//!
//! What decides about a callback is in [`super::registrations`]; nothing here is the inbox's concern.

use rusqlite::{Connection, OptionalExtension};
use taskbell_core::callback::RegistrationPath;
use taskbell_core::registration_plan::{Stage, Standing};

use super::agents::decoded;
use super::error::StoreError;
use super::keys::{AgentKey, RegistrationKey, TaskKey};
use super::registrations::RegistrationState;
use super::writer::WriteContext;

/// A registration that is not done with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkRow {
    pub key: RegistrationKey,
    pub agent: AgentKey,
    pub task: TaskKey,
    pub path: RegistrationPath,
    /// The address that it was made with.
    pub url: String,
    /// With `address_is_current` as if it were; see [`WorkRow::url`].
    pub standing: Standing,
    /// Failures in a row.
    pub tries: u32,
    pub failure_code: Option<String>,
}

/// Everything that is at an agent, should be, or has to be taken back.
pub fn open(connection: &Connection) -> Result<Vec<WorkRow>, StoreError> {
    work(connection, "", None)
}

/// One of them.
pub fn of(connection: &Connection, key: RegistrationKey) -> Result<Option<WorkRow>, StoreError> {
    Ok(work(connection, "AND r.id = ?1", Some(key))?.pop())
}

fn work(
    connection: &Connection,
    condition: &'static str,
    key: Option<RegistrationKey>,
) -> Result<Vec<WorkRow>, StoreError> {
    let sql = format!(
        "SELECT r.id, r.agent_id, r.task_ref, r.path, r.url, r.state, t.following = 'ended', r.asked_at_ms,
             r.registered_at_ms, r.sent_version IS NULL OR r.sent_version = r.key_version, r.checked_at_ms,
             r.ended_at_ms,
             r.state = 'ended' AND EXISTS (SELECT 1 FROM callbacks c WHERE c.registration_ref = r.id
                 AND c.claimed_state IN ('completed', 'failed', 'canceled', 'rejected')),
             r.next_try_at_ms, r.given_up, r.tries, r.failure_code
         FROM registrations r INDEXED BY registrations_at_work JOIN tasks t ON t.id = r.task_ref
         WHERE r.withdrawn_at_ms IS NULL AND r.purpose = 'task' AND r.agent_id IS NOT NULL {condition}
         ORDER BY r.id"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(rusqlite::params_from_iter(key), |row| {
        let state = decoded(row, 5, RegistrationState::from_word)?;
        Ok(WorkRow {
            key: row.get(0)?,
            agent: row.get(1)?,
            task: row.get(2)?,
            path: decoded(row, 3, RegistrationPath::parse)?,
            url: row.get(4)?,
            standing: Standing {
                stage: match state {
                    RegistrationState::Pending | RegistrationState::Failed => Stage::Wanted,
                    RegistrationState::Active => Stage::Active,
                    RegistrationState::Ended => Stage::Ended,
                    RegistrationState::Removed => Stage::Removed,
                },
                task_is_over: row.get(6)?,
                asked: row.get::<_, Option<i64>>(7)?.is_some(),
                registered_at_ms: row.get(8)?,
                address_is_current: true,
                proofs_are_current: row.get(9)?,
                checked: row.get::<_, Option<i64>>(10)?.is_some(),
                ended_at_ms: row.get(11)?,
                end_was_told: row.get(12)?,
                withdrawn: false,
                next_try_at_ms: row.get(13)?,
                given_up: row.get(14)?,
            },
            tries: row.get(15)?,
            failure_code: row.get(16)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Followed tasks that have no registration and should: of these agents, or by the user's wish. Those that
/// clients of the gateway started only where there is no stream.
pub fn without(
    connection: &Connection,
    agents: &[AgentKey],
    limit: u32,
) -> Result<Vec<(TaskKey, AgentKey)>, StoreError> {
    let agents: Vec<i64> = agents.iter().map(|key| key.0).collect();
    let agents = serde_json::to_string(&agents).unwrap_or_default();
    let sql = "SELECT t.id, t.agent_id FROM tasks t INDEXED BY tasks_followed
               JOIN agents a ON a.id = t.agent_id
               WHERE t.following <> 'ended' AND t.following = 'on' AND a.removed_at_ms IS NULL
                 AND (t.client_id IS NULL OR t.mode = 'poll')
                 AND t.state NOT IN ('completed', 'failed', 'canceled', 'rejected')
                 AND (t.push = 'on' OR t.push IS NULL AND t.agent_id IN (SELECT value FROM json_each(?1)))
                 AND NOT EXISTS (SELECT 1 FROM registrations r WHERE r.task_ref = t.id)
               ORDER BY t.id DESC LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map((agents, limit), |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Whether callbacks about the task may be expected: it is registered, and its agent has reached us before.
/// An agent behind a forwarded port looks as if it were on this machine and calls somebody else.
pub fn is_armed(connection: &Connection, task: TaskKey) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM registrations r WHERE r.task_ref = ?1 AND r.state = 'active'
                 AND EXISTS (SELECT 1 FROM registrations o WHERE o.agent_id = r.agent_id
                     AND o.last_callback_at_ms IS NOT NULL))";
    Ok(connection.prepare_cached(sql)?.query_row([task], |row| row.get(0))?)
}

/// The tasks for which callbacks may be expected.
pub fn armed_tasks(connection: &Connection) -> Result<Vec<TaskKey>, StoreError> {
    let sql = "SELECT task_ref FROM registrations INDEXED BY registrations_at_work
               WHERE withdrawn_at_ms IS NULL AND purpose = 'task' AND state = 'active' AND task_ref IS NOT NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What views show beside the row: when it is tried again, when it was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkTimes {
    pub next_try_at_ms: Option<i64>,
    pub withdrawn_at_ms: Option<i64>,
}

pub fn times(connection: &Connection, key: RegistrationKey) -> Result<WorkTimes, StoreError> {
    let sql = "SELECT next_try_at_ms, withdrawn_at_ms FROM registrations WHERE id = ?1";
    let times = connection
        .prepare_cached(sql)?
        .query_row([key], |row| Ok(WorkTimes { next_try_at_ms: row.get(0)?, withdrawn_at_ms: row.get(1)? }));
    Ok(times.optional()?.unwrap_or_default())
}

/// Before the agent is asked: from now on it may have it.
pub fn set_asked(context: &mut WriteContext<'_>, key: RegistrationKey) -> Result<(), StoreError> {
    let sql = "UPDATE registrations SET asked_at_ms = coalesce(asked_at_ms, ?2) WHERE id = ?1";
    context.tx.prepare_cached(sql)?.execute((key, context.now_ms))?;
    Ok(())
}

/// The agent has the proofs of this version; it is to be checked.
pub fn set_sent(
    context: &mut WriteContext<'_>,
    key: RegistrationKey,
    version: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE registrations SET sent_version = ?2, checked_at_ms = NULL, next_try_at_ms = NULL,
                   given_up = 0, tries = 0 WHERE id = ?1";
    context.tx.prepare_cached(sql)?.execute((key, version))?;
    Ok(())
}

pub fn set_checked(context: &mut WriteContext<'_>, key: RegistrationKey) -> Result<(), StoreError> {
    let sql = "UPDATE registrations SET checked_at_ms = ?2 WHERE id = ?1";
    context.tx.prepare_cached(sql)?.execute((key, context.now_ms))?;
    Ok(())
}

/// The agent does not have it any more, or nothing more is done about it.
pub fn set_withdrawn(context: &mut WriteContext<'_>, key: RegistrationKey) -> Result<(), StoreError> {
    let sql = "UPDATE registrations SET withdrawn_at_ms = ?2, next_try_at_ms = NULL, tries = 0 WHERE id = ?1";
    context.tx.prepare_cached(sql)?.execute((key, context.now_ms))?;
    Ok(())
}

/// One more try failed. `next_ms`: when the next is; none: not by itself.
pub fn set_next_try(
    context: &mut WriteContext<'_>,
    key: RegistrationKey,
    next_ms: Option<i64>,
) -> Result<(), StoreError> {
    let sql = "UPDATE registrations SET tries = tries + 1, next_try_at_ms = ?2, given_up = ?2 IS NULL
               WHERE id = ?1";
    context.tx.prepare_cached(sql)?.execute((key, next_ms))?;
    Ok(())
}

/// Tries at once what waits: one registration, or those whose failure has a code that begins so.
pub fn try_now(
    context: &mut WriteContext<'_>,
    key: Option<RegistrationKey>,
    code: &str,
) -> Result<usize, StoreError> {
    let sql = "UPDATE registrations SET next_try_at_ms = NULL, given_up = 0
               WHERE (?1 IS NULL OR id = ?1) AND withdrawn_at_ms IS NULL AND purpose = 'task'
                 AND substr(coalesce(failure_code, ''), 1, length(?2)) = ?2
                 AND (next_try_at_ms IS NOT NULL OR given_up)";
    Ok(context.tx.prepare_cached(sql)?.execute((key, code))?)
}

/// The user's wish for one task.
pub fn set_wish(context: &mut WriteContext<'_>, task: TaskKey, wanted: bool) -> Result<(), StoreError> {
    let sql = "UPDATE tasks SET push = ?2 WHERE id = ?1";
    context.tx.prepare_cached(sql)?.execute((task, if wanted { "on" } else { "off" }))?;
    Ok(())
}

/// Whether self-tests of an earlier run are left.
pub fn has_self_tests(connection: &Connection) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM registrations WHERE purpose = 'self-test')";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Self-tests of earlier runs: their secrets are gone.
pub fn delete_self_tests(context: &mut WriteContext<'_>) -> Result<(), StoreError> {
    context.tx.prepare_cached("DELETE FROM registrations WHERE purpose = 'self-test'")?.execute([])?;
    context.registrations_changed = true;
    Ok(())
}
