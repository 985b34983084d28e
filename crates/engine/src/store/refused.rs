//! What the inbox did not take: counted by reason, and a capped quarantine of what proved itself all the same.
//! Neither keeps a body.

use rusqlite::{Connection, Row};
use taskbell_core::callback::Digest;

use super::changes::{NewChange, record_change};
use super::error::StoreError;
use super::keys::{CallbackKey, RegistrationKey, TaskKey};
use super::writer::WriteContext;

/// Rows of quarantine; the oldest make room. A row takes some 300 octets.
const QUARANTINE: u32 = 1_000;

/// Refusals of one kind since they were last written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusals {
    pub registration: RegistrationKey,
    /// `proof`, `not_json`, `rate`, …
    pub reason: &'static str,
    pub count: u32,
    /// Of the last one: a cleaned line.
    pub detail: String,
}

/// Refusals as counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalRow {
    pub registration: RegistrationKey,
    pub reason: String,
    pub count: u64,
    pub first_at_ms: i64,
    pub last_at_ms: i64,
    pub detail: String,
}

/// Adds to the counts, and says so. A registration that is gone meanwhile needs none.
pub fn count(context: &mut WriteContext<'_>, refusals: &Refusals) -> Result<(), StoreError> {
    let sql = "INSERT INTO refusals (registration_ref, reason, count, first_at_ms, last_at_ms, detail)
               SELECT id, ?2, ?3, ?4, ?4, ?5 FROM registrations WHERE id = ?1
               ON CONFLICT (registration_ref, reason) DO UPDATE SET count = count + excluded.count,
                   last_at_ms = excluded.last_at_ms, detail = excluded.detail";
    let values = (refusals.registration, refusals.reason, refusals.count, context.now_ms, &refusals.detail);
    if context.tx.prepare_cached(sql)?.execute(values)? > 0 {
        let sql = "SELECT task_ref FROM registrations WHERE id = ?1";
        let task: Option<i64> =
            context.tx.prepare_cached(sql)?.query_row([refusals.registration], |row| row.get(0))?;
        let body = serde_json::json!({ "refused": refusals.count, "reason": refusals.reason }).to_string();
        let change = NewChange {
            agent: None,
            task: task.map(TaskKey),
            source: "push",
            kind: "callback",
            body_json: &body,
        };
        record_change(context, &change)?;
    }
    Ok(())
}

pub fn counts(connection: &Connection, registration: RegistrationKey) -> Result<Vec<RefusalRow>, StoreError> {
    let sql = "SELECT registration_ref, reason, count, first_at_ms, last_at_ms, detail FROM refusals
               WHERE registration_ref = ?1 ORDER BY reason";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([registration], |row| {
        Ok(RefusalRow {
            registration: row.get(0)?,
            reason: row.get(1)?,
            count: row.get::<_, i64>(2)?.unsigned_abs(),
            first_at_ms: row.get(3)?,
            last_at_ms: row.get(4)?,
            detail: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What goes to quarantine.
#[derive(Debug, Clone)]
pub struct NewQuarantine {
    pub registration: RegistrationKey,
    pub reason: &'static str,
    pub size: u64,
    pub sha256: Digest,
    /// A cleaned line.
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantineRow {
    pub id: i64,
    pub registration: RegistrationKey,
    pub reason: String,
    pub at_ms: i64,
    pub last_at_ms: i64,
    pub count: u64,
    pub size: u64,
    pub sha256: Digest,
    pub detail: String,
}

pub fn quarantine(context: &mut WriteContext<'_>, new: &NewQuarantine) -> Result<(), StoreError> {
    let sql =
        "INSERT INTO quarantine (registration_ref, reason, at_ms, last_at_ms, count, size, sha256, detail)
               VALUES (?1, ?2, ?3, ?3, 1, ?4, ?5, ?6)
               ON CONFLICT (registration_ref, reason, sha256) DO UPDATE SET count = count + 1,
                   last_at_ms = excluded.last_at_ms";
    let size = i64::try_from(new.size).unwrap_or(i64::MAX);
    let values = (new.registration, new.reason, context.now_ms, size, new.sha256.0, &new.detail);
    context.tx.prepare_cached(sql)?.execute(values)?;
    make_room(context)
}

/// A callback that was kept and turns out to be none of its task's.
pub fn move_to_quarantine(
    context: &mut WriteContext<'_>,
    callback: CallbackKey,
    reason: &'static str,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO quarantine (registration_ref, reason, at_ms, last_at_ms, count, size, sha256, detail)
               SELECT registration_ref, ?2, at_ms, last_at_ms, count, size, sha256, ?3 FROM callbacks WHERE id = ?1
               ON CONFLICT (registration_ref, reason, sha256) DO UPDATE SET count = count + excluded.count,
                   last_at_ms = excluded.last_at_ms";
    let claimed: String = context
        .tx
        .prepare_cached("SELECT claimed_task_id FROM callbacks WHERE id = ?1")?
        .query_row([callback], |row| row.get(0))?;
    let detail = taskbell_core::text::plain(&claimed);
    context.tx.prepare_cached(sql)?.execute((callback, reason, detail))?;
    context.tx.prepare_cached("DELETE FROM callbacks WHERE id = ?1")?.execute([callback])?;
    make_room(context)
}

fn make_room(context: &mut WriteContext<'_>) -> Result<(), StoreError> {
    let sql =
        "DELETE FROM quarantine WHERE id <= (SELECT id FROM quarantine ORDER BY id DESC LIMIT 1 OFFSET ?1)";
    context.tx.prepare_cached(sql)?.execute([QUARANTINE])?;
    Ok(())
}

/// The latest first, `limit` at most.
pub fn list_quarantine(connection: &Connection, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
    let sql = "SELECT id, registration_ref, reason, at_ms, last_at_ms, count, size, sha256, detail
               FROM quarantine ORDER BY id DESC LIMIT ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([limit], read_quarantine)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read_quarantine(row: &Row<'_>) -> rusqlite::Result<QuarantineRow> {
    Ok(QuarantineRow {
        id: row.get(0)?,
        registration: row.get(1)?,
        reason: row.get(2)?,
        at_ms: row.get(3)?,
        last_at_ms: row.get(4)?,
        count: row.get::<_, i64>(5)?.unsigned_abs(),
        size: row.get::<_, i64>(6)?.unsigned_abs(),
        sha256: Digest(row.get(7)?),
        detail: row.get(8)?,
    })
}
