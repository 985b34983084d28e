//! The steps at the agent: asking for a registration, looking whether it is there, taking it back.
//!
//! Each is written down before the agent is asked, and can be done again: the same id replaces.

use std::sync::Arc;

use taskbell_core::callback::{Digest, RegistrationPath, Scheme};
use taskbell_core::fault::FaultKind;
use taskbell_core::ids::TaskId;
use taskbell_core::oddity::Oddity;
use taskbell_core::public_url::PublicUrl;
use taskbell_core::push_answer::PushAnswer;
use taskbell_core::push_config::PushConfig;
use taskbell_core::registration_plan::{
    ANSWERS_FOR_MS, OLD_PROOF_FOR_MS, Obstacle, next_try, next_withdrawal, obstacle_of,
};
use taskbell_core::text::one_line;

use super::{Registrations, is_local};
use crate::agent_client::{CallError, CallFault};
use crate::agents::Agent;
use crate::keychain::KeychainError;
use crate::link::is_outage;
use crate::reads::note_link;
use crate::store::registrations::{self as rows, NewRegistration, Purpose, RegistrationRow};
use crate::store::{
    RegistrationKey, StoreError, TaskKey, WriteContext, agents as agent_rows, callbacks,
    registration_work as work, tasks,
};

/// Longest reason that is kept, in characters.
const DETAIL: usize = 300;

/// Why a step came to nothing.
#[derive(Debug)]
pub(super) struct Failed {
    pub obstacle: Obstacle,
    /// Stable; kept with the registration.
    pub code: &'static str,
    /// One clean line.
    pub detail: String,
}

impl Failed {
    fn new(obstacle: Obstacle, code: &'static str, detail: impl std::fmt::Display) -> Self {
        Self { obstacle, code, detail: one_line(&detail.to_string(), DETAIL) }
    }

    pub fn no_address(agent_is_local: bool) -> Self {
        let detail = match agent_is_local {
            true => "the inbox does not listen, so there is no address to give the agent",
            false => {
                "there is no public address to give the agent; set one with `taskbell settings set public_url`"
            }
        };
        Self::new(Obstacle::NoAddress, "no_address", detail)
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::new(Obstacle::Ours, error.code(), error)
    }
}

impl From<KeychainError> for Failed {
    fn from(error: KeychainError) -> Self {
        Self::new(Obstacle::Keyring, error.code(), error)
    }
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        let obstacle = match error.kind() {
            _ if is_outage(&error.fault) => Obstacle::Outage { wait: None },
            Some(kind) => match obstacle_of(kind) {
                Obstacle::Outage { .. } => Obstacle::Outage { wait: error.retry_after() },
                obstacle => obstacle,
            },
            None => match &error.fault {
                CallFault::CredentialUnavailable(_)
                | CallFault::TokenCommand(_)
                | CallFault::Setup(_)
                | CallFault::Unreachable(_) => Obstacle::Outage { wait: None },
                CallFault::NotOffered(_) => Obstacle::NotOffered,
                _ => Obstacle::Refused,
            },
        };
        Self::new(obstacle, error.code(), &error)
    }
}

impl Registrations {
    /// Writes a new registration down, without asking anybody. Its proofs follow with the first try.
    pub(super) async fn insert(
        &self,
        agent: &Agent,
        task: TaskKey,
        address: &PublicUrl,
        scheme: Scheme,
    ) -> Result<RegistrationKey, Failed> {
        let mut random = [0; 26];
        getrandom::fill(&mut random).map_err(|_| {
            Failed::new(Obstacle::Ours, "no_randomness", "the system gives no random numbers")
        })?;
        let path = RegistrationPath::of_random(random);
        let (url, config_id) = (address.callback(&path), uuid::Uuid::new_v4().to_string());
        let (agent_key, name) = (agent.key, agent.name());
        let key = self
            .parts
            .store()
            .write(move |context| {
                let new = NewRegistration {
                    path: &path,
                    purpose: Purpose::Task,
                    agent: Some(agent_key),
                    task: Some(task),
                    config_id: &config_id,
                    url: &url,
                    policy: crate::settings::proof_policy(context.tx, &name)?,
                    key_version: 1,
                    token: None,
                    // Nothing has this digest, so nothing is admitted before the proofs are there.
                    credential: Some((scheme, Digest([0; 32]))),
                };
                let key = rows::insert(context, &new)?;
                announce(context, task, "pending", None)?;
                Ok(key)
            })
            .await?;
        Ok(key)
    }

    /// Asks with the inbox's own address where the agent seems to be on this machine, and with the public one where
    /// that is refused: agents guard themselves against being sent to their own machine.
    pub(super) async fn put_anywhere(&self, agent: &Agent, key: RegistrationKey) -> Result<(), Failed> {
        let was_local = is_local(agent);
        let failed = match self.put(agent, key).await {
            Err(failed) if was_local && matches!(failed.code, "invalid_params" | "invalid_request") => failed,
            done => return done,
        };
        agent.client().note_quirk(|quirks| quirks.loopback_callbacks_refused = true);
        if let Err(error) = self.parts.agents().store_quirks(agent).await {
            tracing::warn!(%error, "what was learnt of an agent was not stored");
        }
        match self.parts.reach().address_for(false) {
            Some(_) => self.put(agent, key).await,
            None => Err(failed),
        }
    }

    /// Asks the agent for a registration, with the address and the proofs that hold now.
    pub(super) async fn put(&self, agent: &Agent, key: RegistrationKey) -> Result<(), Failed> {
        let store = self.parts.store();
        let row = store.read(move |connection| rows::get(connection, key)).await?;
        let (Some(task), Some((scheme, known_credential))) = (row.task, row.proof.credential) else {
            return Err(Failed::new(Obstacle::Ours, "internal", "the registration has no task or no scheme"));
        };
        let task_id = store.read(move |connection| tasks::get(connection, task)).await?.task_id;
        let local = is_local(agent);
        let address = self.parts.reach().address_for(local).ok_or_else(|| Failed::no_address(local))?;
        let secrets = self.keys.of(agent.key).await?.derive(&row.config_id, row.key_version, scheme);
        let (token, credential) = (secrets.token_digest(), secrets.credentials_digest());
        let are_known = row.proof.token == Some(token) && known_credential == credential;
        let had_proofs = row.proof.token.is_some();
        let version = row.key_version;
        let old_until_ms = self.parts.now_ms() + if had_proofs { OLD_PROOF_FOR_MS } else { 0 };
        store
            .write(move |context| {
                if !are_known {
                    rows::set_proofs(context, key, version, Some(token), Some(credential), old_until_ms)?;
                }
                work::set_asked(context, key)
            })
            .await?;

        let url = address.callback(&row.path);
        let config = PushConfig {
            id: Some(row.config_id.clone()),
            url: url.clone(),
            notification_token: Some(secrets.token.clone()),
            authentication: Some(secrets.authentication()),
            metadata: serde_json::Map::new(),
        };
        let answer = agent.client().create_push_config(&task_id, &config).await;
        note_link(agent, answer.as_ref().err());
        if matches!(&answer, Err(error) if error.kind().map(obstacle_of) == Some(Obstacle::NotOffered)) {
            self.note_push_refused(agent, true).await;
        }
        let answer = answer?;
        self.note_push_refused(agent, false).await;
        let remote_id = answer.config_id.clone().unwrap_or_else(|| row.config_id.clone());
        let kept_id = remote_id.clone();
        store
            .write(move |context| {
                rows::set_url(context, key, &url)?;
                rows::set_registered(context, key, Some(&kept_id))?;
                work::set_sent(context, key, version)?;
                announce(context, task, "active", None)?;
                // What happened before now is pushed to nobody.
                callbacks::raise_dirty(context, task)?;
                Ok(())
            })
            .await?;
        self.parts.bells().ring_due(task);
        self.parts.bells().ring_task(task);
        let proofs = Proofs { token, credential };
        self.note_echo(agent, key, std::slice::from_ref(&answer), &proofs).await;
        // An agent that gave the same config another id has two now.
        if let Some(old) = row.remote_id.filter(|old| *old != remote_id && *old != row.config_id) {
            self.drop_leftover(agent, &task_id, &old).await;
        }
        Ok(())
    }

    /// Looks whether the agent has it, takes back what else of ours is there, and has the task read once more.
    pub(super) async fn check(&self, agent: &Agent, key: RegistrationKey) -> Result<(), Failed> {
        let store = self.parts.store();
        let row = store.read(move |connection| rows::get(connection, key)).await?;
        let Some(task) = row.task else { return Ok(()) };
        let task_id = store.read(move |connection| tasks::get(connection, task)).await?.task_id;
        let listed = agent.client().push_configs(&task_id).await;
        note_link(agent, listed.as_ref().err());
        let is_there = match &listed {
            Ok(listed) => listed.iter().any(|answer| is_the_one(answer, &row)),
            Err(error) => {
                // It was said to be there; the list is a second look that not every agent offers.
                tracing::debug!(agent = %agent.name(), %error, "the registrations of a task could not be listed");
                true
            }
        };
        store
            .write(move |context| {
                work::set_checked(context, key)?;
                callbacks::raise_dirty(context, task)?;
                Ok(())
            })
            .await?;
        self.parts.bells().ring_due(task);
        self.parts.bells().ring_task(task);
        let listed = listed.unwrap_or_default();
        if let (Some(token), Some((_, credential))) = (row.proof.token, row.proof.credential) {
            self.note_echo(agent, key, &listed, &Proofs { token, credential }).await;
        }
        for answer in &listed {
            if let Some(id) = self.leftover(answer, &row).await? {
                self.drop_leftover(agent, &task_id, &id).await;
            }
        }
        if is_there {
            return Ok(());
        }
        Err(Failed::new(
            Obstacle::Refused,
            "push_not_kept",
            format!("agent {} accepted the registration and does not list it", agent.name()),
        ))
    }

    /// The id of what is ours at the agent and is not known here any more.
    async fn leftover(
        &self,
        answer: &PushAnswer,
        present: &RegistrationRow,
    ) -> Result<Option<String>, StoreError> {
        let Some(id) = answer.config_id.clone() else { return Ok(None) };
        if is_the_one(answer, present) {
            return Ok(None);
        }
        let reach = self.parts.reach();
        let path = answer.url.as_deref().and_then(|url| {
            [true, false]
                .into_iter()
                .filter_map(|local| reach.address_for(local))
                .find_map(|address| address.registration_of(url))
        });
        let Some(path) = path else { return Ok(None) };
        let known = self.parts.store().read(move |connection| rows::find_by_path(connection, &path)).await?;
        Ok(known.is_none().then_some(id))
    }

    async fn drop_leftover(&self, agent: &Agent, task_id: &TaskId, config_id: &str) {
        match agent.client().delete_push_config(task_id, config_id).await {
            Ok(()) => tracing::info!(agent = %agent.name(), "a left-over registration was taken back"),
            Err(error) => {
                tracing::info!(agent = %agent.name(), %error, "a left-over registration was not taken back");
            }
        }
    }

    /// By which names its agent knows it: the task's and its own.
    pub(super) async fn ids_of(&self, key: RegistrationKey) -> Result<(TaskId, String), StoreError> {
        self.parts
            .store()
            .read(move |connection| {
                let row = rows::get(connection, key)?;
                let gone = || StoreError::Missing { what: format!("task of registration {}", key.0) };
                let task = tasks::get(connection, row.task.ok_or_else(gone)?)?.task_id;
                Ok((task, row.remote_id.unwrap_or(row.config_id)))
            })
            .await
    }

    /// Takes a registration back at the agent.
    pub(super) async fn withdraw(
        &self,
        agent: Option<Arc<Agent>>,
        key: RegistrationKey,
    ) -> Result<(), Failed> {
        let store = self.parts.store();
        let row = store.read(move |connection| rows::get(connection, key)).await?;
        let work_row = store.read(move |connection| work::of(connection, key)).await?;
        let (Some(task), Some(work_row)) = (row.task, work_row) else { return Ok(()) };
        if let (true, Some(agent)) = (work_row.standing.asked, agent) {
            let task_id = store.read(move |connection| tasks::get(connection, task)).await?.task_id;
            let id = row.remote_id.as_deref().unwrap_or(&row.config_id);
            let deleted = agent.client().delete_push_config(&task_id, id).await;
            note_link(&agent, deleted.as_ref().err());
            match deleted {
                Ok(()) => {}
                // It is not there, or nobody can say: nothing more to do.
                Err(error)
                    if matches!(error.kind(), Some(FaultKind::TaskNotFound | FaultKind::TaskTerminal))
                        || error.kind().map(obstacle_of) == Some(Obstacle::NotOffered) => {}
                Err(error) => return Err(error.into()),
            }
        }
        store
            .write(move |context| {
                work::set_withdrawn(context, key)?;
                announce(context, task, "withdrawn", None)
            })
            .await?;
        Ok(())
    }

    /// The task has ended: callbacks are still taken for a while.
    pub(super) async fn end(&self, key: RegistrationKey) -> Result<(), Failed> {
        let until_ms = self.parts.now_ms() + ANSWERS_FOR_MS;
        self.parts
            .store()
            .write(move |context| {
                rows::set_ended(context, key, until_ms)?;
                work::try_now(context, Some(key), "").map(|_| ())
            })
            .await?;
        Ok(())
    }

    /// Keeps why a registration is not at its agent, and when it is tried again.
    pub(super) async fn note_failure(&self, key: RegistrationKey, failed: &Failed) {
        let (code, detail) = (failed.code, failed.detail.clone());
        let (obstacle, now_ms, jitter) = (failed.obstacle, self.parts.now_ms(), rand::random());
        let noted = self.parts.store().write(move |context| {
            let Some(row) = work::of(context.tx, key)? else { return Ok(()) };
            rows::set_failed(context, key, code, &detail)?;
            work::set_next_try(context, key, next_try(obstacle, row.tries + 1, now_ms, jitter))?;
            announce(context, row.task, "failed", Some(code))
        });
        if let Err(error) = noted.await {
            tracing::warn!(%error, "why a registration failed was not noted");
        }
    }

    /// As above, of one that could not be taken back.
    pub(super) async fn note_not_withdrawn(&self, key: RegistrationKey, failed: &Failed) {
        let (now_ms, jitter) = (self.parts.now_ms(), rand::random());
        let is_refused = failed.obstacle == Obstacle::Refused;
        let noted = self.parts.store().write(move |context| {
            let Some(row) = work::of(context.tx, key)? else { return Ok(()) };
            match next_withdrawal(row.tries + 1, now_ms, jitter) {
                Some(_) if is_refused && row.tries >= 3 => work::set_withdrawn(context, key),
                Some(next_ms) => work::set_next_try(context, key, Some(next_ms)),
                None => work::set_withdrawn(context, key),
            }
        });
        if let Err(error) = noted.await {
            tracing::warn!(%error, "a registration that was not taken back was not noted");
        }
    }

    /// Noted once an agent, and on each registration.
    async fn note_echo(&self, agent: &Agent, key: RegistrationKey, answers: &[PushAnswer], proofs: &Proofs) {
        if !answers.iter().any(|answer| proofs.are_in(answer)) {
            return;
        }
        let agent_key = agent.key;
        let noted = self.parts.store().write(move |context| {
            let is_new = rows::set_echoed(context, key)?;
            let known = agent_rows::oddities(context.tx, agent_key)?;
            let oddity = Oddity::EchoedSecret;
            if is_new && !known.iter().any(|row| row.kind == oddity.kind()) {
                agent_rows::record_oddity(context, agent_key, oddity.kind(), &oddity.detail())?;
            }
            Ok(())
        });
        if let Err(error) = noted.await {
            tracing::warn!(%error, "an echoed secret was not noted");
        }
    }

    async fn note_push_refused(&self, agent: &Agent, refused: bool) {
        agent.client().note_quirk(|quirks| quirks.push_refused = refused);
        if let Err(error) = self.parts.agents().store_quirks(agent).await {
            tracing::warn!(%error, "what was learnt of an agent was not stored");
        }
    }
}

struct Proofs {
    token: Digest,
    credential: Digest,
}

impl Proofs {
    fn are_in(&self, answer: &PushAnswer) -> bool {
        let is = |secret: &Option<taskbell_core::credential::Secret>, digest: Digest| {
            secret.as_ref().is_some_and(|secret| Digest::of(secret.expose().as_bytes()) == digest)
        };
        is(&answer.token, self.token) || is(&answer.credentials, self.credential)
    }
}

fn is_the_one(answer: &PushAnswer, row: &RegistrationRow) -> bool {
    let id = answer.config_id.as_deref();
    id.is_some_and(|id| Some(id) == row.remote_id.as_deref() || id == row.config_id)
        || answer.url.as_deref() == Some(row.url.as_str())
}

/// The feed tells where a registration stands; the rest is read from its row.
pub(super) fn announce(
    context: &mut WriteContext<'_>,
    task: TaskKey,
    state: &str,
    code: Option<&str>,
) -> Result<(), StoreError> {
    let body = serde_json::json!({ "registration": state, "reason": code });
    tasks::announce(context, task, "push", "registration", &body)
}
