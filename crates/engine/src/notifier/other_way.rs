//! Notices that the program with the window shows by means of its own: where there is no D-Bus, or nobody on it.
//!
//! Such a way tells no errors, knows no urgency, and takes nothing back. It says what users press.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, broadcast};

use super::desktop::{Bubble, ShowError, Signal};

/// How long it may take to hand a notice over.
const LIMIT: Duration = Duration::from_secs(2);
/// Apart from the numbers that a D-Bus service gives, and within what an `i32` holds.
const FIRST_ID: u32 = 1 << 30;
/// Presses kept until they are looked at; they come from a user's hand.
const PRESSES: usize = 16;

/// A notice as any system can show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainNotice {
    /// Named again by [`OtherWay::press`].
    pub id: u32,
    pub title: String,
    pub body: String,
    /// It may have the button Snooze.
    pub can_snooze: bool,
}

type Show = dyn Fn(PlainNotice, &OtherWay) -> Result<(), String> + Send + Sync;

/// Another way to show notices. Clones share it.
#[derive(Clone)]
pub struct OtherWay(Arc<Inner>);

struct Inner {
    show: Box<Show>,
    next_id: AtomicU32,
    presses: broadcast::Sender<(u32, String)>,
    heard: Mutex<broadcast::Receiver<(u32, String)>>,
    bell: Notify,
}

impl OtherWay {
    /// `show` hands a notice over, and is given where to tell what is pressed. It may block its thread.
    /// Errors: why it cannot.
    pub fn new(show: impl Fn(PlainNotice, &Self) -> Result<(), String> + Send + Sync + 'static) -> Self {
        let (presses, heard) = broadcast::channel(PRESSES);
        Self(Arc::new(Inner {
            show: Box::new(show),
            next_id: AtomicU32::new(FIRST_ID),
            presses,
            heard: Mutex::new(heard),
            bell: Notify::new(),
        }))
    }

    /// The user pressed a button of a notice, `snooze`, or the notice itself, any other word.
    pub fn press(&self, id: u32, action: &str) {
        // We keep a receiver.
        let _ = self.0.presses.send((id, action.to_owned()));
        self.0.bell.notify_one();
    }

    pub(super) async fn show(&self, bubble: &Bubble) -> Result<u32, ShowError> {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let notice = PlainNotice {
            id,
            title: bubble.title.clone(),
            body: bubble.body.clone(),
            can_snooze: bubble.can_snooze,
        };
        let way = self.clone();
        let handed = tokio::task::spawn_blocking(move || (way.0.show)(notice, &way));
        match tokio::time::timeout(LIMIT, handed).await {
            Ok(Ok(handed)) => handed.map(|()| id).map_err(ShowError::Refused),
            Ok(Err(_panic)) => Err(ShowError::Refused("it could not be handed over".to_owned())),
            Err(_elapsed) => Err(ShowError::Hung),
        }
    }

    pub(super) async fn next_signal(&self) -> Signal {
        loop {
            let heard = self.0.heard.lock().unwrap_or_else(PoisonError::into_inner).try_recv();
            match heard {
                Ok((id, action)) => return Signal::Action { id, action },
                // The newest count.
                Err(broadcast::error::TryRecvError::Lagged(_)) => (),
                Err(_empty) => self.0.bell.notified().await,
            }
        }
    }
}

impl std::fmt::Debug for OtherWay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OtherWay")
    }
}

impl PartialEq for OtherWay {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for OtherWay {}
