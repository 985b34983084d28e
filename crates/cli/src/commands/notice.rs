//! `notice`: what was told on the desktop, and a test.

use clap::Subcommand;
use taskbell_core::text;

use crate::failure::Failure;
use crate::session::Session;
use crate::term::table::{Give, Table};

/// See what was told on the desktop
#[derive(Debug, Subcommand)]
pub enum Notice {
    /// List the newest notices with what came of each
    #[command(after_help = "Example:\n  taskbell notice list")]
    List,
    /// Show a notice now and say what came of it
    #[command(after_help = "Example:\n  taskbell notice test")]
    Test,
}

impl Notice {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let out = session.out;
        let engine = session.engine().await?;
        let notices = match self {
            Self::List => {
                let page = engine.notices().await?;
                if out.is_json() {
                    out.json(&page)?;
                    return Ok(0);
                }
                page.items
            }
            Self::Test => {
                let notice = engine.test_notice().await?;
                if out.is_json() {
                    out.json(&notice)?;
                    return Ok(0);
                }
                vec![notice]
            }
        };
        let mut table = Table::new([
            ("KIND", Give::Keep),
            ("OUTCOME", Give::Keep),
            ("TASK", Give::Cut(12)),
            ("TITLE", Give::Cut(20)),
            ("WHY", Give::Cut(20)),
        ]);
        for notice in &notices {
            table.row([
                text::plain(&notice.kind).into(),
                text::plain(notice.outcome.as_deref().unwrap_or("pending")).into(),
                text::plain(&notice.task.as_ref().map(ToString::to_string).unwrap_or_default()).into(),
                text::plain(&notice.title).into(),
                text::plain(notice.detail.as_deref().unwrap_or_default()).into(),
            ]);
        }
        out.table(&table)?;
        Ok(0)
    }
}
