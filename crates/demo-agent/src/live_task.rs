//! One task: its record, its place in its script, its listeners and its callbacks.
//!
//! Everything happens under the task's own lock, so a snapshot and the events after it never overlap and
//! never leave a gap. What runs it and what finds it is in [`crate::world`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use taskbell_core::dialect::v1::Extras;
use taskbell_core::dialect::{Dialect, v03};
use taskbell_core::ids::{ArtifactId, ContextId, MessageId, TaskId};
use taskbell_core::json::write_line;
use taskbell_core::state::TaskState;
use taskbell_core::task::{
    Artifact, ArtifactUpdate, Message, Part, Role, StatusUpdate, StreamEvent, Task, TaskStatus,
};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::push::{Registration, Weight};
use crate::script::{Act, Place, Script, Turn, advance};
use crate::stream::{Listener, Published};

/// Messages of history kept; older ones are forgotten.
const MAX_HISTORY: usize = 500;

/// A task as all share it.
pub struct LiveTask {
    pub id: TaskId,
    pub context_id: ContextId,
    /// Whose it is: the place of the owner's token in the list.
    pub owner: usize,
    inner: Mutex<Inner>,
    /// Rung at each change of state, for those who wait for the task to settle.
    changed: Notify,
}

/// Who runs the task now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Motion {
    /// A timer task of the agent.
    Running,
    /// Nobody: it waits for a message.
    Waiting,
    /// Nobody ever again.
    Over,
}

pub struct Inner {
    pub task: Task,
    /// Grows with every change of state over all tasks: the order of a list.
    pub sequence: u64,
    /// The text the script was read from.
    pub script_text: String,
    pub script: Script,
    pub place: Place,
    pub motion: Motion,
    /// Counts turns, so that a runner of an earlier turn does nothing any more.
    turn: u64,
    runner: Option<AbortHandle>,
    messages: u64,
    listeners: Vec<Listener>,
    pub registrations: Vec<Registration>,
    /// Already noted as unsaved.
    pub is_dirty: bool,
}

/// What a runner does next.
pub enum Next {
    Wait(std::time::Duration),
    Go,
    Stop,
}

/// What a change means to the state file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    Later,
    /// A new task, a message, a question or an end.
    Soon,
}

impl LiveTask {
    pub fn new(owner: usize, inner: Inner) -> Self {
        Self {
            id: inner.task.id.clone(),
            context_id: inner.task.context_id.clone().unwrap_or_else(|| ContextId::new("")),
            owner,
            inner: Mutex::new(inner),
            changed: Notify::new(),
        }
    }

    /// The lock. A panic elsewhere leaves a whole record: every change is made of single assignments.
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the task is terminal or asks for something, and returns it as it is then.
    pub async fn settled(&self, history_length: Option<u32>) -> Task {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that a change between the two is not missed.
            changed.as_mut().enable();
            {
                let inner = self.lock();
                let state = inner.task.status.state;
                if state.is_terminal() || state.is_interrupted() {
                    return inner.view(history_length);
                }
            }
            changed.await;
        }
    }

    pub fn ring(&self) {
        self.changed.notify_waiters();
    }
}

impl Inner {
    /// A task that was just submitted with its first message.
    pub fn submitted(
        task_id: TaskId,
        context_id: ContextId,
        mut message: Message,
        script_text: String,
    ) -> Self {
        message.task_id = Some(task_id.clone());
        message.context_id = Some(context_id.clone());
        let task = Task {
            id: task_id,
            context_id: Some(context_id),
            status: TaskStatus { timestamp: Some(now()), ..TaskStatus::new(TaskState::Submitted) },
            artifacts: Vec::new(),
            history: vec![message],
            metadata: serde_json::Map::new(),
            extra: serde_json::Map::new(),
        };
        Self::restored(task, script_text, Place::Begin, Motion::Running, 0, 0)
    }

    /// A task as it was kept.
    pub fn restored(
        task: Task,
        script_text: String,
        place: Place,
        motion: Motion,
        sequence: u64,
        messages: u64,
    ) -> Self {
        Self {
            script: Script::read(&script_text),
            script_text,
            task,
            sequence,
            place,
            motion,
            turn: 0,
            runner: None,
            messages,
            listeners: Vec::new(),
            registrations: Vec::new(),
            is_dirty: false,
        }
    }

    pub fn state(&self) -> TaskState {
        self.task.status.state
    }

    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// The task with the last messages of its history; with all of them where no number is given.
    pub fn view(&self, history_length: Option<u32>) -> Task {
        let history = &self.task.history;
        let surplus = history_length.map_or(0, |length| history.len().saturating_sub(length as usize));
        Task {
            id: self.task.id.clone(),
            context_id: self.task.context_id.clone(),
            status: self.task.status.clone(),
            artifacts: self.task.artifacts.clone(),
            history: history.iter().skip(surplus).cloned().collect(),
            metadata: self.task.metadata.clone(),
            extra: self.task.extra.clone(),
        }
    }

    pub fn snapshot(&self) -> StreamEvent {
        StreamEvent::Task(self.task.clone())
    }

    pub fn add_listener(&mut self, listener: Listener) {
        self.listeners.push(listener);
    }

    /// A new turn starts: whoever ran an earlier one stops.
    pub fn start_turn(&mut self) -> u64 {
        self.turn += 1;
        self.motion = Motion::Running;
        if let Some(runner) = self.runner.take() {
            runner.abort();
        }
        self.turn
    }

    pub fn set_runner(&mut self, turn: u64, runner: AbortHandle) {
        if self.turn == turn && self.motion == Motion::Running {
            self.runner = Some(runner);
        }
    }

    pub fn stop(&mut self) {
        self.turn += 1;
        if let Some(runner) = self.runner.take() {
            runner.abort();
        }
        self.listeners.clear();
        self.registrations.clear();
    }

    /// Does the next act of the script, if `turn` is still the turn.
    pub fn step(&mut self, turn: u64, sequence: u64) -> (Next, Option<Urgency>) {
        if self.turn != turn || self.motion != Motion::Running {
            return (Next::Stop, None);
        }
        let (act, place) = advance(&self.script, self.place);
        self.place = place;
        match act {
            Act::Wait(duration) => (Next::Wait(duration), None),
            Act::Status { state, text } => {
                self.set_status(state, text, sequence);
                if state.is_terminal() {
                    (Next::Stop, Some(Urgency::Soon))
                } else {
                    (Next::Go, Some(Urgency::Later))
                }
            }
            Act::Interrupt { state, text, turn } => {
                self.interrupt(state, text, turn, sequence);
                match turn {
                    Turn::Ends => (Next::Stop, Some(Urgency::Soon)),
                    Turn::Continues => (Next::Go, Some(Urgency::Soon)),
                }
            }
            Act::Artifact { part, append, last } => {
                self.add_artifact(part, append, last);
                (Next::Go, Some(Urgency::Later))
            }
            Act::CutStreams => {
                // Dropped without a word: their bodies end broken.
                self.listeners.clear();
                (Next::Go, None)
            }
            Act::Crash => {
                self.crash(sequence);
                (Next::Stop, Some(Urgency::Soon))
            }
            Act::Rest => (Next::Stop, None),
        }
    }

    /// Takes a client's message for this task, which is not terminal.
    /// A task that waits goes on, with the message's preset from its start where it has one; one that
    /// works notes it.
    pub fn receive(&mut self, mut message: Message, preset: Option<&str>, sequence: u64) -> Received {
        message.task_id = Some(self.task.id.clone());
        message.context_id.clone_from(&self.task.context_id);
        let text = message.text();
        if self.state().is_interrupted() {
            self.supersede_status_message();
            self.note(message);
            self.place = self.place.after_answer();
            if let Some(preset) = preset {
                preset.clone_into(&mut self.script_text);
                self.script = Script::read(preset);
                self.place = Place::Begin;
            }
            let turn = self.start_turn();
            self.set_status(TaskState::Working, format!("resumed with: {text}"), sequence);
            Received::Resumed { turn }
        } else {
            self.note(message);
            Received::Noted
        }
    }

    pub fn cancel(&mut self, sequence: u64) {
        self.turn += 1;
        if let Some(runner) = self.runner.take() {
            runner.abort();
        }
        self.place = Place::Over;
        self.set_status(TaskState::Canceled, "canceled on request".to_owned(), sequence);
    }

    fn set_status(&mut self, state: TaskState, text: String, sequence: u64) {
        let update = self.change_status(state, text, sequence);
        let weight = if state.is_terminal() { Weight::Reserved } else { Weight::Ordinary };
        if state.is_terminal() {
            self.motion = Motion::Over;
        }
        self.publish(Published::new(StreamEvent::Status(update)), weight);
    }

    fn interrupt(&mut self, state: TaskState, text: String, turn: Turn, sequence: u64) {
        let event = StreamEvent::Status(self.change_status(state, text, sequence));
        let published = match turn {
            Turn::Ends => {
                self.motion = Motion::Waiting;
                self.runner = None;
                Published::turn_end(event, self.script.final_on_interrupt)
            }
            Turn::Continues => Published::new(event),
        };
        self.publish(published, Weight::Reserved);
    }

    fn crash(&mut self, sequence: u64) {
        let text = "the agent crashed".to_owned();
        let update = self.change_status(TaskState::Failed, text, sequence);
        self.motion = Motion::Over;
        // Those who listen get an error; those who are called back, the failed task.
        self.call_back(&Published::new(StreamEvent::Status(update)), Weight::Reserved);
        self.tell_listeners(Published::crash());
    }

    fn change_status(&mut self, state: TaskState, text: String, sequence: u64) -> StatusUpdate {
        self.supersede_status_message();
        let message_id = MessageId::new(format!("{}-{}", self.task.id, self.messages));
        self.messages += 1;
        let message = Message {
            task_id: Some(self.task.id.clone()),
            context_id: self.task.context_id.clone(),
            ..Message::new(message_id, Role::Agent, vec![Part::text(text)])
        };
        let status = TaskStatus { message: Some(message), timestamp: Some(now()), ..TaskStatus::new(state) };
        self.task.status = status.clone();
        self.sequence = sequence;
        StatusUpdate {
            task_id: Some(self.task.id.clone()),
            context_id: self.task.context_id.clone(),
            status,
            is_final: None,
            metadata: serde_json::Map::new(),
            extra: serde_json::Map::new(),
        }
    }

    fn add_artifact(&mut self, part: Part, append: bool, last_chunk: bool) {
        let artifact_id = ArtifactId::new(format!("art-{}", self.task.id));
        let name = Some(self.script.artifact_name().to_owned());
        let artifact = Artifact { name, ..Artifact::new(artifact_id, vec![part]) };
        match self.task.artifacts.first_mut() {
            Some(known) if append => known.parts.extend(artifact.parts.iter().cloned()),
            Some(known) => *known = artifact.clone(),
            None => self.task.artifacts.push(artifact.clone()),
        }
        let update = ArtifactUpdate {
            task_id: Some(self.task.id.clone()),
            context_id: self.task.context_id.clone(),
            artifact,
            append,
            last_chunk,
            metadata: serde_json::Map::new(),
            extra: serde_json::Map::new(),
        };
        self.publish(Published::new(StreamEvent::Artifact(update)), Weight::Ordinary);
    }

    /// Calls back about the task as it was submitted.
    pub fn announce(&self) {
        self.call_back(&Published::new(self.snapshot()), Weight::Ordinary);
    }

    fn publish(&mut self, published: Published, weight: Weight) {
        self.call_back(&published, weight);
        self.tell_listeners(published);
    }

    fn tell_listeners(&mut self, published: Published) {
        if self.listeners.is_empty() {
            return;
        }
        let published = Arc::new(published);
        self.listeners.retain(|listener| listener.hear(&published));
    }

    /// 1.0 registrations get the event, 0.3 ones the bare task as it is now.
    fn call_back(&self, published: &Published, weight: Weight) {
        let mut task_line = None;
        for registration in &self.registrations {
            let body = match registration.dialect {
                Dialect::V1 => published.v1_line().to_owned(),
                Dialect::V03 => {
                    task_line.get_or_insert_with(|| write_line(&v03::task(&self.task, Extras::Drop))).clone()
                }
            };
            registration.push(body, weight);
        }
    }

    /// The message of a status moves into the history when the next status comes.
    fn supersede_status_message(&mut self) {
        if let Some(message) = self.task.status.message.take() {
            self.note(message);
        }
    }

    fn note(&mut self, message: Message) {
        let history = &mut self.task.history;
        if history.len() >= MAX_HISTORY {
            // The first message is the script and stays; a quarter goes at once, not one at a time.
            history.drain(1..MAX_HISTORY / 4);
        }
        history.push(message);
    }
}

/// What a message did.
pub enum Received {
    Resumed { turn: u64 },
    Noted,
}

/// UTC with milliseconds and `Z` (1.0 §5.6.1).
fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}
