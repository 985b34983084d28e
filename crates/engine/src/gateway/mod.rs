//! The local gateway: agents of this user as A2A endpoints for programs on this machine.
//!
//! ```text
//! client ── http (key, host, type) ──┬── rpc  ──┐
//!                                    └── rest ──┴── operations, sends ── store, hub, agent client
//! ```
//!
//! | question | room |
//! |---|---|
//! | who may call | [`clients`] |
//! | what a request must be | `http` |
//! | JSON-RPC in both dialects, HTTP+JSON of 1.0 | `rpc`, `rest` |
//! | the card that is offered | `card` |
//! | reading, listing, cancelling, joining | `operations` |
//! | messages on their way to an agent | `sends` |
//! | event streams to clients | `stream` |
//! | push configs | [`push`] |
//! | errors | `faults` |
//! | who asked what | `traffic` |
//!
//! The stream from an agent belongs to the follower, however many listen here; what a client does or does not
//! do with its connection touches neither agent nor task.

mod card;
pub mod clients;
mod faults;
mod http;
mod operations;
pub mod push;
mod rest;
mod rpc;
mod sends;
mod stream;
mod traffic;

use std::sync::Arc;

use taskbell_core::dialect::Dialect;

use crate::agent_client::{AgentClient, Negotiation};
use crate::agents::Agent;
use crate::dispatcher::Dispatcher;
use crate::parts::Parts;
use crate::store::{StoreError, gateway_log};
use crate::tasks::Tasks;
use clients::{Client, Clients};

pub(crate) use http::router;

/// What the gateway's rooms share. Clones share it.
#[derive(Clone)]
pub struct Gateway {
    parts: Parts,
    clients: Clients,
    tasks: Tasks,
    dispatcher: Dispatcher,
}

impl Gateway {
    pub async fn load(parts: Parts, dispatcher: Dispatcher) -> Result<Self, StoreError> {
        let hubs = parts.hubs().clone();
        parts.store().write(move |context| gateway_log::install(context, hubs)).await?;
        let clients = Clients::load(parts.store().clone()).await?;
        let tasks = Tasks::new(parts.clone());
        Ok(Self { parts, clients, tasks, dispatcher })
    }

    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    pub fn parts(&self) -> &Parts {
        &self.parts
    }
}

/// Who asks for which agent, and in which words.
#[derive(Clone)]
pub struct Caller {
    pub gateway: Gateway,
    pub client: Arc<Client>,
    pub agent: Arc<Agent>,
    /// By the method that was called: everything that is answered is in it.
    pub dialect: Dialect,
    /// The agent's address here, without a slash at its end.
    pub base: String,
    /// What the request asks of the agent beyond the protocol.
    pub negotiation: Arc<Negotiation>,
}

impl Caller {
    /// The agent, asked for the extensions that the client asks for.
    fn agent_client(&self) -> AgentClient {
        self.agent.client().negotiating(Arc::clone(&self.negotiation))
    }
}
