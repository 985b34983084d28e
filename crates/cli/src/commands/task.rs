//! `task`: what its user keeps of a task, and removing it.

use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;
use taskbell_core::ids::TaskRef;
use taskbell_engine::api::views::{
    ArchiveRequest, MuteRequest, PinRequest, SnoozeRequest, TaskSummary, UtcTime,
};

use crate::engine::Engine;
use crate::failure::Failure;
use crate::session::Session;
use crate::term::clean;
use crate::words::{self, Clock};

/// Keep, hide, mute, put off, annotate or remove a task
#[derive(Debug, Subcommand)]
pub enum Task {
    /// Keep a task however old it gets
    #[command(after_help = "Example:\n  taskbell task pin builder/3f2a9c1e")]
    Pin(Flag),
    /// Hide a task from the list
    #[command(after_help = "Example:\n  taskbell task archive builder/3f2a9c1e")]
    Archive(Flag),
    /// Show no notices of a task
    #[command(after_help = "Example:\n  taskbell task mute builder/3f2a9c1e")]
    Mute(Flag),
    /// Put the question of a waiting task off
    #[command(after_help = "Example:\n  taskbell task snooze builder/3f2a9c1e --for 2h")]
    Snooze(Snooze),
    /// Write a note about a task, or show it
    #[command(after_help = "Example:\n  taskbell task note builder/3f2a9c1e 'ask Ada before this is merged'")]
    Note(Note),
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
pub struct Snooze {
    /// AGENT/TASKID, or a unique prefix
    task: TaskRef,
    /// How long, like 30m, 2h or 1d; an hour where nothing else is said
    #[arg(long = "for", value_name = "TIME", value_parser = span, conflicts_with_all = ["until", "off"])]
    pause: Option<Duration>,
    /// Until then, like 2026-03-01T09:00:00+01:00
    #[arg(long, value_name = "MOMENT", conflicts_with = "off")]
    until: Option<Timestamp>,
    /// Undo it
    #[arg(long)]
    off: bool,
}

#[derive(Debug, Args)]
pub struct Note {
    /// AGENT/TASKID, or a unique prefix
    task: TaskRef,
    /// What to note, up to 10,000 characters; without it the note is shown
    #[arg(conflicts_with = "off")]
    text: Option<String>,
    /// Take the note away
    #[arg(long)]
    off: bool,
}

fn span(text: &str) -> Result<Duration, String> {
    crate::span::parse(text).map_err(|error| error.to_string())
}

#[derive(Debug, Args)]
pub struct Named {
    /// AGENT/TASKID, or a unique prefix
    task: TaskRef,
}

/// What came of it: words about the task, and the task where it is still there.
type Done = (String, Option<TaskSummary>);

impl Task {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let engine = session.engine().await?;
        let task = engine.resolve(self.task()).await?;
        if let Self::Note(Note { text: None, off: false, .. }) = &self {
            return show_note(session, &engine, &task).await;
        }
        let (words, summary) = self.act(&engine, &task).await?;
        match summary {
            Some(summary) if session.out.is_json() => session.out.json(&summary)?,
            None if session.out.is_json() => session.out.json(&json!({"deleted": task.to_string()}))?,
            Some(_) | None => session.out.line(&format!("{} {words}", words::task_name(&task)))?,
        }
        Ok(0)
    }

    fn task(&self) -> &TaskRef {
        let (Self::Pin(Flag { task, .. })
        | Self::Archive(Flag { task, .. })
        | Self::Mute(Flag { task, .. })
        | Self::Snooze(Snooze { task, .. })
        | Self::Note(Note { task, .. })
        | Self::Delete(Named { task })) = self;
        task
    }

    async fn act(&self, engine: &Engine, task: &TaskRef) -> Result<Done, Failure> {
        let is = |word: &str, off: bool| {
            if off { format!("is not {word} any more") } else { format!("is {word}") }
        };
        Ok(match self {
            Self::Pin(Flag { off, .. }) => {
                (is("pinned", *off), Some(engine.pin(task, PinRequest { pinned: !off }).await?))
            }
            Self::Archive(Flag { off, .. }) => {
                (is("archived", *off), Some(engine.archive(task, ArchiveRequest { archived: !off }).await?))
            }
            Self::Mute(Flag { off, .. }) => {
                (is("muted", *off), Some(engine.mute(task, MuteRequest { muted: !off }).await?))
            }
            Self::Snooze(Snooze { off: true, .. }) => (is("put off", true), Some(engine.wake(task).await?)),
            Self::Snooze(Snooze { pause, until, .. }) => {
                let summary = engine.snooze(task, request(*pause, *until)?).await?;
                let clock = Clock::system();
                let until = summary.snoozed_until.map(|until| clock.moment(until)).unwrap_or_default();
                (format!("is put off until {until}"), Some(summary))
            }
            Self::Note(Note { text, .. }) => {
                let text = text.as_deref().unwrap_or_default();
                let words = if text.is_empty() { "has no note any more" } else { "has a note" };
                (words.to_owned(), Some(engine.set_note(task, text).await?))
            }
            Self::Delete(_) => {
                engine.delete_task(task).await?;
                ("is deleted".to_owned(), None)
            }
        })
    }
}

fn request(pause: Option<Duration>, until: Option<Timestamp>) -> Result<SnoozeRequest, Failure> {
    if let Some(until) = until {
        let until = UtcTime::from_ms(until.as_millisecond());
        return Ok(SnoozeRequest { minutes: None, until: Some(until) });
    }
    let seconds = pause.unwrap_or(Duration::from_secs(3_600)).as_secs();
    // The engine counts in minutes; what is shorter is one.
    let minutes = u32::try_from(seconds.div_ceil(60).max(1))
        .map_err(|_| Failure::new("usage", "a task can be put off for thirty days at most"))?;
    Ok(SnoozeRequest { minutes: Some(minutes), until: None })
}

async fn show_note(session: &Session, engine: &Engine, task: &TaskRef) -> Result<u8, Failure> {
    let note = engine.task(task).await?.note;
    if session.out.is_json() {
        session.out.json(&json!({"task": task.to_string(), "note": note}))?;
    } else {
        match note {
            Some(note) => session.out.lines(clean::lines(&note))?,
            None => session.out.remark(&format!("{} has no note", words::task_name(task))),
        }
    }
    Ok(0)
}
