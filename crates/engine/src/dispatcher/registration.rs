//! What clients register to be called back: judged, looked up, its secrets kept, then stored.

use taskbell_core::credential::Secret;
use taskbell_core::dialect::Dialect;
use taskbell_core::ids::ClientName;
use taskbell_core::push_config::{PushAuthentication, PushConfig};
use taskbell_core::push_rules::{self, CONFIGS_A_TASK, ConfigRefusal, Wanted};

use super::{Dispatcher, secrets};
use crate::keychain::KeychainError;
use crate::outbound::Look;
use crate::store::client_push_configs::{self as rows, ConfigRow, NewConfig, Stored};
use crate::store::{ClientKey, SecretKey, StoreError, TaskKey, outbox, targets};

/// A config that was stored.
#[derive(Debug, Clone)]
pub struct Registered {
    /// As the client is told: without secrets.
    pub config: PushConfig,
    /// What may be wrong with it.
    pub warning: Option<&'static str>,
}

/// A config that may be stored.
#[derive(Debug, Clone)]
pub struct Judged {
    wanted: push_rules::Registration,
    origin: String,
    warning: Option<&'static str>,
}

/// Why a config was not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    #[error("the config is refused: {}", .0.why)]
    Refused(ConfigRefusal),
    /// By what its name leads to. What that is, is not told to whoever asks.
    #[error("the url is refused by policy: its host does not lead to the public internet alone")]
    RefusedByPolicy,
    #[error(
        "the url is on this machine and not approved; its user can do so with `taskbell target allow {client} {port}`"
    )]
    NotApproved { client: ClientName, port: u16 },
    #[error("the task has {CONFIGS_A_TASK} configs already; delete one")]
    TooMany,
    #[error("the secrets of the config cannot be kept: {0}; unlock the keyring and register again")]
    Keychain(KeychainError),
    #[error("the config cannot be stored: {0}")]
    Store(#[from] StoreError),
}

impl RegisterError {
    /// The stable word for logs and records.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused(_) => "config_refused",
            Self::RefusedByPolicy => "refused_by_policy",
            Self::NotApproved { .. } => "target_not_approved",
            Self::TooMany => "too_many_configs",
            Self::Keychain(error) => error.code(),
            Self::Store(error) => error.code(),
        }
    }
}

/// Whose config it is, and about what.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    pub client: ClientKey,
    pub name: &'a ClientName,
    pub task: TaskKey,
    /// It came with the send that made the task, so a state that the answer had already is told.
    pub inline: bool,
}

impl Dispatcher {
    /// Judges a config without storing it: its text, and where its name leads to now.
    pub async fn check(
        &self,
        client: ClientKey,
        name: &ClientName,
        config: PushConfig,
        dialect: Dialect,
    ) -> Result<Judged, RegisterError> {
        let wanted = push_rules::judge(config, dialect).map_err(RegisterError::Refused)?;
        let (origin, warning) = match &wanted.target {
            Wanted::Public(target) => {
                let look = self.0.outbound.look(target).await.map_err(|fault| {
                    tracing::warn!(client = %name, code = fault.code(), "a callback target was refused");
                    RegisterError::RefusedByPolicy
                })?;
                let warning = match look {
                    Look::Fine => None,
                    Look::Unresolved => Some("its host does not resolve now"),
                };
                (target.origin(), warning)
            }
            Wanted::Loopback(target) => {
                let port = target.port();
                let read =
                    move |connection: &rusqlite::Connection| targets::is_approved(connection, client, port);
                if !self.0.parts.store().read(read).await? {
                    return Err(RegisterError::NotApproved { client: name.clone(), port });
                }
                (targets::loopback_origin(port), None)
            }
        };
        Ok(Judged { wanted, origin, warning })
    }

    /// Stores a config of a client for a task of its own.
    pub async fn register(
        &self,
        about: About<'_>,
        config: PushConfig,
        dialect: Dialect,
    ) -> Result<Registered, RegisterError> {
        let Judged { wanted, origin, warning } =
            self.check(about.client, about.name, config, dialect).await?;
        if let Some(warning) = warning {
            tracing::warn!(client = %about.name, origin, warning, "a callback target was accepted");
        }
        let store = self.0.parts.store();
        let token = self.keep(about.client, wanted.token).await?;
        let credentials = self.keep(about.client, wanted.credentials).await?;
        let new = NewConfig {
            task: about.task,
            client: about.client,
            config_id: wanted.id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
            url: wanted.target.as_str().to_owned(),
            origin,
            loopback: matches!(wanted.target, Wanted::Loopback(_)),
            dialect,
            form: wanted.form,
            scheme: wanted.scheme,
            token,
            credentials,
        };
        let stored = store.write(move |context| {
            let stored = rows::put(context, new)?;
            if let (Stored::Kept(row), true) = (&stored, about.inline) {
                outbox::tell_inline(context, row)?;
            }
            Ok(stored)
        });
        // A secret that was replaced may have lost its last user.
        let stored = stored.await;
        self.0.sweep.notify_one();
        match stored? {
            Stored::Kept(row) => {
                self.ring();
                Ok(Registered { config: shown(row), warning })
            }
            Stored::TooMany => Err(RegisterError::TooMany),
        }
    }

    /// Row first, keyring second: what a kill leaves in the keyring has a row by which it is deleted.
    async fn keep(
        &self,
        client: ClientKey,
        secret: Option<Secret>,
    ) -> Result<Option<SecretKey>, RegisterError> {
        let Some(secret) = secret else { return Ok(None) };
        let store = self.0.parts.store();
        let digest = secrets::digest(store.install_id(), &secret);
        let row = store.write(move |context| rows::prepare_secret(context, client, &digest)).await?;
        if !row.kept {
            self.0.secrets.keep(row.key, secret).await.map_err(RegisterError::Keychain)?;
        }
        Ok(Some(row.key))
    }

    /// A config of a task; without its secrets.
    pub async fn config(&self, task: TaskKey, id: &str) -> Result<Option<PushConfig>, StoreError> {
        let id = id.to_owned();
        let found = self.0.parts.store().read(move |connection| rows::find(connection, task, &id)).await?;
        Ok(found.map(shown))
    }

    /// Those of a task, the oldest first; without their secrets.
    pub async fn configs(&self, task: TaskKey) -> Result<Vec<PushConfig>, StoreError> {
        let found = self.0.parts.store().read(move |connection| rows::of_task(connection, task)).await?;
        Ok(found.into_iter().map(shown).collect())
    }

    /// Fine where there is none. No attempt starts after this.
    pub async fn delete_config(&self, task: TaskKey, id: &str) -> Result<(), StoreError> {
        let id = id.to_owned();
        self.0.parts.store().write(move |context| rows::delete(context, task, &id)).await?;
        self.0.sweep.notify_one();
        Ok(())
    }

    /// Removes what revoked clients registered, and secrets that nobody uses any more.
    pub(super) async fn sweep(&self) -> Result<(), StoreError> {
        let store = self.0.parts.store();
        while store.write(|context| rows::remove_of_revoked(context, 200)).await? > 0 {}
        let now_ms = self.0.parts.now_ms();
        if !store.read(move |connection| rows::has_unused_secrets(connection, now_ms)).await? {
            return Ok(());
        }
        for key in store.write(|context| rows::doom_unused_secrets(context, 200)).await? {
            match self.0.secrets.delete(key).await {
                Ok(()) => store.write(move |context| rows::forget_secret(context, key)).await?,
                Err(error) => {
                    // Its row stays, so it is tried again.
                    tracing::debug!(code = error.code(), "a secret of a client was not deleted yet");
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

fn shown(row: ConfigRow) -> PushConfig {
    let authentication =
        row.scheme.map(|scheme| PushAuthentication { scheme: scheme.word().to_owned(), credentials: None });
    PushConfig {
        id: Some(row.config_id),
        url: row.url,
        notification_token: None,
        authentication,
        metadata: serde_json::Map::new(),
    }
}
