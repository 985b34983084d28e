//! Secrets at rest: the system's keyring, an encrypted file, or memory, as chosen in the open.
//! Nothing falls back to another store by itself.
//!
//! A stopped Secret Service never answers. So one thread of its own makes all calls and is never joined;
//! callers have a deadline; while the thread is stuck later callers are told at once, and when its call
//! returns after all, everything works again. The process can always leave.
//!
//! | question | room |
//! |---|---|
//! | values longer than an item | [`parts`] |
//! | Secret Service, macOS keychain, Windows credentials | [`os`] |
//! | the encrypted file | [`file`] |
//! | memory | [`memory`] |

mod error;
mod file;
mod memory;
mod os;
mod parts;

use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use taskbell_core::credential::Secret;
use tokio::sync::oneshot;

pub use error::KeychainError;

/// How long a call may take before its caller is told.
pub const DEADLINE: Duration = Duration::from_secs(10);
/// Calls that wait behind the running one.
const QUEUE: usize = 64;

/// Which store the user chose.
#[derive(Debug, Clone)]
pub enum KeychainChoice {
    /// The system's own.
    Os,
    /// One encrypted file.
    File { path: PathBuf, passphrase: Secret },
    /// Gone at the end of the process; said so in [`KeychainHealth`].
    Memory,
}

/// The passphrase of the credential file from `TASKBELL_PASSPHRASE`.
/// Errors: [`KeychainError::NoPassphrase`] where it is not set or empty.
pub fn passphrase_from_environment() -> Result<Secret, KeychainError> {
    match std::env::var("TASKBELL_PASSPHRASE") {
        Ok(text) if !text.is_empty() => Ok(Secret::new(text)),
        _ => Err(KeychainError::NoPassphrase),
    }
}

/// What the last probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeychainHealth {
    /// Not probed yet.
    Unknown,
    /// Written with one handle, found with another, deleted.
    Kept,
    /// Memory was chosen: secrets are gone at the end of the process.
    SessionOnly,
    /// No secret is stored safely; why.
    Failing(KeychainError),
}

impl KeychainHealth {
    /// The stable word that scripts and the page match on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown => "keyring_unknown",
            Self::Kept => "keyring_kept",
            Self::SessionOnly => "keyring_session_only",
            Self::Failing(error) => error.code(),
        }
    }
}

/// One kind of store. Called on the keychain's thread only; may block for ever.
trait Backend {
    /// The octets one item can hold.
    fn limit(&self) -> usize;
    /// Whether items outlive the process.
    fn is_kept(&self) -> bool;
    fn set(&mut self, item: &str, text: &Secret) -> Result<(), KeychainError>;
    /// Errors: [`KeychainError::NoEntry`] where there is none.
    fn get(&mut self, item: &str) -> Result<Secret, KeychainError>;
    /// Errors: [`KeychainError::NoEntry`] where there is none.
    fn delete(&mut self, item: &str) -> Result<(), KeychainError>;
    /// Forgets connections and caches, so that the next read sees what is really there.
    fn forget(&mut self);
}

type Call = Box<dyn FnOnce(&mut dyn Backend) + Send>;

/// The keychain. Clones share it.
#[derive(Clone)]
pub struct Keychain {
    calls: SyncSender<Call>,
    shared: Arc<Shared>,
}

struct Shared {
    /// Since when the thread has been inside a call.
    running_since: Mutex<Option<Instant>>,
    health: Mutex<KeychainHealth>,
    /// What the health is while nothing is wrong.
    sound: KeychainHealth,
    deadline: Duration,
    namespace: String,
}

impl Keychain {
    /// Starts the thread; touches no store yet. `namespace` keeps the items of one data folder apart
    /// from those of another (use the store's install id).
    pub fn start(choice: KeychainChoice, namespace: &str, deadline: Duration) -> Result<Self, KeychainError> {
        let (calls, waiting) = sync_channel::<Call>(QUEUE);
        let shared = Arc::new(Shared {
            running_since: Mutex::new(None),
            health: Mutex::new(KeychainHealth::Unknown),
            sound: match choice {
                KeychainChoice::Memory => KeychainHealth::SessionOnly,
                KeychainChoice::Os | KeychainChoice::File { .. } => KeychainHealth::Kept,
            },
            deadline,
            namespace: namespace.to_owned(),
        });
        let seen = Arc::clone(&shared);
        let run = move || {
            let mut backend: Box<dyn Backend> = match choice {
                KeychainChoice::Os => Box::new(os::Os::new()),
                KeychainChoice::File { path, passphrase } => {
                    Box::new(file::EncryptedFile::new(path, passphrase))
                }
                KeychainChoice::Memory => Box::new(memory::Memory::default()),
            };
            while let Ok(call) = waiting.recv() {
                *lock(&seen.running_since) = Some(Instant::now());
                call(backend.as_mut());
                *lock(&seen.running_since) = None;
            }
        };
        // Never joined: a call into a stopped Secret Service does not return.
        std::thread::Builder::new()
            .name("keychain".to_owned())
            .spawn(run)
            .map_err(|error| KeychainError::Other { reason: error.kind().to_string() })?;
        Ok(Self { calls, shared })
    }

    /// Reads an item, whole or not at all.
    pub async fn get(&self, handle: &str) -> Result<Secret, KeychainError> {
        let item = self.item(handle);
        self.call(move |backend| parts::get(backend, &item)).await
    }

    /// Writes or replaces an item. After [`KeychainError::TimedOut`] it may or may not be written.
    pub async fn set(&self, handle: &str, value: Secret) -> Result<(), KeychainError> {
        let item = self.item(handle);
        self.call(move |backend| parts::set(backend, &item, &value)).await
    }

    /// Deletes an item with all of its parts; fine where there is none.
    pub async fn delete(&self, handle: &str) -> Result<(), KeychainError> {
        let item = self.item(handle);
        self.call(move |backend| parts::delete(backend, &item)).await
    }

    /// Writes a value under `handle`, reads it with fresh handles and deletes it. `nonce` is the value:
    /// random, so that an old run's leftover does not pass for it.
    pub async fn probe(&self, nonce: &str) -> KeychainHealth {
        let (item, value) = (self.item("probe"), Secret::new(nonce));
        let probed = self.call(move |backend| probe(backend, &item, &value)).await;
        let health = probed.unwrap_or_else(KeychainHealth::Failing);
        *lock(&self.shared.health) = health.clone();
        health
    }

    /// Whether the store can be opened at all, for a start that must not go on without it: the wrong
    /// passphrase is named before anything is asked of the file. An empty store is fine.
    pub async fn open(&self) -> Result<(), KeychainError> {
        match self.get("probe").await {
            Ok(_) | Err(KeychainError::NoEntry { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What the last probe found, or a call since.
    pub fn health(&self) -> KeychainHealth {
        lock(&self.shared.health).clone()
    }

    fn item(&self, handle: &str) -> String {
        if self.shared.namespace.is_empty() {
            handle.to_owned()
        } else {
            format!("{}/{handle}", self.shared.namespace)
        }
    }

    async fn call<T, F>(&self, work: F) -> Result<T, KeychainError>
    where
        T: Send + 'static,
        F: FnOnce(&mut dyn Backend) -> Result<T, KeychainError> + Send + 'static,
    {
        let result = self.attempt(work).await;
        self.note(result.as_ref().err());
        result
    }

    /// A store that is locked or goes away after the probe is found out by the next call, and so is its return.
    fn note(&self, error: Option<&KeychainError>) {
        let mut health = lock(&self.shared.health);
        match error {
            Some(error) if error.is_of_the_store() => *health = KeychainHealth::Failing(error.clone()),
            None if matches!(&*health, KeychainHealth::Failing(error) if error.is_of_the_store()) => {
                *health = self.shared.sound.clone();
            }
            Some(_) | None => {}
        }
    }

    async fn attempt<T, F>(&self, work: F) -> Result<T, KeychainError>
    where
        T: Send + 'static,
        F: FnOnce(&mut dyn Backend) -> Result<T, KeychainError> + Send + 'static,
    {
        let deadline = self.shared.deadline;
        if lock(&self.shared.running_since).is_some_and(|since| since.elapsed() >= deadline) {
            return Err(KeychainError::TimedOut);
        }
        let (reply, answer) = oneshot::channel();
        let call: Call = Box::new(move |backend| {
            // A caller who was told that it took too long must not find it done an hour later.
            if !reply.is_closed() {
                let _ = reply.send(work(backend));
            }
        });
        self.calls.try_send(call).map_err(|error| match error {
            TrySendError::Full(_) => KeychainError::Busy,
            TrySendError::Disconnected(_) => KeychainError::Stopped,
        })?;
        match tokio::time::timeout(deadline, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_gone)) => Err(KeychainError::Stopped),
            Err(_elapsed) => Err(KeychainError::TimedOut),
        }
    }
}

fn probe(backend: &mut dyn Backend, item: &str, value: &Secret) -> Result<KeychainHealth, KeychainError> {
    parts::set(backend, item, value)?;
    backend.forget();
    let found = match parts::get(backend, item) {
        Ok(found) => found,
        Err(KeychainError::NoEntry { .. }) => return Err(KeychainError::NotKept),
        Err(error) => return Err(error),
    };
    if found.expose() != value.expose() {
        return Err(KeychainError::NotKept);
    }
    parts::delete(backend, item)?;
    Ok(if backend.is_kept() { KeychainHealth::Kept } else { KeychainHealth::SessionOnly })
}

/// A poisoned lock holds a time or a word, both still good.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Keychain {
        Keychain::start(KeychainChoice::Memory, "test", Duration::from_secs(1)).unwrap()
    }

    /// Occupies the thread as a stopped store would, until the sender is dropped.
    fn get_stuck(keychain: &Keychain) -> std::sync::mpsc::Sender<()> {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let call: Call = Box::new(move |_| {
            let _ = released.recv();
        });
        keychain.calls.try_send(call).unwrap();
        release
    }

    #[tokio::test]
    async fn a_store_that_goes_away_later_is_told_and_so_is_its_return() {
        let keychain = memory();
        assert_eq!(keychain.probe("nonce").await, KeychainHealth::SessionOnly);
        let release = get_stuck(&keychain);
        assert_eq!(keychain.get("a").await.unwrap_err(), KeychainError::TimedOut);
        assert_eq!(keychain.health(), KeychainHealth::Failing(KeychainError::TimedOut));
        drop(release);
        let started = Instant::now();
        // The thread needs a moment to come out of the stuck call.
        while let Err(error) = keychain.set("a", Secret::new("b")).await {
            assert!(started.elapsed() < Duration::from_secs(5), "{error}");
            tokio::task::yield_now().await;
        }
        assert_eq!(keychain.health(), KeychainHealth::SessionOnly);
        assert!(keychain.get("none").await.is_err());
        assert_eq!(keychain.health(), KeychainHealth::SessionOnly, "a missing item is not the store's fault");
    }

    #[tokio::test]
    async fn memory_works_and_says_that_it_keeps_nothing() {
        let keychain = memory();
        assert_eq!(keychain.health(), KeychainHealth::Unknown);
        assert_eq!(keychain.probe("nonce").await, KeychainHealth::SessionOnly);
        assert_eq!(keychain.health().code(), "keyring_session_only");
        keychain.set("a", Secret::new("one")).await.unwrap();
        assert_eq!(keychain.get("a").await.unwrap().expose(), "one");
        keychain.delete("a").await.unwrap();
        keychain.delete("a").await.unwrap();
        assert_eq!(keychain.get("a").await.unwrap_err().code(), "keyring_no_entry");
    }

    #[tokio::test]
    async fn a_stuck_store_costs_one_deadline_then_nothing_and_heals() {
        let keychain = memory();
        keychain.set("a", Secret::new("one")).await.unwrap();
        let release = get_stuck(&keychain);
        let started = Instant::now();
        assert_eq!(keychain.set("a", Secret::new("two")).await, Err(KeychainError::TimedOut));
        assert!(started.elapsed() >= Duration::from_millis(950), "{:?}", started.elapsed());
        let started = Instant::now();
        for _ in 0..100 {
            assert_eq!(keychain.get("a").await.unwrap_err(), KeychainError::TimedOut);
        }
        assert!(started.elapsed() < Duration::from_millis(900), "later callers are told at once");
        drop(release);
        let started = Instant::now();
        let value = loop {
            match keychain.get("a").await {
                Ok(value) => break value,
                Err(error) => assert!(started.elapsed() < Duration::from_secs(5), "{error}"),
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(value.expose(), "one", "a write whose caller gave up before it began is not made");
    }

    #[tokio::test]
    async fn a_full_queue_is_named_at_once() {
        let keychain = memory();
        let _release = get_stuck(&keychain);
        let mut calls = Vec::new();
        for _ in 0..=QUEUE + 1 {
            let keychain = keychain.clone();
            calls.push(tokio::spawn(async move { keychain.get("a").await.unwrap_err() }));
        }
        let mut errors = Vec::new();
        for call in calls {
            errors.push(call.await.unwrap());
        }
        assert!(errors.contains(&KeychainError::Busy), "{errors:?}");
        assert!(errors.contains(&KeychainError::TimedOut), "{errors:?}");
    }
}
