//! Places where a build for tests stops dead or does wrong on purpose, so that the tests are seen to notice.
//!
//! Only with the feature `rehearsal`, which no program that is shipped is built with; otherwise all of it is nothing.
//! `TASKBELL_CRASH_AT` names the place where the process is killed, `TASKBELL_FAULT` the fault that it has.

/// Where the process may be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A callback's body was read; nothing of it is stored.
    BodyRead,
    /// Within the transaction that stores it.
    BeforeCommit,
    /// It is on the disk and not answered.
    AfterCommit,
    /// The answer has left.
    AfterAnswer,
    /// A task is about to be read because of it.
    BeforeRead,
    /// The agent has answered and nothing is applied.
    BeforeApply,
    /// A notice is written and not shown.
    BeforeNotice,
    /// A callback is due, and no row says that it is being sent.
    BeforeIntent,
    /// The row says so, and nothing has left.
    AfterIntent,
    /// The receiver has answered, and nothing of it is stored.
    AfterSend,
    /// Within the transaction that stores what came of it.
    BeforeResult,
}

/// What may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Callbacks are answered before they are stored.
    AnswersEarly,
    /// Proofs are not looked at.
    SkipsProof,
    /// The handler of a callback panics.
    Panics,
    /// The store's writer panics over a callback.
    WriterDies,
}

#[cfg(feature = "rehearsal")]
mod on {
    use std::sync::OnceLock;

    use super::{Place, Wrong};

    impl Place {
        fn word(self) -> &'static str {
            match self {
                Self::BodyRead => "body-read",
                Self::BeforeCommit => "before-commit",
                Self::AfterCommit => "after-commit",
                Self::AfterAnswer => "after-answer",
                Self::BeforeRead => "before-read",
                Self::BeforeApply => "before-apply",
                Self::BeforeNotice => "before-notice",
                Self::BeforeIntent => "before-intent",
                Self::AfterIntent => "after-intent",
                Self::AfterSend => "after-send",
                Self::BeforeResult => "before-result",
            }
        }
    }

    impl Wrong {
        fn word(self) -> &'static str {
            match self {
                Self::AnswersEarly => "answers-early",
                Self::SkipsProof => "skips-proof",
                Self::Panics => "panics",
                Self::WriterDies => "writer-dies",
            }
        }
    }

    fn wanted(name: &'static str, kept: &'static OnceLock<Option<String>>) -> Option<&'static str> {
        kept.get_or_init(|| std::env::var(name).ok()).as_deref()
    }

    pub(crate) fn reach(place: Place) {
        static CRASH_AT: OnceLock<Option<String>> = OnceLock::new();
        if wanted("TASKBELL_CRASH_AT", &CRASH_AT) == Some(place.word()) {
            #[cfg(unix)]
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            std::process::abort();
        }
    }

    pub(crate) fn is(wrong: Wrong) -> bool {
        static FAULT: OnceLock<Option<String>> = OnceLock::new();
        wanted("TASKBELL_FAULT", &FAULT) == Some(wrong.word())
    }
}

#[cfg(feature = "rehearsal")]
pub(crate) use on::{is, reach};

#[cfg(not(feature = "rehearsal"))]
pub(crate) fn reach(_place: Place) {}

#[cfg(not(feature = "rehearsal"))]
pub(crate) fn is(_wrong: Wrong) -> bool {
    false
}
