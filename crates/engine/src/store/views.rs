//! Queries that their user kept under a name.

use rusqlite::Connection;
use serde_json::json;
use taskbell_core::search::Screen;

use super::agents::decoded;
use super::changes::{NewChange, record_change};
use super::error::StoreError;
use super::writer::WriteContext;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewRow {
    pub screen: Screen,
    pub name: String,
    pub query: String,
}

/// By screen and name.
pub fn list(connection: &Connection) -> Result<Vec<ViewRow>, StoreError> {
    let sql = "SELECT screen, name, query FROM saved_views ORDER BY screen DESC, name";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        Ok(ViewRow { screen: decoded(row, 0, Screen::from_word)?, name: row.get(1)?, query: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Keeps a query under its name, whatever had that name. False: there are `most` already.
pub fn save(context: &mut WriteContext<'_>, view: &ViewRow, most: u32) -> Result<bool, StoreError> {
    let screen = view.screen.word();
    let sql = "SELECT count(*) FROM saved_views WHERE screen = ?1 AND name <> ?2";
    let others: u32 = context.tx.prepare_cached(sql)?.query_row((screen, &view.name), |row| row.get(0))?;
    if others >= most {
        return Ok(false);
    }
    let sql = "INSERT INTO saved_views (screen, name, query, at_ms) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (screen, name) DO UPDATE SET query = excluded.query, at_ms = excluded.at_ms";
    context.tx.prepare_cached(sql)?.execute((screen, &view.name, &view.query, context.now_ms))?;
    announce(context, &json!({ "screen": screen, "name": view.name, "query": view.query }))?;
    Ok(true)
}

/// False: there is none of that name.
pub fn delete(context: &mut WriteContext<'_>, screen: Screen, name: &str) -> Result<bool, StoreError> {
    let sql = "DELETE FROM saved_views WHERE screen = ?1 AND name = ?2";
    let gone = context.tx.prepare_cached(sql)?.execute((screen.word(), name))? > 0;
    if gone {
        announce(context, &json!({ "screen": screen.word(), "name": name, "deleted": true }))?;
    }
    Ok(gone)
}

fn announce(context: &mut WriteContext<'_>, body: &serde_json::Value) -> Result<(), StoreError> {
    let body_json = body.to_string();
    let change = NewChange { agent: None, task: None, source: "manual", kind: "view", body_json: &body_json };
    record_change(context, &change).map(|_| ())
}
