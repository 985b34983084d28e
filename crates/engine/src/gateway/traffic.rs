//! Who asked what through the gateway: a row a request, without content.

use std::time::Instant;

use taskbell_core::dialect::errors::ErrorKind;
use taskbell_core::dialect::request::Operation;
use taskbell_core::dialect::{Binding, Dialect};
use taskbell_core::ids::TaskId;
use taskbell_core::state::TaskState;

use crate::store::gateway_traffic::{self as rows, TrafficRow};
use crate::store::{AgentKey, ClientKey, Store};

/// What is known of one request; written down when it is over.
pub(super) struct Note {
    store: Store,
    began: Instant,
    row: Option<TrafficRow>,
}

impl Note {
    pub fn begin(
        store: Store,
        client: ClientKey,
        agent: AgentKey,
        at_ms: i64,
        (operation, dialect, binding): (Operation, Dialect, Binding),
        octets_in: usize,
    ) -> Self {
        let row = TrafficRow {
            at_ms,
            client,
            agent,
            dialect,
            binding,
            method: operation.name(),
            task_id: None,
            state: None,
            error_code: None,
            took_ms: 0,
            octets_in: octets_in as u64,
            octets_out: 0,
        };
        Self { store, began: Instant::now(), row: Some(row) }
    }

    pub fn set_task(&mut self, task_id: &TaskId) {
        if let Some(row) = &mut self.row {
            row.task_id = Some(task_id.clone());
        }
    }

    pub fn set_state(&mut self, state: TaskState) {
        if let Some(row) = &mut self.row {
            row.state = Some(state);
        }
    }

    /// Answered with an error of this many octets.
    pub fn refused(&mut self, kind: ErrorKind, octets: usize) {
        if let Some(row) = &mut self.row {
            row.error_code = Some(kind.code());
            row.octets_out += octets as u64;
        }
    }

    pub fn sent(&mut self, octets: usize) {
        if let Some(row) = &mut self.row {
            row.octets_out += octets as u64;
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let Some(mut row) = self.row.take() else { return };
        row.took_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Nobody waits for it; a full queue costs a row, not an answer.
        self.store.try_post("traffic", move |context| rows::insert(context, &row));
    }
}
