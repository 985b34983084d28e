//! What one run of a command left behind.

use serde_json::Value;

/// Exit status and output of a finished command.
#[derive(Debug, Clone)]
pub struct Output {
    /// The command as typed, for messages.
    pub command: String,
    /// The exit code; none when a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Asserts exit code 0 and returns the JSON document of standard output.
    pub fn ok(&self) -> Value {
        self.exits(0).json()
    }

    /// Asserts the exit code.
    pub fn exits(&self, code: i32) -> &Self {
        assert_eq!(
            self.code,
            Some(code),
            "exit code of `{}`; stdout: {} stderr: {}",
            self.command,
            self.stdout,
            self.stderr
        );
        self
    }

    /// Standard output as one JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("`{}` did not print one JSON document ({error}): {self:?}", self.command)
        })
    }

    /// Standard output as JSON lines.
    pub fn lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| {
                    panic!("`{}` printed a line that is not JSON ({error}): {line}", self.command)
                })
            })
            .collect()
    }

    /// The `items` of a list.
    pub fn items(&self) -> Vec<Value> {
        self.ok()["items"].as_array().unwrap_or_else(|| panic!("no items: {self:?}")).clone()
    }

    /// Asserts that the command failed with `exit` and a well-formed
    /// `{"error":{"code","message"}}` on standard output, and returns the code.
    pub fn error_code(&self, exit: i32) -> String {
        self.exits(exit);
        self.assert_no_panic();
        let error = &self.json()["error"];
        let code = error["code"].as_str().unwrap_or_else(|| panic!("no error code: {self:?}"));
        let message = error["message"].as_str().unwrap_or_else(|| panic!("no error message: {self:?}"));
        assert!(
            !code.is_empty()
                && code.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
            "an error code is snake case: {code}"
        );
        assert_is_one_plain_line(message);
        code.to_owned()
    }

    /// Asserts the people's form of a failure: exactly one line on standard
    /// error, nothing on standard output.
    pub fn is_one_line_of_error(&self, exit: i32) -> &Self {
        self.exits(exit);
        self.assert_no_panic();
        assert_eq!(self.stdout, "", "an error is not output: {self:?}");
        assert_is_one_plain_line(self.stderr.trim_end_matches('\n'));
        self
    }

    fn assert_no_panic(&self) {
        for sign in ["panicked at", "RUST_BACKTRACE", "stack backtrace"] {
            assert!(!self.stderr.contains(sign), "`{}` panicked: {}", self.command, self.stderr);
        }
    }
}

fn assert_is_one_plain_line(text: &str) {
    assert!(!text.trim().is_empty(), "an error says what was tried");
    assert!(!text.contains('\n'), "an error is one line: {text:?}");
    assert!(!text.chars().any(char::is_control), "an error is plain text: {text:?}");
}
