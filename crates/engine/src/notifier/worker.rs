//! The worker: reads rows, asks what to do, shows it, and writes the outcome. It alone talks to the desktop.
//!
//! What wants attention is shown at least once (recorded after), the rest at most once (recorded before).

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::tz::TimeZone;
use taskbell_core::ids::TaskRef;
use taskbell_core::notice::{self, Allowance, Hush, NoticeKind, Pending, Shown, Urgency, Way};
use tokio::sync::{mpsc, oneshot};

use super::desktop::{Bubble, Desktop, OnScreen, Signal};
use super::{NoticeEvent, Notices, Notifier};
use crate::parts::Parts;
use crate::rehearsal::{self, Place};
use crate::settings;
use crate::store::StoreError;
use crate::store::notices::{self as rows, NoticeOutcome, NoticeRow};

/// How often it is looked whether a task has gone unconfirmed, at the latest.
const PERIOD: Duration = Duration::from_secs(60);
/// Between two passes, so that a busy store does not keep us busy.
const PAUSE: Duration = Duration::from_millis(150);
/// What the button Snooze means.
const SNOOZE: Duration = Duration::from_secs(10 * 60);
/// After sleep all open tasks are read. What that brings is one digest and no burst.
const GATHERS_AFTER_SLEEP_MS: i64 = 4_000;

/// What is on the desktop under one tag.
struct OnDesktop {
    id: u32,
    /// Those of its notices that want attention: it goes when none does any more.
    attention: Vec<i64>,
    task: Option<TaskRef>,
}

/// Runs beside the other workers.
pub struct Worker {
    notifier: Notifier,
    notices: Notices,
    desktop: Desktop,
    asked: mpsc::Receiver<oneshot::Sender<Result<i64, StoreError>>>,
    on_desktop: HashMap<String, OnDesktop>,
    allowance: Allowance,
    /// Since then nothing kept us from hearing: no start, no sleep.
    heard_since_ms: i64,
    /// Put off until the quiet ends, or what nobody was there to be told of: these are one digest.
    held: HashSet<i64>,
    /// After sleep, until then.
    gathers_until_ms: Option<i64>,
}

/// What the user wants to be told at this moment.
struct Wishes {
    quiet_until_ms: Option<i64>,
    urgent: Vec<NoticeKind>,
    /// Of each pending notice, by id.
    ways: HashMap<i64, Way>,
}

/// What the worker waits for.
enum Next {
    Changed,
    Woken,
    Test(oneshot::Sender<Result<i64, StoreError>>),
    Signal(Signal),
}

impl Worker {
    pub(super) fn new(
        notifier: Notifier,
        notices: Notices,
        asked: mpsc::Receiver<oneshot::Sender<Result<i64, StoreError>>>,
        now_ms: i64,
    ) -> Self {
        Self {
            notifier,
            desktop: Desktop::of(notices.clone()),
            notices,
            asked,
            on_desktop: HashMap::new(),
            allowance: Allowance::new(now_ms),
            heard_since_ms: now_ms,
            held: HashSet::new(),
            gathers_until_ms: None,
        }
    }

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
                Next::Woken => {
                    self.heard_since_ms = self.parts().now_ms();
                    self.gathers_until_ms = Some(self.heard_since_ms.saturating_add(GATHERS_AFTER_SLEEP_MS));
                }
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
        let untold = self.parts().store().write(|context| {
            let untold: Vec<i64> = rows::untold(context.tx)?.iter().map(|row| row.id).collect();
            rows::reopen(context, &untold)?;
            Ok(rows::pending(context.tx)?.iter().map(|row| row.id).collect::<Vec<i64>>())
        });
        // The digest of what happened while nobody was there to be told.
        self.held.extend(untold.await?);
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
        if pending.is_empty() {
            self.held.clear();
            self.close_what_is_over().await?;
            return Ok(None);
        }
        let wishes = self.wishes(&pending, now_ms).await?;
        let in_view = self.notifier.in_view();
        let waiting: Vec<Pending> = pending
            .iter()
            .map(|row| Pending {
                id: row.id,
                kind: row.kind,
                created_at_ms: row.created_at_ms,
                snoozed_until_ms: row.snoozed_until_ms,
                in_view: row.task.is_some() && row.task == in_view,
                way: way_of(&wishes.ways, row),
                muted: row.muted,
                held: self.held.contains(&row.id),
            })
            .collect();
        let gathers = self.gathers_until_ms.filter(|until_ms| now_ms < *until_ms);
        let hush = Hush {
            until_ms: wishes.quiet_until_ms.max(gathers),
            urgent: if wishes.quiet_until_ms.is_some() { &wishes.urgent } else { &[] },
        };
        let plan = notice::plan(&waiting, hush, now_ms, self.allowance.at(now_ms));
        for (id, reason) in plan.suppress {
            self.record(vec![id], NoticeOutcome::Suppressed, Some(reason.sentence().to_owned())).await?;
        }
        self.hold(&pending, &plan.hold, wishes.quiet_until_ms).await?;
        self.allowance.take(plan.show.len());
        for group in plan.show {
            let group: Vec<NoticeRow> =
                pending.iter().filter(|row| group.contains(&row.id)).cloned().collect();
            for row in &group {
                self.held.remove(&row.id);
            }
            self.show(group, &wishes.ways).await?;
        }
        self.close_what_is_over().await?;
        Ok(plan.again_at_ms)
    }

    async fn wishes(&self, pending: &[NoticeRow], now_ms: i64) -> Result<Wishes, StoreError> {
        let subjects: Vec<_> = pending
            .iter()
            .map(|row| (row.id, row.kind, row.task.as_ref().map(|task| task.agent.clone())))
            .collect();
        let read = move |connection: &rusqlite::Connection| {
            let mut ways = HashMap::new();
            for (id, kind, agent) in subjects {
                ways.insert(id, settings::notice_way(connection, kind, agent.as_ref())?);
            }
            Ok(Wishes {
                quiet_until_ms: settings::quiet(connection)?.until(now_ms, &TimeZone::system()),
                urgent: settings::urgent_kinds(connection)?,
                ways,
            })
        };
        self.parts().store().read(read).await
    }

    /// These wait for the end of the quiet, and say so.
    async fn hold(
        &mut self,
        pending: &[NoticeRow],
        ids: &[i64],
        quiet_until_ms: Option<i64>,
    ) -> Result<(), StoreError> {
        self.held.extend(ids);
        let Some(until_ms) = quiet_until_ms else { return Ok(()) };
        let why = format!("quiet until {}", notice::wall_clock(until_ms, &TimeZone::system()));
        let unsaid = |row: &&NoticeRow| ids.contains(&row.id) && row.detail.as_deref() != Some(&why);
        let unsaid: Vec<i64> = pending.iter().filter(unsaid).map(|row| row.id).collect();
        if unsaid.is_empty() {
            return Ok(());
        }
        self.parts().store().write(move |context| rows::hold(context, &unsaid, &why)).await
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
    async fn show(&mut self, group: Vec<NoticeRow>, ways: &HashMap<i64, Way>) -> Result<(), StoreError> {
        let (attention, once): (Vec<&NoticeRow>, Vec<&NoticeRow>) =
            group.iter().partition(|row| row.kind.wants_attention());
        let ids = |rows: &[&NoticeRow]| rows.iter().map(|row| row.id).collect::<Vec<i64>>();
        let (attention, once) = (ids(&attention), ids(&once));
        if !once.is_empty() {
            let begun = once.clone();
            self.parts().store().write(move |context| rows::begin_showing(context, &begun)).await?;
        }
        let mut bubble = bubble_of(&group, ways);
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
        self.show(vec![row], &HashMap::new()).await?;
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

fn way_of(ways: &HashMap<i64, Way>, row: &NoticeRow) -> Way {
    ways.get(&row.id).copied().unwrap_or_else(|| row.kind.usual_way())
}

fn bubble_of(group: &[NoticeRow], ways: &HashMap<i64, Way>) -> Bubble {
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
        silent: group.iter().all(|row| way_of(ways, row) != Way::Sound),
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
        (NoticeKind::Paused, None) => "taskbell-paused".to_owned(),
        (_, None) => "taskbell-test".to_owned(),
    }
}
