//! Clients of the gateway: names and digests of their keys, and which task is whose.

use rusqlite::{Connection, OptionalExtension, Row};
use taskbell_core::ids::ClientName;

use super::agents::decoded;
use super::error::{StoreError, is_unique_violation};
use super::keys::{ClientKey, TaskKey};
use super::writer::WriteContext;

/// A client as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRow {
    pub key: ClientKey,
    pub name: ClientName,
    /// SHA-256 of the key.
    pub digest: [u8; 32],
    pub created_at_ms: i64,
}

/// Adds a client. Errors: [`StoreError::Exists`] where the name is taken.
pub fn insert(
    context: &mut WriteContext<'_>,
    name: &ClientName,
    digest: &[u8; 32],
) -> Result<ClientRow, StoreError> {
    let sql = "INSERT INTO clients (name, key_digest, created_at_ms) VALUES (?1, ?2, ?3)";
    match context.tx.prepare_cached(sql)?.insert((name.as_str(), digest, context.now_ms)) {
        Ok(id) => Ok(ClientRow {
            key: ClientKey(id),
            name: name.clone(),
            digest: *digest,
            created_at_ms: context.now_ms,
        }),
        Err(error) if is_unique_violation(&error) => {
            Err(StoreError::Exists { what: format!("client {name}") })
        }
        Err(error) => Err(error.into()),
    }
}

/// From now on its key opens nothing. Errors: [`StoreError::Missing`].
pub fn revoke(context: &mut WriteContext<'_>, name: &ClientName) -> Result<ClientKey, StoreError> {
    let sql = "UPDATE clients SET revoked_at_ms = ?2 WHERE name = ?1 AND revoked_at_ms IS NULL RETURNING id";
    let mut statement = context.tx.prepare_cached(sql)?;
    let revoked = statement.query_row((name.as_str(), context.now_ms), |row| row.get(0)).optional()?;
    revoked.ok_or_else(|| StoreError::Missing { what: format!("client {name}") })
}

/// Those whose keys open something, by name.
pub fn list(connection: &Connection) -> Result<Vec<ClientRow>, StoreError> {
    let sql =
        "SELECT id, name, key_digest, created_at_ms FROM clients WHERE revoked_at_ms IS NULL ORDER BY name";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Whose task it is; `None`: the user's own.
pub fn owner(connection: &Connection, task: TaskKey) -> Result<Option<ClientKey>, StoreError> {
    let sql = "SELECT client_id FROM tasks WHERE id = ?1";
    let owner = connection.prepare_cached(sql)?.query_row([task], |row| row.get(0)).optional()?;
    owner.ok_or_else(|| StoreError::Missing { what: format!("task row {}", task.0) })
}

/// The task is this client's. Said once, when it is taken in.
pub fn own(context: &mut WriteContext<'_>, task: TaskKey, client: ClientKey) -> Result<(), StoreError> {
    let sql = "UPDATE tasks SET client_id = ?2 WHERE id = ?1";
    context.tx.prepare_cached(sql)?.execute((task, client))?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<ClientRow> {
    Ok(ClientRow {
        key: row.get(0)?,
        name: decoded(row, 1, |text| ClientName::new(text).ok())?,
        digest: row.get(2)?,
        created_at_ms: row.get(3)?,
    })
}
