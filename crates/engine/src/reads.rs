//! GetTask, and what its answer changes: the one way a task is read.

use std::time::Duration;

use taskbell_core::fault::FaultKind;
use taskbell_core::follow::{Identity, ReadFailure};
use taskbell_core::ids::TaskId;
use taskbell_core::oddity::Oddity;

use crate::agent_client::{CallError, CallFault};
use crate::agents::Agent;
use crate::link::is_outage;
use crate::parts::{Parts, Rings};
use crate::rehearsal::{self, Place};
use crate::store::callbacks::{self, Due};
use crate::store::task_records::{Applied, apply_due_read, apply_read};
use crate::store::tasks::Channel;
use crate::store::{StoreError, TaskKey, WriteContext, agents};

/// Why a read changed nothing.
#[derive(Debug)]
pub enum ReadError {
    Call(CallError),
    Store(StoreError),
}

impl ReadError {
    /// The stable word kept with the task while it lasts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Call(error) => error.code(),
            Self::Store(error) => error.code(),
        }
    }

    /// What it means for following.
    pub fn failure(&self) -> ReadFailure {
        match self {
            Self::Call(error) => failure_of(error),
            // Ours, not the agent's: read again later.
            Self::Store(_) => ReadFailure::Unusable,
        }
    }
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Call(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

/// Reads a task at its agent and stores what is different. The agent's link learns of it either way.
pub async fn read_task(
    parts: &Parts,
    agent: &Agent,
    key: TaskKey,
    task_id: &TaskId,
    channel: Channel,
) -> Result<Applied, ReadError> {
    let (due, started, answer) = {
        // Given back before the answer is stored: the agent is done, the disk is not its business.
        let _place = agent.reads.acquire().await;
        let due = due_before(parts, key).await?;
        (due, parts.next_order(), agent.client().get_task(task_id).await)
    };
    note_link(agent, answer.as_ref().err());
    if let Err(CallError { fault: CallFault::WrongTask { .. }, .. }) = &answer {
        note_foreign_answer(parts, agent).await;
    }
    let task = answer.map_err(ReadError::Call)?;
    if due.as_ref().is_some_and(|(_, due)| due.is_due()) {
        rehearsal::reach(Place::BeforeApply);
    }
    let applied = match due {
        None => parts.store().write(move |context| apply_read(context, key, task, started, channel)).await,
        Some((rings, due)) => {
            // Whoever reads it now: a callback is why.
            let channel = if due.is_due() && channel == Channel::Poll { Channel::Push } else { channel };
            let apply = move |context: &mut WriteContext<'_>| {
                apply_due_read(context, key, task, started, channel, due.dirty)
            };
            parts.store().write(apply).await.map(|(applied, settled)| {
                if !applied.stale && settled.ahead == 0 && !settled.more {
                    parts.bells().due.settle(key, rings);
                }
                applied
            })
        }
    };
    let applied = applied.map_err(ReadError::Store)?;
    if applied.state.is_terminal() && applied.changed {
        parts.bells().ends.notify_one();
    }
    Ok(applied)
}

/// How due a task is, looked up only where something may be. What is committed later is not confirmed by a read
/// that begins now.
async fn due_before(parts: &Parts, key: TaskKey) -> Result<Option<(Rings, Due)>, ReadError> {
    let Some(rings) = parts.bells().due.watched(key) else { return Ok(None) };
    let due = parts.store().read(move |connection| callbacks::due(connection, key)).await;
    due.map(|due| Some((rings, due))).map_err(ReadError::Store)
}

/// The answer is thrown away; that there was one is kept on the agent's report.
async fn note_foreign_answer(parts: &Parts, agent: &Agent) {
    let key = agent.key;
    let note = move |context: &mut WriteContext<'_>| {
        let oddity = Oddity::ForeignTask;
        agents::record_oddity(context, key, oddity.kind(), "answered a read with another task").map(|_| ())
    };
    if let Err(error) = parts.store().post("oddity", note).await {
        tracing::warn!(%error, "an answer about another task was not noted");
    }
}

/// Tells the agent's link what came of a call.
pub fn note_link(agent: &Agent, error: Option<&CallError>) {
    match error {
        Some(error) if is_outage(&error.fault) => agent.link.handle_unreachable(&agent.client()),
        // Our own trouble says nothing of the agent.
        Some(CallError {
            fault:
                CallFault::CredentialUnavailable(_)
                | CallFault::TokenCommand(_)
                | CallFault::Setup(_)
                | CallFault::InsecureUrl { .. }
                | CallFault::NotOffered(_)
                | CallFault::Unreachable(_),
            ..
        }) => {}
        Some(_) | None => agent.link.handle_answered(),
    }
}

/// What a failed call means for following.
pub fn failure_of(error: &CallError) -> ReadFailure {
    match &error.fault {
        CallFault::Remote { kind: FaultKind::TaskNotFound, .. } => ReadFailure::NotFound,
        CallFault::Forbidden => ReadFailure::Forbidden,
        CallFault::Unauthorized { .. } => ReadFailure::Unauthorized,
        // A locked keychain or a failing command is looked at again soon: nobody refused us.
        CallFault::CredentialUnavailable(_) | CallFault::TokenCommand(_) => {
            ReadFailure::Later(Some(Duration::from_secs(10)))
        }
        CallFault::Remote { kind: FaultKind::RateLimited | FaultKind::Unavailable, retry_after, .. }
            if retry_after.is_some() =>
        {
            ReadFailure::Later(*retry_after)
        }
        fault if is_outage(fault) => ReadFailure::Unreachable,
        _ => ReadFailure::Unusable,
    }
}

/// Whether the agent's credential is another than when the task was taken in.
pub fn identity(agent: &Agent, credential_version: i64) -> Identity {
    if agent.now().row.credential_version == credential_version { Identity::Same } else { Identity::Changed }
}
