//! What is shown now, what is shown together, and what waits: no desktop is flooded, whatever agents do.

use super::{NoticeKind, Way};

/// Somebody who looks at the task sees the question; if it still waits after this it is said all the same.
pub const ATTENTION_DELAY_MS: i64 = 30_000;
/// What has finished waits so long for others that finish with it.
const GATHER_MS: i64 = 2_000;
/// More questions than this at once are one notice.
const ALONE: usize = 2;
/// Lines in a merged notice.
const LINES: usize = 5;

/// A notice that has not been shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub id: i64,
    pub kind: NoticeKind,
    pub created_at_ms: i64,
    /// The user does not want to be told before this.
    pub snoozed_until_ms: Option<i64>,
    /// Our window has the focus and shows this task.
    pub in_view: bool,
    pub way: Way,
    /// The user muted the task.
    pub muted: bool,
    /// It was put off until the end of the quiet, or came while nobody was there: it is told in the digest.
    pub held: bool,
}

/// The quiet that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hush<'a> {
    /// `None`: it is not quiet.
    pub until_ms: Option<i64>,
    /// Kinds that are told all the same.
    pub urgent: &'a [NoticeKind],
}

/// Why a notice is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The user sees the task already.
    InView,
    Muted,
    Off,
}

impl Reason {
    /// For people.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::InView => "the window shows the task",
            Self::Muted => "the task is muted",
            Self::Off => "notices of this kind are off",
        }
    }
}

/// What to do with the notices that are pending.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Each of these is one notice on the desktop; of several ids, a merged one.
    pub show: Vec<Vec<i64>>,
    pub suppress: Vec<(i64, Reason)>,
    /// Put off until the quiet ends.
    pub hold: Vec<i64>,
    /// When to look again, where nothing changes before.
    pub again_at_ms: Option<i64>,
}

/// How many notices may be shown: five in a burst, then one every twelve seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowance {
    left: f64,
    at_ms: i64,
}

const BURST: f64 = 5.0;
const REFILL_MS: i64 = 12_000;

impl Allowance {
    pub fn new(now_ms: i64) -> Self {
        Self { left: BURST, at_ms: now_ms }
    }

    /// How many there are now.
    pub fn at(&mut self, now_ms: i64) -> usize {
        let passed = now_ms.saturating_sub(self.at_ms).max(0);
        self.left = (self.left + passed as f64 / REFILL_MS as f64).min(BURST);
        self.at_ms = now_ms;
        self.left.max(0.0) as usize
    }

    pub fn take(&mut self, shown: usize) {
        self.left -= shown as f64;
    }
}

/// Decides at `now_ms`, with `allowance` notices to spend.
pub fn plan(pending: &[Pending], hush: Hush<'_>, now_ms: i64, allowance: usize) -> Plan {
    let mut plan = Plan::default();
    let mut again: Option<i64> = None;
    let mut later = |at_ms: i64| again = Some(again.map_or(at_ms, |known| known.min(at_ms)));
    let (mut attention, mut trouble, mut finished) = (Vec::new(), Vec::new(), Vec::new());
    let (mut gathered, mut digest) = (false, Vec::new());
    for notice in pending {
        let unwanted = match notice.way {
            Way::Off => Some(Reason::Off),
            Way::Sound | Way::Silent => notice.muted.then_some(Reason::Muted),
        };
        if let Some(reason) = unwanted {
            plan.suppress.push((notice.id, reason));
            continue;
        }
        if let Some(until) = notice.snoozed_until_ms.filter(|until| *until > now_ms) {
            later(until);
            continue;
        }
        if let Some(until) =
            hush.until_ms.filter(|until| *until > now_ms && !hush.urgent.contains(&notice.kind))
        {
            later(until);
            plan.hold.push(notice.id);
            continue;
        }
        if notice.kind.wants_attention() {
            let due = notice.created_at_ms.saturating_add(ATTENTION_DELAY_MS);
            if notice.in_view && now_ms < due {
                later(due);
            } else if notice.held {
                digest.push(notice.id);
            } else {
                attention.push(notice.id);
            }
        } else if notice.in_view {
            plan.suppress.push((notice.id, Reason::InView));
        } else if notice.held {
            digest.push(notice.id);
        } else if notice.kind == NoticeKind::Finished {
            finished.push(notice.id);
            let due = notice.created_at_ms.saturating_add(GATHER_MS);
            gathered |= due <= now_ms || notice.created_at_ms > now_ms;
            if due > now_ms {
                later(due);
            }
        } else {
            trouble.push(notice.id);
        }
    }
    let mut show: Vec<Vec<i64>> = Vec::new();
    if !digest.is_empty() {
        show.push(digest);
    }
    if attention.len() > ALONE {
        show.push(attention);
    } else {
        show.extend(attention.into_iter().map(|id| vec![id]));
    }
    if !trouble.is_empty() {
        show.push(trouble);
    }
    if gathered {
        show.push(finished);
    }
    if show.len() > allowance {
        if allowance == 0 {
            later(now_ms.saturating_add(REFILL_MS));
            show.clear();
        } else {
            show = vec![show.concat()];
        }
    }
    plan.show = show;
    plan.again_at_ms = again;
    plan
}

/// One notice among several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown<'a> {
    pub kind: NoticeKind,
    pub title: &'a str,
    pub body: &'a str,
}

/// Title and body of several notices in one, the questions first.
pub fn merged(notices: &[Shown<'_>]) -> (String, String) {
    let count = |wanted: &[NoticeKind]| notices.iter().filter(|notice| wanted.contains(&notice.kind)).count();
    let tasks = |count: usize| if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") };
    let waiting = count(&[NoticeKind::Waiting]);
    let counts = [
        (waiting, if waiting == 1 { "needs you" } else { "need you" }),
        (count(&[NoticeKind::Failed]), "failed"),
        (count(&[NoticeKind::Lost]), "lost"),
        (count(&[NoticeKind::Unconfirmed]), "not heard of"),
        (count(&[NoticeKind::Finished]), "finished"),
    ];
    let paused = count(&[NoticeKind::Paused]);
    let mut said: Vec<String> = Vec::new();
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        said.push(if said.is_empty() {
            format!("{} {what}", tasks(count))
        } else {
            format!("{count} {what}")
        });
    }
    match count(&[NoticeKind::SignIn]) {
        0 => {}
        1 => said.push("1 agent needs a sign-in".to_owned()),
        more => said.push(format!("{more} agents need a sign-in")),
    }
    match paused {
        0 => {}
        1 => said.push("1 receiver of callbacks paused".to_owned()),
        more => said.push(format!("{more} receivers of callbacks paused")),
    }
    let mut first: Vec<&Shown<'_>> = notices.iter().collect();
    first.sort_by_key(|notice| !notice.kind.wants_attention());
    let mut lines: Vec<String> =
        first.iter().take(LINES).map(|notice| format!("{}: {}", notice.title, notice.body)).collect();
    if first.len() > LINES {
        lines.push(format!("and {} more", first.len() - LINES));
    }
    (said.join(", "), lines.join("\n"))
}
