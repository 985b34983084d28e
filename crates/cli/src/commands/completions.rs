//! `completions`: a completion script for a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Cli;
use crate::failure::Failure;
use crate::session::Session;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  taskbell completions bash > ~/.local/share/bash-completion/completions/taskbell"
)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub fn run(self, session: &Session) -> Result<u8, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "taskbell", &mut script);
        let script = String::from_utf8_lossy(&script);
        session.out.line(script.trim_end())?;
        Ok(0)
    }
}
