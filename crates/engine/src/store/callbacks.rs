//! Callbacks that proved themselves, and which tasks they make due.
//!
//! What a callback claims changes nothing but its own row. The commit that stores it raises its task's `dirty`
//! number; a read that began after that commit sets `clean`, and while dirty > clean the task is read again.

use rusqlite::{Connection, OptionalExtension, Row};
use taskbell_core::callback::{Claim, Digest, Judgement, ProofWord, Shape};
use taskbell_core::state::TaskState;
use taskbell_core::verdict::{Reason, Verdict};

use super::agents::{decoded, decoded_option};
use super::allowance;
use super::changes::{NewChange, record_change};
use super::error::StoreError;
use super::keys::{CallbackKey, RegistrationKey, TaskKey};
use super::writer::WriteContext;
use crate::rehearsal::{self, Place, Wrong};

/// A callback as it arrived, with a valid proof and a readable claim.
#[derive(Debug, Clone)]
pub struct NewCallback {
    pub registration: RegistrationKey,
    pub body: Vec<u8>,
    pub sha256: Digest,
    /// Headers of interest, secrets masked: one JSON object.
    pub headers_json: String,
    pub proofs: Judgement,
    pub claim: Claim,
    /// It was held against the registration's task, which was known.
    pub bound: bool,
}

/// What storing one did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    pub callback: CallbackKey,
    /// `None`: the registration's task is not known yet.
    pub task: Option<TaskKey>,
    /// The same body had come before.
    pub repeated: bool,
}

/// A callback as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackRow {
    pub key: CallbackKey,
    pub registration: RegistrationKey,
    pub task: Option<TaskKey>,
    pub at_ms: i64,
    pub last_at_ms: i64,
    /// How often this very body came.
    pub count: u32,
    pub sha256: Digest,
    pub size: u64,
    /// `None`: not kept any more.
    pub body: Option<Vec<u8>>,
    pub headers_json: String,
    pub token_proof: ProofWord,
    pub credential_proof: ProofWord,
    pub shape: Shape,
    pub claimed_task_id: String,
    pub claimed_context_id: Option<String>,
    /// `None`: it says nothing of the state.
    pub claimed_state: Option<TaskState>,
    pub claimed_raw_state: Option<String>,
    /// The number its last arrival raised the task to.
    pub dirty: Option<u64>,
    /// `pending` until its task was read.
    pub verdict: Verdict,
    pub verdict_at_ms: Option<i64>,
    /// Of the verdict.
    pub reason: Option<Reason>,
    /// The task as read when the verdict was given: a row of `confirmations`.
    pub confirmation: Option<i64>,
    /// The task's state as read then.
    pub confirmed_state: Option<TaskState>,
    /// It said less than one that came before it.
    pub out_of_order: bool,
}

/// Stores a callback or counts a repeat, and makes its task due. One of another task than the registration got
/// meanwhile belongs to none, and goes to quarantine in a day.
/// Errors: [`StoreError::Missing`] where the registration is gone.
pub fn store(context: &mut WriteContext<'_>, new: &NewCallback) -> Result<Stored, StoreError> {
    let sql = "UPDATE registrations SET last_callback_at_ms = ?2 WHERE id = ?1 RETURNING task_ref";
    let task = context
        .tx
        .prepare_cached(sql)?
        .query_row((new.registration, context.now_ms), |row| row.get::<_, Option<i64>>(0))
        .optional()?
        .ok_or_else(|| no_registration(new.registration))?
        .map(TaskKey);
    let task = match task {
        Some(task) if !new.bound && !is_of(context.tx, task, &new.claim)? => None,
        task => task,
    };
    let sql =
        "INSERT INTO callbacks (registration_ref, task_ref, at_ms, last_at_ms, count, sha256, size, body,
                   headers_json, token_proof, credential_proof, shape, claimed_task_id, claimed_context_id,
                   claimed_state, claimed_raw_state, dirty, verdict)
               VALUES (?1, ?2, ?3, ?3, 1, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 'pending')
               ON CONFLICT (registration_ref, sha256) DO UPDATE SET count = count + 1,
                   last_at_ms = excluded.last_at_ms, dirty = coalesce(excluded.dirty, dirty)
               RETURNING id, count";
    let dirty = match task {
        Some(task) => Some(raise_dirty(context, task)?),
        None => None,
    };
    let claim = &new.claim;
    let size = i64::try_from(new.body.len()).unwrap_or(i64::MAX);
    let values = rusqlite::params![
        new.registration,
        task,
        context.now_ms,
        new.sha256.0,
        size,
        new.body,
        new.headers_json,
        new.proofs.token.word(),
        new.proofs.credential.word(),
        claim.shape.word(),
        claim.task_id.as_str(),
        claim.context_id.as_ref().map(|id| id.as_str()),
        claim.state.map(TaskState::word),
        claim.raw_state,
        dirty.map(to_sql),
    ];
    let (id, count): (i64, i64) =
        context.tx.prepare_cached(sql)?.query_row(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
    if count == 1 {
        super::bodies::add_body(context, id, new.body.len() as u64)?;
    }
    if count.unsigned_abs().is_power_of_two() {
        // A body that comes a thousand times is ten lines of news.
        announce(context, task, id, count)?;
    }
    assert!(!rehearsal::is(Wrong::WriterDies), "as wished");
    rehearsal::reach(Place::BeforeCommit);
    Ok(Stored { callback: CallbackKey(id), task, repeated: count > 1 })
}

/// The feed tells that one came; what it says is read from its row.
fn announce(
    context: &mut WriteContext<'_>,
    task: Option<TaskKey>,
    id: i64,
    count: i64,
) -> Result<(), StoreError> {
    if !allowance::take(context, task) {
        return Ok(());
    }
    let body_json = format!(r#"{{"callback":{id},"count":{count}}}"#);
    let change = NewChange { agent: None, task, source: "push", kind: "callback", body_json: &body_json };
    record_change(context, &change)?;
    Ok(())
}

fn task_of(connection: &Connection, registration: RegistrationKey) -> Result<Option<TaskKey>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT task_ref FROM registrations WHERE id = ?1")?;
    let task: Option<Option<i64>> = statement.query_row([registration], |row| row.get(0)).optional()?;
    match task {
        Some(task) => Ok(task.map(TaskKey)),
        None => Err(no_registration(registration)),
    }
}

fn no_registration(registration: RegistrationKey) -> StoreError {
    StoreError::Missing { what: format!("registration row {}", registration.0) }
}

fn is_of(connection: &Connection, task: TaskKey, claim: &Claim) -> Result<bool, StoreError> {
    let mut statement = connection.prepare_cached("SELECT task_id = ?2 FROM tasks WHERE id = ?1")?;
    Ok(statement.query_row((task, claim.task_id.as_str()), |row| row.get(0))?)
}

/// Something arrived that makes the registration's task due, although nothing of it is kept.
/// The task, where there is one.
pub fn poke(
    context: &mut WriteContext<'_>,
    registration: RegistrationKey,
) -> Result<Option<TaskKey>, StoreError> {
    let task = task_of(context.tx, registration)?;
    if let Some(task) = task {
        raise_dirty(context, task)?;
    }
    Ok(task)
}

/// Makes a task due; its new number.
pub fn raise_dirty(context: &mut WriteContext<'_>, task: TaskKey) -> Result<u64, StoreError> {
    let sql = "INSERT INTO due_reads (task_ref, dirty) VALUES (?1, 1)
               ON CONFLICT (task_ref) DO UPDATE SET dirty = dirty + 1 RETURNING dirty";
    let dirty: i64 = context.tx.prepare_cached(sql)?.query_row([task], |row| row.get(0))?;
    Ok(dirty.unsigned_abs())
}

/// How due a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Due {
    pub dirty: u64,
    pub clean: u64,
}

impl Due {
    pub fn is_due(self) -> bool {
        self.dirty > self.clean
    }
}

pub fn due(connection: &Connection, task: TaskKey) -> Result<Due, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT dirty, clean FROM due_reads WHERE task_ref = ?1")?;
    let due = statement.query_row([task], |row| {
        Ok(Due { dirty: row.get::<_, i64>(0)?.unsigned_abs(), clean: row.get::<_, i64>(1)?.unsigned_abs() })
    });
    Ok(due.optional()?.unwrap_or_default())
}

/// A read that began when the number was `dirty` has been applied, in this transaction.
pub fn set_clean(context: &mut WriteContext<'_>, task: TaskKey, dirty: u64) -> Result<(), StoreError> {
    let sql = "UPDATE due_reads SET clean = ?2 WHERE task_ref = ?1 AND clean < ?2";
    context.tx.prepare_cached(sql)?.execute((task, to_sql(dirty)))?;
    Ok(())
}

/// Every task that is due.
pub fn due_tasks(connection: &Connection) -> Result<Vec<TaskKey>, StoreError> {
    let sql = "SELECT task_ref FROM due_reads WHERE dirty > clean ORDER BY task_ref";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What arrived before its task was known belongs to it now. Claims of another task go to quarantine.
pub(super) fn bind(
    context: &mut WriteContext<'_>,
    registration: RegistrationKey,
    task: TaskKey,
) -> Result<(), StoreError> {
    let sql = "SELECT c.id, c.claimed_task_id <> t.task_id FROM callbacks c JOIN tasks t ON t.id = ?2
               WHERE c.registration_ref = ?1 AND c.task_ref IS NULL ORDER BY c.id";
    let mut statement = context.tx.prepare_cached(sql)?;
    let early: Vec<(CallbackKey, bool)> = statement
        .query_map((registration, task), |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    drop(statement);
    for (callback, of_other_task) in early {
        if of_other_task {
            super::refused::move_to_quarantine(context, callback, "other_task")?;
            continue;
        }
        let dirty = raise_dirty(context, task)?;
        let sql = "UPDATE callbacks SET task_ref = ?2, dirty = ?3 WHERE id = ?1";
        context.tx.prepare_cached(sql)?.execute((callback, task, to_sql(dirty)))?;
        announce(context, Some(task), callback.0, 1)?;
    }
    Ok(())
}

/// Claims whose task never became known, of before `before_ms`: the send that they belong to failed, and no task is
/// made up for them. They go to quarantine, `limit` at most; how many went.
pub fn quarantine_unbound(
    context: &mut WriteContext<'_>,
    before_ms: i64,
    limit: u32,
) -> Result<usize, StoreError> {
    let sql = "SELECT c.id FROM callbacks c JOIN registrations r ON r.id = c.registration_ref
               WHERE c.task_ref IS NULL AND c.at_ms < ?1 AND r.purpose = 'task' LIMIT ?2";
    let mut statement = context.tx.prepare_cached(sql)?;
    let rows = statement.query_map((before_ms, limit), |row| row.get(0))?;
    let unbound: Vec<CallbackKey> = rows.collect::<Result<_, _>>()?;
    drop(statement);
    for callback in &unbound {
        super::refused::move_to_quarantine(context, *callback, "never_bound")?;
    }
    Ok(unbound.len())
}

const COLUMNS: &str = "id, registration_ref, task_ref, at_ms, last_at_ms, count, sha256, size, body, \
     headers_json, token_proof, credential_proof, shape, claimed_task_id, claimed_context_id, \
     claimed_state, claimed_raw_state, dirty, verdict, verdict_at_ms, reason, confirmation_ref, \
     out_of_order, confirmed_state";

pub fn get(connection: &Connection, key: CallbackKey) -> Result<CallbackRow, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM callbacks WHERE id = ?1");
    let row = connection.prepare_cached(&sql)?.query_row([key], read).optional()?;
    row.ok_or_else(|| StoreError::Missing { what: format!("callback {}", key.0) })
}

/// The first that came to a registration.
pub fn first_of(
    connection: &Connection,
    registration: RegistrationKey,
) -> Result<Option<CallbackKey>, StoreError> {
    let sql = "SELECT min(id) FROM callbacks WHERE registration_ref = ?1";
    Ok(connection.prepare_cached(sql)?.query_row([registration], |row| row.get(0))?)
}

/// All of a task, the oldest first.
pub fn of_task(connection: &Connection, task: TaskKey) -> Result<Vec<CallbackRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM callbacks WHERE task_ref = ?1 ORDER BY id");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([task], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn read(row: &Row<'_>) -> rusqlite::Result<CallbackRow> {
    Ok(CallbackRow {
        key: row.get(0)?,
        registration: row.get(1)?,
        task: row.get::<_, Option<i64>>(2)?.map(TaskKey),
        at_ms: row.get(3)?,
        last_at_ms: row.get(4)?,
        count: row.get(5)?,
        sha256: Digest(row.get(6)?),
        size: row.get::<_, i64>(7)?.unsigned_abs(),
        body: row.get(8)?,
        headers_json: row.get(9)?,
        token_proof: decoded(row, 10, ProofWord::from_word)?,
        credential_proof: decoded(row, 11, ProofWord::from_word)?,
        shape: decoded(row, 12, Shape::from_word)?,
        claimed_task_id: row.get(13)?,
        claimed_context_id: row.get(14)?,
        claimed_state: decoded_option(row, 15, |word| Some(TaskState::from_word(word)))?,
        claimed_raw_state: row.get(16)?,
        dirty: row.get::<_, Option<i64>>(17)?.map(i64::unsigned_abs),
        verdict: decoded(row, 18, Verdict::from_word)?,
        verdict_at_ms: row.get(19)?,
        reason: decoded_option(row, 20, Reason::from_word)?,
        confirmation: row.get(21)?,
        out_of_order: row.get(22)?,
        confirmed_state: decoded_option(row, 23, |word| Some(TaskState::from_word(word)))?,
    })
}
