//! What is to be done about one registration, and when: made, checked, made anew, taken back. Pure: time and
//! jitter are arguments.
//!
//! An agent that refuses is asked again a few times and then left alone; one that cannot be reached is asked
//! until its task ends. What has to be taken back is tried until the agent has said yes.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::fault::FaultKind;

/// After registering the task is read at once and once more after this long, and the agent's list looked at.
pub const CHECK_AFTER_MS: i64 = 10_000;
/// How long the last callback is waited for before the registration is taken back.
pub const LAST_CALLBACK_WITHIN_MS: i64 = 10 * 60_000;
/// How long callbacks are still taken after the end.
pub const ANSWERS_FOR_MS: i64 = 7 * 24 * 3_600_000;
/// How long the old proofs hold after a rotation.
pub const OLD_PROOF_FOR_MS: i64 = 24 * 3_600_000;

/// A keyring that was locked is tried again by itself this often.
const KEYRING_RETRY: Duration = Duration::from_secs(600);
const REFUSAL_RETRY: Duration = Duration::from_secs(600);
/// A refusal is a matter of the agent's rules more often than of the moment.
const REFUSALS: u32 = 3;
/// Tries to take back: with the waits below about a week.
const WITHDRAWALS: u32 = 60;
const OUTAGE: Backoff =
    Backoff { first: Duration::from_secs(5), most: Duration::from_secs(600), spread: 0.2 };
const WITHDRAWAL: Backoff =
    Backoff { first: Duration::from_secs(5), most: Duration::from_secs(3 * 3_600), spread: 0.2 };

/// Where a registration stands, by its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Not at the agent: new, or it came to nothing.
    Wanted,
    Active,
    /// Its task has ended.
    Ended,
    /// By the user.
    Removed,
}

/// What is known of one registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub stage: Stage,
    /// Nothing more will come of its task.
    pub task_is_over: bool,
    /// The agent was asked for it at least once, so it may have it.
    pub asked: bool,
    pub registered_at_ms: Option<i64>,
    /// The address it was made with is the one we have now.
    pub address_is_current: bool,
    /// The agent was given the newest proofs.
    pub proofs_are_current: bool,
    pub checked: bool,
    pub ended_at_ms: Option<i64>,
    /// A callback has told the end.
    pub end_was_told: bool,
    pub withdrawn: bool,
    /// Not before; none while nothing failed.
    pub next_try_at_ms: Option<i64>,
    /// It failed, and is not tried again by itself.
    pub given_up: bool,
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// At the agent, for the first time or with a new address or new proofs.
    Register,
    /// Whether the agent has it and nothing else of ours, and the task once more.
    Check,
    /// Here: the task has ended.
    End,
    /// At the agent.
    Withdraw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Now(Step),
    At(i64),
    /// Not by itself.
    Never,
}

/// What to do about a registration at `now_ms`.
pub fn next(standing: &Standing, now_ms: i64) -> Next {
    let when = |step: Step| match standing.next_try_at_ms {
        _ if standing.given_up => Next::Never,
        Some(at_ms) if at_ms > now_ms => Next::At(at_ms),
        Some(_) | None => Next::Now(step),
    };
    match standing.stage {
        Stage::Wanted | Stage::Active if standing.task_is_over => Next::Now(Step::End),
        Stage::Wanted => when(Step::Register),
        Stage::Active if !standing.address_is_current || !standing.proofs_are_current => when(Step::Register),
        Stage::Active if standing.checked => Next::Never,
        Stage::Active => {
            let due = standing.registered_at_ms.unwrap_or(now_ms).saturating_add(CHECK_AFTER_MS);
            if due > now_ms { Next::At(due) } else { Next::Now(Step::Check) }
        }
        Stage::Ended | Stage::Removed if standing.withdrawn => Next::Never,
        Stage::Removed => when(Step::Withdraw),
        Stage::Ended => {
            let due = standing.ended_at_ms.unwrap_or(now_ms).saturating_add(LAST_CALLBACK_WITHIN_MS);
            if standing.end_was_told || !standing.asked || due <= now_ms {
                when(Step::Withdraw)
            } else {
                Next::At(due)
            }
        }
    }
}

/// Why a registration is not at its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// The keyring does not give the agent's key.
    Keyring,
    /// The agent was not reached, or not let us in: in this much time, where it says so.
    Outage { wait: Option<Duration> },
    /// The agent has no push notifications.
    NotOffered,
    /// The agent said no to this one.
    Refused,
    /// There is no address to give it.
    NoAddress,
    /// Ours: the store, or a call that cannot be made.
    Ours,
}

/// What an agent's error about a registration means.
pub fn obstacle_of(kind: FaultKind) -> Obstacle {
    match kind {
        FaultKind::PushNotSupported | FaultKind::UnsupportedOperation | FaultKind::MethodNotFound => {
            Obstacle::NotOffered
        }
        FaultKind::RateLimited | FaultKind::Unavailable | FaultKind::Unauthorized | FaultKind::Forbidden => {
            Obstacle::Outage { wait: None }
        }
        FaultKind::TaskNotFound
        | FaultKind::TaskTerminal
        | FaultKind::TaskNotCancelable
        | FaultKind::InvalidParams
        | FaultKind::InvalidRequest
        | FaultKind::ParseError
        | FaultKind::ExtensionSupportRequired
        | FaultKind::VersionNotSupported
        | FaultKind::ContentTypeNotSupported
        | FaultKind::Internal
        | FaultKind::Other => Obstacle::Refused,
    }
}

/// When it is tried again after `tries` tries in a row, this one included. `None`: not by itself.
pub fn next_try(obstacle: Obstacle, tries: u32, now_ms: i64, jitter: f64) -> Option<i64> {
    let wait = match obstacle {
        Obstacle::NotOffered => return None,
        Obstacle::Refused if tries >= REFUSALS => return None,
        Obstacle::Refused => REFUSAL_RETRY,
        Obstacle::Keyring | Obstacle::NoAddress => KEYRING_RETRY,
        Obstacle::Outage { wait } => OUTAGE.wait(tries, jitter).max(wait.unwrap_or_default()),
        Obstacle::Ours => OUTAGE.wait(tries, jitter),
    };
    Some(after(now_ms, wait))
}

/// When taking back is tried again after `tries` failures. `None`: it is left where it is.
pub fn next_withdrawal(tries: u32, now_ms: i64, jitter: f64) -> Option<i64> {
    (tries < WITHDRAWALS).then(|| after(now_ms, WITHDRAWAL.wait(tries, jitter)))
}

fn after(now_ms: i64, wait: Duration) -> i64 {
    now_ms.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000;

    fn active() -> Standing {
        Standing {
            stage: Stage::Active,
            task_is_over: false,
            asked: true,
            registered_at_ms: Some(NOW),
            address_is_current: true,
            proofs_are_current: true,
            checked: false,
            ended_at_ms: None,
            end_was_told: false,
            withdrawn: false,
            next_try_at_ms: None,
            given_up: false,
        }
    }

    fn ended() -> Standing {
        Standing { stage: Stage::Ended, task_is_over: true, ended_at_ms: Some(NOW), ..active() }
    }

    #[test]
    fn a_new_one_is_registered_and_checked_ten_seconds_later() {
        let wanted = Standing { stage: Stage::Wanted, asked: false, registered_at_ms: None, ..active() };
        assert_eq!(next(&wanted, NOW), Next::Now(Step::Register));
        assert_eq!(next(&active(), NOW), Next::At(NOW + 10_000));
        assert_eq!(next(&active(), NOW + 10_000), Next::Now(Step::Check));
        assert_eq!(next(&Standing { checked: true, ..active() }, NOW + 10_000), Next::Never);
    }

    #[test]
    fn another_address_or_other_proofs_are_registered_anew() {
        let checked = Standing { checked: true, ..active() };
        let moved = Standing { address_is_current: false, ..checked };
        assert_eq!(next(&moved, NOW), Next::Now(Step::Register));
        let rotated = Standing { proofs_are_current: false, ..checked };
        assert_eq!(next(&rotated, NOW), Next::Now(Step::Register));
        let failed_before = Standing { next_try_at_ms: Some(NOW + 5), ..moved };
        assert_eq!(next(&failed_before, NOW), Next::At(NOW + 5));
    }

    #[test]
    fn one_is_taken_back_once_its_last_callback_came_and_else_after_ten_minutes() {
        assert_eq!(next(&ended(), NOW), Next::At(NOW + 600_000));
        assert_eq!(next(&ended(), NOW + 600_000), Next::Now(Step::Withdraw));
        assert_eq!(next(&Standing { end_was_told: true, ..ended() }, NOW), Next::Now(Step::Withdraw));
        assert_eq!(next(&Standing { asked: false, ..ended() }, NOW), Next::Now(Step::Withdraw));
        assert_eq!(next(&Standing { withdrawn: true, ..ended() }, NOW + 600_000), Next::Never);
    }

    #[test]
    fn an_ended_task_ends_its_registration_whatever_it_waits_for() {
        for stage in [Stage::Wanted, Stage::Active] {
            let waiting = Standing {
                stage,
                task_is_over: true,
                given_up: true,
                next_try_at_ms: Some(i64::MAX),
                ..active()
            };
            assert_eq!(next(&waiting, NOW), Next::Now(Step::End));
        }
    }

    #[test]
    fn one_removed_by_the_user_is_taken_back_at_once_and_until_it_succeeds() {
        let removed = Standing { stage: Stage::Removed, ..active() };
        assert_eq!(next(&removed, NOW), Next::Now(Step::Withdraw));
        assert_eq!(next(&Standing { next_try_at_ms: Some(NOW + 1), ..removed }, NOW), Next::At(NOW + 1));
        let long: i64 = (1..60).filter_map(|tries| next_withdrawal(tries, 0, 0.5)).sum();
        assert!((4..10).contains(&(long / 86_400_000)), "about a week: {long} ms");
        assert_eq!(next_withdrawal(60, NOW, 0.5), None);
    }

    #[test]
    fn an_agent_that_says_no_is_left_alone_and_one_that_is_away_is_not() {
        assert_eq!(next_try(Obstacle::NotOffered, 1, NOW, 0.5), None);
        assert_eq!(next_try(Obstacle::Refused, 1, NOW, 0.5), Some(NOW + 600_000));
        assert_eq!(next_try(Obstacle::Refused, 3, NOW, 0.5), None);
        let outage = Obstacle::Outage { wait: None };
        assert_eq!(next_try(outage, 1, NOW, 0.5), Some(NOW + 5_000));
        assert_eq!(next_try(outage, 50, NOW, 0.5), Some(NOW + 600_000));
        let asked = Obstacle::Outage { wait: Some(Duration::from_secs(3_600)) };
        assert_eq!(next_try(asked, 1, NOW, 0.5), Some(NOW + 3_600_000), "never sooner than it was asked");
        let given_up = Standing { stage: Stage::Wanted, given_up: true, ..active() };
        assert_eq!(next(&given_up, NOW), Next::Never);
    }

    #[test]
    fn a_keyring_is_tried_each_ten_minutes() {
        for tries in [1, 100] {
            assert_eq!(next_try(Obstacle::Keyring, tries, NOW, 0.5), Some(NOW + 600_000));
        }
    }
}
