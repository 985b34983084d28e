//! Sends the callbacks that clients registered.
//!
//! A worker that reads rows and marks, asks `taskbell_core::{delivery, lanes}` what to do, and writes what came of
//! it. Nothing here changes a task, and a receiver that is down says nothing about one.
//!
//! | question | room |
//! |---|---|
//! | what clients register | [`registration`] |
//! | which callback is sent now | [`worker`] |
//! | one attempt | [`attempt`] |
//! | targets and deliveries shown and changed | [`records`] |
//! | their secrets in the keyring | [`secrets`] |

mod attempt;
pub mod records;
pub mod registration;
mod secrets;
mod worker;

use std::sync::Arc;

use tokio::sync::Notify;

use crate::error::EngineError;
use crate::keychain::Keychain;
use crate::outbound::Outbound;
use crate::parts::Parts;
use crate::store::deliveries;
use crate::store::outbox::{self, Outbox};
use secrets::Secrets;

pub use registration::{RegisterError, Registered};
pub use worker::Worker;

/// What the rest of the engine has of the dispatcher. Clones share it.
#[derive(Clone)]
pub struct Dispatcher(Arc<Inner>);

struct Inner {
    parts: Parts,
    outbound: Outbound,
    outbox: Arc<Outbox>,
    secrets: Secrets,
    /// Rows were changed by hand.
    bell: Notify,
    /// Secrets may have lost their last user.
    sweep: Notify,
}

impl Dispatcher {
    /// The handle and the worker, which is to be run. What was being sent when the engine stopped is settled
    /// before anything else is sent.
    pub async fn new(parts: Parts, keychain: Keychain) -> Result<(Self, Worker), EngineError> {
        let outbound = Outbound::new().map_err(|error| {
            EngineError::new("client_setup_failed", format!("no safe TLS can be set up: {error}"))
        })?;
        Self::with_outbound(parts, keychain, outbound).await
    }

    async fn with_outbound(
        parts: Parts,
        keychain: Keychain,
        outbound: Outbound,
    ) -> Result<(Self, Worker), EngineError> {
        let outbox = Arc::new(Outbox::default());
        let attached = Arc::clone(&outbox);
        let interrupted = parts
            .store()
            .write(move |context| {
                outbox::attach(context, attached);
                deliveries::settle_interrupted(context)
            })
            .await?;
        if interrupted > 0 {
            tracing::info!(
                interrupted,
                "callbacks were being sent when the engine stopped; they are sent again"
            );
        }
        let dispatcher = Self(Arc::new(Inner {
            parts,
            outbound,
            outbox,
            secrets: Secrets::new(keychain),
            bell: Notify::new(),
            sweep: Notify::new(),
        }));
        let worker = Worker::new(dispatcher.clone());
        Ok((dispatcher, worker))
    }

    /// Rows of targets or deliveries were changed: what they allow is sent now.
    pub fn ring(&self) {
        self.0.bell.notify_one();
    }
}

#[cfg(test)]
mod tests;
