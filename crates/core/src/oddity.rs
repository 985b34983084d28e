//! What a peer did that the protocol does not describe. Noted on the agent's report, counted by kind,
//! never a reason to stop following.

use crate::state::TaskState;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Oddity {
    /// Both state vocabularies in one stream.
    MixedVocabulary,
    /// A complete event whose data is not JSON.
    NotJson,
    /// JSON beyond our limits: nested too deep, or a key twice.
    UnsafeJson,
    /// Octets under the type of an event stream that make none: compressed, or a JSON document.
    NotEvents,
    /// Invalid UTF-8 in an event.
    Damaged,
    /// A response to a request that this stream did not make.
    WrongResponseId,
    /// An event or answer about another task.
    ForeignTask,
    /// JSON that is no event of either version.
    UnknownShape,
    /// A frame after the terminal one.
    AfterTerminal { state: TaskState },
    /// A read or snapshot that takes a finished task back to work.
    Regression { from: TaskState, to: TaskState },
    /// Two different terminal states told for one task.
    TerminalChanged { from: TaskState, to: TaskState },
    /// A callback told another end than the task has.
    FalseEnd { claimed: TaskState, is: TaskState },
    /// A chunk for an artifact whose beginning was never seen.
    AppendWithoutStart,
    /// A state word of neither version.
    UnknownState { raw: String },
    /// The agent subscribed us without saying where the task stands.
    ReattachWithoutTask,
    /// An event, line or body over our limits.
    OverLimit,
    /// More text than is kept of one task.
    TooMuchContent,
    /// More news of one task than is kept in its timeline.
    Flood,
    /// The secrets of a registration came back in an answer about it.
    EchoedSecret,
}

impl Oddity {
    /// Stable name in the store and the API.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::MixedVocabulary => "mixed_vocabulary",
            Self::NotJson => "not_json",
            Self::NotEvents => "not_events",
            Self::UnsafeJson => "unsafe_json",
            Self::Damaged => "damaged_text",
            Self::WrongResponseId => "wrong_response_id",
            Self::ForeignTask => "foreign_task",
            Self::UnknownShape => "unknown_shape",
            Self::AfterTerminal { .. } => "after_terminal",
            Self::Regression { .. } => "regression",
            Self::TerminalChanged { .. } => "terminal_changed",
            Self::FalseEnd { .. } => "false_end",
            Self::AppendWithoutStart => "append_without_start",
            Self::UnknownState { .. } => "unknown_state",
            Self::ReattachWithoutTask => "reattach_without_task",
            Self::OverLimit => "over_limit",
            Self::TooMuchContent => "too_much_content",
            Self::Flood => "flood",
            Self::EchoedSecret => "echoed_secret",
        }
    }

    /// One line for people. Peer text is cut short; clean it before it is shown.
    pub fn detail(&self) -> String {
        match self {
            Self::AfterTerminal { state } => format!("a frame came after {}", state.word()),
            Self::Regression { from, to } => {
                format!("said {} of a task that was {}", to.word(), from.word())
            }
            Self::TerminalChanged { from, to } => {
                format!("said {} of a task that had ended {}", to.word(), from.word())
            }
            Self::FalseEnd { claimed, is } => {
                format!("called back that a task was {} which is {}", claimed.word(), is.word())
            }
            Self::UnknownState { raw } => {
                format!("used the state {:?}", raw.chars().take(40).collect::<String>())
            }
            Self::MixedVocabulary => "mixed both state vocabularies in one stream".into(),
            Self::NotJson => "sent an event that is not JSON".into(),
            Self::NotEvents => "sent as an event stream what is none".into(),
            Self::UnsafeJson => "sent JSON nested too deep or with a key twice".into(),
            Self::Damaged => "sent text that is not UTF-8".into(),
            Self::WrongResponseId => "answered a request that was not made".into(),
            Self::ForeignTask => "sent news of another task on this one's stream".into(),
            Self::UnknownShape => "sent JSON that is no event of either version".into(),
            Self::AppendWithoutStart => "extended an artifact whose beginning was never sent".into(),
            Self::ReattachWithoutTask => "reattached without saying where the task stands".into(),
            Self::OverLimit => "sent an event over the size limit".into(),
            Self::TooMuchContent => "sent more text for one task than is kept".into(),
            Self::EchoedSecret => "sent the secrets of a registration back".into(),
            Self::Flood => "sent news of one task faster than its timeline keeps it".into(),
        }
    }
}
