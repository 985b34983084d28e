//! The one channel to the page: the change feed, and what the window is asked to show.
//!
//! A thousand changes a second are twenty messages a second to the page: the first after a pause leaves at
//! once, what follows is gathered. The reader of the feed waits while a batch is full, so a page that is
//! behind holds up nobody but itself.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use taskbell_engine::api_client::ClientError;
use taskbell_engine::api_door::{ApiDoor, DoorEvent, DoorFeed};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

/// Between two messages.
pub const BEAT: Duration = Duration::from_millis(50);

/// Changes in one message.
const BATCH: usize = 1_000;

/// After the engine was lost.
const AGAIN: Duration = Duration::from_secs(1);

/// What the page is told.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Message {
    /// Changes in order, each as the API streams it.
    Changes {
        changes: Vec<Box<RawValue>>,
    },
    /// Changes are missing: read everything again.
    Reset,
    Link {
        link: Link,
    },
    /// The engine that was listened to has ended, and this program runs one now.
    TookOver,
    /// The user wants to see this task.
    OpenTask {
        task: String,
    },
    /// The user wants to watch a task: the form, filled in as far as it is known.
    WatchTask {
        agent: Option<String>,
        task: Option<String>,
    },
    /// A sentence for the user.
    Say {
        text: String,
    },
}

/// How the feed stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    Live,
    Lost,
}

/// The page is gone.
pub struct Gone;

/// Tells the page what changes after a number, for as long as it listens. An engine that was lost is looked
/// for again.
pub async fn run(door: ApiDoor, mut after: Option<u64>, tell: impl Fn(Message) -> Result<(), Gone>) {
    loop {
        let cause = match door.changes(after).await {
            Ok(feed) => {
                if tell(Message::Link { link: Link::Live }).is_err() {
                    return;
                }
                match relay(feed, &mut after, &tell).await {
                    Ok(cause) => cause,
                    Err(Gone) => return,
                }
            }
            Err(cause) => cause,
        };
        tracing::warn!(code = cause.code, "the change feed was lost: {cause}");
        if tell(Message::Link { link: Link::Lost }).is_err() {
            return;
        }
        sleep(AGAIN).await;
    }
}

/// Passes one feed on until it ends.
async fn relay(
    mut feed: DoorFeed,
    after: &mut Option<u64>,
    tell: &impl Fn(Message) -> Result<(), Gone>,
) -> Result<ClientError, Gone> {
    let (queue, mut events) = mpsc::channel(BATCH);
    let reader = tokio::spawn(async move {
        loop {
            let event = match feed.next().await {
                Ok(event) => event,
                Err(cause) => return Some(cause),
            };
            // The page is gone.
            if queue.send(event).await.is_err() {
                return None;
            }
        }
    });
    let reader = AbortOnDrop(reader);
    while let Some(first) = events.recv().await {
        let beat = Instant::now() + BEAT;
        for message in gather(first, &mut events, after) {
            tell(message)?;
        }
        // What came meanwhile goes with the next one.
        tokio::time::sleep_until(beat).await;
    }
    let cause = reader.ended().await;
    Ok(cause.unwrap_or_else(|| ClientError::new("engine_stopped", "the change feed ended")))
}

/// Everything that waits, in as few messages as its order allows.
fn gather(first: DoorEvent, events: &mut mpsc::Receiver<DoorEvent>, after: &mut Option<u64>) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut changes = Vec::new();
    let mut next = Some(first);
    while let Some(event) = next {
        match event {
            DoorEvent::Change { seq, json } => {
                *after = Some(seq);
                changes.push(json);
            }
            // What came before it is read again with everything else.
            DoorEvent::Reset => {
                changes.clear();
                messages.clear();
                messages.push(Message::Reset);
            }
        }
        next = if changes.len() < BATCH { events.try_recv().ok() } else { None };
    }
    if !changes.is_empty() {
        messages.push(Message::Changes { changes });
    }
    messages
}

struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> AbortOnDrop<Option<T>> {
    async fn ended(mut self) -> Option<T> {
        let end = Instant::now() + AGAIN;
        timeout_at(end, &mut self.0).await.ok().and_then(Result::ok).flatten()
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn change(seq: u64) -> DoorEvent {
        DoorEvent::Change { seq, json: RawValue::from_string(seq.to_string()).unwrap() }
    }

    fn gathered(events: Vec<DoorEvent>) -> (Vec<String>, Option<u64>) {
        let (queue, mut rest) = mpsc::channel(BATCH * 2);
        let mut events = events.into_iter();
        let first = events.next().unwrap();
        for event in events {
            queue.try_send(event).unwrap();
        }
        let mut after = None;
        let messages = gather(first, &mut rest, &mut after);
        (messages.iter().map(|message| serde_json::to_string(message).unwrap()).collect(), after)
    }

    #[test]
    fn what_waits_is_one_message_with_the_changes_as_they_were() {
        let (messages, after) = gathered(vec![change(3), change(4), change(7)]);
        assert_eq!(messages, [r#"{"type":"changes","changes":[3,4,7]}"#]);
        assert_eq!(after, Some(7), "a feed that is opened anew begins there");
    }

    #[test]
    fn a_reset_comes_before_the_changes_after_it_and_swallows_those_before() {
        let (messages, _) = gathered(vec![change(1), DoorEvent::Reset, change(9)]);
        assert_eq!(messages, [r#"{"type":"reset"}"#, r#"{"type":"changes","changes":[9]}"#]);
    }

    #[test]
    fn a_batch_is_bounded() {
        let many = (0..BATCH as u64 + 5).map(change).collect();
        let (_, after) = gathered(many);
        assert_eq!(after, Some(BATCH as u64 - 1));
    }

    #[test]
    fn messages_read_as_the_page_expects_them() {
        let text = |message: &Message| serde_json::to_string(message).unwrap();
        assert_eq!(text(&Message::Link { link: Link::Lost }), r#"{"type":"link","link":"lost"}"#);
        let open = Message::OpenTask { task: "demo/t-1".to_owned() };
        assert_eq!(text(&open), r#"{"type":"open-task","task":"demo/t-1"}"#);
    }

    #[tokio::test]
    async fn a_real_engine_tells_twenty_messages_a_second_at_most_and_misses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let engine = crate::testing::engine(folder.path()).await;
        let door = engine.door();
        let told = std::sync::Arc::new(Mutex::new(Vec::new()));
        let last = std::sync::Arc::new(AtomicU64::new(0));
        let relay = tokio::spawn({
            let (told, last) = (std::sync::Arc::clone(&told), std::sync::Arc::clone(&last));
            run(door.clone(), Some(0), move |message| {
                if let Message::Changes { changes } = &message {
                    let seqs: Vec<u64> = changes.iter().map(|change| seq_of(change)).collect();
                    last.store(*seqs.last().unwrap(), Ordering::SeqCst);
                    told.lock().unwrap().push((Instant::now(), seqs));
                }
                Ok(())
            })
        });
        let body = br#"{"text":"steps=200 interval=0.005"}"#.to_vec();
        let sent = door.ask("POST", "/api/v1/agents/demo/send", Some(body)).await.unwrap();
        assert_eq!(sent.status, 200, "{}", sent.body);
        crate::testing::wait_until(Duration::from_secs(20), || {
            let told = told.lock().unwrap();
            told.iter().map(|(_, seqs)| seqs.len()).sum::<usize>() > 200
        })
        .await;
        relay.abort();
        engine.stop().await;
        let told = told.lock().unwrap();
        let seqs: Vec<u64> = told.iter().flat_map(|(_, seqs)| seqs.clone()).collect();
        assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "in order, none twice: {seqs:?}");
        // A busy machine delays a message and not the next: what counts is how many there are in all.
        let lasted = told.last().unwrap().0 - told[0].0;
        let most = lasted.as_millis() / BEAT.as_millis() + 2;
        assert!(told.len() as u128 <= most, "{} messages in {lasted:?}", told.len());
    }

    fn seq_of(change: &RawValue) -> u64 {
        serde_json::from_str::<serde_json::Value>(change.get()).unwrap()["seq"].as_u64().unwrap()
    }
}
