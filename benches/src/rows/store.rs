//! Durable writes: many callers and one flush, beside one transaction for each write.
//!
//! Both insert a row of the change feed into the same tables with the same durability.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use taskbell_engine::store::changes::{NewChange, record_change};
use taskbell_engine::store::{Store, wall_clock};
use tokio::sync::oneshot;

use crate::table::{Figure, Table};
use crate::{Failure, Scale, program};

const BODY_BYTES: usize = 600;

pub async fn run(scale: Scale, table: &mut Table) -> Result<(), Failure> {
    let window = Duration::from_millis(scale.pick(2_000, 200));
    let body = format!("{{\"text\":\"{}\"}}", "x".repeat(BODY_BYTES));
    for callers in [1, 16, 64] {
        let (mut grouped, mut single) = (Vec::new(), Vec::new());
        // In turn, so that a disk that changes its pace is the same for both.
        for _ in 0..scale.runs() {
            let folder = program::folder()?;
            let (store, _) = Store::open(folder.path(), wall_clock())?;
            grouped.push(group_commit(&store, callers, window, &body).await?);
            store.close(Duration::from_secs(10)).await?;
            single.push(one_commit_each(folder.path(), callers, window, &body).await?);
        }
        table.add_beside(
            format!("durable writes, {callers} at once"),
            Figure::new(grouped, "/s"),
            ("one commit a write", Figure::new(single, "/s")),
            "≥ 5 × at 64",
        );
    }
    Ok(())
}

/// Writes a second.
async fn group_commit(store: &Store, callers: usize, window: Duration, body: &str) -> Result<f64, Failure> {
    let began = Instant::now();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..callers {
        let (store, body) = (store.clone(), body.to_owned());
        running.spawn(async move {
            let mut written = 0_u64;
            while began.elapsed() < window {
                let body = body.clone();
                store
                    .write(move |context| {
                        let change = NewChange {
                            agent: None,
                            task: None,
                            source: "poll",
                            kind: "sweep",
                            body_json: &body,
                        };
                        record_change(context, &change)
                    })
                    .await?;
                written += 1;
            }
            Ok::<u64, taskbell_engine::store::StoreError>(written)
        });
    }
    let mut written = 0;
    while let Some(done) = running.join_next().await {
        written += done??;
    }
    Ok(written as f64 / began.elapsed().as_secs_f64())
}

/// The same on one thread that commits every write by itself.
async fn one_commit_each(
    folder: &Path,
    callers: usize,
    window: Duration,
    body: &str,
) -> Result<f64, Failure> {
    let connection = Connection::open(folder.join("taskbell.db"))?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 4096, |_| Ok(()))?;
    let (queue, inbox) = mpsc::channel::<(String, oneshot::Sender<bool>)>();
    let writer = std::thread::spawn(move || {
        for (body, done) in inbox {
            // The caller may have gone; then nobody counts it.
            let _ = done.send(insert(&connection, &body).is_ok());
        }
    });
    let began = Instant::now();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..callers {
        let (queue, body) = (queue.clone(), body.to_owned());
        running.spawn(async move {
            let mut written = 0_u64;
            while began.elapsed() < window {
                let (done, answer) = oneshot::channel();
                if queue.send((body.clone(), done)).is_err() || answer.await != Ok(true) {
                    return Err("a write failed");
                }
                written += 1;
            }
            Ok(written)
        });
    }
    drop(queue);
    let mut written = 0;
    while let Some(done) = running.join_next().await {
        written += done??;
    }
    let rate = written as f64 / began.elapsed().as_secs_f64();
    writer.join().map_err(|_| "the writer panicked")?;
    Ok(rate)
}

fn insert(connection: &Connection, body: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    connection
        .prepare_cached(
            "INSERT INTO changes (at_ms, source, kind, body_json) VALUES (1, 'poll', 'sweep', ?1)",
        )?
        .execute([body])?;
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}
