//! Whether an agent can be reached, found out once for all its tasks.
//!
//! When one task cannot connect, the rest need not try: one probe runs until the agent listens again, then
//! all are told. A thousand streams are back at once, for a handful of refused connections.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::agent_client::{AgentClient, CallFault, Unreachable};

/// The first waits between probes; the last stands. One probe for all tasks of an agent is cheap.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(300),
    Duration::from_millis(500),
];
/// After a minute of outage nobody notices a few seconds.
const PATIENT: Duration = Duration::from_secs(3);
const PATIENT_AFTER: usize = 120;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    Unknown,
    Up,
    Down,
}

/// An agent's link. Clones share it.
#[derive(Debug, Clone)]
pub struct Link(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: watch::Sender<LinkState>,
    prober: std::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Default for Link {
    fn default() -> Self {
        let (state, _) = watch::channel(LinkState::Unknown);
        Self(Arc::new(Inner { state, prober: std::sync::Mutex::default() }))
    }
}

impl Link {
    pub fn state(&self) -> LinkState {
        *self.0.state.borrow()
    }

    /// Tells of every change. A receiver sees the latest state only.
    pub fn changes(&self) -> watch::Receiver<LinkState> {
        self.0.state.subscribe()
    }

    /// How many are told of changes: the tasks of the agent that are followed.
    pub fn listeners(&self) -> usize {
        self.0.state.receiver_count()
    }

    /// A call got an answer, whatever it was.
    pub fn handle_answered(&self) {
        self.0.state.send_if_modified(|state| {
            let was = std::mem::replace(state, LinkState::Up);
            was != LinkState::Up
        });
    }

    /// A call did not get through: probes until one does.
    pub fn handle_unreachable(&self, client: &AgentClient) {
        let newly = self.0.state.send_if_modified(|state| {
            let was = std::mem::replace(state, LinkState::Down);
            was != LinkState::Down
        });
        if newly {
            let (link, client) = (self.clone(), client.clone());
            let prober = tokio::spawn(async move { link.probe(&client).await });
            let mut slot = self.0.prober.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some(former) = slot.replace(prober) {
                former.abort();
            }
        }
    }

    async fn probe(&self, client: &AgentClient) {
        let mut tried = 0;
        while self.state() == LinkState::Down {
            let pause = if tried > PATIENT_AFTER { PATIENT } else { PAUSES[tried.min(PAUSES.len() - 1)] };
            tokio::time::sleep(pause).await;
            tried += 1;
            if answers(client).await {
                self.handle_answered();
            }
        }
    }
}

/// Asks for a task that nobody has: without side effect, and answered by anything that speaks A2A. A proxy
/// that says 502 in the agent's place is not the agent.
async fn answers(client: &AgentClient) -> bool {
    let nobody = taskbell_core::ids::TaskId::new(uuid::Uuid::new_v4().to_string());
    match client.get_task(&nobody).await {
        Ok(_) => true,
        Err(error) => !is_outage(&error.fault),
    }
}

/// No answer of the agent's own.
pub fn is_outage(fault: &CallFault) -> bool {
    match fault {
        CallFault::Unreachable(cause) => match cause {
            Unreachable::Refused
            | Unreachable::Dns
            | Unreachable::NoRoute
            | Unreachable::Reset
            | Unreachable::TimedOut
            | Unreachable::Tls(_)
            | Unreachable::NotHttp
            | Unreachable::Other => true,
            // Our own shortage says nothing of the agent.
            Unreachable::NoDescriptors => false,
        },
        CallFault::Remote { kind: taskbell_core::fault::FaultKind::Unavailable, retry_after, .. } => {
            retry_after.is_none()
        }
        _ => false,
    }
}
