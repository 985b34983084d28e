//! The call itself: by the agent's stream where it has one, which then goes to the follower with what it told.

use std::time::Duration;

use taskbell_core::dialect::call::SendRequest;
use taskbell_core::dialect::errors::{ErrorAnswer, ErrorKind};
use taskbell_core::fault::FaultKind;
use taskbell_core::follow::Reattach;
use taskbell_core::relay;
use taskbell_core::stream::{FrameContent, FrameReader};
use taskbell_core::task::{Message, SendAnswer, StreamEvent, Task};

use crate::agent_client::{self, CallError, CallFault, StreamItem, Subscription};
use crate::gateway::{Caller, faults};
use crate::parts::Handed;
use crate::reads::note_link;

/// How long the first event of a send's stream may take.
const FIRST_EVENT_WITHIN: Duration = Duration::from_secs(300);

/// Whether the client wants to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Streaming {
    Yes,
    No,
}

/// A send that made nothing, or nobody knows what.
pub(super) struct Failed {
    pub answer: ErrorAnswer,
    pub is_unknown: bool,
}

impl Failed {
    fn of(error: &CallError) -> Self {
        let is_unknown = error.outcome == agent_client::Outcome::Unknown;
        Self { answer: faults::of_call(error), is_unknown }
    }

    fn unknown() -> Self {
        let text = "the message left, but the agent's stream ended without a word: it may or may not be at work on it";
        let answer = ErrorAnswer::new(ErrorKind::Internal, text).with("outcome", "unknown");
        Self { answer, is_unknown: true }
    }
}

fn is_no_stream(error: &CallError) -> bool {
    matches!(error.kind(), Some(FaultKind::MethodNotFound | FaultKind::UnsupportedOperation))
        || matches!(error.fault, CallFault::NotOffered(_))
}

/// What the agent answered.
pub(super) enum Answered {
    /// With the stream that tells the rest, where there is one.
    Task(Box<Task>, Option<Handed>),
    Message(Box<Message>),
}

impl Caller {
    /// Asks the agent, by its stream where it has one.
    pub(super) async fn call(&self, request: &SendRequest, streaming: Streaming) -> Result<Answered, Failed> {
        let client = self.agent_client();
        let may_stream = self.agent.declares_streaming() && self.agent.reattach() != Reattach::Never;
        if streaming == Streaming::Yes && may_stream {
            let opened = client.send_streaming(request).await;
            note_link(&self.agent, opened.as_ref().err());
            match opened {
                Ok(subscription) => return self.first_event(subscription).await,
                // Refused as such, so nothing was begun: once more without.
                Err(error) if is_no_stream(&error) => {
                    client.note_quirk(|quirks| quirks.streaming_refused = true);
                }
                Err(error) => return Err(Failed::of(&error)),
            }
        }
        let answer = client.send(request).await;
        note_link(&self.agent, answer.as_ref().err());
        match answer.map_err(|error| Failed::of(&error))? {
            SendAnswer::Task(task) => Ok(Answered::Task(Box::new(task), None)),
            SendAnswer::Message(message) => Ok(Answered::Message(Box::new(message))),
        }
    }

    /// Reads a send's stream until it tells which task it made.
    async fn first_event(&self, mut subscription: Subscription) -> Result<Answered, Failed> {
        let binding = self.agent.client().endpoint().binding;
        let mut reader = FrameReader::new(binding, subscription.request_id(), None);
        let first = async {
            loop {
                match subscription.next().await {
                    StreamItem::Bytes => {}
                    StreamItem::End(_) => return None,
                    StreamItem::Frame(frame) => {
                        match reader.read(&frame.event, &frame.data, frame.lossy).content {
                            FrameContent::Nothing => {}
                            content => return Some(content),
                        }
                    }
                }
            }
        };
        let content = tokio::time::timeout(FIRST_EVENT_WITHIN, first).await.unwrap_or(None);
        match content {
            Some(FrameContent::Event(event)) => match *event {
                StreamEvent::Message(message) => Ok(Answered::Message(Box::new(message))),
                StreamEvent::Task(task) => {
                    let handed = Handed { subscription, reader, first: None };
                    Ok(Answered::Task(Box::new(task), Some(handed)))
                }
                event => match relay::task_of_event(&event) {
                    Some(task) => {
                        let handed = Handed { subscription, reader, first: Some(event) };
                        Ok(Answered::Task(Box::new(task), Some(handed)))
                    }
                    None => Err(Failed::unknown()),
                },
            },
            Some(FrameContent::Refused(error)) => {
                let kind = error.kind();
                let fault = CallFault::Remote { error: Box::new(error), kind, retry_after: None };
                let error = CallError {
                    agent: self.agent.name(),
                    operation: "SendStreamingMessage",
                    fault,
                    outcome: agent_client::Outcome::Answered,
                };
                Err(Failed::of(&error))
            }
            Some(FrameContent::Nothing) | None => Err(Failed::unknown()),
        }
    }
}
