//! What a client is told when something does not work: A2A's errors, whatever failed behind us.
//!
//! A refused credential of ours is no 401 of the client's: its key is right.

use taskbell_core::dialect::Dialect;
use taskbell_core::dialect::errors::{ErrorAnswer, ErrorKind};
use taskbell_core::fault::FaultKind;
use taskbell_core::text::one_line;

use crate::agent_client::{CallError, CallFault, Outcome};
use crate::error::EngineError;
use crate::store::StoreError;
use crate::store::tasks::TaskRow;

/// The task is not this client's to see, or never was.
pub(super) fn not_found() -> ErrorAnswer {
    ErrorAnswer::new(ErrorKind::TaskNotFound, "task not found")
}

/// The agent knew the task once, and what it said of it last.
pub(super) fn lost(row: &TaskRow, dialect: Dialect) -> ErrorAnswer {
    let state = match dialect {
        Dialect::V03 => row.state.word(),
        Dialect::V1 => row.state.v1_word(),
    };
    ErrorAnswer::new(ErrorKind::TaskNotFound, "the agent does not know this task any more")
        .with("lastKnownState", state)
        .with("verdict", row.verdict.map_or("lost", |verdict| verdict.word()))
}

/// The task has ended: nothing can be sent to it, and nobody can join it in 1.0.
pub(super) fn terminal(row: &TaskRow) -> ErrorAnswer {
    let text = format!("task is in terminal state {}", row.state.word());
    ErrorAnswer::new(ErrorKind::UnsupportedOperation, text)
}

pub(super) fn of_store(error: &StoreError) -> ErrorAnswer {
    tracing::warn!(%error, "a request to the gateway failed on the store");
    ErrorAnswer::new(ErrorKind::Internal, "the gateway's store did not take part; try again")
        .with("code", error.code())
}

/// What an agent's answer, or its absence, means to a client.
pub(super) fn of_call(error: &CallError) -> ErrorAnswer {
    let answer = |kind, text: String| ErrorAnswer::new(kind, text).with("code", error.code());
    if error.outcome == Outcome::Unknown && matches!(error.operation, "SendMessage" | "SendStreamingMessage")
    {
        let text = "the message left, but no answer came: the agent may or may not be at work on it";
        return answer(ErrorKind::Internal, text.to_owned()).with("outcome", "unknown");
    }
    match &error.fault {
        CallFault::Remote { error: remote, kind, .. } => {
            let said = one_line(&remote.message, 300);
            let text = |fallback: &str| if said.is_empty() { fallback.to_owned() } else { said.clone() };
            match kind {
                FaultKind::TaskNotFound => not_found(),
                FaultKind::TaskTerminal | FaultKind::UnsupportedOperation => {
                    ErrorAnswer::new(ErrorKind::UnsupportedOperation, text("unsupported operation"))
                }
                FaultKind::TaskNotCancelable => {
                    ErrorAnswer::new(ErrorKind::TaskNotCancelable, text("task cannot be canceled"))
                }
                FaultKind::MethodNotFound => {
                    let text = format!("the agent has no {}", error.operation);
                    ErrorAnswer::new(ErrorKind::UnsupportedOperation, text)
                }
                FaultKind::InvalidParams | FaultKind::InvalidRequest => {
                    ErrorAnswer::new(ErrorKind::InvalidParams, text("invalid params"))
                }
                FaultKind::ContentTypeNotSupported => {
                    ErrorAnswer::new(ErrorKind::ContentTypeNotSupported, text("content type not supported"))
                }
                FaultKind::ExtensionSupportRequired => ErrorAnswer::new(
                    ErrorKind::ExtensionSupportRequired,
                    text("the agent requires an extension that was not asked for"),
                ),
                FaultKind::PushNotSupported => {
                    ErrorAnswer::new(ErrorKind::PushNotSupported, text("push notifications not supported"))
                }
                FaultKind::Unauthorized | FaultKind::Forbidden => refused_credential(error),
                FaultKind::RateLimited => {
                    answer(ErrorKind::Internal, "the agent asks for fewer requests; try later".to_owned())
                }
                FaultKind::Unavailable => {
                    answer(ErrorKind::Internal, "the agent is not available".to_owned())
                }
                FaultKind::ParseError
                | FaultKind::VersionNotSupported
                | FaultKind::Internal
                | FaultKind::Other => answer(ErrorKind::Internal, text("the agent failed")),
            }
        }
        CallFault::Unauthorized { .. } | CallFault::Forbidden => refused_credential(error),
        CallFault::CredentialUnavailable(_) | CallFault::TokenCommand(_) => {
            let text = "the agent's credential cannot be read here; see Taskbell's Health";
            answer(ErrorKind::Internal, text.to_owned())
        }
        CallFault::Unreachable(_) => answer(ErrorKind::Internal, "the agent cannot be reached".to_owned()),
        CallFault::NotA2a { .. }
        | CallFault::TooLarge { .. }
        | CallFault::Redirect { .. }
        | CallFault::Encoded { .. }
        | CallFault::BadJson(_)
        | CallFault::WrongAnswer
        | CallFault::Malformed(_)
        | CallFault::WrongTask { .. } => {
            answer(ErrorKind::InvalidAgentResponse, "the agent's answer is no A2A".to_owned())
        }
        CallFault::NotOffered(_) => answer(ErrorKind::UnsupportedOperation, error.fault.to_string()),
        CallFault::NoInterface | CallFault::InsecureUrl { .. } | CallFault::Setup(_) => {
            answer(ErrorKind::Internal, "the agent cannot be called as it is set up in Taskbell".to_owned())
        }
    }
}

/// Not in the agent's words: some repeat what they were sent.
fn refused_credential(error: &CallError) -> ErrorAnswer {
    let text = format!("agent {} refuses the credential it has in Taskbell", error.agent);
    ErrorAnswer::new(ErrorKind::Internal, text).with("code", error.code())
}

pub(super) fn of_engine(error: &EngineError) -> ErrorAnswer {
    let source = error.source.as_deref();
    if let Some(call) = source.and_then(|source| source.downcast_ref::<CallError>()) {
        return of_call(call);
    }
    ErrorAnswer::new(ErrorKind::Internal, error.message.clone()).with("code", error.code)
}
