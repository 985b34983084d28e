//! Settings as texts under their keys. What a key means and which values it takes is decided elsewhere.

use rusqlite::{Connection, OptionalExtension};

use super::error::StoreError;
use super::writer::WriteContext;

/// The value the user set; `None`: the default holds.
pub fn get(connection: &Connection, key: &str) -> Result<Option<String>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT value FROM settings WHERE key = ?1")?;
    Ok(statement.query_row([key], |row| row.get(0)).optional()?)
}

/// All that were set, by key.
pub fn list(connection: &Connection) -> Result<Vec<(String, String)>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT key, value FROM settings ORDER BY key")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub fn set(context: &mut WriteContext<'_>, key: &str, value: &str) -> Result<(), StoreError> {
    let sql = "INSERT INTO settings (key, value) VALUES (?1, ?2)
               ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    context.tx.prepare_cached(sql)?.execute([key, value])?;
    Ok(())
}

/// Back to the default.
pub fn clear(context: &mut WriteContext<'_>, key: &str) -> Result<(), StoreError> {
    context.tx.prepare_cached("DELETE FROM settings WHERE key = ?1")?.execute([key])?;
    Ok(())
}
