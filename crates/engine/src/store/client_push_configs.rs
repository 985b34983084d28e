//! Where clients want to be called back about their tasks, and the secrets they gave for it.
//!
//! A secret is written to the keyring before the config that uses it is stored, and its row before that, so
//! that whatever a kill leaves in the keyring has a row by which it is found and deleted.

use rusqlite::{Connection, OptionalExtension, Row};
use taskbell_core::dialect::Dialect;
use taskbell_core::push_body::BodyForm;
use taskbell_core::push_rules::{CONFIGS_A_TASK, Scheme};

use super::agents::{decoded, decoded_option};
use super::error::StoreError;
use super::keys::{ClientKey, ConfigKey, SecretKey, TargetKey, TaskKey};
use super::writer::WriteContext;
use super::{outbox, targets};

/// A secret whose registration never came to its end is deleted after so long.
const REGISTRATION_LASTS_MS: i64 = 60_000;

/// A config to be stored.
#[derive(Debug, Clone)]
pub struct NewConfig {
    pub task: TaskKey,
    pub client: ClientKey,
    pub config_id: String,
    pub url: String,
    /// Of the target whose failures count.
    pub origin: String,
    pub loopback: bool,
    pub dialect: Dialect,
    pub form: BodyForm,
    pub scheme: Option<Scheme>,
    pub token: Option<SecretKey>,
    pub credentials: Option<SecretKey>,
}

/// A config as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigRow {
    pub key: ConfigKey,
    pub task: TaskKey,
    pub client: ClientKey,
    pub target: TargetKey,
    pub config_id: String,
    pub url: String,
    pub origin: String,
    pub loopback: bool,
    pub dialect: Dialect,
    pub form: BodyForm,
    pub scheme: Option<Scheme>,
    pub token: Option<SecretKey>,
    pub credentials: Option<SecretKey>,
    pub disabled: Option<(i64, String)>,
}

/// What became of a config that was to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    Kept(ConfigRow),
    /// The task has as many as a task may have.
    TooMany,
}

/// A secret's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretRow {
    pub key: SecretKey,
    /// Whether it is known to be in the keyring.
    pub kept: bool,
}

impl SecretKey {
    /// The name of the keychain item.
    pub fn handle(self) -> String {
        format!("client-secret-{}", self.0)
    }
}

/// The row of a secret with that digest, made where there is none. A config is about to use it.
pub fn prepare_secret(
    context: &mut WriteContext<'_>,
    client: ClientKey,
    digest: &[u8; 32],
) -> Result<SecretRow, StoreError> {
    let sql = "UPDATE client_secrets SET touched_at_ms = ?3
               WHERE client_id = ?1 AND digest = ?2 AND doomed_at_ms IS NULL RETURNING id, kept_at_ms IS NOT NULL";
    let found = context
        .tx
        .prepare_cached(sql)?
        .query_row((client, digest, context.now_ms), |row| {
            Ok(SecretRow { key: SecretKey(row.get(0)?), kept: row.get(1)? })
        })
        .optional()?;
    if let Some(found) = found {
        return Ok(found);
    }
    let sql = "INSERT INTO client_secrets (client_id, digest, touched_at_ms) VALUES (?1, ?2, ?3)";
    let id = context.tx.prepare_cached(sql)?.insert((client, digest, context.now_ms))?;
    Ok(SecretRow { key: SecretKey(id), kept: false })
}

/// Stores a config whose secrets are in the keyring. One with that id is replaced; a secret that is not
/// repeated then stays, as long as it goes to the same receiver.
pub fn put(context: &mut WriteContext<'_>, config: NewConfig) -> Result<Stored, StoreError> {
    let target = targets::ensure(context, config.client, &config.origin, config.loopback)?;
    let before = find(context.tx, config.task, &config.config_id)?;
    let (mut token, mut credentials, mut scheme) = (config.token, config.credentials, config.scheme);
    match &before {
        None if count(context.tx, config.task)? >= CONFIGS_A_TASK => return Ok(Stored::TooMany),
        None => {}
        Some(before) if before.target == target => {
            token = token.or(before.token);
            // Credentials belong to the scheme they came with.
            if credentials.is_none() && (scheme.is_none() || scheme == before.scheme) {
                credentials = before.credentials;
                scheme = scheme.or(before.scheme);
            }
        }
        Some(_) => {}
    }
    for secret in [token, credentials].into_iter().flatten() {
        let sql = "UPDATE client_secrets SET kept_at_ms = coalesce(kept_at_ms, ?2), touched_at_ms = NULL
                   WHERE id = ?1 AND doomed_at_ms IS NULL";
        if context.tx.prepare_cached(sql)?.execute((secret, context.now_ms))? == 0 {
            return Err(StoreError::Missing { what: "secret of the registration".to_owned() });
        }
    }
    let sql = "INSERT INTO client_push_configs (task_ref, client_id, target_id, config_id, url, dialect, form, scheme,
                   token_secret, credential_secret, created_at_ms)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
               ON CONFLICT (task_ref, config_id) DO UPDATE SET target_id = excluded.target_id, url = excluded.url,
                   dialect = excluded.dialect, form = excluded.form, scheme = excluded.scheme,
                   token_secret = excluded.token_secret, credential_secret = excluded.credential_secret,
                   disabled_at_ms = NULL, disabled_reason = NULL";
    context.tx.prepare_cached(sql)?.execute(rusqlite::params![
        config.task,
        config.client,
        target,
        config.config_id,
        config.url,
        config.dialect.version(),
        config.form.word(),
        scheme.map(Scheme::word),
        token,
        credentials,
        context.now_ms,
    ])?;
    let stored = find(context.tx, config.task, &config.config_id)?
        .ok_or_else(|| StoreError::Missing { what: "config just written".to_owned() })?;
    if before.is_some_and(|before| before.target != target) {
        let sql = "UPDATE deliveries SET target_id = ?2 WHERE config_ref = ?1 AND due_at_ms IS NOT NULL";
        context.tx.prepare_cached(sql)?.execute((stored.key, target))?;
    }
    outbox::configs_changed(context, config.task)?;
    Ok(Stored::Kept(stored))
}

/// Removes a config; fine where there is none. Attempts that run may finish, none starts after this.
pub fn delete(context: &mut WriteContext<'_>, task: TaskKey, config_id: &str) -> Result<(), StoreError> {
    if let Some(config) = find(context.tx, task, config_id)? {
        remove(context, &config)?;
    }
    Ok(())
}

fn remove(context: &mut WriteContext<'_>, config: &ConfigRow) -> Result<(), StoreError> {
    super::deliveries::cancel_open(context, config.key, "config_removed")?;
    context.tx.prepare_cached("DELETE FROM client_push_configs WHERE id = ?1")?.execute([config.key])?;
    outbox::configs_changed(context, config.task)
}

/// Its receiver is gone: nothing is sent any more, and what waits is cancelled.
pub(super) fn disable(
    context: &mut WriteContext<'_>,
    key: ConfigKey,
    reason: &str,
) -> Result<(), StoreError> {
    let sql = "UPDATE client_push_configs SET disabled_at_ms = ?2, disabled_reason = ?3
               WHERE id = ?1 AND disabled_at_ms IS NULL RETURNING task_ref";
    let task = context
        .tx
        .prepare_cached(sql)?
        .query_row((key, context.now_ms, reason), |row| row.get(0))
        .optional()?;
    if let Some(task) = task {
        super::deliveries::cancel_open(context, key, "config_disabled")?;
        outbox::configs_changed(context, task)?;
    }
    Ok(())
}

/// Removes what clients registered whose keys were revoked, `limit` configs at most; how many went.
pub fn remove_of_revoked(context: &mut WriteContext<'_>, limit: u32) -> Result<usize, StoreError> {
    let configs = select(
        context.tx,
        "WHERE c.client_id IN (SELECT id FROM clients WHERE revoked_at_ms IS NOT NULL) LIMIT ?1",
        [limit],
    )?;
    for config in &configs {
        remove(context, config)?;
    }
    Ok(configs.len())
}

/// Secrets that no config uses, marked as being deleted; the caller deletes them from the keyring and then
/// here, with [`forget_secret`].
pub fn doom_unused_secrets(context: &mut WriteContext<'_>, limit: u32) -> Result<Vec<SecretKey>, StoreError> {
    let sql = "UPDATE client_secrets SET doomed_at_ms = coalesce(doomed_at_ms, ?1) WHERE id IN (
                   SELECT s.id FROM client_secrets s
                   WHERE (s.touched_at_ms IS NULL OR s.touched_at_ms NOT BETWEEN ?1 - ?2 AND ?1)
                     AND NOT EXISTS (SELECT 1 FROM client_push_configs WHERE token_secret = s.id)
                     AND NOT EXISTS (SELECT 1 FROM client_push_configs WHERE credential_secret = s.id)
                   LIMIT ?3) RETURNING id";
    let mut statement = context.tx.prepare_cached(sql)?;
    let rows = statement.query_map((context.now_ms, REGISTRATION_LASTS_MS, limit), |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Whether [`doom_unused_secrets`] would find any: a look that writes nothing.
pub fn has_unused_secrets(connection: &Connection, now_ms: i64) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM client_secrets s
                   WHERE (s.touched_at_ms IS NULL OR s.touched_at_ms NOT BETWEEN ?1 - ?2 AND ?1)
                     AND NOT EXISTS (SELECT 1 FROM client_push_configs WHERE token_secret = s.id)
                     AND NOT EXISTS (SELECT 1 FROM client_push_configs WHERE credential_secret = s.id))";
    Ok(connection.prepare_cached(sql)?.query_row((now_ms, REGISTRATION_LASTS_MS), |row| row.get(0))?)
}

/// It is no longer in the keyring.
pub fn forget_secret(context: &mut WriteContext<'_>, key: SecretKey) -> Result<(), StoreError> {
    let sql = "DELETE FROM client_secrets WHERE id = ?1 AND doomed_at_ms IS NOT NULL";
    context.tx.prepare_cached(sql)?.execute([key])?;
    Ok(())
}

pub fn find(
    connection: &Connection,
    task: TaskKey,
    config_id: &str,
) -> Result<Option<ConfigRow>, StoreError> {
    Ok(select(connection, "WHERE c.task_ref = ?1 AND c.config_id = ?2", (task, config_id))?.pop())
}

/// Of one task, oldest first.
pub fn of_task(connection: &Connection, task: TaskKey) -> Result<Vec<ConfigRow>, StoreError> {
    select(connection, "WHERE c.task_ref = ?1 ORDER BY c.id", [task])
}

pub(super) fn by_key(connection: &Connection, key: ConfigKey) -> Result<Option<ConfigRow>, StoreError> {
    Ok(select(connection, "WHERE c.id = ?1", [key])?.pop())
}

fn count(connection: &Connection, task: TaskKey) -> Result<usize, StoreError> {
    let sql = "SELECT count(*) FROM client_push_configs WHERE task_ref = ?1";
    let count: i64 = connection.prepare_cached(sql)?.query_row([task], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

fn select(
    connection: &Connection,
    filter: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<ConfigRow>, StoreError> {
    let sql = format!(
        "SELECT c.id, c.task_ref, c.client_id, c.target_id, c.config_id, c.url, t.origin, t.loopback, c.dialect, c.form,
             c.scheme, c.token_secret, c.credential_secret, c.disabled_at_ms, c.disabled_reason
         FROM client_push_configs c JOIN targets t ON t.id = c.target_id {filter}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(values, read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<ConfigRow> {
    let disabled_at_ms: Option<i64> = row.get(13)?;
    let reason: Option<String> = row.get(14)?;
    Ok(ConfigRow {
        key: row.get(0)?,
        task: row.get(1)?,
        client: row.get(2)?,
        target: row.get(3)?,
        config_id: row.get(4)?,
        url: row.get(5)?,
        origin: row.get(6)?,
        loopback: row.get(7)?,
        dialect: decoded(row, 8, Dialect::from_version)?,
        form: decoded(row, 9, BodyForm::from_word)?,
        scheme: decoded_option(row, 10, Scheme::from_word)?,
        token: row.get(11)?,
        credentials: row.get(12)?,
        disabled: disabled_at_ms.zip(reason),
    })
}
