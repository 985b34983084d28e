//! The agents at hand: their rows, clients and links.
//!
//! Adding, testing and credentials are in [`manage`].

pub mod manage;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use taskbell_core::agent::PlainHttp;
use taskbell_core::dialect::{Binding, Dialect};
use taskbell_core::follow::Reattach;
use taskbell_core::ids::AgentName;
use tokio::sync::Semaphore;
use url::Url;

use crate::agent_client::{AgentClient, AgentEndpoint, CredentialSource, Http, Quirks};
use crate::keychain::Keychain;
use crate::link::Link;
use crate::store::agents::{self as rows, AgentRow};
use crate::store::{AgentKey, Store, StoreError};

/// Calls to GetTask at once, per agent.
pub const READS_AT_ONCE: usize = 32;
/// Subscriptions being opened at once, per agent.
const OPENINGS_AT_ONCE: usize = 64;

/// One agent, as long as it is registered.
pub struct Agent {
    pub key: AgentKey,
    pub link: Link,
    /// Taken for each read.
    pub reads: Semaphore,
    /// Taken while a subscription is being opened.
    pub openings: Semaphore,
    now: RwLock<Now>,
}

/// What may change while the agent is registered.
#[derive(Clone)]
pub struct Now {
    pub row: Arc<AgentRow>,
    pub client: AgentClient,
}

impl Agent {
    pub fn now(&self) -> Now {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn client(&self) -> AgentClient {
        self.now().client
    }

    /// The card promises streams.
    pub fn declares_streaming(&self) -> bool {
        declared_streaming(&self.now().row) == Some(true)
    }

    /// The card promises callbacks, or there is none to say otherwise.
    pub fn declares_push(&self) -> bool {
        let now = self.now();
        match &now.row.card_json {
            None => true,
            Some(_) => declared(&now.row, "pushNotifications") == Some(true),
        }
    }

    pub fn name(&self) -> AgentName {
        self.now().row.name.clone()
    }

    /// Whether subscribing is worth trying. Of 0.3 agents it must be found out first: the Python SDK's
    /// subscribers damage the task.
    pub fn reattach(&self) -> Reattach {
        let now = self.now();
        let quirks = now.client.quirks();
        if quirks.reattach_without_task {
            Reattach::Harmful
        } else if quirks.streaming_refused || declared_streaming(&now.row) == Some(false) {
            Reattach::Never
        } else if now.row.dialect == Some(Dialect::V03) && !quirks.reattach_proven {
            Reattach::Suspect
        } else {
            Reattach::Works
        }
    }
}

/// What the card says of streaming, where it says anything.
fn declared_streaming(row: &AgentRow) -> Option<bool> {
    declared(row, "streaming")
}

fn declared(row: &AgentRow, capability: &str) -> Option<bool> {
    let card: serde_json::Value = serde_json::from_str(row.card_json.as_deref()?).ok()?;
    card.get("capabilities")?.get(capability)?.as_bool()
}

/// All registered agents. Clones share them.
#[derive(Clone)]
pub struct Agents(Arc<Inner>);

struct Inner {
    store: Store,
    keychain: Keychain,
    http: Http,
    by_key: RwLock<HashMap<AgentKey, Arc<Agent>>>,
}

impl Agents {
    /// Takes the registered agents from the store.
    pub async fn load(store: Store, keychain: Keychain, http: Http) -> Result<Self, StoreError> {
        let agents = Self(Arc::new(Inner { store, keychain, http, by_key: RwLock::default() }));
        for row in agents.0.store.read(rows::list).await? {
            agents.put(row);
        }
        Ok(agents)
    }

    pub fn get(&self, key: AgentKey) -> Option<Arc<Agent>> {
        self.0.by_key.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    pub fn by_name(&self, name: &AgentName) -> Option<Arc<Agent>> {
        let by_key = self.0.by_key.read().unwrap_or_else(PoisonError::into_inner);
        by_key.values().find(|agent| agent.now().row.name == *name).cloned()
    }

    /// By name.
    pub fn all(&self) -> Vec<Arc<Agent>> {
        let by_key = self.0.by_key.read().unwrap_or_else(PoisonError::into_inner);
        let mut agents: Vec<_> = by_key.values().cloned().collect();
        agents.sort_by_key(|agent| agent.now().row.name.clone());
        agents
    }

    pub fn store(&self) -> &Store {
        &self.0.store
    }

    pub fn keychain(&self) -> &Keychain {
        &self.0.keychain
    }

    /// Reads the row again after it was changed, and takes a fresh client with its present credential.
    pub async fn reload(&self, key: AgentKey) -> Result<Arc<Agent>, StoreError> {
        let row = self.0.store.read(move |connection| rows::get(connection, key)).await?;
        Ok(self.put(row))
    }

    fn put(&self, row: AgentRow) -> Arc<Agent> {
        let key = row.key;
        let client = self.client_for(&row);
        let now = Now { row: Arc::new(row), client };
        let mut by_key = self.0.by_key.write().unwrap_or_else(PoisonError::into_inner);
        match by_key.get(&key) {
            Some(agent) => {
                *agent.now.write().unwrap_or_else(PoisonError::into_inner) = now;
                Arc::clone(agent)
            }
            None => {
                let agent = Arc::new(Agent {
                    key,
                    link: Link::default(),
                    reads: Semaphore::new(READS_AT_ONCE),
                    openings: Semaphore::new(OPENINGS_AT_ONCE),
                    now: RwLock::new(now),
                });
                by_key.insert(key, Arc::clone(&agent));
                agent
            }
        }
    }

    fn forget(&self, key: AgentKey) {
        self.0.by_key.write().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }

    fn client_for(&self, row: &AgentRow) -> AgentClient {
        let credentials: Arc<dyn CredentialSource> =
            Arc::new(manage::KeychainCredential::of(self.0.keychain.clone(), row));
        AgentClient::new(self.0.http.clone(), endpoint_of(row), credentials)
    }

    /// Stores what calls taught, where they taught anything.
    pub async fn store_quirks(&self, agent: &Agent) -> Result<(), StoreError> {
        let Some(quirks) = agent.client().take_quirk_changes() else { return Ok(()) };
        let json = serde_json::to_string(&quirks).unwrap_or_else(|_| "{}".to_owned());
        let key = agent.key;
        self.0.store.post("quirks", move |context| rows::set_quirks(context, key, &json)).await
    }
}

fn endpoint_of(row: &AgentRow) -> AgentEndpoint {
    // What is stored was parsed before; an unreadable address would be damage, and calls to it fail by name.
    let nowhere = || Url::parse("http://127.0.0.1:9/").expect("a literal");
    let registered_url = Url::parse(&row.registered_url).unwrap_or_else(|_| nowhere());
    let interface_url = row.interface_url.as_deref().and_then(|text| Url::parse(text).ok());
    AgentEndpoint {
        agent: row.name.clone(),
        interface_url: interface_url.unwrap_or_else(|| registered_url.clone()),
        registered_url,
        binding: row.binding.unwrap_or(Binding::JsonRpc),
        dialect: row.pinned_dialect.or(row.dialect).unwrap_or(Dialect::V1),
        tenant: row.tenant.clone(),
        plain_http: if row.allow_http { PlainHttp::Anywhere } else { PlainHttp::LoopbackOnly },
        quirks: serde_json::from_str::<Quirks>(&row.quirks_json).unwrap_or_default(),
    }
}
