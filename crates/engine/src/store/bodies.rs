//! How long what came to the inbox is kept: bodies for 7 days and 200 MB together, the rest of a row for 30 days.
//!
//! The sums are held as callbacks arrive: no agent fills the disk between two rounds of upkeep.

use rusqlite::OptionalExtension;

use super::error::StoreError;
use super::state::Remembered;
use super::writer::WriteContext;

/// Octets of all bodies together, and the same of all documents they were held against.
pub const OCTETS_MAX: u64 = 200_000_000;
/// Callbacks whose rows are kept; a row takes some 500 octets.
const ROWS_MAX: i64 = 1_000_000;
pub const BODY_DAYS: i64 = 7;
pub const ROW_DAYS: i64 = 30;
const DAY_MS: i64 = 86_400_000;

/// Something that is kept up to [`OCTETS_MAX`], the oldest making room.
struct Hoard {
    sum: &'static str,
    oldest: &'static str,
    drop: &'static str,
}

const BODIES: usize = 0;
const DOCUMENTS: usize = 1;
const HOARDS: [Hoard; 2] = [
    Hoard {
        sum: "SELECT coalesce(sum(size), 0) FROM callbacks WHERE body IS NOT NULL",
        oldest: "SELECT id, size FROM callbacks WHERE id >= ?1 AND body IS NOT NULL ORDER BY id LIMIT 1",
        drop: "UPDATE callbacks SET body = NULL WHERE id = ?1",
    },
    Hoard {
        sum: "SELECT coalesce(sum(size), 0) FROM confirmations",
        oldest: "SELECT id, size FROM confirmations WHERE id >= ?1 ORDER BY id LIMIT 1",
        drop: "DELETE FROM confirmations WHERE id = ?1",
    },
];

/// What a hoard takes, so that it is not counted anew with every row.
#[derive(Default)]
struct Held<const HOARD: usize> {
    octets: Option<u64>,
    /// No row before this one takes any.
    first: i64,
}

impl<const HOARD: usize> Remembered for Held<HOARD> {
    fn rolled_back(&mut self) {
        *self = Self::default();
    }
}

/// A callback with a body of this size was stored.
pub(super) fn add_body(context: &mut WriteContext<'_>, id: i64, size: u64) -> Result<(), StoreError> {
    if let Some(last) = id.checked_sub(ROWS_MAX).filter(|last| *last > 0) {
        context.tx.prepare_cached("DELETE FROM callbacks WHERE id <= ?1")?.execute([last])?;
    }
    make_room::<BODIES>(context, size)
}

/// A document of this size was stored.
pub(super) fn add_document(context: &mut WriteContext<'_>, size: u64) -> Result<(), StoreError> {
    make_room::<DOCUMENTS>(context, size)
}

fn make_room<const HOARD: usize>(context: &mut WriteContext<'_>, size: u64) -> Result<(), StoreError> {
    let hoard = &HOARDS[HOARD];
    let held = context.state.of::<Held<HOARD>>();
    let (known, mut first) = (held.octets, held.first);
    let mut octets = match known {
        Some(octets) => octets.saturating_add(size),
        None => {
            let sum: i64 = context.tx.prepare_cached(hoard.sum)?.query_row([], |row| row.get(0))?;
            sum.unsigned_abs()
        }
    };
    while octets > OCTETS_MAX {
        let oldest: Option<(i64, i64)> = context
            .tx
            .prepare_cached(hoard.oldest)?
            .query_row([first], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((id, size)) = oldest else {
            octets = 0;
            break;
        };
        context.tx.prepare_cached(hoard.drop)?.execute([id])?;
        octets = octets.saturating_sub(size.unsigned_abs());
        first = id.saturating_add(1);
    }
    *context.state.of::<Held<HOARD>>() = Held { octets: Some(octets), first };
    Ok(())
}

/// Drops what is older than it should be kept, `limit` rows of each kind at most; how many went.
pub fn prune(context: &mut WriteContext<'_>, body_days: i64, limit: u32) -> Result<usize, StoreError> {
    let before = |days: i64| context.now_ms.saturating_sub(days.saturating_mul(DAY_MS));
    let (bodies, rows) = (before(body_days), before(ROW_DAYS));
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
        // What is left is counted anew.
        context.state.of::<Held<BODIES>>().rolled_back();
        context.state.of::<Held<DOCUMENTS>>().rolled_back();
    }
    Ok(gone)
}
