//! One attempt: its row before the first octet leaves, and what follows from what came of it.

use std::net::IpAddr;
use std::time::Duration;

use rusqlite::OptionalExtension;
use taskbell_core::delivery::{DeliveryState, Lane, Next, Outcome, Schedule, Tries, next};
use taskbell_core::dialect::Dialect;
use taskbell_core::push_body;
use taskbell_core::push_rules::Scheme;

use super::super::client_push_configs::{self as configs, ConfigRow};
use super::super::error::StoreError;
use super::super::keys::{ConfigKey, DeliveryKey, SecretKey, TargetKey};
use super::super::targets::{self, millis};
use super::super::task_content;
use super::super::writer::WriteContext;
use super::{announce, cancel_open, drop_bodies, insert, insert_request};

/// An attempt that has a row; nothing of it has left yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    pub delivery: DeliveryKey,
    attempt: i64,
    pub webhook_id: String,
    pub lane: Lane,
    pub dialect: Dialect,
    pub url: String,
    /// Of a target on this machine: whether it is approved still.
    pub approved: bool,
    pub scheme: Option<Scheme>,
    pub token: Option<SecretKey>,
    pub credentials: Option<SecretKey>,
    pub body: String,
}

/// Writes the intent to send a reserved delivery. `None`: it is no longer to be sent.
pub fn begin(context: &mut WriteContext<'_>, key: DeliveryKey) -> Result<Option<Begun>, StoreError> {
    let sql = "SELECT d.webhook_id, d.request_ref, d.dialect, d.form, d.config_ref,
                   t.loopback = 0 OR t.approved_at_ms IS NOT NULL, cl.revoked_at_ms IS NOT NULL
               FROM deliveries d JOIN targets t ON t.id = d.target_id JOIN clients cl ON cl.id = t.client_id
               WHERE d.id = ?1 AND d.due_at_ms IS NOT NULL AND d.config_ref IS NOT NULL AND t.paused_at_ms IS NULL";
    let found = context
        .tx
        .prepare_cached(sql)?
        .query_row([key], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, String>(2)?,
                row.get::<_, String>(3)?,
                row.get::<_, ConfigKey>(4)?,
                row.get::<_, bool>(5)?,
                row.get::<_, bool>(6)?,
            ))
        })
        .optional()?;
    let Some((webhook_id, request, dialect, form, config, approved, revoked)) = found else {
        return Ok(None);
    };
    if revoked {
        cancel_open(context, config, "client_revoked")?;
        return Ok(None);
    }
    let Some(config) = configs::by_key(context.tx, config)? else { return Ok(None) };
    let sql = "SELECT body FROM delivery_bodies WHERE request_ref = ?1 AND dialect = ?2 AND form = ?3";
    let body = context.tx.prepare_cached(sql)?.query_row((request, &dialect, form), |row| row.get(0))?;
    let sql = "UPDATE deliveries SET state = ?2, due_at_ms = NULL, waits_for = NULL WHERE id = ?1";
    context.tx.prepare_cached(sql)?.execute((key, DeliveryState::Sending.word()))?;
    announce(context, &[key])?;
    let dialect = Dialect::from_version(&dialect).unwrap_or(config.dialect);
    begun(context, key, webhook_id, Lane::Reserved, &config, dialect, approved, body).map(Some)
}

/// Takes the task as it is now for a config whose client hears of progress, and writes the intent to send it.
/// `updates` changes came since the last one; all but this one are counted as dropped, and this one as well
/// where it is not to be sent.
pub fn begin_best_effort(
    context: &mut WriteContext<'_>,
    config: ConfigKey,
    target: TargetKey,
    updates: u64,
) -> Result<Option<Begun>, StoreError> {
    let sql = "SELECT t.loopback = 0 OR t.approved_at_ms IS NOT NULL FROM client_push_configs c
                   JOIN targets t ON t.id = c.target_id JOIN clients cl ON cl.id = c.client_id
               WHERE c.id = ?1 AND c.disabled_at_ms IS NULL AND t.paused_at_ms IS NULL AND cl.revoked_at_ms IS NULL
                   AND (t.probe_at_ms IS NULL OR t.probe_at_ms <= ?2)";
    let callable =
        context.tx.prepare_cached(sql)?.query_row((config, context.now_ms), |row| row.get(0)).optional()?;
    let row = match callable {
        Some(approved) => configs::by_key(context.tx, config)?.map(|row| (row, approved)),
        None => None,
    };
    let Some((row, approved)) = row else {
        targets::count_updates(context, target, updates, updates)?;
        return Ok(None);
    };
    let (task, _) = task_content::load(context.tx, row.task)?;
    // An end that came meanwhile has its own delivery.
    if Lane::of(task.status.state) == Lane::Reserved {
        targets::count_updates(context, target, updates, updates)?;
        return Ok(None);
    }
    targets::count_updates(context, target, updates, updates.saturating_sub(1))?;
    let body = push_body::body(&task, row.dialect, row.form);
    let request = insert_request(context, row.task, task.status.state)?;
    let key = insert(context, request, &row, Lane::BestEffort, DeliveryState::Sending, None, None)?;
    let sql = "SELECT webhook_id FROM deliveries WHERE id = ?1";
    let webhook_id = context.tx.prepare_cached(sql)?.query_row([key], |row| row.get(0))?;
    begun(context, key, webhook_id, Lane::BestEffort, &row, row.dialect, approved, body).map(Some)
}

#[expect(clippy::too_many_arguments, reason = "what is read in two ways is written in one")]
fn begun(
    context: &mut WriteContext<'_>,
    delivery: DeliveryKey,
    webhook_id: String,
    lane: Lane,
    config: &ConfigRow,
    dialect: Dialect,
    approved: bool,
    body: String,
) -> Result<Begun, StoreError> {
    let sql = "INSERT INTO delivery_attempts (delivery_ref, started_at_ms) VALUES (?1, ?2)";
    let attempt = context.tx.prepare_cached(sql)?.insert((delivery, context.now_ms))?;
    Ok(Begun {
        delivery,
        attempt,
        webhook_id,
        lane,
        dialect,
        url: config.url.clone(),
        approved,
        scheme: config.scheme,
        token: config.token,
        credentials: config.credentials,
        body,
    })
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Counted(Outcome),
    /// It says nothing about the receiver: no try is used up, and it is due again after so long.
    Uncounted {
        code: &'static str,
        again_after: Duration,
    },
}

/// Writes what came of an attempt, and what follows from it.
pub fn finish(
    context: &mut WriteContext<'_>,
    begun: &Begun,
    ended: Ended,
    address: Option<IpAddr>,
    schedule: Schedule,
    jitter: f64,
) -> Result<(), StoreError> {
    let now = context.now_ms;
    let (status, code, counted) = match ended {
        Ended::Counted(outcome @ Outcome::Status { status, .. }) => (Some(status), outcome.code(), true),
        Ended::Counted(outcome @ Outcome::Failed(_)) => (None, outcome.code(), true),
        Ended::Uncounted { code, .. } => (None, Some(code), false),
    };
    let sql =
        "UPDATE delivery_attempts SET ended_at_ms = ?2, counted = ?3, status = ?4, code = ?5, address = ?6
               WHERE id = ?1";
    let address = address.map(|address| address.to_string());
    let values = (begun.attempt, now, counted, status, code, address);
    if context.tx.prepare_cached(sql)?.execute(values)? == 0 {
        // Written before, and the writer was late to say so; or gone with its task.
        return Ok(());
    }
    let sql = "SELECT d.tries, d.refused, d.blamed, d.target_id, d.config_ref, d.request_ref,
                   c.id IS NULL OR c.disabled_at_ms IS NOT NULL
               FROM deliveries d LEFT JOIN client_push_configs c ON c.id = d.config_ref WHERE d.id = ?1";
    let found = context
        .tx
        .prepare_cached(sql)?
        .query_row([begun.delivery], |row| {
            let tries = Tries { all: row.get(0)?, refused: row.get(1)?, blamed: row.get(2)? };
            let config: Option<ConfigKey> = row.get(4)?;
            Ok((tries, row.get::<_, TargetKey>(3)?, config, row.get::<_, i64>(5)?, row.get::<_, bool>(6)?))
        })
        .optional()?;
    // Gone with its task.
    let Some((tries, target, config, request, unwanted)) = found else { return Ok(()) };
    let outcome = match ended {
        Ended::Counted(outcome) => outcome,
        Ended::Uncounted { code, again_after } => {
            let state = match begun.lane {
                Lane::Reserved if !unwanted => waiting_state(tries),
                Lane::Reserved => DeliveryState::Cancelled,
                Lane::BestEffort => DeliveryState::Dropped,
            };
            let due = state.is_open().then(|| now.saturating_add(millis(again_after)));
            return settle(context, begun.delivery, request, state, tries, due, Some(code), Some(code));
        }
    };
    let tries = tries.with(outcome);
    let word = status.map(|status| format!("http_{status}"));
    let word = code.or(word.as_deref()).unwrap_or("unknown");
    let decided = match begun.lane {
        Lane::Reserved => next(schedule, tries, outcome, jitter),
        Lane::BestEffort => next(Schedule::Never, tries, outcome, jitter),
    };
    if outcome.is_delivered() {
        targets::record_delivered(context, target)?;
    } else if begun.lane == Lane::Reserved {
        // Progress that fails never counts: the first try of an end is at once, and five updates a second
        // that nobody took would put it off by minutes.
        let asked = match outcome {
            Outcome::Status { retry_after, .. } => retry_after,
            Outcome::Failed(_) => None,
        };
        targets::record_failure(context, target, word, asked)?;
    }
    match decided {
        Next::Delivered => {
            settle(context, begun.delivery, request, DeliveryState::Delivered, tries, None, None, None)?;
            if let (Lane::Reserved, Some(config)) = (begun.lane, config) {
                supersede(context, config, begun.delivery)?;
            }
            Ok(())
        }
        Next::TryAgain { .. } if unwanted => {
            settle(context, begun.delivery, request, DeliveryState::Cancelled, tries, None, None, Some(word))
        }
        Next::TryAgain { after } => {
            let due = now.saturating_add(millis(after));
            settle(
                context,
                begun.delivery,
                request,
                DeliveryState::Failed,
                tries,
                Some(due),
                None,
                Some(word),
            )
        }
        Next::Over(state) => settle(context, begun.delivery, request, state, tries, None, None, Some(word)),
        Next::DisableConfig => {
            settle(context, begun.delivery, request, DeliveryState::Rejected, tries, None, None, Some(word))?;
            match config {
                Some(config) => configs::disable(context, config, "gone"),
                None => Ok(()),
            }
        }
    }
}

fn waiting_state(tries: Tries) -> DeliveryState {
    if tries.all == 0 { DeliveryState::Queued } else { DeliveryState::Failed }
}

#[expect(clippy::too_many_arguments, reason = "the columns of one row")]
fn settle(
    context: &mut WriteContext<'_>,
    key: DeliveryKey,
    request: i64,
    state: DeliveryState,
    tries: Tries,
    due_at_ms: Option<i64>,
    waits_for: Option<&str>,
    code: Option<&str>,
) -> Result<(), StoreError> {
    let sql = "UPDATE deliveries SET state = ?2, tries = ?3, refused = ?4, blamed = ?5, due_at_ms = ?6, waits_for = ?7,
                   last_code = coalesce(?8, last_code), done_at_ms = ?9 WHERE id = ?1";
    let done_at_ms = (!state.is_open()).then_some(context.now_ms);
    context.tx.prepare_cached(sql)?.execute(rusqlite::params![
        key,
        state.word(),
        tries.all,
        tries.refused,
        tries.blamed,
        due_at_ms,
        waits_for.filter(|_| state.is_open()),
        code,
        done_at_ms,
    ])?;
    let sql = "SELECT lane = ?2 FROM deliveries WHERE id = ?1";
    if context.tx.prepare_cached(sql)?.query_row((key, Lane::Reserved.word()), |row| row.get(0))? {
        announce(context, &[key])?;
    }
    if state.is_open() { Ok(()) } else { drop_bodies(context, request) }
}

/// A newer one was delivered: what older ones would tell is known.
fn supersede(
    context: &mut WriteContext<'_>,
    config: ConfigKey,
    delivered: DeliveryKey,
) -> Result<(), StoreError> {
    let sql = "UPDATE deliveries SET state = ?3, due_at_ms = NULL, waits_for = NULL, done_at_ms = ?4
               WHERE config_ref = ?1 AND id < ?2 AND due_at_ms IS NOT NULL RETURNING id, request_ref";
    let mut statement = context.tx.prepare_cached(sql)?;
    let values = (config, delivered, DeliveryState::Superseded.word(), context.now_ms);
    let over: Vec<(DeliveryKey, i64)> =
        statement.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    for (key, request) in over {
        drop_bodies(context, request)?;
        announce(context, &[key])?;
    }
    Ok(())
}
