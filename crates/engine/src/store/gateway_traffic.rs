//! The traffic of the gateway: who asked what, without content. The newest are kept.

use rusqlite::{Connection, Row};
use taskbell_core::dialect::{Binding, Dialect};
use taskbell_core::ids::TaskId;
use taskbell_core::state::TaskState;

use super::agents::{decoded, decoded_option};
use super::error::StoreError;
use super::keys::{AgentKey, ClientKey};
use super::writer::WriteContext;

/// Rows kept.
const KEPT: i64 = 10_000;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficRow {
    pub at_ms: i64,
    pub client: ClientKey,
    pub agent: AgentKey,
    pub dialect: Dialect,
    pub binding: Binding,
    /// By its 1.0 name.
    pub method: &'static str,
    pub task_id: Option<TaskId>,
    pub state: Option<TaskState>,
    pub error_code: Option<i64>,
    pub took_ms: u64,
    pub octets_in: u64,
    pub octets_out: u64,
}

pub fn insert(context: &mut WriteContext<'_>, row: &TrafficRow) -> Result<(), StoreError> {
    let sql =
        "INSERT INTO gateway_traffic (at_ms, client_id, agent_id, dialect, binding, method, task_id, state,
                   error_code, took_ms, octets_in, octets_out)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let id = context.tx.prepare_cached(sql)?.insert(rusqlite::params![
        row.at_ms,
        row.client,
        row.agent,
        row.dialect.version(),
        row.binding.word(),
        row.method,
        row.task_id.as_ref().map(TaskId::as_str),
        row.state.map(TaskState::word),
        row.error_code,
        number(row.took_ms),
        number(row.octets_in),
        number(row.octets_out),
    ])?;
    if id % 64 == 0 {
        context.tx.prepare_cached("DELETE FROM gateway_traffic WHERE id <= ?1")?.execute([id - KEPT])?;
    }
    Ok(())
}

/// A request with the names that its keys stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTraffic {
    pub id: i64,
    pub at_ms: i64,
    pub client: String,
    pub agent: String,
    pub dialect: Dialect,
    pub binding: Binding,
    pub method: String,
    pub task_id: Option<TaskId>,
    /// Whether the task is here still.
    pub task_known: bool,
    pub state: Option<TaskState>,
    pub error_code: Option<i64>,
    pub took_ms: u64,
    pub octets_in: u64,
    pub octets_out: u64,
}

/// The newest before `before`, `limit` at most.
pub fn list(
    connection: &Connection,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<NamedTraffic>, StoreError> {
    let sql = "SELECT t.id, t.at_ms, c.name, a.name, t.dialect, t.binding, t.method, t.task_id, t.state, t.error_code,
                   t.took_ms, t.octets_in, t.octets_out,
                   EXISTS (SELECT 1 FROM tasks k WHERE k.agent_id = t.agent_id AND k.task_id = t.task_id)
               FROM gateway_traffic t JOIN clients c ON c.id = t.client_id JOIN agents a ON a.id = t.agent_id
               WHERE ?1 IS NULL OR t.id < ?1 ORDER BY t.id DESC LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map((before, limit), read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<NamedTraffic> {
    let number = |index: usize| -> rusqlite::Result<u64> { Ok(row.get::<_, i64>(index)?.unsigned_abs()) };
    Ok(NamedTraffic {
        id: row.get(0)?,
        at_ms: row.get(1)?,
        client: row.get(2)?,
        agent: row.get(3)?,
        dialect: decoded(row, 4, Dialect::from_version)?,
        binding: decoded(row, 5, Binding::from_word)?,
        method: row.get(6)?,
        task_id: row.get::<_, Option<String>>(7)?.map(TaskId::new),
        state: decoded_option(row, 8, |word| Some(TaskState::from_word(word)))?,
        error_code: row.get(9)?,
        took_ms: number(10)?,
        octets_in: number(11)?,
        octets_out: number(12)?,
        task_known: row.get(13)?,
    })
}
