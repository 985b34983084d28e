//! What clients can ask of tasks, whatever the dialect and binding: reading, listing, cancelling, joining.
//!
//! A client sees its own tasks; others are not found, like ones that never were.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde_json::{Value, json};
use taskbell_core::dialect::Dialect;
use taskbell_core::dialect::errors::{ErrorAnswer, ErrorKind};
use taskbell_core::dialect::request::{ListParams, Request};
use taskbell_core::ids::TaskId;
use taskbell_core::relay::{self, EventId};
use taskbell_core::task::{StreamEvent, Task};

use super::stream::{First, Opening, Until};
use super::traffic::Note;
use super::{Caller, faults, push};
use crate::link::LinkState;
use crate::reads::{ReadError, read_task};
use crate::store::gateway_log::{self, Logged};
use crate::store::gateway_tasks::{self, Place, Wanted};
use crate::store::tasks::{self, Channel, FollowMode, Following, TaskRow};
use crate::store::{TaskKey, task_content, task_records};

const PAGE: u32 = 50;
/// A stream that told something within this time is believed to tell all; one that is quiet may be dead.
const HEARD_MS: i64 = 5_000;

/// An answer to a request that was not refused.
pub(super) enum Outcome {
    Value(Value),
    Stream(Box<Opening>),
}

/// The `Last-Event-ID` of a request; `Unknown`: it is none of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastEvent {
    None,
    Known(EventId),
    Unknown,
}

impl Caller {
    pub(super) async fn run(
        &self,
        request: Request,
        last: LastEvent,
        note: &mut Note,
    ) -> Result<Outcome, ErrorAnswer> {
        let value = match request {
            Request::Send(params) => self.send(params, note).await?,
            Request::SendStreaming(params) => return self.send_streaming(params, note).await,
            Request::Subscribe { task_id } => return self.subscribe(&task_id, last, note).await,
            Request::Get { task_id, history_length } => {
                let row = self.task(&task_id, note).await?;
                let mut task = self.fresh(&row).await?;
                note.set_state(task.status.state);
                relay::cut_history(&mut task.history, history_length);
                relay::task_value(&task, self.dialect)
            }
            Request::List(params) => self.list(&params).await?,
            Request::Cancel { task_id } => {
                let row = self.task(&task_id, note).await?;
                let task = self.cancel(&row).await?;
                note.set_state(task.status.state);
                relay::task_value(&task, self.dialect)
            }
            Request::CreatePushConfig(ref params) => {
                let task_id = params.task_id.clone().ok_or_else(faults::not_found)?;
                push::answer(self, &self.task(&task_id, note).await?, request).await?
            }
            Request::GetPushConfig { ref task_id, .. }
            | Request::ListPushConfigs { ref task_id, .. }
            | Request::DeletePushConfig { ref task_id, .. } => {
                let row = self.task(task_id, note).await?;
                push::answer(self, &row, request).await?
            }
            Request::ExtendedCard => self.extended_card().await?,
        };
        Ok(Outcome::Value(value))
    }

    /// The task, where this client may see it and its agent still knows it.
    pub(super) async fn task(&self, task_id: &TaskId, note: &mut Note) -> Result<TaskRow, ErrorAnswer> {
        let row = self.task_or_lost(task_id, note).await?;
        if row.verdict.is_some() { Err(faults::lost(&row, self.dialect)) } else { Ok(row) }
    }

    /// The task as its agent has it now, as far as that can be known: what a live stream tells, or a read. An
    /// agent that cannot be asked leaves what it said last.
    pub(super) async fn fresh(&self, row: &TaskRow) -> Result<Task, ErrorAnswer> {
        let parts = &self.gateway.parts;
        parts.caught_up(row.key).await;
        let key = row.key;
        if row.settled || row.following == Following::Ended {
            let read = parts.store().read(move |connection| task_content::load(connection, key)).await;
            return Ok(read.map_err(|error| faults::of_store(&error))?.0);
        }
        let task = self.present(key).await?;
        let heard_ms = row.confirmed_at_ms.map(|at_ms| parts.now_ms().saturating_sub(at_ms));
        let is_told = row.mode == FollowMode::Stream
            && !task.status.state.is_terminal()
            && heard_ms.is_some_and(|ago_ms| (0..HEARD_MS).contains(&ago_ms));
        if is_told || self.agent.link.state() == LinkState::Down {
            return Ok(task);
        }
        match read_task(parts, &self.agent, key, &row.task_id, Channel::Gateway).await {
            Ok(_) => self.present(key).await,
            Err(ReadError::Call(error))
                if error.kind() == Some(taskbell_core::fault::FaultKind::TaskNotFound) =>
            {
                // The follower asks once more before it gives the task up.
                parts.bells().ring_task(key);
                Err(faults::lost(row, self.dialect))
            }
            Err(error) => {
                tracing::debug!(task = %row.task_id, %error, "a task was answered as it was known");
                Ok(task)
            }
        }
    }

    /// The task as it stands on the writer.
    pub(super) async fn present(&self, key: TaskKey) -> Result<Task, ErrorAnswer> {
        let read = self.gateway.parts.store().write(move |context| task_records::present(context, key));
        read.await.map_err(|error| faults::of_store(&error))
    }

    async fn cancel(&self, row: &TaskRow) -> Result<Task, ErrorAnswer> {
        let present = self.present(row.key).await?;
        if present.status.state.is_terminal() {
            let text = format!("task is {} and cannot be canceled", present.status.state.word());
            return Err(ErrorAnswer::new(ErrorKind::TaskNotCancelable, text));
        }
        self.gateway.tasks.ask_cancel(row).await.map_err(|error| faults::of_engine(&error))?;
        self.present(row.key).await
    }

    /// A page of what this client may see, whatever the agent can list itself.
    async fn list(&self, params: &ListParams) -> Result<Value, ErrorAnswer> {
        let refuse = |text: &str| ErrorAnswer::new(ErrorKind::InvalidParams, text);
        let before = match params.page_token.as_deref() {
            None => None,
            Some(token) => Some(place(token).ok_or_else(|| refuse("pageToken is none of ours"))?),
        };
        let after_ms = match params.status_timestamp_after.as_deref() {
            None => None,
            Some(text) => {
                let at: Timestamp = text.parse().map_err(|_| refuse("statusTimestampAfter is no instant"))?;
                Some(at.as_millisecond())
            }
        };
        let limit = params.page_size.unwrap_or(PAGE);
        let wanted =
            Wanted { context_id: params.context_id.clone(), state: params.status, after_ms, before, limit };
        let (client, agent) = (self.client.key, self.agent.key);
        let read = self.gateway.parts.store().read(move |connection| {
            let listed = gateway_tasks::list(connection, client, agent, &wanted)?;
            let shown = listed.places.iter().take(limit as usize);
            let tasks = shown.map(|place| Ok(task_content::load(connection, place.key)?.0));
            let tasks = tasks.collect::<Result<Vec<Task>, crate::store::StoreError>>()?;
            Ok((tasks, listed))
        });
        let (tasks, listed) = read.await.map_err(|error| faults::of_store(&error))?;
        let next = match listed.places.get(limit as usize - 1) {
            Some(last) if listed.places.len() > limit as usize => {
                format!("{}.{}", last.status_at_ms, last.key.0)
            }
            Some(_) | None => String::new(),
        };
        let tasks: Vec<Value> = tasks
            .into_iter()
            .map(|mut task| {
                relay::cut_history(&mut task.history, Some(params.history_length.unwrap_or(0)));
                if !params.include_artifacts {
                    task.artifacts.clear();
                }
                relay::task_value(&task, Dialect::V1)
            })
            .collect();
        // All four stand always: they are required (1.0 §3.1.4).
        Ok(json!({ "tasks": tasks, "nextPageToken": next, "pageSize": limit, "totalSize": listed.total }))
    }

    /// Joins a task: what was missed where the client says what it has, else the task first; then what
    /// comes. A task that has ended is told and closed in 0.3, and refused in 1.0 unless something was missed.
    async fn subscribe(
        &self,
        task_id: &TaskId,
        last: LastEvent,
        note: &mut Note,
    ) -> Result<Outcome, ErrorAnswer> {
        let row = self.task_or_lost(task_id, note).await?;
        let key = row.key;
        self.gateway.parts.caught_up(key).await;
        // Most of it is read beside the writer; what is being written at this moment, and whether all is known,
        // is seen on it alone.
        let (early, place) = match last {
            LastEvent::Known(id) => {
                let early = self.missed(key, id).await?.unwrap_or_default();
                let place = early.last().map_or(id, |event| event.id);
                (early, Some(place))
            }
            LastEvent::None | LastEvent::Unknown => (Vec::new(), None),
        };
        let dialect = self.dialect;
        let join = move |context: &mut crate::store::WriteContext<'_>| {
            gateway_log::join(context, key, dialect, place)
        };
        let joined =
            self.gateway.parts.store().write(join).await.map_err(|error| faults::of_store(&error))?;
        note.set_state(joined.task.status.state);
        let lost = faults::lost(&row, dialect);
        let mut first = VecDeque::new();
        if let Some(rest) = joined.missed {
            for event in early.iter().chain(&rest) {
                first.push_back(First::Event(Some(event.id), event.line(dialect)));
            }
            if joined.verdict.is_some() {
                first.push_back(First::Error(lost.clone()));
            }
            let opening = Opening { first, feed: joined.feed, until: Until::TaskOver, lost };
            return Ok(Outcome::Stream(Box::new(opening)));
        }
        if joined.verdict.is_some() {
            return Err(lost);
        }
        let has_ended = joined.task.status.state.is_terminal();
        if has_ended && dialect == Dialect::V1 {
            return Err(faults::terminal(&row));
        }
        let mut task = if has_ended { self.fresh(&row).await? } else { joined.task };
        let has_gap = last != LastEvent::None;
        if has_gap {
            first.push_back(First::Comment("gap: what came after that event is not known any more"));
            task.metadata.insert("taskbell.gap".to_owned(), Value::Bool(true));
        }
        let line = relay::event_line(&StreamEvent::Task(task), dialect);
        first.push_back(First::Event(Some(joined.id), line));
        let opening = Opening { first, feed: joined.feed, until: Until::TaskOver, lost };
        Ok(Outcome::Stream(Box::new(opening)))
    }

    /// As [`Self::task`], also where the agent knows it no more: whoever missed something is told it first.
    async fn task_or_lost(&self, task_id: &TaskId, note: &mut Note) -> Result<TaskRow, ErrorAnswer> {
        let (client, agent, wanted) = (self.client.key, self.agent.key, task_id.clone());
        let store = self.gateway.parts.store();
        let found =
            store.read(move |connection| gateway_tasks::find(connection, client, agent, &wanted)).await;
        let row = found.map_err(|error| faults::of_store(&error))?.ok_or_else(faults::not_found)?;
        // An id that the client may not see is none of its tasks, in the traffic as little as elsewhere.
        note.set_task(task_id);
        Ok(row)
    }

    async fn missed(&self, key: TaskKey, id: EventId) -> Result<Option<Vec<Logged>>, ErrorAnswer> {
        let read =
            self.gateway.parts.store().read(move |connection| gateway_log::missed(connection, key, id));
        read.await.map_err(|error| faults::of_store(&error))
    }

    /// The row as it is now.
    pub(super) async fn row(&self, key: TaskKey) -> Result<TaskRow, ErrorAnswer> {
        let read = self.gateway.parts.store().read(move |connection| tasks::get(connection, key));
        read.await.map_err(|error| faults::of_store(&error))
    }
}

fn place(token: &str) -> Option<Place> {
    let (at, key) = token.split_once('.')?;
    Some(Place { status_at_ms: at.parse().ok()?, key: TaskKey(key.parse().ok()?) })
}
