//! Waiting for a state to be reached, with a limit and a reason.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Time between two looks. Short against every limit used, long against the
/// cost of one command.
const PAUSE: Duration = Duration::from_millis(100);

/// Looks until `found` answers something, and returns it.
///
/// # Panics
/// When `limit` has passed; the message says `what` was waited for.
pub async fn wait_until<T, F>(limit: Duration, what: &str, mut found: F) -> T
where
    F: AsyncFnMut() -> Option<T>,
{
    let end = Instant::now() + limit;
    loop {
        if let Some(value) = found().await {
            return value;
        }
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        sleep(PAUSE).await;
    }
}

/// Like [`wait_until`] for a condition without a value that needs no waiting itself.
///
/// # Panics
/// When `limit` has passed.
pub async fn eventually(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    wait_until(limit, what, async || holds().then_some(())).await;
}
