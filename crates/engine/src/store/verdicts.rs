//! Verdicts of callbacks: given in the transaction that applies a read which began after they were kept.
//!
//! What a verdict is is decided in `taskbell_core::verdict`. The document of the read is kept once, however many
//! callbacks it judged, and only where it judged any.

use rusqlite::{Connection, OptionalExtension};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use taskbell_core::callback::Shape;
use taskbell_core::dialect::read;
use taskbell_core::dialect::v1::{self, Extras};
use taskbell_core::ids::TaskId;
use taskbell_core::json::parse;
use taskbell_core::oddity::Oddity;
use taskbell_core::state::TaskState;
use taskbell_core::task::{StatusUpdate, StreamEvent, Task, TaskStatus};
use taskbell_core::verdict::{self, Fact, Judgement, Reason, Verdict};

use super::callbacks::set_clean;
use super::error::StoreError;
use super::keys::{CallbackKey, TaskKey};
use super::tasks::announce;
use super::writer::WriteContext;
use super::{agents, allowance, bodies, ends};

/// Octets of a confirmed document that are kept; a longer one is kept without its content.
const DOCUMENT_MAX: usize = 2 << 20;
/// Callbacks judged by one read. What is over waits for the next one.
const AT_ONCE: u32 = 500;
/// Changes of a task that are looked through for states that it was in.
const LOOKED_BACK: u32 = 2_000;

/// What a read settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settled {
    pub judged: u32,
    /// Claims of a state that the task as read does not show (yet).
    pub ahead: u32,
    /// More callbacks wait for a verdict than were judged at once.
    pub more: bool,
}

struct Open {
    key: CallbackKey,
    at_ms: i64,
    body: Option<Vec<u8>>,
    shape: Shape,
    claimed_task_id: String,
    state: Option<TaskState>,
    raw_state: Option<String>,
    was: Verdict,
}

/// Judges all that `task`, read since the task's number was `dirty`, can judge, and marks it clean up to there.
pub(super) fn settle(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    dirty: u64,
    task: &Task,
) -> Result<Settled, StoreError> {
    let open = open_claims(context, key, dirty)?;
    let more = open.len() == AT_ONCE as usize;
    if !more {
        set_clean(context, key, dirty)?;
    }
    let mut settled = Settled { more, ..Settled::default() };
    if open.is_empty() {
        return Ok(settled);
    }
    let confirmation = keep_document(context, key, task)?;
    let was_in = states_before(context, key, task.status.state, &open)?;
    for callback in open {
        let claim = callback.claim();
        let sameness = verdict::sameness(&claim).map(|text| Sha256::digest(text).to_vec());
        let told_before = was_told_before(context, key, callback.key, sameness.as_deref())?;
        let judged = verdict::judge(&claim, Fact { task, was_in: &was_in }, told_before);
        settled.judged += 1;
        settled.ahead += u32::from(judged.verdict == Verdict::Ahead && callback.state.is_some());
        // One that was judged before was compared with what came before it then.
        let out_of_order =
            callback.was != Verdict::Ahead && note_claimed_state(context, key, callback.state)?;
        let sql = "UPDATE callbacks SET confirmation_ref = ?2, sameness = ?3,
                       out_of_order = out_of_order OR ?4, confirmed_state = ?5
                   WHERE id = ?1";
        let is = task.status.state.word();
        let values = (callback.key, confirmation, sameness, out_of_order, is);
        context.tx.prepare_cached(sql)?.execute(values)?;
        give(context, key, &callback, judged)?;
        let tells_the_end = task.status.state.is_terminal() && callback.state == Some(task.status.state);
        if tells_the_end && matches!(judged.verdict, Verdict::Confirmed | Verdict::Ahead) {
            ends::note_told(context, key, callback.at_ms)?;
        }
        if judged.reason == Reason::AnotherEnd {
            note_false_end(context, key, callback.state, task.status.state)?;
        }
    }
    Ok(settled)
}

/// The agent says that it has no such task: nothing will ever confirm these.
pub fn settle_unknown(context: &mut WriteContext<'_>, key: TaskKey, dirty: u64) -> Result<(), StoreError> {
    set_clean(context, key, dirty)?;
    let judged = Judgement { verdict: Verdict::Unmatched, reason: Reason::NoSuchTask };
    for callback in open_claims(context, key, dirty)? {
        give(context, key, &callback, judged)?;
    }
    Ok(())
}

/// The agent could not be read: what waits for it is still a claim.
pub fn set_unreachable(context: &mut WriteContext<'_>, key: TaskKey) -> Result<(), StoreError> {
    let judged = Judgement { verdict: Verdict::Unreachable, reason: Reason::AgentNotRead };
    for callback in open_claims(context, key, u64::MAX)? {
        if callback.was == Verdict::Pending {
            give(context, key, &callback, judged)?;
        }
    }
    Ok(())
}

/// Which of a task's callbacks are not settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waiting {
    /// Some wait for their first verdict.
    pub first_verdict: bool,
    /// Some claim a state that the task did not show yet.
    pub ahead: bool,
}

pub fn waiting(connection: &Connection, key: TaskKey) -> Result<Waiting, StoreError> {
    let sql = "SELECT coalesce(max(verdict <> 'ahead'), 0),
                   coalesce(max(verdict = 'ahead' AND claimed_state IS NOT NULL), 0)
               FROM callbacks INDEXED BY callbacks_open
               WHERE task_ref = ?1 AND verdict IN ('pending', 'unreachable', 'ahead')";
    let read = |row: &rusqlite::Row<'_>| Ok(Waiting { first_verdict: row.get(0)?, ahead: row.get(1)? });
    Ok(connection.prepare_cached(sql)?.query_row([key], read)?)
}

/// Tasks some of whose callbacks are not settled.
pub fn tasks_with_open_claims(connection: &Connection) -> Result<Vec<TaskKey>, StoreError> {
    let sql = "SELECT DISTINCT task_ref FROM callbacks INDEXED BY callbacks_open
               WHERE verdict IN ('pending', 'unreachable', 'ahead') AND task_ref IS NOT NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn open_claims(context: &WriteContext<'_>, key: TaskKey, dirty: u64) -> Result<Vec<Open>, StoreError> {
    let sql = "SELECT id, at_ms, body, shape, claimed_task_id, claimed_state, claimed_raw_state, verdict
               FROM callbacks INDEXED BY callbacks_open
               WHERE task_ref = ?1 AND verdict IN ('pending', 'unreachable', 'ahead') AND dirty <= ?2
               ORDER BY id LIMIT ?3";
    let mut statement = context.tx.prepare_cached(sql)?;
    let dirty = i64::try_from(dirty).unwrap_or(i64::MAX);
    let rows = statement.query_map((key, dirty, AT_ONCE), |row| {
        Ok(Open {
            key: row.get(0)?,
            at_ms: row.get(1)?,
            body: row.get(2)?,
            shape: agents::decoded(row, 3, Shape::from_word)?,
            claimed_task_id: row.get(4)?,
            state: agents::decoded_option(row, 5, |word| Some(TaskState::from_word(word)))?,
            raw_state: row.get(6)?,
            was: agents::decoded(row, 7, Verdict::from_word)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

impl Open {
    /// The claim in full, or what was read of it when it came: a body may be readable to its ids and state only.
    fn claim(&self) -> StreamEvent {
        read_body(self.body.as_deref(), self.shape).unwrap_or_else(|| {
            let state = self.state.unwrap_or(TaskState::Unknown);
            let mut status = TaskStatus::new(state);
            status.raw_state = self.raw_state.clone().unwrap_or_default();
            StreamEvent::Status(StatusUpdate {
                task_id: Some(TaskId::new(self.claimed_task_id.clone())),
                context_id: None,
                status,
                is_final: None,
                metadata: serde_json::Map::new(),
                extra: serde_json::Map::new(),
            })
        })
    }
}

/// A callback's body as an event; none where it is no longer kept, or none in full.
pub fn read_body(body: Option<&[u8]>, shape: Shape) -> Option<StreamEvent> {
    let event = read::stream_event(parse(body?).ok()?).ok()?;
    let is_that = matches!(
        (&event, shape),
        (StreamEvent::Task(_), Shape::Task)
            | (StreamEvent::Message(_), Shape::Message)
            | (StreamEvent::Status(_), Shape::Status)
            | (StreamEvent::Artifact(_), Shape::Artifact)
    );
    is_that.then_some(event)
}

/// Writes a verdict, and says so where it is another one and not one of a flood.
fn give(
    context: &mut WriteContext<'_>,
    task: TaskKey,
    callback: &Open,
    judged: Judgement,
) -> Result<(), StoreError> {
    let sql = "UPDATE callbacks SET verdict = ?2, reason = ?3, verdict_at_ms = ?4 WHERE id = ?1";
    let values = (callback.key, judged.verdict.word(), judged.reason.word(), context.now_ms);
    context.tx.prepare_cached(sql)?.execute(values)?;
    if judged.verdict != callback.was && allowance::take(context, Some(task)) {
        let body = json!({
            "callback": callback.key.0, "verdict": judged.verdict.word(),
            "claimed": callback.state.map(TaskState::word), "text": judged.reason.sentence(),
        });
        announce(context, task, "push", "callback", &body)?;
    }
    Ok(())
}

fn keep_document(context: &mut WriteContext<'_>, key: TaskKey, task: &Task) -> Result<i64, StoreError> {
    let mut document = v1::task(task, Extras::Keep).to_string();
    let shortened = document.len() > DOCUMENT_MAX;
    if shortened {
        let bare = Task { artifacts: Vec::new(), history: Vec::new(), ..task.clone() };
        document = v1::task(&bare, Extras::Drop).to_string();
        if document.len() > DOCUMENT_MAX {
            let bare =
                Task { metadata: serde_json::Map::new(), status: TaskStatus::new(bare.status.state), ..bare };
            document = v1::task(&bare, Extras::Drop).to_string();
        }
    }
    let sha256 = Sha256::digest(&document).to_vec();
    let sql = "SELECT id FROM confirmations WHERE task_ref = ?1 ORDER BY id DESC LIMIT 1";
    let last: Option<i64> = context.tx.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()?;
    let sql = "UPDATE confirmations SET at_ms = ?3 WHERE id = ?1 AND sha256 = ?2";
    if let Some(last) = last
        && context.tx.prepare_cached(sql)?.execute((last, &sha256, context.now_ms))? > 0
    {
        return Ok(last);
    }
    let sql = "INSERT INTO confirmations (task_ref, at_ms, sha256, document, size, shortened)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let size = i64::try_from(document.len()).unwrap_or(i64::MAX);
    let values = (key, context.now_ms, &sha256, &document, size, shortened);
    let id = context.tx.prepare_cached(sql)?.insert(values)?;
    bodies::add_document(context, document.len() as u64)?;
    Ok(id)
}

/// States that the task was shown in, where a claim makes that matter.
fn states_before(
    context: &WriteContext<'_>,
    key: TaskKey,
    is: TaskState,
    open: &[Open],
) -> Result<Vec<TaskState>, StoreError> {
    let matters = |state: TaskState| state != is && !state.is_terminal();
    if is.is_terminal() || !open.iter().filter_map(|callback| callback.state).any(matters) {
        return Ok(Vec::new());
    }
    let sql = "SELECT DISTINCT json_extract(body_json, '$.from') FROM (SELECT kind, body_json FROM changes
                   WHERE task_ref = ?1 ORDER BY seq DESC LIMIT ?2) WHERE kind = 'status'";
    let mut statement = context.tx.prepare_cached(sql)?;
    let words = statement.query_map((key, LOOKED_BACK), |row| row.get::<_, Option<String>>(0))?;
    let words: Vec<Option<String>> = words.collect::<Result<_, _>>()?;
    Ok(words.into_iter().flatten().map(|word| TaskState::from_word(&word)).collect())
}

fn was_told_before(
    context: &WriteContext<'_>,
    key: TaskKey,
    callback: CallbackKey,
    sameness: Option<&[u8]>,
) -> Result<bool, StoreError> {
    let Some(sameness) = sameness else { return Ok(false) };
    let sql = "SELECT EXISTS (SELECT 1 FROM callbacks WHERE task_ref = ?1 AND sameness = ?2 AND id < ?3)";
    Ok(context.tx.prepare_cached(sql)?.query_row((key, sameness, callback), |row| row.get(0))?)
}

/// Whether a callback says less than an earlier one did.
fn note_claimed_state(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    state: Option<TaskState>,
) -> Result<bool, StoreError> {
    let Some(state) = state else { return Ok(false) };
    let mut statement = context.tx.prepare_cached("SELECT state FROM claimed_states WHERE task_ref = ?1")?;
    let words = statement.query_map([key], |row| row.get::<_, String>(0))?;
    let before: Vec<TaskState> =
        words.map(|word| word.map(|word| TaskState::from_word(&word))).collect::<Result<_, _>>()?;
    if !before.contains(&state) {
        let sql = "INSERT INTO claimed_states (task_ref, state) VALUES (?1, ?2)";
        context.tx.prepare_cached(sql)?.execute((key, state.word()))?;
    }
    Ok(verdict::is_out_of_order(state, &before))
}

fn note_false_end(
    context: &mut WriteContext<'_>,
    key: TaskKey,
    claimed: Option<TaskState>,
    is: TaskState,
) -> Result<(), StoreError> {
    let Some(claimed) = claimed else { return Ok(()) };
    let oddity = Oddity::FalseEnd { claimed, is };
    let agent = super::tasks::get(context.tx, key)?.agent_key;
    agents::record_oddity(context, agent, oddity.kind(), &oddity.detail())?;
    Ok(())
}
