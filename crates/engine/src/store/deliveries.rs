//! Callbacks that leave: the change, its deliveries, their attempts.
//!
//! An attempt is a row before its first octet leaves and is completed when it is over; what the engine finds
//! open when it starts had an unknown outcome. Which delivery is sent when is decided in
//! `taskbell_core::{delivery, lanes}`.

use serde_json::json;
use taskbell_core::delivery::{DeliveryState, Lane};
use taskbell_core::dialect::Dialect;
use taskbell_core::push_body::BodyForm;
use taskbell_core::state::TaskState;

use super::changes::{NewChange, record_change};
use super::client_push_configs::ConfigRow;
use super::error::StoreError;
use super::keys::{ConfigKey, DeliveryKey, TaskKey};
use super::writer::WriteContext;

mod attempt;
mod due;
mod list;
mod upkeep;

pub use attempt::{Begun, Ended, begin, begin_best_effort, finish};
pub use due::{Due, due, hold, next_due_ms, release_from_keyring, spread_overdue};
pub use list::{AttemptRow, DeliveryFilter, DeliveryRow, attempts, get, list};
pub use upkeep::{prune, settle_interrupted};

/// A row of `delivery_requests`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestKey(i64);

pub(super) fn insert_request(
    context: &mut WriteContext<'_>,
    task: TaskKey,
    state: TaskState,
) -> Result<RequestKey, StoreError> {
    let sql = "INSERT INTO delivery_requests (task_ref, state, at_ms) VALUES (?1, ?2, ?3)";
    Ok(RequestKey(context.tx.prepare_cached(sql)?.insert((task, state.word(), context.now_ms))?))
}

/// Keeps what is told; the first of a dialect and form stays.
pub(super) fn put_body(
    context: &mut WriteContext<'_>,
    request: RequestKey,
    dialect: Dialect,
    form: BodyForm,
    body: &str,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO delivery_bodies (request_ref, dialect, form, body) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT DO NOTHING";
    context.tx.prepare_cached(sql)?.execute((request.0, dialect.version(), form.word(), body))?;
    Ok(())
}

/// A reserved delivery that is due at once; of a disabled config, one that is recorded as not attempted.
pub(super) fn insert_reserved(
    context: &mut WriteContext<'_>,
    request: RequestKey,
    config: &ConfigRow,
) -> Result<DeliveryKey, StoreError> {
    let now = context.now_ms;
    match config.disabled {
        None => insert(context, request, config, Lane::Reserved, DeliveryState::Queued, Some(now), None),
        Some(_) => insert(
            context,
            request,
            config,
            Lane::Reserved,
            DeliveryState::Cancelled,
            None,
            Some("config_disabled"),
        ),
    }
}

fn insert(
    context: &mut WriteContext<'_>,
    request: RequestKey,
    config: &ConfigRow,
    lane: Lane,
    state: DeliveryState,
    due_at_ms: Option<i64>,
    code: Option<&str>,
) -> Result<DeliveryKey, StoreError> {
    let now = context.now_ms;
    let sql =
        "INSERT INTO deliveries (webhook_id, request_ref, config_ref, target_id, dialect, form, lane, state,
                   due_at_ms, last_code, created_at_ms, done_at_ms)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    let id = context.tx.prepare_cached(sql)?.insert(rusqlite::params![
        format!("msg_{}", uuid::Uuid::new_v4().simple()),
        request.0,
        config.key,
        config.target,
        config.dialect.version(),
        config.form.word(),
        lane.word(),
        state.word(),
        due_at_ms,
        code,
        now,
        (!state.is_open()).then_some(now),
    ])?;
    let key = DeliveryKey(id);
    if lane == Lane::Reserved {
        announce(context, &[key])?;
    }
    Ok(key)
}

/// Says in the change feed that these are other than they were. Progress is not announced: a flood of it would be one
/// of the feed as well.
fn announce(context: &mut WriteContext<'_>, keys: &[DeliveryKey]) -> Result<(), StoreError> {
    for key in keys {
        let sql = "SELECT state, target_id FROM deliveries WHERE id = ?1";
        let body_json = context.tx.prepare_cached(sql)?.query_row([key], |row| {
            let (state, target): (String, i64) = (row.get(0)?, row.get(1)?);
            Ok(json!({ "delivery": key.0, "target": target, "state": state }).to_string())
        })?;
        let change =
            NewChange { agent: None, task: None, source: "gateway", kind: "delivery", body_json: &body_json };
        record_change(context, &change)?;
    }
    Ok(())
}

/// What waits for that config is not sent any more. What is being sent ends by itself.
pub(super) fn cancel_open(
    context: &mut WriteContext<'_>,
    config: ConfigKey,
    code: &str,
) -> Result<(), StoreError> {
    let sql = "UPDATE deliveries SET state = ?3, last_code = ?4, due_at_ms = NULL, waits_for = NULL, done_at_ms = ?2
               WHERE config_ref = ?1 AND due_at_ms IS NOT NULL RETURNING id, request_ref";
    let cancelled = DeliveryState::Cancelled.word();
    let mut statement = context.tx.prepare_cached(sql)?;
    let over: Vec<(DeliveryKey, i64)> = statement
        .query_map((config, context.now_ms, cancelled, code), |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (key, request) in over {
        drop_bodies(context, request)?;
        announce(context, &[key])?;
    }
    Ok(())
}

/// Drops what nobody can want any more: a user may still have sent again what failed for good.
fn drop_bodies(context: &mut WriteContext<'_>, request: i64) -> Result<(), StoreError> {
    let sql = "DELETE FROM delivery_bodies AS b WHERE b.request_ref = ?1 AND NOT EXISTS (
                   SELECT 1 FROM deliveries d WHERE d.request_ref = b.request_ref AND d.dialect = b.dialect
                       AND d.form = b.form AND d.config_ref IS NOT NULL
                       AND d.state NOT IN ('delivered', 'superseded', 'dropped', 'cancelled'))";
    context.tx.prepare_cached(sql)?.execute([request])?;
    Ok(())
}

/// Why a delivery is not sent again by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAgain {
    Unknown,
    /// It is on its way, or was received.
    NotNeeded(DeliveryState),
    /// What it would tell is gone, or its registration is.
    Gone,
}

/// The user wants it sent again: due at once, with all tries before it.
pub fn retry(context: &mut WriteContext<'_>, key: DeliveryKey) -> Result<Result<(), NotAgain>, StoreError> {
    let Some(row) = get(context.tx, key)? else { return Ok(Err(NotAgain::Unknown)) };
    if matches!(row.state, DeliveryState::Sending | DeliveryState::Delivered | DeliveryState::Superseded) {
        return Ok(Err(NotAgain::NotNeeded(row.state)));
    }
    let sql = "UPDATE deliveries AS d SET state = ?2, tries = 0, refused = 0, blamed = 0, due_at_ms = ?3,
                   waits_for = NULL, done_at_ms = NULL
               WHERE id = ?1 AND EXISTS (SELECT 1 FROM delivery_bodies b WHERE b.request_ref = d.request_ref
                       AND b.dialect = d.dialect AND b.form = d.form)
                   AND EXISTS (SELECT 1 FROM client_push_configs c WHERE c.id = d.config_ref
                       AND c.disabled_at_ms IS NULL)";
    let values = (key, DeliveryState::Queued.word(), context.now_ms);
    if context.tx.prepare_cached(sql)?.execute(values)? == 0 {
        return Ok(Err(NotAgain::Gone));
    }
    let sql =
        "UPDATE targets SET probe_at_ms = NULL WHERE id = (SELECT target_id FROM deliveries WHERE id = ?1)";
    context.tx.prepare_cached(sql)?.execute([key])?;
    announce(context, &[key])?;
    Ok(Ok(()))
}
