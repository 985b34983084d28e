//! What went wrong, as a script and as a person read it.

use std::io;

use serde_json::{Value, json};
use taskbell_core::text;

use crate::outcome;

/// An error on its way to the exit: a stable code, one line, and the exit code.
#[derive(Debug)]
pub struct Failure {
    code: String,
    message: String,
    exit: u8,
}

impl Failure {
    /// `code` is what scripts match on; `message` says in lower case what was tried and what to do.
    pub fn new(code: impl Into<String>, message: impl AsRef<str>) -> Self {
        // Messages can quote an agent's or the engine's words: no line of theirs may move the cursor.
        Self { code: code.into(), message: text::one_line(message.as_ref(), 600), exit: 1 }
    }

    /// A command line that cannot be meant.
    pub fn usage(message: impl AsRef<str>) -> Self {
        Self { exit: outcome::USAGE, ..Self::new("usage", message) }
    }

    pub fn with_exit(self, exit: u8) -> Self {
        Self { exit, ..self }
    }

    pub fn code(&self) -> &str {
        &self.code
    }

    pub fn exit(&self) -> u8 {
        self.exit
    }

    /// Whoever read our output is gone (`| head`): nothing to say, nobody to say it to.
    pub fn is_closed_pipe(&self) -> bool {
        self.code == CLOSED_PIPE
    }

    /// `taskbell: …`, one line.
    pub fn line(&self) -> String {
        format!("taskbell: {}", self.message)
    }

    /// `{"error":{"code","message"}}`.
    pub fn document(&self) -> Value {
        json!({"error": {"code": self.code, "message": self.message}})
    }
}

const CLOSED_PIPE: &str = "output_closed";

impl From<io::Error> for Failure {
    /// For writes to our own output only; other IO names what it was about.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self { code: CLOSED_PIPE.to_owned(), message: String::new(), exit: 0 }
        } else {
            Self::new("output_failed", format!("failed to write the output: {error}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_whatever_it_quotes() {
        let failure = Failure::new("x", "agent said \u{1b}[2J\u{1b}]0;owned\u{7}\r\nline two\u{202e}");
        assert_eq!(failure.line(), "taskbell: agent said line two");
        assert_eq!(failure.document()["error"]["message"], "agent said line two");
    }

    #[test]
    fn an_error_of_endless_text_is_cut() {
        let failure = Failure::new("x", "a".repeat(100_000));
        assert!(failure.line().chars().count() < 700);
    }

    #[test]
    fn a_closed_pipe_is_quiet_and_a_full_disk_is_not() {
        let closed = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(closed.is_closed_pipe() && closed.exit() == 0);
        let full = Failure::from(io::Error::from(io::ErrorKind::StorageFull));
        assert!(!full.is_closed_pipe() && full.exit() == 1);
    }
}
