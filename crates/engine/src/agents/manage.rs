//! Adding, testing, pinning and removing agents, and their credentials.

use std::sync::Arc;

use futures::future::BoxFuture;
use taskbell_core::agent::{CardOrigin, PlainHttp};
use taskbell_core::credential::{BoundCredential, Credential, CredentialKind, Origin};
use taskbell_core::dialect::Dialect;
use taskbell_core::ids::AgentName;
use url::Url;

use super::{Agent, Agents};
use crate::agent_client::{
    Confidence, CredentialSource, CredentialUnavailable, Discovery, DiscoveryOptions, FixedCredential,
    discover,
};
use crate::error::EngineError;
use crate::keychain::{Keychain, KeychainError};
use crate::store::StoreError;
use crate::store::agents::{self as rows, AgentRow, NewAgent, Probed};

/// An agent as the user describes it.
#[derive(Debug, Clone)]
pub struct AgentWish {
    pub name: AgentName,
    /// A base address, a card's address, or an interface without a card.
    pub url: Url,
    pub card_origin: CardOrigin,
    pub plain_http: PlainHttp,
    pub credential: Option<Credential>,
}

/// What a test of an agent found.
#[derive(Debug, Clone)]
pub struct AgentTest {
    pub dialect: Dialect,
    pub card: Option<serde_json::Value>,
    pub streaming: Option<bool>,
    pub notes: Vec<String>,
}

/// An agent's credential, as the keychain has it. An agent without one has no item and asks for none.
pub struct KeychainCredential {
    keychain: Keychain,
    handle: Option<String>,
}

impl KeychainCredential {
    pub fn of(keychain: Keychain, row: &AgentRow) -> Self {
        Self { keychain, handle: row.credential_kind.is_some().then(|| row.credential_handle()) }
    }
}

impl CredentialSource for KeychainCredential {
    fn credential(&self) -> BoxFuture<'_, Result<Option<BoundCredential>, CredentialUnavailable>> {
        Box::pin(async {
            let Some(handle) = &self.handle else { return Ok(None) };
            let unavailable = |reason| CredentialUnavailable { reason };
            let stored = self.keychain.get(handle).await.map_err(|error| unavailable(error.code()))?;
            let bound =
                BoundCredential::from_stored(&stored).map_err(|_| unavailable("keyring_unreadable"))?;
            Ok(Some(bound))
        })
    }
}

impl Agents {
    /// Looks at the agent first: what cannot be reached or is no agent is not added.
    pub async fn add(&self, wish: AgentWish) -> Result<Arc<Agent>, EngineError> {
        if self.by_name(&wish.name).is_some() {
            return Err(EngineError::new(
                "exists",
                format!(
                    "an agent named {} exists already; remove it first or choose another name",
                    wish.name
                ),
            ));
        }
        let origin = Origin::of(&wish.url).map_err(|error| {
            EngineError::new("usage", format!("{} is no address of an agent: {error}", wish.url))
        })?;
        let bound = bind(&origin, wish.credential.clone())?;
        let source = Arc::new(FixedCredential(bound.clone()));
        let options =
            DiscoveryOptions { plain_http: wish.plain_http, card_origin: wish.card_origin, only: None };
        let found = discover(&self.0.http, &wish.name, &wish.url, source, &options).await?;
        let (name, url) = (wish.name.clone(), wish.url.clone());
        let (use_card_url, allow_http) =
            (wish.card_origin == CardOrigin::Use, wish.plain_http == PlainHttp::Anywhere);
        let key = self
            .0
            .store
            .write(move |context| {
                let agent = NewAgent {
                    name: &name,
                    registered_url: url.as_str(),
                    origin: &origin,
                    use_card_url,
                    allow_http,
                };
                let key = rows::insert(context, &agent)?;
                store_found(context, key, &found)?;
                Ok(key)
            })
            .await?;
        let agent = self.reload(key).await?;
        agent.link.handle_answered();
        if let Some(bound) = bound
            && let Err(error) = self.put_credential(&agent, bound).await
        {
            // An agent without the credential it was given would only look as if it worked.
            self.remove(&wish.name).await?;
            return Err(error);
        }
        Ok(agent)
    }

    /// Looks at the agent again: card, dialect, what works. Habits learnt before are forgotten.
    pub async fn test(&self, name: &AgentName) -> Result<(Arc<Agent>, AgentTest), EngineError> {
        let agent = self.by_name(name).ok_or_else(|| EngineError::unknown_agent(name))?;
        let row = agent.now().row;
        let url = Url::parse(&row.registered_url).map_err(|error| {
            EngineError::new(
                "store_unreadable",
                format!("the stored address of agent {name} is no URL: {error}"),
            )
        })?;
        let source = Arc::new(KeychainCredential::of(self.0.keychain.clone(), &row));
        let options = DiscoveryOptions {
            plain_http: if row.allow_http { PlainHttp::Anywhere } else { PlainHttp::LoopbackOnly },
            card_origin: if row.use_card_url { CardOrigin::Use } else { CardOrigin::Record },
            only: None,
        };
        let found = discover(&self.0.http, name, &url, source, &options).await;
        crate::reads::note_link(&agent, found.as_ref().err());
        let found = found?;
        let test = describe(&found);
        let key = agent.key;
        self.0
            .store
            .write(move |context| {
                store_found(context, key, &found)?;
                rows::set_quirks(context, key, "{}")
            })
            .await?;
        Ok((self.reload(key).await?, test))
    }

    /// `None` goes back to what was found.
    pub async fn pin_dialect(
        &self,
        name: &AgentName,
        dialect: Option<Dialect>,
    ) -> Result<Arc<Agent>, EngineError> {
        let agent = self.by_name(name).ok_or_else(|| EngineError::unknown_agent(name))?;
        let key = agent.key;
        self.0.store.write(move |context| rows::pin_dialect(context, key, dialect)).await?;
        Ok(self.reload(key).await?)
    }

    /// Replaces the credential, or removes it.
    pub async fn set_credential(
        &self,
        name: &AgentName,
        credential: Option<Credential>,
    ) -> Result<Arc<Agent>, EngineError> {
        let agent = self.by_name(name).ok_or_else(|| EngineError::unknown_agent(name))?;
        let row = agent.now().row;
        match bind(&row.origin, credential)? {
            Some(bound) => self.put_credential(&agent, bound).await,
            None => {
                self.0.keychain.delete(&row.credential_handle()).await.map_err(keychain_error)?;
                self.note_credential(&agent, None).await
            }
        }
    }

    /// Its tasks stay readable, its credential goes.
    pub async fn remove(&self, name: &AgentName) -> Result<(), EngineError> {
        let agent = self.by_name(name).ok_or_else(|| EngineError::unknown_agent(name))?;
        let row = agent.now().row;
        if row.credential_kind.is_some() {
            self.0.keychain.delete(&row.credential_handle()).await.map_err(keychain_error)?;
        }
        let key = agent.key;
        self.0.store.write(move |context| rows::remove(context, key)).await?;
        self.forget(key);
        Ok(())
    }

    async fn put_credential(&self, agent: &Agent, bound: BoundCredential) -> Result<Arc<Agent>, EngineError> {
        let handle = agent.now().row.credential_handle();
        let kind = bound.kind();
        self.0.keychain.set(&handle, bound.to_stored()).await.map_err(keychain_error)?;
        self.note_credential(agent, Some(kind)).await
    }

    async fn note_credential(
        &self,
        agent: &Agent,
        kind: Option<CredentialKind>,
    ) -> Result<Arc<Agent>, EngineError> {
        let key = agent.key;
        self.0.store.write(move |context| rows::set_credential(context, key, kind).map(|_| ())).await?;
        Ok(self.reload(key).await?)
    }
}

fn bind(origin: &Origin, credential: Option<Credential>) -> Result<Option<BoundCredential>, EngineError> {
    credential
        .map(|credential| BoundCredential::new(origin.clone(), credential))
        .transpose()
        .map_err(|error| EngineError::new("usage", format!("the credential cannot be used: {error}")))
}

pub(crate) fn keychain_error(error: KeychainError) -> EngineError {
    let help = match &error {
        KeychainError::Locked => "; unlock it and try again",
        KeychainError::NoStore { .. } | KeychainError::NotKept => {
            "; start a keyring, or choose `--credential-store file`"
        }
        _ => "",
    };
    EngineError {
        code: error.code(),
        message: format!("the credential was not stored: {error}{help}"),
        source: Some(Box::new(error)),
    }
}

fn store_found(
    context: &mut crate::store::WriteContext<'_>,
    key: crate::store::AgentKey,
    found: &Discovery,
) -> Result<(), StoreError> {
    let card_json = found.card.as_ref().map(|found| found.card.raw.to_string());
    let probed = Probed {
        card_url: found.card.as_ref().map(|found| found.url.as_str()),
        interface_url: Some(found.endpoint.interface_url.as_str()),
        binding: Some(found.endpoint.binding),
        dialect: Some(found.endpoint.dialect),
        tenant: found.endpoint.tenant.as_deref(),
        card_json: card_json.as_deref(),
        card_etag: found.card.as_ref().and_then(|found| found.etag.as_deref()),
    };
    rows::set_probed(context, key, &probed)
}

fn describe(found: &Discovery) -> AgentTest {
    let mut notes = Vec::new();
    if found.card.is_none() {
        notes.push("no card was found; the address itself answers".to_owned());
    }
    match found.confidence {
        Confidence::Confirmed => {}
        Confidence::Declared => {
            notes.push("the dialect is what the card says; the agent wants a credential first".to_owned());
        }
    }
    if let Some(origin) = &found.foreign_origin {
        notes.push(format!(
            "the card names another origin, {}, which is used with --use-card-url only",
            origin.ascii_serialization()
        ));
    }
    let card = found.card.as_ref().map(|found| found.card.raw.clone());
    AgentTest {
        dialect: found.endpoint.dialect,
        streaming: card.as_ref().and_then(|card| card.pointer("/capabilities/streaming")?.as_bool()),
        card,
        notes,
    }
}
