//! Task states and the words both dialects use for them (A2A 0.3 `TaskState`, 1.0 `TaskState` enum).

use serde::{Deserialize, Serialize};

/// What the agent says of a task. The raw word is kept beside it, see [`RawState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    Submitted,
    Working,
    InputRequired,
    AuthRequired,
    Completed,
    Failed,
    Canceled,
    Rejected,
    /// `unknown`, `TASK_STATE_UNSPECIFIED`, a missing state, or a word of neither version.
    /// Never mapped to a guess: shown as received, not terminal, read again at a slow pace.
    Unknown,
}

/// Which of the two vocabularies a state or role is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Vocabulary {
    /// `input-required`, `user`: 0.3.
    Lowercase,
    /// `TASK_STATE_INPUT_REQUIRED`, `ROLE_USER`: 1.0.
    ScreamingSnake,
}

impl TaskState {
    pub const ALL: [Self; 9] = [
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::AuthRequired,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::Rejected,
        Self::Unknown,
    ];

    /// No later state follows; a message to such a task fails (1.0 §3.1.1).
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// The task waits for somebody (1.0 calls these interrupted).
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// The 0.3 word. Also our own word in JSON, on the command line and in the store.
    pub fn word(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::InputRequired => "input-required",
            Self::AuthRequired => "auth-required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Rejected => "rejected",
            Self::Unknown => "unknown",
        }
    }

    /// The 1.0 word.
    pub fn v1_word(self) -> &'static str {
        match self {
            Self::Submitted => "TASK_STATE_SUBMITTED",
            Self::Working => "TASK_STATE_WORKING",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            Self::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Canceled => "TASK_STATE_CANCELED",
            Self::Rejected => "TASK_STATE_REJECTED",
            Self::Unknown => "TASK_STATE_UNSPECIFIED",
        }
    }

    /// Reads a state word of either version, of the ProtoJSON family (`TASK_STATE_CANCELLED`) and with
    /// underscores. Any other word is [`TaskState::Unknown`].
    pub fn from_word(word: &str) -> Self {
        let folded = word.trim().to_ascii_lowercase();
        let folded = folded.strip_prefix("task_state_").unwrap_or(&folded).replace('_', "-");
        match folded.as_str() {
            "submitted" => Self::Submitted,
            "working" => Self::Working,
            "input-required" => Self::InputRequired,
            "auth-required" => Self::AuthRequired,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "canceled" | "cancelled" => Self::Canceled,
            "rejected" => Self::Rejected,
            _ => Self::Unknown,
        }
    }

    /// Reads a numeric ProtoJSON enum, in the order of the 1.0 proto file.
    pub fn from_number(number: u64) -> Self {
        match number {
            1 => Self::Submitted,
            2 => Self::Working,
            3 => Self::Completed,
            4 => Self::Failed,
            5 => Self::Canceled,
            6 => Self::InputRequired,
            7 => Self::Rejected,
            8 => Self::AuthRequired,
            _ => Self::Unknown,
        }
    }
}

/// Which vocabulary a raw word belongs to, where it tells.
pub fn vocabulary_of(raw: &str) -> Option<Vocabulary> {
    if raw.starts_with("TASK_STATE_") {
        Some(Vocabulary::ScreamingSnake)
    } else if TaskState::from_word(raw) != TaskState::Unknown {
        Some(Vocabulary::Lowercase)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_both_versions_is_read() {
        for state in TaskState::ALL {
            assert_eq!(TaskState::from_word(state.word()), state);
            assert_eq!(TaskState::from_word(state.v1_word()), state);
        }
        for (word, state) in [
            ("cancelled", TaskState::Canceled),
            ("TASK_STATE_CANCELLED", TaskState::Canceled),
            ("input_required", TaskState::InputRequired),
        ] {
            assert_eq!(TaskState::from_word(word), state);
        }
    }

    #[test]
    fn a_word_of_no_version_is_unknown_and_not_terminal() {
        for word in ["running", "paused", "", "done", "TASK_STATE_"] {
            assert_eq!(TaskState::from_word(word), TaskState::Unknown);
        }
        assert!(!TaskState::Unknown.is_terminal());
    }

    #[test]
    fn input_required_is_never_terminal() {
        assert!(!TaskState::InputRequired.is_terminal());
        assert!(TaskState::InputRequired.is_interrupted());
    }
}
