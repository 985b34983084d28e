//! What a window of this program is asked to do by the engine of another.

use std::collections::VecDeque;

use taskbell_core::sse::{Decoder, Limits};

use super::ClientError;
use super::changes::SILENCE;
use crate::api::window::WindowCall;

/// The calls of an engine, until it is gone. As long as this is kept, the engine counts on the window.
#[derive(Debug)]
pub struct WindowCallFeed {
    response: reqwest::Response,
    decoder: Decoder,
    ready: VecDeque<WindowCall>,
}

impl WindowCallFeed {
    pub(super) fn new(response: reqwest::Response) -> Self {
        Self { response, decoder: Decoder::new(Limits::default()), ready: VecDeque::new() }
    }

    /// The next call. Errors: the engine went away or fell silent.
    pub async fn next(&mut self) -> Result<WindowCall, ClientError> {
        let Self { response, decoder, ready } = self;
        loop {
            if let Some(call) = ready.pop_front() {
                return Ok(call);
            }
            let gone = |how| ClientError::new("engine_unreachable", how);
            let chunk = tokio::time::timeout(SILENCE, response.chunk())
                .await
                .map_err(|_elapsed| gone("the engine fell silent"))?
                .map_err(|source| ClientError::unreachable("hear the engine's calls", source))?
                .ok_or_else(|| gone("the engine stopped"))?;
            let pushed = decoder.push(&chunk, &mut |event| {
                // A later engine may ask for more than this window can.
                ready.extend(serde_json::from_str::<WindowCall>(event.data).ok());
            });
            pushed.map_err(|fault| ClientError::new("engine_unreadable", fault.to_string()))?;
        }
    }
}
