//! Keeps the full text index of tasks up with them: a little at a time, so that no writer waits long.
//!
//! What changed comes first, within a moment; then what was there before the index, from the newest on.

use std::time::Duration;

use crate::store::search::{self, Document, Due};
use crate::store::{Store, StoreError};

/// Changes of one moment are one turn.
const GATHERS: Duration = Duration::from_millis(100);
/// Between two turns while there is more to do, for others.
const BREATHES: Duration = Duration::from_millis(5);
const AFTER_FAILURE: Duration = Duration::from_secs(10);
/// Tasks of one turn, and octets of their words: about as long as a commit takes on a disk.
const AT_ONCE: u32 = 64;
const OCTETS_AT_ONCE: usize = 128 << 10;

pub async fn run(store: Store) {
    let mut changes = store.doorbell();
    loop {
        match run_once(&store).await {
            Ok(Turn::More) => tokio::time::sleep(BREATHES).await,
            Ok(Turn::Done) => {
                if changes.changed().await.is_err() {
                    return;
                }
                tokio::time::sleep(GATHERS).await;
                changes.mark_unchanged();
            }
            Err(StoreError::Stopped) => return,
            Err(error) => {
                tracing::warn!(%error, "the index of tasks was not brought up to date");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
    }
}

/// What a turn found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// There may be more.
    More,
    Done,
}

/// Indexes some of what is due.
pub async fn run_once(store: &Store) -> Result<Turn, StoreError> {
    let (read, has_old) = store
        .read(|connection| {
            let due = search::due(connection, AT_ONCE)?;
            let mut read: Vec<(Due, Option<Document>)> = Vec::new();
            let mut octets = 0;
            for due in &due {
                let document = search::document(connection, due.key())?;
                octets += document.as_ref().map_or(0, Document::octets);
                read.push((*due, document));
                if octets >= OCTETS_AT_ONCE {
                    break;
                }
            }
            Ok((read, search::has_old(connection)?))
        })
        .await?;
    if read.is_empty() {
        if has_old {
            store.write(search::finish_old).await?;
        }
        return Ok(Turn::Done);
    }
    store.write(move |context| search::index(context, &read)).await?;
    Ok(Turn::More)
}
