//! Receivers of callbacks, one a client and origin: whether they may be called, and how they did.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::json;
use taskbell_core::delivery::{Breaker, breaker};
use taskbell_core::ids::ClientName;

use super::agents::{decoded, decoded_option};
use super::changes::{NewChange, record_change};
use super::error::StoreError;
use super::keys::{ClientKey, TargetKey};
use super::writer::WriteContext;

/// Who paused a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseReason {
    User,
    /// It failed for days.
    Failing,
}

impl PauseReason {
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Failing => "failing",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        [Self::User, Self::Failing].into_iter().find(|reason| reason.word() == word)
    }
}

/// A target as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRow {
    pub key: TargetKey,
    pub client: ClientName,
    pub origin: String,
    /// On this machine.
    pub loopback: bool,
    pub approved_at_ms: Option<i64>,
    pub paused: Option<(i64, PauseReason)>,
    /// In a row.
    pub failures: u32,
    pub failing_since_ms: Option<i64>,
    /// Not called before.
    pub probe_at_ms: Option<i64>,
    pub last_code: Option<String>,
    pub last_failed_at_ms: Option<i64>,
    pub delivered_at_ms: Option<i64>,
    /// Best effort: changes that could have been told, and those that never were tried.
    pub updates: u64,
    pub dropped: u64,
    /// Reserved deliveries that are still to arrive.
    pub waiting: u64,
}

/// The origin under which all spellings of a port of this machine are one target.
pub fn loopback_origin(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// The target of that client and origin, made where there is none.
pub fn ensure(
    context: &mut WriteContext<'_>,
    client: ClientKey,
    origin: &str,
    loopback: bool,
) -> Result<TargetKey, StoreError> {
    let find = "SELECT id FROM targets WHERE client_id = ?1 AND origin = ?2";
    let found = context.tx.prepare_cached(find)?.query_row((client, origin), |row| row.get(0)).optional()?;
    if let Some(key) = found {
        return Ok(key);
    }
    let sql = "INSERT INTO targets (client_id, origin, loopback, created_at_ms) VALUES (?1, ?2, ?3, ?4)";
    let id = context.tx.prepare_cached(sql)?.insert((client, origin, loopback, context.now_ms))?;
    Ok(TargetKey(id))
}

/// Says in the change feed that it is other than it was.
fn announce(context: &mut WriteContext<'_>, key: TargetKey) -> Result<(), StoreError> {
    let body_json = json!({ "target": key.0 }).to_string();
    let change =
        NewChange { agent: None, task: None, source: "gateway", kind: "target", body_json: &body_json };
    record_change(context, &change).map(|_| ())
}

/// The user allows callbacks of that client to that port of this machine.
pub fn approve(
    context: &mut WriteContext<'_>,
    client: ClientKey,
    port: u16,
) -> Result<TargetKey, StoreError> {
    let key = ensure(context, client, &loopback_origin(port), true)?;
    let sql = "UPDATE targets SET approved_at_ms = coalesce(approved_at_ms, ?2) WHERE id = ?1";
    context.tx.prepare_cached(sql)?.execute((key, context.now_ms))?;
    announce(context, key)?;
    Ok(key)
}

/// Whether that client may register that port of this machine.
pub fn is_approved(connection: &Connection, client: ClientKey, port: u16) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM targets WHERE client_id = ?1 AND origin = ?2 AND approved_at_ms IS NOT NULL";
    let found =
        connection.prepare_cached(sql)?.query_row((client, loopback_origin(port)), |_| Ok(())).optional()?;
    Ok(found.is_some())
}

/// Takes an approval back and forgets what nobody uses. What is registered for it stays and is refused.
/// False: there is no such target.
pub fn remove(context: &mut WriteContext<'_>, key: TargetKey) -> Result<bool, StoreError> {
    let sql = "UPDATE targets SET approved_at_ms = NULL WHERE id = ?1";
    let found = context.tx.prepare_cached(sql)?.execute([key])?;
    let sql = "DELETE FROM targets WHERE id = ?1
               AND NOT EXISTS (SELECT 1 FROM client_push_configs WHERE target_id = ?1)
               AND NOT EXISTS (SELECT 1 FROM deliveries WHERE target_id = ?1)";
    context.tx.prepare_cached(sql)?.execute([key])?;
    if found > 0 {
        announce(context, key)?;
    }
    Ok(found > 0)
}

/// Nothing is sent until it is resumed; reserved deliveries wait. False: there is no such target.
pub fn pause(
    context: &mut WriteContext<'_>,
    key: TargetKey,
    reason: PauseReason,
) -> Result<bool, StoreError> {
    let sql = "UPDATE targets SET paused_at_ms = coalesce(paused_at_ms, ?2),
                   pause_reason = coalesce(pause_reason, ?3) WHERE id = ?1";
    let found = context.tx.prepare_cached(sql)?.execute((key, context.now_ms, reason.word()))?;
    if found > 0 {
        announce(context, key)?;
    }
    Ok(found > 0)
}

/// From now on it is called again, as if it had never failed; what waits for it is due at once. False: there
/// is no such target.
pub fn resume(context: &mut WriteContext<'_>, key: TargetKey) -> Result<bool, StoreError> {
    let sql = "UPDATE targets SET paused_at_ms = NULL, pause_reason = NULL, failures = 0,
                   failing_since_ms = NULL, probe_at_ms = NULL WHERE id = ?1";
    let found = context.tx.prepare_cached(sql)?.execute([key])?;
    let sql = "UPDATE deliveries SET due_at_ms = ?2 WHERE target_id = ?1 AND due_at_ms > ?2";
    context.tx.prepare_cached(sql)?.execute((key, context.now_ms))?;
    if found > 0 {
        announce(context, key)?;
    }
    Ok(found > 0)
}

pub(super) fn record_delivered(context: &mut WriteContext<'_>, key: TargetKey) -> Result<(), StoreError> {
    let sql = "UPDATE targets SET failures = 0, failing_since_ms = NULL, probe_at_ms = NULL,
                   delivered_at_ms = ?2 WHERE id = ?1";
    context.tx.prepare_cached(sql)?.execute((key, context.now_ms))?;
    Ok(())
}

/// One more failure; whether the target is left alone from now on.
pub(super) fn record_failure(
    context: &mut WriteContext<'_>,
    key: TargetKey,
    code: &str,
    asked: Option<Duration>,
) -> Result<Breaker, StoreError> {
    let now = context.now_ms;
    let sql = "UPDATE targets SET failures = failures + 1, failing_since_ms = coalesce(failing_since_ms, ?2),
                   last_code = ?3, last_failed_at_ms = ?2 WHERE id = ?1
               RETURNING failures, failing_since_ms";
    let (failures, since_ms): (u32, i64) =
        context.tx.prepare_cached(sql)?.query_row((key, now, code), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let failing_for = Duration::from_millis(u64::try_from(now.saturating_sub(since_ms)).unwrap_or(0));
    let decided = breaker(failures, failing_for);
    let probe_after = match decided {
        Breaker::Closed => asked,
        Breaker::Open { probe_after } => Some(asked.unwrap_or_default().max(probe_after)),
        Breaker::Paused => {
            tell_pause(context, key)?;
            pause(context, key, PauseReason::Failing)?;
            None
        }
    };
    let probe_at_ms = probe_after.map(|wait| now.saturating_add(millis(wait)));
    context
        .tx
        .prepare_cached("UPDATE targets SET probe_at_ms = ?2 WHERE id = ?1")?
        .execute((key, probe_at_ms))?;
    // A pause has told it.
    if decided != Breaker::Paused {
        announce(context, key)?;
    }
    Ok(decided)
}

/// The user hears that it is left alone from now on: once, for an attempt that was under way may fail later still.
fn tell_pause(context: &mut WriteContext<'_>, key: TargetKey) -> Result<(), StoreError> {
    match get(context.tx, key)?.filter(|row| row.paused.is_none()) {
        Some(row) => super::notices::handle_pause(context, &row.client, &row.origin),
        None => Ok(()),
    }
}

/// Counts best effort: changes that could have been told, and how many of them never were tried.
pub fn count_updates(
    context: &mut WriteContext<'_>,
    key: TargetKey,
    updates: u64,
    dropped: u64,
) -> Result<(), StoreError> {
    let sql = "UPDATE targets SET updates = updates + ?2, dropped = dropped + ?3 WHERE id = ?1";
    let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    context.tx.prepare_cached(sql)?.execute((key, signed(updates), signed(dropped)))?;
    Ok(())
}

pub(super) fn millis(wait: Duration) -> i64 {
    i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)
}

const SELECT: &str =
    "SELECT t.id, c.name, t.origin, t.loopback, t.approved_at_ms, t.paused_at_ms, t.pause_reason,
        t.failures, t.failing_since_ms, t.probe_at_ms, t.last_code, t.last_failed_at_ms, t.delivered_at_ms,
        t.updates, t.dropped,
        (SELECT count(*) FROM deliveries d WHERE d.target_id = t.id AND d.due_at_ms IS NOT NULL)
    FROM targets t JOIN clients c ON c.id = t.client_id";

pub fn get(connection: &Connection, key: TargetKey) -> Result<Option<TargetRow>, StoreError> {
    let sql = format!("{SELECT} WHERE t.id = ?1");
    Ok(connection.prepare_cached(&sql)?.query_row([key], read).optional()?)
}

/// Those of clients that may still call, by client and origin.
pub fn list(connection: &Connection) -> Result<Vec<TargetRow>, StoreError> {
    let sql = format!("{SELECT} WHERE c.revoked_at_ms IS NULL ORDER BY c.name, t.origin");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<TargetRow> {
    let paused_at_ms: Option<i64> = row.get(5)?;
    let reason = decoded_option(row, 6, PauseReason::from_word)?;
    let count = |column: usize| -> rusqlite::Result<u64> {
        Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
    };
    Ok(TargetRow {
        key: row.get(0)?,
        client: decoded(row, 1, |text| ClientName::new(text).ok())?,
        origin: row.get(2)?,
        loopback: row.get(3)?,
        approved_at_ms: row.get(4)?,
        paused: paused_at_ms.zip(reason),
        failures: row.get(7)?,
        failing_since_ms: row.get(8)?,
        probe_at_ms: row.get(9)?,
        last_code: row.get(10)?,
        last_failed_at_ms: row.get(11)?,
        delivered_at_ms: row.get(12)?,
        updates: count(13)?,
        dropped: count(14)?,
        waiting: count(15)?,
    })
}
