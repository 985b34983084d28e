//! Which change of a task is worth a notice on the desktop, what it says, and when it is shown.
//!
//! Pure: the store asks here within the transaction of the change, the notifier before it shows anything.
//! Nothing here is about *how* a desktop shows a notice.
//!
//! | question | answered by |
//! |---|---|
//! | does this change make a notice, and which | [`of_status`], [`of_verdict`], [`of_refusal`], [`of_silence`], [`of_pause`] |
//! | is it the same transition as one before | [`NewNotice::key`] |
//! | does the user want to hear of it, and with a sound | [`Way`] |
//! | is it quiet now, and until when | [`Quiet`] |
//! | what is shown now, together or alone, and what waits | [`plan`] |
//! | what several say together | [`merged`] |
//!
//! Never for progress, never for what the user did here, never twice for one transition.

mod plan;
mod quiet;

use crate::ids::{AgentName, ClientName};
use crate::state::TaskState;
use crate::task::Message;
use crate::text::plain;

pub use plan::{ATTENTION_DELAY_MS, Allowance, Hush, Pending, Plan, Reason, Shown, merged, plan};
pub use quiet::{NotATime, Quiet, TimeOfDay, wall_clock};

/// How long a task may go unconfirmed before it is said.
pub const SILENCE_MS: i64 = 15 * 60 * 1_000;

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoticeKind {
    /// A question or an authorization waits for the user.
    Waiting,
    /// The agent refuses our credential.
    SignIn,
    /// Failed or rejected.
    Failed,
    /// Completed, or canceled elsewhere.
    Finished,
    /// Nothing was heard for [`SILENCE_MS`].
    Unconfirmed,
    /// The agent does not show the task any more.
    Lost,
    /// A receiver of callbacks failed for so long that it is left alone.
    Paused,
    Test,
}

/// How the user wants to be told of a kind of notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Sound,
    Silent,
    /// Not at all; it is still recorded.
    Off,
}

impl Way {
    pub const ALL: [Self; 3] = [Self::Sound, Self::Silent, Self::Off];

    pub fn word(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Silent => "silent",
            Self::Off => "off",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.word() == word)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    Low,
    Normal,
    Critical,
}

impl NoticeKind {
    pub const ALL: [Self; 8] = [
        Self::Waiting,
        Self::SignIn,
        Self::Failed,
        Self::Finished,
        Self::Unconfirmed,
        Self::Lost,
        Self::Paused,
        Self::Test,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::SignIn => "sign-in",
            Self::Failed => "failed",
            Self::Finished => "finished",
            Self::Unconfirmed => "unconfirmed",
            Self::Lost => "lost",
            Self::Paused => "paused",
            Self::Test => "test",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Something is asked of the user: it stays on the desktop until that is settled, and is shown at least
    /// once. The others are shown at most once.
    pub fn wants_attention(self) -> bool {
        matches!(self, Self::Waiting | Self::SignIn)
    }

    pub fn urgency(self) -> Urgency {
        match self {
            Self::Waiting | Self::SignIn => Urgency::Critical,
            Self::Failed | Self::Unconfirmed | Self::Lost | Self::Paused | Self::Test => Urgency::Normal,
            Self::Finished => Urgency::Low,
        }
    }

    /// How it is told where the user has said nothing: an end is no reason to look up.
    pub fn usual_way(self) -> Way {
        match self {
            Self::Finished => Way::Silent,
            Self::Waiting
            | Self::SignIn
            | Self::Failed
            | Self::Unconfirmed
            | Self::Lost
            | Self::Paused
            | Self::Test => Way::Sound,
        }
    }
}

/// A notice to be written down, in the transaction of the change that makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNotice {
    pub kind: NoticeKind,
    /// Names the transition within its task: a second notice of the same key is none.
    pub key: String,
    /// In our words.
    pub title: String,
    /// May be the agent's words, cleaned to one line.
    pub body: String,
}

/// The task that changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Subject<'a> {
    pub agent: &'a AgentName,
    pub title: &'a str,
    /// When the user's last reply was sent.
    pub replied_at_ms: Option<i64>,
    /// When the user asked us to cancel it.
    pub cancel_asked_at_ms: Option<i64>,
}

/// A change of a status, whichever channel told it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StatusChange<'a> {
    pub from: TaskState,
    pub to: TaskState,
    pub message: Option<&'a Message>,
    pub at_ms: i64,
}

/// The notice of a status that was another before.
pub fn of_status(subject: Subject<'_>, change: StatusChange<'_>) -> Option<NewNotice> {
    let agent = subject.agent.as_str();
    let asked = first_line(change.message);
    match change.to {
        TaskState::InputRequired | TaskState::AuthRequired => {
            // Of a task that waits already, only another question is news.
            if change.from == change.to && asked.is_empty() {
                return None;
            }
            let wants = match change.to {
                TaskState::AuthRequired => "needs you to authorize it",
                _ => "needs your answer",
            };
            Some(NewNotice {
                kind: NoticeKind::Waiting,
                key: waiting_key(subject, change, &asked),
                title: format!("{agent} {wants}"),
                body: if asked.is_empty() { plain(subject.title) } else { asked },
            })
        }
        _ if change.from == change.to => None,
        TaskState::Completed => Some(ended(NoticeKind::Finished, subject, change.to, "finished", "")),
        TaskState::Failed => Some(ended(NoticeKind::Failed, subject, change.to, "failed", &asked)),
        TaskState::Rejected => Some(ended(NoticeKind::Failed, subject, change.to, "rejected a task", &asked)),
        TaskState::Canceled if subject.cancel_asked_at_ms.is_some() => None,
        TaskState::Canceled => {
            Some(ended(NoticeKind::Finished, subject, change.to, "says a task was canceled", ""))
        }
        TaskState::Submitted | TaskState::Working | TaskState::Unknown => None,
    }
}

/// The same question, told again by another channel or after a restart, has the same key. A reply in between
/// makes it another one, for some agents use their words and ids again.
fn waiting_key(subject: Subject<'_>, change: StatusChange<'_>, asked: &str) -> String {
    let state = change.to.word();
    let replied = subject.replied_at_ms.unwrap_or(0);
    match change.message.map(|message| message.message_id.as_str()).filter(|id| !id.is_empty()) {
        Some(id) => format!("{state} {replied} {} {asked}", plain(id)),
        // Without an id nothing tells two questions apart but the time.
        None if asked.is_empty() => format!("{UNWORDED} {state} {replied} {}", change.at_ms),
        None => format!("{state} {replied} at {} {asked}", change.at_ms),
    }
}

const UNWORDED: &str = "unworded";

/// Whether the notice of this key knew no question: lists leave the message out. What a read then brings is
/// that question in full and not a second one.
pub fn is_unworded(key: &str) -> bool {
    key.starts_with(UNWORDED)
}

fn ended(kind: NoticeKind, subject: Subject<'_>, state: TaskState, did: &str, why: &str) -> NewNotice {
    let title = plain(subject.title);
    NewNotice {
        kind,
        key: state.word().to_owned(),
        title: format!("{} {did}", subject.agent),
        body: if why.is_empty() { title } else { plain(&format!("{title}: {why}")) },
    }
}

/// Why a task is not shown to us any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    Lost,
    WrongIdentity,
}

/// The notice of a task that its agent does not show (any more). Never that of an end.
pub fn of_verdict(subject: Subject<'_>, gone: Gone, at_ms: i64) -> NewNotice {
    let (word, says) = match gone {
        Gone::Lost => ("lost", "no longer knows a task"),
        Gone::WrongIdentity => ("wrong-identity", "does not show a task to this sign-in"),
    };
    NewNotice {
        kind: NoticeKind::Lost,
        key: format!("{word} {at_ms}"),
        title: format!("{} {says}", subject.agent),
        body: plain(subject.title),
    }
}

/// The notice of an agent that refuses our credential: one, however many tasks it has.
pub fn of_refusal(agent: &AgentName, at_ms: i64) -> NewNotice {
    NewNotice {
        kind: NoticeKind::SignIn,
        key: format!("sign-in {agent} {at_ms}"),
        title: format!("{agent} needs you to sign in again"),
        body: "Its tasks cannot be read until then; as far as we know they go on.".to_owned(),
    }
}

/// The notice of a task that nobody confirmed since `confirmed_at_ms`: once, however long it takes.
pub fn of_silence(subject: Subject<'_>, confirmed_at_ms: i64) -> NewNotice {
    NewNotice {
        kind: NoticeKind::Unconfirmed,
        key: format!("unconfirmed {confirmed_at_ms}"),
        title: format!("{} has not been heard of for 15 min", subject.agent),
        body: plain(&format!("{}: still running as far as we know", subject.title)),
    }
}

/// The notice of a receiver that is called no more since it failed for days.
pub fn of_pause(client: &ClientName, target: &str, at_ms: i64) -> NewNotice {
    NewNotice {
        kind: NoticeKind::Paused,
        key: format!("paused {client} {target} {at_ms}"),
        title: plain(&format!("Callbacks for {client} are paused")),
        body: plain(&format!(
            "{target} has failed for days. Ends and questions wait until it is resumed; tasks go on."
        )),
    }
}

/// What *send me one* shows.
pub fn of_test(at_ms: i64) -> NewNotice {
    NewNotice {
        kind: NoticeKind::Test,
        key: format!("test {at_ms}"),
        title: "This is how Taskbell calls you".to_owned(),
        body: "Questions stay until they are answered; what has finished comes quietly.".to_owned(),
    }
}

/// The first line with something on it.
fn first_line(message: Option<&Message>) -> String {
    let text = message.map(Message::text).unwrap_or_default();
    text.lines().map(plain).find(|line| !line.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
