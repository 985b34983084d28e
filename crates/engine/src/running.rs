//! What a program runs: the data folder held, the store open, the workers, the listener, and the way out.
//!
//! Order matters. The folder's lock decides before a port or the database is opened; clients are told where
//! we are only once everything answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use taskbell_core::credential::Secret;
use taskbell_demo_agent::DemoAgent;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;

use crate::api::access::Access;
use crate::api::window::{WindowCall, Windows};
use crate::api::{self, ApiState};
use crate::api_door::ApiDoor;
use crate::data_dir::{DataDir, DataDirError};
use crate::demo;
use crate::engine::Engine;
use crate::entrance::Entrance;
use crate::error::EngineError;
use crate::inbox::{self, Inbox};
use crate::keychain::{DEADLINE, Keychain, KeychainChoice, KeychainError};
use crate::listen::{Bound, ListenError};
use crate::logs::LOG;
use crate::notifier::{NoticeEvent, Notices};
use crate::store::{OpenError, Store, StoreError, wall_clock};

/// How long the parts of a stop may take; together they stay under 3 s.
const STORE_CLOSES_WITHIN: Duration = Duration::from_millis(1_500);
const CREDENTIAL_FILE: &str = "credentials";

/// Where secrets are kept, as chosen in the open.
#[derive(Debug, Clone)]
pub enum CredentialStore {
    Os,
    File { passphrase: Secret },
    Memory,
}

/// What is done when another program has the port of the gateway or of the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortsTaken {
    /// The engine does not start.
    Refuse,
    /// It follows tasks without that listener; Health names the holder, and the port is tried each 10 s.
    Retry,
}

#[derive(Debug, Clone)]
pub struct EngineOptions {
    pub data_dir: DataDir,
    /// Gateway, API and page. Loopback only; port 0 picks a free one.
    pub gateway: SocketAddr,
    /// Where agents call back. Loopback only, for a tunnel or proxy in front; port 0 picks a free one.
    pub inbox: SocketAddr,
    pub ports_taken: PortsTaken,
    pub credential_store: CredentialStore,
    /// Run the built-in agent as well.
    pub demo: bool,
    /// Where windows listen. A program that shows one listens before the engine starts, so that whoever
    /// finds the engine finds its window too.
    pub windows: Windows,
    /// Whether and where notices are shown.
    pub notices: Notices,
}

/// Where a running engine is found.
#[derive(Debug, Clone)]
pub struct Ready {
    pub pid: u32,
    /// `http://127.0.0.1:PORT`
    pub gateway: String,
    /// The page, with a sign-in that works once, within a minute.
    pub page: String,
}

/// Why the engine did not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Keychain(#[from] KeychainError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the system gives no random numbers")]
    Random,
    #[error("the page has no address: {message}")]
    Page { message: String },
    #[error("the store stopped: nothing can be kept any more")]
    StoreStopped,
}

impl StartError {
    /// The stable word that scripts match on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::DataDir(error) => error.code(),
            Self::Listen(error) => error.code(),
            Self::Open(error) => error.code(),
            Self::Keychain(error) => error.code(),
            Self::Engine(error) => error.code,
            Self::Random => "no_randomness",
            Self::Page { .. } => "no_port",
            Self::StoreStopped => StoreError::Stopped.code(),
        }
    }
}

/// An engine with everything round it.
pub struct RunningEngine {
    state: ApiState,
    entrance: Arc<Entrance>,
    demo: Option<DemoAgent>,
    stop: watch::Sender<bool>,
    listener: JoinHandle<()>,
    inbox: JoinHandle<()>,
}

impl RunningEngine {
    pub async fn start(options: EngineOptions) -> Result<Self, StartError> {
        let folder = options.data_dir.hold()?;
        LOG.open_below(folder.path());
        let bound = bind(options.gateway, options.ports_taken).await?;
        let inbox_bound = bind(options.inbox, options.ports_taken).await?;
        let path = folder.path().to_owned();
        let (store, opened) = tokio::task::spawn_blocking(move || Store::open(&path, wall_clock()))
            .await
            .map_err(|_| StartError::StoreStopped)??;
        let choice = match options.credential_store {
            CredentialStore::Os => KeychainChoice::Os,
            CredentialStore::Memory => KeychainChoice::Memory,
            CredentialStore::File { passphrase } => {
                KeychainChoice::File { path: folder.path().join(CREDENTIAL_FILE), passphrase }
            }
        };
        let is_file = matches!(choice, KeychainChoice::File { .. });
        let keychain = Keychain::start(choice, store.install_id(), DEADLINE)?;
        // A keyring may be unlocked later; a passphrase does not become right by waiting.
        if is_file {
            keychain.open().await?;
        }
        let engine = Engine::with_desktop(store, opened, keychain, options.notices).await?;

        let token = Secret::new(api::proof::random_text().map_err(|_| StartError::Random)?);
        let access = Arc::new(Access::new(token.clone()));
        let (stop, stopping) = watch::channel(false);
        tokio::spawn(open_what_is_clicked(engine.notifier().events(), options.windows.clone()));
        engine.set_access(&access);
        let engine_inbox = engine.inbox().clone();
        let state = ApiState { engine, access, windows: options.windows, stop: stopping.clone() };
        let folder_path = folder.path().to_owned();
        let entrance = Arc::new(Entrance::new(state.clone(), folder, token));
        let listener = match bound {
            Ok(bound) => {
                entrance.stands_at(bound.address())?;
                tokio::spawn(entrance.serve(bound, stopping))
            }
            Err(taken) => {
                entrance.note_taken(&taken);
                tokio::spawn(Arc::clone(&entrance).serve_once_free(options.gateway, stopping))
            }
        };
        let inbox = serve_inbox(engine_inbox, inbox_bound, options.inbox, &entrance, stop.subscribe());
        let demo = match options.demo {
            true => Some(demo::start(&state.engine, &folder_path).await?),
            false => None,
        };
        entrance.publish()?;
        Ok(Self { state, entrance, demo, stop, listener, inbox })
    }

    pub fn engine(&self) -> &Engine {
        &self.state.engine
    }

    /// `None` while another program has the port, with [`PortsTaken::Retry`] only.
    pub fn ready(&self) -> Option<&Ready> {
        self.entrance.ready()
    }

    /// Where agents call back: `http://127.0.0.1:PORT`. `None` while another program has the port.
    pub fn inbox(&self) -> Option<String> {
        self.engine().inbox().address().map(|address| format!("http://{address}"))
    }

    /// How a window of this process reaches the API.
    pub fn door(&self) -> ApiDoor {
        ApiDoor::here(self.state.clone())
    }

    /// Returns when the engine cannot go on: nothing can be acknowledged without its store.
    pub async fn failed(&self) -> StartError {
        self.state.engine.store().stopped().await;
        StartError::StoreStopped
    }

    /// Stops accepting, ends the streams, closes the store, tells clients that we are gone.
    pub async fn stop(self) {
        let _ = self.stop.send(true); // Nobody listening is as good as stopped.
        let demo = async {
            match self.demo {
                Some(demo) => demo.stop().await,
                None => Ok(()),
            }
        };
        // Callbacks under way are stored and answered before the store closes.
        let engine = async {
            let inbox = self.inbox.await;
            self.state.engine.stop(STORE_CLOSES_WITHIN).await;
            inbox
        };
        let (inbox, demo, listener) = tokio::join!(engine, demo, self.listener);
        if let Err(error) = inbox {
            tracing::warn!(%error, "the inbox did not stop cleanly");
        }
        if let Err(error) = demo {
            tracing::warn!(%error, "the built-in agent did not stop cleanly");
        }
        if let Err(error) = listener {
            tracing::warn!(%error, "the listener did not stop cleanly");
        }
        if let Err(error) = self.entrance.retract() {
            tracing::warn!(%error, "runtime.json was not removed");
        }
        // The folder is free for another program once the lock goes with us.
        LOG.close();
    }
}

/// A port that another program has is waited for where the options say so.
async fn bind(address: SocketAddr, taken: PortsTaken) -> Result<Result<Bound, ListenError>, ListenError> {
    match (Bound::bind(address).await, taken) {
        (Ok(bound), _) => Ok(Ok(bound)),
        (Err(error @ ListenError::Taken { .. }), PortsTaken::Retry) => Ok(Err(error)),
        (Err(error), _) => Err(error),
    }
}

/// Takes callbacks, as soon as the port is ours, until `stop` turns true.
fn serve_inbox(
    inbox: Inbox,
    bound: Result<Bound, ListenError>,
    wanted: SocketAddr,
    entrance: &Arc<Entrance>,
    stop: watch::Receiver<bool>,
) -> JoinHandle<()> {
    match &bound {
        Ok(bound) => inbox.stands_at(bound.address()),
        Err(taken) => {
            tracing::warn!(
                "{taken}; tasks are followed by stream and poll, and the port is tried again each 10 s"
            );
            inbox.note_taken(taken, Instant::now());
        }
    }
    let entrance = Arc::clone(entrance);
    tokio::spawn(async move {
        let bound = match bound {
            Ok(bound) => Some(bound),
            Err(_) => {
                let bound = inbox.wait_for_port(wanted, stop.clone()).await;
                if bound.is_some()
                    && let Err(error) = entrance.publish()
                {
                    tracing::warn!(%error, "clients could not be told of the inbox's port");
                }
                bound
            }
        };
        if let Some(bound) = bound {
            inbox.run(bound, inbox::Limits::default(), stop).await;
        }
    })
}

/// A click on a notice brings the window to the front, on the notice's task. Ends with the engine.
async fn open_what_is_clicked(mut events: broadcast::Receiver<NoticeEvent>, windows: Windows) {
    loop {
        let call = match events.recv().await {
            Ok(NoticeEvent::Clicked(Some(task))) => WindowCall::Open { task },
            Ok(NoticeEvent::Clicked(None)) => WindowCall::Raise,
            Ok(NoticeEvent::Snoozed(_)) | Err(broadcast::error::RecvError::Lagged(_)) => continue,
            Err(broadcast::error::RecvError::Closed) => return,
        };
        if !windows.call(call) {
            tracing::debug!("a notice was clicked and there is no window to open");
        }
    }
}
