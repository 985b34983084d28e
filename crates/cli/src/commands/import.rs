//! `import`: adopt the open tasks that an agent lists.

use clap::Args;
use taskbell_core::ids::AgentName;

use crate::failure::Failure;
use crate::session::Session;
use crate::words;

/// Follow the open tasks that an agent lists
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  taskbell import builder")]
pub struct Import {
    /// The agent's name
    agent: AgentName,
}

impl Import {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let out = session.out;
        let outcome = session.engine().await?.import(&self.agent).await?;
        if out.is_json() {
            out.json(&outcome)?;
            return Ok(0);
        }
        out.lines(outcome.adopted.iter().map(words::task_name))?;
        let unreadable = match outcome.unreadable {
            0 => String::new(),
            count => format!(", {count} of no readable shape"),
        };
        let adopted = outcome.adopted.len();
        out.remark(&format!(
            "followed from now on: {adopted}; followed before: {}{unreadable}",
            outcome.known
        ));
        Ok(0)
    }
}
