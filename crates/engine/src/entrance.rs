//! Where clients find the engine: its port, once it has one, and `runtime.json`, which tells it.
//!
//! A desktop app starts although another program has the port. Then following goes on, Health names the
//! holder, and the listener is opened as soon as the port is free.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use taskbell_core::credential::Secret;
use tokio::sync::watch;

use crate::api::{self, ApiState};
use crate::data_dir::{DataDirError, HeldDataDir, Runtime};
use crate::listen::{Bound, Limits, ListenError};
use crate::running::{Ready, StartError};

/// How often a taken port is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(10);

pub(crate) struct Entrance {
    state: ApiState,
    folder: HeldDataDir,
    token: Secret,
    ready: OnceLock<Ready>,
}

impl Entrance {
    pub fn new(state: ApiState, folder: HeldDataDir, token: Secret) -> Self {
        Self { state, folder, token, ready: OnceLock::new() }
    }

    /// `None` as long as there is no port.
    pub fn ready(&self) -> Option<&Ready> {
        self.ready.get()
    }

    /// The port is ours: from now on its hosts are ours too.
    pub fn stands_at(&self, address: SocketAddr) -> Result<(), StartError> {
        self.state.access.set_port(address.port());
        let page = self
            .state
            .page_login(Instant::now())
            .map_err(|error| StartError::Page { message: error.message })?
            .url;
        let ready = Ready { pid: std::process::id(), gateway: format!("http://{address}"), page };
        // Once a run: the port is bound once.
        let _ = self.ready.set(ready);
        Ok(())
    }

    /// For Health, which names the holder.
    pub fn note_taken(&self, taken: &ListenError) {
        tracing::warn!("{taken}; following goes on, and the port is tried again each 10 s");
        self.state.access.note_port_taken(taken.to_string(), Instant::now());
    }

    /// Serves API and page until `stop` turns true.
    pub fn serve(
        &self,
        bound: Bound,
        stop: watch::Receiver<bool>,
    ) -> impl Future<Output = ()> + Send + use<> {
        bound.serve(api::guarded(self.state.clone()), Limits::default(), stop)
    }

    /// Serves as soon as the port is free.
    pub async fn serve_once_free(self: Arc<Self>, wanted: SocketAddr, mut stop: watch::Receiver<bool>) {
        let bound = loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(TRY_AGAIN) => (),
            }
            match Bound::bind(wanted).await {
                Ok(bound) => break bound,
                Err(error) => self.state.access.note_port_taken(error.to_string(), Instant::now()),
            }
        };
        let told = self.stands_at(bound.address()).map_err(|error| error.to_string());
        let told = told.and_then(|()| self.publish().map_err(|error| error.to_string()));
        match told {
            Ok(()) => tracing::info!(address = %bound.address(), "the port is free now, and ours"),
            // Clients do not find us; pages that know the port do.
            Err(error) => tracing::warn!("clients could not be told of the port: {error}"),
        }
        self.serve(bound, stop).await;
    }

    /// Tells clients where we are, or that we are nowhere yet.
    pub fn publish(&self) -> Result<(), DataDirError> {
        self.folder.publish(&Runtime {
            pid: std::process::id(),
            gateway: self.ready().map(|ready| ready.gateway.clone()),
            inbox: self.state.engine.inbox().address().map(|address| format!("http://{address}")),
            token: self.token.clone(),
        })
    }

    pub fn retract(&self) -> Result<(), DataDirError> {
        self.folder.retract()
    }
}
