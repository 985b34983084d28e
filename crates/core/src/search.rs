//! What people type to find tasks and callbacks, and the words of a text that it found.
//!
//! ```text
//! query  = term*                          all of them must hold
//! term   = ["-"] (key ":" values | word | "\"" phrase "\"")
//! values = value ("," value)*             any of them
//! ```
//!
//! | key | tasks | callbacks |
//! |---|---|---|
//! | `state:` | the state as shown | the state it claims |
//! | `agent:` | an agent's name | the same |
//! | `via:` | by what it was confirmed last, or how it is followed | – |
//! | `verdict:` | has a callback of it | its own |
//! | `is:` | [`Is`] | `open`: not settled |
//! | `since:` | changed within | came within |
//!
//! The same key twice means any of both, but for `is:`, where both hold. The last word counts as the beginning of one as
//! well, because whoever types has not finished. What cannot be meant is an error with a sentence, never a list that is
//! empty for a reason nobody sees.
//!
//! Nothing of a query reaches the full text index as its own syntax: [`Query::wanted`] quotes every word.

mod parse;
mod snippet;
mod words;

use crate::ids::AgentName;
use crate::state::TaskState;
use crate::verdict::Verdict;

pub use parse::QueryError;
pub use snippet::{Snippet, SnippetPart, snippet};
pub use words::index_text;

/// Characters of a query that are read; more is refused.
pub const QUERY_MAX: usize = 1_000;

/// What is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Screen {
    Tasks,
    /// Callbacks.
    Inbox,
}

impl Screen {
    pub const ALL: [Self; 2] = [Self::Tasks, Self::Inbox];

    pub fn word(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::Inbox => "inbox",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|screen| screen.word() == word)
    }
}

/// A task's state as shown: the agent's word, or one of our two verdicts on the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StateWord {
    State(TaskState),
    Lost,
    WrongIdentity,
}

impl StateWord {
    pub fn all() -> impl Iterator<Item = Self> {
        TaskState::ALL.into_iter().map(Self::State).chain([Self::Lost, Self::WrongIdentity])
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::State(state) => state.word(),
            Self::Lost => "lost",
            Self::WrongIdentity => "wrong-identity",
        }
    }
}

/// By what a task was confirmed last, or how it is followed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Via {
    Stream,
    Push,
    Poll,
    Manual,
    Gateway,
    PushAndPoll,
    Reconnecting,
    Paused,
}

impl Via {
    pub const ALL: [Self; 8] = [
        Self::Stream,
        Self::Push,
        Self::Poll,
        Self::Manual,
        Self::Gateway,
        Self::PushAndPoll,
        Self::Reconnecting,
        Self::Paused,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Push => "push",
            Self::Poll => "poll",
            Self::Manual => "manual",
            Self::Gateway => "gateway",
            Self::PushAndPoll => "push+poll",
            Self::Reconnecting => "reconnecting",
            Self::Paused => "paused",
        }
    }

    /// It is the way a task is followed; else the channel that confirmed it last.
    pub fn is_mode(self) -> bool {
        matches!(self, Self::PushAndPoll | Self::Reconnecting | Self::Paused)
    }
}

/// What a row may be besides its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Is {
    /// Not ended; of a callback: not settled.
    Open,
    /// It needs the user now.
    Waiting,
    Pinned,
    Archived,
    Muted,
    /// Its question is put off until later.
    Snoozed,
    /// It has a note.
    Noted,
}

impl Is {
    pub const ALL: [Self; 7] =
        [Self::Open, Self::Waiting, Self::Pinned, Self::Archived, Self::Muted, Self::Snoozed, Self::Noted];

    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Waiting => "waiting",
            Self::Pinned => "pinned",
            Self::Archived => "archived",
            Self::Muted => "muted",
            Self::Snoozed => "snoozed",
            Self::Noted => "noted",
        }
    }
}

/// A word or a phrase to be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    /// It counts as the beginning of its last word too.
    pub begins: bool,
}

/// The values that were named for one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice<T> {
    /// One of these; empty: any at all.
    pub any: Vec<T>,
    /// None of these.
    pub none: Vec<T>,
}

impl<T> Default for Choice<T> {
    fn default() -> Self {
        Self { any: Vec::new(), none: Vec::new() }
    }
}

impl<T: PartialEq> Choice<T> {
    pub fn takes(&self, value: &T) -> bool {
        (self.any.is_empty() || self.any.contains(value)) && !self.none.contains(value)
    }

    /// It leaves nothing out.
    pub fn is_open(&self) -> bool {
        self.any.is_empty() && self.none.is_empty()
    }
}

/// A query, read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    pub words: Vec<Word>,
    /// Words that must not be there.
    pub without: Vec<Word>,
    pub states: Choice<StateWord>,
    pub agents: Choice<AgentName>,
    pub via: Choice<Via>,
    pub verdicts: Choice<Verdict>,
    /// `true`: it is; `false`: it is not. All hold.
    pub is: Vec<(Is, bool)>,
    /// Milliseconds before now.
    pub since_ms: Option<i64>,
}

impl Query {
    /// Reads what somebody typed for that list. An empty text is a query that leaves nothing out.
    pub fn parse(text: &str, screen: Screen) -> Result<Self, QueryError> {
        parse::parse(text, screen)
    }

    /// What the query says of `wanted`, if anything.
    pub fn says_of(&self, wanted: Is) -> Option<bool> {
        self.is.iter().find(|(is, _)| *is == wanted).map(|(_, holds)| *holds)
    }

    /// The words as an expression of SQLite's FTS5: every one quoted, so that nothing in it is syntax. None: there
    /// are no words to be found.
    pub fn wanted(&self) -> Option<String> {
        let wanted = words::all_of(&self.words)?;
        Some(match words::any_of(&self.without) {
            Some(without) => format!("({wanted}) NOT ({without})"),
            None => wanted,
        })
    }

    /// The same for the words that must not be there, where no other word is wanted: FTS5 has no "all but".
    pub fn unwanted(&self) -> Option<String> {
        if self.words.is_empty() { words::any_of(&self.without) } else { None }
    }
}

#[cfg(test)]
mod tests;
