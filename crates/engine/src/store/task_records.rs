//! The one place where frames and reads change tasks: on the writer thread, in one transaction with the
//! rows they touch and the changes that announce them.
//!
//! The merged record of each task that is being followed stays here between commands, so that an event
//! costs a few inserts and no read. Nobody else holds one: whichever worker brings a frame or an answer,
//! they meet in this order. Records beyond the budget are dropped and loaded again when needed.

use std::collections::{HashMap, VecDeque};

use serde_json::json;
use taskbell_core::delivery::Lane;
use taskbell_core::dialect::v1::{self, Extras};
use taskbell_core::merge::{Order, Outcome, TaskChange, TaskRecord};
use taskbell_core::oddity::Oddity;
use taskbell_core::relay;
use taskbell_core::state::TaskState;
use taskbell_core::task::{Artifact, PartContent, StreamEvent, Task};

use super::allowance::{Allowance, Rate};
use super::error::StoreError;
use super::gateway_log;
use super::hub::Batch;
use super::keys::{AgentKey, TaskKey};
use super::state::Remembered;
use super::task_content::{self, excerpt, object_json};
use super::tasks::{Channel, TaskSource, announce};
use super::verdicts::{self, Settled};
use super::writer::WriteContext;
use super::{ends, notices, outbox, search};

/// Lists are in the order of the last change. Progress within a state moves a task up at most this often: several
/// indexes hold that time, and a statement that names it writes them all, whether it is another or not. When a task
/// was last heard of is exact, in `confirmed_at_ms`.
const PROGRESS_MS: i64 = 10_000;
/// Bytes of text in kept records, roughly.
const BUDGET: usize = 64 << 20;
/// What a record takes beside its texts, roughly.
const SHELL: usize = 800;
/// Records of tasks that have ended, kept a little longer for reads that were under way.
const SETTLED_KEPT: usize = 32;

#[derive(Default)]
struct Records {
    kept: HashMap<TaskKey, Kept>,
    /// The oldest first. May name one again, or one that is not kept any more.
    settled: VecDeque<TaskKey>,
    weight: usize,
    uses: u64,
}

struct Kept {
    held: Held,
    weight: usize,
    used: u64,
}

/// What is remembered of one task.
struct Held {
    record: TaskRecord,
    news: Allowance,
    /// What the row's indexes were last told; none: not since it was loaded.
    listed: Option<Listed>,
}

/// What lists go by. Whoever else moves the task up makes it older than the row, which does no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Listed {
    updated_at_ms: i64,
    by: Channel,
    state: TaskState,
    settled: bool,
}

impl Listed {
    /// Progress that lists need not know of: the same state, heard in the same way, a moment later.
    fn stands(self, now_ms: i64, record: &TaskRecord, channel: Channel, has_changed: bool) -> bool {
        let state = record.state();
        let is_recent = (0..=PROGRESS_MS).contains(&(now_ms - self.updated_at_ms));
        (self.by, self.state, self.settled) == (channel, state, record.settled)
            && !state.is_terminal()
            && !state.is_interrupted()
            && (is_recent || !has_changed)
    }
}

/// What the task's row is to say of what came since it was last written. Written once for events that came
/// together: the row is the widest of all that an event touches, and only the last of them shows.
#[derive(Debug)]
struct Heard {
    anything: bool,
    /// The status, or another column of the task itself.
    row: bool,
    /// Anything of the task, in whichever table.
    task: bool,
    waits_anew: bool,
    /// All of it was progress that lists need not know of.
    stands: bool,
}

impl Heard {
    fn nothing() -> Self {
        Self { anything: false, row: false, task: false, waits_anew: false, stands: true }
    }
}

/// How much of a task's news goes into its timeline. Beyond it progress is merged into the task but not announced;
/// a new state always is.
const NEWS: Rate = Rate { burst: 1_000.0, a_second: 50.0 };

impl Remembered for Records {
    fn rolled_back(&mut self) {
        self.kept.clear();
        self.settled.clear();
        self.weight = 0;
    }
}

impl Records {
    fn take(&mut self, key: TaskKey) -> Option<Held> {
        let kept = self.kept.remove(&key)?;
        self.weight -= kept.weight;
        Some(kept.held)
    }

    fn put(&mut self, key: TaskKey, held: Held) {
        if held.record.settled {
            self.settled.push_back(key);
            let forgotten = if self.settled.len() > SETTLED_KEPT { self.settled.pop_front() } else { None };
            forgotten.map(|oldest| self.take(oldest));
        }
        let weight = SHELL + held.record.octets();
        self.uses += 1;
        self.weight += weight;
        self.kept.insert(key, Kept { held, weight, used: self.uses });
        if self.weight > BUDGET {
            self.drop_oldest();
        }
    }

    /// Down to three quarters, so that a full house does not evict at every use.
    fn drop_oldest(&mut self) {
        let mut by_use: Vec<(u64, TaskKey)> = self.kept.iter().map(|(key, kept)| (kept.used, *key)).collect();
        by_use.sort_unstable();
        for (_, key) in by_use {
            if self.weight <= BUDGET / 4 * 3 {
                return;
            }
            self.take(key);
        }
    }
}

/// What a worker needs to know of what it brought.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// After merging.
    pub state: TaskState,
    pub settled: bool,
    /// The agent did something: state, message of the state, artifacts.
    pub changed: bool,
    pub wants_read: bool,
    /// A read that was overtaken by a later one.
    pub stale: bool,
    /// The answer said a non-terminal state of a task that has ended.
    pub regressed: bool,
}

/// Who described the task. Only GetTask settles a terminal state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    ByGetTask,
    /// An answer to a send, a list.
    Otherwise,
}

/// How a task is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adoption<'a> {
    pub source: TaskSource,
    pub channel: Channel,
    pub told: Told,
    /// The first line of what was asked, cleaned.
    pub title: &'a str,
    pub credential_version: i64,
}

/// Takes a task in, or an answer about one that is known already. Following is turned on, unless it has
/// ended.
pub fn adopt(
    context: &mut WriteContext<'_>,
    agent: AgentKey,
    task: Task,
    started: Order,
    adoption: Adoption<'_>,
) -> Result<(TaskKey, Applied), StoreError> {
    if let Some(key) = super::tasks::find_by_id(context.tx, agent, &task.id)? {
        let applied = apply_read(context, key, task, started, adoption.channel)?;
        if !applied.state.is_terminal() {
            super::tasks::set_following(context, key, super::tasks::Following::On)?;
        }
        return Ok((key, applied));
    }
    let record = match adoption.told {
        Told::ByGetTask => TaskRecord::new(task, started),
        Told::Otherwise => TaskRecord::restored(task, false, Vec::new()),
    };
    let key = insert(context, agent, &record, adoption)?;
    let applied = Applied {
        state: record.state(),
        settled: record.settled,
        changed: true,
        wants_read: false,
        stale: false,
        regressed: false,
    };
    let listed = Some(Listed {
        updated_at_ms: context.now_ms,
        by: adoption.channel,
        state: record.state(),
        settled: record.settled,
    });
    let held = Held { record, news: Allowance::new(NEWS, context.now_ms), listed };
    context.state.of::<Records>().put(key, held);
    Ok((key, applied))
}

fn insert(
    context: &mut WriteContext<'_>,
    agent: AgentKey,
    record: &TaskRecord,
    adoption: Adoption<'_>,
) -> Result<TaskKey, StoreError> {
    let task = &record.task;
    let state = record.state();
    let ended = record.settled;
    let now = context.now_ms;
    let sql = "INSERT INTO tasks (agent_id, task_id, context_id, title, state, raw_state, status_json,
                   metadata_json, extra_json, settled, following, mode, mode_since_ms, attempt, confirmed_at_ms,
                   confirmed_by, credential_version, source, created_at_ms, updated_at_ms, terminal_at_ms,
                   waiting_since_ms)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 0, ?13, ?14, ?15, ?16, ?13, ?13,
                   ?17, ?18)";
    let id = context.tx.prepare_cached(sql)?.insert(rusqlite::params![
        agent,
        task.id.as_str(),
        task.context_id.as_ref().map(|id| id.as_str()),
        adoption.title,
        state.word(),
        task.status.raw_state,
        v1::status(&task.status, Extras::Keep).to_string(),
        object_json(&task.metadata),
        object_json(&task.extra),
        record.settled,
        if ended { "ended" } else { "on" },
        if ended { "ended" } else { "reconnecting" },
        now,
        adoption.channel.word(),
        adoption.credential_version,
        adoption.source.word(),
        state.is_terminal().then_some(now),
        state.is_interrupted().then_some(now),
    ])?;
    let key = TaskKey(id);
    task_content::replace_artifacts(context, key, &task.artifacts, &record.incomplete)?;
    task_content::extend_history(context, key, &task.history, 0)?;
    search::set_due(context, key)?;
    let body = json!({ "created": true, "state": state.word(), "title": adoption.title,
        "text": status_text(task) });
    announce(context, key, adoption.channel.word(), "task", &body)?;
    notices::handle_adoption(context, key, state, task.status.message.as_ref(), adoption)?;
    Ok(key)
}

/// Applies an answer to GetTask asked for at `started`. The caller has checked that it is about this task.
pub fn apply_read(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    answer: Task,
    started: Order,
    channel: Channel,
) -> Result<Applied, StoreError> {
    let says = answer.status.state;
    let mut held = take_or_load(context, key)?;
    let outcome = held.record.apply_read(answer, started);
    let regressed = outcome.oddities.iter().any(|oddity| matches!(oddity, Oddity::Regression { .. }));
    if !outcome.stale {
        let mut heard = Heard::nothing();
        store_outcome(context, key, &mut held, &outcome, channel, &mut heard)?;
        store_heard(context, key, &mut held, channel, heard)?;
        tell_news(context, key, &held.record, &outcome)?;
        clear_verdict(context, key, says)?;
    }
    let applied = applied(&held.record, &outcome, regressed);
    context.state.of::<Records>().put(key, held);
    Ok(applied)
}

/// [`apply_read`] for a task that callbacks made due: the read began when the task's number was `dirty`. Judges
/// them by the task as it is then, and marks it clean. A read that was overtaken judges nothing.
pub fn apply_due_read(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    answer: Task,
    started: Order,
    channel: Channel,
    dirty: u64,
) -> Result<(Applied, Settled), StoreError> {
    let answered = answer.clone();
    let applied = apply_read(context, key, answer, started, channel)?;
    if applied.stale {
        return Ok((applied, Settled::default()));
    }
    // An end that only a stream told is none yet: the answer counts.
    let settled = if applied.regressed && !applied.settled {
        verdicts::settle(context, key, dirty, &answered)?
    } else {
        let held = take_or_load(context, key)?;
        let settled = verdicts::settle(context, key, dirty, &held.record.task);
        context.state.of::<Records>().put(key, held);
        settled?
    };
    Ok((applied, settled))
}

/// Tells those who listen what a read, or a task in the middle of a stream, brought.
fn tell_news(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    record: &TaskRecord,
    outcome: &Outcome,
) -> Result<(), StoreError> {
    match gateway_log::hub(context, key) {
        Some(hub) if !outcome.changes.is_empty() => {
            let mut news = relay::news(&record.task, &outcome.changes);
            gateway_log::tell(context, &hub, key, &mut news)
        }
        Some(_) | None => Ok(()),
    }
}

/// Applies a stream's events in the order of their arrival, and tells those who listen.
pub fn apply_events(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    events: Vec<(StreamEvent, Order)>,
    channel: Channel,
) -> Result<Applied, StoreError> {
    apply_stream(context, key, events, None, channel)
}

/// Applies a stream's events that were told already.
pub fn apply_told(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    events: Vec<(StreamEvent, Order)>,
    told: &Batch,
    channel: Channel,
) -> Result<Applied, StoreError> {
    apply_stream(context, key, events, Some(told), channel)
}

fn apply_stream(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    events: Vec<(StreamEvent, Order)>,
    told: Option<&Batch>,
    channel: Channel,
) -> Result<Applied, StoreError> {
    let mut held = take_or_load(context, key)?;
    let mut total = Outcome::default();
    let mut heard = Heard::nothing();
    if let Some(told) = told {
        gateway_log::keep(context, &told.hub, key, &told.told)?;
    }
    for (event, arrived) in events {
        let is_message = matches!(event, StreamEvent::Message(_));
        let hub = told.is_none().then(|| gateway_log::hub(context, key)).flatten();
        let passed_on = match (&hub, &event) {
            (None, _) | (Some(_), StreamEvent::Task(_)) => None,
            (Some(_), event) => Some(event.clone()),
        };
        let had_ended = held.record.state().is_terminal();
        let outcome = held.record.apply_event(event, arrived);
        store_outcome(context, key, &mut held, &outcome, channel, &mut heard)?;
        match (hub, passed_on) {
            (Some(hub), Some(event)) if !had_ended => {
                gateway_log::tell(context, &hub, key, &mut [event])?;
            }
            (Some(_), None) => tell_news(context, key, &held.record, &outcome)?,
            (Some(_) | None, _) => {}
        }
        if is_message && !outcome.changes.is_empty() {
            announce_message(context, key, &held.record, channel)?;
        }
        total.changes.extend(outcome.changes);
        total.wants_read |= outcome.wants_read;
    }
    store_heard(context, key, &mut held, channel, heard)?;
    let applied = applied(&held.record, &total, false);
    context.state.of::<Records>().put(key, held);
    Ok(applied)
}

/// Drops what is remembered of a task that is no more.
pub(super) fn forget(context: &mut WriteContext<'_>, key: TaskKey) {
    context.state.of::<Records>().take(key);
    gateway_log::forget(context, key);
}

/// The task as it stands, everything merged that reached the writer.
pub fn present(context: &mut WriteContext<'_>, key: TaskKey) -> Result<Task, StoreError> {
    let held = take_or_load(context, key)?;
    let task = held.record.task.clone();
    context.state.of::<Records>().put(key, held);
    Ok(task)
}

fn take_or_load(context: &mut WriteContext<'_>, key: TaskKey) -> Result<Held, StoreError> {
    if let Some(held) = context.state.of::<Records>().take(key) {
        return Ok(held);
    }
    let (task, incomplete) = task_content::load(context.tx, key)?;
    let settled = super::tasks::get(context.tx, key)?.settled;
    let record = TaskRecord::restored(task, settled, incomplete);
    if !record.state().is_terminal() {
        gateway_log::resume(context, key)?;
    }
    Ok(Held { record, news: Allowance::new(NEWS, context.now_ms), listed: None })
}

fn applied(record: &TaskRecord, outcome: &Outcome, regressed: bool) -> Applied {
    Applied {
        state: record.state(),
        settled: record.settled,
        changed: outcome.changes.iter().any(is_news),
        wants_read: outcome.wants_read,
        stale: outcome.stale,
        regressed,
    }
}

/// Whether a change is something the agent did. History is not: SDKs differ in when a status message becomes
/// history, so a read of an unchanged task may well have another one than the stream told.
fn is_news(change: &TaskChange) -> bool {
    match change {
        TaskChange::Status { .. }
        | TaskChange::ArtifactReplaced { .. }
        | TaskChange::ArtifactExtended { .. }
        | TaskChange::ArtifactsReplaced
        | TaskChange::Settled => true,
        TaskChange::HistoryExtended { .. } | TaskChange::HistoryReplaced | TaskChange::Details => false,
    }
}

/// Writes what is different, all but the task's row: what that is to say is added to `heard`, for
/// [`store_heard`].
fn store_outcome(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    held: &mut Held,
    outcome: &Outcome,
    channel: Channel,
    heard: &mut Heard,
) -> Result<(), StoreError> {
    let record = &held.record;
    let task = &record.task;
    let mut flooded = false;
    let mut waits_anew = false;
    for change in &outcome.changes {
        match change {
            TaskChange::Status { from, to } => {
                heard.row = true;
                waits_anew |= to.is_interrupted();
                if from == to && !held.news.take(context.now_ms) {
                    flooded = true;
                    continue;
                }
                let mut body = json!({ "state": to.word(), "text": status_text(task) });
                if from != to {
                    body["from"] = json!(from.word());
                }
                if *to == TaskState::Unknown {
                    body["rawState"] = json!(excerpt(&task.status.raw_state));
                }
                announce(context, key, channel.word(), "status", &body)?;
                if to.is_terminal() && !from.is_terminal() {
                    ends::record(context, key, *to, channel)?;
                }
                notices::handle_status(context, key, (*from, *to), task.status.message.as_ref(), channel)?;
            }
            TaskChange::ArtifactReplaced { index } => {
                let Some(artifact) = task.artifacts.get(*index) else { continue };
                let incomplete = record.incomplete.contains(&artifact.artifact_id);
                task_content::put_artifact(context, key, *index, artifact, incomplete)?;
                announce_artifact(context, key, artifact, 0, channel)?;
            }
            TaskChange::ArtifactExtended { index, from_part } => {
                let Some(artifact) = task.artifacts.get(*index) else { continue };
                task_content::extend_artifact(context, key, artifact, *from_part)?;
                if !held.news.take(context.now_ms) {
                    flooded = true;
                    continue;
                }
                announce_artifact(context, key, artifact, *from_part, channel)?;
            }
            TaskChange::ArtifactsReplaced => {
                task_content::replace_artifacts(context, key, &task.artifacts, &record.incomplete)?;
                for artifact in &task.artifacts {
                    announce_artifact(context, key, artifact, 0, channel)?;
                }
            }
            TaskChange::HistoryExtended { from } => {
                task_content::extend_history(context, key, &task.history, *from)?;
            }
            TaskChange::HistoryReplaced => {
                task_content::replace_history(context, key, &task.history)?;
            }
            TaskChange::Details => heard.row = true,
            TaskChange::Settled => {
                heard.row = true;
                let body = json!({ "settled": true, "state": record.state().word() });
                announce(context, key, channel.word(), "task", &body)?;
            }
        }
    }
    for oddity in outcome.oddities.iter().chain(flooded.then_some(&Oddity::Flood)) {
        let agent = agent_of(context, key)?;
        super::agents::record_oddity(context, agent, oddity.kind(), &oddity.detail())?;
    }
    // Progress is not indexed: what it says is in the answer, once there is one.
    if waits_anew || (record.state().is_terminal() && outcome.changes.iter().any(is_news)) {
        search::set_due(context, key)?;
    }
    let has_changed = !outcome.changes.is_empty();
    heard.anything = true;
    heard.task |= has_changed;
    heard.waits_anew |= waits_anew;
    heard.stands &=
        held.listed.is_some_and(|listed| listed.stands(context.now_ms, record, channel, has_changed));
    match told(outcome, record.state()) {
        Some(told @ outbox::Told::Reached(_)) => {
            // Who is called for it is told from the rows.
            store_heard(context, key, held, channel, std::mem::replace(heard, Heard::nothing()))?;
            outbox::handle_change(context, key, told)
        }
        Some(told @ outbox::Told::Progress) => outbox::handle_change(context, key, told),
        None => Ok(()),
    }
}

/// Writes the task's row: that we heard, and what.
fn store_heard(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    held: &mut Held,
    channel: Channel,
    heard: Heard,
) -> Result<(), StoreError> {
    if !heard.anything {
        return Ok(());
    }
    let record = &held.record;
    if heard.stands {
        return note_progress(context, key, &record.task, heard.row);
    }
    held.listed = None;
    if heard.row {
        update_row(context, key, record, channel, heard.waits_anew && record.state().is_interrupted())?;
    } else {
        let sql = "UPDATE tasks SET confirmed_at_ms = ?2, confirmed_by = ?3, trouble = NULL,
                       trouble_since_ms = NULL,
                       updated_at_ms = CASE WHEN ?4 AND ?2 - updated_at_ms NOT BETWEEN 0 AND ?5
                                            THEN ?2 ELSE updated_at_ms END
                   WHERE id = ?1";
        let values = (key, context.now_ms, channel.word(), heard.task, PROGRESS_MS);
        context.tx.prepare_cached(sql)?.execute(values)?;
    }
    let sql = "SELECT updated_at_ms FROM tasks WHERE id = ?1";
    let updated_at_ms = context.tx.prepare_cached(sql)?.query_row([key], |row| row.get(0))?;
    let (state, settled) = (record.state(), record.settled);
    held.listed = Some(Listed { updated_at_ms, by: channel, state, settled });
    Ok(())
}

/// What of it those are told who registered a callback.
fn told(outcome: &Outcome, state: TaskState) -> Option<outbox::Told> {
    let changes = &outcome.changes;
    if !changes.iter().any(is_news) {
        return None;
    }
    if Lane::of(state) == Lane::BestEffort {
        return Some(outbox::Told::Progress);
    }
    // A question that is asked again is another one. That an end is confirmed is no news by itself; where the
    // confirmation brought something else, the first callback told too little.
    let reached = changes.iter().any(|change| match change {
        TaskChange::Status { from, to } => from != to || to.is_interrupted(),
        _ => false,
    });
    let confirmed = changes.contains(&TaskChange::Settled)
        && changes.iter().any(|change| is_news(change) && *change != TaskChange::Settled);
    (reached || confirmed).then_some(outbox::Told::Reached(state))
}

/// That we heard, and the words of it: no column that an index has.
fn note_progress(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    task: &Task,
    row_changed: bool,
) -> Result<(), StoreError> {
    if !row_changed {
        let sql =
            "UPDATE tasks SET confirmed_at_ms = ?2, trouble = NULL, trouble_since_ms = NULL WHERE id = ?1";
        context.tx.prepare_cached(sql)?.execute((key, context.now_ms))?;
        return Ok(());
    }
    let sql = "UPDATE tasks SET context_id = ?2, raw_state = ?3, status_json = ?4, metadata_json = ?5,
                   extra_json = ?6, confirmed_at_ms = ?7, trouble = NULL, trouble_since_ms = NULL
               WHERE id = ?1";
    context.tx.prepare_cached(sql)?.execute(rusqlite::params![
        key,
        task.context_id.as_ref().map(|id| id.as_str()),
        task.status.raw_state,
        v1::status(&task.status, Extras::Keep).to_string(),
        object_json(&task.metadata),
        object_json(&task.extra),
        context.now_ms,
    ])?;
    Ok(())
}

fn update_row(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    record: &TaskRecord,
    channel: Channel,
    waits_anew: bool,
) -> Result<(), StoreError> {
    let task = &record.task;
    let state = record.state();
    let sql =
        "UPDATE tasks SET context_id = ?2, state = ?3, raw_state = ?4, status_json = ?5, metadata_json = ?6,
                   extra_json = ?7, settled = ?8, confirmed_at_ms = ?9, confirmed_by = ?10,
                   updated_at_ms = CASE WHEN state = ?3 AND NOT ?12 AND ?9 - updated_at_ms BETWEEN 0 AND ?14
                                        THEN updated_at_ms ELSE ?9 END,
                   terminal_at_ms = CASE WHEN ?11 THEN coalesce(terminal_at_ms, ?9) END,
                   waiting_since_ms = CASE WHEN ?12 THEN ?9 WHEN ?13 THEN waiting_since_ms END,
                   trouble = NULL, trouble_since_ms = NULL
               WHERE id = ?1";
    context.tx.prepare_cached(sql)?.execute(rusqlite::params![
        key,
        task.context_id.as_ref().map(|id| id.as_str()),
        state.word(),
        task.status.raw_state,
        v1::status(&task.status, Extras::Keep).to_string(),
        object_json(&task.metadata),
        object_json(&task.extra),
        record.settled,
        context.now_ms,
        channel.word(),
        state.is_terminal(),
        waits_anew,
        state.is_interrupted(),
        PROGRESS_MS,
    ])?;
    Ok(())
}

/// An agent that shows the task again takes back that it was lost.
fn clear_verdict(context: &mut WriteContext<'_>, key: TaskKey, state: TaskState) -> Result<(), StoreError> {
    let sql = "UPDATE tasks SET verdict = NULL, terminal_at_ms = CASE WHEN ?2 THEN terminal_at_ms END
               WHERE id = ?1 AND verdict IS NOT NULL";
    let changed = context.tx.prepare_cached(sql)?.execute((key, state.is_terminal()))?;
    if changed > 0 {
        let body = json!({ "state": state.word(), "found": true });
        announce(context, key, "poll", "status", &body)?;
    }
    Ok(())
}

fn agent_of(context: &WriteContext<'_>, key: TaskKey) -> Result<AgentKey, StoreError> {
    let sql = "SELECT agent_id FROM tasks WHERE id = ?1";
    Ok(context.tx.prepare_cached(sql)?.query_row([key], |row| row.get(0))?)
}

fn status_text(task: &Task) -> String {
    task.status.message.as_ref().map(|message| excerpt(&message.text()).to_owned()).unwrap_or_default()
}

fn announce_artifact(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    artifact: &Artifact,
    from_part: usize,
    channel: Channel,
) -> Result<(), StoreError> {
    let new = artifact.parts.get(from_part..).unwrap_or_default();
    let text: String = new
        .iter()
        .filter_map(|part| match &part.content {
            PartContent::Text(text) => Some(text.as_str()),
            PartContent::Raw(_) | PartContent::Url(_) | PartContent::Data(_) | PartContent::Unknown(_) => {
                None
            }
        })
        .collect();
    let body = json!({
        "artifactId": excerpt(artifact.artifact_id.as_str()),
        "name": artifact.name.as_deref().map(excerpt),
        "append": from_part > 0,
        "parts": new.len(),
        "text": excerpt(&text),
    });
    announce(context, key, channel.word(), "artifact", &body)
}

fn announce_message(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    record: &TaskRecord,
    channel: Channel,
) -> Result<(), StoreError> {
    let Some(message) = record.task.history.last() else { return Ok(()) };
    let role = match message.role {
        taskbell_core::task::Role::User => "user",
        taskbell_core::task::Role::Agent | taskbell_core::task::Role::Unspecified => "agent",
    };
    let body = json!({ "role": role, "text": excerpt(&message.text()) });
    announce(context, key, channel.word(), "message", &body)
}
