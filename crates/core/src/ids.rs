//! Names of things. Each is its own type, so that a context is never taken for a task.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// A task's id as its agent gave it. Opaque: never made by a client (A2A 1.0 §3.4).
    TaskId
);
id!(
    /// A conversation's id, made by the agent; reused to continue it.
    ContextId
);
id!(
    /// Made by whoever writes the message.
    MessageId
);
id!(
    /// An artifact's id, unique within its task only.
    ArtifactId
);

macro_rules! name {
    ($(#[$meta:meta])* $name:ident, $error:ident, $what:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        /// Why a text is no such name.
        #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
        #[error(
            "{} name {text:?} must be 1 to 64 of a-z, 0-9, '-', '_' or '.', starting with a letter or digit",
            $what
        )]
        pub struct $error {
            pub text: String,
        }

        impl $name {
            pub fn new(text: impl Into<String>) -> Result<Self, $error> {
                let text = text.into();
                if is_name(&text) { Ok(Self(text)) } else { Err($error { text: text.chars().take(80).collect() }) }
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = $error;
            fn try_from(text: String) -> Result<Self, Self::Error> {
                Self::new(text)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// The name a user gave an agent: 1 to 64 of `a-z 0-9 - _ .`, starting with a letter or digit.
    /// It stands in URLs, file names and on the command line, hence the narrow alphabet.
    AgentName,
    AgentNameError,
    "agent"
);
name!(
    /// The name a user gave a client of the gateway, by the same rule.
    ClientName,
    ClientNameError,
    "client"
);

fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b))
        && text.as_bytes()[0].is_ascii_alphanumeric()
}

/// A task, named as people and scripts name it: `AGENT/TASKID`.
/// The agent's name holds no slash, so the first slash divides the two whatever the task id holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskRef {
    pub agent: AgentName,
    pub task: TaskId,
}

/// Why a text names no task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskRefError {
    #[error("a task is written AGENT/TASKID, not {text:?}")]
    Shape { text: String },
    #[error(transparent)]
    Agent(#[from] AgentNameError),
}

impl std::str::FromStr for TaskRef {
    type Err = TaskRefError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((agent, task)) if !task.is_empty() => {
                Ok(Self { agent: AgentName::new(agent)?, task: TaskId::new(task) })
            }
            _ => Err(TaskRefError::Shape { text: text.chars().take(80).collect() }),
        }
    }
}

impl TryFrom<String> for TaskRef {
    type Error = TaskRefError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<TaskRef> for String {
    fn from(task: TaskRef) -> Self {
        task.to_string()
    }
}

impl fmt::Display for TaskRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.agent, self.task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_id_may_hold_slashes() {
        let task: TaskRef = "builder/a/b".parse().unwrap();
        assert_eq!((task.agent.as_str(), task.task.as_str()), ("builder", "a/b"));
        assert_eq!(task.to_string(), "builder/a/b");
    }

    #[test]
    fn agent_names_stay_safe_in_urls_and_file_names() {
        for bad in ["", "A", "a/b", "..", "-a", ".a", "a b", "é", &"a".repeat(65)] {
            assert!(AgentName::new(bad).is_err(), "{bad:?} must be refused");
        }
        for good in ["a", "demo", "my-agent_2.x"] {
            assert!(AgentName::new(good).is_ok(), "{good:?} must be accepted");
        }
    }
}
