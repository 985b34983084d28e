//! `watch`: follow a task that somebody else started.

use clap::Args;
use taskbell_core::ids::{AgentName, TaskId};

use crate::commands::send;
use crate::failure::Failure;
use crate::session::Session;

/// Follow a task that somebody else started
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  taskbell watch builder 3f2a9c1e-5b0d-4c8e-9a57-0d7c1b7a2f10")]
pub struct Watch {
    /// The agent's name
    agent: AgentName,
    /// The whole id, as the agent gave it
    #[arg(value_name = "TASKID", value_parser = task_id)]
    task_id: TaskId,
}

fn task_id(text: &str) -> Result<TaskId, &'static str> {
    if text.is_empty() { Err("a task id is not empty") } else { Ok(TaskId::new(text)) }
}

impl Watch {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let watched = session.engine().await?.watch(&self.agent, &self.task_id).await?;
        send::print_task(&watched.task, watched.state, session.out)?;
        Ok(0)
    }
}
