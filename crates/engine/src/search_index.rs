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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{migrations, open, wall_clock};

    /// A store of before there was an index, with that many tasks.
    fn old_store(folder: &std::path::Path, tasks: i64) {
        let mut connection = rusqlite::Connection::open(folder.join(open::FILE_NAME)).unwrap();
        connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
        migrations::migrate_to(&mut connection, 7).unwrap();
        let agent =
            "INSERT INTO agents (id, name, registered_url, origin, use_card_url, allow_http, created_at_ms)
                     VALUES (1, 'demo', 'u', 'o', 0, 0, 0)";
        connection.execute(agent, []).unwrap();
        for key in 1..=tasks {
            let sql = "INSERT INTO tasks (id, agent_id, task_id, title, state, raw_state, status_json, settled,
                           following, mode, mode_since_ms, attempt, credential_version, source, created_at_ms,
                           updated_at_ms)
                       VALUES (?1, 1, 't-' || ?1, ?2, 'completed', '', ?3, 1, 'ended', 'ended', 0, 0, 0, 'send', 0, ?1)";
            let status = r#"{"state":"TASK_STATE_COMPLETED"}"#;
            connection.execute(sql, (key, format!("old work {key}"), status)).unwrap();
        }
    }

    #[tokio::test]
    async fn what_was_there_before_the_index_is_indexed_in_steps_and_then_no_more() {
        let folder = tempfile::tempdir().unwrap();
        old_store(folder.path(), 150);
        let (store, _) = Store::open(folder.path(), wall_clock()).unwrap();
        let found = async |expression: &'static str| {
            store.read(move |connection| search::hits(connection, expression)).await.unwrap().len()
        };
        assert_eq!(found("work").await, 0, "opening the store waits for no index");
        assert_eq!(run_once(&store).await.unwrap(), Turn::More);
        assert_eq!(found("work").await, 64, "a turn is a little");
        assert_eq!(store.read(search::left).await.unwrap(), 86);
        assert_eq!((found("150").await, found("1").await), (1, 0), "the newest come first");
        while run_once(&store).await.unwrap() == Turn::More {}
        assert_eq!(found("work").await, 150);
        assert!(!store.read(search::has_old).await.unwrap());
        store.close(Duration::from_secs(5)).await.unwrap();
        let (store, _) = Store::open(folder.path(), wall_clock()).unwrap();
        assert_eq!(run_once(&store).await.unwrap(), Turn::Done, "a later start has nothing to do");
    }
}
