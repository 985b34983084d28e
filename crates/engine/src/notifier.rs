//! Shows what is to be told, and records what came of it.
//!
//! A worker on a task of its own: a desktop that hangs holds up nothing but further notices.
//!
//! | question | room |
//! |---|---|
//! | what to do with which notice, and when | [`worker`], by `taskbell_core::notice` |
//! | where it is shown, and what came of it | [`desktop`] |
//! | over D-Bus | `freedesktop` |
//! | where nobody there shows notices | [`other_way`] |
//!
//! Clicks and buttons come out as [`NoticeEvent`]s; what they open is the window's business.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use taskbell_core::ids::TaskRef;
use tokio::sync::{Notify, broadcast, mpsc, oneshot};

use crate::parts::Parts;
use crate::store::StoreError;
use crate::store::notices::{self as rows, NoticeRow};
use crate::store::tasks::find;

mod desktop;
#[cfg(target_os = "linux")]
mod freedesktop;
mod other_way;
mod worker;

pub use other_way::{OtherWay, PlainNotice};
pub use worker::Worker;

/// A focus that is not renewed is over: the page may be gone.
const FOCUS_LASTS: Duration = Duration::from_secs(10);
/// How long somebody waits for a test notice.
const TEST_WAITS: Duration = Duration::from_secs(10);

/// Whether this engine shows notices.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Notices {
    /// There is no window that a click could open; while one is attached, as [`Self::Shown`].
    #[default]
    Recorded,
    /// On the desktop of this session.
    Shown,
    /// The same, and another way where that desktop has nobody who shows notices, or is none that we can talk to;
    /// on systems without D-Bus the other way alone.
    ShownOr {
        /// Of the desktop's bus; `None`: the session's.
        address: Option<String>,
        other: OtherWay,
    },
    /// On the desktop of the session with that D-Bus address.
    ShownOn(String),
}

/// What the user did with a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoticeEvent {
    /// Open the window on that task; of several or none, on what waits.
    Clicked(Option<TaskRef>),
    /// Done already; told so that a page can say it.
    Snoozed(TaskRef),
}

/// What the rest of the engine has of the notifier. Clones share it.
#[derive(Clone)]
pub struct Notifier(Arc<Inner>);

struct Inner {
    parts: Parts,
    focus: Mutex<Option<(TaskRef, Instant)>>,
    /// The focus or a row that makes no change is another.
    bell: Notify,
    events: broadcast::Sender<NoticeEvent>,
    /// Windows of other programs that are attached.
    attached: AtomicUsize,
    tests: mpsc::Sender<oneshot::Sender<Result<i64, StoreError>>>,
}

impl Notifier {
    /// The handle and the worker, which is to be run.
    pub fn new(parts: Parts, notices: Notices) -> (Self, Worker) {
        let (events, _) = broadcast::channel(64);
        let (tests, asked) = mpsc::channel(4);
        let now_ms = parts.now_ms();
        let notifier = Self(Arc::new(Inner {
            parts,
            focus: Mutex::default(),
            bell: Notify::new(),
            events,
            attached: AtomicUsize::new(0),
            tests,
        }));
        let worker = Worker::new(notifier.clone(), notices, asked, now_ms);
        (notifier, worker)
    }

    /// What users do with notices, from now on.
    pub fn events(&self) -> broadcast::Receiver<NoticeEvent> {
        self.0.events.subscribe()
    }

    /// A window of another program is there until what is answered is dropped. While one is, an engine that has
    /// none of its own shows notices on the session's desktop, first those that nobody could be told.
    pub fn attend(&self) -> Attendance {
        self.0.attached.fetch_add(1, Ordering::SeqCst);
        self.0.bell.notify_one();
        Attendance(self.clone())
    }

    /// Our window has the focus and shows this task, or has it not. Holds for 10 s.
    pub fn set_focus(&self, task: Option<TaskRef>) {
        *self.0.focus.lock().unwrap_or_else(PoisonError::into_inner) =
            task.map(|task| (task, Instant::now() + FOCUS_LASTS));
        self.0.bell.notify_one();
    }

    /// Settings that notices hang on may be others.
    pub fn look_again(&self) {
        self.0.bell.notify_one();
    }

    fn in_view(&self) -> Option<TaskRef> {
        let focus = self.0.focus.lock().unwrap_or_else(PoisonError::into_inner);
        focus.as_ref().filter(|(_, until)| *until > Instant::now()).map(|(task, _)| task.clone())
    }

    /// Shows the test notice; the row with its outcome.
    pub async fn show_test(&self) -> Result<NoticeRow, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.0.tests.send(reply).await.map_err(|_| StoreError::Stopped)?;
        let id = match tokio::time::timeout(TEST_WAITS, answer).await {
            Ok(Ok(id)) => id?,
            Ok(Err(_)) => return Err(StoreError::Stopped),
            Err(_elapsed) => return Err(StoreError::Late),
        };
        self.0.parts.store().read(move |connection| rows::get(connection, id)).await
    }

    /// Says it again after `pause`. False: the task does not wait.
    pub async fn snooze(&self, task: &TaskRef, pause: Duration) -> Result<bool, StoreError> {
        let pause_ms = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
        let until_ms = self.0.parts.now_ms().saturating_add(pause_ms);
        let task = task.clone();
        let snooze = move |context: &mut crate::store::WriteContext<'_>| match find(context.tx, &task)? {
            Some(row) => rows::snooze(context, row.key, until_ms),
            None => Ok(false),
        };
        self.0.parts.store().write(snooze).await
    }
}

/// A window that is attached, for as long as it is kept.
pub struct Attendance(Notifier);

impl Drop for Attendance {
    fn drop(&mut self) {
        let Inner { attached, bell, .. } = &*self.0.0;
        attached.fetch_sub(1, Ordering::SeqCst);
        bell.notify_one();
    }
}
