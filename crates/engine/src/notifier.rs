//! Shows what is to be told, and records what came of it.
//!
//! A worker on a task of its own: a desktop that hangs holds up nothing but further notices. It reads rows,
//! asks `taskbell_core::notice` what to do, shows it, and writes the outcome. What wants attention is shown
//! at least once (recorded after), the rest at most once (recorded before).
//!
//! Clicks and buttons come out as [`NoticeEvent`]s; what they open is the window's business.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use taskbell_core::ids::TaskRef;
use taskbell_core::notice::{self, Allowance, NoticeKind, Pending, Shown, Urgency};
use tokio::sync::{Notify, broadcast, mpsc, oneshot};

use crate::parts::Parts;
use crate::rehearsal::{self, Place};
use crate::store::StoreError;
use crate::store::notices::{self as rows, NoticeOutcome, NoticeRow};
use crate::store::tasks::find;

#[cfg(target_os = "linux")]
mod freedesktop;
mod other_way;

pub use other_way::{OtherWay, PlainNotice};

/// A focus that is not renewed is over: the page may be gone.
const FOCUS_LASTS: Duration = Duration::from_secs(10);
/// How often it is looked whether a task has gone unconfirmed, at the latest.
const PERIOD: Duration = Duration::from_secs(60);
/// Between two passes, so that a busy store does not keep us busy.
const PAUSE: Duration = Duration::from_millis(150);
/// What the button Snooze means.
const SNOOZE: Duration = Duration::from_secs(10 * 60);
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

/// One notice for the desktop.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bubble {
    /// A newer one under the same tag takes its place.
    tag: String,
    title: String,
    body: String,
    urgency: Urgency,
    silent: bool,
    /// Stays until it is closed.
    stays: bool,
    can_snooze: bool,
    /// The one it takes the place of.
    replaces: Option<u32>,
}

/// Why a notice was not shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum ShowError {
    #[error("there is no desktop session: {0}")]
    NoDesktop(String),
    #[error("no notification service runs")]
    Absent,
    #[error("the notification service did not answer within 2 s")]
    Hung,
    #[error("the notification service does not let us: {0}")]
    NotPermitted(String),
    #[error("the notification service refused: {0}")]
    Refused(String),
}

impl ShowError {
    fn outcome(&self) -> NoticeOutcome {
        match self {
            Self::NoDesktop(_) => NoticeOutcome::NoDesktop,
            Self::NotPermitted(_) => NoticeOutcome::NotPermitted,
            Self::Absent | Self::Hung | Self::Refused(_) => NoticeOutcome::Failed,
        }
    }
}

/// What the desktop says.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Signal {
    Action {
        id: u32,
        action: String,
    },
    Closed {
        id: u32,
    },
    /// Another service, or none: what was shown is gone.
    Restarted,
}

/// A notice that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OnScreen {
    id: u32,
    /// What is less certain of it than of others.
    detail: Option<String>,
}

/// The other way tells no errors.
const UNCERTAIN: &str = "handed to the system, which does not tell whether it shows it";

enum Desktop {
    /// Nobody shows notices here.
    Absent,
    #[cfg(target_os = "linux")]
    Freedesktop(freedesktop::Freedesktop, Option<OtherWay>),
    #[cfg(not(target_os = "linux"))]
    Other(OtherWay),
}

impl Desktop {
    #[cfg(target_os = "linux")]
    fn of(notices: Notices) -> Self {
        let (address, other) = match notices {
            Notices::Recorded => return Self::Absent,
            Notices::Shown => (None, None),
            Notices::ShownOn(address) => (Some(address), None),
            Notices::ShownOr { address, other } => (address, Some(other)),
        };
        Self::Freedesktop(freedesktop::Freedesktop::new(address), other)
    }

    #[cfg(not(target_os = "linux"))]
    fn of(notices: Notices) -> Self {
        match notices {
            Notices::ShownOr { other, .. } => Self::Other(other),
            Notices::Recorded | Notices::Shown | Notices::ShownOn(_) => Self::Absent,
        }
    }

    fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    async fn show(&mut self, bubble: &Bubble) -> Result<OnScreen, ShowError> {
        match self {
            Self::Absent => Err(ShowError::NoDesktop("this engine has no window".to_owned())),
            #[cfg(target_os = "linux")]
            Self::Freedesktop(desktop, other) => match (desktop.show(bubble).await, other) {
                (Ok(id), _) => Ok(OnScreen { id, detail: None }),
                // Only where it is certain that nothing was shown: what hung may still show it.
                (Err(error @ (ShowError::NoDesktop(_) | ShowError::Absent)), Some(other)) => {
                    let id = other.show(bubble).await?;
                    Ok(OnScreen { id, detail: Some(format!("{error}; {UNCERTAIN}")) })
                }
                (Err(error), _) => Err(error),
            },
            #[cfg(not(target_os = "linux"))]
            Self::Other(other) => {
                let id = other.show(bubble).await?;
                Ok(OnScreen { id, detail: Some(UNCERTAIN.to_owned()) })
            }
        }
    }

    async fn close(&mut self, id: u32) {
        match self {
            Self::Absent => {}
            #[cfg(not(target_os = "linux"))]
            Self::Other(_) => tracing::debug!(id, "a notice is not taken back here"),
            #[cfg(target_os = "linux")]
            Self::Freedesktop(desktop, _) => desktop.close(id).await,
        }
    }

    /// Never, where nothing is heard of notices.
    async fn next_signal(&mut self) -> Signal {
        match self {
            Self::Absent => std::future::pending().await,
            #[cfg(not(target_os = "linux"))]
            Self::Other(other) => other.next_signal().await,
            #[cfg(target_os = "linux")]
            Self::Freedesktop(desktop, None) => desktop.next_signal().await,
            #[cfg(target_os = "linux")]
            Self::Freedesktop(desktop, Some(other)) => tokio::select! {
                signal = desktop.next_signal() => signal,
                signal = other.next_signal() => signal,
            },
        }
    }
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
        let worker = Worker {
            notifier: notifier.clone(),
            desktop: Desktop::of(notices.clone()),
            notices,
            asked,
            on_desktop: HashMap::new(),
            allowance: Allowance::new(now_ms),
            heard_since_ms: now_ms,
        };
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

/// What is on the desktop under one tag.
struct OnDesktop {
    id: u32,
    /// Those of its notices that want attention: it goes when none does any more.
    attention: Vec<i64>,
    task: Option<TaskRef>,
}

/// The worker. It alone talks to the desktop.
pub struct Worker {
    notifier: Notifier,
    notices: Notices,
    desktop: Desktop,
    asked: mpsc::Receiver<oneshot::Sender<Result<i64, StoreError>>>,
    on_desktop: HashMap<String, OnDesktop>,
    allowance: Allowance,
    /// Since then nothing kept us from hearing: no start, no sleep.
    heard_since_ms: i64,
}

/// What the worker waits for.
enum Next {
    Changed,
    Woken,
    Test(oneshot::Sender<Result<i64, StoreError>>),
    Signal(Signal),
}

impl Worker {
    /// Runs for ever.
    pub async fn run(mut self) {
        let mut changes = self.parts().store().doorbell();
        let mut wakes = self.parts().wakes();
        if let Err(error) = self.start().await {
            tracing::warn!(%error, "what was to be told before the start was not looked through");
        }
        loop {
            let again = match self.run_once().await {
                Ok(again_at_ms) => self.until(again_at_ms),
                Err(error) => {
                    tracing::warn!(%error, "notices were not looked through");
                    PERIOD
                }
            };
            tokio::time::sleep(PAUSE).await;
            let notifier = self.notifier.clone();
            let next = tokio::select! {
                rung = changes.changed() => match rung {
                    Ok(()) => Next::Changed,
                    // The store is gone, and so are we.
                    Err(_) => return,
                },
                Ok(()) = wakes.changed() => Next::Woken,
                () = notifier.0.bell.notified() => Next::Changed,
                Some(reply) = self.asked.recv() => Next::Test(reply),
                signal = self.desktop.next_signal() => Next::Signal(signal),
                () = tokio::time::sleep(again) => Next::Changed,
            };
            match next {
                Next::Changed => {}
                Next::Woken => self.heard_since_ms = self.parts().now_ms(),
                Next::Test(reply) => {
                    let shown = self.show_test().await;
                    // Who asked may have gone.
                    let _ = reply.send(shown);
                }
                Next::Signal(signal) => self.handle(signal).await,
            }
        }
    }

    fn parts(&self) -> &Parts {
        &self.notifier.0.parts
    }

    fn until(&self, again_at_ms: Option<i64>) -> Duration {
        let left_ms = again_at_ms.map_or(i64::MAX, |at_ms| at_ms.saturating_sub(self.parts().now_ms()));
        Duration::from_millis(u64::try_from(left_ms.max(0)).unwrap_or(0)).min(PERIOD)
    }

    /// After a start: what was cut off is settled, and what nobody could be told is one digest.
    async fn start(&mut self) -> Result<(), StoreError> {
        self.parts().store().write(rows::settle_interrupted).await?;
        if self.desktop.is_absent() {
            return Ok(());
        }
        let settled = self.parts().store().read(rows::settled).await?;
        self.withdraw(settled).await?;
        let waiting = |connection: &rusqlite::Connection| {
            let mut all = rows::untold(connection)?;
            all.extend(rows::pending(connection)?);
            Ok(all)
        };
        let now_ms = self.parts().now_ms();
        let due = self.parts().store().read(waiting).await?;
        let due: Vec<NoticeRow> =
            due.into_iter().filter(|row| row.snoozed_until_ms.is_none_or(|until| until <= now_ms)).collect();
        if !due.is_empty() {
            self.allowance.take(1);
            self.show(due).await?;
        }
        Ok(())
    }

    /// Without a window of its own this engine shows notices while another program's is attached.
    async fn look_for_windows(&mut self) -> Result<(), StoreError> {
        if self.notices != Notices::Recorded {
            return Ok(());
        }
        let attended = self.notifier.0.attached.load(Ordering::SeqCst) > 0;
        if attended && self.desktop.is_absent() {
            self.desktop = Desktop::of(Notices::Shown);
            self.start().await?;
        } else if !attended && !self.desktop.is_absent() {
            self.clear_desktop().await?;
            self.desktop = Desktop::Absent;
        }
        Ok(())
    }

    /// The last window has gone: nobody would answer the buttons of what is on the screen. What still waits is told
    /// to the next one.
    async fn clear_desktop(&mut self) -> Result<(), StoreError> {
        let mut gone = Vec::new();
        for (_, shown) in std::mem::take(&mut self.on_desktop) {
            self.desktop.close(shown.id).await;
            gone.extend(shown.attention);
        }
        let open = self.parts().store().read(rows::on_desktop).await?;
        let untold = open.iter().map(|row| row.id).filter(|id| gone.contains(id)).collect();
        self.record(untold, NoticeOutcome::NoDesktop, Some("taken back when the window closed".to_owned()))
            .await
    }

    /// One pass. When to look again, where nothing changes before.
    pub async fn run_once(&mut self) -> Result<Option<i64>, StoreError> {
        self.look_for_windows().await?;
        let now_ms = self.parts().now_ms();
        if now_ms.saturating_sub(self.heard_since_ms) >= notice::SILENCE_MS {
            self.note_silence(now_ms).await?;
        }
        let (pending, settled) = self
            .parts()
            .store()
            .read(|connection| Ok((rows::pending(connection)?, rows::settled(connection)?)))
            .await?;
        let pending: Vec<NoticeRow> = pending.into_iter().filter(|row| !settled.contains(&row.id)).collect();
        self.withdraw(settled).await?;
        if !pending.is_empty() {
            rehearsal::reach(Place::BeforeNotice);
        }
        if self.desktop.is_absent() {
            let ids: Vec<i64> = pending.iter().map(|row| row.id).collect();
            self.record(ids, NoticeOutcome::NoDesktop, None).await?;
            return Ok(None);
        }
        let in_view = self.notifier.in_view();
        let wishes: Vec<Pending> = pending
            .iter()
            .map(|row| Pending {
                id: row.id,
                kind: row.kind,
                created_at_ms: row.created_at_ms,
                snoozed_until_ms: row.snoozed_until_ms,
                in_view: row.task.is_some() && row.task == in_view,
            })
            .collect();
        let plan = notice::plan(&wishes, now_ms, self.allowance.at(now_ms));
        let seen = "the window shows the task".to_owned();
        self.record(plan.suppress, NoticeOutcome::Suppressed, Some(seen)).await?;
        self.allowance.take(plan.show.len());
        for group in plan.show {
            let group: Vec<NoticeRow> =
                pending.iter().filter(|row| group.contains(&row.id)).cloned().collect();
            self.show(group).await?;
        }
        self.close_what_is_over().await?;
        Ok(plan.again_at_ms)
    }

    async fn note_silence(&mut self, now_ms: i64) -> Result<(), StoreError> {
        let before_ms = now_ms.saturating_sub(notice::SILENCE_MS);
        let new = self.parts().store().write(move |context| rows::note_silence(context, before_ms)).await?;
        if new > 0 {
            tracing::warn!(tasks = new, "nothing was heard of tasks for 15 min");
        }
        Ok(())
    }

    async fn withdraw(&mut self, ids: Vec<i64>) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        self.parts().store().write(move |context| rows::withdraw(context, &ids)).await
    }

    async fn record(
        &mut self,
        ids: Vec<i64>,
        outcome: NoticeOutcome,
        detail: Option<String>,
    ) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        let record = move |context: &mut crate::store::WriteContext<'_>| {
            rows::record(context, &ids, outcome, detail.as_deref())
        };
        self.parts().store().write(record).await
    }

    /// Shows these as one and records what came of it.
    async fn show(&mut self, group: Vec<NoticeRow>) -> Result<(), StoreError> {
        let (attention, once): (Vec<&NoticeRow>, Vec<&NoticeRow>) =
            group.iter().partition(|row| row.kind.wants_attention());
        let ids = |rows: &[&NoticeRow]| rows.iter().map(|row| row.id).collect::<Vec<i64>>();
        let (attention, once) = (ids(&attention), ids(&once));
        if !once.is_empty() {
            let begun = once.clone();
            self.parts().store().write(move |context| rows::begin_showing(context, &begun)).await?;
        }
        let mut bubble = bubble_of(&group);
        bubble.replaces = self.on_desktop.get(&bubble.tag).map(|shown| shown.id);
        match self.desktop.show(&bubble).await {
            Ok(OnScreen { id, detail: uncertain }) => {
                let task = match group.as_slice() {
                    [row] => row.task.clone(),
                    _ => None,
                };
                let shown = OnDesktop { id, attention: attention.clone(), task };
                self.on_desktop.insert(bubble.tag, shown);
                let (rest, detail) = match group.len() {
                    1 => (NoticeOutcome::Shown, uncertain),
                    count => (NoticeOutcome::Merged, Some(format!("one of {count} in one notice"))),
                };
                self.record(attention, NoticeOutcome::Shown, detail.clone()).await?;
                self.record(once, rest, detail).await
            }
            Err(error) => {
                tracing::warn!(%error, "a notice was not shown");
                let detail = error.to_string();
                self.record(attention, error.outcome(), Some(detail.clone())).await?;
                self.record(once, error.outcome(), Some(detail)).await
            }
        }
    }

    async fn show_test(&mut self) -> Result<i64, StoreError> {
        let id = self.parts().store().write(rows::insert_test).await?;
        let row = self.parts().store().read(move |connection| rows::get(connection, id)).await?;
        self.show(vec![row]).await?;
        Ok(id)
    }

    /// Takes off the desktop what nothing waits for any more.
    async fn close_what_is_over(&mut self) -> Result<(), StoreError> {
        if self.on_desktop.values().all(|shown| shown.attention.is_empty()) {
            return Ok(());
        }
        let open = self.parts().store().read(rows::on_desktop).await?;
        let over: Vec<String> = self
            .on_desktop
            .iter()
            .filter(|(_, shown)| {
                !shown.attention.is_empty() && !open.iter().any(|row| shown.attention.contains(&row.id))
            })
            .map(|(tag, _)| tag.clone())
            .collect();
        for tag in over {
            if let Some(shown) = self.on_desktop.remove(&tag) {
                self.desktop.close(shown.id).await;
            }
        }
        Ok(())
    }

    async fn handle(&mut self, signal: Signal) {
        match signal {
            Signal::Restarted => self.on_desktop.clear(),
            Signal::Closed { id } => self.on_desktop.retain(|_, shown| shown.id != id),
            Signal::Action { id, action } => {
                let Some(shown) = self.on_desktop.values().find(|shown| shown.id == id) else { return };
                let task = shown.task.clone();
                match (action.as_str(), task) {
                    ("snooze", Some(task)) => match self.notifier.snooze(&task, SNOOZE).await {
                        Ok(_) => self.tell(NoticeEvent::Snoozed(task)),
                        Err(error) => tracing::warn!(%task, %error, "a notice was not snoozed"),
                    },
                    (_, task) => self.tell(NoticeEvent::Clicked(task)),
                }
            }
        }
    }

    fn tell(&self, event: NoticeEvent) {
        // Without a window nobody listens.
        let _ = self.notifier.0.events.send(event);
    }
}

fn bubble_of(group: &[NoticeRow]) -> Bubble {
    let attention = group.iter().any(|row| row.kind.wants_attention());
    let (tag, title, body) = match group {
        [row] => (tag_of(row), row.title.clone(), row.body.clone()),
        rows => {
            let shown: Vec<Shown<'_>> =
                rows.iter().map(|row| Shown { kind: row.kind, title: &row.title, body: &row.body }).collect();
            let (title, body) = notice::merged(&shown);
            // What waits does not make room for what has merely finished.
            let tag = if attention { "taskbell-waiting" } else { "taskbell-several" };
            (tag.to_owned(), title, body)
        }
    };
    Bubble {
        tag,
        title,
        body,
        urgency: group.iter().map(|row| row.kind.urgency()).fold(Urgency::Low, most_urgent),
        silent: group.iter().all(|row| row.kind.is_silent()),
        stays: attention,
        can_snooze: matches!(group, [row] if row.kind == NoticeKind::Waiting),
        replaces: None,
    }
}

fn most_urgent(one: Urgency, other: Urgency) -> Urgency {
    match (one, other) {
        (Urgency::Critical, _) | (_, Urgency::Critical) => Urgency::Critical,
        (Urgency::Normal, _) | (_, Urgency::Normal) => Urgency::Normal,
        (Urgency::Low, Urgency::Low) => Urgency::Low,
    }
}

/// One tag a task, so that its newest notice takes the place of the one before.
fn tag_of(row: &NoticeRow) -> String {
    match (row.kind, row.task_key) {
        (NoticeKind::SignIn, Some(key)) => format!("taskbell-sign-in-{}", key.0),
        (_, Some(key)) => format!("taskbell-{}", key.0),
        (_, None) => "taskbell-test".to_owned(),
    }
}
