//! `follow`: everything that is known of a task, then everything that happens, until it ends.

use clap::Args;
use serde_json::json;
use taskbell_core::ids::TaskRef;
use taskbell_engine::api::views::{ChangeView, TaskDetail, TaskSummary};

use crate::engine::Engine;
use crate::failure::Failure;
use crate::feed::{self, Watcher};
use crate::outcome::{Outcome, Until};
use crate::session::Session;
use crate::term::out::Out;
use crate::words::{self, Clock, Progress};

/// Print what happened to a task and what happens, until it ends
///
/// With --json one line a change: {"seq","at","source","kind",…}. Exit 0 when the task has ended, whatever its
/// end; 8 lost, 10 wrong-identity.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  taskbell follow builder/3f2a9c1e")]
pub struct Follow {
    /// AGENT/TASKID, or a unique prefix
    task: TaskRef,
}

impl Follow {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let engine = session.engine().await?;
        let task = engine.resolve(&self.task).await?;
        follow(session, &engine, &task).await
    }
}

/// Prints until the task has ended, and gives the exit code.
pub async fn follow(session: &Session, engine: &Engine, task: &TaskRef) -> Result<u8, Failure> {
    let out = session.out;
    let mut printer = Printer { out, clock: Clock::system(), progress: Progress::default(), told: 0 };
    let attended = feed::attend(engine, task, Until::Terminal, None, &mut printer).await;
    out.progress("");
    match attended.map_err(feed::told_as_gone)?.outcome {
        Some(ended @ (Outcome::Lost | Outcome::WrongIdentity)) => Ok(ended.exit()),
        Some(_) | None => Ok(0),
    }
}

struct Printer {
    out: Out,
    clock: Clock,
    progress: Progress,
    /// The last number printed: a feed that reconnects may tell a change twice.
    told: u64,
}

impl Printer {
    fn tell_once(&mut self, change: &ChangeView) -> Result<(), Failure> {
        if change.seq <= self.told {
            return Ok(());
        }
        self.told = change.seq;
        self.tell(change)
    }

    fn tell(&mut self, change: &ChangeView) -> Result<(), Failure> {
        if self.out.is_json() {
            return self.out.json(change);
        }
        self.clock = Clock::system();
        let lines = words::change(change, &self.clock, self.out);
        self.out.progress("");
        self.out.lines(lines)
    }
}

impl Watcher for Printer {
    fn began(&mut self, task: &TaskDetail) -> Result<(), Failure> {
        self.progress.began(&task.summary);
        for change in &task.timeline {
            self.tell_once(change)?;
        }
        // The timeline is kept for a while only: what it does not tell any more is told as it is now.
        if !tells(&task.timeline, &task.summary) {
            self.tell(&snapshot(&task.summary, self.told))?;
        }
        Ok(())
    }

    fn changed(&mut self, change: &ChangeView) -> Result<(), Failure> {
        self.progress.changed(change);
        self.tell_once(change)
    }

    fn ticked(&mut self) {
        if self.out.is_live() {
            self.out.progress(&self.progress.line());
        }
    }
}

/// Whether the timeline's last word on the state is the state.
fn tells(timeline: &[ChangeView], task: &TaskSummary) -> bool {
    let last = timeline.iter().rev().find_map(|change| change.body.get("state")?.as_str());
    last == Some(task.state.word())
}

/// The task as it is, in the form of a change; `seq` is the last one told.
fn snapshot(task: &TaskSummary, seq: u64) -> ChangeView {
    let body = json!({ "state": task.state, "rawState": task.raw_state, "title": task.title });
    ChangeView {
        seq,
        at: task.updated_at,
        task: Some(task.task.clone()),
        agent: Some(task.agent.clone()),
        source: task.last_confirmed.as_ref().map_or_else(|| "manual".to_owned(), |last| last.by.clone()),
        kind: "task".to_owned(),
        body: ChangeView::body_of(&body.to_string()),
    }
}
