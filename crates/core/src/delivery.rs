//! When a callback that leaves is tried, tried again and given up.
//!
//! Pure: tries, answers and jitter are arguments. What "delivered" means is a final status of 2xx within the
//! time of one attempt; nothing here says anything about the task.

use std::time::Duration;

use crate::backoff::around;
use crate::retry_after::LONGEST;
use crate::state::TaskState;
use crate::target::{AnswerFault, Refusal};
use crate::tls::TlsFault;

/// What a state's callbacks are promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Own capacity, kept over restarts, tried again, never displaced.
    Reserved,
    /// Newest only, bounded, one try; drops are counted.
    BestEffort,
}

impl Lane {
    /// By the state the callback carries: an end, or somebody is waited for.
    pub fn of(state: TaskState) -> Self {
        if state.is_terminal() || state.is_interrupted() { Self::Reserved } else { Self::BestEffort }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::BestEffort => "best-effort",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Reserved, Self::BestEffort].into_iter().find(|lane| lane.word() == word)
    }
}

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    /// Not tried yet.
    Queued,
    Sending,
    Delivered,
    /// Will be tried again.
    Failed,
    /// The engine stopped between sending and recording; will be tried again.
    OutcomeUnknown,
    /// Tried as often as the schedule says.
    Exhausted,
    /// The receiver does not want it: 4xx twice, or 410.
    Rejected,
    /// The target is not one that we call.
    RefusedByPolicy,
    /// A newer one about the same task was delivered.
    Superseded,
    /// Best effort only.
    Dropped,
    /// Its registration was removed or disabled.
    Cancelled,
}

impl DeliveryState {
    pub const ALL: [Self; 11] = [
        Self::Queued,
        Self::Sending,
        Self::Delivered,
        Self::Failed,
        Self::OutcomeUnknown,
        Self::Exhausted,
        Self::Rejected,
        Self::RefusedByPolicy,
        Self::Superseded,
        Self::Dropped,
        Self::Cancelled,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::OutcomeUnknown => "outcome-unknown",
            Self::Exhausted => "exhausted",
            Self::Rejected => "rejected",
            Self::RefusedByPolicy => "refused-by-policy",
            Self::Superseded => "superseded",
            Self::Dropped => "dropped",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Whether it is still to be tried, or is being tried.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Sending | Self::Failed | Self::OutcomeUnknown)
    }
}

/// Why no final status came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The text of the URL is refused by the rules of today.
    Refused(Refusal),
    /// A policy refusal, or a name without an address.
    Answers(AnswerFault),
    DnsFailed,
    DnsTimeout,
    PeerMismatch,
    ConnectRefused,
    ConnectTimeout,
    ConnectFailed,
    Tls(TlsFault),
    /// No answer to the TLS handshake in time.
    TlsTimeout,
    /// The whole attempt took too long.
    Timeout,
    /// The connection ended before a final status.
    Closed,
    /// What came is no HTTP/1.1 answer.
    NotHttp,
    /// More interim answers than anybody needs.
    TooManyInterim,
    /// A loopback target that is no longer approved.
    NotApproved,
}

impl Failure {
    /// The stable word for records.
    pub fn code(self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::Answers(fault) => fault.code(),
            Self::DnsFailed => "dns_failed",
            Self::DnsTimeout => "dns_timeout",
            Self::PeerMismatch => "peer_mismatch",
            Self::ConnectRefused => "connect_refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::ConnectFailed => "connect_failed",
            Self::Tls(fault) => fault.code(),
            Self::TlsTimeout => "tls_timeout",
            Self::Timeout => "timeout",
            Self::Closed => "connection_closed",
            Self::NotHttp => "not_http",
            Self::TooManyInterim => "too_many_interim_answers",
            Self::NotApproved => "target_not_approved",
        }
    }

    /// Whether our rules refused, and not the network or the receiver. Tried again at most twice: a network
    /// with names of its own may heal.
    pub fn is_policy(self) -> bool {
        match self {
            Self::Answers(fault) => fault.is_policy(),
            Self::Refused(_) | Self::PeerMismatch | Self::NotApproved => true,
            Self::DnsFailed
            | Self::DnsTimeout
            | Self::ConnectRefused
            | Self::ConnectTimeout
            | Self::ConnectFailed
            | Self::Tls(_)
            | Self::TlsTimeout
            | Self::Timeout
            | Self::Closed
            | Self::NotHttp
            | Self::TooManyInterim => false,
        }
    }
}

/// What came of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Status {
        status: u16,
        /// As asked for by the receiver, clamped.
        retry_after: Option<Duration>,
    },
    Failed(Failure),
}

impl Outcome {
    pub fn is_delivered(self) -> bool {
        matches!(self, Self::Status { status: 200..=299, .. })
    }

    /// The word for the attempt's record; a status says it itself.
    pub fn code(self) -> Option<&'static str> {
        match self {
            Self::Status { status: 300..=399, .. } => Some("redirect_not_followed"),
            Self::Status { .. } => None,
            Self::Failed(failure) => Some(failure.code()),
        }
    }
}

/// How often a reserved delivery is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// Nine tries over about 28 hours.
    Series,
    /// The plain contract: one retry.
    Once,
    /// Best effort.
    Never,
}

/// After each failure in turn.
const SERIES: [Duration; 8] = [
    Duration::from_secs(5),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3_600),
    Duration::from_secs(5 * 3_600),
    Duration::from_secs(10 * 3_600),
    Duration::from_secs(10 * 3_600),
];
/// How far jitter moves a wait.
const SPREAD: f64 = 0.2;
/// Before the one retry of an answer that blames the request.
const CLIENT_ERROR_WAIT: Duration = Duration::from_secs(30);
/// Tries that our own rules may refuse.
const POLICY_TRIES: u32 = 3;

impl Schedule {
    /// How often a delivery is tried at most where nothing but failures of the receiver end it, the first try included.
    pub fn tries(self) -> u32 {
        let waits = (1..).take_while(|tries| self.wait_after(*tries).is_some()).count();
        u32::try_from(waits).unwrap_or(u32::MAX).saturating_add(1)
    }

    fn wait_after(self, tries: u32) -> Option<Duration> {
        let index = usize::try_from(tries.saturating_sub(1)).unwrap_or(usize::MAX);
        match self {
            Self::Series => SERIES.get(index).copied(),
            Self::Once => SERIES.get(index).copied().filter(|_| index == 0),
            Self::Never => None,
        }
    }
}

/// What happens to a delivery after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Delivered,
    TryAgain {
        after: Duration,
    },
    Over(DeliveryState),
    /// 410: the receiver is gone, and so is its registration.
    DisableConfig,
}

/// Tries of a delivery so far, the one that was just made included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tries {
    pub all: u32,
    /// Of these, in a row and the last ones: refused by our rules.
    pub refused: u32,
    /// Of these: answered with a 4xx that blames the request.
    pub blamed: u32,
}

impl Tries {
    /// Counts one more.
    pub fn with(self, outcome: Outcome) -> Self {
        let refused = matches!(outcome, Outcome::Failed(failure) if failure.is_policy());
        Self {
            all: self.all.saturating_add(1),
            refused: if refused { self.refused.saturating_add(1) } else { 0 },
            blamed: self.blamed.saturating_add(u32::from(blames_request(outcome))),
        }
    }
}

/// 4xx but 408, 425 and 429, which say "later", and 410.
fn blames_request(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Status { status, .. } => {
            (400..500).contains(&status) && !matches!(status, 408 | 410 | 425 | 429)
        }
        Outcome::Failed(_) => false,
    }
}

/// `tries` counts the attempt that had this outcome; `jitter` is evenly distributed in 0..1.
pub fn next(schedule: Schedule, tries: Tries, outcome: Outcome, jitter: f64) -> Next {
    let again = |wait: Duration, asked: Option<Duration>| Next::TryAgain {
        after: around(wait, SPREAD, jitter).max(asked.unwrap_or(Duration::ZERO)).min(LONGEST),
    };
    let by_schedule = |asked: Option<Duration>| match schedule.wait_after(tries.all) {
        Some(wait) => again(wait, asked),
        None => Next::Over(DeliveryState::Exhausted),
    };
    match outcome {
        Outcome::Status { status: 200..=299, .. } => Next::Delivered,
        Outcome::Status { status: 410, .. } => Next::DisableConfig,
        Outcome::Status { .. } if blames_request(outcome) => match schedule.wait_after(tries.all) {
            Some(_) if tries.blamed < 2 => again(CLIENT_ERROR_WAIT, None),
            Some(_) | None => Next::Over(DeliveryState::Rejected),
        },
        Outcome::Status { retry_after, .. } => by_schedule(retry_after),
        Outcome::Failed(failure) if failure.is_policy() => match schedule.wait_after(tries.all) {
            Some(wait) if tries.refused < POLICY_TRIES => again(wait, None),
            Some(_) | None => Next::Over(DeliveryState::RefusedByPolicy),
        },
        Outcome::Failed(_) => by_schedule(None),
    }
}

/// When a target that fails is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breaker {
    /// Called as its deliveries are due.
    Closed,
    /// One probe, not before so long after the last failure.
    Open { probe_after: Duration },
    /// Not called until its user says so.
    Paused,
}

const OPENS_AFTER: u32 = 5;
const PROBE_EACH: Duration = Duration::from_secs(5 * 60);
const PAUSES_AFTER: Duration = Duration::from_secs(5 * 24 * 3_600);

/// `failures` in a row, the first of them so long ago.
pub fn breaker(failures: u32, failing_for: Duration) -> Breaker {
    if failures < OPENS_AFTER {
        Breaker::Closed
    } else if failing_for >= PAUSES_AFTER {
        Breaker::Paused
    } else {
        Breaker::Open { probe_after: PROBE_EACH }
    }
}

/// Best effort that could not be sent for so long is dropped.
pub const BEST_EFFORT_LIVES: Duration = Duration::from_secs(60);
/// A whole attempt, from its start to the final status.
pub const ATTEMPT_LASTS: Duration = Duration::from_secs(15);
/// Deliveries that became due while the machine slept or the engine stood still are spread over this.
pub const OVERDUE_SPREAD: Duration = Duration::from_secs(60);
#[cfg(test)]
mod tests;
