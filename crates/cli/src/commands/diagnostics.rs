//! `diagnostics`: what helps others to find out what is wrong, in one file that can be read before it is given away.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use taskbell_core::text;

use crate::failure::Failure;
use crate::session::Session;

/// Gather what helps others to find out what is wrong
///
/// Versions, settings, health with its history, counts and the last lines of the log: no task text, no credential,
/// no id, and of addresses only the hosts. Without -o it is printed, so that it can be looked through.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  taskbell diagnostics -o diagnostics.txt")]
pub struct Diagnostics {
    /// Where to; it must not be there yet
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Diagnostics {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let out = session.out;
        let page = session.engine().await?.diagnostics().await?;
        let whole = || {
            let part = |part: &taskbell_engine::api::views::DiagnosticsPart| {
                format!("==== {} ====\n{}\n", part.name, part.text)
            };
            page.items.iter().map(part).collect::<String>()
        };
        match self.output {
            None if out.is_json() => out.json(&page)?,
            None => out.lines(whole().lines().map(text::plain))?,
            Some(path) => {
                let failed = |error: std::io::Error| {
                    let message = format!("failed to write diagnostics to {}: {error}", path.display());
                    Failure::new("file", message)
                };
                let mut file = std::fs::File::create_new(&path).map_err(failed)?;
                file.write_all(whole().as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
            }
        }
        Ok(0)
    }
}
