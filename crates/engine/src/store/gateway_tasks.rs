//! Tasks as clients of the gateway see them: their own, or all where the user shares them.

use rusqlite::{Connection, OptionalExtension};
use taskbell_core::ids::{ContextId, TaskId};
use taskbell_core::state::TaskState;

use super::error::StoreError;
use super::keys::{AgentKey, ClientKey, TaskKey};
use super::settings;
use super::tasks::{self, TaskRow};

/// The setting that lets every client see every task.
pub const SHARE_TASKS: &str = "gateway.share_tasks";

/// Whether clients see each other's tasks, and the user's.
pub fn are_shared(connection: &Connection) -> Result<bool, StoreError> {
    Ok(settings::get(connection, SHARE_TASKS)?.as_deref() == Some("yes"))
}

/// The task, where this client may see it.
pub fn find(
    connection: &Connection,
    client: ClientKey,
    agent: AgentKey,
    task_id: &TaskId,
) -> Result<Option<TaskRow>, StoreError> {
    let Some(key) = tasks::find_by_id(connection, agent, task_id)? else { return Ok(None) };
    let is_own = super::clients::owner(connection, key)? == Some(client);
    if is_own || are_shared(connection)? { tasks::get(connection, key).map(Some) } else { Ok(None) }
}

/// Whether a context of this agent is known here and holds tasks of others only.
pub fn is_foreign_context(
    connection: &Connection,
    client: ClientKey,
    agent: AgentKey,
    context_id: &ContextId,
) -> Result<bool, StoreError> {
    if are_shared(connection)? {
        return Ok(false);
    }
    let sql = "SELECT max(client_id IS ?3) FROM tasks WHERE agent_id = ?1 AND context_id = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let own: Option<bool> =
        statement.query_row((agent, context_id.as_str(), client), |row| row.get(0)).optional()?.flatten();
    Ok(own == Some(false))
}

/// Which tasks to list.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub context_id: Option<ContextId>,
    pub state: Option<TaskState>,
    pub after_ms: Option<i64>,
    pub before: Option<Place>,
    pub limit: u32,
}

/// A place in the list: the time of a status and its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub status_at_ms: i64,
    pub key: TaskKey,
}

/// A page of what a client may see, the latest status first.
#[derive(Debug)]
pub struct Listed {
    /// One more than was asked for where there are more.
    pub places: Vec<Place>,
    pub total: u64,
}

/// The time of a status is its agent's, and ours where the agent gave none.
const STATUS_AT: &str = "coalesce(CAST(unixepoch(json_extract(t.status_json, '$.timestamp'), 'subsec') * 1000 AS INTEGER), \
     t.updated_at_ms)";

pub fn list(
    connection: &Connection,
    client: ClientKey,
    agent: AgentKey,
    wanted: &Wanted,
) -> Result<Listed, StoreError> {
    let client = if are_shared(connection)? { None } else { Some(client) };
    let from = format!(
        "FROM (SELECT t.id AS id, {STATUS_AT} AS at FROM tasks t WHERE t.agent_id = ?1 AND t.verdict IS NULL
               AND (?2 IS NULL OR t.client_id = ?2) AND (?3 IS NULL OR t.context_id = ?3)
               AND (?4 IS NULL OR t.state = ?4)) WHERE (?5 IS NULL OR at >= ?5)"
    );
    let context_id = wanted.context_id.as_ref().map(ContextId::as_str);
    let state = wanted.state.map(TaskState::word);
    let filters = (agent, client, context_id, state, wanted.after_ms);
    let total: i64 = connection
        .prepare_cached(&format!("SELECT count(*) {from}"))?
        .query_row(filters, |row| row.get(0))?;
    let sql = format!(
        "SELECT id, at {from} AND (?6 IS NULL OR (at, id) < (?6, ?7)) ORDER BY at DESC, id DESC LIMIT ?8"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let (at, key) = wanted.before.map_or((None, None), |place| (Some(place.status_at_ms), Some(place.key)));
    let values = rusqlite::params![
        agent,
        client,
        context_id,
        state,
        wanted.after_ms,
        at,
        key,
        wanted.limit.saturating_add(1)
    ];
    let rows =
        statement.query_map(values, |row| Ok(Place { key: row.get(0)?, status_at_ms: row.get(1)? }))?;
    Ok(Listed { places: rows.collect::<Result<_, _>>()?, total: total.unsigned_abs() })
}
