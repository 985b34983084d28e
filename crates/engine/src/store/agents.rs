//! Agents: what the user registered, what their cards and probes said, and which slot their credential has.
//!
//! The credential itself is in the keychain under [`AgentRow::credential_handle`]. A removed agent stays
//! as a tombstone for its tasks; its name is free again, and its successor is another row with another handle.

use rusqlite::{Connection, OptionalExtension, Row};
use taskbell_core::credential::{CredentialKind, Origin};
use taskbell_core::dialect::{Binding, Dialect};
use taskbell_core::ids::AgentName;

use super::error::{StoreError, is_unique_violation};
use super::keys::AgentKey;
use super::writer::WriteContext;

/// What the user says when adding an agent.
#[derive(Debug, Clone)]
pub struct NewAgent<'a> {
    pub name: &'a AgentName,
    pub registered_url: &'a str,
    pub origin: &'a Origin,
    /// Follow the interface URL of the card even to another origin.
    pub use_card_url: bool,
    /// Plain http to a host that is not this machine; such an agent gets no credential.
    pub allow_http: bool,
}

/// An agent as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRow {
    pub key: AgentKey,
    pub name: AgentName,
    pub registered_url: String,
    pub card_url: Option<String>,
    pub origin: Origin,
    pub interface_url: Option<String>,
    pub binding: Option<Binding>,
    pub dialect: Option<Dialect>,
    pub tenant: Option<String>,
    /// The user's word; it beats what the card and the probe say.
    pub pinned_dialect: Option<Dialect>,
    pub use_card_url: bool,
    pub allow_http: bool,
    pub card_json: Option<String>,
    pub card_etag: Option<String>,
    pub card_read_at_ms: Option<i64>,
    pub quirks_json: String,
    /// `None`: the agent gets no credential.
    pub credential_kind: Option<CredentialKind>,
    /// Counts the values this slot has had; a task keeps the one it was sent under.
    pub credential_version: i64,
    pub credential_changed_at_ms: Option<i64>,
    pub created_at_ms: i64,
    pub removed_at_ms: Option<i64>,
}

impl AgentRow {
    /// The name of the keychain item. By row and not by name: a namesake added later is another agent.
    pub fn credential_handle(&self) -> String {
        format!("agent-{}", self.key.0)
    }
}

/// What a card and a probe found.
#[derive(Debug, Clone, Default)]
pub struct Probed<'a> {
    pub card_url: Option<&'a str>,
    pub interface_url: Option<&'a str>,
    pub binding: Option<Binding>,
    pub dialect: Option<Dialect>,
    pub tenant: Option<&'a str>,
    pub card_json: Option<&'a str>,
    pub card_etag: Option<&'a str>,
}

const COLUMNS: &str = "id, name, registered_url, card_url, origin, interface_url, binding, dialect, tenant, \
     pinned_dialect, use_card_url, allow_http, card_json, card_etag, card_read_at_ms, quirks_json, \
     credential_kind, credential_version, credential_changed_at_ms, created_at_ms, removed_at_ms";

/// Adds an agent. Errors: [`StoreError::Exists`] where the name is taken.
pub fn insert(context: &mut WriteContext<'_>, agent: &NewAgent<'_>) -> Result<AgentKey, StoreError> {
    let sql = "INSERT INTO agents (name, registered_url, origin, use_card_url, allow_http, created_at_ms)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let values = (
        agent.name.as_str(),
        agent.registered_url,
        agent.origin.to_string(),
        agent.use_card_url,
        agent.allow_http,
        context.now_ms,
    );
    match context.tx.prepare_cached(sql)?.insert(values) {
        Ok(id) => Ok(AgentKey(id)),
        Err(error) if is_unique_violation(&error) => {
            Err(StoreError::Exists { what: format!("agent {}", agent.name) })
        }
        Err(error) => Err(error.into()),
    }
}

/// The living agent of that name.
pub fn find(connection: &Connection, name: &AgentName) -> Result<Option<AgentRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM agents WHERE name = ?1 AND removed_at_ms IS NULL");
    let mut statement = connection.prepare_cached(&sql)?;
    Ok(statement.query_row([name.as_str()], read).optional()?)
}

/// Any agent by its row, removed ones too.
pub fn get(connection: &Connection, key: AgentKey) -> Result<AgentRow, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM agents WHERE id = ?1");
    let row = connection.prepare_cached(&sql)?.query_row([key], read).optional()?;
    row.ok_or_else(|| StoreError::Missing { what: format!("agent row {}", key.0) })
}

/// The living agents by name.
/// Whether an agent has or had that name: its tasks are still there.
pub fn was_there(connection: &Connection, name: &AgentName) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM agents WHERE name = ?1)";
    Ok(connection.prepare_cached(sql)?.query_row([name.as_str()], |row| row.get(0))?)
}

pub fn list(connection: &Connection) -> Result<Vec<AgentRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM agents WHERE removed_at_ms IS NULL ORDER BY name");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Replaces what the last card and probe said.
pub fn set_probed(
    context: &mut WriteContext<'_>,
    key: AgentKey,
    probed: &Probed<'_>,
) -> Result<(), StoreError> {
    let sql = "UPDATE agents SET card_url = ?2, interface_url = ?3, binding = ?4, dialect = ?5, tenant = ?6,
                   card_json = ?7, card_etag = ?8, card_read_at_ms = ?9
               WHERE id = ?1";
    let values = (
        key,
        probed.card_url,
        probed.interface_url,
        probed.binding.map(Binding::word),
        probed.dialect.map(Dialect::version),
        probed.tenant,
        probed.card_json,
        probed.card_etag,
        context.now_ms,
    );
    one_row(context.tx.prepare_cached(sql)?.execute(values)?, key)
}

/// The agent has moved: for the built-in one, whose port is found anew.
pub fn set_address(
    context: &mut WriteContext<'_>,
    key: AgentKey,
    registered_url: &str,
    origin: &Origin,
) -> Result<(), StoreError> {
    let sql = "UPDATE agents SET registered_url = ?2, origin = ?3, interface_url = NULL WHERE id = ?1";
    let values = (key, registered_url, origin.to_string());
    one_row(context.tx.prepare_cached(sql)?.execute(values)?, key)
}

/// The card is the one we have (304): only the time moves.
pub fn set_card_read(context: &mut WriteContext<'_>, key: AgentKey) -> Result<(), StoreError> {
    let sql = "UPDATE agents SET card_read_at_ms = ?2 WHERE id = ?1";
    one_row(context.tx.prepare_cached(sql)?.execute((key, context.now_ms))?, key)
}

/// What was learned of the agent's habits, as JSON.
pub fn set_quirks(
    context: &mut WriteContext<'_>,
    key: AgentKey,
    quirks_json: &str,
) -> Result<(), StoreError> {
    let sql = "UPDATE agents SET quirks_json = ?2 WHERE id = ?1";
    one_row(context.tx.prepare_cached(sql)?.execute((key, quirks_json))?, key)
}

/// `None` goes back to what card and probe say.
pub fn pin_dialect(
    context: &mut WriteContext<'_>,
    key: AgentKey,
    dialect: Option<Dialect>,
) -> Result<(), StoreError> {
    let sql = "UPDATE agents SET pinned_dialect = ?2 WHERE id = ?1";
    one_row(context.tx.prepare_cached(sql)?.execute((key, dialect.map(Dialect::version)))?, key)
}

/// Notes that the slot has a new value (`None`: it was emptied); the new version.
pub fn set_credential(
    context: &mut WriteContext<'_>,
    key: AgentKey,
    kind: Option<CredentialKind>,
) -> Result<i64, StoreError> {
    let sql = "UPDATE agents SET credential_kind = ?2, credential_version = credential_version + 1,
                   credential_changed_at_ms = ?3
               WHERE id = ?1 RETURNING credential_version";
    let values = (key, kind.map(CredentialKind::as_str), context.now_ms);
    let version = context.tx.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()?;
    version.ok_or_else(|| StoreError::Missing { what: format!("agent row {}", key.0) })
}

/// Leaves a tombstone and frees the name. Its tasks stay readable.
pub fn remove(context: &mut WriteContext<'_>, key: AgentKey) -> Result<(), StoreError> {
    let sql = "UPDATE agents SET removed_at_ms = ?2, credential_kind = NULL WHERE id = ?1 AND removed_at_ms IS NULL";
    one_row(context.tx.prepare_cached(sql)?.execute((key, context.now_ms))?, key)
}

/// Something an agent does that the protocol does not foresee: counted by kind, the last detail kept.
/// True where it is the first of its kind.
pub fn record_oddity(
    context: &mut WriteContext<'_>,
    agent: AgentKey,
    kind: &str,
    detail: &str,
) -> Result<bool, StoreError> {
    let sql = "INSERT INTO oddities (agent_id, kind, detail, count, first_at_ms, last_at_ms)
               VALUES (?1, ?2, ?3, 1, ?4, ?4)
               ON CONFLICT (agent_id, kind) DO UPDATE
               SET count = count + 1, detail = excluded.detail, last_at_ms = excluded.last_at_ms
               RETURNING count";
    let values = (agent, kind, detail, context.now_ms);
    let count: i64 = context.tx.prepare_cached(sql)?.query_row(values, |row| row.get(0))?;
    Ok(count == 1)
}

/// A line of an agent's report card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OddityRow {
    pub kind: String,
    pub detail: String,
    pub count: i64,
    pub first_at_ms: i64,
    pub last_at_ms: i64,
}

/// The report card of one agent, the latest first.
pub fn oddities(connection: &Connection, agent: AgentKey) -> Result<Vec<OddityRow>, StoreError> {
    let sql = "SELECT kind, detail, count, first_at_ms, last_at_ms FROM oddities
               WHERE agent_id = ?1 ORDER BY last_at_ms DESC, kind";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([agent], |row| {
        Ok(OddityRow {
            kind: row.get(0)?,
            detail: row.get(1)?,
            count: row.get(2)?,
            first_at_ms: row.get(3)?,
            last_at_ms: row.get(4)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn one_row(changed: usize, key: AgentKey) -> Result<(), StoreError> {
    if changed == 1 { Ok(()) } else { Err(StoreError::Missing { what: format!("agent row {}", key.0) }) }
}

fn read(row: &Row<'_>) -> rusqlite::Result<AgentRow> {
    Ok(AgentRow {
        key: row.get(0)?,
        name: decoded(row, 1, |text| AgentName::new(text).ok())?,
        registered_url: row.get(2)?,
        card_url: row.get(3)?,
        origin: decoded(row, 4, |text| text.parse().ok())?,
        interface_url: row.get(5)?,
        binding: decoded_option(row, 6, Binding::from_word)?,
        dialect: decoded_option(row, 7, Dialect::from_version)?,
        tenant: row.get(8)?,
        pinned_dialect: decoded_option(row, 9, Dialect::from_version)?,
        use_card_url: row.get(10)?,
        allow_http: row.get(11)?,
        card_json: row.get(12)?,
        card_etag: row.get(13)?,
        card_read_at_ms: row.get(14)?,
        quirks_json: row.get(15)?,
        credential_kind: decoded_option(row, 16, CredentialKind::from_word)?,
        credential_version: row.get(17)?,
        credential_changed_at_ms: row.get(18)?,
        created_at_ms: row.get(19)?,
        removed_at_ms: row.get(20)?,
    })
}

/// A column whose words are decoded here; an unknown word is an error that names the column.
pub(crate) fn decoded<T>(
    row: &Row<'_>,
    column: usize,
    decode: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    decode(&text).ok_or_else(|| unreadable(row, column, &text))
}

pub(crate) fn decoded_option<T>(
    row: &Row<'_>,
    column: usize,
    decode: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    match text {
        None => Ok(None),
        Some(text) => decode(&text).map(Some).ok_or_else(|| unreadable(row, column, &text)),
    }
}

fn unreadable(row: &Row<'_>, column: usize, text: &str) -> rusqlite::Error {
    let name = row.as_ref().column_name(column).unwrap_or("?").to_owned();
    let text: String = text.chars().take(40).collect();
    let reason = format!("{name} holds {text:?}");
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, reason.into())
}
