//! `wait`: until a task is where a script needs it. The rules are in `outcome`.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use taskbell_core::ids::TaskRef;
use taskbell_engine::api::views::{ChangeView, TaskDetail};

use crate::engine::Engine;
use crate::failure::Failure;
use crate::feed::{self, Attended, Watcher};
use crate::outcome::{self, Until};
use crate::session::Session;
use crate::span;
use crate::term::out::Out;
use crate::words::{self, Progress};

/// Wait until a task ends or needs you
///
/// Exit: 0 completed, 3 failed, 4 rejected, 5 canceled, 6 input-required, 7 auth-required, 8 lost,
/// 10 wrong-identity, 124 timeout, 2 usage, 1 anything else.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  taskbell wait builder/3f2a9c1e --timeout 10m")]
pub struct Wait {
    /// AGENT/TASKID, or a unique prefix
    task: TaskRef,
    /// For so long at most, like 90s, 10m or 2h [default: as long as it takes]
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
    timeout: Option<Duration>,
    /// What ends it: a state that needs attention or a terminal one, or only a terminal one
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    until: Until,
}

impl Wait {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let engine = session.engine().await?;
        let task = engine.resolve(&self.task).await?;
        wait(session, &engine, &task, self.until, self.timeout).await
    }
}

/// Waits, prints the last line, gives the exit code.
pub async fn wait(
    session: &Session,
    engine: &Engine,
    task: &TaskRef,
    until: Until,
    limit: Option<Duration>,
) -> Result<u8, Failure> {
    let out = session.out;
    let mut quiet = Quiet { out, progress: Progress::default() };
    let attended = feed::attend(engine, task, until, limit, &mut quiet).await;
    out.progress("");
    let Attended { task, outcome } = attended.map_err(feed::told_as_gone)?;
    if out.is_json() {
        let mut document = json!(task);
        document["timedOut"] = json!(outcome.is_none());
        out.json(&document)?;
    } else {
        let question = words::question(&task).filter(|_| task.state.is_waiting());
        let question = question.map_or_else(String::new, |question| format!("  {question}"));
        out.line(&format!("{}  {}{question}", words::task_name(&task.task), out.state(task.state)))?;
    }
    match outcome {
        Some(outcome) => Ok(outcome.exit()),
        None => {
            let limit = limit.map_or_else(String::new, |limit| format!(" within {}", span::short(limit)));
            out.remark(&format!("taskbell: the task has not ended{limit}; it is still followed"));
            Ok(outcome::TIMED_OUT)
        }
    }
}

/// Shows a moving line where somebody looks, and nothing else.
struct Quiet {
    out: Out,
    progress: Progress,
}

impl Watcher for Quiet {
    fn began(&mut self, task: &TaskDetail) -> Result<(), Failure> {
        self.progress.began(&task.summary);
        Ok(())
    }

    fn changed(&mut self, change: &ChangeView) -> Result<(), Failure> {
        self.progress.changed(change);
        Ok(())
    }

    fn ticked(&mut self) {
        if self.out.is_live() {
            self.out.progress(&self.progress.line());
        }
    }
}
