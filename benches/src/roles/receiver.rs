//! Receivers of callbacks to be measured beside: one that stores nothing, one that commits each, and one that
//! commits many together and does nothing else.

use std::path::Path;
use std::sync::mpsc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path as RequestPath, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use clap::ValueEnum;
use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{answer_all, say};
use crate::Failure;

/// Rows in one transaction of the model.
const BATCH: usize = 256;
pub const TOKEN: &str = "token-of-the-bench";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Receiver {
    /// Answers and stores nothing
    Bare,
    /// One commit a request
    Single,
    /// Whatever queued up during the last commit is the next
    Grouped,
}

struct Row {
    path: String,
    body: Bytes,
    done: oneshot::Sender<bool>,
}

pub async fn run(kind: Receiver, folder: &Path) -> Result<(), Failure> {
    let router = match kind {
        Receiver::Bare => {
            Router::new().route("/a2a/callbacks/{path}", post(async |_: Bytes| axum::Json(json!({}))))
        }
        Receiver::Single | Receiver::Grouped => {
            let queue = write(folder, if kind == Receiver::Single { 1 } else { BATCH })?;
            Router::new().route("/a2a/callbacks/{path}", post(take)).with_state(queue)
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    say(&json!({ "inbox": format!("http://{}", listener.local_addr()?) }));
    tokio::select! {
        served = async { axum::serve(listener, router).await } => Ok(served?),
        ended = answer_all(async |_: Value| Ok(json!({}))) => ended,
    }
}

async fn take(
    State(queue): State<mpsc::Sender<Row>>,
    RequestPath(path): RequestPath<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<axum::Json<Value>, StatusCode> {
    if headers.get("a2a-notification-token").is_none_or(|token| token != TOKEN) {
        return Err(StatusCode::UNAUTHORIZED);
    }
    let (done, answer) = oneshot::channel();
    queue.send(Row { path, body, done }).map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    match answer.await {
        Ok(true) => Ok(axum::Json(json!({}))),
        Ok(false) | Err(_) => Err(StatusCode::SERVICE_UNAVAILABLE),
    }
}

/// A thread that inserts what comes, so many rows a transaction at most.
fn write(folder: &Path, most: usize) -> Result<mpsc::Sender<Row>, Failure> {
    let connection = Connection::open(folder.join("callbacks.db"))?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 4096, |_| Ok(()))?;
    connection
        .execute_batch("CREATE TABLE callbacks (id INTEGER PRIMARY KEY, path TEXT, body BLOB) STRICT")?;
    let (queue, rows) = mpsc::channel::<Row>();
    std::thread::spawn(move || {
        while let Ok(first) = rows.recv() {
            let batch: Vec<Row> = std::iter::once(first).chain(rows.try_iter().take(most - 1)).collect();
            let stored = insert(&connection, &batch).is_ok();
            for row in batch {
                // The caller may have gone; then nobody counts it.
                let _ = row.done.send(stored);
            }
        }
    });
    Ok(queue)
}

fn insert(connection: &Connection, batch: &[Row]) -> rusqlite::Result<()> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let mut statement = connection.prepare_cached("INSERT INTO callbacks (path, body) VALUES (?1, ?2)")?;
    for row in batch {
        statement.execute((&row.path, &row.body[..]))?;
    }
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}
