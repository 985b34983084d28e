//! `reply`: answer a task that waits. Once only: a reply of unknown outcome is not sent again.

use clap::Args;
use taskbell_core::ids::TaskRef;

use crate::commands::send;
use crate::failure::Failure;
use crate::session::Session;

/// Answer a task that waits for you
///
/// Returns when the answer has arrived. Exit 9: it left and no answer came; it is not sent again by itself.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  taskbell reply builder/3f2a9c1e 'the main branch'")]
pub struct Reply {
    /// AGENT/TASKID, or a unique prefix
    task: TaskRef,
    /// What to answer; '-' reads it from stdin
    text: String,
}

impl Reply {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let text = send::text_or_stdin(self.text)?;
        let engine = session.engine().await?;
        let task = engine.resolve(&self.task).await?;
        let answered = engine.reply(&task, &text).await?;
        send::print_task(&answered.task, answered.state, session.out)?;
        Ok(0)
    }
}
