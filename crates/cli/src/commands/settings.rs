//! `settings`: texts under their keys.

use clap::Subcommand;
use taskbell_core::text;

use crate::failure::Failure;
use crate::session::Session;
use crate::term::marks::DIM;
use crate::term::table::{Cell, Give, Table};

/// Read and change settings
#[derive(Debug, Subcommand)]
pub enum Settings {
    /// List all settings with their values
    #[command(after_help = "Example:\n  taskbell settings list")]
    List,
    /// Print one value
    #[command(after_help = "Example:\n  taskbell settings get retention.days")]
    Get {
        /// The setting's key
        key: String,
    },
    /// Change one value
    #[command(after_help = "Example:\n  taskbell settings set retention.days 60")]
    Set {
        /// The setting's key
        key: String,
        /// Its new value
        value: String,
    },
}

impl Settings {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let out = session.out;
        let engine = session.engine().await?;
        let setting = match self {
            Self::List => {
                let page = engine.settings().await?;
                if out.is_json() {
                    out.json(&page)?;
                    return Ok(0);
                }
                let mut table =
                    Table::new([("KEY", Give::Keep), ("VALUE", Give::Cut(10)), ("MEANING", Give::Cut(20))]);
                for setting in &page.items {
                    let changed = if setting.value == setting.default { DIM } else { anstyle::Style::new() };
                    table.row([
                        text::plain(&setting.key).into(),
                        Cell::styled(text::plain(&setting.value), changed),
                        Cell::styled(text::plain(&setting.meaning), DIM),
                    ]);
                }
                out.table(&table)?;
                return Ok(0);
            }
            Self::Get { key } => engine.setting(&key).await?,
            Self::Set { key, value } => engine.set_setting(&key, &value).await?,
        };
        if out.is_json() {
            out.json(&setting)?;
        } else {
            out.line(&text::one_line(&setting.value, 4000))?;
        }
        Ok(0)
    }
}
