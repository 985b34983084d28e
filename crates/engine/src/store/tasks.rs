//! Tasks as rows: finding one, and how each is followed. Lists are in [`super::lists`], what users keep of tasks in
//! [`super::flags`].
//!
//! What a task *contains* is in [`super::task_content`]; what frames and reads change goes through
//! [`super::task_records`].

use rusqlite::{Connection, OptionalExtension, Row};
use taskbell_core::ids::{AgentName, ContextId, TaskId, TaskRef};
use taskbell_core::state::TaskState;

use super::agents::{decoded, decoded_option};
use super::changes::{NewChange, record_change};
use super::error::StoreError;
use super::keys::{AgentKey, TaskKey};
use super::writer::WriteContext;

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vmeta])* $variant,)* }

        impl $name {
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

pub(super) use words;

words!(
    /// Whether we follow.
    Following {
        On = "on",
        /// By the user's wish.
        Paused = "paused",
        /// Nothing more will come: terminal and settled, lost, or another identity's.
        Ended = "ended",
    }
);

words!(
    /// How we hear of a task.
    FollowMode {
        Stream = "stream",
        PushAndPoll = "push+poll",
        Poll = "poll",
        Reconnecting = "reconnecting",
        Paused = "paused",
        Ended = "ended",
    }
);

words!(
    /// What we say of a task beside its agent's word.
    Verdict {
        /// The agent says that it does not know the task (any more).
        Lost = "lost",
        /// The agent does not show it to the credential that it has now.
        WrongIdentity = "wrong-identity",
    }
);

words!(
    /// By which way something was heard.
    Channel {
        Stream = "stream",
        Push = "push",
        Poll = "poll",
        Manual = "manual",
        Gateway = "gateway",
    }
);

words!(
    /// How a task came to us.
    TaskSource {
        Send = "send",
        Watch = "watch",
        Import = "import",
        Gateway = "gateway",
    }
);

/// A task as one row, with its agent's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    pub key: TaskKey,
    pub agent_key: AgentKey,
    pub agent: AgentName,
    pub task_id: TaskId,
    pub context_id: Option<ContextId>,
    /// The first line of what was asked, cleaned.
    pub title: String,
    pub state: TaskState,
    pub raw_state: String,
    pub verdict: Option<Verdict>,
    /// The status with its message, as 1.0 JSON.
    pub status_json: String,
    pub settled: bool,
    pub following: Following,
    pub mode: FollowMode,
    pub mode_since_ms: i64,
    pub attempt: u32,
    pub confirmed_at_ms: Option<i64>,
    pub confirmed_by: Option<Channel>,
    /// Code of what keeps us from reading the task: `unauthorized`, `agent_unreachable`, …
    pub trouble: Option<String>,
    pub trouble_since_ms: Option<i64>,
    pub credential_version: i64,
    pub source: TaskSource,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
    pub terminal_at_ms: Option<i64>,
    pub waiting_since_ms: Option<i64>,
    pub replied_at_ms: Option<i64>,
    pub pinned_at_ms: Option<i64>,
    pub archived_at_ms: Option<i64>,
    pub muted_at_ms: Option<i64>,
    /// When its user put its question off, and until when.
    pub snoozed_at_ms: Option<i64>,
    pub snoozed_until_ms: Option<i64>,
    pub has_note: bool,
}

impl TaskRow {
    pub fn task_ref(&self) -> TaskRef {
        TaskRef { agent: self.agent.clone(), task: self.task_id.clone() }
    }

    /// Our own word for the state: the verdict where there is one.
    pub fn state_word(&self) -> &'static str {
        self.verdict.map_or(self.state.word(), Verdict::word)
    }

    /// It waits for the user: a question that was not answered since it was asked, and is not put off, or a sign-in.
    pub fn needs_you(&self, now_ms: i64) -> bool {
        let unanswered = match (self.waiting_since_ms, self.replied_at_ms) {
            (Some(waiting), Some(replied)) => waiting > replied,
            (Some(_), None) => true,
            (None, _) => false,
        };
        let asks = unanswered && self.state.is_interrupted() && self.snoozed_until(now_ms).is_none();
        self.following != Following::Ended && (asks || self.needs_sign_in())
    }

    /// Until when the question that waits is put off. A question that was asked later is not.
    pub fn snoozed_until(&self, now_ms: i64) -> Option<i64> {
        let asked = self.waiting_since_ms?;
        self.snoozed_until_ms
            .filter(|until| *until > now_ms && self.snoozed_at_ms.is_some_and(|put_off| asked <= put_off))
    }

    pub fn needs_sign_in(&self) -> bool {
        matches!(self.trouble.as_deref(), Some("unauthorized" | "forbidden"))
    }
}

const COLUMNS: &str = "t.id, t.agent_id, a.name, t.task_id, t.context_id, t.title, t.state, t.raw_state, \
     t.verdict, t.status_json, t.settled, t.following, t.mode, t.mode_since_ms, t.attempt, \
     t.confirmed_at_ms, t.confirmed_by, t.trouble, t.trouble_since_ms, t.credential_version, t.source, \
     t.created_at_ms, t.updated_at_ms, t.terminal_at_ms, t.waiting_since_ms, t.replied_at_ms, \
     t.pinned_at_ms, t.archived_at_ms, t.muted_at_ms, t.snoozed_at_ms, t.snoozed_until_ms, \
     EXISTS (SELECT 1 FROM task_notes n WHERE n.task_ref = t.id)";
const FROM: &str = "FROM tasks t JOIN agents a ON a.id = t.agent_id";
/// The agent first, so that its task is looked up by the index over both. Left to itself SQLite reads every
/// task: it knows no index by an agent's name that covers removed ones.
const FROM_AGENT: &str = "FROM agents a CROSS JOIN tasks t ON t.agent_id = a.id";

/// Only what has not ended, which is little.
const FROM_OPEN: &str = "FROM tasks t INDEXED BY tasks_followed JOIN agents a ON a.id = t.agent_id";

pub fn get(connection: &Connection, key: TaskKey) -> Result<TaskRow, StoreError> {
    let sql = format!("SELECT {COLUMNS} {FROM} WHERE t.id = ?1");
    let row = connection.prepare_cached(&sql)?.query_row([key], read).optional()?;
    row.ok_or_else(|| StoreError::Missing { what: format!("task row {}", key.0) })
}

/// The task of that exact id. Tasks of removed agents are found under the name while no living agent
/// has it.
pub fn find(connection: &Connection, task: &TaskRef) -> Result<Option<TaskRow>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} {FROM_AGENT} WHERE a.name = ?1 AND t.task_id = ?2
         ORDER BY a.removed_at_ms IS NULL DESC, a.id DESC LIMIT 1"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    Ok(statement.query_row((task.agent.as_str(), task.task.as_str()), read).optional()?)
}

/// The tasks whose id starts so, two at most: a prefix must name one.
pub fn find_by_prefix(
    connection: &Connection,
    agent: &AgentName,
    prefix: &str,
) -> Result<Vec<TaskRow>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} {FROM_AGENT} WHERE a.name = ?1 AND t.task_id BETWEEN ?2 AND ?2 || char(1114111)
             AND substr(t.task_id, 1, length(?2)) = ?2
         ORDER BY t.id DESC LIMIT 2"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map((agent.as_str(), prefix), read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub fn find_by_id(
    connection: &Connection,
    agent: AgentKey,
    task_id: &TaskId,
) -> Result<Option<TaskKey>, StoreError> {
    let sql = "SELECT id FROM tasks WHERE agent_id = ?1 AND task_id = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row((agent, task_id.as_str()), |row| row.get(0)).optional()?)
}

/// Rows to follow, the waiting ones first.
pub fn followed(connection: &Connection) -> Result<Vec<TaskRow>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} {FROM_OPEN} WHERE t.following <> 'ended' AND t.following = 'on'
         AND a.removed_at_ms IS NULL ORDER BY t.waiting_since_ms IS NULL, t.id DESC"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// How many tasks of an agent are followed.
pub fn count_open(connection: &Connection, agent: AgentKey) -> Result<u64, StoreError> {
    let sql = "SELECT count(*) FROM tasks WHERE agent_id = ?1 AND following <> 'ended'";
    let count: i64 = connection.prepare_cached(sql)?.query_row([agent], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// How the follower hears of the task now. Announced where the mode is another.
pub fn set_mode(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    mode: FollowMode,
    attempt: u32,
) -> Result<(), StoreError> {
    let now = context.now_ms;
    let sql = "UPDATE tasks SET mode_since_ms = CASE mode WHEN ?2 THEN mode_since_ms ELSE ?4 END,
                   mode = ?2, attempt = ?3
               WHERE id = ?1 AND following = 'on' AND (mode <> ?2 OR attempt <> ?3)";
    let changed = context.tx.prepare_cached(sql)?.execute((key, mode.word(), attempt, now))?;
    if changed > 0 {
        announce(
            context,
            key,
            "poll",
            "following",
            &serde_json::json!({ "mode": mode.word(), "attempt": attempt }),
        )?;
    }
    Ok(())
}

/// Turns following on or off by the user's wish. A task that has ended stays ended.
pub fn set_following(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    following: Following,
) -> Result<(), StoreError> {
    let mode = match following {
        Following::On => FollowMode::Reconnecting,
        Following::Paused => FollowMode::Paused,
        Following::Ended => FollowMode::Ended,
    };
    let sql = "UPDATE tasks SET following = ?2, mode = ?3, mode_since_ms = ?4, attempt = 0
               WHERE id = ?1 AND following <> ?2";
    let values = (key, following.word(), mode.word(), context.now_ms);
    let changed = context.tx.prepare_cached(sql)?.execute(values)?;
    if changed > 0 {
        announce(context, key, "manual", "following", &serde_json::json!({ "mode": mode.word() }))?;
    }
    Ok(())
}

/// The follower is done: nothing more will come of this task.
pub fn end_following(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    verdict: Option<Verdict>,
) -> Result<(), StoreError> {
    let sql = "UPDATE tasks SET following = 'ended', mode = 'ended', mode_since_ms = ?3, attempt = 0,
                   verdict = coalesce(?2, verdict), terminal_at_ms = coalesce(terminal_at_ms, ?3),
                   waiting_since_ms = NULL, trouble = NULL, trouble_since_ms = NULL,
                   updated_at_ms = CASE WHEN ?2 IS NULL THEN updated_at_ms ELSE ?3 END
               WHERE id = ?1 AND following <> 'ended'";
    let values = (key, verdict.map(Verdict::word), context.now_ms);
    let changed = context.tx.prepare_cached(sql)?.execute(values)?;
    if changed > 0 {
        if let Some(verdict) = verdict {
            let body = serde_json::json!({ "state": verdict.word() });
            announce(context, key, "poll", "status", &body)?;
            super::notices::handle_verdict(context, key, verdict)?;
            super::gateway_log::lose(context, key);
        }
        announce(context, key, "poll", "following", &serde_json::json!({ "mode": "ended" }))?;
    }
    Ok(())
}

/// What keeps us from reading the task, or nothing any more.
pub fn set_trouble(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    trouble: Option<&str>,
) -> Result<(), StoreError> {
    let sql = "UPDATE tasks SET trouble = ?2, trouble_since_ms = CASE WHEN ?2 IS NULL THEN NULL ELSE ?3 END
               WHERE id = ?1 AND trouble IS NOT ?2 AND following = 'on'";
    let changed = context.tx.prepare_cached(sql)?.execute((key, trouble, context.now_ms))?;
    if changed > 0 {
        announce(context, key, "poll", "following", &serde_json::json!({ "trouble": trouble }))?;
        if matches!(trouble, Some("unauthorized" | "forbidden")) {
            super::notices::handle_refusal(context, key)?;
        }
    }
    Ok(())
}

/// The agent shows the task to this credential: from now on it is the one the task belongs to.
pub fn set_credential_version(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    version: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE tasks SET credential_version = ?2 WHERE id = ?1";
    context.tx.prepare_cached(sql)?.execute((key, version))?;
    Ok(())
}

/// A stretch in which nobody listened. Text of that time may never be seen.
pub fn record_gap(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    from_ms: i64,
    to_ms: i64,
    reason: &str,
) -> Result<(), StoreError> {
    let body = serde_json::json!({ "fromMs": from_ms, "toMs": to_ms, "reason": reason });
    announce(context, key, "stream", "gap", &body)
}

/// Our reply, sent at `at_ms`, has reached the agent: a question asked before it is answered.
pub fn set_replied(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    at_ms: i64,
    text: &str,
) -> Result<(), StoreError> {
    let sql = "UPDATE tasks SET replied_at_ms = ?2, updated_at_ms = ?3 WHERE id = ?1";
    context.tx.prepare_cached(sql)?.execute((key, at_ms, context.now_ms))?;
    super::search::set_due(context, key)?;
    let body = serde_json::json!({ "role": "user", "text": super::task_content::excerpt(text) });
    announce(context, key, "manual", "message", &body)
}

/// The user asks us to cancel the task, or that came to nothing.
pub fn set_cancel_asked(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    at_ms: Option<i64>,
) -> Result<(), StoreError> {
    let sql = "UPDATE tasks SET cancel_asked_at_ms = ?2 WHERE id = ?1";
    context.tx.prepare_cached(sql)?.execute((key, at_ms))?;
    Ok(())
}

/// Removes a task with everything that is kept of it. The feed says so under its agent.
pub fn delete(context: &mut WriteContext<'_>, key: TaskKey) -> Result<(), StoreError> {
    let row = get(context.tx, key)?;
    context.tx.prepare_cached("DELETE FROM tasks WHERE id = ?1")?.execute([key])?;
    super::task_records::forget(context, key);
    let body = serde_json::json!({ "deleted": row.task_ref().to_string() }).to_string();
    record_change(
        context,
        &NewChange {
            agent: Some(row.agent_key),
            task: None,
            source: "manual",
            kind: "task",
            body_json: &body,
        },
    )?;
    Ok(())
}

/// Removes tasks that ended before `before_ms` and are not pinned, `limit` at most; how many went.
pub fn prune(context: &mut WriteContext<'_>, before_ms: i64, limit: u32) -> Result<usize, StoreError> {
    let sql = "DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE terminal_at_ms < ?1
               AND pinned_at_ms IS NULL AND following = 'ended' LIMIT ?2)";
    Ok(context.tx.prepare_cached(sql)?.execute((before_ms, limit))?)
}

/// Records a change of a task.
pub(crate) fn announce(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    source: &str,
    kind: &str,
    body: &serde_json::Value,
) -> Result<(), StoreError> {
    let body_json = body.to_string();
    record_change(context, &NewChange { agent: None, task: Some(key), source, kind, body_json: &body_json })?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<TaskRow> {
    Ok(TaskRow {
        key: row.get(0)?,
        agent_key: row.get(1)?,
        agent: decoded(row, 2, |text| AgentName::new(text).ok())?,
        task_id: TaskId::new(row.get::<_, String>(3)?),
        context_id: row.get::<_, Option<String>>(4)?.map(ContextId::new),
        title: row.get(5)?,
        state: decoded(row, 6, |word| Some(TaskState::from_word(word)))?,
        raw_state: row.get(7)?,
        verdict: decoded_option(row, 8, Verdict::from_word)?,
        status_json: row.get(9)?,
        settled: row.get(10)?,
        following: decoded(row, 11, Following::from_word)?,
        mode: decoded(row, 12, FollowMode::from_word)?,
        mode_since_ms: row.get(13)?,
        attempt: row.get(14)?,
        confirmed_at_ms: row.get(15)?,
        confirmed_by: decoded_option(row, 16, Channel::from_word)?,
        trouble: row.get(17)?,
        trouble_since_ms: row.get(18)?,
        credential_version: row.get(19)?,
        source: decoded(row, 20, TaskSource::from_word)?,
        created_at_ms: row.get(21)?,
        updated_at_ms: row.get(22)?,
        terminal_at_ms: row.get(23)?,
        waiting_since_ms: row.get(24)?,
        replied_at_ms: row.get(25)?,
        pinned_at_ms: row.get(26)?,
        archived_at_ms: row.get(27)?,
        muted_at_ms: row.get(28)?,
        snoozed_at_ms: row.get(29)?,
        snoozed_until_ms: row.get(30)?,
        has_note: row.get(31)?,
    })
}
