//! `send`: give an agent work. Sent once: a message of unknown outcome is never sent again by itself.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use clap::Args;
use serde_json::{Value, json};
use taskbell_core::ids::{AgentName, TaskRef};
use taskbell_core::text;
use taskbell_engine::api::views::{FilePart, SendOutcome, SendRequestView, ShownState};

use crate::commands::{follow, wait};
use crate::failure::Failure;
use crate::outcome::{self, Until};
use crate::session::Session;
use crate::span;
use crate::term::clean;
use crate::term::out::Out;
use crate::words;

/// Send an agent a message, and follow the task that comes of it
///
/// Returns at once; the engine follows on. Exit 9: the message left and no answer came. It is not sent again by
/// itself, since the agent may be at work on it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  taskbell send builder 'build the main branch' --wait --timeout 1h")]
pub struct Send {
    /// The agent's name
    agent: AgentName,
    /// What to say; '-' reads it from stdin
    text: String,
    /// Continue this conversation
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// A file of JSON to send as data
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// A file to send along; may be given more than once
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Have the agent call back about this task, whatever is set for the agent
    #[arg(long, conflicts_with = "no_push")]
    push: bool,
    /// Do not have the agent call back about this task
    #[arg(long)]
    no_push: bool,
    /// Wait until the task ends or needs you, and exit as 'wait' does
    #[arg(long, conflicts_with = "follow")]
    wait: bool,
    /// Print what happens until the task ends
    #[arg(long)]
    follow: bool,
    /// With --wait: for so long at most
    #[arg(long, value_name = "TIME", value_parser = span::parse, requires = "wait")]
    timeout: Option<Duration>,
    /// With --wait: what ends it
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        default_value_t,
        hide_default_value = true,
        requires = "wait"
    )]
    until: Until,
}

impl Send {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let out = session.out;
        let message = SendRequestView {
            context_id: self.context,
            data: self.data.as_deref().map(data_of).transpose()?,
            files: self.file.iter().map(|path| file_part(path)).collect::<Result<_, _>>()?,
            text: text_or_stdin(self.text)?,
            push: match (self.push, self.no_push) {
                (false, false) => None,
                (push, _) => Some(push),
            },
        };
        let engine = session.engine().await?;
        let outcome = engine.send(&self.agent, &message).await?;
        match &outcome {
            SendOutcome::Task(sent) if self.wait => {
                out.remark(&format!("sent as {}", words::task_name(&sent.task)));
                wait::wait(session, &engine, &sent.task, self.until, self.timeout).await
            }
            SendOutcome::Task(sent) if self.follow => {
                out.remark(&format!("sent as {}", words::task_name(&sent.task)));
                follow::follow(session, &engine, &sent.task).await
            }
            SendOutcome::Task(_) | SendOutcome::Message { .. } | SendOutcome::Unknown { .. } => {
                print_outcome(&outcome, &self.agent, out)
            }
        }
    }
}

/// What a message came to, and the exit code for it.
pub fn print_outcome(outcome: &SendOutcome, agent: &AgentName, out: Out) -> Result<u8, Failure> {
    if out.is_json() {
        out.json(outcome)?;
    }
    match outcome {
        SendOutcome::Task(_) | SendOutcome::Message { .. } if out.is_json() => Ok(0),
        SendOutcome::Task(sent) => print_task(&sent.task, sent.state, out).map(|()| 0),
        SendOutcome::Message { message } => {
            out.lines(clean::lines(&words::message_text(message)))?;
            Ok(0)
        }
        SendOutcome::Unknown { unknown } => {
            out.remark(&format!(
                "taskbell: the message left and no answer came, so it is unknown whether {agent} is at work on it; \
                 look with 'taskbell import {agent}'. Sending it again may do the work twice (message {})",
                text::plain(unknown.message_id.as_str())
            ));
            Ok(outcome::OUTCOME_UNKNOWN)
        }
    }
}

/// `{"task":…,"state":…}`, or the same for people.
pub fn print_task(task: &TaskRef, state: ShownState, out: Out) -> Result<(), Failure> {
    if out.is_json() {
        out.json(&json!({"task": task.to_string(), "state": state}))
    } else {
        out.line(&format!("{}  {}", words::task_name(task), out.state(state)))
    }
}

/// The text, or for `-` what stdin holds.
pub fn text_or_stdin(text: String) -> Result<String, Failure> {
    if text != "-" {
        return Ok(text);
    }
    if io::stdin().is_terminal() {
        return Err(Failure::usage(
            "'-' reads the text from stdin, which is a terminal: pipe something into it",
        ));
    }
    let mut read = String::new();
    io::stdin().lock().read_to_string(&mut read).map_err(|error| {
        Failure::new("stdin_failed", format!("failed to read the text from stdin: {error}"))
    })?;
    Ok(read.trim_end_matches(['\r', '\n']).to_owned())
}

fn data_of(path: &Path) -> Result<Value, Failure> {
    let content = read(path)?;
    serde_json::from_slice(&content)
        .map_err(|error| Failure::usage(format!("{} is not JSON: {error}", path.display())))
}

fn file_part(path: &Path) -> Result<FilePart, Failure> {
    let content = read(path)?;
    let filename = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let media_type = mime_guess::from_path(path).first_or_octet_stream().to_string();
    Ok(FilePart { filename, media_type, base64: BASE64.encode(content) })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| {
        Failure::new("file_unreadable", format!("failed to read {}: {error}", path.display()))
            .with_exit(outcome::USAGE)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_travels_with_its_name_and_kind_and_without_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("note.md");
        std::fs::write(&path, "hi").unwrap();
        let part = file_part(&path).unwrap();
        assert_eq!((part.filename.as_str(), part.media_type.as_str()), ("note.md", "text/markdown"));
        assert_eq!(part.base64, "aGk=");
        std::fs::write(folder.path().join("blob"), [0, 255]).unwrap();
        assert_eq!(file_part(&folder.path().join("blob")).unwrap().media_type, "application/octet-stream");
    }

    #[test]
    fn data_that_is_not_json_is_refused_before_anything_is_sent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.json");
        std::fs::write(&path, "{").unwrap();
        assert_eq!(data_of(&path).unwrap_err().exit(), 2);
        assert_eq!(data_of(&folder.path().join("none")).unwrap_err().code(), "file_unreadable");
        std::fs::write(&path, "[1]").unwrap();
        assert_eq!(data_of(&path).unwrap(), json!([1]));
    }
}
