//! The inbox: what came, what it claimed, what the task really is.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use taskbell_core::ids::{AgentName, TaskRef};
use utoipa::ToSchema;

use super::{ShownState, UtcTime};

/// What became of a callback. A claim is never a fact: the task is what its agent answers to a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CallbackVerdict {
    /// Nothing has been read since it came.
    Pending,
    /// The task as read says the same.
    Confirmed,
    /// It claims what the task as read does not show (yet).
    Ahead,
    /// The task as read is further.
    Behind,
    /// An earlier callback claimed the very same.
    Duplicate,
    /// Its proof was wrong or missing, or it was none.
    Rejected,
    /// It does not fit its task.
    Unmatched,
    /// The agent could not be read: it is still a claim.
    Unreachable,
}

impl CallbackVerdict {
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Confirmed,
        Self::Ahead,
        Self::Behind,
        Self::Duplicate,
        Self::Rejected,
        Self::Unmatched,
        Self::Unreachable,
    ];

    pub fn word(self) -> &'static str {
        taskbell_core::verdict::Verdict::from(self).word()
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.word() == word)
    }
}

macro_rules! same_words {
    ($($variant:ident),*) => {
        impl From<CallbackVerdict> for taskbell_core::verdict::Verdict {
            fn from(verdict: CallbackVerdict) -> Self {
                match verdict { $(CallbackVerdict::$variant => Self::$variant,)* }
            }
        }
        impl From<taskbell_core::verdict::Verdict> for CallbackVerdict {
            fn from(verdict: taskbell_core::verdict::Verdict) -> Self {
                match verdict { $(taskbell_core::verdict::Verdict::$variant => Self::$variant,)* }
            }
        }
    };
}

same_words!(Pending, Confirmed, Ahead, Behind, Duplicate, Rejected, Unmatched, Unreachable);

/// Which proofs a callback had: `valid`, `valid-old` (from before a rotation), `wrong`, `missing` or `unused`
/// (not registered, not sent).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProofsView {
    /// The notification token, under either name of its header.
    pub token: String,
    pub authorization: String,
}

/// A row of the inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallbackView {
    /// `17`; `q3` and `r5.proof` are what was not taken.
    pub id: String,
    /// When it came first. Refusals of one kind are one row, with the time of the last.
    pub at: UtcTime,
    pub last_at: UtcTime,
    /// How often this very body came.
    pub count: u64,
    #[schema(value_type = Option<String>)]
    pub task: Option<TaskRef>,
    #[schema(value_type = Option<String>)]
    pub agent: Option<AgentName>,
    /// `task`, `message`, `status` or `artifact`.
    pub shape: Option<String>,
    /// The state it claims; null: it says nothing of the state.
    pub claimed: Option<ShownState>,
    /// As written. A stranger's text.
    pub claimed_raw: Option<String>,
    /// The task's state as read afterwards.
    pub confirmed: Option<ShownState>,
    pub verdict: CallbackVerdict,
    pub verdict_at: Option<UtcTime>,
    /// Why, as a stable word.
    pub reason: Option<String>,
    /// Why, in a sentence.
    pub text: String,
    pub proofs: Option<ProofsView>,
    /// Octets of the body.
    pub size: Option<u64>,
    /// It said less than one that had come before it.
    pub out_of_order: bool,
    /// The beginning of the address it came to.
    pub registration: String,
}

/// A callback with everything kept of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallbackDetail {
    #[serde(flatten)]
    pub item: CallbackView,
    /// Headers of interest, secrets masked.
    #[schema(value_type = Object, additional_properties)]
    pub headers: Map<String, Value>,
    /// As it came; null once it is no longer kept. A stranger's text.
    pub body: Option<String>,
    /// What it says of the task, in the task's 1.0 shape; null where it is no event.
    pub claim: Option<Value>,
    /// The task as read when the verdict was given.
    pub confirmation: Option<ConfirmationView>,
    /// Where the claim says something else than the task.
    pub differences: Vec<DifferenceView>,
    /// The address it came to, without the part that is a secret.
    pub url: String,
    /// How many of its proofs a callback must have: `any` or `all`.
    pub policy: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfirmationView {
    pub at: UtcTime,
    /// A 1.0 task.
    pub document: Value,
    /// It was too long to be kept with its content.
    pub shortened: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DifferenceView {
    /// A JSON pointer into the claim.
    pub pointer: String,
    pub claimed: Value,
    /// Null: the task has nothing there.
    pub confirmed: Option<Value>,
}

/// A claim held against the task as it is now. Nothing was changed by it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayView {
    pub id: String,
    #[schema(value_type = String)]
    pub task: TaskRef,
    pub claimed: Option<ShownState>,
    pub confirmed: Option<ShownState>,
    /// The verdict that stands.
    pub before: CallbackVerdict,
    /// What it would be now.
    pub verdict: CallbackVerdict,
    pub reason: String,
    pub text: String,
    pub differences: Vec<DifferenceView>,
    /// Why the task could not be read.
    pub error: Option<String>,
}

/// A callback of our own to our own inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InboxTestView {
    /// `0.3` or `1.0`.
    pub dialect: String,
    pub ok: bool,
    pub status: Option<u16>,
    pub took_ms: u64,
    /// It was kept before it was answered.
    pub stored: bool,
    pub proofs: Option<ProofsView>,
    /// What went wrong.
    pub error: Option<String>,
}
