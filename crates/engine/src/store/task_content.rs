//! What tasks contain: artifacts in parts, and history, as rows.
//!
//! Parts are rows of their own, so that a chunk is an insert however long the artifact has become. All
//! JSON here is 1.0's, with unknown members kept.

use rusqlite::{Connection, OptionalExtension};
use serde_json::{Map, Value};
use taskbell_core::dialect::read;
use taskbell_core::dialect::v1::{self, Extras};
use taskbell_core::ids::{ArtifactId, ContextId, TaskId};
use taskbell_core::task::{Artifact, Message, Part, Task};

use super::error::StoreError;
use super::keys::TaskKey;
use super::writer::WriteContext;

/// Text kept in the timeline; the whole is in the content.
const EXCERPT: usize = 2_000;

/// The beginning of a text, cut at a character.
pub(crate) fn excerpt(text: &str) -> &str {
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => text.get(..end).unwrap_or_default(),
        None => text,
    }
}

/// A task with everything that is kept of it, and the artifacts whose beginning was never seen.
pub fn load(connection: &Connection, key: TaskKey) -> Result<(Task, Vec<ArtifactId>), StoreError> {
    let sql = "SELECT task_id, context_id, status_json, metadata_json, extra_json FROM tasks WHERE id = ?1";
    let head = connection
        .prepare_cached(sql)?
        .query_row([key], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, Option<String>>(1)?,
                row.get::<_, String>(2)?,
                row.get::<_, Option<String>>(3)?,
                row.get::<_, Option<String>>(4)?,
            ))
        })
        .optional()?;
    let Some((task_id, context_id, status, metadata, extra)) = head else {
        return Err(StoreError::Missing { what: format!("task row {}", key.0) });
    };
    let (artifacts, incomplete) = artifacts(connection, key)?;
    let task = Task {
        id: TaskId::new(task_id),
        context_id: context_id.map(ContextId::new),
        status: read::status(json(&status)?).map_err(|_| unreadable("status"))?,
        artifacts,
        history: history(connection, key)?,
        metadata: object(metadata.as_deref())?,
        extra: object(extra.as_deref())?,
    };
    Ok((task, incomplete))
}

fn artifacts(connection: &Connection, key: TaskKey) -> Result<(Vec<Artifact>, Vec<ArtifactId>), StoreError> {
    let sql = "SELECT a.id, a.head_json, a.incomplete, p.part_json
               FROM artifacts a LEFT JOIN artifact_parts p ON p.artifact_ref = a.id
               WHERE a.task_ref = ?1 ORDER BY a.position, a.id, p.position";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([key])?;
    let mut artifacts: Vec<Artifact> = Vec::new();
    let mut incomplete = Vec::new();
    let mut current: Option<i64> = None;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        if current != Some(id) {
            current = Some(id);
            let head: String = row.get(1)?;
            let artifact = read::artifact(json(&head)?).map_err(|_| unreadable("artifact"))?;
            if row.get(2)? {
                incomplete.push(artifact.artifact_id.clone());
            }
            artifacts.push(artifact);
        }
        if let (Some(part), Some(artifact)) = (row.get::<_, Option<String>>(3)?, artifacts.last_mut()) {
            artifact.parts.push(read::part(json(&part)?));
        }
    }
    Ok((artifacts, incomplete))
}

fn history(connection: &Connection, key: TaskKey) -> Result<Vec<Message>, StoreError> {
    let sql = "SELECT message_json FROM messages WHERE task_ref = ?1 ORDER BY position, id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([key], |row| row.get::<_, String>(0))?;
    rows.map(|row| read::message(json(&row?)?).map_err(|_| unreadable("message"))).collect()
}

/// Writes an artifact in its place, whatever was there.
pub(super) fn put_artifact(
    context: &WriteContext<'_>,
    key: TaskKey,
    position: usize,
    artifact: &Artifact,
    incomplete: bool,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO artifacts (task_ref, artifact_id, position, head_json, incomplete)
               VALUES (?1, ?2, ?3, ?4, ?5)
               ON CONFLICT (task_ref, artifact_id) DO UPDATE
               SET position = excluded.position, head_json = excluded.head_json, incomplete = excluded.incomplete
               RETURNING id";
    let head = v1::artifact_head(artifact, Extras::Keep).to_string();
    let values = (key, artifact.artifact_id.as_str(), to_position(position), head, incomplete);
    let row: i64 = context.tx.prepare_cached(sql)?.query_row(values, |row| row.get(0))?;
    context.tx.prepare_cached("DELETE FROM artifact_parts WHERE artifact_ref = ?1")?.execute([row])?;
    insert_parts(context, row, 0, &artifact.parts)
}

/// Adds the parts from `from_part` on.
pub(super) fn extend_artifact(
    context: &WriteContext<'_>,
    key: TaskKey,
    artifact: &Artifact,
    from_part: usize,
) -> Result<(), StoreError> {
    let sql = "SELECT id FROM artifacts WHERE task_ref = ?1 AND artifact_id = ?2";
    let row: i64 =
        context.tx.prepare_cached(sql)?.query_row((key, artifact.artifact_id.as_str()), |row| row.get(0))?;
    insert_parts(context, row, from_part, artifact.parts.get(from_part..).unwrap_or_default())
}

fn insert_parts(context: &WriteContext<'_>, row: i64, from: usize, parts: &[Part]) -> Result<(), StoreError> {
    let sql = "INSERT INTO artifact_parts (artifact_ref, position, part_json) VALUES (?1, ?2, ?3)";
    let mut statement = context.tx.prepare_cached(sql)?;
    for (offset, part) in parts.iter().enumerate() {
        statement.execute((row, to_position(from + offset), v1::part(part, Extras::Keep).to_string()))?;
    }
    Ok(())
}

pub(super) fn replace_artifacts(
    context: &WriteContext<'_>,
    key: TaskKey,
    artifacts: &[Artifact],
    incomplete: &[ArtifactId],
) -> Result<(), StoreError> {
    context.tx.prepare_cached("DELETE FROM artifacts WHERE task_ref = ?1")?.execute([key])?;
    for (position, artifact) in artifacts.iter().enumerate() {
        put_artifact(context, key, position, artifact, incomplete.contains(&artifact.artifact_id))?;
    }
    Ok(())
}

/// Writes the messages from `from` on.
pub(super) fn extend_history(
    context: &WriteContext<'_>,
    key: TaskKey,
    history: &[Message],
    from: usize,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO messages (task_ref, position, message_id, message_json) VALUES (?1, ?2, ?3, ?4)";
    let mut statement = context.tx.prepare_cached(sql)?;
    for (position, message) in history.iter().enumerate().skip(from) {
        let json = v1::message(message, Extras::Keep).to_string();
        statement.execute((key, to_position(position), message.message_id.as_str(), json))?;
    }
    Ok(())
}

pub(super) fn replace_history(
    context: &WriteContext<'_>,
    key: TaskKey,
    history: &[Message],
) -> Result<(), StoreError> {
    context.tx.prepare_cached("DELETE FROM messages WHERE task_ref = ?1")?.execute([key])?;
    extend_history(context, key, history, 0)
}

/// An object as text, or NULL where it is empty.
pub(super) fn object_json(object: &Map<String, Value>) -> Option<String> {
    (!object.is_empty()).then(|| Value::Object(object.clone()).to_string())
}

fn to_position(index: usize) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX)
}

fn object(text: Option<&str>) -> Result<Map<String, Value>, StoreError> {
    match text.map(json).transpose()? {
        Some(Value::Object(map)) => Ok(map),
        Some(_) => Err(unreadable("metadata")),
        None => Ok(Map::new()),
    }
}

/// What we wrote ourselves: an unreadable text is damage.
fn json(text: &str) -> Result<Value, StoreError> {
    serde_json::from_str(text).map_err(|_| unreadable("json"))
}

fn unreadable(what: &'static str) -> StoreError {
    StoreError::Unreadable { what, reason: "not what this version writes".to_owned() }
}
