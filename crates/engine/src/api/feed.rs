//! The change feed: `GET /changes` as an event stream, and one task's changes as a list.
//!
//! A reader pulls pages from the store at its own pace; nothing is queued for it, so one that is too slow is
//! behind and holds one page. The doorbell says when to look again. A block with nothing but an `id` tells
//! where the feed stands: first thing, so that a cut before the first change loses none, and when other
//! tasks' changes have moved a filtered feed on.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use taskbell_core::ids::TaskRef;
use tokio::sync::watch;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ApiState;
use super::error::ApiError;
use super::extract::{Params, TaskPath};
use super::views::{ChangeView, ErrorBody, Page};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::present;
use crate::store::changes::{self, NamedChange};
use crate::store::{Store, StoreError, TaskKey, tasks};

/// A comment so often, or the feed is dead.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

const PAGE: u32 = 256;
const PAGE_OCTETS: usize = 256 * 1024;
const LIST_OCTETS: usize = 4 << 20;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(follow_changes)).routes(routes!(list_changes))
}

/// Everything that changes, as it changes. Each event's `id` is its `seq`; an event `reset` says that changes
/// between the number asked for and the next one are not kept any more. Without a number: from now on.
#[utoipa::path(
    get, path = "/changes", tag = "changes",
    params(
        ("after" = Option<u64>, Query, description = "The number after which to begin"),
        ("task" = Option<String>, Query, description = "Only of this task, AGENT/TASKID"),
        ("Last-Event-ID" = Option<u64>, Header, description = "Beats `after`, which a reconnecting page repeats"),
    ),
    responses(
        (status = 200, body = ChangeView, content_type = "text/event-stream"),
        (status = "default", body = ErrorBody),
    ),
)]
async fn follow_changes(
    State(state): State<ApiState>,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, ApiError> {
    let params = params.only(&["after", "task"])?;
    let mut after: Option<u64> = params.one("after")?;
    if let Some(last) = headers.get("last-event-id") {
        let last = last.to_str().ok().and_then(|text| text.parse().ok());
        after = Some(last.ok_or_else(|| ApiError::bad_request("Last-Event-ID is a number of the feed"))?);
    }
    let task: Option<TaskRef> = params.one("task")?;
    let feed = Feed::open(&state.engine, state.stop.clone(), after, task).await?;
    let body = Body::from_stream(stream::unfold(feed, |mut feed| async {
        let block = feed.next_block().await?;
        Some((Ok::<_, Infallible>(block), feed))
    }));
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], body).into_response())
}

/// One task's changes, the oldest first.
#[utoipa::path(
    get, path = "/tasks/{agent}/{taskId}/changes", tag = "changes",
    params(
        ("agent" = String, Path),
        ("taskId" = String, Path, description = "Percent-encoded"),
        ("after" = Option<u64>, Query, description = "The number after which to begin"),
        ("limit" = Option<u32>, Query, description = "1 to 1000, 100 where none is given"),
    ),
    responses((status = 200, body = Page<ChangeView>), (status = "default", body = ErrorBody)),
)]
async fn list_changes(
    State(state): State<ApiState>,
    TaskPath(task): TaskPath,
    params: Params,
) -> Result<Json<Page<ChangeView>>, ApiError> {
    let params = params.only(&["after", "limit"])?;
    let after = params.one::<u64>("after")?.unwrap_or(0);
    let limit = params.one::<u32>("limit")?.unwrap_or(100);
    if !(1..=1000).contains(&limit) {
        return Err(ApiError::bad_request("limit in the query is 1 to 1000"));
    }
    let key = find_task(&state.engine, &task).await?;
    let (page, more) = state
        .engine
        .store()
        .read(move |connection| {
            let page = changes::named_after(connection, after, Some(key), limit, LIST_OCTETS)?;
            // A page of large changes is short of its limit, so its length does not tell.
            let more = match page.last() {
                Some(last) => !changes::named_after(connection, last.change.seq, Some(key), 1, 1)?.is_empty(),
                None => false,
            };
            Ok((page, more))
        })
        .await?;
    let items: Vec<ChangeView> = page.into_iter().map(view).collect();
    let next = items.last().filter(|_| more).map(|last| last.seq.to_string());
    Ok(Json(Page { items, next }))
}

/// The row of a task, which a unique prefix names too.
async fn find_task(engine: &Engine, task: &TaskRef) -> Result<TaskKey, ApiError> {
    let task = engine.summary(task).await?.task;
    let wanted = task.clone();
    let row = engine.store().read(move |connection| tasks::find(connection, &wanted)).await?;
    Ok(row.ok_or_else(|| EngineError::unknown_task(&task))?.key)
}

fn view(named: NamedChange) -> ChangeView {
    let NamedChange { change, agent, task } = named;
    let task = agent.clone().zip(task).map(|(agent, task)| TaskRef { agent, task });
    present::change(&change, task, agent)
}

/// One reader's place in the feed.
struct Feed {
    store: Store,
    doorbell: watch::Receiver<u64>,
    stop: watch::Receiver<bool>,
    task: Option<TaskKey>,
    seq: u64,
    /// What the reader is told first.
    opening: Option<String>,
}

impl Feed {
    async fn open(
        engine: &Engine,
        stop: watch::Receiver<bool>,
        after: Option<u64>,
        task: Option<TaskRef>,
    ) -> Result<Self, ApiError> {
        let task = match task {
            Some(task) => Some(find_task(engine, &task).await?),
            None => None,
        };
        let store = engine.store().clone();
        let doorbell = store.doorbell();
        let (first, last) = store
            .read(|connection| Ok((changes::first_seq(connection)?, changes::last_seq(connection)?)))
            .await?;
        let (seq, reset) = match after {
            None => (last, false),
            // Of another database, or of this one before it was restored.
            Some(after) if after > last => (last, true),
            Some(after) => {
                let oldest = first.unwrap_or(last + 1);
                if after + 1 < oldest { (oldest - 1, true) } else { (after, false) }
            }
        };
        let event = if reset { "event: reset\ndata: {}\n" } else { "" };
        Ok(Self { store, doorbell, stop, task, seq, opening: Some(format!("{event}id: {seq}\n\n")) })
    }

    /// The next octets for the reader; `None`: the feed ends.
    async fn next_block(&mut self) -> Option<Bytes> {
        if let Some(opening) = self.opening.take() {
            return Some(opening.into());
        }
        loop {
            if *self.stop.borrow_and_update() {
                return None;
            }
            // The bell first: what is committed after this rings again.
            let rung = *self.doorbell.borrow_and_update();
            let page = match self.page().await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(code = error.code(), "a reader of the change feed was cut: {error}");
                    return None; // It comes back for the same number.
                }
            };
            if let Some(last) = page.last() {
                self.seq = last.change.seq;
                return Some(written(page));
            }
            if rung > self.seq {
                self.seq = rung;
                if self.task.is_some() {
                    return Some(format!("id: {rung}\n\n").into());
                }
            }
            tokio::select! {
                rung = self.doorbell.changed() => if rung.is_err() { return None },
                _ = self.stop.changed() => return None,
                () = tokio::time::sleep(KEEP_ALIVE) => return Some(Bytes::from_static(b": keep-alive\n\n")),
            }
        }
    }

    async fn page(&self) -> Result<Vec<NamedChange>, StoreError> {
        let (seq, task) = (self.seq, self.task);
        self.store
            .read(move |connection| changes::named_after(connection, seq, task, PAGE, PAGE_OCTETS))
            .await
    }
}

fn written(page: Vec<NamedChange>) -> Bytes {
    let mut block = String::new();
    for change in page {
        let seq = change.change.seq;
        let json = serde_json::to_string(&view(change)).expect("texts and numbers always serialise");
        // JSON holds no bare line end, so one data line is enough. Writing to a String cannot fail.
        let _ = write!(block, "id: {seq}\ndata: {json}\n\n");
    }
    block.into()
}
