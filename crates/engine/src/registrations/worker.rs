//! Brings the registrations to where they should be: a look at the rows, a few steps at once, again when a
//! bell rings, an address changes, or something is due.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use taskbell_core::callback::Scheme;
use taskbell_core::registration_plan::{Next, Stage, Step, next};
use tokio::task::JoinSet;

use super::steps::Failed;
use super::{Registrations, is_local};
use crate::agents::Agent;
use crate::keychain::{KeychainError, KeychainHealth};
use crate::link::LinkState;
use crate::settings;
use crate::store::registration_work::{self as work, WorkRow};
use crate::store::{AgentKey, RegistrationKey, StoreError, TaskKey};

/// The longest time between two looks.
const LOOK: Duration = Duration::from_secs(5);
/// The shortest, so that a busy feed of bells costs little.
const PAUSE: Duration = Duration::from_millis(50);
/// Steps at once, in all and at one agent: one that hangs must not hold up the others.
const AT_ONCE: usize = 16;
const AT_ONCE_PER_AGENT: usize = 4;

/// Why an agent's tasks are not registered by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// By the user's wish.
    TurnedOff,
    /// Its card says that it has no push notifications.
    NotDeclared,
    /// It was asked and has none.
    NotOffered,
    /// There is no public address to give it.
    NoPublicAddress,
    /// The inbox does not listen.
    NoInbox,
}

impl Absence {
    /// The stable word.
    pub fn word(self) -> &'static str {
        match self {
            Self::TurnedOff => "turned_off",
            Self::NotDeclared => "not_declared",
            Self::NotOffered => "not_offered",
            Self::NoPublicAddress => "no_public_address",
            Self::NoInbox => "no_inbox",
        }
    }

    /// One line for people.
    pub fn detail(self) -> &'static str {
        match self {
            Self::TurnedOff => {
                "callbacks of this agent are turned off; turn them on with `taskbell settings set push.AGENT on`"
            }
            Self::NotDeclared => {
                "its card offers no push notifications, so its tasks are followed by stream and poll"
            }
            Self::NotOffered => {
                "it was asked and offers no push notifications, so its tasks are followed by stream and poll"
            }
            Self::NoPublicAddress => {
                "there is no public address, so agents elsewhere are followed by stream and poll; set public_url or tunnel.command for callbacks"
            }
            Self::NoInbox => {
                "the inbox does not listen, so tasks are followed by stream and poll; see `taskbell doctor`"
            }
        }
    }
}

/// What a step is about: a task without a registration, or one that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Subject {
    New(TaskKey),
    Known(RegistrationKey),
}

struct Job {
    subject: Subject,
    agent_key: AgentKey,
    task: TaskKey,
    step: Step,
}

/// What one look found.
struct Found {
    jobs: Vec<Job>,
    /// The earliest time at which something is due.
    due_ms: Option<i64>,
}

impl Registrations {
    /// Runs for ever.
    pub async fn run(self) {
        let mut reach = self.parts.reach().changes();
        let mut running: JoinSet<Subject> = JoinSet::new();
        let mut busy: HashMap<Subject, AgentKey> = HashMap::new();
        loop {
            let due_ms = match self.look().await {
                Ok(found) => {
                    for job in found.jobs {
                        let at_agent = busy.values().filter(|agent| **agent == job.agent_key).count();
                        let has_room = busy.len() < AT_ONCE && at_agent < AT_ONCE_PER_AGENT;
                        if has_room && !busy.contains_key(&job.subject) {
                            busy.insert(job.subject, job.agent_key);
                            let (worker, subject) = (self.clone(), job.subject);
                            running.spawn(async move {
                                worker.take(job).await;
                                subject
                            });
                        }
                    }
                    found.due_ms
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to look up which registrations there should be");
                    None
                }
            };
            let wait = due_ms.map_or(LOOK, |due_ms| {
                let ms = due_ms.saturating_sub(self.parts.now_ms()).max(0);
                LOOK.min(Duration::from_millis(ms.unsigned_abs()))
            });
            tokio::time::sleep(PAUSE).await;
            tokio::select! {
                () = self.parts.bells().registrations.notified() => {}
                Ok(()) = reach.changed() => self.take_reach().await,
                Some(ended) = running.join_next() => {
                    let mut ended = Some(ended);
                    while let Some(one) = ended {
                        match one {
                            Ok(subject) => { busy.remove(&subject); }
                            // Which one panicked is not told: all are looked at again, and the rows say what
                            // is done.
                            Err(error) => {
                                tracing::error!(%error, "a step of a registration broke off");
                                running.abort_all();
                                busy.clear();
                            }
                        }
                        ended = running.try_join_next();
                    }
                }
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// With another address what was refused may be accepted; and how often a task is polled depends on whether
    /// callbacks may be expected.
    async fn take_reach(&self) {
        let public = self.parts.reach().state().public.map(|public| public.url);
        let before = std::mem::replace(
            &mut *self.public.lock().unwrap_or_else(std::sync::PoisonError::into_inner),
            public.clone(),
        );
        if before != public
            && let Err(error) = self.parts.store().write(|context| work::try_now(context, None, "")).await
        {
            tracing::warn!(%error, "registrations were not tried again with another address");
        }
        match self.parts.store().read(work::armed_tasks).await {
            Ok(tasks) => tasks.into_iter().for_each(|task| self.parts.bells().ring_task(task)),
            Err(error) => tracing::warn!(%error, "failed to look up which tasks are called back about"),
        }
    }

    async fn look(&self) -> Result<Found, StoreError> {
        let now_ms = self.parts.now_ms();
        let mut found = Found { jobs: Vec::new(), due_ms: None };
        for row in self.parts.store().read(work::open).await? {
            match self.next_of(&row, now_ms) {
                Next::Now(step) => found.jobs.push(Job {
                    subject: Subject::Known(row.key),
                    agent_key: row.agent,
                    task: row.task,
                    step,
                }),
                Next::At(at_ms) => {
                    found.due_ms = Some(found.due_ms.map_or(at_ms, |due_ms: i64| due_ms.min(at_ms)));
                }
                Next::Never => {}
            }
        }
        let off = self.agents_turned_off().await?;
        let willing: Vec<AgentKey> = self
            .parts
            .agents()
            .all()
            .iter()
            .filter(|agent| self.absence(agent, off.contains(&agent.key)).is_none())
            .filter(|agent| agent.link.state() != LinkState::Down)
            .map(|agent| agent.key)
            .collect();
        let limit = u32::try_from(AT_ONCE * 4).unwrap_or(u32::MAX);
        let new =
            self.parts.store().read(move |connection| work::without(connection, &willing, limit)).await?;
        found.jobs.extend(new.into_iter().map(|(task, agent_key)| Job {
            subject: Subject::New(task),
            agent_key,
            task,
            step: Step::Register,
        }));
        Ok(found)
    }

    fn next_of(&self, row: &WorkRow, now_ms: i64) -> Next {
        let agent = self.parts.agents().get(row.agent);
        let address = agent.as_ref().and_then(|agent| self.parts.reach().address_for(is_local(agent)));
        let mut standing = row.standing;
        // While there is no address nothing is made anew: it may be the same again in a moment.
        standing.address_is_current =
            address.as_ref().is_none_or(|address| address.callback(&row.path) == row.url);
        // Whoever used the keyring meanwhile found that it works again. A try that fails says the opposite.
        let keyring_works = !matches!(self.parts.agents().keychain().health(), KeychainHealth::Failing(_));
        if keyring_works && row.failure_code.as_deref().is_some_and(KeychainError::is_code_of_the_store) {
            standing.next_try_at_ms = None;
        }
        let next = next(&standing, now_ms);
        let is_down = agent.as_ref().is_some_and(|agent| agent.link.state() == LinkState::Down);
        match (next, standing.stage) {
            (Next::Now(Step::Register), _) if address.is_none() => Next::Never,
            // Whoever watches the link rings when it is up; meanwhile no call is wasted.
            (Next::Now(Step::Register | Step::Check | Step::Withdraw), _) if is_down => Next::Never,
            (next, Stage::Wanted | Stage::Active | Stage::Ended | Stage::Removed) => next,
        }
    }

    async fn agents_turned_off(&self) -> Result<HashSet<AgentKey>, StoreError> {
        let names: Vec<_> = self.parts.agents().all().iter().map(|agent| (agent.key, agent.name())).collect();
        self.parts
            .store()
            .read(move |connection| {
                let mut off = HashSet::new();
                for (key, name) in names {
                    if !settings::push_is_on(connection, &name)? {
                        off.insert(key);
                    }
                }
                Ok(off)
            })
            .await
    }

    /// Why the agent's tasks are not registered by themselves, where they are not.
    pub async fn absence_of(&self, agent: &Agent) -> Result<Option<Absence>, StoreError> {
        let name = agent.name();
        let is_on =
            self.parts.store().read(move |connection| settings::push_is_on(connection, &name)).await?;
        Ok(self.absence(agent, !is_on))
    }

    fn absence(&self, agent: &Agent, turned_off: bool) -> Option<Absence> {
        let local = is_local(agent);
        if turned_off {
            Some(Absence::TurnedOff)
        } else if !agent.declares_push() {
            Some(Absence::NotDeclared)
        } else if agent.client().quirks().push_refused {
            Some(Absence::NotOffered)
        } else if self.parts.reach().address_for(local).is_none() {
            Some(if local { Absence::NoInbox } else { Absence::NoPublicAddress })
        } else {
            None
        }
    }

    /// One step. What comes of it is in the rows.
    async fn take(&self, job: Job) {
        let _turn = self.turns.of(job.task).await;
        let agent = self.parts.agents().get(job.agent_key);
        let done = match (job.subject, job.step, agent) {
            (Subject::Known(key), Step::End, _) => self.end(key).await.map_err(|failed| (key, failed)),
            (Subject::Known(key), Step::Withdraw, agent) => {
                if let Err(failed) = self.withdraw(agent, key).await {
                    tracing::debug!(detail = failed.detail, "a registration was not taken back");
                    self.note_not_withdrawn(key, &failed).await;
                }
                Ok(())
            }
            (Subject::Known(_) | Subject::New(_), _, None) => Ok(()),
            (Subject::Known(key), Step::Check, Some(agent)) => {
                self.check(&agent, key).await.map_err(|failed| (key, failed))
            }
            (Subject::Known(key), Step::Register, Some(agent)) => {
                self.put_anywhere(&agent, key).await.map_err(|failed| (key, failed))
            }
            (Subject::New(task), _, Some(agent)) => self.put_new(&agent, task).await,
        };
        if let Err((key, failed)) = done {
            tracing::debug!(code = failed.code, detail = failed.detail, "a registration came to nothing");
            self.note_failure(key, &failed).await;
        }
    }

    async fn put_new(&self, agent: &Arc<Agent>, task: TaskKey) -> Result<(), (RegistrationKey, Failed)> {
        // Meanwhile somebody may have registered by hand.
        match self.of_task(task).await {
            Ok(rows) if rows.is_empty() => {}
            Ok(_) => return Ok(()),
            Err(error) => {
                tracing::warn!(%error, "the registrations of a task could not be looked up");
                return Ok(());
            }
        }
        let Some(address) = self.parts.reach().address_for(is_local(agent)) else { return Ok(()) };
        let key = match self.insert(agent, task, &address, Scheme::Bearer).await {
            Ok(key) => key,
            Err(failed) => {
                // The task may be gone; the next look knows.
                tracing::debug!(code = failed.code, detail = failed.detail, "a registration was not written");
                return Ok(());
            }
        };
        self.put_anywhere(agent, key).await.map_err(|failed| (key, failed))
    }
}
