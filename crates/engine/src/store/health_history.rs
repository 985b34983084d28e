//! How the parts of the program were: their last changes of state, bounded for each and for all.

use rusqlite::Connection;
use serde_json::json;

use super::agents::decoded;
use super::changes::{NewChange, record_change};
use super::error::StoreError;
use super::writer::WriteContext;
use crate::api::views::HealthState;

/// Changes kept of one component, and of all.
const KEPT: u32 = 50;
const KEPT_IN_ALL: u32 = 2_000;

/// A component came into a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRow {
    /// 0 before it is stored.
    pub id: i64,
    pub component: String,
    pub state: HealthState,
    pub at_ms: i64,
    pub detail: String,
}

/// Stores changes, the oldest first, and announces `worst` where it is another one than before.
pub fn record(
    context: &mut WriteContext<'_>,
    rows: &[HistoryRow],
    worst: Option<HealthState>,
) -> Result<(), StoreError> {
    for row in rows {
        let sql = "INSERT INTO health_history (component, state, at_ms, detail) VALUES (?1, ?2, ?3, ?4)";
        let values = (&row.component, row.state.word(), row.at_ms, &row.detail);
        context.tx.prepare_cached(sql)?.execute(values)?;
        let sql = "DELETE FROM health_history WHERE component = ?1 AND id <=
                   (SELECT id FROM health_history WHERE component = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)";
        context.tx.prepare_cached(sql)?.execute((&row.component, KEPT))?;
    }
    let sql = "DELETE FROM health_history WHERE id <=
               (SELECT id FROM health_history ORDER BY id DESC LIMIT 1 OFFSET ?1)";
    context.tx.prepare_cached(sql)?.execute([KEPT_IN_ALL])?;
    if let Some(worst) = worst {
        let body_json = json!({ "state": worst.word() }).to_string();
        let change =
            NewChange { agent: None, task: None, source: "manual", kind: "health", body_json: &body_json };
        record_change(context, &change)?;
    }
    Ok(())
}

/// The newest first; of one component, or of all.
pub fn list(
    connection: &Connection,
    component: Option<&str>,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<HistoryRow>, StoreError> {
    let sql = "SELECT id, component, state, at_ms, detail FROM health_history
               WHERE (?1 IS NULL OR component = ?1) AND (?2 IS NULL OR id < ?2) ORDER BY id DESC LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map((component, before, limit), read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The last state of each component.
pub fn latest(connection: &Connection) -> Result<Vec<HistoryRow>, StoreError> {
    let sql = "SELECT id, component, state, at_ms, detail FROM health_history
               WHERE id IN (SELECT max(id) FROM health_history GROUP BY component)";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<HistoryRow> {
    Ok(HistoryRow {
        id: row.get(0)?,
        component: row.get(1)?,
        state: decoded(row, 2, HealthState::from_word)?,
        at_ms: row.get(3)?,
        detail: row.get(4)?,
    })
}
