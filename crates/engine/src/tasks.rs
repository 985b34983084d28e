//! What a user does with tasks: send, watch, import, reply, cancel.
//!
//! A message is sent once. When its outcome is unknown it is said so and never sent again by itself,
//! because the work may run twice.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use taskbell_core::dialect::call::{ListRequest, SendMode, SendRequest};
use taskbell_core::dialect::v1::{self, Extras};
use taskbell_core::fault::FaultKind;
use taskbell_core::ids::{AgentName, ContextId, MessageId, TaskId, TaskRef};
use taskbell_core::task::{Message, Part, Role, SendAnswer, Task};
use taskbell_core::text::one_line;
use tokio::time::Instant;
use uuid::Uuid;

use crate::agent_client::{CallError, CallFault, Outcome};
use crate::agents::Agent;
use crate::error::EngineError;
use crate::parts::Parts;
use crate::reads::note_link;
use crate::store::task_records::{Adoption, Told, adopt, apply_read};
use crate::store::tasks::{self, Channel, Following, TaskRow, TaskSource};
use crate::store::{TaskKey, registration_work, sends};

pub(crate) const TITLE: usize = 80;
/// How long a cancellation is given to come about.
const CANCEL_WAITS: Duration = Duration::from_secs(30);
/// Pages of ListTasks taken on an import.
const IMPORT_PAGES: usize = 20;
/// Tasks looked at to find one that a lost answer may have made.
const LOOK_FOR_LOST: u32 = 5;

/// A message to send.
#[derive(Debug, Clone)]
pub struct Outgoing {
    pub text: String,
    pub context_id: Option<ContextId>,
    /// Data and files beside the text.
    pub parts: Vec<Part>,
    /// Whether the agent is to call back about it; `None`: as is set for the agent.
    pub push: Option<bool>,
}

/// What came of a send.
#[derive(Debug)]
pub enum Sent {
    Task(TaskKey),
    /// The whole answer at once, as 1.0 JSON.
    Message(Value),
    /// Octets left and no answer came: the agent may or may not be at work.
    Unknown(MessageId),
}

/// What an import took.
#[derive(Debug, Default)]
pub struct Imported {
    pub adopted: Vec<TaskRef>,
    pub known: u64,
    pub unreadable: u64,
}

#[derive(Clone)]
pub struct Tasks {
    parts: Parts,
}

impl Tasks {
    pub fn new(parts: Parts) -> Self {
        Self { parts }
    }

    fn agent(&self, name: &AgentName) -> Result<Arc<Agent>, EngineError> {
        self.parts.agents().by_name(name).ok_or_else(|| EngineError::unknown_agent(name))
    }

    /// Sends once, without waiting for the end.
    pub async fn send(&self, name: &AgentName, outgoing: Outgoing) -> Result<Sent, EngineError> {
        let agent = self.agent(name)?;
        let message_id = MessageId::new(Uuid::new_v4().to_string());
        let mut message = Message::new(message_id.clone(), Role::User, vec![Part::text(&outgoing.text)]);
        message.parts.extend(outgoing.parts);
        message.context_id = outgoing.context_id;
        let (key, id, text) = (agent.key, message_id.clone(), outgoing.text.clone());
        self.parts.store().write(move |context| sends::insert(context, key, &id, &text)).await?;
        let started = self.parts.next_order();
        let answer = agent.client().send(&request(message)).await;
        note_link(&agent, answer.as_ref().err());
        match answer {
            Ok(SendAnswer::Task(task)) => {
                let title = one_line(outgoing.text.lines().next().unwrap_or_default(), TITLE);
                let (version, id) = (agent.now().row.credential_version, message_id);
                let agent_key = agent.key;
                let key = self
                    .parts
                    .store()
                    .write(move |context| {
                        let adoption = Adoption {
                            source: TaskSource::Send,
                            channel: Channel::Poll,
                            told: Told::Otherwise,
                            title: &title,
                            credential_version: version,
                        };
                        let (key, _) = adopt(context, agent_key, task, started, adoption)?;
                        sends::answered(context, &id, Some(key))?;
                        if let Some(wanted) = outgoing.push {
                            registration_work::set_wish(context, key, wanted)?;
                        }
                        Ok(key)
                    })
                    .await?;
                self.parts.bells().following.notify_one();
                Ok(Sent::Task(key))
            }
            Ok(SendAnswer::Message(message)) => {
                let id = message_id;
                self.parts.store().write(move |context| sends::answered(context, &id, None)).await?;
                Ok(Sent::Message(v1::message(&message, Extras::Keep)))
            }
            Err(error) if error.outcome == Outcome::Unknown => {
                tracing::warn!(agent = %name, %error, "the answer to a send was lost");
                let id = message_id.clone();
                self.parts.store().write(move |context| sends::set_unknown(context, &id)).await?;
                Ok(match self.look_for_lost(&agent, &message_id).await {
                    Some(key) => Sent::Task(key),
                    None => Sent::Unknown(message_id),
                })
            }
            Err(error) => {
                let id = message_id;
                self.parts.store().write(move |context| sends::set_failed(context, &id)).await?;
                Err(error.into())
            }
        }
    }

    /// The agent's own list may tell which task a lost answer was about.
    async fn look_for_lost(&self, agent: &Agent, message_id: &MessageId) -> Option<TaskKey> {
        let request = ListRequest { page_size: Some(LOOK_FOR_LOST), ..ListRequest::default() };
        let page = agent.client().list_tasks(&request).await.ok()?;
        for listed in page.tasks {
            let (agent_key, id) = (agent.key, listed.id.clone());
            let known =
                self.parts.store().read(move |connection| tasks::find_by_id(connection, agent_key, &id));
            if !matches!(known.await, Ok(None)) {
                continue;
            }
            let started = self.parts.next_order();
            let Ok(task) = agent.client().get_task(&listed.id).await else { continue };
            let current = task.status.message.iter();
            if task.history.iter().chain(current).any(|message| message.message_id == *message_id) {
                let title = title_of(&task);
                let adopted =
                    self.adopt(agent, task, started, TaskSource::Send, Told::ByGetTask, title).await.ok()?;
                let id = message_id.clone();
                let answered =
                    self.parts.store().write(move |context| sends::answered(context, &id, Some(adopted)));
                if let Err(error) = answered.await {
                    tracing::warn!(%error, "a found answer was not noted");
                }
                return Some(adopted);
            }
        }
        None
    }

    /// Follows a task that somebody else started.
    pub async fn watch(&self, name: &AgentName, task_id: &TaskId) -> Result<TaskKey, EngineError> {
        let agent = self.agent(name)?;
        let started = self.parts.next_order();
        let task = agent.client().get_task(task_id).await;
        note_link(&agent, task.as_ref().err());
        let task = task.map_err(|error| not_found_as(error, name, task_id))?;
        let title = title_of(&task);
        self.adopt(&agent, task, started, TaskSource::Watch, Told::ByGetTask, title).await
    }

    /// Takes in every task of the agent's list that has not ended.
    pub async fn import(&self, name: &AgentName) -> Result<Imported, EngineError> {
        let agent = self.agent(name)?;
        let mut imported = Imported::default();
        let mut request = ListRequest { page_size: Some(100), ..ListRequest::default() };
        for _ in 0..IMPORT_PAGES {
            let started = self.parts.next_order();
            let page = agent.client().list_tasks(&request).await;
            note_link(&agent, page.as_ref().err());
            let page = page.map_err(|error| list_refused_as(error, name))?;
            imported.unreadable += page.unreadable as u64;
            for task in page.tasks {
                if task.status.state.is_terminal() {
                    continue;
                }
                let (agent_key, id) = (agent.key, task.id.clone());
                let known =
                    self.parts.store().read(move |connection| tasks::find_by_id(connection, agent_key, &id));
                if known.await?.is_some() {
                    imported.known += 1;
                    continue;
                }
                let task_ref = TaskRef { agent: name.clone(), task: task.id.clone() };
                let title = title_of(&task);
                self.adopt(&agent, task, started, TaskSource::Import, Told::Otherwise, title).await?;
                imported.adopted.push(task_ref);
            }
            match page.next_page_token {
                Some(token) if request.page_token.as_ref() != Some(&token) => {
                    request.page_token = Some(token)
                }
                Some(_) | None => break,
            }
        }
        Ok(imported)
    }

    async fn adopt(
        &self,
        agent: &Agent,
        task: Task,
        started: taskbell_core::merge::Order,
        source: TaskSource,
        told: Told,
        title: String,
    ) -> Result<TaskKey, EngineError> {
        let (agent_key, version) = (agent.key, agent.now().row.credential_version);
        let (key, _) = self
            .parts
            .store()
            .write(move |context| {
                let adoption = Adoption {
                    source,
                    channel: Channel::Poll,
                    told,
                    title: &title,
                    credential_version: version,
                };
                adopt(context, agent_key, task, started, adoption)
            })
            .await?;
        self.parts.bells().following.notify_one();
        self.parts.bells().ring_task(key);
        Ok(key)
    }

    /// Answers a task once. Returns when the agent's answer is stored.
    pub async fn reply(&self, row: &TaskRow, text: String) -> Result<(), EngineError> {
        let agent = self.agent_of(row)?;
        let task = row.task_ref();
        if row.state.is_terminal() {
            return Err(EngineError::new(
                "task_terminal",
                format!("task {task} has ended {}; send a new one in its context instead", row.state_word()),
            ));
        }
        let mut message =
            Message::new(MessageId::new(Uuid::new_v4().to_string()), Role::User, vec![Part::text(&text)]);
        message.task_id = Some(row.task_id.clone());
        message.context_id = row.context_id.clone();
        let (started, started_ms) = (self.parts.next_order(), self.parts.now_ms());
        let answer = agent.client().send(&request(message)).await;
        note_link(&agent, answer.as_ref().err());
        let key = row.key;
        match answer {
            Ok(answer) => {
                let same_task = match answer {
                    SendAnswer::Task(task) if task.id == row.task_id => Some(task),
                    SendAnswer::Task(_) | SendAnswer::Message(_) => None,
                };
                self.parts
                    .store()
                    .write(move |context| {
                        tasks::set_replied(context, key, started_ms, &text)?;
                        if let Some(task) = same_task {
                            apply_read(context, key, task, started, Channel::Manual)?;
                        }
                        Ok(())
                    })
                    .await?;
                self.parts.bells().ring_task(key);
                Ok(())
            }
            Err(error) if error.outcome == Outcome::Unknown => {
                self.parts.bells().ring_task(key);
                Err(EngineError {
                    code: "outcome_unknown",
                    message: format!(
                        "the reply to task {task} left, but no answer came; look at the task before you repeat it"
                    ),
                    source: Some(Box::new(error)),
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Asks for the cancellation and waits for what really comes of it, 30 s at most: the row then says so.
    pub async fn cancel(&self, row: &TaskRow) -> Result<(), EngineError> {
        if row.state.is_terminal() && row.settled {
            return Ok(());
        }
        self.ask_cancel(row).await?;
        self.wait_for_end(row.key).await
    }

    /// Asks for the cancellation; returns when the agent's answer is applied.
    pub async fn ask_cancel(&self, row: &TaskRow) -> Result<(), EngineError> {
        let agent = self.agent_of(row)?;
        let key = row.key;
        // Before the agent hears of it: its stream may tell the end sooner than its answer.
        let asked_ms = self.parts.now_ms();
        self.parts
            .store()
            .write(move |context| tasks::set_cancel_asked(context, key, Some(asked_ms)))
            .await?;
        let started = self.parts.next_order();
        let answer = agent.client().cancel(&row.task_id).await;
        note_link(&agent, answer.as_ref().err());
        if answer.as_ref().is_err_and(|error| error.outcome != Outcome::Unknown) {
            self.parts.store().write(move |context| tasks::set_cancel_asked(context, key, None)).await?;
        }
        match answer {
            Ok(task) => {
                self.parts
                    .store()
                    .write(move |context| apply_read(context, key, task, started, Channel::Manual))
                    .await?;
            }
            // It may have ended in the meantime, or be on its way.
            Err(error)
                if matches!(error.kind(), Some(FaultKind::TaskNotCancelable | FaultKind::TaskTerminal)) =>
            {
                let now =
                    crate::reads::read_task(&self.parts, &agent, key, &row.task_id, Channel::Manual).await;
                if !matches!(now, Ok(applied) if applied.state.is_terminal()) {
                    return Err(error.into());
                }
            }
            Err(error) => return Err(not_found_as(error, &row.agent, &row.task_id)),
        }
        self.parts.bells().ring_task(key);
        Ok(())
    }

    async fn wait_for_end(&self, key: TaskKey) -> Result<(), EngineError> {
        let deadline = Instant::now() + CANCEL_WAITS;
        let mut changes = self.parts.store().doorbell();
        loop {
            let row = self.parts.store().read(move |connection| tasks::get(connection, key)).await?;
            if row.state.is_terminal() || row.following == Following::Ended {
                return Ok(());
            }
            match tokio::time::timeout_at(deadline, changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Ok(()),
            }
        }
    }

    fn agent_of(&self, row: &TaskRow) -> Result<Arc<Agent>, EngineError> {
        self.parts.agents().get(row.agent_key).ok_or_else(|| EngineError::unknown_agent(&row.agent))
    }
}

fn request(message: Message) -> SendRequest {
    SendRequest {
        message,
        mode: SendMode::NonBlocking,
        history_length: None,
        accepted_output_modes: Vec::new(),
        metadata: Map::new(),
    }
}

/// The first line of what was asked, where the history tells.
fn title_of(task: &Task) -> String {
    let asked = task.history.iter().find(|message| message.role == Role::User).map(Message::text);
    let line = one_line(asked.as_deref().unwrap_or_default().lines().next().unwrap_or_default(), TITLE);
    if line.is_empty() { one_line(task.id.as_str(), TITLE) } else { line }
}

fn not_found_as(error: CallError, agent: &AgentName, task_id: &TaskId) -> EngineError {
    match error.kind() {
        Some(FaultKind::TaskNotFound) => EngineError {
            code: "unknown_task",
            message: format!("agent {agent} knows no task {}", one_line(task_id.as_str(), TITLE)),
            source: Some(Box::new(error)),
        },
        _ => error.into(),
    }
}

fn list_refused_as(error: CallError, agent: &AgentName) -> EngineError {
    let refused = matches!(error.fault, CallFault::NotOffered(_))
        || matches!(error.kind(), Some(FaultKind::MethodNotFound | FaultKind::UnsupportedOperation));
    if refused {
        EngineError {
            code: "list_not_supported",
            message: format!(
                "agent {agent} cannot list its tasks; follow one with `taskbell watch {agent} TASKID`"
            ),
            source: Some(Box::new(error)),
        }
    } else {
        error.into()
    }
}
