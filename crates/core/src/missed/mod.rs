//! Whether the end of a task was missed, by which way it should have come, and why it did not.
//!
//! Pure. An end that a stream or a callback told was not missed, also where a read was a moment quicker:
//! so, with a registration in place, it is judged only after [`WAIT_MS`].

/// How long a callback may follow the end that a read found. A registration younger than that may have come
/// too late to be told.
pub const WAIT_MS: i64 = 10_000;

/// By what an end was first known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// A stream, a callback, an answer to a request of ours: whoever should tell told.
    Told,
    /// A read because it was time.
    Poll,
    /// A read by the user's wish.
    Manual,
}

/// How the task was followed when its end was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Following {
    /// A stream was open.
    Stream,
    /// Streams work with this agent; none was open.
    BetweenStreams,
    Poll,
    Paused,
}

/// An end, with what was known around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    pub found_by: FoundBy,
    /// When it was found.
    pub at_ms: i64,
    pub following: Following,
    /// When the task came to us.
    pub known_since_ms: i64,
    /// When it was last confirmed before.
    pub heard_before_ms: Option<i64>,
    /// The agent could not be reached just before.
    pub unreachable: bool,
    pub run_started_ms: i64,
    /// When the agent took our registration, where one was in place.
    pub registered_at_ms: Option<i64>,
    /// When the first callback came that claimed an end.
    pub told_at_ms: Option<i64>,
}

/// By which way it should have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Stream,
    Push,
    Poll,
}

impl Way {
    pub fn word(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Push => "push",
            Self::Poll => "poll",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Stream, Self::Push, Self::Poll].into_iter().find(|way| way.word() == word)
    }
}

/// Why it did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    NotRunning,
    AgentUnreachable,
    Paused,
    NotCalledBack,
    StreamSilent,
    NoStreamOpen,
    NotYetPolled,
}

impl Why {
    const ALL: [Self; 7] = [
        Self::NotRunning,
        Self::AgentUnreachable,
        Self::Paused,
        Self::NotCalledBack,
        Self::StreamSilent,
        Self::NoStreamOpen,
        Self::NotYetPolled,
    ];

    /// Stable word in the store and the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotRunning => "not_running",
            Self::AgentUnreachable => "agent_unreachable",
            Self::Paused => "paused",
            Self::NotCalledBack => "not_called_back",
            Self::StreamSilent => "stream_silent",
            Self::NoStreamOpen => "no_stream_open",
            Self::NotYetPolled => "not_yet_polled",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|why| why.word() == word)
    }

    /// One line for people, after *missed:*.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::NotRunning => "taskbell was not running when it would have come",
            Self::AgentUnreachable => "the agent could not be reached",
            Self::Paused => "following was paused",
            Self::NotCalledBack => "the agent did not call back",
            Self::StreamSilent => "the stream was open and did not tell",
            Self::NoStreamOpen => "no stream was open at that time",
            Self::NotYetPolled => "the next poll had not come round to it",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    NotMissed,
    Missed {
        way: Way,
        why: Why,
    },
    /// To be judged at this time.
    WaitUntil(i64),
}

/// Judges an end at `now_ms`.
pub fn judge(end: End, now_ms: i64) -> Finding {
    if end.found_by == FoundBy::Told || end.told_at_ms.is_some() {
        return Finding::NotMissed;
    }
    let armed =
        end.registered_at_ms.is_some_and(|registered| registered.saturating_add(WAIT_MS) <= end.at_ms);
    let until = end.at_ms.saturating_add(WAIT_MS);
    // A clock set back does not make it wait for longer than it should.
    if end.registered_at_ms.is_some() && (end.at_ms..until).contains(&now_ms) {
        return Finding::WaitUntil(until);
    }
    let way = match end.following {
        _ if armed => Way::Push,
        Following::Stream | Following::BetweenStreams => Way::Stream,
        Following::Poll | Following::Paused => Way::Poll,
    };
    let why = if end.following == Following::Paused {
        Some(Why::Paused)
    } else if end.heard_before_ms.is_some_and(|heard| heard < end.run_started_ms) {
        Some(Why::NotRunning)
    } else if end.unreachable {
        Some(Why::AgentUnreachable)
    } else if end.found_by == FoundBy::Poll && end.at_ms.saturating_sub(end.known_since_ms) < WAIT_MS {
        // It was over before anybody could tell.
        None
    } else {
        match (way, end.following) {
            (Way::Push, _) => Some(Why::NotCalledBack),
            (Way::Stream, Following::Stream) => Some(Why::StreamSilent),
            (Way::Stream, _) => Some(Why::NoStreamOpen),
            (Way::Poll, _) if end.found_by == FoundBy::Manual => Some(Why::NotYetPolled),
            (Way::Poll, _) => None,
        }
    };
    why.map_or(Finding::NotMissed, |why| Finding::Missed { way, why })
}

#[cfg(test)]
mod tests;
