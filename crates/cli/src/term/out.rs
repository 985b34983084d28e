//! Where output goes: answers on stdout, progress and remarks on stderr, colour only where it is wanted.

use std::io::{self, IsTerminal, Write};

use anstyle::Style;
use clap::ValueEnum;
use serde::Serialize;
use taskbell_engine::api::views::ShownState;

use super::marks;
use super::table::{Table, cut};
use crate::failure::Failure;

/// `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    Always,
    Never,
}

/// Which form answers take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Text for people.
    People,
    /// One JSON document, or JSON lines.
    Json,
}

/// The two outputs of this run.
#[derive(Debug, Clone, Copy)]
pub struct Out {
    form: Form,
    colour: bool,
    /// Columns of the terminal; `None` when stdout is a file or a pipe.
    width: Option<usize>,
    live: bool,
}

impl Out {
    pub fn new(form: Form, colour: Colour) -> Self {
        let terminal = io::stdout().is_terminal();
        let colour = match colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => terminal && !anstyle_query::no_color() && anstyle_query::term_supports_color(),
        };
        if colour {
            // Nothing to do but on Windows; where it fails the colours are merely not understood.
            #[cfg(windows)]
            let _ = anstyle_query::windows::enable_ansi_colors();
        }
        let width = terminal.then(|| {
            terminal_size::terminal_size()
                .map_or(80, |(terminal_size::Width(columns), _)| usize::from(columns))
        });
        let live = form == Form::People && io::stderr().is_terminal() && anstyle_query::term_supports_color();
        Self { form, colour, width, live }
    }

    pub fn is_json(self) -> bool {
        self.form == Form::Json
    }

    /// `None`: not a terminal, as wide as it takes.
    pub fn width(self) -> Option<usize> {
        self.width
    }

    pub fn has_colour(self) -> bool {
        self.colour
    }

    /// Whether a person watches stderr, so that a line there may move.
    pub fn is_live(self) -> bool {
        self.live
    }

    /// One JSON document on one line of stdout.
    pub fn json(self, document: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(document)
            .map_err(|error| Failure::new("output_failed", format!("failed to write the answer: {error}")))?;
        self.line(&text)
    }

    /// One line of stdout.
    pub fn line(self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{text}")?;
        stdout.flush()?;
        Ok(())
    }

    pub fn lines<T: AsRef<str>>(self, lines: impl IntoIterator<Item = T>) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        for line in lines {
            writeln!(stdout, "{}", line.as_ref())?;
        }
        stdout.flush()?;
        Ok(())
    }

    pub fn table(self, table: &Table) -> Result<(), Failure> {
        self.lines(table.lines(self.width, self.colour))
    }

    /// A remark on stderr. Nobody waits for it, so a closed stderr stops nothing.
    pub fn remark(self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// `text` in a style, where colour is wanted.
    pub fn paint(self, style: Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// `✓ completed`.
    pub fn state(self, state: ShownState) -> String {
        let mark = marks::of_state(state);
        self.paint(mark.style, &format!("{} {}", mark.shape, state.word()))
    }

    /// Replaces the moving line on stderr; an empty text takes it away.
    pub fn progress(self, text: &str) {
        if !self.live {
            return;
        }
        let columns =
            terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| usize::from(width.0));
        let text = cut(text, columns.saturating_sub(1));
        let mut stderr = io::stderr().lock();
        // Back to the first column, erase the line (ECMA-48 EL).
        let _ = write!(stderr, "\r\u{1b}[2K{text}");
        let _ = stderr.flush();
    }
}
