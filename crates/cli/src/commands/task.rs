//! `task`: what is kept, hidden or removed.

use clap::{Args, Subcommand};
use serde_json::json;
use taskbell_core::ids::TaskRef;
use taskbell_engine::api::views::{ArchiveRequest, PinRequest};

use crate::failure::Failure;
use crate::session::Session;
use crate::words;

/// Keep, hide or remove a task
#[derive(Debug, Subcommand)]
pub enum Task {
    /// Keep a task however old it gets
    #[command(after_help = "Example:\n  taskbell task pin builder/3f2a9c1e")]
    Pin(Flag),
    /// Hide a task from the list
    #[command(after_help = "Example:\n  taskbell task archive builder/3f2a9c1e")]
    Archive(Flag),
    /// Remove a task from this machine; the agent is told nothing
    #[command(after_help = "Example:\n  taskbell task delete builder/3f2a9c1e")]
    Delete(Named),
}

#[derive(Debug, Args)]
pub struct Flag {
    /// AGENT/TASKID, or a unique prefix
    task: TaskRef,
    /// Undo it
    #[arg(long)]
    off: bool,
}

#[derive(Debug, Args)]
pub struct Named {
    /// AGENT/TASKID, or a unique prefix
    task: TaskRef,
}

impl Task {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let engine = session.engine().await?;
        let (Self::Pin(Flag { task, .. }) | Self::Archive(Flag { task, .. }) | Self::Delete(Named { task })) =
            &self;
        let task = engine.resolve(task).await?;
        let (words, summary) = match self {
            Self::Pin(Flag { off, .. }) => {
                let summary = engine.pin(&task, PinRequest { pinned: !off }).await?;
                (if off { "not pinned any more" } else { "pinned" }, Some(summary))
            }
            Self::Archive(Flag { off, .. }) => {
                let summary = engine.archive(&task, ArchiveRequest { archived: !off }).await?;
                (if off { "not archived any more" } else { "archived" }, Some(summary))
            }
            Self::Delete(_) => {
                engine.delete_task(&task).await?;
                ("deleted", None)
            }
        };
        match summary {
            Some(summary) if session.out.is_json() => session.out.json(&summary)?,
            None if session.out.is_json() => session.out.json(&json!({"deleted": task.to_string()}))?,
            Some(_) | None => session.out.line(&format!("{} is {words}", words::task_name(&task)))?,
        }
        Ok(0)
    }
}
