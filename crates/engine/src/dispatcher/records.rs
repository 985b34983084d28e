//! Targets and deliveries as the API shows and changes them.

use taskbell_core::delivery::{Lane, Schedule};
use taskbell_core::ids::ClientName;

use super::Dispatcher;
use crate::api::views::{AttemptView, DeliveryView, Page, TargetView, UtcTime};
use crate::error::EngineError;
use crate::settings::delivery_schedule;
use crate::store::deliveries::{self, AttemptRow, DeliveryFilter, DeliveryRow, NotAgain};
use crate::store::targets::{self, PauseReason, TargetRow};
use crate::store::{ClientKey, DeliveryKey, StoreError, TargetKey, WriteContext};

const PAGE: u32 = 100;
const PAGE_MAX: u32 = 1_000;

impl Dispatcher {
    pub async fn targets(&self) -> Result<Vec<TargetView>, EngineError> {
        Ok(self.0.parts.store().read(targets::list).await?.into_iter().map(target).collect())
    }

    /// The user lets a client be called at a port of this machine.
    pub async fn allow(&self, client: ClientKey, port: u16) -> Result<TargetView, EngineError> {
        if port == 0 {
            return Err(EngineError::new("usage", "a port is 1 to 65535"));
        }
        let key = self.0.parts.store().write(move |context| targets::approve(context, client, port)).await?;
        self.ring();
        self.target(key).await
    }

    /// Takes an approval back; what nobody uses is forgotten.
    pub async fn remove_target(&self, key: TargetKey) -> Result<(), EngineError> {
        self.change_target(key, targets::remove).await
    }

    pub async fn pause_target(&self, key: TargetKey) -> Result<TargetView, EngineError> {
        self.change_target(key, |context, key| targets::pause(context, key, PauseReason::User)).await?;
        self.target(key).await
    }

    /// It is called again as if it had never failed; what waits for it is due at once.
    pub async fn resume_target(&self, key: TargetKey) -> Result<TargetView, EngineError> {
        self.change_target(key, targets::resume).await?;
        self.target(key).await
    }

    async fn change_target(
        &self,
        key: TargetKey,
        change: fn(&mut WriteContext<'_>, TargetKey) -> Result<bool, StoreError>,
    ) -> Result<(), EngineError> {
        let found = self.0.parts.store().write(move |context| change(context, key)).await?;
        self.ring();
        if found { Ok(()) } else { Err(unknown_target(key)) }
    }

    async fn target(&self, key: TargetKey) -> Result<TargetView, EngineError> {
        let row = self.0.parts.store().read(move |connection| targets::get(connection, key)).await?;
        row.map(target).ok_or_else(|| unknown_target(key))
    }

    /// The newest first.
    pub async fn deliveries(
        &self,
        filter: DeliveryFilter,
        limit: Option<u32>,
    ) -> Result<Page<DeliveryView>, EngineError> {
        let limit = limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
        let read = self.0.parts.store().read(move |connection| {
            let rows = deliveries::list(connection, &filter, limit)?;
            rows.into_iter()
                .map(|row| Ok((deliveries::attempts(connection, row.key)?, row)))
                .collect::<Result<Vec<_>, StoreError>>()
                .and_then(|rows| Ok((rows, delivery_schedule(connection)?)))
        });
        let (rows, schedule) = read.await?;
        let next = match rows.last() {
            Some((_, last)) if rows.len() == limit as usize => Some(last.key.0.to_string()),
            Some(_) | None => None,
        };
        Ok(Page {
            items: rows.into_iter().map(|(attempts, row)| delivery(row, attempts, schedule)).collect(),
            next,
        })
    }

    pub async fn delivery(&self, key: DeliveryKey) -> Result<DeliveryView, EngineError> {
        let read = self.0.parts.store().read(move |connection| {
            let row = deliveries::get(connection, key)?;
            Ok((row, deliveries::attempts(connection, key)?, delivery_schedule(connection)?))
        });
        let (row, attempts, schedule) = read.await?;
        row.map(|row| delivery(row, attempts, schedule)).ok_or_else(|| unknown_delivery(key))
    }

    /// Sends it again now, with all tries before it.
    pub async fn retry(&self, key: DeliveryKey) -> Result<DeliveryView, EngineError> {
        match self.0.parts.store().write(move |context| deliveries::retry(context, key)).await? {
            Ok(()) => {
                self.ring();
                self.delivery(key).await
            }
            Err(NotAgain::Unknown) => Err(unknown_delivery(key)),
            Err(NotAgain::NotNeeded(state)) => Err(EngineError::new(
                "not_again",
                format!("delivery {} is {} and is not sent again", key.0, state.word()),
            )),
            Err(NotAgain::Gone) => Err(EngineError::new(
                "not_again",
                format!("delivery {} is not sent again: its registration is gone, or what it told is", key.0),
            )),
        }
    }

    /// The key of the client of that name, among those whose keys open something.
    pub async fn client_of(&self, name: &ClientName) -> Result<ClientKey, EngineError> {
        let clients = self.0.parts.store().read(crate::store::clients::list).await?;
        clients.iter().find(|row| row.name == *name).map(|row| row.key).ok_or_else(|| {
            EngineError::new(
                "unknown_client",
                format!("no client is named {name}; see `taskbell client list`"),
            )
        })
    }
}

fn unknown_target(key: TargetKey) -> EngineError {
    EngineError::new("unknown_target", format!("there is no target {}; see `taskbell target list`", key.0))
}

fn unknown_delivery(key: DeliveryKey) -> EngineError {
    EngineError::new(
        "unknown_delivery",
        format!("there is no delivery {}; see `taskbell delivery list`", key.0),
    )
}

fn target(row: TargetRow) -> TargetView {
    let state = match (&row.paused, row.failures) {
        (Some(_), _) => "paused",
        (None, _) if row.loopback && row.approved_at_ms.is_none() => "not-approved",
        (None, 0) => "ok",
        (None, _) => "failing",
    };
    TargetView {
        id: row.key.0.unsigned_abs(),
        client: row.client,
        target: row.origin,
        kind: if row.loopback { "loopback" } else { "public" }.to_owned(),
        state: state.to_owned(),
        approved_at: row.approved_at_ms.map(UtcTime::from_ms),
        paused_at: row.paused.map(|(at_ms, _)| UtcTime::from_ms(at_ms)),
        pause_reason: row.paused.map(|(_, reason)| reason.word().to_owned()),
        failures: row.failures,
        last_error: row.last_code,
        last_failed_at: row.last_failed_at_ms.map(UtcTime::from_ms),
        delivered_at: row.delivered_at_ms.map(UtcTime::from_ms),
        next_at: row.probe_at_ms.map(UtcTime::from_ms),
        waiting: row.waiting,
        updates: row.updates,
        dropped: row.dropped,
    }
}

fn delivery(row: DeliveryRow, attempts: Vec<AttemptRow>, reserved: Schedule) -> DeliveryView {
    let schedule = match row.lane {
        Lane::Reserved => reserved,
        Lane::BestEffort => Schedule::Never,
    };
    DeliveryView {
        id: row.key.0.unsigned_abs(),
        webhook_id: row.webhook_id,
        task: row.task,
        client: row.client,
        config_id: row.config_id,
        target: row.target,
        lane: row.lane.word().to_owned(),
        state: row.state.word().to_owned(),
        task_state: row.task_state.word().to_owned(),
        tries: row.tries,
        tries_max: schedule.tries().max(row.tries),
        due_at: row.due_at_ms.map(UtcTime::from_ms),
        waits_for: row.waits_for,
        last_error: row.last_code,
        created_at: UtcTime::from_ms(row.created_at_ms),
        done_at: row.done_at_ms.map(UtcTime::from_ms),
        attempts: attempts.into_iter().map(attempt).collect(),
    }
}

fn attempt(row: AttemptRow) -> AttemptView {
    AttemptView {
        started_at: UtcTime::from_ms(row.started_at_ms),
        ended_at: row.ended_at_ms.map(UtcTime::from_ms),
        counted: row.counted,
        status: row.status,
        error: row.code,
        address: row.address,
    }
}
