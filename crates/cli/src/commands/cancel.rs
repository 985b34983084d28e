//! `cancel`: ask the agent to stop, and say what really came of it.

use clap::Args;
use taskbell_core::ids::TaskRef;

use crate::commands::send;
use crate::failure::Failure;
use crate::outcome::{self, Outcome};
use crate::session::Session;

/// Ask the agent to stop a task, and wait up to 30 s for what comes of it
///
/// Exit: 0 canceled (or completed before), 3 failed, 4 rejected, 8 lost, 10 wrong-identity, 124 not ended in time.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  taskbell cancel builder/3f2a9c1e")]
pub struct Cancel {
    /// AGENT/TASKID, or a unique prefix
    task: TaskRef,
}

impl Cancel {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let engine = session.engine().await?;
        let task = engine.resolve(&self.task).await?;
        let canceled = engine.cancel(&task).await?;
        send::print_task(&canceled.task, canceled.state, session.out)?;
        match Outcome::of_state(canceled.state).filter(|outcome| !outcome.is_waiting()) {
            Some(outcome) => Ok(outcome.exit_of_cancel()),
            None => {
                let words =
                    "taskbell: the agent was asked to stop and the task has not ended; it is still followed";
                session.out.remark(words);
                Ok(outcome::TIMED_OUT)
            }
        }
    }
}
