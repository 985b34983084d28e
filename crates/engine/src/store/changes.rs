//! The change feed: one numbered row for each thing that changed, written in the transaction of the change.
//! Numbers are never used twice, also after pruning.

use rusqlite::Connection;
use taskbell_core::ids::{AgentName, TaskId};

use super::agents::decoded_option;
use super::error::StoreError;
use super::keys::{AgentKey, TaskKey};
use super::writer::WriteContext;

/// A change to record.
#[derive(Debug, Clone)]
pub struct NewChange<'a> {
    pub agent: Option<AgentKey>,
    pub task: Option<TaskKey>,
    /// Who told: stream, push, poll, manual, gateway.
    pub source: &'a str,
    /// What changed: task, status, artifact, message, gap, following, notice, …
    pub kind: &'a str,
    /// One JSON value.
    pub body_json: &'a str,
}

/// A change as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRow {
    pub seq: u64,
    pub at_ms: i64,
    pub agent: Option<AgentKey>,
    pub task: Option<TaskKey>,
    pub source: String,
    pub kind: String,
    pub body_json: String,
}

/// Records a change; the doorbell rings once the batch is committed.
pub fn record_change(context: &mut WriteContext<'_>, change: &NewChange<'_>) -> Result<u64, StoreError> {
    let sql = "INSERT INTO changes (at_ms, agent_id, task_ref, source, kind, body_json)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let values = (context.now_ms, change.agent, change.task, change.source, change.kind, change.body_json);
    let seq = context.tx.prepare_cached(sql)?.insert(values)?.unsigned_abs();
    context.last_seq = context.last_seq.max(seq);
    Ok(seq)
}

const COLUMNS: &str = "seq, at_ms, agent_id, task_ref, source, kind, body_json";

/// The next changes after `seq`, the oldest first, `limit` at most.
pub fn changes_after(connection: &Connection, seq: u64, limit: u32) -> Result<Vec<ChangeRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM changes WHERE seq > ?1 ORDER BY seq LIMIT ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map((to_sql(seq), limit), read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The changes of one task after `seq`, the oldest first, `limit` at most.
pub fn changes_of_task(
    connection: &Connection,
    task: TaskKey,
    seq: u64,
    limit: u32,
) -> Result<Vec<ChangeRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM changes WHERE task_ref = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map((task, to_sql(seq), limit), read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The latest changes of one task, `limit` at most, the oldest first.
pub fn last_changes_of_task(
    connection: &Connection,
    task: TaskKey,
    limit: u32,
) -> Result<Vec<ChangeRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM changes WHERE task_ref = ?1 ORDER BY seq DESC LIMIT ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map((task, limit), read)?;
    let mut rows: Vec<ChangeRow> = rows.collect::<Result<_, _>>()?;
    rows.reverse();
    Ok(rows)
}

/// Whether a task was told of by another way than its stream since a time.
pub fn told_elsewhere_since(
    connection: &Connection,
    task: TaskKey,
    since_ms: i64,
) -> Result<bool, StoreError> {
    // The newest are enough, and a long task has many.
    let sql = "SELECT EXISTS (SELECT 1 FROM (SELECT at_ms, kind, source FROM changes WHERE task_ref = ?1
                                             ORDER BY seq DESC LIMIT 100)
               WHERE at_ms > ?2 AND kind IN ('status', 'artifact') AND source <> 'stream')";
    Ok(connection.prepare_cached(sql)?.query_row((task, since_ms), |row| row.get(0))?)
}

/// A change with the names that its keys stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedChange {
    pub change: ChangeRow,
    pub agent: Option<AgentName>,
    pub task: Option<TaskId>,
}

/// The next changes after `seq`, of one task or of all, the oldest first: `limit` at most, and no more after
/// `octets` of bodies, so that a reader holds a bounded page whatever its changes carry.
pub fn named_after(
    connection: &Connection,
    seq: u64,
    task: Option<TaskKey>,
    limit: u32,
    octets: usize,
) -> Result<Vec<NamedChange>, StoreError> {
    let of_task = if task.is_some() { "c.task_ref = ?3 AND" } else { "?3 IS NULL AND" };
    let sql = format!(
        "SELECT c.seq, c.at_ms, c.agent_id, c.task_ref, c.source, c.kind, c.body_json, a.name, t.task_id
         FROM changes c
         LEFT JOIN tasks t ON t.id = c.task_ref
         LEFT JOIN agents a ON a.id = coalesce(c.agent_id, t.agent_id)
         WHERE {of_task} c.seq > ?1 ORDER BY c.seq LIMIT ?2"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query((to_sql(seq), limit, task))?;
    let mut page = Vec::new();
    let mut held = 0;
    while held < octets
        && let Some(row) = rows.next()?
    {
        let change = read(row)?;
        held += change.body_json.len();
        let agent = decoded_option(row, 7, |text| AgentName::new(text).ok())?;
        let task: Option<String> = row.get(8)?;
        page.push(NamedChange { change, agent, task: task.map(TaskId::new) });
    }
    Ok(page)
}

/// The highest number ever given, 0 before the first.
pub fn last_seq(connection: &Connection) -> rusqlite::Result<u64> {
    let sql = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'changes'), 0)";
    connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
}

/// The lowest number still kept; a reader that asks after an earlier one has missed some.
/// `None`: none is kept.
pub fn first_seq(connection: &Connection) -> Result<Option<u64>, StoreError> {
    let first: Option<i64> = connection.query_row("SELECT min(seq) FROM changes", [], |row| row.get(0))?;
    Ok(first.map(i64::unsigned_abs))
}

/// Drops changes older than `before_ms`, `limit` at most, so that no batch holds others up; how many went.
pub fn prune(context: &mut WriteContext<'_>, before_ms: i64, limit: u32) -> Result<usize, StoreError> {
    // Rows are in order of time but for jumps of the clock: the oldest rows are looked at first.
    let sql = "DELETE FROM changes WHERE seq IN
               (SELECT seq FROM (SELECT seq, at_ms FROM changes ORDER BY seq LIMIT ?2) WHERE at_ms < ?1)";
    Ok(context.tx.prepare_cached(sql)?.execute((before_ms, limit))?)
}

fn to_sql(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<ChangeRow> {
    Ok(ChangeRow {
        seq: row.get::<_, i64>(0)?.unsigned_abs(),
        at_ms: row.get(1)?,
        agent: row.get(2)?,
        task: row.get(3)?,
        source: row.get(4)?,
        kind: row.get(5)?,
        body_json: row.get(6)?,
    })
}
