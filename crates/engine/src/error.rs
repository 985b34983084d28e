//! What the engine answers when it cannot do what was asked: a stable code for scripts and pages, one line
//! for people, the cause as source.

use crate::agent_client::CallError;
use crate::store::StoreError;

/// An operation that did not happen. The message is one lower-case line that names what was tried and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct EngineError {
    /// Snake case, stable.
    pub code: &'static str,
    pub message: String,
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl EngineError {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), source: None }
    }

    pub fn unknown_agent(name: impl std::fmt::Display) -> Self {
        Self::new("unknown_agent", format!("no agent is named {name}; see `taskbell agent list`"))
    }

    pub fn unknown_task(task: impl std::fmt::Display) -> Self {
        Self::new(
            "unknown_task",
            format!("no task {task} is known here; see `taskbell tasks`, or follow it with `taskbell watch`"),
        )
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        Self { code: error.code(), message: error.to_string(), source: Some(Box::new(error)) }
    }
}

impl From<CallError> for EngineError {
    fn from(error: CallError) -> Self {
        Self { code: error.code(), message: error.to_string(), source: Some(Box::new(error)) }
    }
}
