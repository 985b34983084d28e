//! Keeps every followed task attached: one small worker a task, driven by its follow machine.
//!
//! What to do is decided in [`taskbell_core::follow`]; here it is done: read, subscribe, listen, note gaps.
//! Which tasks are followed is a column of their rows, so a restart takes up exactly where it was.

mod storing;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use taskbell_core::fault::FaultKind;
use taskbell_core::follow::{
    Action, CloseReason, Ending, FollowMachine, FrameKind, FrameNote, Mode, ReadFailure, ReadNote, Reattach,
};
use taskbell_core::ids::TaskId;
use taskbell_core::oddity::Oddity;
use taskbell_core::stream::{FrameContent, FrameReader};
use taskbell_core::task::StreamEvent;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::agent_client::{CallError, EndOfStream, Frame, StreamItem, Subscription};
use crate::agents::Agent;
use crate::link::LinkState;
use crate::parts::Parts;
use crate::reads::{self, ReadError, read_task};
use crate::registrations::is_local;
use crate::store::task_records::Applied;
use crate::store::tasks::{self, Channel, FollowMode, TaskRow, Verdict};
use crate::store::{StoreError, TaskKey, agents as agent_rows, changes, registration_work};
use storing::{Run, Storing, Written};

/// Frames taken together where they arrived together: one command in the store.
const FRAMES_AT_ONCE: usize = 64;
/// Every so often the rows are looked at even if no bell rang.
const LOOK: Duration = Duration::from_secs(30);
/// Tasks of one agent that come back together are spread over as many milliseconds, and no more than this.
/// How many are read and opened at once is bounded besides.
const SPREAD_MAX: Duration = Duration::from_millis(500);

/// Starts and stops the workers as the rows say.
pub struct Follower {
    parts: Parts,
    workers: HashMap<TaskKey, JoinHandle<()>>,
    started_ms: i64,
}

impl Follower {
    pub fn new(parts: Parts) -> Self {
        let started_ms = parts.now_ms();
        Self { parts, workers: HashMap::new(), started_ms }
    }

    /// Runs for ever.
    pub async fn run(mut self) {
        loop {
            if let Err(error) = self.run_once().await {
                tracing::warn!(%error, "failed to look up which tasks are followed");
            }
            tokio::select! {
                () = self.parts.bells().following.notified() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// One look at the rows.
    pub async fn run_once(&mut self) -> Result<(), StoreError> {
        let rows = self.parts.store().read(tasks::followed).await?;
        self.workers.retain(|_, worker| !worker.is_finished());
        let wanted: std::collections::HashSet<TaskKey> = rows.iter().map(|row| row.key).collect();
        self.workers.retain(|key, worker| {
            let keep = wanted.contains(key);
            if !keep {
                worker.abort();
                self.parts.bells().take_down(*key);
            }
            keep
        });
        for row in rows {
            let key = row.key;
            if self.workers.contains_key(&key) {
                continue;
            }
            let Some(agent) = self.parts.agents().get(row.agent_key) else { continue };
            let bell = self.parts.bells().hang(key);
            let worker = Worker::new(self.parts.clone(), agent, row, self.started_ms);
            self.workers.insert(key, tokio::spawn(worker.run(bell)));
            self.parts.bells().registrations.notify_one();
        }
        Ok(())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        for worker in self.workers.values() {
            worker.abort();
        }
    }
}

type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Follows one task.
struct Worker {
    parts: Parts,
    agent: Arc<Agent>,
    key: TaskKey,
    task_id: TaskId,
    machine: FollowMachine,
    reattach: Reattach,
    stream: Option<Stream>,
    reading: Option<Pending<Result<Applied, ReadError>>>,
    opening: Option<Pending<Result<Subscription, CallError>>>,
    storing: Storing,
    /// Why the stream is over, as long as what it brought is not stored.
    over: Option<Over>,
    /// Since when nobody listens, and why.
    gap: Option<(i64, &'static str)>,
    /// What the row said when it was last looked at.
    credential_version: i64,
    replied_at_ms: Option<i64>,
    stored_mode: (FollowMode, u32),
    trouble: Option<&'static str>,
    last_heard_ms: i64,
}

struct Stream {
    subscription: Subscription,
    reader: FrameReader,
}

/// How a stream came to its end.
enum Over {
    End(EndOfStream),
    Refused(taskbell_core::fault::RemoteError),
}

/// What a worker waits for.
enum Event {
    Stored(Written),
    Read(Result<Applied, ReadError>),
    Opened(Result<Subscription, CallError>),
    Item(StreamItem),
    Rung,
    Link,
    Woken,
    Timer,
}

impl Worker {
    fn new(parts: Parts, agent: Arc<Agent>, row: TaskRow, engine_started_ms: i64) -> Self {
        let now = Instant::now();
        let reattach = agent.reattach();
        let machine = FollowMachine::new(parts.times(), reattach, row.state, now);
        // A task that an earlier run of the engine followed was not listened to since.
        let gap = (row.created_at_ms < engine_started_ms)
            .then(|| (row.confirmed_at_ms.unwrap_or(row.created_at_ms), "not running"));
        Self {
            last_heard_ms: parts.now_ms(),
            parts,
            agent,
            key: row.key,
            task_id: row.task_id,
            machine,
            reattach,
            stream: None,
            reading: None,
            opening: None,
            storing: Storing::default(),
            over: None,
            gap,
            credential_version: row.credential_version,
            replied_at_ms: row.replied_at_ms,
            stored_mode: (row.mode, row.attempt),
            trouble: None,
        }
    }

    async fn run(mut self, bell: Arc<Notify>) {
        let mut links = self.agent.link.changes();
        let mut wakes = self.parts.wakes();
        if self.agent.link.state() == LinkState::Down {
            self.machine.handle_link_down(Instant::now());
        }
        self.take_handed();
        let key = self.key;
        match self.parts.store().read(move |connection| registration_work::is_armed(connection, key)).await {
            Ok(is_armed) => self.note_push(is_armed),
            Err(error) => {
                tracing::debug!(task = %self.task_id, %error, "a task's callbacks were not looked up")
            }
        }
        loop {
            while let Some(action) = self.machine.poll_action(Instant::now()) {
                self.act(action);
            }
            if self.storing.is_idle()
                && let Some(over) = self.over.take()
            {
                self.handle_over(over).await;
                continue;
            }
            self.note_reattach().await;
            if let Some(ending) = self.machine.ending() {
                self.finish(ending).await;
                return;
            }
            self.store_mode().await;
            match self.next_event(&bell, &mut links, &mut wakes).await {
                Event::Stored(written) => self.handle_stored(written).await,
                Event::Read(result) => self.handle_read(result).await,
                Event::Opened(result) => self.handle_opened(result).await,
                Event::Item(item) => self.handle_item(item).await,
                Event::Rung => self.handle_rung().await,
                Event::Link => self.handle_link().await,
                Event::Woken => self.machine.handle_wake(),
                Event::Timer => {}
            }
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Read => {
                let (parts, agent) = (self.parts.clone(), Arc::clone(&self.agent));
                let (key, task_id) = (self.key, self.task_id.clone());
                self.reading =
                    Some(Box::pin(
                        async move { read_task(&parts, &agent, key, &task_id, Channel::Poll).await },
                    ));
            }
            Action::Subscribe => {
                let (agent, task_id) = (Arc::clone(&self.agent), self.task_id.clone());
                self.opening = Some(Box::pin(async move {
                    let _place = agent.openings.acquire().await;
                    agent.client().subscribe(&task_id).await
                }));
            }
            Action::CloseStream(reason) => {
                self.opening = None;
                self.over = None;
                let was_open = self.stream.take().is_some();
                match reason {
                    CloseReason::Silent if was_open => self.open_gap("stream silent"),
                    CloseReason::Slept if was_open => self.open_gap("slept"),
                    CloseReason::Silent | CloseReason::Slept | CloseReason::Harmful | CloseReason::Over => {}
                }
            }
        }
    }

    async fn next_event(
        &mut self,
        bell: &Notify,
        links: &mut watch::Receiver<LinkState>,
        wakes: &mut watch::Receiver<u64>,
    ) -> Event {
        let timeout = self.machine.poll_timeout().map(tokio::time::Instant::from_std);
        let timer = async {
            match timeout {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let may_listen = self.over.is_none() && self.storing.has_room();
        tokio::select! {
            biased;
            written = self.storing.next() => Event::Stored(written),
            result = awaited(&mut self.reading) => {
                self.reading = None;
                Event::Read(result)
            }
            result = awaited(&mut self.opening) => {
                self.opening = None;
                Event::Opened(result)
            }
            () = bell.notified() => Event::Rung,
            Ok(()) = wakes.changed() => Event::Woken,
            Ok(()) = links.changed() => Event::Link,
            () = timer => Event::Timer,
            item = next_item(&mut self.stream), if may_listen => Event::Item(item),
        }
    }

    async fn handle_read(&mut self, result: Result<Applied, ReadError>) {
        let now = Instant::now();
        match result {
            Ok(applied) => {
                self.trouble = None;
                if self.stream.is_none() {
                    self.last_heard_ms = self.parts.now_ms();
                }
                self.note_credential().await;
                if applied.regressed && !applied.settled {
                    self.machine.handle_unsettled_read(now, jitter());
                } else {
                    let changed = applied.changed && !applied.stale || self.was_told_elsewhere().await;
                    let note = ReadNote { state: applied.state, changed };
                    self.machine.handle_read(note, now, jitter());
                }
                if matches!(self.machine.mode(), Mode::Poll | Mode::PushAndPoll) || applied.settled {
                    self.close_gap().await;
                }
            }
            Err(error) => {
                let failure = error.failure();
                if self.stream.is_none() {
                    self.set_trouble(error.code()).await;
                    self.open_gap(match failure {
                        ReadFailure::Unreachable => "agent not reachable",
                        _ => "agent not readable",
                    });
                }
                let identity = reads::identity(&self.agent, self.credential_version);
                self.machine.handle_read_failed(failure, identity, now, jitter());
            }
        }
    }

    /// A callback, or somebody who looked, told what the open stream has not: it may have died.
    async fn was_told_elsewhere(&mut self) -> bool {
        if self.stream.is_none() {
            return false;
        }
        let (key, since_ms) = (self.key, self.last_heard_ms);
        let told = self.parts.store().read(move |c| changes::told_elsewhere_since(c, key, since_ms)).await;
        told.unwrap_or_else(|error| {
            tracing::debug!(task = %self.task_id, %error, "what was told of a task could not be looked up");
            false
        })
    }

    /// A task that is shown to a new credential belongs to it.
    async fn note_credential(&mut self) {
        let (key, present) = (self.key, self.agent.now().row.credential_version);
        if present != self.credential_version {
            self.credential_version = present;
            self.post("credential version", move |context| {
                tasks::set_credential_version(context, key, present)
            })
            .await;
        }
    }

    async fn handle_opened(&mut self, result: Result<Subscription, CallError>) {
        reads::note_link(&self.agent, result.as_ref().err());
        let now = Instant::now();
        match result {
            Ok(subscription) => {
                let binding = self.agent.client().endpoint().binding;
                let reader = FrameReader::new(binding, subscription.request_id(), Some(self.task_id.clone()));
                self.stream = Some(Stream { subscription, reader });
                self.machine.handle_attached(now);
                self.close_gap().await;
            }
            Err(error) => {
                tracing::debug!(task = %self.task_id, %error, "subscribing was refused");
                match (reads::failure_of(&error), error.kind()) {
                    (ReadFailure::Unusable | ReadFailure::NotFound, Some(kind)) => {
                        self.machine.handle_subscribe_refused(self.refusal(kind), now, jitter());
                    }
                    (failure, _) => {
                        self.set_trouble(ReadError::Call(error).code()).await;
                        self.machine.handle_subscribe_failed(failure, now, jitter());
                    }
                }
            }
        }
    }

    /// 1.0 refuses the subscription to a finished task as an unsupported operation (§3.1.6). So only an
    /// agent that does not say it streams is believed to have no streams.
    fn refusal(&self, kind: FaultKind) -> FaultKind {
        match kind {
            FaultKind::UnsupportedOperation if self.agent.declares_streaming() => FaultKind::TaskTerminal,
            kind => kind,
        }
    }

    async fn handle_item(&mut self, item: StreamItem) {
        let now = Instant::now();
        self.last_heard_ms = self.parts.now_ms();
        match item {
            StreamItem::Bytes => self.machine.handle_bytes(now),
            StreamItem::Frame(frame) => {
                self.machine.handle_bytes(now);
                self.handle_frames(frame).await;
            }
            StreamItem::End(end) => self.handle_over(Over::End(end)).await,
        }
    }

    /// Takes what is there, tells it to those who listen at once, and stores it behind.
    async fn handle_frames(&mut self, first: Frame) {
        let mut batch = Batch::default();
        let mut over = None;
        let Some(stream) = &mut self.stream else { return };
        batch.read(&mut stream.reader, &first, &self.parts);
        while batch.refusal.is_none() && batch.events.len() < FRAMES_AT_ONCE {
            match stream.subscription.next().now_or_never() {
                Some(StreamItem::Frame(frame)) => batch.read(&mut stream.reader, &frame, &self.parts),
                Some(StreamItem::Bytes) => {}
                Some(StreamItem::End(reason)) => {
                    over = Some(Over::End(reason));
                    break;
                }
                None => break,
            }
        }
        let Batch { events, oddities, kind, wants_read, refusal } = batch;
        self.take_events(events, kind, wants_read);
        self.note_oddities(&oddities).await;
        if let Some(over) = refusal.map(Over::Refused).or(over) {
            self.handle_over(over).await;
        }
    }

    fn take_events(
        &mut self,
        mut events: Vec<(StreamEvent, taskbell_core::merge::Order)>,
        kind: FrameKind,
        wants_read: bool,
    ) {
        if events.is_empty() && !wants_read {
            return;
        }
        // A task in the middle of a stream is told by the writer, which knows what in it is new; and so is
        // what comes after something that the writer has yet to tell.
        let has_task = events.iter().any(|(event, _)| matches!(event, StreamEvent::Task(_)));
        let told = if has_task || self.storing.has_untold() {
            None
        } else {
            self.parts.hubs().tell(self.key, events.iter_mut().map(|(event, _)| event))
        };
        self.storing.put(&self.parts, Run { events, kind, wants_read, told });
        self.storing.go_on(&self.parts, self.key);
    }

    async fn handle_stored(&mut self, written: Written) {
        match written.result {
            Ok(applied) => {
                let wants_read = written.wants_read || applied.wants_read;
                let note = FrameNote { kind: written.kind, state: applied.state, wants_read };
                self.machine.handle_frame(note, Instant::now());
            }
            Err(error) => {
                // What could not be stored is read again from the agent.
                tracing::warn!(task = %self.task_id, %error, "frames of a stream were not stored");
                self.machine.handle_poked();
            }
        }
        self.storing.go_on(&self.parts, self.key);
    }

    /// The stream is over, and once what it brought is stored, that has consequences.
    async fn handle_over(&mut self, over: Over) {
        if !self.storing.is_idle() {
            self.over = Some(over);
            return;
        }
        match over {
            Over::End(end) => self.handle_end(end).await,
            Over::Refused(error) => {
                self.stream = None;
                self.open_gap("stream refused");
                let kind = self.refusal(error.kind());
                self.machine.handle_subscribe_refused(kind, Instant::now(), jitter());
            }
        }
    }

    /// A send's own stream, where one waits for this task. A task has one stream at most.
    fn take_handed(&mut self) {
        let Some(handed) = self.parts.handovers().take(self.key) else { return };
        if self.stream.is_some() {
            return;
        }
        self.opening = None;
        self.gap = None;
        self.last_heard_ms = self.parts.now_ms();
        self.stream = Some(Stream { subscription: handed.subscription, reader: handed.reader });
        self.machine.handle_handed(Instant::now());
        if let Some(first) = handed.first {
            self.take_events(vec![(first, self.parts.next_order())], FrameKind::Update, false);
        }
    }

    async fn handle_end(&mut self, end: EndOfStream) {
        self.stream = None;
        match end {
            EndOfStream::Limit(_) => self.note_oddities(&[Oddity::OverLimit]).await,
            EndOfStream::NotEvents => self.note_oddities(&[Oddity::NotEvents]).await,
            EndOfStream::Clean | EndOfStream::Incomplete | EndOfStream::Reset | EndOfStream::TimedOut => {}
        }
        // Most SDKs close the stream of a task that waits: nothing is said until somebody answers.
        let state = self.machine.state();
        let expected = end == EndOfStream::Clean && (state.is_interrupted() || state.is_terminal());
        if !expected {
            self.open_gap(match end {
                EndOfStream::Clean => "stream ended",
                EndOfStream::Incomplete => "stream cut within an event",
                EndOfStream::NotEvents => "no event stream",
                EndOfStream::Reset => "connection broke",
                EndOfStream::TimedOut => "connection silent",
                EndOfStream::Limit(_) => "event over the limit",
            });
        }
        if let EndOfStream::Limit(_) = end {
            self.machine.handle_over_limit(Instant::now());
        } else {
            self.machine.handle_cut(Instant::now(), jitter());
        }
    }

    async fn handle_rung(&mut self) {
        self.take_handed();
        let key = self.key;
        let looked = self.parts.store().read(move |connection| {
            Ok((tasks::get(connection, key)?, registration_work::is_armed(connection, key)?))
        });
        let (row, is_armed) = match looked.await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(task = %self.task_id, %error, "a rung task could not be looked up");
                return;
            }
        };
        self.machine.handle_rung(row.state, row.settled);
        self.note_push(is_armed);
        let present = self.agent.now().row.credential_version;
        if row.replied_at_ms != self.replied_at_ms
            || present != self.credential_version
            || row.trouble.is_some()
            // Somebody else read it: there is no reason to wait any longer.
            || self.trouble.is_some()
        {
            self.replied_at_ms = row.replied_at_ms;
            self.machine.handle_poked();
            if row.trouble.is_none() {
                self.trouble = None;
            }
        }
    }

    /// Callbacks about the task may be expected, or not any more.
    fn note_push(&mut self, is_armed: bool) {
        let is_well = self.parts.reach().is_well(is_local(&self.agent));
        self.machine.handle_push(is_armed && is_well, Instant::now());
    }

    async fn handle_link(&mut self) {
        match self.agent.link.state() {
            LinkState::Up => {
                let tasks = u64::try_from(self.agent.link.listeners()).unwrap_or(u64::MAX);
                let after = SPREAD_MAX.min(Duration::from_millis(tasks)).mul_f64(jitter() * jitter());
                self.machine.handle_link_up(after, Instant::now());
            }
            // Somebody else found out: no need to try as well. A stream that lives is left alone.
            LinkState::Down if self.stream.is_none() => {
                self.reading = None;
                self.opening = None;
                self.machine.handle_link_down(Instant::now());
                self.set_trouble("agent_unreachable").await;
            }
            LinkState::Down | LinkState::Unknown => {}
        }
    }

    /// What the machine learnt of the agent's streams is noted on the agent.
    async fn note_reattach(&mut self) {
        let learnt = self.machine.reattach();
        if learnt == self.reattach {
            return;
        }
        self.reattach = learnt;
        let client = self.agent.client();
        match learnt {
            Reattach::Works => client.note_quirk(|quirks| quirks.reattach_proven = true),
            Reattach::Harmful => {
                client.note_quirk(|quirks| quirks.reattach_without_task = true);
                self.note_oddities(&[Oddity::ReattachWithoutTask]).await;
            }
            Reattach::Never => client.note_quirk(|quirks| quirks.streaming_refused = true),
            Reattach::Suspect => {}
        }
        if let Err(error) = self.parts.agents().store_quirks(&self.agent).await {
            tracing::warn!(%error, "what was learnt of an agent was not stored");
        }
    }

    async fn store_mode(&mut self) {
        let mode = match self.machine.mode() {
            Mode::Stream => FollowMode::Stream,
            Mode::PushAndPoll => FollowMode::PushAndPoll,
            Mode::Poll => FollowMode::Poll,
            Mode::Reconnecting => FollowMode::Reconnecting,
            Mode::Ended => FollowMode::Ended,
        };
        let present = (mode, self.machine.attempt());
        if present == self.stored_mode {
            return;
        }
        self.stored_mode = present;
        let (key, attempt) = (self.key, present.1);
        self.post("following mode", move |context| tasks::set_mode(context, key, mode, attempt)).await;
    }

    async fn set_trouble(&mut self, code: &'static str) {
        if self.trouble != Some(code) {
            self.trouble = Some(code);
            let key = self.key;
            self.post("trouble", move |context| tasks::set_trouble(context, key, Some(code))).await;
        }
    }

    fn open_gap(&mut self, reason: &'static str) {
        self.gap.get_or_insert((self.last_heard_ms, reason));
    }

    async fn close_gap(&mut self) {
        if let Some((from_ms, reason)) = self.gap.take() {
            let (key, to_ms) = (self.key, self.parts.now_ms());
            self.post("gap", move |context| tasks::record_gap(context, key, from_ms, to_ms, reason)).await;
        }
    }

    async fn note_oddities(&mut self, oddities: &[Oddity]) {
        for oddity in oddities {
            let (agent, kind, detail) = (self.agent.key, oddity.kind(), oddity.detail());
            self.post("oddity", move |context| {
                agent_rows::record_oddity(context, agent, kind, &detail).map(|_| ())
            })
            .await;
        }
    }

    async fn finish(mut self, ending: Ending) {
        self.stream = None;
        self.close_gap().await;
        let verdict = match ending {
            Ending::Settled | Ending::Unsettled => None,
            Ending::Lost => Some(Verdict::Lost),
            Ending::WrongIdentity => Some(Verdict::WrongIdentity),
        };
        let key = self.key;
        self.parts.bells().take_down(key);
        let written =
            self.parts.store().write(move |context| tasks::end_following(context, key, verdict)).await;
        if let Err(error) = written {
            // The row still says that it is followed: the next look starts again with a read.
            tracing::warn!(task = %self.task_id, %error, "the end of a task was not stored");
        }
        self.parts.bells().registrations.notify_one();
    }

    /// For what a power cut may take: it is read again from the agent.
    async fn post<F>(&mut self, what: &'static str, command: F)
    where
        F: FnOnce(&mut crate::store::WriteContext<'_>) -> Result<(), StoreError> + Send + 'static,
    {
        if let Err(error) = self.parts.store().post(what, command).await {
            tracing::warn!(what, %error, "the store takes nothing more");
        }
    }
}

/// What a run of frames says.
struct Batch {
    events: Vec<(StreamEvent, taskbell_core::merge::Order)>,
    oddities: Vec<Oddity>,
    kind: FrameKind,
    wants_read: bool,
    refusal: Option<taskbell_core::fault::RemoteError>,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            oddities: Vec::new(),
            kind: FrameKind::Update,
            wants_read: false,
            refusal: None,
        }
    }
}

impl Batch {
    fn read(&mut self, reader: &mut FrameReader, frame: &Frame, parts: &Parts) {
        let read = reader.read(&frame.event, &frame.data, frame.lossy);
        self.oddities.extend(read.oddities);
        self.wants_read |= read.wants_read;
        match read.content {
            FrameContent::Event(event) => {
                // The first frame tells whether the agent begins with the task.
                if self.events.is_empty() && matches!(*event, StreamEvent::Task(_)) {
                    self.kind = FrameKind::Task;
                }
                self.events.push((*event, parts.next_order()));
            }
            FrameContent::Refused(error) => self.refusal = Some(error),
            FrameContent::Nothing => {}
        }
    }
}

/// The result of what is under way; for ever where nothing is.
fn awaited<T>(pending: &mut Option<Pending<T>>) -> impl Future<Output = T> {
    std::future::poll_fn(move |context| match pending {
        Some(pending) => pending.as_mut().poll(context),
        None => std::task::Poll::Pending,
    })
}

async fn next_item(stream: &mut Option<Stream>) -> StreamItem {
    match stream {
        Some(stream) => stream.subscription.next().await,
        None => std::future::pending().await,
    }
}

fn jitter() -> f64 {
    rand::random()
}
