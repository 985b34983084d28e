//! Who may call agents through the gateway. Keys are 256 random bits, shown once, kept as digests.
//!
//! The digests of all clients are in memory, so that a call costs no read of the store.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use taskbell_core::credential::Secret;
use taskbell_core::ids::ClientName;
use tokio::sync::watch;

use crate::api::proof::random_text;
use crate::error::EngineError;
use crate::rate::Bucket;
use crate::store::clients::{self as rows, ClientRow};
use crate::store::{ClientKey, Store, StoreError};

/// What stands before the random part, so that a key is recognised where it does not belong.
const PREFIX: &str = "tbk_";
/// Requests a second of one client, and how many at once. It stops runaway loops, not work.
const A_SECOND: u32 = 2_000;
const BURST: u32 = 4_000;

/// A client that may call.
pub struct Client {
    pub key: ClientKey,
    pub name: ClientName,
    pub created_at_ms: i64,
    digest: [u8; 32],
    bucket: Bucket,
    revoked: watch::Sender<bool>,
}

impl Client {
    fn new(row: ClientRow) -> Arc<Self> {
        Arc::new(Self {
            key: row.key,
            name: row.name,
            created_at_ms: row.created_at_ms,
            digest: row.digest,
            bucket: Bucket::new(A_SECOND, BURST, Instant::now()),
            revoked: watch::Sender::new(false),
        })
    }

    /// Whether this request is one too many.
    pub fn may_ask(&self, now: Instant) -> bool {
        self.bucket.take(now)
    }

    /// Turns true when the key was revoked: what is open is to be closed.
    pub fn revoked(&self) -> watch::Receiver<bool> {
        self.revoked.subscribe()
    }
}

/// All clients. Clones share them.
#[derive(Clone)]
pub struct Clients(Arc<Inner>);

struct Inner {
    store: Store,
    known: RwLock<Vec<Arc<Client>>>,
}

impl Clients {
    pub async fn load(store: Store) -> Result<Self, StoreError> {
        let known = store.read(rows::list).await?.into_iter().map(Client::new).collect();
        Ok(Self(Arc::new(Inner { store, known: RwLock::new(known) })))
    }

    /// By name.
    pub fn all(&self) -> Vec<Arc<Client>> {
        let mut all = self.known().clone();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// Whose key it is. Every digest is compared, each in constant time.
    pub fn of_key(&self, given: &str) -> Option<Arc<Client>> {
        let given: [u8; 32] = Sha256::digest(given).into();
        let known = self.known();
        known.iter().fold(None, |found, client| {
            if bool::from(client.digest.ct_eq(&given)) { Some(Arc::clone(client)) } else { found }
        })
    }

    /// Adds a client and makes its key, which is told this once.
    pub async fn add(&self, name: ClientName) -> Result<(Arc<Client>, Secret), EngineError> {
        let random = random_text()
            .map_err(|_| EngineError::new("no_randomness", "the system gives no random numbers"))?;
        let key = Secret::new(format!("{PREFIX}{random}"));
        let digest: [u8; 32] = Sha256::digest(key.expose()).into();
        let wanted = name.clone();
        let row = self.0.store.write(move |context| rows::insert(context, &wanted, &digest)).await;
        let row = row.map_err(|error| match error {
            StoreError::Exists { .. } => EngineError {
                code: "exists",
                message: format!("a client is named {name} already; revoke it first or take another name"),
                source: Some(Box::new(error)),
            },
            error => error.into(),
        })?;
        let client = Client::new(row);
        self.0.known.write().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&client));
        Ok((client, key))
    }

    /// Its key opens nothing any more, and its streams end. Errors: `unknown_client`.
    pub async fn revoke(&self, name: &ClientName) -> Result<(), EngineError> {
        let wanted = name.clone();
        let revoked = self.0.store.write(move |context| rows::revoke(context, &wanted)).await;
        let key = revoked.map_err(|error| match error {
            StoreError::Missing { .. } => EngineError {
                code: "unknown_client",
                message: format!("no client is named {name}; see `taskbell client list`"),
                source: Some(Box::new(error)),
            },
            error => error.into(),
        })?;
        self.0.known.write().unwrap_or_else(PoisonError::into_inner).retain(|client| {
            let stays = client.key != key;
            if !stays {
                client.revoked.send_replace(true);
            }
            stays
        });
        Ok(())
    }

    fn known(&self) -> std::sync::RwLockReadGuard<'_, Vec<Arc<Client>>> {
        self.0.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::wall_clock;

    async fn clients(folder: &tempfile::TempDir) -> Clients {
        let (store, _) = Store::open(folder.path(), wall_clock()).unwrap();
        Clients::load(store).await.unwrap()
    }

    fn name(text: &str) -> ClientName {
        ClientName::new(text).unwrap()
    }

    #[tokio::test]
    async fn a_key_opens_for_its_client_until_it_is_revoked_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let clients = self::clients(&folder).await;
        let (_, editor) = clients.add(name("editor")).await.unwrap();
        let (_, script) = clients.add(name("script")).await.unwrap();
        assert_eq!(clients.of_key(editor.expose()).unwrap().name, name("editor"));
        let mut revoked = clients.of_key(script.expose()).unwrap().revoked();
        clients.revoke(&name("script")).await.unwrap();
        assert!(*revoked.borrow_and_update() && clients.of_key(script.expose()).is_none());
        clients.0.store.close(std::time::Duration::from_secs(5)).await.unwrap();

        let clients = self::clients(&folder).await;
        assert_eq!(clients.of_key(editor.expose()).unwrap().name, name("editor"));
        assert!(clients.of_key(script.expose()).is_none() && clients.of_key("").is_none());
        let (_, again) = clients.add(name("script")).await.unwrap();
        assert_ne!(again.expose(), script.expose(), "the name is free again, with another key");
    }

    #[tokio::test]
    async fn a_key_is_in_no_file_of_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let clients = self::clients(&folder).await;
        let (_, key) = clients.add(name("editor")).await.unwrap();
        clients.0.store.close(std::time::Duration::from_secs(5)).await.unwrap();
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let octets = std::fs::read(entry.unwrap().path()).unwrap_or_default();
            let random = key.expose().trim_start_matches(PREFIX).as_bytes();
            assert!(!octets.windows(random.len()).any(|part| part == random));
        }
    }

    #[tokio::test]
    async fn a_name_is_given_once() {
        let folder = tempfile::tempdir().unwrap();
        let clients = self::clients(&folder).await;
        clients.add(name("editor")).await.unwrap();
        assert_eq!(clients.add(name("editor")).await.err().map(|error| error.code), Some("exists"));
        assert_eq!(
            clients.revoke(&name("nobody")).await.err().map(|error| error.code),
            Some("unknown_client")
        );
    }
}
