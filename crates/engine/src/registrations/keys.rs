//! One key an agent in the keyring, from which the secrets of all its registrations are derived.

use std::collections::HashMap;
use std::sync::Arc;

use taskbell_core::callback_secret::CallbackKey;
use tokio::sync::Mutex;

use crate::keychain::{Keychain, KeychainError};
use crate::store::AgentKey;

/// The keys that were needed since the start. Clones share them.
#[derive(Clone)]
pub(super) struct Keys {
    keychain: Keychain,
    /// Locked while a key is looked for, so that no agent gets two.
    known: Arc<Mutex<HashMap<AgentKey, CallbackKey>>>,
}

impl Keys {
    pub fn new(keychain: Keychain) -> Self {
        Self { keychain, known: Arc::default() }
    }

    /// The agent's key, made when it is first needed. It counts only once it was read back: a store that keeps
    /// nothing must not have registrations that nobody can renew.
    pub async fn of(&self, agent: AgentKey) -> Result<CallbackKey, KeychainError> {
        let mut known = self.known.lock().await;
        if let Some(key) = known.get(&agent) {
            return Ok(key.clone());
        }
        let handle = handle(agent);
        let unreadable = || KeychainError::Unreadable { handle: handle.clone() };
        let key = match self.keychain.get(&handle).await {
            Ok(stored) => CallbackKey::from_stored(stored).map_err(|_| unreadable())?,
            // A keyring that lost its items says the same. The secrets of then are valid by their digests for
            // as long as they are registered; what is registered anew gets new ones.
            Err(KeychainError::NoEntry { .. }) => {
                let mut octets = [0; 32];
                getrandom::fill(&mut octets).map_err(|_| KeychainError::Other {
                    reason: "the system gives no random numbers".to_owned(),
                })?;
                let key = CallbackKey::new(octets);
                self.keychain.set(&handle, key.to_stored()).await?;
                let kept = self.keychain.get(&handle).await?;
                if kept.expose() != key.to_stored().expose() {
                    return Err(KeychainError::NotKept);
                }
                key
            }
            Err(error) => return Err(error),
        };
        known.insert(agent, key.clone());
        Ok(key)
    }

    /// With the agent goes its key.
    pub async fn forget(&self, agent: AgentKey) -> Result<(), KeychainError> {
        let mut known = self.known.lock().await;
        known.remove(&agent);
        self.keychain.delete(&handle(agent)).await
    }
}

fn handle(agent: AgentKey) -> String {
    format!("callbacks-{}", agent.0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::keychain::KeychainChoice;
    use taskbell_core::callback::Scheme;

    fn keychain() -> Keychain {
        Keychain::start(KeychainChoice::Memory, "test", Duration::from_secs(5)).unwrap()
    }

    fn token(key: &CallbackKey) -> taskbell_core::callback::Digest {
        key.derive("r", 1, Scheme::Bearer).token_digest()
    }

    #[tokio::test]
    async fn an_agent_has_one_key_also_when_many_ask_at_once_and_after_a_restart() {
        let keychain = keychain();
        let keys = Keys::new(keychain.clone());
        let asked = (0..50).map(|_| {
            let keys = keys.clone();
            tokio::spawn(async move { token(&keys.of(AgentKey(1)).await.unwrap()) })
        });
        let asked = futures::future::join_all(asked).await;
        let first = asked[0].as_ref().unwrap();
        assert!(asked.iter().all(|digest| digest.as_ref().unwrap() == first));
        let again = Keys::new(keychain.clone());
        assert_eq!(token(&again.of(AgentKey(1)).await.unwrap()), *first);
        assert_ne!(token(&again.of(AgentKey(2)).await.unwrap()), *first);
    }

    #[tokio::test]
    async fn an_item_that_is_no_key_is_named_and_not_replaced() {
        let keychain = keychain();
        keychain.set(&handle(AgentKey(1)), taskbell_core::credential::Secret::new("mine")).await.unwrap();
        let error = Keys::new(keychain.clone()).of(AgentKey(1)).await.unwrap_err();
        assert_eq!(error.code(), KeychainError::Unreadable { handle: String::new() }.code());
        assert_eq!(keychain.get(&handle(AgentKey(1))).await.unwrap().expose(), "mine");
    }
}
