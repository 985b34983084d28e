//! The full text index of tasks: what it is made from, when it is made anew, and what is found in it.
//!
//! A change that brings a question, an end, a reply or a note leaves a row in `search_due` in its own transaction; what a
//! task's words are is read and indexed later, a little at a time (`search_index`). Progress costs nothing. The index keeps no
//! text, so the place of a hit is looked for in the task's own rows.

use rusqlite::{Connection, OptionalExtension};
use taskbell_core::dialect::read;
use taskbell_core::search::{self, Word, index_text};
use taskbell_core::task::{Message, Part, PartContent};
use taskbell_core::text::one_line;
use taskbell_core::verdict::Verdict;

use super::error::StoreError;
use super::keys::TaskKey;
use super::writer::WriteContext;

/// Octets of an answer that are indexed, and of a conversation: to index more would hold other writers up.
const ANSWER: usize = 128 << 10;
const CONVERSATION: usize = 32 << 10;
/// Characters of a hit's line.
const LINE: usize = 140;

/// The words of one task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Document {
    pub title: String,
    /// The agent's last words on the state.
    pub question: String,
    pub answer: String,
    pub conversation: String,
    pub note: String,
    /// Its agent's name, its id and its context's.
    pub ids: String,
}

impl Document {
    pub fn octets(&self) -> usize {
        let Self { title, question, answer, conversation, note, ids } = self;
        [title, question, answer, conversation, note, ids].into_iter().map(String::len).sum()
    }
}

/// Reads a task's words. `None`: there is no such task.
pub fn document(connection: &Connection, key: TaskKey) -> Result<Option<Document>, StoreError> {
    let Some(mut document) = head(connection, key)? else { return Ok(None) };
    document.answer = answer(connection, key)?;
    document.conversation = conversation(connection, key)?;
    Ok(Some(document))
}

/// What is short: all but answer and conversation.
fn head(connection: &Connection, key: TaskKey) -> Result<Option<Document>, StoreError> {
    let sql =
        "SELECT t.title, t.status_json, coalesce(n.text, ''), a.name, t.task_id, coalesce(t.context_id, '')
               FROM tasks t JOIN agents a ON a.id = t.agent_id LEFT JOIN task_notes n ON n.task_ref = t.id
               WHERE t.id = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        let ids: [String; 3] = [row.get(3)?, row.get(4)?, row.get(5)?];
        Ok(Document {
            title: row.get(0)?,
            question: words_of_status(&row.get::<_, String>(1)?),
            note: row.get(2)?,
            ids: ids.join(" "),
            ..Document::default()
        })
    };
    Ok(connection.prepare_cached(sql)?.query_row([key], read).optional()?)
}

fn words_of_status(json: &str) -> String {
    let status = serde_json::from_str(json).ok().and_then(|value| read::status(value).ok());
    let mut text = status.and_then(|status| status.message).map(|message| message.text()).unwrap_or_default();
    cut(&mut text, CONVERSATION);
    text
}

fn answer(connection: &Connection, key: TaskKey) -> Result<String, StoreError> {
    let sql = "SELECT p.part_json FROM artifacts a CROSS JOIN artifact_parts p ON p.artifact_ref = a.id
               WHERE a.task_ref = ?1 ORDER BY a.position, a.id, p.position";
    gather(connection, sql, key, ANSWER, |text, value| add_part(text, &read::part(value)))
}

fn conversation(connection: &Connection, key: TaskKey) -> Result<String, StoreError> {
    let sql = "SELECT message_json FROM messages WHERE task_ref = ?1 ORDER BY position, id";
    gather(connection, sql, key, CONVERSATION, |text, value| {
        if let Ok(Message { parts, .. }) = read::message(value) {
            parts.iter().for_each(|part| add_part(text, part));
            text.push('\n');
        }
    })
}

/// Chunks of one text follow each other without a space: a word may be divided between two.
fn add_part(text: &mut String, part: &Part) {
    match &part.content {
        PartContent::Text(words) => text.push_str(words),
        PartContent::Data(value) => {
            text.push('\n');
            text.push_str(&value.to_string());
            text.push('\n');
        }
        PartContent::Url(_) | PartContent::Raw(_) | PartContent::Unknown(_) => {}
    }
}

fn gather(
    connection: &Connection,
    sql: &str,
    key: TaskKey,
    most: usize,
    add: impl Fn(&mut String, serde_json::Value),
) -> Result<String, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([key])?;
    let mut text = String::new();
    while text.len() < most
        && let Some(row) = rows.next()?
    {
        let json: String = row.get(0)?;
        let value = serde_json::from_str(&json).map_err(|_| StoreError::Unreadable {
            what: "json",
            reason: "not what this version writes".to_owned(),
        })?;
        add(&mut text, value);
    }
    cut(&mut text, most);
    Ok(text)
}

fn cut(text: &mut String, most: usize) {
    text.truncate(text.floor_char_boundary(most));
}

/// The task's words are another: they are indexed soon. In the transaction of the change.
pub(super) fn set_due(context: &mut WriteContext<'_>, key: TaskKey) -> Result<(), StoreError> {
    let sql =
        "INSERT INTO search_due (task_ref, n) VALUES (?1, 1) ON CONFLICT (task_ref) DO UPDATE SET n = n + 1";
    context.tx.prepare_cached(sql)?.execute([key])?;
    Ok(())
}

/// A task that is to be indexed: one that changed, with the number of its change, or the next of those that were there
/// before the index was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    Changed { key: TaskKey, n: i64 },
    Old(TaskKey),
}

impl Due {
    pub fn key(self) -> TaskKey {
        match self {
            Self::Changed { key, .. } | Self::Old(key) => key,
        }
    }
}

/// What changed first, then the newest of what was there before.
pub fn due(connection: &Connection, limit: u32) -> Result<Vec<Due>, StoreError> {
    let sql = "SELECT task_ref, n FROM search_due ORDER BY task_ref DESC LIMIT ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let changed =
        statement.query_map([limit], |row| Ok(Due::Changed { key: row.get(0)?, n: row.get(1)? }))?;
    let changed: Vec<Due> = changed.collect::<Result<_, _>>()?;
    if !changed.is_empty() {
        return Ok(changed);
    }
    let Some(next) = next_old(connection)? else { return Ok(Vec::new()) };
    let sql = "SELECT id FROM tasks WHERE id <= ?1 ORDER BY id DESC LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let old = statement.query_map((next, limit), |row| Ok(Due::Old(row.get(0)?)))?;
    Ok(old.collect::<Result<_, _>>()?)
}

/// Some were there before the index, and their end was not noted yet.
pub fn has_old(connection: &Connection) -> Result<bool, StoreError> {
    Ok(next_old(connection)?.is_some())
}

fn next_old(connection: &Connection) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'search_next'";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?)
}

/// How many tasks that were there before the index are not in it yet, about.
pub fn left(connection: &Connection) -> Result<u64, StoreError> {
    let Some(next) = next_old(connection)? else { return Ok(0) };
    let sql = "SELECT count(*) FROM tasks WHERE id <= ?1";
    let left: i64 = connection.prepare_cached(sql)?.query_row([next], |row| row.get(0))?;
    Ok(left.unsigned_abs())
}

/// Writes what was read of tasks that were due. One that changed meanwhile stays due.
pub fn index(context: &mut WriteContext<'_>, read: &[(Due, Option<Document>)]) -> Result<(), StoreError> {
    let mut passed: Option<i64> = None;
    // Upwards: FTS5 writes out what it gathered whenever a key is lower than the last.
    let mut read: Vec<&(Due, Option<Document>)> = read.iter().collect();
    read.sort_by_key(|(due, _)| due.key());
    for (due, document) in read {
        let key = due.key();
        match due {
            Due::Changed { n, .. } => {
                let sql = "DELETE FROM search_due WHERE task_ref = ?1 AND n = ?2";
                context.tx.prepare_cached(sql)?.execute((key, n))?;
            }
            Due::Old(_) => passed = Some(passed.map_or(key.0, |lowest| lowest.min(key.0))),
        }
        context.tx.prepare_cached("DELETE FROM search WHERE rowid = ?1")?.execute([key])?;
        let sql = "SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?1)";
        let is_there: bool = context.tx.prepare_cached(sql)?.query_row([key], |row| row.get(0))?;
        let Some(words) = document.as_ref().filter(|_| is_there) else { continue };
        let sql = "INSERT INTO search (rowid, title, question, answer, conversation, note, ids)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        context.tx.prepare_cached(sql)?.execute(rusqlite::params![
            key,
            index_text(&words.title),
            index_text(&words.question),
            index_text(&words.answer),
            index_text(&words.conversation),
            index_text(&words.note),
            index_text(&words.ids),
        ])?;
    }
    if let Some(passed) = passed {
        let sql = "UPDATE meta SET value = CAST(?1 AS TEXT) WHERE key = 'search_next'";
        context.tx.prepare_cached(sql)?.execute([passed - 1])?;
    }
    Ok(())
}

/// Nothing that was there before is left to be indexed.
pub fn finish_old(context: &mut WriteContext<'_>) -> Result<(), StoreError> {
    context.tx.prepare_cached("DELETE FROM meta WHERE key = 'search_next'")?.execute([])?;
    Ok(())
}

/// Tasks that have something: their keys, sorted. All are gathered, also of a word that every task has: to ask each
/// task alone costs more, since FTS5 joins all words with the same beginning anew for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hits(Vec<i64>);

impl Hits {
    /// The keys, where there are `most` or less.
    pub fn few(&self, most: usize) -> Option<Vec<i64>> {
        (self.0.len() <= most).then(|| self.0.clone())
    }

    pub fn holds(&self, key: i64) -> bool {
        self.0.binary_search(&key).is_ok()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The tasks whose words fit an expression of FTS5.
pub fn hits(connection: &Connection, expression: &str) -> Result<Hits, StoreError> {
    let sql = "SELECT rowid FROM search WHERE search MATCH ?1 ORDER BY rowid";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([expression], |row| row.get(0))?;
    Ok(Hits(rows.collect::<Result<_, _>>()?))
}

/// The tasks that have a callback with one of these verdicts.
pub fn tasks_with_verdicts(connection: &Connection, verdicts: &[Verdict]) -> Result<Hits, StoreError> {
    let mut keys: Vec<i64> = Vec::new();
    for verdict in verdicts {
        let sql = match verdict {
            Verdict::Pending | Verdict::Confirmed | Verdict::Duplicate => {
                "SELECT task_ref FROM callbacks INDEXED BY callbacks_by_time
                 WHERE at_ms >= ?2 AND verdict = ?1 AND task_ref IS NOT NULL"
            }
            Verdict::Ahead
            | Verdict::Behind
            | Verdict::Rejected
            | Verdict::Unmatched
            | Verdict::Unreachable => {
                "SELECT task_ref FROM callbacks INDEXED BY callbacks_unlike
                 WHERE verdict NOT IN ('pending', 'confirmed', 'duplicate') AND at_ms >= ?2 AND verdict = ?1
                   AND task_ref IS NOT NULL"
            }
        };
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map((verdict.word(), i64::MIN), |row| row.get(0))?;
        for key in rows {
            keys.push(key?);
        }
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(Hits(keys))
}

/// Where in a task the words of a query stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Title,
    Question,
    Note,
    Id,
    Answer,
    Conversation,
}

impl Place {
    pub fn word(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Question => "question",
            Self::Note => "note",
            Self::Id => "id",
            Self::Answer => "answer",
            Self::Conversation => "conversation",
        }
    }
}

/// Octets that are read for the hits of one page.
#[derive(Debug, Clone, Copy)]
pub struct Budget(pub usize);

/// The line of a task that has the most of `words`. Long texts are looked through while `budget` lasts.
pub fn hit(
    connection: &Connection,
    key: TaskKey,
    words: &[Word],
    budget: &mut Budget,
) -> Result<Option<(Place, search::Snippet)>, StoreError> {
    let Some(head) = head(connection, key)? else { return Ok(None) };
    let mut best: Option<(Place, search::Snippet)> = None;
    let mut look = |place: Place, text: &str| {
        let found = search::snippet(&one_line(text, usize::MAX), words, LINE);
        if let Some(found) =
            found.filter(|found| best.as_ref().is_none_or(|(_, best)| found.words > best.words))
        {
            best = Some((place, found));
        }
        best.as_ref().is_some_and(|(_, best)| best.words == words.len())
    };
    let short = [
        (Place::Title, &head.title),
        (Place::Question, &head.question),
        (Place::Note, &head.note),
        (Place::Id, &head.ids),
    ];
    for (place, text) in short {
        if look(place, text) {
            return Ok(best);
        }
    }
    type Long = fn(&Connection, TaskKey) -> Result<String, StoreError>;
    let long: [(Place, Long); 2] = [(Place::Answer, answer), (Place::Conversation, conversation)];
    for (place, read) in long {
        if budget.0 == 0 {
            break;
        }
        let text = read(connection, key)?;
        budget.0 = budget.0.saturating_sub(text.len());
        if look(place, &text) {
            break;
        }
    }
    Ok(best)
}
