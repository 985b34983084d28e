//! What is done to deliveries when the engine starts, and when they are old.

use taskbell_core::delivery::{DeliveryState, Lane};

use super::super::error::StoreError;
use super::super::writer::WriteContext;

/// Best effort is kept for a day, and no more rows than this.
const BEST_EFFORT_MS: i64 = 86_400_000;
const BEST_EFFORT_ROWS: i64 = 10_000;

/// Attempts that were running when the engine stopped had an unknown outcome: reserved deliveries are due again
/// under the same id, best effort is over. How many there were.
pub fn settle_interrupted(context: &mut WriteContext<'_>) -> Result<usize, StoreError> {
    let now = context.now_ms;
    let sql =
        "UPDATE delivery_attempts SET ended_at_ms = ?1, code = 'outcome_unknown' WHERE ended_at_ms IS NULL";
    let found = context.tx.prepare_cached(sql)?.execute([now])?;
    let sql = "UPDATE deliveries SET last_code = 'outcome_unknown',
                   state = CASE WHEN lane <> ?2 THEN ?4 WHEN config_ref IS NULL THEN ?6 ELSE ?3 END,
                   due_at_ms = CASE WHEN lane = ?2 AND config_ref IS NOT NULL THEN ?1 END,
                   done_at_ms = CASE WHEN lane <> ?2 OR config_ref IS NULL THEN ?1 END
               WHERE state = ?5";
    context.tx.prepare_cached(sql)?.execute((
        now,
        Lane::Reserved.word(),
        DeliveryState::OutcomeUnknown.word(),
        DeliveryState::Dropped.word(),
        DeliveryState::Sending.word(),
        DeliveryState::Cancelled.word(),
    ))?;
    Ok(found)
}

/// Drops what was over before `before_ms` and best effort that nobody looks at any more, `limit` at most; how
/// many went.
pub fn prune(context: &mut WriteContext<'_>, before_ms: i64, limit: u32) -> Result<usize, StoreError> {
    let lane = Lane::BestEffort.word();
    let sql = "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE done_at_ms < ?1 LIMIT ?2)";
    let mut gone = context.tx.prepare_cached(sql)?.execute((before_ms, limit))?;
    let day = context.now_ms.saturating_sub(BEST_EFFORT_MS);
    let sql = "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE lane = ?1 AND done_at_ms IS NOT NULL
                   AND (done_at_ms < ?2 OR done_at_ms <= (SELECT done_at_ms FROM deliveries WHERE lane = ?1
                       AND done_at_ms IS NOT NULL ORDER BY done_at_ms DESC LIMIT 1 OFFSET ?4)) LIMIT ?3)";
    gone += context.tx.prepare_cached(sql)?.execute((lane, day, limit, BEST_EFFORT_ROWS))?;
    let sql = "DELETE FROM delivery_requests WHERE id IN (SELECT r.id FROM delivery_requests r
               WHERE NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.request_ref = r.id) LIMIT ?1)";
    gone += context.tx.prepare_cached(sql)?.execute([limit])?;
    Ok(gone)
}
