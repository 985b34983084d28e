//! The log of a program in the foreground: on stderr, so that stdout stays an answer, and in the data folder.

use std::io::IsTerminal;

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt, registry};

use crate::failure::Failure;
use crate::term::out::Out;

/// What is logged where TASKBELL_LOG does not say: our own words, and only warnings of what we use.
const USUAL: &str = "warn,taskbell=info,taskbell_engine=info,taskbell_demo_agent=info";

/// Starts the log. Errors: TASKBELL_LOG is no filter.
pub fn start(out: Out) -> Result<(), Failure> {
    let wanted = std::env::var("TASKBELL_LOG").unwrap_or_default();
    let filter = filter(&wanted, out.is_json())?;
    let stderr = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(out.has_colour() && std::io::stderr().is_terminal())
        .with_target(false)
        // It would tell of a closed stderr by printing to it, and that panics.
        .log_internal_errors(false)
        .with_filter(filter);
    let started = registry().with(stderr).with(taskbell_engine::logs::layer()).try_init();
    // A second log would be our own mistake; the first one goes on.
    debug_assert!(started.is_ok());
    Ok(())
}

fn filter(wanted: &str, json: bool) -> Result<EnvFilter, Failure> {
    let text = match (wanted.trim(), json) {
        ("", true) => "warn",
        ("", false) => USUAL,
        (wanted, _) => wanted,
    };
    EnvFilter::try_new(text).map_err(|error| {
        Failure::usage(format!(
            "TASKBELL_LOG is neither a level nor a filter like taskbell_engine=debug: {error}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_or_a_filter_is_taken_and_nonsense_is_refused() {
        for wanted in ["", "debug", "warn,taskbell_engine::follower=trace", " info "] {
            assert!(filter(wanted, true).is_ok() && filter(wanted, false).is_ok(), "{wanted:?}");
        }
        assert_eq!(filter("taskbell_engine=loud", false).unwrap_err().exit(), 2);
    }

    #[test]
    fn scripts_get_warnings_only() {
        assert_eq!(filter("", true).unwrap().to_string(), "warn");
    }
}
