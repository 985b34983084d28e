//! What is done now and then without being asked: the keyring looked at, old rows dropped, the store copied.

use std::time::{Duration, Instant};

use crate::keychain::{Keychain, KeychainHealth};
use crate::parts::Parts;
use crate::settings;
use crate::store::{callbacks, changes, deliveries, tasks as rows};

/// How often old rows are looked for.
const PERIOD: Duration = Duration::from_secs(3_600);
const DAY_MS: i64 = 86_400_000;
/// Rows dropped in one write, so that no batch holds others up.
const AT_ONCE: u32 = 500;

/// Whether the keyring keeps anything, told in the log where it does not.
pub async fn probe_keychain(keychain: Keychain) {
    let health = keychain.probe(&uuid::Uuid::new_v4().to_string()).await;
    match &health {
        KeychainHealth::Kept => {}
        KeychainHealth::SessionOnly => tracing::warn!("credentials are kept in memory only, as chosen"),
        KeychainHealth::Unknown | KeychainHealth::Failing(_) => {
            tracing::warn!(state = health.code(), "the keyring does not keep credentials");
        }
    }
}

/// Drops what is older than it should be kept, a little at a time, and copies the store once a day.
pub async fn run(parts: Parts) {
    loop {
        if let Err(error) = run_once(&parts).await {
            tracing::warn!(%error, "the upkeep of the store failed");
        }
        tokio::time::sleep(PERIOD).await;
    }
}

async fn run_once(parts: &Parts) -> Result<(), crate::store::StoreError> {
    let began = Instant::now();
    let (days, body_days) = parts
        .store()
        .read(|connection| Ok((settings::retention_days(connection)?, settings::body_days(connection)?)))
        .await?;
    let before_ms = parts.now_ms().saturating_sub(i64::from(days).saturating_mul(DAY_MS));
    let unbound_before_ms = parts.now_ms().saturating_sub(DAY_MS);
    loop {
        let gone = parts
            .store()
            .write(move |context| {
                Ok(rows::prune(context, before_ms, AT_ONCE)?
                    + changes::prune(context, before_ms, AT_ONCE)?
                    + crate::store::notices::prune(context, before_ms, AT_ONCE)?
                    + crate::store::gateway_log::prune(context, AT_ONCE)?
                    + crate::store::bodies::prune(context, body_days, AT_ONCE)?
                    + deliveries::prune(context, before_ms, AT_ONCE)?
                    + callbacks::quarantine_unbound(context, unbound_before_ms, AT_ONCE)?)
            })
            .await?;
        if gone == 0 {
            break;
        }
    }
    // A copy of an empty store would be the newest for a day, and of no use to anybody.
    if parts.agents().all().is_empty() {
        return Ok(());
    }
    match parts.store().back_up_if_due(parts.now_ms()).await {
        Ok(Some(_)) => {
            parts.notes().note_backup(None);
            tracing::info!(took_ms = began.elapsed().as_millis(), "the store was copied");
        }
        Ok(None) => parts.notes().note_backup(None),
        Err(error) => {
            parts.notes().note_backup(Some(error.to_string()));
            tracing::warn!(%error, "the daily copy of the store failed");
        }
    }
    Ok(())
}
