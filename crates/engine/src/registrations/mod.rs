//! Our registrations at the agents: where they are to call us back about a task.
//!
//! ```text
//! a followed task ──> written down ──> asked for ──> there ──> checked 10 s later
//!                                        │  ^ refused, keyring locked, agent away: again, later
//! the task ends ──> callbacks are taken for 7 days more; taken back at the agent after the last one
//! ```
//!
//! What is to be done is decided in [`taskbell_core::registration_plan`] from the rows, so a restart goes on
//! where it was. Push only makes following quicker: nothing here is waited for, and no failure is the task's.
//!
//! | question | room |
//! |---|---|
//! | the secrets | `keys` |
//! | what is asked of an agent | `steps` |
//! | when | `worker` |

mod keys;
mod steps;
mod worker;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use taskbell_core::agent::is_loopback;
use taskbell_core::callback::Scheme;
use taskbell_core::ids::TaskId;
use taskbell_core::public_url::PublicUrl;
use taskbell_core::registration_plan::OLD_PROOF_FOR_MS;

use crate::agents::Agent;
use crate::error::EngineError;
use crate::keychain::Keychain;
use crate::parts::Parts;
use crate::store::registration_work::{self as work, WorkRow};
use crate::store::registrations::{self as rows, RegistrationRow, RegistrationState};
use crate::store::tasks::{Following, TaskRow};
use crate::store::{RegistrationKey, TaskKey};
use keys::Keys;
use steps::Failed;

pub use worker::Absence;

/// How long the removal of an agent waits for it.
const LET_GO_WITHIN: Duration = Duration::from_secs(3);
/// What is taken back at once then.
const AT_ONCE: usize = 16;

/// What can be done with registrations. Clones share everything.
#[derive(Clone)]
pub struct Registrations {
    parts: Parts,
    keys: Keys,
    /// One at a time for each task.
    turns: Turns,
    /// The public address as it was last looked at.
    public: Arc<Mutex<Option<PublicUrl>>>,
}

impl Registrations {
    pub fn new(parts: Parts, keychain: Keychain) -> Self {
        Self { parts, keys: Keys::new(keychain), turns: Turns::default(), public: Arc::default() }
    }

    /// Registers for a task because its user wants it, and says what came of it. One that is there already is
    /// made anew under the same id.
    pub async fn register(&self, task: &TaskRow, scheme: Scheme) -> Result<RegistrationRow, EngineError> {
        let agent = self.agent_of(task)?;
        if task.state.is_terminal() || task.following == Following::Ended {
            return Err(EngineError::new(
                "task_terminal",
                format!("task {} has ended, so nothing more would be called back", task.task_ref()),
            ));
        }
        let _turn = self.turns.of(task.key).await;
        let key = task.key;
        self.parts.store().write(move |context| work::set_wish(context, key, true)).await?;
        let open = self.of_task(task.key).await?.into_iter().rev().find(is_open);
        let made = match open {
            Some(row) => Ok(row.key),
            None => {
                let local = is_local(&agent);
                match self.parts.reach().address_for(local) {
                    Some(address) => self.insert(&agent, task.key, &address, scheme).await,
                    None => Err(Failed::no_address(local)),
                }
            }
        };
        let key = match made {
            Ok(key) => key,
            Err(failed) => return Err(refusal(&agent, failed)),
        };
        if let Err(failed) = self.put_anywhere(&agent, key).await {
            self.note_failure(key, &failed).await;
            return Err(refusal(&agent, failed));
        }
        self.parts.bells().registrations.notify_one();
        self.row(key).await
    }

    /// Tells senders that it is gone, from now on, and takes it back at the agent in a moment. None is made
    /// again for this task by itself.
    pub async fn remove(&self, task: &TaskRow) -> Result<Vec<RegistrationRow>, EngineError> {
        let _turn = self.turns.of(task.key).await;
        let key = task.key;
        let removed = self.parts.store().write(move |context| {
            work::set_wish(context, key, false)?;
            let open: Vec<_> = rows::of_task(context.tx, key)?
                .into_iter()
                .filter(|row| row.state != RegistrationState::Removed)
                .collect();
            for row in &open {
                rows::set_removed(context, row.key)?;
                work::try_now(context, Some(row.key), "")?;
                steps::announce(context, key, "removed", None)?;
            }
            Ok(open.into_iter().map(|row| row.key).collect::<Vec<_>>())
        });
        let removed = removed.await?;
        if removed.is_empty() {
            return Err(none_there(task));
        }
        self.parts.bells().registrations.notify_one();
        let mut found = Vec::new();
        for key in removed {
            found.push(self.row(key).await?);
        }
        Ok(found)
    }

    /// New proofs for a task's registration. The old ones hold for a day more; the agent is given the new ones
    /// now and then asked for what it has.
    pub async fn rotate(&self, task: &TaskRow) -> Result<RegistrationRow, EngineError> {
        let agent = self.agent_of(task)?;
        let _turn = self.turns.of(task.key).await;
        let open = self.of_task(task.key).await?.into_iter().rev().find(is_open);
        let row = open.ok_or_else(|| none_there(task))?;
        let scheme = row.proof.credential.map_or(Scheme::Bearer, |(scheme, _)| scheme);
        let version = row.key_version + 1;
        let key = self.keys.of(agent.key).await.map_err(|error| refusal(&agent, error.into()))?;
        let secrets = key.derive(&row.config_id, version, scheme);
        let until_ms = self.parts.now_ms() + OLD_PROOF_FOR_MS;
        let key = row.key;
        self.parts
            .store()
            .write(move |context| {
                let (token, credential) = (secrets.token_digest(), secrets.credentials_digest());
                rows::set_proofs(context, key, version, Some(token), Some(credential), until_ms)
            })
            .await?;
        let sent = match self.put(&agent, key).await {
            Ok(()) => self.check(&agent, key).await,
            failed => failed,
        };
        if let Err(failed) = sent {
            self.note_failure(key, &failed).await;
            self.parts.bells().registrations.notify_one();
            return Err(refusal(&agent, failed));
        }
        self.row(key).await
    }

    /// All of a task, the oldest first.
    pub async fn of_task(&self, task: TaskKey) -> Result<Vec<RegistrationRow>, EngineError> {
        Ok(self.parts.store().read(move |connection| rows::of_task(connection, task)).await?)
    }

    /// Before a task is deleted: what is at its agent is taken back, in the background and once, for nobody knows
    /// of it afterwards.
    pub async fn let_go_of(&self, task: &TaskRow) -> Result<(), EngineError> {
        let Some(agent) = self.parts.agents().get(task.agent_key) else { return Ok(()) };
        let open = self.at_agents(move |row| row.task == task.key).await?;
        tokio::spawn(take_back(agent, open));
        Ok(())
    }

    /// Before an agent is removed, while it still has its credential: what is registered there is taken back, as
    /// far as that goes in a moment.
    pub async fn let_go_of_agent(&self, agent: Arc<Agent>) -> Result<(), EngineError> {
        let key = agent.key;
        let open = self.at_agents(move |row| row.agent == key).await?;
        let taken = tokio::time::timeout(LET_GO_WITHIN, take_back(agent, open)).await;
        if taken.is_err() {
            tracing::info!("not every registration was taken back before its agent was removed");
        }
        Ok(())
    }

    /// The names by which agents know what may be registered there. Read before the rows go.
    async fn at_agents(&self, of: impl Fn(&WorkRow) -> bool) -> Result<Vec<(TaskId, String)>, EngineError> {
        let open = self.parts.store().read(work::open).await?;
        let mut found = Vec::new();
        for row in open.iter().filter(|row| row.standing.asked && of(row)) {
            found.push(self.ids_of(row.key).await?);
        }
        Ok(found)
    }

    /// With an agent that is removed goes its key. What is still registered there stays until its tasks end; its
    /// callbacks are proved by digests.
    pub async fn forget_agent(&self, agent: crate::store::AgentKey) {
        if let Err(error) = self.keys.forget(agent).await {
            tracing::warn!(%error, "the key for an agent's callbacks was not removed from the keyring");
        }
    }

    async fn row(&self, key: RegistrationKey) -> Result<RegistrationRow, EngineError> {
        Ok(self.parts.store().read(move |connection| rows::get(connection, key)).await?)
    }

    fn agent_of(&self, task: &TaskRow) -> Result<Arc<Agent>, EngineError> {
        self.parts.agents().get(task.agent_key).ok_or_else(|| EngineError::unknown_agent(&task.agent))
    }
}

async fn take_back(agent: Arc<Agent>, ids: Vec<(TaskId, String)>) {
    let client = agent.client();
    let calls = futures::stream::iter(ids).for_each_concurrent(AT_ONCE, |(task, id)| {
        let client = client.clone();
        async move {
            if let Err(error) = client.delete_push_config(&task, &id).await {
                tracing::debug!(%error, "a registration was not taken back");
            }
        }
    });
    calls.await;
}

/// At the agent, or to be.
fn is_open(row: &RegistrationRow) -> bool {
    match row.state {
        RegistrationState::Pending | RegistrationState::Active | RegistrationState::Failed => true,
        RegistrationState::Ended | RegistrationState::Removed => false,
    }
}

fn none_there(task: &TaskRow) -> EngineError {
    EngineError::new(
        "no_registration",
        format!("task {} has no registration; make one with `taskbell push register`", task.task_ref()),
    )
}

/// Whether the agent is given the inbox's own address: it is on this machine, and did not refuse that. One behind
/// a forwarded port may look so as well.
pub(crate) fn is_local(agent: &Agent) -> bool {
    let client = agent.client();
    is_loopback(&client.endpoint().interface_url) && !client.quirks().loopback_callbacks_refused
}

fn refusal(agent: &Agent, failed: Failed) -> EngineError {
    EngineError::new(
        failed.code,
        format!("agent {} was not asked to call back: {}", agent.name(), failed.detail),
    )
}

/// Turns, one task at a time: a register by hand and the worker's must not both make one.
#[derive(Clone, Default)]
struct Turns(Arc<Mutex<HashMap<TaskKey, Arc<tokio::sync::Mutex<()>>>>>);

impl Turns {
    async fn of(&self, task: TaskKey) -> tokio::sync::OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Those that nobody holds or waits for are only ours.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(task).or_default())
        };
        turn.lock_owned().await
    }
}
