//! Judges ends whose wait is over: whether the way by which they should have come told them after all.

use std::time::Duration;

use crate::parts::Parts;
use crate::store::{StoreError, ends};

/// Judged in one write.
const AT_ONCE: u32 = 200;
/// Every so often it is looked even if no bell rang.
const LOOK: Duration = Duration::from_secs(60);

/// Runs for ever.
pub async fn run(parts: Parts) {
    loop {
        let pause = match judge(&parts).await {
            Ok(Some(at_ms)) => {
                // One that is due already was over the number of one write.
                Duration::from_millis(at_ms.saturating_sub(parts.now_ms()).max(0).unsigned_abs()).min(LOOK)
            }
            Ok(None) => LOOK,
            Err(error) => {
                tracing::warn!(%error, "failed to judge which ends were missed");
                Duration::from_secs(1)
            }
        };
        tokio::select! {
            () = parts.bells().ends.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// When the next one is to be judged.
async fn judge(parts: &Parts) -> Result<Option<i64>, StoreError> {
    match parts.store().read(ends::next_judgement).await? {
        Some(at_ms) if at_ms <= parts.now_ms() => {
            parts.store().write(|context| ends::judge_due(context, AT_ONCE)).await?;
            parts.store().read(ends::next_judgement).await
        }
        next => Ok(next),
    }
}
