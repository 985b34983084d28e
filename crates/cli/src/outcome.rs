//! When a wait is over, and what its exit code says. Pure: the task's standing is an argument.
//!
//! | exit | the task |
//! |---|---|
//! | 0 | completed |
//! | 3, 4, 5 | failed, rejected, canceled |
//! | 6, 7 | waits for an answer, for a sign-in |
//! | 8, 10 | is lost, belongs to another identity |
//! | 124 | was in none of these in time (as `timeout` of coreutils says it) |
//!
//! 2 is a wrong command line, 9 a message of unknown outcome, 1 everything else.

use clap::ValueEnum;
use taskbell_engine::api::views::{ShownState, TaskSummary};

/// A wrong command line, as clap and most shells say it.
pub const USAGE: u8 = 2;
/// The message left and no answer came.
pub const OUTCOME_UNKNOWN: u8 = 9;
/// The wait's own time was up.
pub const TIMED_OUT: u8 = 124;
/// An error of ours that nobody foresaw (`EX_SOFTWARE` of sysexits).
pub const PANICKED: u8 = 70;

/// What ends a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Until {
    /// A state that waits for somebody, or a terminal one.
    #[default]
    Attention,
    /// Only a state that no other follows.
    Terminal,
}

/// What is known of a task at one moment, as far as a wait cares. Times are milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub state: ShownState,
    /// Since when it waits for somebody.
    pub waiting_since: Option<i64>,
    /// When we last replied.
    pub replied_at: Option<i64>,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Completed,
    Failed,
    Rejected,
    Canceled,
    InputRequired,
    AuthRequired,
    Lost,
    WrongIdentity,
}

impl Outcome {
    /// The outcome that a state is; `None` while the task goes on.
    pub fn of_state(state: ShownState) -> Option<Self> {
        match state {
            ShownState::Completed => Some(Self::Completed),
            ShownState::Failed => Some(Self::Failed),
            ShownState::Rejected => Some(Self::Rejected),
            ShownState::Canceled => Some(Self::Canceled),
            ShownState::InputRequired => Some(Self::InputRequired),
            ShownState::AuthRequired => Some(Self::AuthRequired),
            ShownState::Lost => Some(Self::Lost),
            ShownState::WrongIdentity => Some(Self::WrongIdentity),
            ShownState::Submitted | ShownState::Working | ShownState::Unknown => None,
        }
    }

    pub fn exit(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 3,
            Self::Rejected => 4,
            Self::Canceled => 5,
            Self::InputRequired => 6,
            Self::AuthRequired => 7,
            Self::Lost => 8,
            Self::WrongIdentity => 10,
        }
    }

    /// As [`Self::exit`] for a wait, but to have canceled is what was asked of `cancel`.
    pub fn exit_of_cancel(self) -> u8 {
        if self == Self::Canceled { 0 } else { self.exit() }
    }

    /// The task waits for somebody and may go on.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

impl Standing {
    pub fn of(task: &TaskSummary) -> Self {
        Self {
            state: task.state,
            waiting_since: task.waiting_since.map(|at| at.ms()),
            replied_at: task.replied_at.map(|at| at.ms()),
        }
    }

    /// Whether a wait for `until` is over, and how.
    ///
    /// A waiting state from before our last reply does not count: the reply was sent, and the agent has not
    /// yet said what it makes of it. Without that, `reply` followed by `wait` would return at once with the
    /// question that was just answered.
    pub fn settles(&self, until: Until) -> Option<Outcome> {
        let outcome = Outcome::of_state(self.state)?;
        if !outcome.is_waiting() {
            return Some(outcome);
        }
        match (until, self.waiting_since, self.replied_at) {
            (Until::Terminal, _, _) => None,
            // At the same millisecond the question came first: a reply needs something to reply to.
            (Until::Attention, Some(waiting), Some(replied)) if waiting <= replied => None,
            // A question of unknown age beside a reply: the reply may have been to this very question.
            (Until::Attention, None, Some(_)) => None,
            (Until::Attention, _, _) => Some(outcome),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(state: ShownState, waiting_since: Option<i64>, replied_at: Option<i64>) -> Standing {
        Standing { state, waiting_since, replied_at }
    }

    #[test]
    fn every_state_has_the_exit_code_that_scripts_rely_on() {
        let codes = ShownState::ALL.map(|state| (state.word(), Outcome::of_state(state).map(Outcome::exit)));
        assert_eq!(
            codes,
            [
                ("submitted", None),
                ("working", None),
                ("input-required", Some(6)),
                ("auth-required", Some(7)),
                ("completed", Some(0)),
                ("failed", Some(3)),
                ("canceled", Some(5)),
                ("rejected", Some(4)),
                ("unknown", None),
                ("lost", Some(8)),
                ("wrong-identity", Some(10)),
            ]
        );
    }

    #[test]
    fn no_outcome_shares_its_code_with_an_error_of_ours() {
        for outcome in ShownState::ALL.into_iter().filter_map(Outcome::of_state) {
            assert!(![1, USAGE, OUTCOME_UNKNOWN, TIMED_OUT, PANICKED].contains(&outcome.exit()));
        }
    }

    #[test]
    fn to_have_canceled_is_a_success_of_cancel_and_nothing_else_becomes_one() {
        assert_eq!(Outcome::Canceled.exit_of_cancel(), 0);
        for outcome in [Outcome::Failed, Outcome::Rejected, Outcome::Lost, Outcome::WrongIdentity] {
            assert_eq!(outcome.exit_of_cancel(), outcome.exit());
        }
    }

    #[test]
    fn a_terminal_state_ends_either_wait() {
        for state in ShownState::ALL.into_iter().filter(|state| state.is_terminal()) {
            for until in [Until::Attention, Until::Terminal] {
                let settled = standing(state, None, Some(9)).settles(until);
                assert_eq!(settled, Outcome::of_state(state));
                assert!(settled.is_some());
            }
        }
    }

    #[test]
    fn a_state_that_goes_on_ends_no_wait() {
        for state in [ShownState::Submitted, ShownState::Working, ShownState::Unknown] {
            assert_eq!(standing(state, None, None).settles(Until::Attention), None, "{state:?}");
        }
    }

    #[test]
    fn a_waiting_state_ends_the_default_wait_and_not_the_one_for_a_terminal_state() {
        let asked = standing(ShownState::InputRequired, Some(5), None);
        assert_eq!(asked.settles(Until::Attention), Some(Outcome::InputRequired));
        assert_eq!(asked.settles(Until::Terminal), None);
        let sign_in = standing(ShownState::AuthRequired, Some(5), None);
        assert_eq!(sign_in.settles(Until::Attention), Some(Outcome::AuthRequired));
    }

    #[test]
    fn a_waiting_state_from_before_our_last_reply_does_not_count() {
        for waiting_since in [Some(5), Some(6), None] {
            let answered = standing(ShownState::InputRequired, waiting_since, Some(6));
            assert_eq!(answered.settles(Until::Attention), None, "{waiting_since:?}");
        }
    }

    #[test]
    fn a_second_question_after_our_reply_counts() {
        let again = standing(ShownState::InputRequired, Some(7), Some(6));
        assert_eq!(again.settles(Until::Attention), Some(Outcome::InputRequired));
    }
}
