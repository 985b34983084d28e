//! `export`: a task as files.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use clap::{Args, ValueEnum};
use serde_json::json;
use taskbell_core::ids::TaskRef;
use taskbell_core::text;
use taskbell_engine::api::views::{ExportFormat, ExportedFileView};

use crate::failure::Failure;
use crate::session::Session;

/// Write a task to files: everything known of it, a document for people, what it made
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  taskbell export builder/3f2a9c1e --format markdown --artifacts out -o report.md"
)]
pub struct Export {
    /// AGENT/TASKID, or a unique prefix
    task: TaskRef,
    /// As what
    #[arg(long, value_enum, default_value_t = Format::Json)]
    format: Format,
    /// Where to write it; a file that is there already is not touched [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the files that the task made into this folder as well
    #[arg(long, value_name = "DIR")]
    artifacts: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Everything known of it
    Json,
    /// A document for people
    Markdown,
    /// Both, and the files it made, in one archive; needs -o
    Zip,
}

impl Export {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let format = match self.format {
            Format::Json => ExportFormat::Json,
            Format::Markdown => ExportFormat::Markdown,
            Format::Zip => ExportFormat::Zip,
        };
        if self.format == Format::Zip && self.output.is_none() {
            return Err(Failure::usage("an archive is not for a terminal: say where it goes with -o FILE"));
        }
        let engine = session.engine().await?;
        let task = engine.resolve(&self.task).await?;
        let view = engine.export(&task, format).await?;
        let mut written = Vec::new();
        let mut not_fetched = view.not_fetched;
        match (&self.output, view.files.first()) {
            (Some(path), Some(file)) => written.push(write_new(path, &octets(file)?)?),
            (None, Some(file)) => session.out.lines(file.text.as_deref().unwrap_or_default().lines())?,
            (_, None) => {
                return Err(Failure::new("engine_unreadable", "the engine exported nothing; is it older?"));
            }
        }
        if let Some(folder) = &self.artifacts {
            fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
            let made = engine.export(&task, ExportFormat::Artifacts).await?;
            for file in &made.files {
                // The engine has made it a name without a path; a folder stays the one that was asked for.
                let name = taskbell_core::export::file_name(&file.name).ok_or_else(|| {
                    Failure::new("engine_unreadable", "the engine named a file without a name")
                })?;
                written.push(write_new(&folder.join(name), &octets(file)?)?);
            }
            not_fetched = made.not_fetched;
        }
        if self.output.is_some() && session.out.is_json() {
            session.out.json(&json!({ "files": written, "notFetched": not_fetched }))?;
            return Ok(0);
        }
        for path in written {
            session.out.remark(&format!("wrote {}", path.display()));
        }
        for url in not_fetched {
            session.out.remark(&format!("not fetched: {}", text::one_line(&url, 2_000)));
        }
        Ok(0)
    }
}

fn octets(file: &ExportedFileView) -> Result<Vec<u8>, Failure> {
    match (&file.text, &file.base64) {
        (Some(text), _) => Ok(text.clone().into_bytes()),
        (None, Some(base64)) => BASE64.decode(base64).map_err(|_| {
            Failure::new("engine_unreadable", "the engine's answer holds a file that is not base64")
        }),
        (None, None) => Ok(Vec::new()),
    }
}

/// Writes a file that is not there yet.
fn write_new(path: &Path, octets: &[u8]) -> Result<PathBuf, Failure> {
    let written = OpenOptions::new().write(true).create_new(true).open(path);
    written.and_then(|mut file| file.write_all(octets)).map_err(|error| failed(path, &error))?;
    Ok(path.to_owned())
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    let why = match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            "it is there already; choose another name or remove it".to_owned()
        }
        _ => error.to_string(),
    };
    Failure::new("not_written", format!("failed to write {}: {why}", path.display()))
}
