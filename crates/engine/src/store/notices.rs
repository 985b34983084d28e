//! Notices: written in the transaction of the change that makes them, and what came of each.
//!
//! What makes a notice is decided in `taskbell_core::notice`; how it is shown is the notifier's.
//!
//! ```text
//! pending ──┬─> shown ──> withdrawn      settled, answered elsewhere, or another notice of the task
//!           ├─> suppressed · merged
//!           ├─> failed · no-desktop · not-permitted
//!           └─> withdrawn                before it was shown
//! ```

use rusqlite::{Connection, OptionalExtension, Row};
use taskbell_core::ids::{AgentName, ClientName, TaskId, TaskRef};
use taskbell_core::notice::{self, Gone, NewNotice, NoticeKind, StatusChange, Subject};
use taskbell_core::state::TaskState;
use taskbell_core::task::Message;

use super::agents::{decoded, decoded_option};
use super::changes::{NewChange, record_change};
use super::error::StoreError;
use super::keys::TaskKey;
use super::task_records::Adoption;
use super::tasks::{Channel, TaskSource, Verdict};
use super::writer::WriteContext;

/// What came of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoticeOutcome {
    Shown,
    /// The user saw it already, or knew it.
    Suppressed,
    Failed,
    /// There is no window, and so nobody shows notices.
    NoDesktop,
    NotPermitted,
    /// Not waiting any more.
    Withdrawn,
    /// Told in a notice of several.
    Merged,
}

impl NoticeOutcome {
    pub const ALL: [Self; 7] = [
        Self::Shown,
        Self::Suppressed,
        Self::Failed,
        Self::NoDesktop,
        Self::NotPermitted,
        Self::Withdrawn,
        Self::Merged,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::Suppressed => "suppressed",
            Self::Failed => "failed",
            Self::NoDesktop => "no-desktop",
            Self::NotPermitted => "not-permitted",
            Self::Withdrawn => "withdrawn",
            Self::Merged => "merged",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.word() == word)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeRow {
    pub id: i64,
    pub task_key: Option<TaskKey>,
    pub task: Option<TaskRef>,
    pub kind: NoticeKind,
    pub title: String,
    pub body: String,
    pub created_at_ms: i64,
    /// When it was shown; of what is shown at most once, when that was begun.
    pub shown_at_ms: Option<i64>,
    /// `None`: pending.
    pub outcome: Option<NoticeOutcome>,
    pub detail: Option<String>,
    pub snoozed_until_ms: Option<i64>,
    /// The user muted its task.
    pub muted: bool,
}

/// What a notice of this task says of it, and when the user last acted on it.
struct Known {
    agent: AgentName,
    title: String,
    replied_at_ms: Option<i64>,
    cancel_asked_at_ms: Option<i64>,
}

impl Known {
    fn of(context: &WriteContext<'_>, key: TaskKey) -> Result<Self, StoreError> {
        let sql = "SELECT a.name, t.title, t.replied_at_ms, t.cancel_asked_at_ms
                   FROM tasks t JOIN agents a ON a.id = t.agent_id WHERE t.id = ?1";
        let read = |row: &Row<'_>| {
            Ok(Self {
                agent: decoded(row, 0, |text| AgentName::new(text).ok())?,
                title: row.get(1)?,
                replied_at_ms: row.get(2)?,
                cancel_asked_at_ms: row.get(3)?,
            })
        };
        Ok(context.tx.prepare_cached(sql)?.query_row([key], read)?)
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            agent: &self.agent,
            title: &self.title,
            replied_at_ms: self.replied_at_ms,
            cancel_asked_at_ms: self.cancel_asked_at_ms,
        }
    }
}

/// A status is another; `channel` told it first.
pub(super) fn handle_status(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    (from, to): (TaskState, TaskState),
    message: Option<&Message>,
    channel: Channel,
) -> Result<(), StoreError> {
    // Most changes are progress: they cost nothing here.
    if !to.is_interrupted() && !to.is_terminal() {
        return Ok(());
    }
    let known = Known::of(context, key)?;
    let change = StatusChange { from, to, message, at_ms: context.now_ms };
    let Some(notice) = notice::of_status(known.subject(), change) else { return Ok(()) };
    if from == to && notice.kind == NoticeKind::Waiting && complete(context, key, &notice)? {
        return Ok(());
    }
    insert(context, Some(key), &notice, channel.word(), None).map(|_| ())
}

/// The question of a notice that knew none. True: it was that.
fn complete(context: &mut WriteContext<'_>, key: TaskKey, notice: &NewNotice) -> Result<bool, StoreError> {
    let sql = "SELECT id, key FROM notices WHERE task_ref = ?1 AND kind = 'waiting' ORDER BY id DESC LIMIT 1";
    let last: Option<(i64, String)> =
        context.tx.prepare_cached(sql)?.query_row([key], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((id, _)) = last.filter(|(_, known)| notice::is_unworded(within_task(known))) else {
        return Ok(false);
    };
    let sql = "UPDATE notices SET key = ?2, title = ?3, body = ?4 WHERE id = ?1";
    let values = (id, full_key(Some(key), notice), &notice.title, &notice.body);
    context.tx.prepare_cached(sql)?.execute(values)?;
    Ok(true)
}

/// A task that was not known before. What waits since somebody else started it is no news.
pub(super) fn handle_adoption(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    state: TaskState,
    message: Option<&Message>,
    adoption: Adoption<'_>,
) -> Result<(), StoreError> {
    if !state.is_interrupted() {
        return Ok(());
    }
    let known = Known::of(context, key)?;
    let change = StatusChange { from: TaskState::Submitted, to: state, message, at_ms: context.now_ms };
    let Some(notice) = notice::of_status(known.subject(), change) else { return Ok(()) };
    let outcome = match adoption.source {
        TaskSource::Send | TaskSource::Gateway => None,
        TaskSource::Watch | TaskSource::Import => {
            Some((NoticeOutcome::Suppressed, "it waited before it was followed"))
        }
    };
    insert(context, Some(key), &notice, adoption.channel.word(), outcome).map(|_| ())
}

/// The agent does not show the task any more.
pub(super) fn handle_verdict(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    verdict: Verdict,
) -> Result<(), StoreError> {
    let known = Known::of(context, key)?;
    let gone = match verdict {
        Verdict::Lost => Gone::Lost,
        Verdict::WrongIdentity => Gone::WrongIdentity,
    };
    let notice = notice::of_verdict(known.subject(), gone, context.now_ms);
    insert(context, Some(key), &notice, "poll", None).map(|_| ())
}

/// The agent refuses our credential: told once until it takes one again.
pub(super) fn handle_refusal(context: &mut WriteContext<'_>, key: TaskKey) -> Result<(), StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM notices n JOIN tasks t ON t.id = n.task_ref
                   WHERE n.kind = 'sign-in' AND (n.outcome IS NULL OR n.outcome = 'shown')
                   AND t.agent_id = (SELECT agent_id FROM tasks WHERE id = ?1))
               OR EXISTS (SELECT 1 FROM tasks o WHERE o.id <> ?1 AND o.following = 'on'
                   AND o.agent_id = (SELECT agent_id FROM tasks WHERE id = ?1)
                   AND o.trouble IN ('unauthorized', 'forbidden'))";
    if context.tx.prepare_cached(sql)?.query_row([key], |row| row.get(0))? {
        return Ok(());
    }
    let known = Known::of(context, key)?;
    let notice = notice::of_refusal(&known.agent, context.now_ms);
    insert(context, Some(key), &notice, "poll", None).map(|_| ())
}

/// Writes a notice of each followed task that nobody confirmed since `before_ms`; how many are new.
pub fn note_silence(context: &mut WriteContext<'_>, before_ms: i64) -> Result<usize, StoreError> {
    let sql = "SELECT id, confirmed_at_ms FROM tasks INDEXED BY tasks_followed
               WHERE following <> 'ended' AND following = 'on' AND confirmed_at_ms < ?1
               AND coalesce(trouble, '') NOT IN ('unauthorized', 'forbidden')";
    let mut statement = context.tx.prepare_cached(sql)?;
    let found = statement.query_map([before_ms], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let found: Vec<(TaskKey, i64)> = found.collect::<Result<_, _>>()?;
    drop(statement);
    let mut new = 0;
    for (key, confirmed_at_ms) in found {
        let notice = {
            let known = Known::of(context, key)?;
            notice::of_silence(known.subject(), confirmed_at_ms)
        };
        let sql = "SELECT EXISTS (SELECT 1 FROM notices WHERE key = ?1)";
        let full = full_key(Some(key), &notice);
        if !context.tx.prepare_cached(sql)?.query_row([full], |row| row.get(0))? {
            new += usize::from(insert(context, Some(key), &notice, "poll", None)?.is_some());
        }
    }
    Ok(new)
}

/// A receiver of callbacks is left alone from now on: told once a pause.
pub(super) fn handle_pause(
    context: &mut WriteContext<'_>,
    client: &ClientName,
    target: &str,
) -> Result<(), StoreError> {
    let notice = notice::of_pause(client, target, context.now_ms);
    insert(context, None, &notice, "gateway", None).map(|_| ())
}

/// The test notice; its id. Whoever asked for it shows it and waits: the worker leaves it alone.
pub fn insert_test(context: &mut WriteContext<'_>) -> Result<i64, StoreError> {
    let notice = notice::of_test(context.now_ms);
    // Two within one millisecond are two.
    let sql = "SELECT coalesce(max(id), 0) FROM notices";
    let last: i64 = context.tx.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    let notice = NewNotice { key: format!("{} {last}", notice.key), ..notice };
    let id = insert(context, None, &notice, "manual", Some((NoticeOutcome::Suppressed, "being shown")))?;
    id.ok_or_else(|| StoreError::Missing { what: "the test notice".to_owned() })
}

fn full_key(task: Option<TaskKey>, notice: &NewNotice) -> String {
    match task {
        Some(key) => format!("{}:{}", key.0, notice.key),
        None => notice.key.clone(),
    }
}

fn within_task(full: &str) -> &str {
    full.split_once(':').map_or(full, |(_, key)| key)
}

/// Writes the notice unless its transition has one, and takes back what was told of the task before.
fn insert(
    context: &mut WriteContext<'_>,
    task: Option<TaskKey>,
    notice: &NewNotice,
    source: &str,
    outcome: Option<(NoticeOutcome, &str)>,
) -> Result<Option<i64>, StoreError> {
    let sql = "INSERT INTO notices (task_ref, kind, key, title, body, created_at_ms, outcome, detail)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (key) DO NOTHING RETURNING id";
    let values = rusqlite::params![
        task,
        notice.kind.word(),
        full_key(task, notice),
        notice.title,
        notice.body,
        context.now_ms,
        outcome.map(|(outcome, _)| outcome.word()),
        outcome.map(|(_, detail)| detail),
    ];
    let id: Option<i64> = context.tx.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()?;
    let Some(id) = id else { return Ok(None) };
    if let Some(task) = task {
        // The newest stands for its task.
        let sql = "SELECT id FROM notices WHERE task_ref = ?1 AND id < ?2 AND kind <> 'sign-in'
                   AND (outcome IS NULL OR outcome = 'shown' AND kind = 'waiting')";
        let mut statement = context.tx.prepare_cached(sql)?;
        let older: Vec<i64> = statement.query_map((task, id), |row| row.get(0))?.collect::<Result<_, _>>()?;
        drop(statement);
        record(context, &older, NoticeOutcome::Withdrawn, Some("another one followed"))?;
    }
    let row = get(context.tx, id)?;
    announce(context, &row, source)?;
    Ok(Some(id))
}

fn announce(context: &mut WriteContext<'_>, row: &NoticeRow, source: &str) -> Result<(), StoreError> {
    let body_json = serde_json::json!({
        "id": row.id, "notice": row.kind.word(), "title": row.title, "body": row.body,
        "outcome": row.outcome.map(NoticeOutcome::word), "detail": row.detail,
    })
    .to_string();
    let change = NewChange { agent: None, task: row.task_key, source, kind: "notice", body_json: &body_json };
    record_change(context, &change).map(|_| ())
}

/// What came of notices. The time of showing is kept where there is one already.
pub fn record(
    context: &mut WriteContext<'_>,
    ids: &[i64],
    outcome: NoticeOutcome,
    detail: Option<&str>,
) -> Result<(), StoreError> {
    let shown = matches!(outcome, NoticeOutcome::Shown | NoticeOutcome::Merged);
    let sql = "UPDATE notices SET outcome = ?2, detail = ?3,
                   shown_at_ms = CASE WHEN ?4 THEN coalesce(shown_at_ms, ?5) ELSE shown_at_ms END
               WHERE id = ?1";
    for id in ids {
        let values = (id, outcome.word(), detail, shown, context.now_ms);
        if context.tx.prepare_cached(sql)?.execute(values)? > 0 {
            let row = get(context.tx, *id)?;
            announce(context, &row, "manual")?;
        }
    }
    Ok(())
}

/// Why they are not shown yet.
pub fn hold(context: &mut WriteContext<'_>, ids: &[i64], why: &str) -> Result<(), StoreError> {
    let sql = "UPDATE notices SET detail = ?2 WHERE id = ?1 AND outcome IS NULL";
    for id in ids {
        if context.tx.prepare_cached(sql)?.execute((id, why))? > 0 {
            let row = get(context.tx, *id)?;
            announce(context, &row, "manual")?;
        }
    }
    Ok(())
}

/// What was told to nobody is to be told.
pub fn reopen(context: &mut WriteContext<'_>, ids: &[i64]) -> Result<(), StoreError> {
    let sql = "UPDATE notices SET outcome = NULL, detail = NULL WHERE id = ?1";
    for id in ids {
        context.tx.prepare_cached(sql)?.execute([id])?;
    }
    Ok(())
}

/// They are about to be shown, and will not be shown again whatever happens.
pub fn begin_showing(context: &mut WriteContext<'_>, ids: &[i64]) -> Result<(), StoreError> {
    let sql = "UPDATE notices SET shown_at_ms = ?2 WHERE id = ?1";
    for id in ids {
        context.tx.prepare_cached(sql)?.execute((id, context.now_ms))?;
    }
    Ok(())
}

/// What was being shown when the engine was killed and may be shown once only: nobody knows whether it was.
pub fn settle_interrupted(context: &mut WriteContext<'_>) -> Result<(), StoreError> {
    let sql = "UPDATE notices SET outcome = 'failed', detail = 'the engine ended while it was being shown'
               WHERE outcome IS NULL AND shown_at_ms IS NOT NULL AND kind NOT IN ('waiting', 'sign-in')";
    context.tx.prepare_cached(sql)?.execute([])?;
    Ok(())
}

/// Whether a notice that wants attention (`n`, of task `t`) is still about something.
const STILL_WAITS: &str = "CASE n.kind
    WHEN 'waiting' THEN t.state IN ('input-required', 'auth-required') AND t.following <> 'ended'
        AND t.waiting_since_ms > coalesce(t.replied_at_ms, 0)
    ELSE EXISTS (SELECT 1 FROM tasks o WHERE o.agent_id = t.agent_id AND o.following = 'on'
        AND o.trouble IN ('unauthorized', 'forbidden')) END";

const OPEN: &str = "n.kind IN ('waiting', 'sign-in') AND (n.outcome IS NULL OR n.outcome = 'shown')";

/// Open notices of what does not wait any more.
pub fn settled(connection: &Connection) -> Result<Vec<i64>, StoreError> {
    let sql = format!(
        "SELECT n.id FROM notices n JOIN tasks t ON t.id = n.task_ref WHERE {OPEN} AND NOT ({STILL_WAITS})"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let ids = statement.query_map([], |row| row.get(0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// Takes notices back, if they are open still.
pub fn withdraw(context: &mut WriteContext<'_>, ids: &[i64]) -> Result<(), StoreError> {
    for id in ids {
        let row = get(context.tx, *id)?;
        if matches!(row.outcome, None | Some(NoticeOutcome::Shown)) {
            let detail = if row.shown_at_ms.is_none() { "settled before it was shown" } else { "settled" };
            record(context, &[*id], NoticeOutcome::Withdrawn, Some(detail))?;
        }
    }
    Ok(())
}

/// The user wants to be told of a waiting task again at `until_ms`. False: it does not wait.
pub fn snooze(context: &mut WriteContext<'_>, task: TaskKey, until_ms: i64) -> Result<bool, StoreError> {
    let sql = format!(
        "SELECT n.id FROM notices n JOIN tasks t ON t.id = n.task_ref
         WHERE n.task_ref = ?1 AND n.kind = 'waiting' AND {STILL_WAITS} ORDER BY n.id DESC LIMIT 1"
    );
    let id: Option<i64> = context.tx.prepare_cached(&sql)?.query_row([task], |row| row.get(0)).optional()?;
    let Some(id) = id else { return Ok(false) };
    let sql = "UPDATE notices SET outcome = NULL, detail = NULL, snoozed_until_ms = ?2 WHERE id = ?1";
    context.tx.prepare_cached(sql)?.execute((id, until_ms))?;
    let row = get(context.tx, id)?;
    announce(context, &row, "manual")?;
    super::flags::set_snoozed(context, task, Some(until_ms))?;
    Ok(true)
}

/// The user puts the question of a task off no longer: it needs them again, and they know.
pub fn wake(context: &mut WriteContext<'_>, task: TaskKey) -> Result<(), StoreError> {
    let sql = "SELECT id FROM notices WHERE task_ref = ?1 AND outcome IS NULL AND snoozed_until_ms > ?2";
    let mut statement = context.tx.prepare_cached(sql)?;
    let ids = statement.query_map((task, context.now_ms), |row| row.get(0))?;
    let ids: Vec<i64> = ids.collect::<Result<_, _>>()?;
    drop(statement);
    record(context, &ids, NoticeOutcome::Suppressed, Some("the user took it up again"))?;
    super::flags::set_snoozed(context, task, None)
}

const COLUMNS: &str = "n.id, n.task_ref, a.name, t.task_id, n.kind, n.title, n.body, n.created_at_ms, \
     n.shown_at_ms, n.outcome, n.detail, n.snoozed_until_ms, t.muted_at_ms IS NOT NULL";
const FROM: &str =
    "FROM notices n LEFT JOIN tasks t ON t.id = n.task_ref LEFT JOIN agents a ON a.id = t.agent_id";

pub fn get(connection: &Connection, id: i64) -> Result<NoticeRow, StoreError> {
    let sql = format!("SELECT {COLUMNS} {FROM} WHERE n.id = ?1");
    let row = connection.prepare_cached(&sql)?.query_row([id], read).optional()?;
    row.ok_or_else(|| StoreError::Missing { what: format!("notice {id}") })
}

/// What has not been told, the oldest first.
pub fn pending(connection: &Connection) -> Result<Vec<NoticeRow>, StoreError> {
    select(connection, "WHERE n.outcome IS NULL ORDER BY n.id", [])
}

/// Shown, and still about something.
pub fn on_desktop(connection: &Connection) -> Result<Vec<NoticeRow>, StoreError> {
    select(connection, "WHERE n.outcome = 'shown' AND n.kind IN ('waiting', 'sign-in') ORDER BY n.id", [])
}

/// What was told to nobody since no window was there: ends since the last digest, and what still waits.
pub fn untold(connection: &Connection) -> Result<Vec<NoticeRow>, StoreError> {
    let filter = format!(
        "WHERE n.outcome = 'no-desktop' AND n.kind <> 'test'
         AND (n.kind NOT IN ('waiting', 'sign-in') OR {STILL_WAITS}) ORDER BY n.id"
    );
    select(connection, &filter, [])
}

/// The newest first, before `before` where that is given.
pub fn list(connection: &Connection, before: Option<i64>, limit: u32) -> Result<Vec<NoticeRow>, StoreError> {
    select(connection, "WHERE n.id < ?1 ORDER BY n.id DESC LIMIT ?2", (before.unwrap_or(i64::MAX), limit))
}

/// Drops what was written before `before_ms` and is settled, `limit` at most; how many went.
pub fn prune(context: &mut WriteContext<'_>, before_ms: i64, limit: u32) -> Result<usize, StoreError> {
    // A task's own go with the task: their keys keep it from being told twice.
    let sql = "DELETE FROM notices WHERE id IN
               (SELECT id FROM notices WHERE task_ref IS NULL AND created_at_ms < ?1 LIMIT ?2)";
    Ok(context.tx.prepare_cached(sql)?.execute((before_ms, limit))?)
}

fn select(
    connection: &Connection,
    filter: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<NoticeRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} {FROM} {filter}");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(values, read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<NoticeRow> {
    let agent = decoded_option(row, 2, |text| AgentName::new(text).ok())?;
    let task: Option<String> = row.get(3)?;
    Ok(NoticeRow {
        id: row.get(0)?,
        task_key: row.get(1)?,
        task: agent.zip(task).map(|(agent, task)| TaskRef { agent, task: TaskId::new(task) }),
        kind: decoded(row, 4, NoticeKind::from_word)?,
        title: row.get(5)?,
        body: row.get(6)?,
        created_at_ms: row.get(7)?,
        shown_at_ms: row.get(8)?,
        outcome: decoded_option(row, 9, NoticeOutcome::from_word)?,
        detail: row.get(10)?,
        snoozed_until_ms: row.get(11)?,
        muted: row.get(12)?,
    })
}
