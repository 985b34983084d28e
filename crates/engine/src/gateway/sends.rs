//! Messages on their way to an agent: once, written down before, and followed from the first event on.
//!
//! Upstream nothing blocks. Where the agent streams, the stream of a send is handed to the follower as it is,
//! so that no early event is lost; the client is one of those who listen. A client that goes takes nothing
//! with it: what was begun for it goes on in a task of its own.

mod upstream;

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;
use taskbell_core::dialect::call::{SendMode, SendRequest};
use taskbell_core::dialect::errors::{ErrorAnswer, ErrorKind};
use taskbell_core::dialect::request::SendParams;
use taskbell_core::ids::MessageId;
use taskbell_core::merge::Order;
use taskbell_core::relay;
use taskbell_core::state::TaskState;
use taskbell_core::task::{Message, SendAnswer, StreamEvent, Task, TaskStatus};
use taskbell_core::text::one_line;
use uuid::Uuid;

use super::operations::Outcome;
use super::stream::{First, Opening, Until};
use super::traffic::Note;
use super::{Caller, faults, push};
use crate::reads::note_link;
use crate::store::gateway_log::{self, Joined};
use crate::store::task_records::{Adoption, Told, adopt, apply_read, present};
use crate::store::tasks::{self, Channel, TaskRow, TaskSource};
use crate::store::{StoreError, TaskKey, WriteContext, clients, gateway_tasks, sends};
use crate::tasks::TITLE;
use upstream::{Answered, Streaming};

/// How long a task may stay at the question that was just answered before that is the answer.
const MOVES_WITHIN: Duration = Duration::from_secs(30);

/// What a message came to.
enum Made {
    Task(Box<MadeTask>),
    Message(Box<Message>),
}

/// A task that was made or answered, and who asked for it listening.
struct MadeTask {
    key: TaskKey,
    /// A new task as it was taken in; an answered one as it was before the answer.
    joined: Joined,
    /// An answered task as it is after the agent's answer.
    answered: Option<Task>,
}

impl MadeTask {
    /// As it is, whether or not its agent has moved on.
    fn into_task(self) -> Task {
        self.answered.unwrap_or(self.joined.task)
    }

    /// Still at the question that was just answered: that is not what is waited for.
    fn is_behind(&self) -> bool {
        self.answered.as_ref().is_some_and(|task| task.status == self.joined.task.status)
    }
}

impl Caller {
    /// A send whose answer is one document: the task once it has ended or waits, or as soon as there is one.
    pub(super) async fn send(&self, params: SendParams, note: &mut Note) -> Result<Value, ErrorAnswer> {
        let waits = params.blocking.unwrap_or(true);
        let history_length = params.history_length;
        let made = self.make(params, Streaming::No, note).await?;
        let made = match made {
            Made::Message(message) => {
                return Ok(relay::answer_value(&SendAnswer::Message(*message), self.dialect));
            }
            Made::Task(made) => *made,
        };
        let mut task = if waits { self.wait(made).await? } else { made.into_task() };
        note.set_state(task.status.state);
        relay::cut_history(&mut task.history, history_length);
        Ok(relay::answer_value(&SendAnswer::Task(task), self.dialect))
    }

    /// Waits until the task has ended or waits for somebody.
    async fn wait(&self, made: MadeTask) -> Result<Task, ErrorAnswer> {
        let (key, dialect, mut is_behind) = (made.key, self.dialect, made.is_behind());
        let mut question = made.answered.as_ref().map(|_| made.joined.task.status.clone());
        let mut joined = made.joined;
        if let Some(answered) = made.answered {
            joined.task = answered;
        }
        let parts = &self.gateway.parts;
        while is_behind || !is_settled(&joined.task.status, question.as_ref()) {
            let Some(mut feed) = joined.feed.take() else { break };
            // An agent that asks the same again in the same words tells nothing: it is not waited for without end.
            let mut patience = joined.task.status.state.is_interrupted().then_some(MOVES_WITHIN);
            is_behind = false;
            loop {
                let next = match patience.take() {
                    None => feed.next().await,
                    Some(patience) => match tokio::time::timeout(patience, feed.next()).await {
                        Ok(next) => next,
                        Err(_elapsed) => {
                            question = None;
                            break;
                        }
                    },
                };
                match next {
                    Some(told) if told.is_lost() => {
                        return Err(faults::lost(&self.row(key).await?, dialect));
                    }
                    Some(told) if !told.state.is_some_and(is_done) => {}
                    Some(_) | None => break,
                }
            }
            parts.caught_up(key).await;
            let join = move |context: &mut WriteContext<'_>| gateway_log::join(context, key, dialect, None);
            joined = parts.store().write(join).await.map_err(|error| faults::of_store(&error))?;
        }
        if joined.task.status.state.is_terminal() {
            return self.fresh(&self.row(key).await?).await;
        }
        Ok(joined.task)
    }

    /// A send whose answer is a stream: the task first, then what happens, until it ends or asks.
    pub(super) async fn send_streaming(
        &self,
        params: SendParams,
        note: &mut Note,
    ) -> Result<Outcome, ErrorAnswer> {
        let made = self.make(params, Streaming::Yes, note).await?;
        let (first, feed, lost) = match made {
            Made::Message(message) => {
                // A stream that is one message, then over (1.0 §3.1.2).
                let line = relay::event_line(&StreamEvent::Message(*message), self.dialect);
                (First::Event(None, line), None, faults::not_found())
            }
            Made::Task(made) => {
                let MadeTask { key, joined, .. } = *made;
                note.set_state(joined.task.status.state);
                let lost = faults::lost(&self.row(key).await?, self.dialect);
                let line = relay::event_line(&StreamEvent::Task(joined.task), self.dialect);
                (First::Event(Some(joined.id), line), joined.feed, lost)
            }
        };
        let opening = Opening { first: VecDeque::from([first]), feed, until: Until::TurnOver, lost };
        Ok(Outcome::Stream(Box::new(opening)))
    }

    async fn make(
        &self,
        params: SendParams,
        streaming: Streaming,
        note: &mut Note,
    ) -> Result<Made, ErrorAnswer> {
        self.check_references(&params.message).await?;
        // Before anything leaves: a task that runs cannot be taken back for its config.
        if let Some(config) = &params.push_config {
            push::check_inline(self, config).await?;
        }
        let row = match &params.message.task_id {
            Some(task_id) => Some(self.task(task_id, note).await?),
            None => None,
        };
        let caller = self.clone();
        let work = tokio::spawn(async move {
            match row {
                Some(row) => caller.answer_task(row, params).await,
                None => caller.start_task(params, streaming).await,
            }
        });
        let made = work.await.unwrap_or_else(|_| {
            Err(ErrorAnswer::new(
                ErrorKind::Internal,
                "the gateway is stopping; look for the task before sending again",
            ))
        })?;
        if let Made::Task(made) = &made {
            note.set_task(&made.joined.task.id);
        }
        Ok(made)
    }

    /// What a message refers to must be this client's, too.
    async fn check_references(&self, message: &Message) -> Result<(), ErrorAnswer> {
        let (context_id, references) = (message.context_id.clone(), message.reference_task_ids.clone());
        if context_id.is_none() && references.is_empty() {
            return Ok(());
        }
        let (client, agent) = (self.client.key, self.agent.key);
        let read = self.gateway.parts.store().read(move |connection| {
            let mut foreign = match &context_id {
                Some(id) => gateway_tasks::is_foreign_context(connection, client, agent, id)?,
                None => false,
            };
            for id in &references {
                let is_known = tasks::find_by_id(connection, agent, id)?.is_some();
                foreign |= is_known && gateway_tasks::find(connection, client, agent, id)?.is_none();
            }
            Ok(foreign)
        });
        if read.await.map_err(|error| faults::of_store(&error))? { Err(faults::not_found()) } else { Ok(()) }
    }

    /// A message that starts something.
    async fn start_task(&self, params: SendParams, streaming: Streaming) -> Result<Made, ErrorAnswer> {
        let parts = &self.gateway.parts;
        // Clients count their messages from one again; the note's own id is nobody else's.
        let noted = MessageId::new(Uuid::new_v4().to_string());
        let (agent_key, id, text) = (self.agent.key, noted.clone(), params.message.text());
        let title = title(&params.message);
        let insert = move |context: &mut WriteContext<'_>| sends::insert(context, agent_key, &id, &text);
        parts.store().write(insert).await.map_err(|error| faults::of_store(&error))?;
        let (started, started_ms) = (parts.next_order(), parts.now_ms());
        let request = request(&params);
        let answered = match self.call(&request, streaming).await {
            Ok(answered) => answered,
            Err(failed) => {
                self.note_failure(noted, failed.is_unknown).await;
                return Err(failed.answer);
            }
        };
        match answered {
            Answered::Message(message) => {
                let answered = move |context: &mut WriteContext<'_>| sends::answered(context, &noted, None);
                parts.store().write(answered).await.map_err(|error| faults::of_store(&error))?;
                Ok(Made::Message(message))
            }
            Answered::Task(task, handed) => {
                let taken = self.take_in(*task, started, started_ms, title, noted).await;
                let Some((key, joined)) = taken.map_err(|error| faults::of_store(&error))? else {
                    let text = "the agent answered with a task that is somebody else's";
                    return Err(ErrorAnswer::new(ErrorKind::InvalidAgentResponse, text));
                };
                if let Some(handed) = handed {
                    parts.handovers().put(key, handed);
                }
                parts.bells().following.notify_one();
                parts.bells().ring_task(key);
                if let Some(config) = params.push_config {
                    let row = self.row(key).await?;
                    // The task runs; a config that is not taken is told by listing them, as SDKs do.
                    if let Err(error) = push::register_inline(self, &row, config).await {
                        tracing::info!(task = %row.task_id, "an inline push config was not taken: {}", error.message);
                    }
                }
                Ok(Made::Task(Box::new(MadeTask { key, joined, answered: None })))
            }
        }
    }

    /// Writes the task down as this client's, begins its log, and joins, all before anything else is told.
    /// `None`: the task was here before the message left, and is not this client's to see. An agent that takes two
    /// clients' messages for one, by their ids perhaps, must not show one of them the other's.
    async fn take_in(
        &self,
        task: Task,
        started: Order,
        started_ms: i64,
        title: String,
        noted: MessageId,
    ) -> Result<Option<(TaskKey, Joined)>, StoreError> {
        let (agent_key, client, dialect) = (self.agent.key, self.client.key, self.dialect);
        let version = self.agent.now().row.credential_version;
        let write = self.gateway.parts.store().write(move |context| {
            let known = tasks::find_by_id(context.tx, agent_key, &task.id)?;
            let is_new = match known {
                None => true,
                // An import that looked at this very moment took it in for the user.
                Some(key) => {
                    clients::owner(context.tx, key)?.is_none()
                        && tasks::get(context.tx, key)?.created_at_ms >= started_ms
                }
            };
            if !is_new && gateway_tasks::find(context.tx, client, agent_key, &task.id)?.is_none() {
                sends::answered(context, &noted, None)?;
                return Ok(None);
            }
            let adoption = Adoption {
                source: TaskSource::Gateway,
                channel: Channel::Gateway,
                told: Told::Otherwise,
                title: &title,
                credential_version: version,
            };
            let (key, _) = adopt(context, agent_key, task, started, adoption)?;
            if is_new {
                clients::own(context, key, client)?;
            }
            sends::answered(context, &noted, Some(key))?;
            gateway_log::begin(context, key)?;
            Ok(Some((key, gateway_log::join(context, key, dialect, None)?)))
        });
        write.await
    }

    async fn note_failure(&self, noted: MessageId, is_unknown: bool) {
        let write = self.gateway.parts.store().write(move |context| {
            if is_unknown { sends::set_unknown(context, &noted) } else { sends::set_failed(context, &noted) }
        });
        if let Err(error) = write.await {
            tracing::warn!(%error, "the failure of a send was not noted");
        }
    }

    /// A message for a task that is there: the follower's stream tells what comes of it.
    async fn answer_task(&self, row: TaskRow, params: SendParams) -> Result<Made, ErrorAnswer> {
        let parts = &self.gateway.parts;
        let (key, dialect) = (row.key, self.dialect);
        let joined = parts.store().write(move |context| gateway_log::join(context, key, dialect, None)).await;
        let joined = joined.map_err(|error| faults::of_store(&error))?;
        if joined.task.status.state.is_terminal() {
            return Err(faults::terminal(&row));
        }
        if let Some(config) = params.push_config.clone() {
            push::register_along(self, &row, config).await?;
        }
        let (started, started_ms) = (parts.next_order(), parts.now_ms());
        let answer = self.agent_client().send(&request(&params)).await;
        note_link(&self.agent, answer.as_ref().err());
        let answer =
            answer.inspect_err(|_| parts.bells().ring_task(key)).map_err(|error| faults::of_call(&error))?;
        let same_task = match answer {
            SendAnswer::Task(task) if task.id == row.task_id => Some(task),
            SendAnswer::Task(_) => None,
            SendAnswer::Message(message) => return Ok(Made::Message(Box::new(message))),
        };
        let text = params.message.text();
        let write = parts.store().write(move |context| {
            tasks::set_replied(context, key, started_ms, &text)?;
            if let Some(task) = same_task {
                apply_read(context, key, task, started, Channel::Gateway)?;
            }
            present(context, key)
        });
        let answered = Some(write.await.map_err(|error| faults::of_store(&error))?);
        parts.bells().ring_task(key);
        Ok(Made::Task(Box::new(MadeTask { key, joined, answered })))
    }
}

/// Whether the task has ended or waits for something new. An agent may take the message away from the question that
/// was answered before it goes on, and be read meanwhile: its time stays what it was.
fn is_settled(status: &TaskStatus, answered: Option<&TaskStatus>) -> bool {
    let is_the_answered_one = answered.is_some_and(|question| {
        status.state == question.state && status.timestamp.is_some() && status.timestamp == question.timestamp
    });
    is_done(status.state) && (status.state.is_terminal() || !is_the_answered_one)
}

fn is_done(state: TaskState) -> bool {
    state.is_terminal() || state.is_interrupted()
}

fn request(params: &SendParams) -> SendRequest {
    SendRequest {
        message: params.message.clone(),
        mode: SendMode::NonBlocking,
        history_length: None,
        accepted_output_modes: params.accepted_output_modes.clone(),
        metadata: params.metadata.clone(),
    }
}

fn title(message: &Message) -> String {
    let text = message.text();
    let line = one_line(text.lines().next().unwrap_or_default(), TITLE);
    if line.is_empty() { one_line(message.message_id.as_str(), TITLE) } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(state: TaskState, at: Option<&str>, text: Option<&str>) -> TaskStatus {
        let message = text.map(|text| {
            let id = MessageId::new("m");
            Message::new(id, taskbell_core::task::Role::Agent, vec![taskbell_core::task::Part::text(text)])
        });
        TaskStatus { message, timestamp: at.map(str::to_owned), ..TaskStatus::new(state) }
    }

    #[test]
    fn the_question_that_was_answered_is_no_answer_even_without_its_words() {
        let question = asked(TaskState::InputRequired, Some("2026-01-05T10:00:05Z"), Some("which?"));
        let bare = asked(TaskState::InputRequired, Some("2026-01-05T10:00:05Z"), None);
        assert!(!is_settled(&question, Some(&question)) && !is_settled(&bare, Some(&question)));
        assert!(is_settled(&bare, None), "where nothing was answered");
    }

    #[test]
    fn another_question_a_sign_in_and_an_end_are() {
        let question = asked(TaskState::InputRequired, Some("2026-01-05T10:00:05Z"), Some("which?"));
        for status in [
            asked(TaskState::InputRequired, Some("2026-01-05T10:00:07Z"), Some("which?")),
            asked(TaskState::InputRequired, None, Some("which?")),
            asked(TaskState::AuthRequired, Some("2026-01-05T10:00:05Z"), None),
            asked(TaskState::Completed, Some("2026-01-05T10:00:05Z"), None),
        ] {
            assert!(is_settled(&status, Some(&question)), "{status:?}");
        }
        assert!(!is_settled(&asked(TaskState::Working, None, None), Some(&question)));
    }
}
