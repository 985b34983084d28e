//! When to read, attach, wait and give up on one task. Pure: time and jitter are arguments.
//!
//! ```text
//!            read ok                 stream open
//! Reading ───────────> Attaching ───────────────> Live ──┐ silent 45 s: read, and
//!    ^  │                  │ refused                │    │ unchanged → keep, window doubles
//!    │  │ no stream here   v                        │    │ changed   → reattach
//!    │  └──────────────> Polling <──────────────────┘ <──┘
//!    │   next read, or     │  (any end without a terminal state is a cut)
//!    │   time to reattach  │
//!    └─────────────────────┘
//! any ── cannot be reached ──> LinkDown ── the agent answers again ──> Reading
//! any ── 401, no fresh token ──> SignIn ── new credential, or now and then ──> Reading
//! any ── a terminal frame ──> Settling ── GetTask agrees ──> Ended
//! any ── GetTask says twice that there is no such task ──> Ended(Lost | WrongIdentity)
//! ```
//!
//! Any error on subscribe means "read the task", never "failed": servers refuse a subscription to a
//! finished task with five different codes, and to a waiting one with "not found".

use std::time::{Duration, Instant};

use crate::fault::FaultKind;
use crate::state::TaskState;

/// The pace of everything. Defaults are the product's; tests shorten them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowTimes {
    /// Without a byte for this long a stream is doubted and the task read. Doubles while the reads find
    /// nothing new.
    pub silence: Duration,
    pub silence_max: Duration,
    /// A stream that has not begun with a Task by then is followed by a read.
    pub first_frame: Duration,
    /// The first and longest wait before reattaching.
    pub reattach_min: Duration,
    pub reattach_max: Duration,
    /// A stream that lived this long was a good one: the next wait is short again.
    pub stable: Duration,
    /// A read now and then, whatever the channel: nothing is believed to be alive by itself.
    pub slow_read: Duration,
    pub poll_min: Duration,
    pub poll_max: Duration,
    /// Waits between reads where callbacks are expected: they tell most things sooner.
    pub push_poll_min: Duration,
    pub push_poll_max: Duration,
    /// Longest wait between reads of a task that waits for somebody.
    pub waiting_poll_max: Duration,
    /// How often a task that needs a sign-in is tried again by itself.
    pub sign_in_retry: Duration,
    /// How long a task is left alone while its agent cannot be reached, should nobody say it is back.
    pub link_down_max: Duration,
}

impl Default for FollowTimes {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(45),
            silence_max: Duration::from_secs(300),
            first_frame: Duration::from_secs(2),
            reattach_min: Duration::from_millis(500),
            reattach_max: Duration::from_secs(60),
            stable: Duration::from_secs(10),
            slow_read: Duration::from_secs(300),
            poll_min: Duration::from_secs(1),
            poll_max: Duration::from_secs(30),
            push_poll_min: Duration::from_secs(10),
            push_poll_max: Duration::from_secs(300),
            waiting_poll_max: Duration::from_secs(60),
            sign_in_retry: Duration::from_secs(300),
            link_down_max: Duration::from_secs(60),
        }
    }
}

/// What is known of the agent's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reattach {
    /// Subscribing is worth trying.
    Works,
    /// Not yet tried in 0.3: the Python SDK's subscribers damage the task they listen to, and are told
    /// by a stream that does not begin with a Task.
    Suspect,
    /// The agent harms its tasks when asked for a stream: poll.
    Harmful,
    /// The agent has no streams: poll.
    Never,
}

/// What to do now. The worker does it and reports with a `handle_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Read,
    Subscribe,
    CloseStream(CloseReason),
}

/// Why a stream is closed from our side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// It kept silent about something that a read found.
    Silent,
    /// The machine slept.
    Slept,
    /// Listening harms the agent's tasks.
    Harmful,
    /// There is nothing left to hear.
    Over,
}

/// Why there is nothing more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Terminal, as GetTask said.
    Settled,
    /// Terminal by its stream, and GetTask does not come round to it.
    Unsettled,
    /// The agent says twice that it has no such task.
    Lost,
    /// As lost or forbidden, after the agent's credential was changed.
    WrongIdentity,
}

/// How a task is heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Stream,
    /// Callbacks are expected, and it is read now and then.
    PushAndPoll,
    Poll,
    Reconnecting,
    Ended,
}

/// What a read found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadNote {
    pub state: TaskState,
    /// The read brought something that no frame had.
    pub changed: bool,
}

/// Why a read brought nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFailure {
    NotFound,
    Forbidden,
    Unauthorized,
    /// No connection at all.
    Unreachable,
    /// 429 or 503 with the time to wait.
    Later(Option<Duration>),
    /// An answer that is none: HTML, broken JSON, 5xx.
    Unusable,
}

/// Whether the agent's credential is another than the one the task was last seen with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    Same,
    Changed,
}

#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Reading,
    Attaching {
        asked: bool,
    },
    Live {
        since: Instant,
        last_byte: Instant,
        window: Duration,
        task_by: Option<Instant>,
        /// A read found news that this stream has not told: unless it does by then, it is dead.
        told_by: Option<Told>,
    },
    Polling {
        pace: Duration,
        next_read: Instant,
        attach_at: Option<Instant>,
    },
    LinkDown {
        until: Instant,
    },
    SignIn {
        until: Instant,
    },
    Settling {
        next_read: Instant,
        tries: u32,
    },
    Ended(Ending),
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Told {
    by: Instant,
    /// For the wait before the next stream.
    jitter: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadSlot {
    Idle,
    Wanted,
    /// Under way.
    Asked,
}

/// Follows one task.
#[derive(Debug, Clone)]
pub struct FollowMachine {
    times: FollowTimes,
    phase: Phase,
    read: ReadSlot,
    /// The read under way was asked because the stream is silent.
    doubting: bool,
    close_wanted: Option<CloseReason>,
    reattach: Reattach,
    state: TaskState,
    /// Cuts and refusals in a row, for the wait before the next attempt.
    failures: u32,
    not_found: u32,
    next_slow_read: Instant,
    /// Subscribing in the present waiting state was refused or ended at once: poll until it moves.
    deaf_while: Option<TaskState>,
    /// This task's stream broke our limits.
    poll_only: bool,
    /// The open stream is a send's own: what it begins with, and that it ends at a question, tells nothing of
    /// subscriptions.
    stream_of_send: bool,
    /// Callbacks about the task are expected, and arrive as far as is known.
    push_armed: bool,
}

const NOT_FOUND_AGAIN: Duration = Duration::from_secs(1);
const SETTLE_TRIES: u32 = 5;

impl FollowMachine {
    /// Starts with a read.
    pub fn new(times: FollowTimes, reattach: Reattach, state: TaskState, now: Instant) -> Self {
        let next_slow_read = now + times.slow_read;
        Self {
            times,
            phase: Phase::Reading,
            read: ReadSlot::Wanted,
            doubting: false,
            close_wanted: None,
            reattach,
            state,
            failures: 0,
            not_found: 0,
            next_slow_read,
            deaf_while: None,
            poll_only: false,
            stream_of_send: false,
            push_armed: false,
        }
    }

    /// What to do now, one thing at a time; None: wait for an event or [`Self::poll_timeout`].
    pub fn poll_action(&mut self, now: Instant) -> Option<Action> {
        self.advance(now);
        if let Some(reason) = self.close_wanted.take() {
            return Some(Action::CloseStream(reason));
        }
        if self.read == ReadSlot::Wanted && !matches!(self.phase, Phase::Ended(_)) {
            self.read = ReadSlot::Asked;
            return Some(Action::Read);
        }
        if let Phase::Attaching { asked } = &mut self.phase
            && !*asked
        {
            *asked = true;
            return Some(Action::Subscribe);
        }
        None
    }

    /// When [`Self::poll_action`] has to be asked again though nothing happened.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Reading | Phase::Attaching { .. } | Phase::Ended(_) => None,
            Phase::Live { last_byte, window, task_by, told_by, .. } => {
                let may_doubt = self.read == ReadSlot::Idle && told_by.is_none();
                let silent_at = may_doubt.then(|| *last_byte + *window);
                let told_by = told_by.map(|told| told.by);
                [silent_at, *task_by, told_by, Some(self.next_slow_read)].into_iter().flatten().min()
            }
            Phase::Polling { next_read, attach_at, .. } => {
                Some(attach_at.map_or(*next_read, |at| at.min(*next_read)))
            }
            Phase::LinkDown { until } | Phase::SignIn { until } => Some(*until),
            Phase::Settling { next_read, .. } => Some(*next_read),
        }
    }

    pub fn mode(&self) -> Mode {
        match &self.phase {
            Phase::Live { .. } | Phase::Settling { tries: 0, .. } => Mode::Stream,
            Phase::Polling { attach_at: None, .. } => self.without_stream(),
            Phase::Reading if !self.may_attach() => self.without_stream(),
            Phase::Reading
            | Phase::Attaching { .. }
            | Phase::Polling { .. }
            | Phase::LinkDown { .. }
            | Phase::SignIn { .. }
            | Phase::Settling { .. } => Mode::Reconnecting,
            Phase::Ended(_) => Mode::Ended,
        }
    }

    fn without_stream(&self) -> Mode {
        if self.push_armed { Mode::PushAndPoll } else { Mode::Poll }
    }

    pub fn ending(&self) -> Option<Ending> {
        match self.phase {
            Phase::Ended(ending) => Some(ending),
            _ => None,
        }
    }

    pub fn needs_sign_in(&self) -> bool {
        matches!(self.phase, Phase::SignIn { .. })
    }

    /// The task's state as far as this machine was told.
    pub fn state(&self) -> TaskState {
        self.state
    }

    /// Attempts in a row that did not last.
    pub fn attempt(&self) -> u32 {
        self.failures
    }

    fn advance(&mut self, now: Instant) {
        match &mut self.phase {
            Phase::Live { told_by: Some(told), .. } if now >= told.by => {
                let jitter = told.jitter;
                self.close_wanted = Some(CloseReason::Silent);
                self.reattach_later(now, jitter);
            }
            Phase::Live { last_byte, window, task_by, told_by, .. } => {
                if task_by.is_some_and(|by| now >= by) {
                    *task_by = None;
                    self.read = self.read.want();
                }
                if now >= *last_byte + *window && self.read == ReadSlot::Idle && told_by.is_none() {
                    self.doubting = true;
                    self.read = ReadSlot::Wanted;
                }
                if now >= self.next_slow_read {
                    self.next_slow_read = now + self.times.slow_read;
                    self.read = self.read.want();
                }
            }
            Phase::Polling { next_read, attach_at, pace } => {
                if attach_at.is_some_and(|at| now >= at) {
                    self.start_reading();
                } else if now >= *next_read {
                    *next_read = now + *pace;
                    self.read = self.read.want();
                }
            }
            Phase::LinkDown { until } | Phase::SignIn { until } if now >= *until => self.start_reading(),
            Phase::Settling { next_read, .. } if now >= *next_read => {
                *next_read = now + self.times.poll_max;
                self.read = self.read.want();
            }
            Phase::Reading
            | Phase::Attaching { .. }
            | Phase::LinkDown { .. }
            | Phase::SignIn { .. }
            | Phase::Settling { .. }
            | Phase::Ended(_) => {}
        }
    }

    fn start_reading(&mut self) {
        self.phase = Phase::Reading;
        self.read = self.read.want();
    }

    /// GetTask answered. `note.state` is the state after merging.
    pub fn handle_read(&mut self, note: ReadNote, now: Instant, jitter: f64) {
        self.read = ReadSlot::Idle;
        self.not_found = 0;
        self.next_slow_read = now + self.times.slow_read;
        let doubting = std::mem::take(&mut self.doubting);
        self.see_state(note.state);
        if note.state.is_terminal() {
            self.end(Ending::Settled);
            if doubting && note.changed && self.close_wanted.is_some() {
                self.close_wanted = Some(CloseReason::Silent);
            }
            return;
        }
        let (shortest, longest) = (self.pace_min(), self.pace_max());
        match &mut self.phase {
            Phase::Live { window, last_byte, told_by, .. } if doubting => {
                if note.changed {
                    // Unless its news is on the way at this very moment, it kept silent: it is dead.
                    *told_by = Some(Told { by: now + self.times.first_frame / 2, jitter });
                } else {
                    *window = (*window * 2).min(self.times.silence_max);
                    *last_byte = now;
                }
            }
            Phase::Reading => self.attach_or_poll(now),
            Phase::Polling { pace, next_read, .. } => {
                *pace = if note.changed { shortest } else { (*pace * 3 / 2).clamp(shortest, longest) };
                *next_read = now + spread(*pace, jitter);
            }
            Phase::LinkDown { .. } | Phase::SignIn { .. } => {
                // A read made by somebody else got through.
                self.start_reading();
            }
            Phase::Live { .. } | Phase::Attaching { .. } | Phase::Settling { .. } | Phase::Ended(_) => {}
        }
    }

    /// GetTask says a non-terminal state of a task whose stream told its end; before a restart, maybe, or before the
    /// agent could not be reached for a while.
    pub fn handle_unsettled_read(&mut self, now: Instant, jitter: f64) {
        self.read = ReadSlot::Idle;
        self.doubting = false;
        let tries = match self.phase {
            Phase::Ended(_) => return,
            Phase::Settling { tries, .. } => tries + 1,
            Phase::Reading
            | Phase::Attaching { .. }
            | Phase::Live { .. }
            | Phase::Polling { .. }
            | Phase::LinkDown { .. }
            | Phase::SignIn { .. } => 1,
        };
        if tries >= SETTLE_TRIES {
            self.end(Ending::Unsettled);
        } else {
            self.close_open_stream();
            let wait = spread(self.times.poll_min * 2u32.pow(tries), jitter);
            self.phase = Phase::Settling { next_read: now + wait, tries };
        }
    }

    pub fn handle_read_failed(
        &mut self,
        failure: ReadFailure,
        identity: Identity,
        now: Instant,
        jitter: f64,
    ) {
        self.read = ReadSlot::Idle;
        self.doubting = false;
        if matches!(self.phase, Phase::Ended(_)) {
            return;
        }
        if failure != ReadFailure::NotFound {
            self.not_found = 0;
        }
        // A stream that lives is better evidence than a read that fails: it is kept, and the read tried
        // again after a while.
        if let Phase::Live { last_byte, .. } = &mut self.phase {
            *last_byte = now;
            self.next_slow_read = now + self.times.poll_max;
            return;
        }
        match failure {
            ReadFailure::NotFound => {
                self.not_found += 1;
                if self.not_found >= 2 {
                    self.end(match identity {
                        Identity::Same => Ending::Lost,
                        Identity::Changed => Ending::WrongIdentity,
                    });
                } else {
                    self.wait_and_read(NOT_FOUND_AGAIN, now);
                }
            }
            ReadFailure::Forbidden if identity == Identity::Changed => self.end(Ending::WrongIdentity),
            ReadFailure::Unauthorized => {
                self.phase = Phase::SignIn { until: now + spread(self.times.sign_in_retry, jitter) };
            }
            ReadFailure::Unreachable => self.handle_link_down(now),
            ReadFailure::Later(after) => {
                let wait = self.next_wait(jitter).max(after.unwrap_or_default());
                self.wait_and_read(wait, now);
            }
            // With the credential that was good before, a 403 is as often a gateway's whim as a verdict.
            ReadFailure::Unusable | ReadFailure::Forbidden => {
                let wait = self.next_wait(jitter);
                self.wait_and_read(wait, now);
            }
        }
    }

    /// A send's stream is open: the task was its first frame, or is what that frame was about.
    pub fn handle_handed(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Ended(_)) {
            return;
        }
        self.handle_attached(now);
        self.stream_of_send = true;
        if let Phase::Live { task_by, .. } = &mut self.phase {
            *task_by = None;
        }
        if self.read == ReadSlot::Wanted {
            self.read = ReadSlot::Idle;
        }
    }

    /// The subscription is open.
    pub fn handle_attached(&mut self, now: Instant) {
        self.stream_of_send = false;
        self.phase = Phase::Live {
            since: now,
            last_byte: now,
            window: self.times.silence,
            task_by: Some(now + self.times.first_frame),
            told_by: None,
        };
    }

    /// Bytes arrived, comments included.
    pub fn handle_bytes(&mut self, now: Instant) {
        if let Phase::Live { last_byte, told_by, .. } = &mut self.phase {
            *last_byte = now;
            *told_by = None;
        }
    }

    /// A frame was applied; `state` is the state after merging.
    pub fn handle_frame(&mut self, frame: FrameNote, now: Instant) {
        if let Phase::Live { task_by, .. } = &mut self.phase
            && !self.stream_of_send
        {
            match (frame.kind, self.reattach) {
                (FrameKind::Task, _) => {
                    *task_by = None;
                    if self.reattach == Reattach::Suspect {
                        self.reattach = Reattach::Works;
                    }
                }
                (FrameKind::Update, Reattach::Suspect) => self.stop_listening(now),
                (FrameKind::Update, Reattach::Works | Reattach::Harmful | Reattach::Never) => {}
            }
        }
        self.see_state(frame.state);
        if frame.wants_read && !matches!(self.phase, Phase::Ended(_)) {
            self.read = self.read.want();
        }
        if frame.state.is_terminal() && matches!(self.phase, Phase::Live { .. }) {
            self.close_wanted = Some(CloseReason::Over);
            self.phase = Phase::Settling { next_read: now, tries: 0 };
        }
    }

    /// The agent begins reattached streams without a Task: never subscribe there again.
    fn stop_listening(&mut self, now: Instant) {
        self.reattach = Reattach::Harmful;
        self.close_wanted = Some(CloseReason::Harmful);
        self.poll_from(now);
        self.read = self.read.want();
    }

    /// What has been learnt of the agent's streams: the worker notes it on the agent when it changes.
    pub fn reattach(&self) -> Reattach {
        self.reattach
    }

    /// The stream ended without a terminal state.
    pub fn handle_cut(&mut self, now: Instant, jitter: f64) {
        if let Phase::Live { since, .. } = &self.phase {
            let lived = now.saturating_duration_since(*since);
            if lived >= self.times.stable {
                self.failures = 0;
            } else if self.state.is_interrupted() && !self.stream_of_send {
                // Most SDKs close the stream of a task that waits: asking again brings nothing.
                self.deaf_while = Some(self.state);
            }
            self.reattach_later(now, jitter);
        }
    }

    /// A line or event was over the limit: this task's stream is not listened to again.
    pub fn handle_over_limit(&mut self, now: Instant) {
        if !matches!(self.phase, Phase::Ended(_)) {
            self.poll_only = true;
            self.poll_from(now);
            self.read = self.read.want();
        }
    }

    /// Subscribing was answered with an error.
    pub fn handle_subscribe_refused(&mut self, kind: FaultKind, now: Instant, jitter: f64) {
        if !matches!(self.phase, Phase::Attaching { .. } | Phase::Live { .. }) {
            return;
        }
        match kind {
            FaultKind::UnsupportedOperation | FaultKind::MethodNotFound | FaultKind::PushNotSupported => {
                self.reattach = Reattach::Never;
                self.poll_from(now);
            }
            _ => {
                if self.state.is_interrupted() {
                    self.deaf_while = Some(self.state);
                }
                self.reattach_later(now, jitter);
            }
        }
    }

    /// Subscribing did not get through at all.
    pub fn handle_subscribe_failed(&mut self, failure: ReadFailure, now: Instant, jitter: f64) {
        if !matches!(self.phase, Phase::Attaching { .. } | Phase::Live { .. }) {
            return;
        }
        match failure {
            ReadFailure::Unreachable => self.handle_link_down(now),
            ReadFailure::Unauthorized => {
                self.phase = Phase::SignIn { until: now + spread(self.times.sign_in_retry, jitter) };
            }
            ReadFailure::Later(after) => {
                self.reattach_later(now, jitter);
                if let (Some(after), Phase::Polling { next_read, attach_at, .. }) = (after, &mut self.phase) {
                    self.read = ReadSlot::Idle;
                    *next_read = now + after;
                    *attach_at = attach_at.map(|at| at.max(now + after));
                }
            }
            ReadFailure::NotFound | ReadFailure::Unusable | ReadFailure::Forbidden => {
                self.reattach_later(now, jitter);
            }
        }
    }

    /// The agent cannot be reached; its link is watched once for all its tasks.
    pub fn handle_link_down(&mut self, now: Instant) {
        if !matches!(self.phase, Phase::Ended(_)) {
            self.failures += 1;
            self.read = ReadSlot::Idle;
            self.phase = Phase::LinkDown { until: now + self.times.link_down_max };
        }
    }

    /// The agent answers again. `after` spreads many tasks out.
    pub fn handle_link_up(&mut self, after: Duration, now: Instant) {
        if matches!(self.phase, Phase::LinkDown { .. }) {
            self.failures = 0;
            self.wait_and_read(after, now);
        }
    }

    /// The machine slept, or the clock jumped: no stream is believed.
    pub fn handle_wake(&mut self) {
        match self.phase {
            Phase::Ended(_) => {}
            Phase::Live { .. } | Phase::Attaching { .. } => {
                self.close_wanted = Some(CloseReason::Slept);
                self.start_reading();
            }
            Phase::Settling { .. } => self.read = self.read.want(),
            Phase::Reading | Phase::Polling { .. } | Phase::LinkDown { .. } | Phase::SignIn { .. } => {
                self.start_reading();
            }
        }
    }

    /// The task was changed by somebody else: `state` is the state as stored.
    pub fn handle_rung(&mut self, state: TaskState, settled: bool) {
        if matches!(self.phase, Phase::Ended(_)) {
            return;
        }
        if state.is_terminal() && settled {
            self.see_state(state);
            self.end(Ending::Settled);
        } else if state != self.state {
            self.see_state(state);
            self.handle_poked();
        }
    }

    /// Something was done that makes a difference at the agent: a reply, a new credential, a wish to look.
    pub fn handle_poked(&mut self) {
        self.deaf_while = None;
        match self.phase {
            Phase::Polling { .. } | Phase::SignIn { .. } | Phase::LinkDown { .. } => self.start_reading(),
            Phase::Live { .. } | Phase::Settling { .. } => self.read = self.read.want(),
            Phase::Reading | Phase::Attaching { .. } | Phase::Ended(_) => {}
        }
    }

    /// Callbacks about the task are expected from now on, or not any more: then it is read at once.
    pub fn handle_push(&mut self, armed: bool, now: Instant) {
        if std::mem::replace(&mut self.push_armed, armed) == armed {
            return;
        }
        let shortest = self.pace_min();
        if let Phase::Polling { pace, next_read, attach_at: None } = &mut self.phase {
            *pace = shortest;
            *next_read = if armed { now + shortest } else { (*next_read).min(now + shortest) };
        }
    }

    fn pace_min(&self) -> Duration {
        if self.push_armed { self.times.push_poll_min } else { self.times.poll_min }
    }

    fn pace_max(&self) -> Duration {
        let longest =
            if self.state.is_interrupted() { self.times.waiting_poll_max } else { self.times.poll_max };
        if self.push_armed { longest.max(self.times.push_poll_max) } else { longest }
    }

    fn see_state(&mut self, state: TaskState) {
        if state != self.state {
            self.state = state;
            self.deaf_while = None;
        }
    }

    fn end(&mut self, ending: Ending) {
        self.close_open_stream();
        self.phase = Phase::Ended(ending);
    }

    fn close_open_stream(&mut self) {
        if matches!(self.phase, Phase::Live { .. } | Phase::Attaching { asked: true }) {
            self.close_wanted = Some(CloseReason::Over);
        }
    }

    fn attach_or_poll(&mut self, now: Instant) {
        if self.may_attach() {
            self.phase = Phase::Attaching { asked: false };
        } else {
            self.poll_from(now);
        }
    }

    fn may_attach(&self) -> bool {
        !self.poll_only
            && matches!(self.reattach, Reattach::Works | Reattach::Suspect)
            && self.deaf_while != Some(self.state)
    }

    fn poll_from(&mut self, now: Instant) {
        let pace = self.pace_min();
        self.phase = Phase::Polling { pace, next_read: now + pace, attach_at: None };
    }

    /// Reads at once, and attaches again after a wait that grows with every attempt that did not last.
    fn reattach_later(&mut self, now: Instant, jitter: f64) {
        let wait = self.next_wait(jitter);
        self.phase = Phase::Polling {
            pace: self.times.poll_min,
            next_read: now + self.times.poll_min,
            attach_at: self.may_attach().then_some(now + wait),
        };
        self.read = self.read.want();
    }

    fn wait_and_read(&mut self, wait: Duration, now: Instant) {
        let attach_at = self.may_attach().then_some(now + wait);
        self.phase = Phase::Polling { pace: self.times.poll_min, next_read: now + wait, attach_at };
    }

    fn next_wait(&mut self, jitter: f64) -> Duration {
        let doubled = self.times.reattach_min * 2u32.pow(self.failures.min(16));
        self.failures += 1;
        spread(doubled.min(self.times.reattach_max), jitter)
    }
}

/// What a frame was, as far as following goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameNote {
    pub kind: FrameKind,
    pub state: TaskState,
    pub wants_read: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    Task,
    Update,
}

impl ReadSlot {
    fn want(self) -> Self {
        match self {
            Self::Idle | Self::Wanted => Self::Wanted,
            Self::Asked => Self::Asked,
        }
    }
}

/// Between half of `wait` and all of it. `jitter` is 0 to 1.
fn spread(wait: Duration, jitter: f64) -> Duration {
    wait.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests;
