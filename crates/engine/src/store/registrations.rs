//! Registrations: the addresses that agents were given to call us back at, and what proves a callback there.
//!
//! ```text
//! pending ──> active ──> ended         callbacks are taken until `answers_until_ms`
//!    └──> failed (may become active)
//! any but ended ──> removed            by the user: senders with the right proof are told to stop
//! ```
//!
//! Of secrets only digests are here. Every change that decides about a callback goes through this room, which
//! numbers it, so that the inbox reads what is new before it judges the next one.

use rusqlite::{Connection, OptionalExtension, Row};
use taskbell_core::callback::{Digest, Previous, ProofPolicy, Registered, RegistrationPath, Scheme};
use taskbell_core::ids::TaskId;

use super::agents::{decoded, decoded_option};
use super::callbacks;
use super::error::StoreError;
use super::keys::{AgentKey, RegistrationKey, TaskKey};
use super::tasks::words;
use super::writer::WriteContext;

words!(
    /// What a registration is for.
    Purpose {
        Task = "task",
        /// Posted to by ourselves, through the public address.
        SelfTest = "self-test",
    }
);

words!(
    /// Where a registration stands.
    RegistrationState {
        /// Written down here, not yet known to be at the agent.
        Pending = "pending",
        Active = "active",
        /// Not at the agent; the code says why.
        Failed = "failed",
        /// Its task has ended.
        Ended = "ended",
        /// By the user.
        Removed = "removed",
    }
);

/// What is written down before an agent is asked.
#[derive(Debug, Clone)]
pub struct NewRegistration<'a> {
    pub path: &'a RegistrationPath,
    pub purpose: Purpose,
    pub agent: Option<AgentKey>,
    /// `None` for one within a send: [`bind`] follows with the answer.
    pub task: Option<TaskKey>,
    pub config_id: &'a str,
    pub url: &'a str,
    pub policy: ProofPolicy,
    pub key_version: i64,
    pub token: Option<Digest>,
    pub credential: Option<(Scheme, Digest)>,
}

/// A registration as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistrationRow {
    pub key: RegistrationKey,
    pub path: RegistrationPath,
    pub purpose: Purpose,
    pub agent: Option<AgentKey>,
    pub task: Option<TaskKey>,
    pub config_id: String,
    pub remote_id: Option<String>,
    pub url: String,
    pub state: RegistrationState,
    pub key_version: i64,
    /// What proves a callback.
    pub proof: Registered,
    pub failure_code: Option<String>,
    pub failure_detail: Option<String>,
    pub echoed: bool,
    pub created_at_ms: i64,
    pub registered_at_ms: Option<i64>,
    pub ended_at_ms: Option<i64>,
    pub answers_until_ms: Option<i64>,
    pub removed_at_ms: Option<i64>,
    pub last_callback_at_ms: Option<i64>,
    pub revision: i64,
}

const COLUMNS: &str = "id, path, purpose, agent_id, task_ref, config_id, remote_id, url, state, policy, \
     key_version, scheme, token_sha256, credential_sha256, previous_token_sha256, \
     previous_credential_sha256, previous_until_ms, failure_code, failure_detail, echoed, created_at_ms, \
     registered_at_ms, ended_at_ms, answers_until_ms, removed_at_ms, last_callback_at_ms, revision";
/// Never given twice, also after the row that had it is gone.
const NEXT_REVISION: &str = "(SELECT max(coalesce((SELECT max(revision) FROM registrations), 0), \
     coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'registrations_gone'), 0)) + 1)";

pub fn insert(
    context: &mut WriteContext<'_>,
    new: &NewRegistration<'_>,
) -> Result<RegistrationKey, StoreError> {
    let sql = format!(
        "INSERT INTO registrations (path, purpose, agent_id, task_ref, config_id, url, state, policy,
             key_version, scheme, token_sha256, credential_sha256, created_at_ms, revision)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', ?7, ?8, ?9, ?10, ?11, ?12, {NEXT_REVISION})"
    );
    let values = (
        new.path.as_str(),
        new.purpose.word(),
        new.agent,
        new.task,
        new.config_id,
        new.url,
        new.policy.word(),
        new.key_version,
        new.credential.map(|(scheme, _)| scheme.word()),
        new.token.map(|digest| digest.0),
        new.credential.map(|(_, digest)| digest.0),
        context.now_ms,
    );
    let id = context.tx.prepare_cached(&sql)?.insert(values)?;
    context.registrations_changed = true;
    Ok(RegistrationKey(id))
}

pub fn get(connection: &Connection, key: RegistrationKey) -> Result<RegistrationRow, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM registrations WHERE id = ?1");
    let row = connection.prepare_cached(&sql)?.query_row([key], read).optional()?;
    row.ok_or_else(|| StoreError::Missing { what: format!("registration row {}", key.0) })
}

pub fn find_by_path(
    connection: &Connection,
    path: &RegistrationPath,
) -> Result<Option<RegistrationRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM registrations WHERE path = ?1");
    Ok(connection.prepare_cached(&sql)?.query_row([path.as_str()], read).optional()?)
}

/// Which registrations to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistrationFilter {
    pub agent: Option<AgentKey>,
    pub task: Option<TaskKey>,
    /// Empty: all.
    pub states: Vec<RegistrationState>,
}

/// The oldest first.
pub fn list(
    connection: &Connection,
    filter: &RegistrationFilter,
) -> Result<Vec<RegistrationRow>, StoreError> {
    let states: Vec<&str> = filter.states.iter().map(|state| state.word()).collect();
    let states = serde_json::to_string(&states).unwrap_or_default();
    let sql = format!(
        "SELECT {COLUMNS} FROM registrations
         WHERE (?1 IS NULL OR agent_id = ?1) AND (?2 IS NULL OR task_ref = ?2)
             AND (?3 = '[]' OR state IN (SELECT value FROM json_each(?3)))
         ORDER BY id"
    );
    collect(connection, &sql, (filter.agent, filter.task, states))
}

/// All of a task, the oldest first.
pub fn of_task(connection: &Connection, task: TaskKey) -> Result<Vec<RegistrationRow>, StoreError> {
    collect(
        connection,
        &format!("SELECT {COLUMNS} FROM registrations WHERE task_ref = ?1 ORDER BY id"),
        [task],
    )
}

/// What the inbox needs of a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxRow {
    pub key: RegistrationKey,
    pub path: RegistrationPath,
    /// `None`: not known yet, or any.
    pub task_id: Option<TaskId>,
    pub proof: Registered,
    pub state: RegistrationState,
    pub answers_until_ms: Option<i64>,
    pub revision: i64,
}

/// Those that changed after a revision, in that order.
pub fn inbox_rows(connection: &Connection, revision: i64) -> Result<Vec<InboxRow>, StoreError> {
    let columns =
        COLUMNS.split(", ").map(|column| format!("r.{}", column.trim())).collect::<Vec<_>>().join(", ");
    let sql = format!(
        "SELECT {columns}, t.task_id FROM registrations r LEFT JOIN tasks t ON t.id = r.task_ref
         WHERE r.revision > ?1 ORDER BY r.revision"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([revision], |row| {
        let task_id: Option<String> = row.get(27)?;
        let RegistrationRow { key, path, proof, state, answers_until_ms, revision, .. } = read(row)?;
        Ok(InboxRow {
            key,
            path,
            task_id: task_id.map(TaskId::new),
            proof,
            state,
            answers_until_ms,
            revision,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn collect(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<RegistrationRow>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(values, read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The agent has it, under the id that it named.
pub fn set_registered(
    context: &mut WriteContext<'_>,
    key: RegistrationKey,
    remote_id: Option<&str>,
) -> Result<(), StoreError> {
    let set = "state = 'active', remote_id = coalesce(?2, remote_id), registered_at_ms = ?3,
               failure_code = NULL, failure_detail = NULL";
    update(context, set, "state IN ('pending', 'active', 'failed')", (key, remote_id, context.now_ms))
}

/// It is not at the agent. Callbacks are taken all the same: the answer may have been lost, not the registration.
pub fn set_failed(
    context: &mut WriteContext<'_>,
    key: RegistrationKey,
    code: &str,
    detail: &str,
) -> Result<(), StoreError> {
    let set = "state = 'failed', failure_code = ?2, failure_detail = ?3";
    update(context, set, "state IN ('pending', 'active', 'failed')", (key, code, detail))
}

/// Its task has ended. Late callbacks are taken until `answers_until_ms`; then the address is as unknown.
pub fn set_ended(
    context: &mut WriteContext<'_>,
    key: RegistrationKey,
    answers_until_ms: i64,
) -> Result<(), StoreError> {
    let set = "state = 'ended', ended_at_ms = ?2, answers_until_ms = ?3";
    update(context, set, "state IN ('pending', 'active', 'failed')", (key, context.now_ms, answers_until_ms))
}

/// By the user: senders with the right proof are told that it is gone.
pub fn set_removed(context: &mut WriteContext<'_>, key: RegistrationKey) -> Result<(), StoreError> {
    update(context, "state = 'removed', removed_at_ms = ?2", "state <> 'removed'", (key, context.now_ms))
}

/// Another key version: the proofs so far are valid until `previous_until_ms`.
pub fn set_proofs(
    context: &mut WriteContext<'_>,
    key: RegistrationKey,
    key_version: i64,
    token: Option<Digest>,
    credential: Option<Digest>,
    previous_until_ms: i64,
) -> Result<(), StoreError> {
    let set = "key_version = ?2, previous_token_sha256 = token_sha256,
               previous_credential_sha256 = credential_sha256, previous_until_ms = ?5,
               token_sha256 = ?3, credential_sha256 = ?4";
    let digest = |digest: Option<Digest>| digest.map(|digest| digest.0);
    let values = (key, key_version, digest(token), digest(credential), previous_until_ms);
    update(context, set, "1", values)
}

/// The address it is registered with, where the public one is another now.
pub fn set_url(context: &mut WriteContext<'_>, key: RegistrationKey, url: &str) -> Result<(), StoreError> {
    update(context, "url = ?2", "url <> ?2", (key, url))
}

/// How many proofs its callbacks must show.
pub fn set_policy(
    context: &mut WriteContext<'_>,
    key: RegistrationKey,
    policy: ProofPolicy,
) -> Result<(), StoreError> {
    update(context, "policy = ?2", "policy <> ?2", (key, policy.word()))
}

/// The agent wrote a secret of it into an answer. True: for the first time.
pub fn set_echoed(context: &mut WriteContext<'_>, key: RegistrationKey) -> Result<bool, StoreError> {
    let sql = "UPDATE registrations SET echoed = 1 WHERE id = ?1 AND echoed = 0";
    Ok(context.tx.prepare_cached(sql)?.execute([key])? > 0)
}

/// The task of one that was made with a send. In the transaction that stores the answer: what arrived before
/// it belongs to the task from then on, and makes it due. Nothing is bound twice.
pub fn bind(context: &mut WriteContext<'_>, key: RegistrationKey, task: TaskKey) -> Result<(), StoreError> {
    update(context, "task_ref = ?2", "task_ref IS NULL", (key, task))?;
    callbacks::bind(context, key, task)
}

/// Removes one row with all that arrived there: for those that are long over.
pub fn delete(context: &mut WriteContext<'_>, key: RegistrationKey) -> Result<(), StoreError> {
    context.tx.prepare_cached("DELETE FROM registrations WHERE id = ?1")?.execute([key])?;
    context.registrations_changed = true;
    Ok(())
}

/// Runs `UPDATE … SET {set} WHERE id = ?1 AND {condition}`, numbers the change and has the inbox read it.
fn update(
    context: &mut WriteContext<'_>,
    set: &'static str,
    condition: &'static str,
    values: impl rusqlite::Params,
) -> Result<(), StoreError> {
    let sql =
        format!("UPDATE registrations SET {set}, revision = {NEXT_REVISION} WHERE id = ?1 AND {condition}");
    if context.tx.prepare_cached(&sql)?.execute(values)? > 0 {
        context.registrations_changed = true;
    }
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<RegistrationRow> {
    let digest = |column: usize| -> rusqlite::Result<Option<Digest>> {
        Ok(row.get::<_, Option<[u8; 32]>>(column)?.map(Digest))
    };
    let scheme: Option<Scheme> = decoded_option(row, 11, Scheme::from_word)?;
    let previous = match row.get(16)? {
        Some(until_ms) => Some(Previous { token: digest(14)?, credential: digest(15)?, until_ms }),
        None => None,
    };
    Ok(RegistrationRow {
        key: row.get(0)?,
        path: decoded(row, 1, RegistrationPath::parse)?,
        purpose: decoded(row, 2, Purpose::from_word)?,
        agent: row.get::<_, Option<i64>>(3)?.map(AgentKey),
        task: row.get::<_, Option<i64>>(4)?.map(TaskKey),
        config_id: row.get(5)?,
        remote_id: row.get(6)?,
        url: row.get(7)?,
        state: decoded(row, 8, RegistrationState::from_word)?,
        key_version: row.get(10)?,
        proof: Registered {
            policy: decoded(row, 9, ProofPolicy::from_word)?,
            token: digest(12)?,
            credential: scheme.zip(digest(13)?),
            previous,
        },
        failure_code: row.get(17)?,
        failure_detail: row.get(18)?,
        echoed: row.get(19)?,
        created_at_ms: row.get(20)?,
        registered_at_ms: row.get(21)?,
        ended_at_ms: row.get(22)?,
        answers_until_ms: row.get(23)?,
        removed_at_ms: row.get(24)?,
        last_callback_at_ms: row.get(25)?,
        revision: row.get(26)?,
    })
}
