//! The change feed as clients read it: from a number onwards, over as many connections as it takes.

use std::time::Duration;

use taskbell_core::ids::TaskRef;
use taskbell_core::sse::{Decoder, Limits};
use tokio::time::Instant;

use super::{ApiClient, ClientError, Endpoint};
use crate::api::views::ChangeView;

const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// How long the engine may be away, for a restart, before the reader is told.
const PATIENCE: Duration = Duration::from_secs(15);

/// The engine writes something each 15 s; a feed quiet for longer is dead.
pub(super) const SILENCE: Duration = Duration::from_secs(40);

/// What the feed says.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedEvent {
    Change(ChangeView),
    /// Changes before the next one are not kept any more: read anew what they were about.
    Reset,
}

/// A reader of the change feed. A change may come twice after a reconnect, never out of order.
#[derive(Debug)]
pub struct ChangeFeed {
    client: ApiClient,
    task: Option<TaskRef>,
    /// The number after which to go on; `None`: from now.
    after: Option<u64>,
    connection: Option<Connection>,
    ready: std::collections::VecDeque<FeedEvent>,
}

#[derive(Debug)]
struct Connection {
    response: reqwest::Response,
    decoder: Decoder,
}

impl ChangeFeed {
    pub(super) fn new(client: ApiClient, after: Option<u64>, task: Option<TaskRef>) -> Self {
        Self { client, task, after, connection: None, ready: std::collections::VecDeque::new() }
    }

    /// The number of the last change seen, where any is known.
    pub fn position(&self) -> Option<u64> {
        self.after
    }

    /// Opens the feed, so that what changes from here on is not missed. Without this the first
    /// [`Self::next`] does it.
    pub async fn open(&mut self) -> Result<(), ClientError> {
        if self.connection.is_none() {
            let mut endpoint = Endpoint::from("changes").with_some("task", self.task.as_ref());
            endpoint = endpoint.with_some("after", self.after);
            let response = self.client.open(&endpoint).await?;
            self.connection = Some(Connection { response, decoder: Decoder::new(Limits::default()) });
            // The first block tells where the feed stands, also when nothing has changed since.
            self.receive().await?;
        }
        Ok(())
    }

    /// The next event. Waits for as long as nothing changes; a cut is mended where the reader stood.
    ///
    /// Errors: what the engine refuses, such as an unknown task; `no_engine` and its like after 15 s
    /// without one.
    pub async fn next(&mut self) -> Result<FeedEvent, ClientError> {
        let mut give_up: Option<Instant> = None;
        let mut pause = RETRY_FIRST;
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            let failure = match self.step().await {
                Ok(()) => {
                    give_up = None;
                    pause = RETRY_FIRST;
                    continue;
                }
                Err(failure) => failure,
            };
            self.connection = None;
            let now = Instant::now();
            if !failure.may_pass() || now >= *give_up.get_or_insert(now + PATIENCE) {
                return Err(failure);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_MAX);
            // A restarted engine has another port and another token.
            match self.client.again().await {
                Ok(client) => self.client = client,
                Err(failure) if failure.may_pass() => (), // Told above, if it lasts.
                Err(failure) => return Err(failure),
            }
        }
    }

    async fn step(&mut self) -> Result<(), ClientError> {
        if self.connection.is_none() { self.open().await } else { self.receive().await }
    }

    async fn receive(&mut self) -> Result<(), ClientError> {
        let Self { connection: Some(connection), ready, after, .. } = self else { return Ok(()) };
        let chunk = tokio::time::timeout(SILENCE, connection.response.chunk())
            .await
            .map_err(|_elapsed| {
                ClientError::new("engine_unreachable", "the engine's change feed fell silent")
            })?
            .map_err(|source| ClientError::unreachable("read the change feed", source))?;
        let Some(chunk) = chunk else {
            return Err(ClientError::new("engine_unreachable", "the engine closed the change feed"));
        };
        let mut unreadable = None;
        let pushed = connection.decoder.push(&chunk, &mut |event| match event.event {
            "reset" => ready.push_back(FeedEvent::Reset),
            "message" => match serde_json::from_str::<ChangeView>(event.data) {
                Ok(change) => ready.push_back(FeedEvent::Change(change)),
                Err(source) => unreadable = Some(source),
            },
            _ => (), // A later engine may say more.
        });
        if let Some(source) = unreadable {
            return Err(ClientError::unreadable("change", source));
        }
        pushed.map_err(|fault| ClientError::new("engine_unreadable", fault.to_string()))?;
        if let Ok(seq) = connection.decoder.last_event_id().parse() {
            *after = Some(seq);
        }
        Ok(())
    }
}
