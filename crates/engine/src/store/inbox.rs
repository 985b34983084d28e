//! What came to the inbox, for people: callbacks with their verdicts and what was refused, in one order of time.

mod pages;

use std::fmt;
use std::str::FromStr;

use rusqlite::{Connection, OptionalExtension, Row};
use taskbell_core::callback::{ProofWord, RegistrationPath, Shape};
use taskbell_core::ids::{AgentName, TaskId, TaskRef};
use taskbell_core::search::{Is, Query};
use taskbell_core::state::TaskState;
use taskbell_core::verdict::{Reason, Verdict};

use super::agents::{decoded, decoded_option};
use super::error::StoreError;
use super::keys::{RegistrationKey, TaskKey};
use pages::Search;

/// Names a row of the inbox: `17`, `q3`, `r5.proof`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ItemId {
    Callback(i64),
    /// It proved itself and was of another task.
    Quarantined(i64),
    /// The refusals of one registration for one reason, together.
    Refused(i64, String),
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Callback(id) => write!(f, "{id}"),
            Self::Quarantined(id) => write!(f, "q{id}"),
            Self::Refused(registration, reason) => write!(f, "r{registration}.{reason}"),
        }
    }
}

/// Not a name of a row of the inbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no row of the inbox has the id {0:?}")]
pub struct ItemIdError(String);

impl FromStr for ItemId {
    type Err = ItemIdError;
    fn from_str(text: &str) -> Result<Self, ItemIdError> {
        let id = || match text.split_at_checked(1)? {
            ("q", rest) => Some(Self::Quarantined(rest.parse().ok()?)),
            ("r", rest) => {
                let (registration, reason) = rest.split_once('.')?;
                Some(Self::Refused(registration.parse().ok()?, reason.to_owned()))
            }
            _ => Some(Self::Callback(text.parse().ok()?)),
        };
        id().ok_or_else(|| ItemIdError(text.chars().take(40).collect()))
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemRow {
    pub id: ItemId,
    pub registration: RegistrationKey,
    pub path: RegistrationPath,
    pub agent: Option<AgentName>,
    pub task: Option<TaskRef>,
    pub task_key: Option<TaskKey>,
    /// When it came first; of refusals, when the last one came.
    pub at_ms: i64,
    pub last_at_ms: i64,
    pub count: u64,
    pub size: Option<u64>,
    pub shape: Option<Shape>,
    pub claimed: Option<TaskState>,
    pub claimed_raw: Option<String>,
    pub confirmed: Option<TaskState>,
    pub verdict: Verdict,
    pub verdict_at_ms: Option<i64>,
    pub reason: Option<Reason>,
    pub token_proof: Option<ProofWord>,
    pub credential_proof: Option<ProofWord>,
    pub out_of_order: bool,
    /// Of what was refused: the listener's word, and a cleaned line.
    pub refusal: Option<(String, String)>,
}

/// Which rows to list. All that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ItemFilter {
    pub agent: Option<AgentName>,
    pub task: Option<TaskKey>,
    /// Empty: all.
    pub verdicts: Vec<Verdict>,
    pub query: Query,
    /// The wall clock.
    pub now_ms: i64,
}

impl ItemFilter {
    fn takes(&self, verdict: Verdict) -> bool {
        (self.verdicts.is_empty() || self.verdicts.contains(&verdict))
            && self.query.verdicts.takes(&verdict)
            && self.query.says_of(Is::Open).is_none_or(|open| verdict.is_open() == open)
    }

    /// Whether what claims no state may be meant.
    fn takes_no_state(&self) -> bool {
        self.query.states.any.is_empty()
    }

    fn since_ms(&self) -> i64 {
        self.query.since_ms.map_or(i64::MIN, |ago| self.now_ms.saturating_sub(ago))
    }
}

/// Where a page goes on: after this row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemCursor {
    pub at_ms: i64,
    /// Rows already shown of that very millisecond.
    pub skip: u32,
}

const CALLBACKS: &str =
    "SELECT 'c', c.id, NULL, c.registration_ref, r.path, a.name, t.task_id, c.task_ref, c.at_ms,
        c.last_at_ms, c.count, c.size, c.shape, c.claimed_state, c.claimed_raw_state, c.confirmed_state,
        c.verdict, c.verdict_at_ms, c.reason, c.token_proof, c.credential_proof, c.out_of_order, NULL
    FROM callbacks c JOIN registrations r ON r.id = c.registration_ref
    LEFT JOIN tasks t ON t.id = c.task_ref LEFT JOIN agents a ON a.id = coalesce(t.agent_id, r.agent_id)";
const QUARANTINED: &str =
    "SELECT 'q', c.id, c.reason, c.registration_ref, r.path, a.name, t.task_id, r.task_ref, c.at_ms,
        c.last_at_ms, c.count, c.size, NULL, NULL, NULL, NULL,
        'unmatched', c.at_ms, 'other_task', NULL, NULL, 0, c.detail
    FROM quarantine c JOIN registrations r ON r.id = c.registration_ref
    LEFT JOIN tasks t ON t.id = r.task_ref LEFT JOIN agents a ON a.id = r.agent_id";
const REFUSED: &str =
    "SELECT 'r', c.registration_ref, c.reason, c.registration_ref, r.path, a.name, t.task_id, r.task_ref,
        c.last_at_ms, c.last_at_ms, c.count, NULL, NULL, NULL, NULL, NULL,
        'rejected', c.last_at_ms, CASE c.reason WHEN 'proof' THEN 'wrong_proof' END, NULL, NULL, 0, c.detail
    FROM refusals c JOIN registrations r ON r.id = c.registration_ref
    LEFT JOIN tasks t ON t.id = r.task_ref LEFT JOIN agents a ON a.id = r.agent_id";

/// One page, the latest first.
pub fn list(
    connection: &Connection,
    filter: &ItemFilter,
    after: Option<ItemCursor>,
    limit: u32,
) -> Result<Vec<ItemRow>, StoreError> {
    let skip = after.map_or(0, |cursor| cursor.skip);
    let wanted = usize::try_from(limit.saturating_add(skip)).unwrap_or(usize::MAX);
    let before_ms = after.map_or(i64::MAX, |cursor| cursor.at_ms);
    let Some(search) = Search::of(connection, filter)? else { return Ok(Vec::new()) };
    let keys = pages::callbacks(connection, filter, &search, before_ms, wanted)?;
    let mut rows = Vec::with_capacity(keys.len());
    for (_, key) in keys {
        rows.extend(get(connection, &ItemId::Callback(key))?);
    }
    // Each kind in its own order: together they would have to be sorted as a whole.
    if filter.takes(Verdict::Unmatched) && filter.takes_no_state() {
        rows.extend(pages::others(connection, QUARANTINED, "c.at_ms", filter, &search, before_ms, wanted)?);
    }
    if filter.takes(Verdict::Rejected) && filter.takes_no_state() {
        rows.extend(pages::others(connection, REFUSED, "c.last_at_ms", filter, &search, before_ms, wanted)?);
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.at_ms));
    let first = usize::try_from(skip).unwrap_or(usize::MAX);
    // What was shown of the cursor's millisecond comes first again.
    Ok(rows.into_iter().skip(first).take(usize::try_from(limit).unwrap_or(usize::MAX)).collect())
}

/// One row.
pub fn get(connection: &Connection, id: &ItemId) -> Result<Option<ItemRow>, StoreError> {
    let row = match id {
        ItemId::Callback(id) => {
            connection.prepare_cached(&format!("{CALLBACKS} WHERE c.id = ?1"))?.query_row([id], read)
        }
        ItemId::Quarantined(id) => {
            connection.prepare_cached(&format!("{QUARANTINED} WHERE c.id = ?1"))?.query_row([id], read)
        }
        ItemId::Refused(registration, reason) => connection
            .prepare_cached(&format!("{REFUSED} WHERE c.registration_ref = ?1 AND c.reason = ?2"))?
            .query_row((registration, reason), read),
    };
    Ok(row.optional()?)
}

/// The task as a read told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmationRow {
    pub at_ms: i64,
    /// A 1.0 task.
    pub document: String,
    /// It was too long to be kept with its content.
    pub shortened: bool,
}

pub fn confirmation(connection: &Connection, id: i64) -> Result<Option<ConfirmationRow>, StoreError> {
    let sql = "SELECT at_ms, document, shortened FROM confirmations WHERE id = ?1";
    let row = connection.prepare_cached(sql)?.query_row([id], |row| {
        Ok(ConfirmationRow { at_ms: row.get(0)?, document: row.get(1)?, shortened: row.get(2)? })
    });
    Ok(row.optional()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<ItemRow> {
    let number: i64 = row.get(1)?;
    let word: Option<String> = row.get(2)?;
    let kind: String = row.get(0)?;
    let id = match (kind.as_str(), &word) {
        ("q", _) => ItemId::Quarantined(number),
        ("r", Some(reason)) => ItemId::Refused(number, reason.clone()),
        _ => ItemId::Callback(number),
    };
    let agent = decoded_option(row, 5, |text| AgentName::new(text).ok())?;
    let task_id: Option<String> = row.get(6)?;
    let detail: Option<String> = row.get(22)?;
    let state = |column| decoded_option(row, column, |word| Some(TaskState::from_word(word)));
    Ok(ItemRow {
        id,
        registration: row.get(3)?,
        path: decoded(row, 4, RegistrationPath::parse)?,
        task: agent.clone().zip(task_id).map(|(agent, task)| TaskRef { agent, task: TaskId::new(task) }),
        agent,
        task_key: row.get::<_, Option<i64>>(7)?.map(TaskKey),
        at_ms: row.get(8)?,
        last_at_ms: row.get(9)?,
        count: row.get::<_, i64>(10)?.unsigned_abs(),
        size: row.get::<_, Option<i64>>(11)?.map(i64::unsigned_abs),
        shape: decoded_option(row, 12, Shape::from_word)?,
        claimed: state(13)?,
        claimed_raw: row.get(14)?,
        confirmed: state(15)?,
        verdict: decoded(row, 16, Verdict::from_word)?,
        verdict_at_ms: row.get(17)?,
        reason: decoded_option(row, 18, Reason::from_word)?,
        token_proof: decoded_option(row, 19, ProofWord::from_word)?,
        credential_proof: decoded_option(row, 20, ProofWord::from_word)?,
        out_of_order: row.get(21)?,
        refusal: word.zip(detail),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_reads_back_and_nothing_else_is_one() {
        for id in [ItemId::Callback(17), ItemId::Quarantined(3), ItemId::Refused(5, "proof".to_owned())] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for text in ["", "q", "r5", "rx.y", "x1", "é", "1 OR 1"] {
            assert!(text.parse::<ItemId>().is_err(), "{text}");
        }
    }
}
