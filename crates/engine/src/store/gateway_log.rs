//! What was told of a task, as rows: for listeners that come back. And how a listener joins.
//!
//! Only tasks of gateway clients, and those that one listened to, have a log. It begins with a row that holds
//! no event: the place before the first. Events that came to the writer together are one row, a line each: at
//! ten thousand events a second most of the writer's work was to find each row its place in the index. The log
//! is bounded in events and octets, and goes with its task.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};
use taskbell_core::dialect::{Dialect, read};
use taskbell_core::json;
use taskbell_core::relay::{self, After, EventId};
use taskbell_core::task::{StreamEvent, Task};

use super::error::StoreError;
use super::hub::{Feed, Hub, Hubs, HubsAtHand, LogEnd, Told, translated};
use super::keys::TaskKey;
use super::task_records;
use super::tasks::{self, Verdict};
use super::writer::WriteContext;

/// Events kept of one task.
const EVENTS_MAX: u64 = 10_000;
/// Octets kept of one task.
const OCTETS_MAX: u64 = 8 << 20;
/// How often a task's log is cut to size, in events.
const TRIM_EVERY: u64 = 256;
/// Events in one row, so that a log is cut in small pieces and a listener that lacks one event reads few.
const ROW_MAX: usize = 32;
/// Between the lines of a row: JSON without line breaks has none of its own.
const BREAK: &str = "\n";
/// Events kept of all tasks together.
const ALL_MAX: i64 = 400_000;

/// From now on the writer tells these hubs.
pub fn install(context: &mut WriteContext<'_>, hubs: Hubs) -> Result<(), StoreError> {
    context.state.of::<HubsAtHand>().0 = Some(hubs);
    Ok(())
}

fn hubs(context: &mut WriteContext<'_>) -> Option<Hubs> {
    context.state.of::<HubsAtHand>().0.clone()
}

/// The task's hub, where it has one.
pub(super) fn hub(context: &mut WriteContext<'_>, key: TaskKey) -> Option<Arc<Hub>> {
    context.state.of::<HubsAtHand>().0.as_ref()?.get(key)
}

/// Begins a log, or goes on with it.
pub fn begin(context: &mut WriteContext<'_>, key: TaskKey) -> Result<Option<Arc<Hub>>, StoreError> {
    let Some(hubs) = hubs(context) else { return Ok(None) };
    if let Some(hub) = hubs.get(key) {
        return Ok(Some(hub));
    }
    let row = tasks::get(context.tx, key)?;
    let end = match log_end(context.tx, key)? {
        Some(end) => end,
        None => {
            let id = EventId { start_ms: hubs.start_ms(), n: 0 };
            insert(context, key, &Row::beginning(id))?;
            LogEnd { id, octets: 0 }
        }
    };
    Ok(Some(hubs.open(key, &row.task_id, row.context_id.as_ref(), end)))
}

/// A task that is looked at for the first time in this run: if it has a log, that goes on, so that nothing
/// is missing in it.
pub(super) fn resume(context: &mut WriteContext<'_>, key: TaskKey) -> Result<(), StoreError> {
    if hubs(context).is_none() || hub(context, key).is_some() {
        return Ok(());
    }
    let sql = "SELECT client_id IS NOT NULL OR EXISTS (SELECT 1 FROM gateway_events WHERE task_ref = ?1)
               FROM tasks WHERE id = ?1";
    let has_log = context.tx.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()?;
    if has_log == Some(true) {
        begin(context, key)?;
    }
    Ok(())
}

/// The agent does not know the task any more.
pub(super) fn lose(context: &mut WriteContext<'_>, key: TaskKey) {
    if let Some(hubs) = hubs(context) {
        hubs.lose(key);
    }
}

/// The task is deleted.
pub(super) fn forget(context: &mut WriteContext<'_>, key: TaskKey) {
    if let Some(hubs) = hubs(context) {
        hubs.forget(key);
    }
}

fn log_end(connection: &Connection, key: TaskKey) -> Result<Option<LogEnd>, StoreError> {
    let sql = "SELECT start_ms, n, octets FROM gateway_events WHERE task_ref = ?1 ORDER BY n DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let end = statement.query_row([key], |row| {
        let id = EventId { start_ms: row.get(0)?, n: row.get::<_, i64>(1)?.unsigned_abs() };
        Ok(LogEnd { id, octets: row.get::<_, i64>(2)?.unsigned_abs() })
    });
    Ok(end.optional()?)
}

/// Tells those who listen, and keeps it.
pub(super) fn tell(
    context: &mut WriteContext<'_>,
    hub: &Hub,
    key: TaskKey,
    events: &mut [StreamEvent],
) -> Result<(), StoreError> {
    let told = hub.tell_stored(events);
    keep(context, hub, key, &told)
}

/// Keeps what was told already.
pub(super) fn keep(
    context: &mut WriteContext<'_>,
    hub: &Hub,
    key: TaskKey,
    told: &[Arc<Told>],
) -> Result<(), StoreError> {
    hub.settle(told);
    for row in told.chunk_by(|one, next| spoken(one) == spoken(next)).flat_map(|alike| alike.chunks(ROW_MAX))
    {
        let Some(row) = Row::of(row) else { continue };
        insert(context, key, &row)?;
        if row.last.n / TRIM_EVERY > (row.last.n - row.count) / TRIM_EVERY {
            trim(context, key, &row)?;
        }
    }
    if told.last().is_some_and(|told| told.after() == After::TaskOver)
        && let Some(hubs) = hubs(context)
    {
        hubs.close_if_over(hub);
    }
    Ok(())
}

/// In which dialects an event was written.
fn spoken(told: &Told) -> [bool; 2] {
    [Dialect::V1, Dialect::V03].map(|dialect| told.stored_line(dialect).is_some())
}

/// Events that were told together, in the same dialects.
struct Row {
    last: EventId,
    /// 0: the place where a log begins.
    count: u64,
    /// Of this row and all rows of the task before it.
    octets: u64,
    v1: Option<String>,
    v03: Option<String>,
}

impl Row {
    fn beginning(id: EventId) -> Self {
        Self { last: id, count: 0, octets: 0, v1: None, v03: None }
    }

    fn of(told: &[Arc<Told>]) -> Option<Self> {
        let last = told.last()?;
        let lines = |dialect| {
            let lines: Option<Vec<&str>> = told.iter().map(|told| told.stored_line(dialect)).collect();
            lines.map(|lines| lines.join(BREAK))
        };
        Some(Self {
            last: last.id,
            count: told.len() as u64,
            octets: last.octets,
            v1: lines(Dialect::V1),
            v03: lines(Dialect::V03),
        })
    }
}

fn insert(context: &WriteContext<'_>, key: TaskKey, row: &Row) -> Result<(), StoreError> {
    let sql = "INSERT INTO gateway_events (task_ref, n, count, start_ms, octets, v1, v03)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let (n, count, octets) = (signed(row.last.n), signed(row.count), signed(row.octets));
    let values = (key, n, count, row.last.start_ms, octets, &row.v1, &row.v03);
    context.tx.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

fn trim(context: &WriteContext<'_>, key: TaskKey, row: &Row) -> Result<(), StoreError> {
    let sql = "DELETE FROM gateway_events WHERE task_ref = ?1 AND (n <= ?2 OR octets <= ?3)";
    let before =
        (signed(row.last.n.saturating_sub(EVENTS_MAX)), signed(row.octets.saturating_sub(OCTETS_MAX)));
    context.tx.prepare_cached(sql)?.execute((key, before.0, before.1))?;
    Ok(())
}

/// Cuts the whole log to size, the oldest first, `limit` rows at most; how many went.
pub fn prune(context: &mut WriteContext<'_>, limit: u32) -> Result<usize, StoreError> {
    let sql = "DELETE FROM gateway_events WHERE id IN (
                   SELECT id FROM (SELECT id, sum(count) OVER (ORDER BY id DESC) AS since FROM gateway_events)
                   WHERE since > ?1 ORDER BY id LIMIT ?2)";
    Ok(context.tx.prepare_cached(sql)?.execute((ALL_MAX, limit))?)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// An event as it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    pub id: EventId,
    v1: Option<String>,
    v03: Option<String>,
}

impl Logged {
    /// `result` in that dialect, as it was sent where it was sent in it.
    pub fn line(&self, dialect: Dialect) -> String {
        let (wanted, other) = match dialect {
            Dialect::V1 => (&self.v1, &self.v03),
            Dialect::V03 => (&self.v03, &self.v1),
        };
        match (wanted, other) {
            (Some(line), _) => line.clone(),
            (None, Some(other)) => translated(other, dialect),
            (None, None) => String::new(),
        }
    }
}

/// What was told after `id`, in order. `None`: the id, or something after it, is not known any more.
pub fn missed(connection: &Connection, key: TaskKey, id: EventId) -> Result<Option<Vec<Logged>>, StoreError> {
    let sql =
        "SELECT n, count, start_ms, v1, v03 FROM gateway_events WHERE task_ref = ?1 AND n >= ?2 ORDER BY n";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((key, signed(id.n)))?;
    let mut found = Vec::new();
    let mut known_to = None;
    while let Some(row) = rows.next()? {
        let last = row.get::<_, i64>(0)?.unsigned_abs();
        let count = row.get::<_, i64>(1)?.unsigned_abs();
        let start_ms = row.get(2)?;
        let before = last.saturating_sub(count);
        let goes_on = match known_to {
            // The row that has the id itself: the place where the log begins, or an event of that run.
            None => start_ms == id.start_ms && (before < id.n || (count == 0 && last == id.n)),
            Some(known_to) => before == known_to,
        };
        // A hole: something was told that could not be kept.
        if !goes_on {
            return Ok(None);
        }
        let (v1, v03): (Option<String>, Option<String>) = (row.get(3)?, row.get(4)?);
        let (mut v1, mut v03) = (lines(v1.as_deref()), lines(v03.as_deref()));
        for n in before + 1..=last {
            let (v1, v03) = (v1.next().map(str::to_owned), v03.next().map(str::to_owned));
            if n > id.n {
                found.push(Logged { id: EventId { n, start_ms }, v1, v03 });
            }
        }
        known_to = Some(last);
    }
    Ok(known_to.map(|_| found))
}

/// The lines of a row in one dialect; none where it was not written in that.
fn lines(row: Option<&str>) -> impl Iterator<Item = &str> {
    row.into_iter().flat_map(|row| row.split(BREAK))
}

/// Whether the last that was told of a task is its end. It is not where telling it could not be kept.
fn tells_end(context: &WriteContext<'_>, key: TaskKey) -> bool {
    let sql = "SELECT coalesce(v1, v03) FROM gateway_events WHERE task_ref = ?1 ORDER BY n DESC LIMIT 1";
    let line = context
        .tx
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_row([key], |row| row.get::<_, Option<String>>(0)));
    let event = line.ok().flatten().and_then(|row| json::parse_str(row.rsplit(BREAK).next()?).ok());
    let event = event.and_then(|value| read::stream_event(value).ok());
    event.is_some_and(|event| relay::after(&event) == After::TaskOver)
}

/// A listener that joined.
pub struct Joined {
    /// The task as it stands on the writer.
    pub task: Task,
    pub verdict: Option<Verdict>,
    /// The place of that task among what was told.
    pub id: EventId,
    /// What was told after the id that the listener named; `None`: it named none, or it is not known.
    pub missed: Option<Vec<Logged>>,
    /// What is told from now on; `None`: the task has ended.
    pub feed: Option<Feed>,
}

/// Joins at the place `last`, or at the task as it stands.
pub fn join(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    dialect: Dialect,
    last: Option<EventId>,
) -> Result<Joined, StoreError> {
    let verdict = tasks::get(context.tx, key)?.verdict;
    let task = task_records::present(context, key)?;
    let is_over = task.status.state.is_terminal() || verdict.is_some();
    let end = log_end(context.tx, key)?;
    if is_over {
        let id = end.map_or(EventId { start_ms: context.now_ms, n: 0 }, |end| end.id);
        let missed = match last {
            Some(last) => {
                missed(context.tx, key, last)?.filter(|_| verdict.is_some() || tells_end(context, key))
            }
            None => None,
        };
        return Ok(Joined { task, verdict, id, missed, feed: None });
    }
    let Some(hub) = begin(context, key)? else { return Err(StoreError::Stopped) };
    let missed = match last {
        // Something told that was not kept leaves a hole at the end, which rows alone do not show.
        Some(last) => {
            missed(context.tx, key, last)?.filter(|missed| last.n + missed.len() as u64 == hub.applied_to())
        }
        None => None,
    };
    let (id, feed) = hub.listen(dialect);
    Ok(Joined { task, verdict, id, missed, feed: Some(feed) })
}
