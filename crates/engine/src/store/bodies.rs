//! How long what came to the inbox is kept: bodies for 7 days and 200 MB together, the rest of a row for 30 days.
//!
//! The sum is held as callbacks arrive: no agent fills the disk between two rounds of upkeep.

use rusqlite::OptionalExtension;

use super::error::StoreError;
use super::state::Remembered;
use super::writer::WriteContext;

/// Octets of all bodies together.
pub const BODIES_MAX: u64 = 200_000_000;
pub const BODY_DAYS: i64 = 7;
pub const ROW_DAYS: i64 = 30;
const DAY_MS: i64 = 86_400_000;

/// What the bodies take, so that not every callback has to count them.
#[derive(Default)]
struct Held {
    octets: Option<u64>,
    /// No row before this one has a body.
    first: i64,
}

impl Remembered for Held {
    fn rolled_back(&mut self) {
        *self = Self::default();
    }
}

/// A body of this size was stored: the oldest ones make room where the sum is over `most`.
pub(super) fn make_room(context: &mut WriteContext<'_>, size: u64, most: u64) -> Result<(), StoreError> {
    let held = context.state.of::<Held>();
    let (known, mut first) = (held.octets, held.first);
    let mut octets = match known {
        Some(octets) => octets.saturating_add(size),
        None => count(context)?,
    };
    while octets > most {
        let sql = "SELECT id, size FROM callbacks WHERE id >= ?1 AND body IS NOT NULL ORDER BY id LIMIT 1";
        let oldest: Option<(i64, i64)> = context
            .tx
            .prepare_cached(sql)?
            .query_row([first], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((id, size)) = oldest else {
            octets = 0;
            break;
        };
        drop_body(context, id)?;
        octets = octets.saturating_sub(size.unsigned_abs());
        first = id.saturating_add(1);
    }
    *context.state.of::<Held>() = Held { octets: Some(octets), first };
    Ok(())
}

fn count(context: &WriteContext<'_>) -> Result<u64, StoreError> {
    let sql = "SELECT coalesce(sum(size), 0) FROM callbacks WHERE body IS NOT NULL";
    let octets: i64 = context.tx.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok(octets.unsigned_abs())
}

fn drop_body(context: &WriteContext<'_>, id: i64) -> Result<(), StoreError> {
    context.tx.prepare_cached("UPDATE callbacks SET body = NULL WHERE id = ?1")?.execute([id])?;
    Ok(())
}

/// Drops what is older than it should be kept, `limit` rows of each kind at most; how many went.
pub fn prune(context: &mut WriteContext<'_>, limit: u32) -> Result<usize, StoreError> {
    let before = |days: i64| context.now_ms.saturating_sub(days.saturating_mul(DAY_MS));
    let (bodies, rows) = (before(BODY_DAYS), before(ROW_DAYS));
    // A task that the user looks at keeps its confirmed content by itself; documents go with the bodies.
    let steps = [
        (
            "DELETE FROM callbacks WHERE id IN
                 (SELECT id FROM callbacks WHERE at_ms < ?1 AND last_at_ms < ?1 LIMIT ?2)",
            rows,
        ),
        (
            "UPDATE callbacks SET body = NULL WHERE id IN
                 (SELECT id FROM callbacks WHERE at_ms < ?1 AND body IS NOT NULL LIMIT ?2)",
            bodies,
        ),
        (
            "DELETE FROM confirmations WHERE id IN (SELECT id FROM confirmations WHERE at_ms < ?1 LIMIT ?2)",
            bodies,
        ),
        (
            "DELETE FROM quarantine WHERE id IN (SELECT id FROM quarantine WHERE last_at_ms < ?1 LIMIT ?2)",
            rows,
        ),
        (
            "DELETE FROM refusals WHERE (registration_ref, reason) IN
                 (SELECT registration_ref, reason FROM refusals WHERE last_at_ms < ?1 LIMIT ?2)",
            rows,
        ),
    ];
    let mut gone = 0;
    for (sql, before_ms) in steps {
        gone += context.tx.prepare_cached(sql)?.execute((before_ms, limit))?;
    }
    if gone > 0 {
        // What the bodies take is counted anew.
        context.state.of::<Held>().rolled_back();
    }
    Ok(gone)
}
