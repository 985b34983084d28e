//! `man`: the manual pages, one a command, written from the same words as `--help`. For whoever packages
//! Taskbell, so it is not listed.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, bold, roman};

use crate::Cli;
use crate::failure::Failure;
use crate::session::Session;

/// Write the manual pages into a folder
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  taskbell man /usr/local/share/man/man1")]
pub struct Man {
    /// The folder, which must be there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Man {
    pub fn run(self, session: &Session) -> Result<u8, Failure> {
        // `taskbell help` is in every page already.
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        let mut names = Vec::new();
        write_pages(&command, &self.folder, &mut names).map_err(|error| {
            Failure::new(
                "man_failed",
                format!("failed to write the manual pages into {}: {error}", self.folder.display()),
            )
        })?;
        for name in &names {
            session.out.line(name)?;
        }
        Ok(0)
    }
}

fn write_pages(command: &Command, folder: &Path, names: &mut Vec<String>) -> io::Result<()> {
    let name = format!("{}.1", command.get_display_name().unwrap_or_else(|| command.get_name()));
    let mut page = Vec::new();
    render(command, &mut page)?;
    fs::write(folder.join(&name), page)?;
    names.push(name);
    command
        .get_subcommands()
        .filter(|part| !part.is_hide_set())
        .try_for_each(|part| write_pages(part, folder, names))
}

/// One page. `clap_mangen` would render it whole, but it runs the lines of an example together.
fn render(command: &Command, page: &mut dyn Write) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let is_whole = name == "taskbell";
    let source = format!("Taskbell {}", env!("CARGO_PKG_VERSION"));
    let parts = Page::new(command.clone()).source(source).manual("Taskbell");
    parts.render_title(page)?;
    parts.render_name_section(page)?;
    parts.render_synopsis_section(page)?;
    parts.render_description_section(page)?;
    parts.render_options_section(page)?;
    if command.get_subcommands().any(|part| !part.is_hide_set()) {
        parts.render_subcommands_section(page)?;
    }
    let mut rest = Roff::new();
    if let Some(text) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        let text = text.to_string();
        let (heading, body) = match text.split_once('\n') {
            Some((first, body)) if first.starts_with("Example") => ("EXAMPLES", body),
            _ => ("NOTES", text.as_str()),
        };
        rest.control("SH", [heading]);
        rest.control("nf", []);
        for line in body.lines() {
            rest.text([roman(line)]);
        }
        rest.control("fi", []);
    }
    let sections = if is_whole { &[EXIT_STATUS, ENVIRONMENT, FILES][..] } else { &[][..] };
    for (heading, items) in sections {
        rest.control("SH", [*heading]);
        for (item, meaning) in *items {
            rest.control("TP", []);
            rest.text([bold(*item)]);
            rest.text([roman(*meaning)]);
        }
    }
    rest.control("SH", ["SEE ALSO"]);
    let see = match name.rsplit_once('-') {
        _ if is_whole => "taskbell-desktop(1)".to_owned(),
        Some((group, _)) if group != "taskbell" && is_group(group) => format!("{group}(1), taskbell(1)"),
        _ => "taskbell(1)".to_owned(),
    };
    rest.text([roman(see)]);
    rest.to_writer(page)
}

/// Whether a page of that name is written: `taskbell-demo-agent` is no part of a `taskbell-demo`.
fn is_group(name: &str) -> bool {
    Cli::command().get_subcommands().any(|part| name.strip_prefix("taskbell-") == Some(part.get_name()))
}

type Section = (&'static str, &'static [(&'static str, &'static str)]);

const EXIT_STATUS: Section = (
    "EXIT STATUS",
    &[
        ("0", "done; of a task that was waited for: completed"),
        ("1", "an error, told in one line on standard error"),
        ("2", "a command line that cannot be meant"),
        ("3, 4, 5", "the task failed, was rejected, was canceled"),
        ("6, 7", "the task waits for an answer, for a sign-in"),
        ("8", "the task is lost: its agent no longer knows it"),
        ("9", "a message left and no answer came; it is never sent again by itself"),
        ("10", "the task belongs to another identity than the credential's"),
        ("70", "an error of Taskbell itself that nobody foresaw"),
        ("124", "the time given was up"),
    ],
);

const ENVIRONMENT: Section = (
    "ENVIRONMENT",
    &[
        ("TASKBELL_DATA_DIR", "the data folder, as --data-dir"),
        ("TASKBELL_LOG", "what is logged on standard error, like info or taskbell_engine=debug"),
        ("TASKBELL_PASSPHRASE", "the passphrase of --credential-store file"),
        ("NO_COLOR", "when set, nothing is coloured"),
    ],
);

const FILES: Section = (
    "FILES",
    &[
        (
            "~/.local/share/taskbell/",
            "the data folder, or below $XDG_DATA_HOME: taskbell.db with tasks, callbacks and settings, and its daily \
             copies. Removing the package leaves it; delete it by hand to forget everything",
        ),
        ("~/.local/share/taskbell/runtime.json", "while an engine runs: where it listens"),
    ],
);
