//! All tasks of the agent, and what clients can ask of them. Knows nothing of HTTP.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use subtle::ConstantTimeEq;
use taskbell_core::credential::Secret;
use taskbell_core::dialect::Dialect;
use taskbell_core::dialect::errors::{ErrorAnswer, ErrorKind};
use taskbell_core::dialect::request::{ListParams, SendParams};
use taskbell_core::ids::{ContextId, MessageId, TaskId};
use taskbell_core::push_config::{PushConfig, PushConfigParams};
use taskbell_core::task::{Message, Part, Role, StreamEvent, Task};

use crate::counters::Counters;
use crate::live_task::{Inner, LiveTask, Motion, Next, Received, Urgency};
use crate::presets::Presets;
use crate::push::{PushSender, Registration};
use crate::script::{Reply, Script};
use crate::state_file::{Journal, Kept};
use crate::stream::{Subscription, Until, listen};

/// Tasks kept. Beyond it the oldest finished ones are forgotten; if all run, no new one is taken.
const MAX_TASKS: usize = 20_000;
const DEFAULT_PAGE: u32 = 50;

pub struct World {
    tokens: RwLock<Vec<Secret>>,
    presets: Presets,
    tasks: RwLock<HashMap<TaskId, Arc<LiveTask>>>,
    /// Oldest first.
    ages: Mutex<VecDeque<TaskId>>,
    sequence: AtomicU64,
    pub counters: Arc<Counters>,
    push: PushSender,
    journal: Option<Arc<Journal>>,
    /// Runs the tasks: those of the agent go on when the request that made them is gone.
    runtime: tokio::runtime::Handle,
}

/// What a send came to.
pub enum Sent {
    Message(Message),
    Task { task: Arc<LiveTask>, stream: Option<Watch> },
}

/// A stream about to start: its first event, and where the rest comes from.
pub struct Watch {
    pub first: Option<StreamEvent>,
    /// None where nothing can follow.
    pub events: Option<Subscription>,
}

/// Whether the sender wants to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watching {
    Yes,
    No,
}

/// One page of a list.
pub struct Page {
    pub tasks: Vec<Task>,
    pub next: Option<String>,
    pub size: u32,
    pub total: usize,
}

impl World {
    pub fn new(tokens: Vec<Secret>, presets: Presets, journal: Option<Arc<Journal>>) -> Arc<Self> {
        Arc::new(Self {
            tokens: RwLock::new(tokens),
            presets,
            tasks: RwLock::default(),
            ages: Mutex::default(),
            sequence: AtomicU64::new(1),
            counters: Arc::default(),
            push: PushSender::default(),
            journal,
            runtime: tokio::runtime::Handle::current(),
        })
    }

    /// Takes up the tasks of an earlier run. Those that were under way go on where they were.
    pub fn restore(self: &Arc<Self>, kept: Vec<Kept>) {
        for kept in kept {
            self.sequence.fetch_max(kept.sequence + 1, Ordering::Relaxed);
            let motion = kept.motion;
            let inner =
                Inner::restored(kept.task, kept.script, kept.place, motion, kept.sequence, kept.messages);
            let task = Arc::new(LiveTask::new(kept.owner, inner));
            self.insert(&task);
            if motion == Motion::Running {
                let turn = task.lock().start_turn();
                self.run(&task, turn);
            }
        }
    }

    pub fn set_tokens(&self, tokens: Vec<Secret>) {
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
    }

    /// Whose token this is. Without tokens everybody is the first user.
    pub fn user(&self, token: Option<&str>) -> Option<usize> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        if tokens.is_empty() {
            return Some(0);
        }
        let given = token?.as_bytes();
        tokens.iter().position(|known| bool::from(known.expose().as_bytes().ct_eq(given)))
    }

    pub fn wants_token(&self) -> bool {
        !self.tokens.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Another user's task is not found, like one that never was (1.0 §3.3.2).
    pub fn task(&self, owner: usize, task_id: &TaskId) -> Result<Arc<LiveTask>, ErrorAnswer> {
        let tasks = self.tasks.read().unwrap_or_else(PoisonError::into_inner);
        tasks
            .get(task_id)
            .filter(|task| task.owner == owner)
            .cloned()
            .ok_or_else(|| ErrorAnswer::new(ErrorKind::TaskNotFound, "task not found"))
    }

    /// Sends a message: a new task, an answer to one that asks, or a note for one that works.
    pub async fn send(
        self: &Arc<Self>,
        owner: usize,
        params: SendParams,
        dialect: Dialect,
        watching: Watching,
    ) -> Result<Sent, ErrorAnswer> {
        self.counters.count_send(params.message.message_id.as_str());
        if let Some(task_id) = params.message.task_id.clone() {
            return self.send_to(owner, &task_id, params, dialect, watching);
        }
        let preset = self.presets.script(params.message.message_id.as_str());
        let script_text = preset.map_or_else(|| params.message.text(), str::to_owned);
        let script = Script::read(&script_text);
        if script.hold.is_zero() {
            return self.start(owner, script, script_text, params, dialect, watching);
        }
        // The task comes to be even if the client gives up waiting, as with any agent.
        let world = Arc::clone(self);
        let held = self.runtime.spawn(async move {
            tokio::time::sleep(script.hold).await;
            world.start(owner, script, script_text, params, dialect, watching)
        });
        held.await.unwrap_or_else(|_| Err(ErrorAnswer::new(ErrorKind::Internal, "the agent is stopping")))
    }

    fn start(
        self: &Arc<Self>,
        owner: usize,
        script: Script,
        script_text: String,
        params: SendParams,
        dialect: Dialect,
        watching: Watching,
    ) -> Result<Sent, ErrorAnswer> {
        let message = params.message;
        let context_id =
            message.context_id.clone().unwrap_or_else(|| ContextId::new(uuid::Uuid::new_v4().to_string()));
        if script.reply == Reply::Message {
            let message_id = MessageId::new(uuid::Uuid::new_v4().to_string());
            let text = script.plain_reply(&message.text());
            let reply = Message {
                context_id: Some(context_id),
                ..Message::new(message_id, Role::Agent, vec![Part::text(text)])
            };
            return Ok(Sent::Message(reply));
        }
        let task_id = TaskId::new(uuid::Uuid::new_v4().to_string());
        let mut inner = Inner::submitted(task_id, context_id, message, script_text);
        inner.sequence = self.next_sequence();
        if let Some(push) = params.push_config {
            inner.registrations.push(self.accept(push.config, dialect)?);
        }
        self.make_room()?;
        let task = Arc::new(LiveTask::new(owner, inner));
        self.insert(&task);
        let (turn, stream) = {
            let mut inner = task.lock();
            let first = inner.script.task_first.then(|| inner.snapshot());
            if inner.script.task_first {
                inner.announce();
            }
            let stream = (watching == Watching::Yes).then(|| {
                let (listener, subscription) = listen(Until::TurnEnd);
                inner.add_listener(listener);
                Watch { first, events: Some(subscription) }
            });
            (inner.start_turn(), stream)
        };
        self.save(&task, Urgency::Soon);
        self.run(&task, turn);
        Ok(Sent::Task { task, stream })
    }

    fn send_to(
        self: &Arc<Self>,
        owner: usize,
        task_id: &TaskId,
        params: SendParams,
        dialect: Dialect,
        watching: Watching,
    ) -> Result<Sent, ErrorAnswer> {
        let task = self.task(owner, task_id)?;
        let message = params.message;
        if message.context_id.as_ref().is_some_and(|context_id| *context_id != task.context_id) {
            let text = "contextId does not match the task's";
            return Err(ErrorAnswer::new(ErrorKind::InvalidParams, text));
        }
        let push = params.push_config.map(|push| self.accept(push.config, dialect)).transpose()?;
        let (received, stream) = {
            let mut inner = task.lock();
            if inner.state().is_terminal() {
                return Err(terminal(&inner.task));
            }
            if let Some(push) = push {
                register(&mut inner, push);
            }
            // The snapshot comes first and shows the task before the answer; what the answer does follows.
            let stream = (watching == Watching::Yes).then(|| {
                let (listener, subscription) = listen(Until::TurnEnd);
                let watch = Watch { first: Some(inner.snapshot()), events: Some(subscription) };
                inner.add_listener(listener);
                watch
            });
            let preset = self.presets.script(message.message_id.as_str());
            (inner.receive(message, preset, self.next_sequence()), stream)
        };
        task.ring();
        self.save(&task, Urgency::Soon);
        match received {
            Received::Resumed { turn } => self.run(&task, turn),
            Received::Noted => {}
        }
        Ok(Sent::Task { task, stream })
    }

    /// Watches a task from now on. Nothing but the task comes where it is over already.
    pub fn subscribe(&self, owner: usize, task_id: &TaskId) -> Result<Watch, ErrorAnswer> {
        self.counters.count_subscribe();
        let task = self.task(owner, task_id)?;
        let mut inner = task.lock();
        let first = Some(inner.snapshot());
        if inner.state().is_terminal() {
            return Ok(Watch { first, events: None });
        }
        let (listener, subscription) = listen(Until::TaskEnd);
        inner.add_listener(listener);
        Ok(Watch { first, events: Some(subscription) })
    }

    pub fn get(
        &self,
        owner: usize,
        task_id: &TaskId,
        history_length: Option<u32>,
    ) -> Result<Task, ErrorAnswer> {
        self.counters.count_get();
        Ok(self.task(owner, task_id)?.lock().view(history_length))
    }

    pub fn cancel(&self, owner: usize, task_id: &TaskId) -> Result<Task, ErrorAnswer> {
        let task = self.task(owner, task_id)?;
        let canceled = {
            let mut inner = task.lock();
            if inner.state().is_terminal() || !inner.script.cancelable {
                let state = inner.state().word();
                let text = format!("task is {state} and cannot be canceled");
                return Err(ErrorAnswer::new(ErrorKind::TaskNotCancelable, text));
            }
            inner.cancel(self.next_sequence());
            inner.task.clone()
        };
        task.ring();
        self.save(&task, Urgency::Soon);
        Ok(canceled)
    }

    /// A page of the owner's tasks, the one whose state changed last first. The token is the place in
    /// that order, so a task that changes meanwhile moves to the front and no other is left out.
    pub fn list(&self, owner: usize, params: &ListParams) -> Result<Page, ErrorAnswer> {
        let refuse = |text: &str| ErrorAnswer::new(ErrorKind::InvalidParams, text);
        let before: Option<u64> = match &params.page_token {
            None => None,
            Some(token) => Some(token.parse().map_err(|_| refuse("pageToken is none of ours"))?),
        };
        let after: Option<jiff::Timestamp> = match &params.status_timestamp_after {
            None => None,
            Some(text) => Some(text.parse().map_err(|_| refuse("statusTimestampAfter is no instant"))?),
        };
        let size = params.page_size.unwrap_or(DEFAULT_PAGE);
        let mut matching: Vec<(u64, Arc<LiveTask>)> = {
            let tasks = self.tasks.read().unwrap_or_else(PoisonError::into_inner);
            tasks.values().filter(|task| task.owner == owner).cloned().collect::<Vec<_>>()
        }
        .into_iter()
        .filter(|task| params.context_id.as_ref().is_none_or(|context_id| task.context_id == *context_id))
        .filter_map(|task| {
            let inner = task.lock();
            let in_state = params.status.is_none_or(|state| inner.state() == state);
            let in_time = after.is_none_or(|after| {
                let at = inner.task.status.timestamp.as_ref().and_then(|text| text.parse().ok());
                at.is_some_and(|at: jiff::Timestamp| at >= after)
            });
            let sequence = inner.sequence;
            drop(inner);
            (in_state && in_time).then_some((sequence, task))
        })
        .collect();
        let total = matching.len();
        if let Some(before) = before {
            matching.retain(|(sequence, _)| *sequence < before);
        }
        matching.sort_unstable_by_key(|(sequence, _)| std::cmp::Reverse(*sequence));
        let more = matching.len() > size as usize;
        matching.truncate(size as usize);
        let next = matching.last().filter(|_| more).map(|(sequence, _)| sequence.to_string());
        let tasks = matching
            .iter()
            .map(|(_, task)| {
                let mut task = task.lock().view(Some(params.history_length.unwrap_or(0)));
                if !params.include_artifacts {
                    task.artifacts.clear();
                }
                task
            })
            .collect();
        Ok(Page { tasks, next, size, total })
    }

    pub fn create_push_config(
        &self,
        owner: usize,
        params: PushConfigParams,
        dialect: Dialect,
    ) -> Result<(TaskId, PushConfig), ErrorAnswer> {
        let task_id = params
            .task_id
            .ok_or_else(|| ErrorAnswer::new(ErrorKind::InvalidParams, "push config: taskId is missing"))?;
        let task = self.task(owner, &task_id)?;
        let registration = self.accept(params.config, dialect)?;
        let config = registration.config.clone();
        register(&mut task.lock(), registration);
        Ok((task_id, config))
    }

    pub fn push_configs(&self, owner: usize, task_id: &TaskId) -> Result<Vec<PushConfig>, ErrorAnswer> {
        let task = self.task(owner, task_id)?;
        let inner = task.lock();
        Ok(inner.registrations.iter().map(|registration| registration.config.clone()).collect())
    }

    /// One config of a task; without an id, its first.
    pub fn push_config(
        &self,
        owner: usize,
        task_id: &TaskId,
        config_id: Option<&str>,
    ) -> Result<PushConfig, ErrorAnswer> {
        self.push_configs(owner, task_id)?
            .into_iter()
            .find(|config| config_id.is_none() || config.id.as_deref() == config_id)
            .ok_or_else(|| ErrorAnswer::new(ErrorKind::TaskNotFound, "push config not found"))
    }

    /// Deleting what is not there is no error (1.0 §3.1.10).
    pub fn delete_push_config(
        &self,
        owner: usize,
        task_id: &TaskId,
        config_id: &str,
    ) -> Result<(), ErrorAnswer> {
        let task = self.task(owner, task_id)?;
        task.lock().registrations.retain(|known| known.config.id.as_deref() != Some(config_id));
        Ok(())
    }

    fn accept(&self, mut config: PushConfig, dialect: Dialect) -> Result<Registration, ErrorAnswer> {
        if config.id.is_none() {
            config.id = Some(uuid::Uuid::new_v4().to_string());
        }
        Registration::accept(config, dialect, &self.push)
    }

    fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed)
    }

    fn insert(&self, task: &Arc<LiveTask>) {
        let mut tasks = self.tasks.write().unwrap_or_else(PoisonError::into_inner);
        tasks.insert(task.id.clone(), Arc::clone(task));
        self.ages.lock().unwrap_or_else(PoisonError::into_inner).push_back(task.id.clone());
    }

    /// Forgets the oldest finished task where there are too many.
    fn make_room(&self) -> Result<(), ErrorAnswer> {
        let mut tasks = self.tasks.write().unwrap_or_else(PoisonError::into_inner);
        if tasks.len() < MAX_TASKS {
            return Ok(());
        }
        let mut ages = self.ages.lock().unwrap_or_else(PoisonError::into_inner);
        let finished = ages
            .iter()
            .position(|task_id| tasks.get(task_id).is_none_or(|task| task.lock().motion == Motion::Over));
        match finished.and_then(|place| ages.remove(place)) {
            Some(task_id) => {
                tasks.remove(&task_id);
                Ok(())
            }
            None => {
                let text = format!("{MAX_TASKS} tasks are running: no more are taken");
                Err(ErrorAnswer::new(ErrorKind::Internal, text))
            }
        }
    }

    /// One timer task runs a turn. It holds the agent only while it acts.
    fn run(self: &Arc<Self>, task: &Arc<LiveTask>, turn: u64) {
        let (world, runs) = (Arc::downgrade(self), Arc::clone(task));
        let runner = self.runtime.spawn(async move {
            loop {
                let Some(world) = world.upgrade() else { return };
                let next = world.step(&runs, turn);
                drop(world);
                match next {
                    Next::Wait(duration) => tokio::time::sleep(duration).await,
                    Next::Go => tokio::task::yield_now().await,
                    Next::Stop => return,
                }
            }
        });
        task.lock().set_runner(turn, runner.abort_handle());
    }

    fn step(&self, task: &Arc<LiveTask>, turn: u64) -> Next {
        let (next, urgency) = task.lock().step(turn, self.next_sequence());
        if let Some(urgency) = urgency {
            task.ring();
            self.save(task, urgency);
        }
        next
    }

    fn save(&self, task: &Arc<LiveTask>, urgency: Urgency) {
        if let Some(journal) = &self.journal {
            journal.note(task, urgency);
        }
    }

    /// All tasks as the state file keeps them, oldest first.
    pub fn keep(&self) -> Vec<Kept> {
        let tasks = self.tasks.read().unwrap_or_else(PoisonError::into_inner);
        let ages = self.ages.lock().unwrap_or_else(PoisonError::into_inner);
        ages.iter().filter_map(|task_id| tasks.get(task_id)).map(|task| Kept::of(task)).collect()
    }

    /// Everything stops where it is; streams break.
    pub fn stop(&self) {
        for task in self.tasks.read().unwrap_or_else(PoisonError::into_inner).values() {
            task.lock().stop();
        }
        self.push.stop();
    }
}

/// A config of the same id is replaced.
fn register(inner: &mut Inner, registration: Registration) {
    inner.registrations.retain(|known| known.config.id != registration.config.id);
    inner.registrations.push(registration);
}

/// The refusal of a message to, or a subscription of, a task that is over (1.0 §3.1.1, §3.1.6).
pub fn terminal(task: &Task) -> ErrorAnswer {
    let text = format!("task {} is in terminal state: {}", task.id, task.status.state.word());
    ErrorAnswer::new(ErrorKind::UnsupportedOperation, text).with("taskId", task.id.as_str())
}
