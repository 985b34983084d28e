//! What a stream brought, on its way to the store: one write at a time, and reading goes on meanwhile.
//!
//! Whoever listens was told before, so progress may wait a moment for the progress of other tasks and share
//! their commit; what somebody is called for, an end or a question, does not. Bounded, so that an agent that sends more than the disk takes is read
//! more slowly and fills no memory.

use std::collections::VecDeque;

use taskbell_core::follow::FrameKind;
use taskbell_core::merge::Order;
use taskbell_core::relay;
use taskbell_core::task::StreamEvent;

use super::Pending;
use crate::parts::Parts;
use crate::store::hub::Batch;
use crate::store::task_records::{Applied, apply_events, apply_told};
use crate::store::tasks::Channel;
use crate::store::{StoreError, TaskKey, WriteContext};

/// Events that wait for the write before theirs.
const WAITING: usize = 512;

/// Events that arrived together.
pub(super) struct Run {
    pub events: Vec<(StreamEvent, Order)>,
    pub kind: FrameKind,
    pub wants_read: bool,
    /// `None`: whoever listens is told by the writer.
    pub told: Option<Batch>,
}

/// One run is being written at most; the others wait in order.
#[derive(Default)]
pub(super) struct Storing {
    writing: Option<Writing>,
    waiting: VecDeque<Run>,
}

struct Writing {
    kind: FrameKind,
    wants_read: bool,
    is_told: bool,
    result: Pending<Result<Applied, StoreError>>,
}

/// Whether nobody is called for it: it tells no end and no question.
fn is_progress(event: &StreamEvent) -> bool {
    relay::state_of(event).is_none_or(|state| !state.is_terminal() && !state.is_interrupted())
}

/// A run that was written, or was not.
pub(super) struct Written {
    pub kind: FrameKind,
    pub wants_read: bool,
    pub result: Result<Applied, StoreError>,
}

impl Storing {
    pub fn is_idle(&self) -> bool {
        self.writing.is_none() && self.waiting.is_empty()
    }

    pub fn has_room(&self) -> bool {
        self.waiting_events() < WAITING
    }

    /// Whether the writer has yet to tell something: nothing later may be told before it.
    pub fn has_untold(&self) -> bool {
        self.writing.as_ref().is_some_and(|writing| !writing.is_told)
            || self.waiting.iter().any(|run| run.told.is_none())
    }

    /// Runs of one kind become one.
    pub fn put(&mut self, parts: &Parts, mut run: Run) {
        match self.waiting.back_mut() {
            Some(last) if last.told.is_some() == run.told.is_some() && run.kind == FrameKind::Update => {
                last.events.append(&mut run.events);
                last.wants_read |= run.wants_read;
                if let (Some(told), Some(next)) = (&mut last.told, run.told) {
                    told.append(next);
                }
            }
            Some(_) | None => self.waiting.push_back(run),
        }
        // Half of the room is left for what the agent sends until this is written.
        if self.waiting_events() > WAITING / 2 {
            parts.store().hurry();
        }
    }

    fn waiting_events(&self) -> usize {
        self.waiting.iter().map(|run| run.events.len()).sum()
    }

    /// Starts the next write if none is under way.
    pub fn go_on(&mut self, parts: &Parts, key: TaskKey) {
        if self.writing.is_some() {
            return;
        }
        let Some(Run { events, kind, wants_read, told }) = self.waiting.pop_front() else { return };
        let is_told = told.is_some();
        let store = parts.store().clone();
        let may_wait = told.is_some() && events.iter().all(|(event, _)| is_progress(event));
        let write = async move {
            let command = move |context: &mut WriteContext<'_>| match &told {
                Some(told) => apply_told(context, key, events, told, Channel::Stream),
                None => apply_events(context, key, events, Channel::Stream),
            };
            if may_wait { store.write_along(command).await } else { store.write(command).await }
        };
        self.writing = Some(Writing { kind, wants_read, is_told, result: Box::pin(write) });
    }

    /// What came of the write under way; for ever where none is.
    pub async fn next(&mut self) -> Written {
        let Some(writing) = &mut self.writing else { return std::future::pending().await };
        let result = writing.result.as_mut().await;
        let (kind, wants_read) = (writing.kind, writing.wants_read);
        self.writing = None;
        Written { kind, wants_read, result }
    }
}
