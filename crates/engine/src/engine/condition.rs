//! How the engine is: Health, its history, and what can be tried about it.

use std::sync::{Arc, PoisonError};

use super::{Engine, PAGE_MAX};
use crate::api::access::Access;
use crate::api::views::{HealthChange, HealthItem, Page, SelfTestItem, UtcTime};
use crate::error::EngineError;
use crate::health::{self, Finding, Subjects};
use crate::keychain::KeychainHealth;
use crate::store::{StoreError, health_history, notices, targets};

/// The newest notices, among which is one that tells whether they are shown.
const NOTICES_READ: u32 = 20;

impl Engine {
    /// Who may call, once somebody listens: Health tells of the listener too.
    pub fn set_access(&self, access: &Arc<Access>) {
        *self.0.access.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(access));
    }

    pub(crate) fn access(&self) -> Option<Arc<Access>> {
        self.0.access.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How each part is now.
    pub async fn health(&self) -> Vec<HealthItem> {
        let findings = self.findings().await;
        self.0.health.judge(findings, self.0.parts.now_ms())
    }

    /// Looks at everything, and stores what has changed.
    pub(crate) async fn look_at_health(&self) -> Result<(), StoreError> {
        self.health().await;
        self.0.health.store(self.store()).await
    }

    async fn findings(&self) -> Vec<Finding> {
        // A store that cannot be read is a finding, and hides no other.
        let (agents, mut read_fault) = match self.agents().await {
            Ok(agents) => (agents, None),
            Err(error) => (Vec::new(), Some(error.message)),
        };
        let read = self.store().read(|connection| {
            Ok((notices::list(connection, None, NOTICES_READ)?, targets::list(connection)?))
        });
        let (notices, targets) = read.await.unwrap_or_else(|error| {
            read_fault.get_or_insert(error.to_string());
            (Vec::new(), Vec::new())
        });
        let store = self.store().clone();
        let backup_ms = match tokio::task::spawn_blocking(move || store.last_backup_ms()).await {
            Ok(found) => found.map_err(|error| error.to_string()),
            Err(_stopping) => Err("the engine stops".to_owned()),
        };
        let access = self.access();
        let subjects = Subjects {
            store: self.store(),
            opened: &self.0.opened,
            keychain: &self.0.keychain,
            inbox: &self.0.inbox,
            access: access.as_deref(),
            reach: self.0.parts.reach().state(),
            agents: &agents,
            notices: &notices,
            targets: &targets,
            notes: self.0.parts.notes(),
            backup_ms,
            read_fault,
            now_ms: self.0.parts.now_ms(),
        };
        subjects.findings()
    }

    /// How the parts were, the newest change first; of one part or of all.
    pub async fn health_history(
        &self,
        component: Option<String>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Page<HealthChange>, EngineError> {
        let limit = limit.clamp(1, PAGE_MAX);
        let rows = self
            .store()
            .read(move |connection| health_history::list(connection, component.as_deref(), before, limit))
            .await?;
        let next = match rows.last() {
            Some(last) if rows.len() == limit as usize => Some(last.id.to_string()),
            Some(_) | None => None,
        };
        let items = rows.into_iter().map(|row| HealthChange {
            component: row.component,
            state: row.state,
            at: UtcTime::from_ms(row.at_ms),
            detail: row.detail,
        });
        Ok(Page { items: items.collect(), next })
    }

    /// Tries everything once.
    pub async fn self_test(&self) -> Vec<SelfTestItem> {
        health::self_test::run(self, &self.0.own_http).await
    }

    /// Whether the keyring keeps what it is given. What waits for it goes on when it does.
    pub async fn probe_keyring(&self) -> KeychainHealth {
        let health = self.0.keychain.probe(&uuid::Uuid::new_v4().to_string()).await;
        if matches!(health, KeychainHealth::Kept) {
            self.0.parts.bells().registrations.notify_one();
            self.0.dispatcher.ring();
        }
        health
    }

    /// Reads the whole database for damage.
    pub async fn check_store(&self) -> Result<SelfTestItem, EngineError> {
        let began = std::time::Instant::now();
        let found = self.store().check().await?;
        Ok(SelfTestItem {
            component: "store".to_owned(),
            ok: found.is_none(),
            detail: found.unwrap_or_else(|| "the database is sound".to_owned()),
            took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Copies the store now, whenever it was copied last.
    pub async fn back_up_store(&self) -> Result<SelfTestItem, EngineError> {
        let began = std::time::Instant::now();
        let found = self.store().back_up(self.0.parts.now_ms()).await;
        let fault = found.as_ref().err().map(ToString::to_string);
        self.0.parts.notes().note_backup(fault.clone());
        Ok(SelfTestItem {
            component: "backup".to_owned(),
            ok: fault.is_none(),
            detail: fault.unwrap_or_else(|| "the store was copied".to_owned()),
            took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// What is known of the store and of its work, in figures.
    pub(crate) fn store_facts(&self) -> serde_json::Value {
        let counts = self.store().counts();
        let opened = &self.0.opened;
        serde_json::json!({
            "commits": counts.commits,
            "commands": counts.commands,
            "largestBatch": counts.largest_batch,
            "notStored": counts.failed_posts,
            "queued": self.store().queued(),
            "octets": self.store().octets(),
            "fault": self.store().fault().map(|fault| fault.to_string()),
            "migratedFrom": opened.migrated_from,
            "checkedAfterUncleanStop": opened.checked_after_unclean_stop.is_some(),
            "damagedAtStart": opened.damage.is_some(),
            "restored": opened.damage.as_ref().is_some_and(|damage| damage.restored_from.is_some()),
        })
    }
}
