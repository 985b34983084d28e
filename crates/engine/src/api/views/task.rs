//! Tasks: the row, the whole, and what can be asked of them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use taskbell_core::ids::{AgentName, TaskId, TaskRef};
use taskbell_core::state::TaskState;
use utoipa::ToSchema;

use super::{CallbackView, ChangeView, RegistrationView, UtcTime};

/// A task's state as shown: the agent's word, or one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShownState {
    Submitted,
    Working,
    InputRequired,
    AuthRequired,
    Completed,
    Failed,
    Canceled,
    Rejected,
    /// A word of neither version, see `rawState`.
    Unknown,
    /// The agent says that it knows no such task any more.
    Lost,
    /// As lost or forbidden, since the agent's credential was changed.
    WrongIdentity,
}

impl ShownState {
    pub const ALL: [Self; 11] = [
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::AuthRequired,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::Rejected,
        Self::Unknown,
        Self::Lost,
        Self::WrongIdentity,
    ];

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
            Self::Lost => "lost",
            Self::WrongIdentity => "wrong-identity",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Nothing more is expected of the task: ended by the agent's word, lost, or not ours any more.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Completed
            | Self::Failed
            | Self::Canceled
            | Self::Rejected
            | Self::Lost
            | Self::WrongIdentity => true,
            Self::Submitted | Self::Working | Self::InputRequired | Self::AuthRequired | Self::Unknown => {
                false
            }
        }
    }

    /// It waits for somebody.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

impl From<TaskState> for ShownState {
    fn from(state: TaskState) -> Self {
        match state {
            TaskState::Submitted => Self::Submitted,
            TaskState::Working => Self::Working,
            TaskState::InputRequired => Self::InputRequired,
            TaskState::AuthRequired => Self::AuthRequired,
            TaskState::Completed => Self::Completed,
            TaskState::Failed => Self::Failed,
            TaskState::Canceled => Self::Canceled,
            TaskState::Rejected => Self::Rejected,
            TaskState::Unknown => Self::Unknown,
        }
    }
}

/// How a task is heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FollowingMode {
    Stream,
    #[serde(rename = "push+poll")]
    PushPoll,
    Poll,
    Reconnecting,
    Paused,
    Ended,
}

impl FollowingMode {
    pub const ALL: [Self; 6] =
        [Self::Stream, Self::PushPoll, Self::Poll, Self::Reconnecting, Self::Paused, Self::Ended];

    pub fn word(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::PushPoll => "push+poll",
            Self::Poll => "poll",
            Self::Reconnecting => "reconnecting",
            Self::Paused => "paused",
            Self::Ended => "ended",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.word() == word)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FollowingView {
    pub mode: FollowingMode,
    pub since: UtcTime,
    /// Failures in a row.
    pub attempt: u32,
    /// What keeps us from reading the task, as a code: `unauthorized`, `agent_unreachable`, …
    #[serde(default)]
    pub trouble: Option<String>,
}

/// When the task was last confirmed, and by which channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfirmedView {
    pub at: UtcTime,
    /// `stream`, `push`, `poll`, `manual` or `gateway`.
    pub by: String,
}

/// A task as a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskSummary {
    /// `AGENT/TASKID`.
    #[schema(value_type = String)]
    pub task: TaskRef,
    #[schema(value_type = String)]
    pub agent: AgentName,
    #[schema(value_type = String)]
    pub id: TaskId,
    pub context_id: Option<String>,
    pub title: String,
    pub state: ShownState,
    /// The agent's word as received; empty where it sent none.
    pub raw_state: String,
    /// What the agent asks while it waits: the first line of its status message, cleaned.
    pub question: Option<String>,
    /// The first line of the agent's last words on the state, cleaned. A stranger's text.
    #[serde(default)]
    pub words: Option<String>,
    pub following: FollowingView,
    pub last_confirmed: Option<ConfirmedView>,
    /// It waits, and the last reply is older than that.
    pub needs_you: bool,
    /// The agent refuses our credential; following waits for a new one.
    pub needs_sign_in: bool,
    /// Terminal, and confirmed by a read.
    pub settled: bool,
    pub created_at: UtcTime,
    pub updated_at: UtcTime,
    pub terminal_at: Option<UtcTime>,
    pub waiting_since: Option<UtcTime>,
    pub replied_at: Option<UtcTime>,
    pub pinned: bool,
    pub archived: bool,
    /// No notices are shown of it.
    #[serde(default)]
    pub muted: bool,
    /// Until when the question that waits is put off; `needsYou` is false until then.
    #[serde(default)]
    pub snoozed_until: Option<UtcTime>,
    #[serde(default)]
    pub has_note: bool,
    /// Where the words of the query stand; null where none were asked for, or where the place is not shown.
    #[serde(default)]
    pub hit: Option<SearchHit>,
    /// `send`, `watch`, `import` or `gateway`.
    pub source: String,
}

/// A line of a task that has words of a query. Text of a stranger: never markup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchHit {
    /// `title`, `question`, `note`, `id`, `answer` or `conversation`.
    pub place: String,
    /// To be joined to one line.
    pub parts: Vec<HitPart>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HitPart {
    pub text: String,
    /// It is what was looked for.
    pub hit: bool,
}

/// A task with everything known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskDetail {
    #[serde(flatten)]
    pub summary: TaskSummary,
    /// What its user wrote about it.
    #[serde(default)]
    pub note: Option<String>,
    pub artifacts: Vec<ArtifactView>,
    /// The conversation: 1.0 messages, the oldest first.
    pub history: Vec<Value>,
    /// The 1.0 status.
    pub status: Value,
    /// The newest changes, the oldest first.
    pub timeline: Vec<ChangeView>,
    /// Callbacks received for it, the latest first; the newest hundred.
    pub callbacks: Vec<CallbackView>,
    /// Our registrations at the agent.
    pub registrations: Vec<RegistrationView>,
    #[schema(value_type = Object, additional_properties)]
    pub metadata: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactView {
    pub artifact_id: String,
    pub name: Option<String>,
    pub description: Option<String>,
    /// The text parts, joined. Text of a stranger: never markup.
    pub text: String,
    /// The 1.0 parts.
    pub parts: Vec<Value>,
    /// Chunks of it were missed.
    pub incomplete: bool,
}

/// Which tasks to list. All that is given must hold; the newest update first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Not terminal.
    pub open: bool,
    pub needs_you: bool,
    pub agent: Option<AgentName>,
    /// Any of these; empty: any at all.
    pub states: Vec<ShownState>,
    /// What somebody typed; its grammar is that of `taskbell_core::search`.
    pub query: Option<String>,
    /// Rows a page; `None`: the engine's choice.
    pub limit: Option<u32>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

/// The one task that a unique prefix names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedView {
    #[schema(value_type = String)]
    pub task: TaskRef,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PinRequest {
    pub pinned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchiveRequest {
    pub archived: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MuteRequest {
    pub muted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NoteRequest {
    /// At most 10,000 characters; empty takes the note away.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FollowRequest {
    pub following: FollowWish,
}

/// What the user wants of following.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FollowWish {
    On,
    Paused,
}

/// Which tasks to read now. Exactly one of the four is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReconcileRequest {
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub tasks: Vec<TaskRef>,
    /// All that are open.
    #[serde(default)]
    pub all: bool,
    /// The open ones of one agent.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub agent: Option<AgentName>,
    /// All that were updated within so many milliseconds, ended ones too.
    #[serde(default)]
    pub since_ms: Option<u64>,
}

/// What reading one task found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReconcileItem {
    #[schema(value_type = String)]
    pub task: TaskRef,
    pub before: ShownState,
    pub after: ShownState,
    pub verdict: ReconcileVerdict,
    /// A terminal state that no stream and no applied callback had shown.
    pub missed: bool,
    /// The channel that brought the state first: `stream`, `push`, `poll`, `manual` or `gateway`.
    pub found_by: Option<String>,
    /// Of a missed end: by which way it should have come, `stream`, `push` or `poll`.
    #[serde(default)]
    pub missed_way: Option<String>,
    /// Of a missed end: why it did not come that way, in a sentence.
    #[serde(default)]
    pub missed_why: Option<String>,
    /// Why the read failed.
    pub error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReconcileVerdict {
    Unchanged,
    Changed,
    Lost,
    WrongIdentity,
    /// Not read; what was known stands.
    Unreachable,
}
