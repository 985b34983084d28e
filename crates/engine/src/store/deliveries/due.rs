//! Which reserved deliveries could be sent, and what keeps one although it is due.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};

use super::super::error::StoreError;
use super::super::keys::{DeliveryKey, SecretKey, TargetKey, TaskKey};
use super::super::targets::millis;
use super::super::writer::WriteContext;
use super::announce;

/// Of one target that are looked at in one pass.
const DUE_A_TARGET: u32 = 32;
/// From this many failures in a row a target gets one call at a time.
const PROBING_FROM: u32 = 5;

/// A reserved delivery that could be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    pub key: DeliveryKey,
    pub task: TaskKey,
    pub target: TargetKey,
    pub origin: String,
    /// The target failed before: one call at a time.
    pub probing: bool,
    pub token: Option<SecretKey>,
    pub credentials: Option<SecretKey>,
}

/// Reserved deliveries that are due and whose targets may be called, the longest due first. The first try of an
/// older one about the same task comes before a newer one.
pub fn due(connection: &Connection, now_ms: i64, limit: u32) -> Result<Vec<Due>, StoreError> {
    let sql = "SELECT id, task_ref, target_id, origin, probing, token_secret, credential_secret FROM (
                   SELECT d.id, d.due_at_ms, c.task_ref, d.target_id, t.origin, t.failures >= ?4 AS probing,
                       c.token_secret, c.credential_secret,
                       row_number() OVER (PARTITION BY d.target_id ORDER BY d.due_at_ms, d.id) AS place
                   FROM deliveries d JOIN targets t ON t.id = d.target_id
                       JOIN client_push_configs c ON c.id = d.config_ref
                   WHERE d.due_at_ms <= ?1 AND t.paused_at_ms IS NULL
                       AND (t.probe_at_ms IS NULL OR t.probe_at_ms <= ?1)
                       AND NOT EXISTS (SELECT 1 FROM deliveries older WHERE older.config_ref = d.config_ref
                           AND older.id < d.id AND older.tries = 0 AND older.state IN ('queued', 'sending')))
               WHERE place <= ?3 ORDER BY due_at_ms, id LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map((now_ms, limit, DUE_A_TARGET, PROBING_FROM), |row| {
        Ok(Due {
            key: row.get(0)?,
            task: row.get(1)?,
            target: row.get(2)?,
            origin: row.get(3)?,
            probing: row.get(4)?,
            token: row.get(5)?,
            credentials: row.get(6)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// When the next reserved delivery is due that is not due yet, or a target may be called again.
pub fn next_due_ms(connection: &Connection, now_ms: i64) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT min(max(d.due_at_ms, coalesce(t.probe_at_ms, 0)))
               FROM deliveries d JOIN targets t ON t.id = d.target_id
               WHERE d.due_at_ms IS NOT NULL AND t.paused_at_ms IS NULL
                   AND max(d.due_at_ms, coalesce(t.probe_at_ms, 0)) > ?1";
    Ok(connection.prepare_cached(sql)?.query_row([now_ms], |row| row.get(0))?)
}

/// It is due, and something on this machine keeps it: said in the record, no try is used up.
pub fn hold(
    context: &mut WriteContext<'_>,
    keys: &[DeliveryKey],
    waits_for: &str,
    again_after: Duration,
) -> Result<(), StoreError> {
    let due = context.now_ms.saturating_add(millis(again_after));
    let known = "SELECT waits_for IS ?2 FROM deliveries WHERE id = ?1";
    let sql = "UPDATE deliveries SET waits_for = ?2, due_at_ms = ?3 WHERE id = ?1 AND due_at_ms IS NOT NULL";
    for key in keys {
        let known: Option<bool> =
            context.tx.prepare_cached(known)?.query_row((key, waits_for), |row| row.get(0)).optional()?;
        let held = context.tx.prepare_cached(sql)?.execute((key, waits_for, due))? > 0;
        // It waits for long, and is looked at often meanwhile.
        if held && known == Some(false) {
            announce(context, &[*key])?;
        }
    }
    Ok(())
}

/// What waited for the keyring is due at once; how many that were.
pub fn release_from_keyring(context: &mut WriteContext<'_>) -> Result<usize, StoreError> {
    let sql = "UPDATE deliveries SET due_at_ms = ?1, waits_for = NULL
               WHERE substr(waits_for, 1, 8) = 'keyring_' AND due_at_ms > ?1";
    Ok(context.tx.prepare_cached(sql)?.execute([context.now_ms])?)
}

/// Spreads what became due while nobody could send over so long, but for the first few. `draw` gives numbers
/// of 0..1.
pub fn spread_overdue(
    context: &mut WriteContext<'_>,
    few: usize,
    over: Duration,
    mut draw: impl FnMut() -> f64,
) -> Result<usize, StoreError> {
    let sql = "SELECT id FROM deliveries WHERE due_at_ms <= ?1 ORDER BY due_at_ms, id";
    let mut statement = context.tx.prepare_cached(sql)?;
    let keys: Vec<DeliveryKey> =
        statement.query_map([context.now_ms], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for key in keys.iter().skip(few) {
        let wait = Duration::try_from_secs_f64(over.as_secs_f64() * draw()).unwrap_or(over);
        let due = context.now_ms.saturating_add(millis(wait));
        context
            .tx
            .prepare_cached("UPDATE deliveries SET due_at_ms = ?2 WHERE id = ?1")?
            .execute((key, due))?;
    }
    Ok(keys.len())
}
