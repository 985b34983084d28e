//! A command line that cannot be meant: one line, exit 2. Help and version that were asked for: exit 0.

use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::failure::Failure;
use crate::{Cli, outcome};

/// Prints what clap found and gives the exit code.
pub fn report(error: &clap::Error) -> ExitCode {
    let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let json = wants_json(std::env::args_os());
    let no_command = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if asked || (no_command && !json) {
        // A closed pipe is all that can go wrong.
        let _ = error.print();
        return ExitCode::from(if asked { 0 } else { outcome::USAGE });
    }
    let failure = Failure::usage(line(error));
    if json {
        use std::io::Write;
        let _ = writeln!(std::io::stdout(), "{}", failure.document());
    } else {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "{}", failure.line());
    }
    ExitCode::from(failure.exit())
}

/// Whether `--json` stands among the arguments, which could not be parsed as a whole.
fn wants_json(args: impl Iterator<Item = std::ffi::OsString>) -> bool {
    args.skip(1).take_while(|arg| arg != "--").any(|arg| arg == "--json")
}

/// clap's message and its tips as one line, with where to read on.
fn line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command is missing; see 'taskbell --help'".to_owned();
    }
    let rendered = error.render().to_string();
    let body = rendered.strip_prefix("error: ").unwrap_or(&rendered);
    let mut said = String::new();
    for text in body.lines().map(str::trim) {
        if text.starts_with("Usage:") || text.starts_with("For more information") {
            break;
        }
        let joint = match (said.is_empty(), text.starts_with("tip:"), said.ends_with(':')) {
            (true, _, _) => "",
            (false, true, _) => "; ",
            (false, false, _) => " ",
        };
        if !text.is_empty() {
            said.push_str(joint);
            said.push_str(text);
        }
    }
    format!("{said}; see '{} --help'", command_of(error))
}

/// `taskbell agent add`: the command whose usage the error quotes.
fn command_of(error: &clap::Error) -> String {
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let mut path = vec!["taskbell"];
    let mut command = &Cli::command();
    for word in usage.split_whitespace().skip_while(|word| *word != "taskbell").skip(1) {
        match command.find_subcommand(word) {
            Some(found) => command = found,
            None => break,
        }
        path.push(word);
    }
    path.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn said(args: &[&str]) -> String {
        line(&Cli::try_parse_from(args).unwrap_err())
    }

    #[test]
    fn a_wrong_command_line_is_told_on_one_line_with_where_to_read_on() {
        let line = said(&["taskbell", "send", "demo", "hi", "--wiat"]);
        assert!(
            line.starts_with("unexpected argument '--wiat' found; tip: a similar argument exists: '--wait'")
        );
        assert!(line.ends_with("; see 'taskbell send --help'"), "{line}");
        let line = said(&["taskbell", "agent", "add"]);
        assert!(line.contains("<URL>") && line.contains("--name <NAME>"), "{line}");
        assert!(line.ends_with("; see 'taskbell agent add --help'"), "{line}");
        assert!(!line.contains('\n'));
        let line = said(&["taskbell", "wait", "no-task"]);
        assert!(line.contains("a task is written AGENT/TASKID"), "{line}");
    }

    #[test]
    fn json_is_wanted_wherever_the_flag_stands_but_not_after_two_dashes() {
        let args = |words: &[&str]| wants_json(words.iter().map(std::ffi::OsString::from));
        assert!(args(&["taskbell", "nonsense", "--json"]));
        assert!(!args(&["taskbell", "send", "demo", "--", "--json"]));
    }

    #[test]
    fn the_command_tree_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_says_what_it_does_and_has_one_example() {
        fn look(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            assert!(command.get_about().is_some(), "{path} says nothing of itself");
            if command.has_subcommands() {
                command.get_subcommands().for_each(|sub| look(sub, &path));
            } else {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.starts_with("Example:\n  taskbell "), "{path} has no example");
            }
        }
        look(&Cli::command(), "");
    }
}
