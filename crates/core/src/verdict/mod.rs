//! What a callback claimed, held against the task as its agent confirms it.
//!
//! A callback is a claim and GetTask is the confirmation; both are kept. Pure: the store asks here in the
//! transaction that applies the answer of GetTask. A verdict never changes a task.
//!
//! | question | answered by |
//! |---|---|
//! | does the task as read bear the claim out | [`judge`] |
//! | did an earlier callback claim the very same | [`sameness`] |
//! | is it older than one that came before it | [`is_out_of_order`] |
//! | where do the two documents differ | [`differences`] |

mod differences;

use serde_json::Value;

use crate::dialect::v1::{self, Extras};
use crate::state::TaskState;
use crate::task::{Artifact, ArtifactUpdate, Message, StreamEvent, Task, TaskStatus};

pub use differences::{DIFFERENCES_MAX, Difference, as_task, differences};

/// What became of a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Nothing has been read since it came.
    Pending,
    /// The task as read says the same.
    Confirmed,
    /// It claims what the task as read does not show (yet).
    Ahead,
    /// The task as read is further than that.
    Behind,
    /// An earlier callback claimed the very same.
    Duplicate,
    /// Its proof was wrong or missing.
    Rejected,
    /// It does not fit its task: another task's id, another end, or no such task.
    Unmatched,
    /// The agent could not be read, so it is still a claim.
    Unreachable,
}

impl Verdict {
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
        match self {
            Self::Pending => "pending",
            Self::Confirmed => "confirmed",
            Self::Ahead => "ahead",
            Self::Behind => "behind",
            Self::Duplicate => "duplicate",
            Self::Rejected => "rejected",
            Self::Unmatched => "unmatched",
            Self::Unreachable => "unreachable",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.word() == word)
    }

    /// A later read may say something else.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Unreachable | Self::Ahead)
    }
}

/// A verdict and the reason for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    pub reason: Reason,
}

/// Why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    SaysTheSame,
    ToldBefore,
    /// The claim tells an end and the task goes on.
    NotEnded,
    EndedMeanwhile,
    AnotherEnd,
    LeftThatState,
    NotInThatState,
    /// Same state, other words, and the task goes on.
    LaterWords,
    NotShown,
    NoSuchTask,
    OtherTask,
    WrongProof,
    AgentNotRead,
    NotReadYet,
    /// The body is no event of either version; it made the task due all the same.
    Unreadable,
}

impl Reason {
    const ALL: [Self; 15] = [
        Self::SaysTheSame,
        Self::ToldBefore,
        Self::NotEnded,
        Self::EndedMeanwhile,
        Self::AnotherEnd,
        Self::LeftThatState,
        Self::NotInThatState,
        Self::LaterWords,
        Self::NotShown,
        Self::NoSuchTask,
        Self::OtherTask,
        Self::WrongProof,
        Self::AgentNotRead,
        Self::NotReadYet,
        Self::Unreadable,
    ];

    /// Stable word in the store and the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::SaysTheSame => "says_the_same",
            Self::ToldBefore => "told_before",
            Self::NotEnded => "not_ended",
            Self::EndedMeanwhile => "ended_meanwhile",
            Self::AnotherEnd => "another_end",
            Self::LeftThatState => "left_that_state",
            Self::NotInThatState => "not_in_that_state",
            Self::LaterWords => "later_words",
            Self::NotShown => "not_shown",
            Self::NoSuchTask => "no_such_task",
            Self::OtherTask => "other_task",
            Self::WrongProof => "wrong_proof",
            Self::AgentNotRead => "agent_not_read",
            Self::NotReadYet => "not_read_yet",
            Self::Unreadable => "unreadable",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.word() == word)
    }

    /// One line for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::SaysTheSame => "the task as read says the same",
            Self::ToldBefore => "an earlier callback claimed the very same",
            Self::NotEnded => "it tells an end, and the task as read goes on",
            Self::EndedMeanwhile => "the task had ended when it was read",
            Self::AnotherEnd => "it tells another end than the task has",
            Self::LeftThatState => "the task was in that state before, and is further now",
            Self::NotInThatState => "the task as read is not in that state",
            Self::LaterWords => "the task is in that state, with later words",
            Self::NotShown => "the task as read does not show it",
            Self::NoSuchTask => "the agent says that it has no such task",
            Self::OtherTask => "it is about another task than the one it was registered for",
            Self::WrongProof => "its proof was wrong or missing",
            Self::AgentNotRead => "the agent could not be read; this is still a claim",
            Self::NotReadYet => "the task has not been read since it came",
            Self::Unreadable => "its body is no event of either version; the task was read all the same",
        }
    }
}

/// The task as confirmed, and what is known of the time before.
#[derive(Debug, Clone, Copy)]
pub struct Fact<'a> {
    pub task: &'a Task,
    /// States that the task was shown in before this read.
    pub was_in: &'a [TaskState],
}

/// The verdict of one claim. The caller has checked its proof and that the read began after it was kept.
/// `told_before`: an earlier callback has the same [`sameness`].
pub fn judge(claim: &StreamEvent, fact: Fact<'_>, told_before: bool) -> Judgement {
    if claim.task_id().is_some_and(|id| *id != fact.task.id) {
        return Judgement { verdict: Verdict::Unmatched, reason: Reason::OtherTask };
    }
    let reason = if told_before { Reason::ToldBefore } else { compare(claim, fact) };
    let verdict = match reason {
        Reason::SaysTheSame => Verdict::Confirmed,
        Reason::ToldBefore => Verdict::Duplicate,
        Reason::EndedMeanwhile | Reason::LeftThatState | Reason::LaterWords => Verdict::Behind,
        Reason::AnotherEnd | Reason::OtherTask | Reason::NoSuchTask => Verdict::Unmatched,
        Reason::WrongProof => Verdict::Rejected,
        Reason::AgentNotRead => Verdict::Unreachable,
        Reason::NotReadYet => Verdict::Pending,
        Reason::NotEnded | Reason::NotInThatState | Reason::NotShown | Reason::Unreadable => Verdict::Ahead,
    };
    Judgement { verdict, reason }
}

fn compare(claim: &StreamEvent, fact: Fact<'_>) -> Reason {
    match claim {
        StreamEvent::Task(task) => match compare_status(&task.status, fact) {
            Reason::SaysTheSame => compare_artifacts(&task.artifacts, fact),
            other => other,
        },
        StreamEvent::Status(update) => compare_status(&update.status, fact),
        StreamEvent::Artifact(update) => compare_chunk(update, fact),
        StreamEvent::Message(message) if has_message(fact.task, message) => Reason::SaysTheSame,
        // Not every agent keeps what it said.
        StreamEvent::Message(_) if fact.task.status.state.is_terminal() => Reason::EndedMeanwhile,
        StreamEvent::Message(_) => Reason::NotShown,
    }
}

/// Senders' clocks say nothing here: order is told by the states alone.
fn compare_status(claimed: &TaskStatus, fact: Fact<'_>) -> Reason {
    let read = &fact.task.status;
    let (says, is) = (claimed.state, read.state);
    let same_word = says != TaskState::Unknown || claimed.raw_state == read.raw_state;
    if says == is && same_word {
        return match &claimed.message {
            // An end comes once. Only of a task that goes on are other words later ones.
            Some(message) if !is.is_terminal() && !has_words(read, message) => Reason::LaterWords,
            Some(_) | None => Reason::SaysTheSame,
        };
    }
    match (says.is_terminal(), is.is_terminal()) {
        (true, true) => Reason::AnotherEnd,
        (true, false) => Reason::NotEnded,
        (false, true) => Reason::EndedMeanwhile,
        (false, false) if is_before(says, is) || says != is && fact.was_in.contains(&says) => {
            Reason::LeftThatState
        }
        // A word of no version, or a question that the read does not show: its order cannot be told.
        (false, false) => Reason::NotInThatState,
    }
}

fn is_before(one: TaskState, other: TaskState) -> bool {
    rank(one).zip(rank(other)).is_some_and(|(one, other)| one < other)
}

/// How far a state is, where that can be told. (Working may follow a question as well as lead to one.)
fn rank(state: TaskState) -> Option<u8> {
    match state {
        TaskState::Submitted => Some(0),
        TaskState::Working => Some(1),
        TaskState::InputRequired | TaskState::AuthRequired => Some(2),
        TaskState::Completed | TaskState::Failed | TaskState::Canceled | TaskState::Rejected => Some(3),
        TaskState::Unknown => None,
    }
}

/// A snapshot without artifacts claims nothing of them.
fn compare_artifacts(claimed: &[Artifact], fact: Fact<'_>) -> Reason {
    let mut less = false;
    for artifact in claimed {
        match find_artifact(fact.task, artifact) {
            None => return Reason::NotShown,
            Some(read) if read.parts == artifact.parts || read.text() == artifact.text() => {}
            // Text that goes on where the claim ends is what came meanwhile.
            Some(read) if read.text().starts_with(&artifact.text()) => less = true,
            Some(_) if fact.task.status.state.is_terminal() => return Reason::NotShown,
            Some(_) => less = true,
        }
    }
    if less { Reason::LaterWords } else { Reason::SaysTheSame }
}

fn compare_chunk(update: &ArtifactUpdate, fact: Fact<'_>) -> Reason {
    let Some(read) = find_artifact(fact.task, &update.artifact) else { return Reason::NotShown };
    let parts = &update.artifact.parts;
    let holds_parts = parts.is_empty() || read.parts.windows(parts.len()).any(|run| run == parts.as_slice());
    if holds_parts || read.text().contains(&update.artifact.text()) {
        Reason::SaysTheSame
    } else if update.append {
        Reason::NotShown
    } else {
        Reason::LaterWords
    }
}

fn find_artifact<'a>(task: &'a Task, wanted: &Artifact) -> Option<&'a Artifact> {
    task.artifacts.iter().find(|artifact| artifact.artifact_id == wanted.artifact_id)
}

fn has_words(status: &TaskStatus, message: &Message) -> bool {
    status.message.as_ref().is_some_and(|read| is_same_message(read, message))
}

fn has_message(task: &Task, message: &Message) -> bool {
    has_words(&task.status, message) || task.history.iter().any(|read| is_same_message(read, message))
}

/// SDKs make new ids for the same words, and use one id for other words.
fn is_same_message(one: &Message, other: &Message) -> bool {
    one.text() == other.text() && one.parts.len() == other.parts.len()
}

/// The state a claim tells, where it tells one.
pub fn claimed_status(claim: &StreamEvent) -> Option<&TaskStatus> {
    match claim {
        StreamEvent::Task(task) => Some(&task.status),
        StreamEvent::Status(update) => Some(&update.status),
        StreamEvent::Artifact(_) | StreamEvent::Message(_) => None,
    }
}

/// What two callbacks have in common that claim the very same in other octets: sent again by the agent, or
/// written anew by a relay. None where the same may be meant twice: a chunk that appends.
pub fn sameness(claim: &StreamEvent) -> Option<String> {
    if matches!(claim, StreamEvent::Artifact(ArtifactUpdate { append: true, .. })) {
        return None;
    }
    let mut value = v1::stream_event(claim, Extras::Drop);
    // An end comes once, whatever the clock says at each telling; a task may come back to other states.
    if claimed_status(claim).is_some_and(|status| status.state.is_terminal()) {
        for place in ["/task/status/timestamp", "/statusUpdate/status/timestamp"] {
            if let Some(timestamp) = value.pointer_mut(place) {
                *timestamp = Value::Null;
            }
        }
    }
    Some(value.to_string())
}

/// A callback that says less than one that came before it: they overtook each other on their way.
pub fn is_out_of_order(claimed: TaskState, came_before: &[TaskState]) -> bool {
    let ended_before = came_before.iter().any(|state| state.is_terminal());
    match claimed {
        TaskState::Submitted => came_before.iter().any(|state| is_before(claimed, *state)),
        state => ended_before && !state.is_terminal(),
    }
}

#[cfg(test)]
mod tests;
