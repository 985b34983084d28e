//! `settings`: texts under their keys.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Subcommand;
use taskbell_core::text;
use taskbell_engine::api::views::SettingsFile;

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
    /// Write the settings that were changed, without what may be secret, as JSON
    #[command(after_help = "Example:\n  taskbell settings export settings.json")]
    Export {
        /// Where to; it must not be there yet [default: standard output]
        file: Option<PathBuf>,
    },
    /// Change what a file names, all of it or nothing
    #[command(after_help = "Example:\n  taskbell settings import settings.json --dry-run")]
    Import {
        /// A file that `settings export` wrote
        file: PathBuf,
        /// Only say what it would change
        #[arg(long)]
        dry_run: bool,
    },
}

/// Larger is no file of settings.
const FILE_MAX: u64 = 1 << 20;

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
            Self::Export { file } => {
                let settings = engine.export_settings().await?;
                match file {
                    None => out.json(&settings)?,
                    Some(path) => write_new(&path, &settings)?,
                }
                return Ok(0);
            }
            Self::Import { file, dry_run } => {
                let changes = engine.import_settings(&read_file(&file)?, dry_run).await?;
                if out.is_json() {
                    out.json(&changes)?;
                    return Ok(0);
                }
                let line = |change: &taskbell_engine::api::views::SettingChange| {
                    format!("{}: {:?} → {:?}", change.key, change.before, change.after)
                };
                match changes.items.is_empty() {
                    true => out.line("nothing changes")?,
                    false => out.lines(changes.items.iter().map(line))?,
                }
                return Ok(0);
            }
        };
        if out.is_json() {
            out.json(&setting)?;
        } else {
            out.line(&text::one_line(&setting.value, 4000))?;
        }
        Ok(0)
    }
}

fn read_file(path: &std::path::Path) -> Result<SettingsFile, Failure> {
    let failed =
        |what: String| Failure::usage(format!("failed to read settings from {}: {what}", path.display()));
    let length = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
    if length > FILE_MAX {
        return Err(failed("it is too large to be one".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| failed(format!("it is no file of settings ({error})")))
}

/// Readable, and never over a file that is there.
fn write_new(path: &std::path::Path, settings: &SettingsFile) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new("file", format!("failed to write settings to {}: {error}", path.display()))
    };
    let text = serde_json::to_string_pretty(settings).map_err(|error| failed(error.into()))?;
    let mut file = std::fs::File::create_new(path).map_err(failed)?;
    writeln!(file, "{text}").and_then(|()| file.sync_all()).map_err(failed)
}
