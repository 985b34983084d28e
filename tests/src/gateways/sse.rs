//! The event stream of one subscriber.

use std::{convert::Infallible, sync::Arc};

use axum::{
    body::Body,
    http::{Response, header::CONTENT_TYPE},
};
use bytes::Bytes;
use futures::{Stream, stream};
use serde_json::{Value, json};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::ledger::{Change, Ledger, Vocabulary};

/// Counts an open stream.
struct Open(Arc<Ledger>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.lock().open_streams -= 1;
    }
}

struct Subscriber {
    _open: Open,
    vocabulary: Vocabulary,
    request: Value,
    changes: Receiver<Change>,
    first: Option<Value>,
    over: bool,
}

/// Current state first, then changes, all in one vocabulary; ends with the task.
/// None for a task that does not exist.
pub fn follow(
    ledger: &Arc<Ledger>,
    task: &str,
    vocabulary: Vocabulary,
    request: Value,
) -> Option<Response<Body>> {
    let mut inner = ledger.lock();
    let entry = inner.tasks.get(task)?;
    let subscriber = Subscriber {
        _open: Open(Arc::clone(ledger)),
        vocabulary,
        request,
        changes: entry.changes.subscribe(),
        first: Some(entry.snapshot_event(vocabulary)),
        over: entry.is_terminal(),
    };
    inner.open_streams += 1;
    drop(inner);
    let answer = Response::builder()
        .header(CONTENT_TYPE, "text/event-stream")
        .header("Cache-Control", "no-store")
        .body(Body::from_stream(frames(subscriber)));
    Some(answer.expect("these headers are valid"))
}

fn frames(subscriber: Subscriber) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::unfold(subscriber, |mut subscriber| async move {
        let event = next_event(&mut subscriber).await?;
        let frame = json!({"jsonrpc": "2.0", "id": subscriber.request, "result": event});
        Some((Ok(Bytes::from(format!("data: {frame}\n\n"))), subscriber))
    })
}

async fn next_event(subscriber: &mut Subscriber) -> Option<Value> {
    if let Some(first) = subscriber.first.take() {
        return Some(first);
    }
    while !subscriber.over {
        match subscriber.changes.recv().await {
            Ok(Change::Cut) | Err(RecvError::Closed) => return None,
            Ok(Change::Event { old, new, last }) => {
                subscriber.over = last;
                return Some(match subscriber.vocabulary {
                    Vocabulary::V03 => old,
                    Vocabulary::V1 => new,
                });
            }
            // Slower than 256 changes: no test of this gateway produces that many.
            Err(RecvError::Lagged(_)) => {}
        }
    }
    None
}
