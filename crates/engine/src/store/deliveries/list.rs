//! Deliveries and their attempts as they are shown.

use rusqlite::{Connection, OptionalExtension, Row};
use taskbell_core::delivery::{DeliveryState, Lane};
use taskbell_core::ids::{AgentName, ClientName, TaskId, TaskRef};
use taskbell_core::state::TaskState;

use super::super::agents::decoded;
use super::super::error::StoreError;
use super::super::keys::DeliveryKey;

/// A delivery as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    pub key: DeliveryKey,
    /// The same for every attempt, and what the receiver sees.
    pub webhook_id: String,
    pub task: TaskRef,
    pub client: ClientName,
    /// Its registration, while there is one.
    pub config_id: Option<String>,
    pub target: String,
    pub lane: Lane,
    pub state: DeliveryState,
    /// What it tells.
    pub task_state: TaskState,
    pub tries: u32,
    pub due_at_ms: Option<i64>,
    /// What on this machine keeps it; `target_paused` where its receiver is.
    pub waits_for: Option<String>,
    pub last_code: Option<String>,
    pub created_at_ms: i64,
    pub done_at_ms: Option<i64>,
}

/// An attempt as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRow {
    pub started_at_ms: i64,
    /// `None`: it runs.
    pub ended_at_ms: Option<i64>,
    /// Whether it used up a try.
    pub counted: bool,
    pub status: Option<u16>,
    pub code: Option<String>,
    /// The judged address that was connected to.
    pub address: Option<String>,
}

/// Which deliveries are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    pub task: Option<TaskRef>,
    pub state: Option<DeliveryState>,
    pub lane: Option<Lane>,
    /// Older than this one.
    pub before: Option<i64>,
}

const SELECT: &str =
    "SELECT d.id, d.webhook_id, a.name, k.task_id, cl.name, c.config_id, t.origin, d.lane, d.state,
        r.state, d.tries, d.due_at_ms,
        CASE WHEN d.due_at_ms IS NOT NULL AND t.paused_at_ms IS NOT NULL THEN 'target_paused' ELSE d.waits_for END,
        d.last_code, d.created_at_ms, d.done_at_ms
    FROM deliveries d JOIN delivery_requests r ON r.id = d.request_ref JOIN tasks k ON k.id = r.task_ref
        JOIN agents a ON a.id = k.agent_id JOIN targets t ON t.id = d.target_id
        JOIN clients cl ON cl.id = t.client_id LEFT JOIN client_push_configs c ON c.id = d.config_ref";

/// The newest first.
pub fn list(
    connection: &Connection,
    filter: &DeliveryFilter,
    limit: u32,
) -> Result<Vec<DeliveryRow>, StoreError> {
    let sql = format!(
        "{SELECT} WHERE d.id < ?1 AND (?2 IS NULL OR d.state = ?2) AND (?3 IS NULL OR d.lane = ?3)
             AND (?4 IS NULL OR (a.name = ?4 AND k.task_id = ?5)) ORDER BY d.id DESC LIMIT ?6"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(
        (
            filter.before.unwrap_or(i64::MAX),
            filter.state.map(DeliveryState::word),
            filter.lane.map(Lane::word),
            filter.task.as_ref().map(|task| task.agent.as_str()),
            filter.task.as_ref().map(|task| task.task.as_str()),
            limit,
        ),
        read,
    )?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub fn get(connection: &Connection, key: DeliveryKey) -> Result<Option<DeliveryRow>, StoreError> {
    let sql = format!("{SELECT} WHERE d.id = ?1");
    Ok(connection.prepare_cached(&sql)?.query_row([key], read).optional()?)
}

/// The oldest first.
pub fn attempts(connection: &Connection, key: DeliveryKey) -> Result<Vec<AttemptRow>, StoreError> {
    let sql = "SELECT started_at_ms, ended_at_ms, counted, status, code, address FROM delivery_attempts
               WHERE delivery_ref = ?1 ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([key], |row| {
        Ok(AttemptRow {
            started_at_ms: row.get(0)?,
            ended_at_ms: row.get(1)?,
            counted: row.get(2)?,
            status: row.get(3)?,
            code: row.get(4)?,
            address: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<DeliveryRow> {
    let agent = decoded(row, 2, |text| AgentName::new(text).ok())?;
    Ok(DeliveryRow {
        key: row.get(0)?,
        webhook_id: row.get(1)?,
        task: TaskRef { agent, task: TaskId::new(row.get::<_, String>(3)?) },
        client: decoded(row, 4, |text| ClientName::new(text).ok())?,
        config_id: row.get(5)?,
        target: row.get(6)?,
        lane: decoded(row, 7, Lane::from_word)?,
        state: decoded(row, 8, DeliveryState::from_word)?,
        task_state: decoded(row, 9, |word| Some(TaskState::from_word(word)))?,
        tries: row.get(10)?,
        due_at_ms: row.get(11)?,
        waits_for: row.get(12)?,
        last_code: row.get(13)?,
        created_at_ms: row.get(14)?,
        done_at_ms: row.get(15)?,
    })
}
