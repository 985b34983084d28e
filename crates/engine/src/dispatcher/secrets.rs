//! The secrets that clients gave for their callbacks: in the keyring, and remembered while the engine runs.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use taskbell_core::backoff::Backoff;
use taskbell_core::credential::Secret;

use crate::keychain::{Keychain, KeychainError, KeychainHealth};
use crate::store::SecretKey;

/// After a failure the keyring is not asked again for so long: each question may show a prompt.
const CLOSED: Backoff =
    Backoff { first: Duration::from_secs(10), most: Duration::from_secs(600), spread: 0.0 };
/// Secrets that are remembered.
const REMEMBERED: usize = 1_000;

pub(super) struct Secrets {
    keychain: Keychain,
    known: Mutex<HashMap<SecretKey, Secret>>,
    closed: Mutex<Option<Closed>>,
    /// One question at a time: the first finds out for all whether the keyring is locked.
    asking: tokio::sync::Mutex<()>,
}

/// The keyring did not answer.
struct Closed {
    error: KeychainError,
    failures: u32,
    until: Instant,
}

/// A secret that cannot be had now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unavailable {
    pub error: KeychainError,
    /// When it is worth asking again.
    pub again_after: Duration,
}

impl Secrets {
    pub fn new(keychain: Keychain) -> Self {
        Self {
            keychain,
            known: Mutex::default(),
            closed: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// From memory, else from the keyring.
    pub async fn get(&self, key: SecretKey) -> Result<Secret, Unavailable> {
        if let Some(known) = self.remembered(key) {
            return Ok(known);
        }
        let _turn = self.asking.lock().await;
        if let Some(known) = self.remembered(key) {
            return Ok(known);
        }
        self.may_ask()?;
        match self.keychain.get(&key.handle()).await {
            Ok(secret) => {
                *lock(&self.closed) = None;
                self.remember(key, secret.clone());
                Ok(secret)
            }
            Err(error) => Err(self.close(error)),
        }
    }

    /// Writes it to the keyring.
    pub async fn keep(&self, key: SecretKey, secret: Secret) -> Result<(), KeychainError> {
        self.keychain.set(&key.handle(), secret.clone()).await?;
        *lock(&self.closed) = None;
        self.remember(key, secret);
        Ok(())
    }

    /// Deletes it from the keyring.
    pub async fn delete(&self, key: SecretKey) -> Result<(), KeychainError> {
        lock(&self.known).remove(&key);
        self.keychain.delete(&key.handle()).await
    }

    /// Whether the keyring failed the last time it was asked and answers others again since.
    pub fn has_reopened(&self) -> bool {
        let sound = matches!(self.keychain.health(), KeychainHealth::Kept | KeychainHealth::SessionOnly);
        let mut closed = lock(&self.closed);
        let reopened = sound && closed.as_ref().is_some_and(|closed| closed.error.is_passing());
        if reopened {
            *closed = None;
        }
        reopened
    }

    fn remembered(&self, key: SecretKey) -> Option<Secret> {
        lock(&self.known).get(&key).cloned()
    }

    fn may_ask(&self) -> Result<(), Unavailable> {
        let closed = lock(&self.closed);
        let Some(closed) = closed.as_ref() else { return Ok(()) };
        let left = closed.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            Ok(())
        } else {
            Err(Unavailable { error: closed.error.clone(), again_after: left })
        }
    }

    fn close(&self, error: KeychainError) -> Unavailable {
        let mut closed = lock(&self.closed);
        let failures = closed.as_ref().map_or(0, |closed| closed.failures).saturating_add(1);
        let again_after = CLOSED.wait(failures, 0.5);
        // That one item is missing says nothing about the others.
        if error.is_passing() {
            *closed = Some(Closed { error: error.clone(), failures, until: Instant::now() + again_after });
        }
        Unavailable { error, again_after }
    }

    fn remember(&self, key: SecretKey, secret: Secret) {
        let mut known = lock(&self.known);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(key, secret);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the database knows of a secret: enough to see that it is the same one.
pub(super) fn digest(install_id: &str, secret: &Secret) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"taskbell client secret\0");
    hash.update(install_id.as_bytes());
    hash.update(b"\0");
    hash.update(secret.expose().as_bytes());
    hash.finalize().into()
}
