//! `taskbell`: the headless engine and the command line that talks to it.
//!
//! | question | room |
//! |---|---|
//! | what each command does | [`commands`], a file a noun |
//! | when a wait is over, and exit codes | [`outcome`] |
//! | what is said when something goes wrong | [`failure`], [`usage`] |
//! | finding and asking the engine; attending to a task | [`session`], [`engine`], [`feed`] |
//! | what people see | [`term`], [`words`], [`span`] |
//!
//! Decisions about tasks are the engine's; nothing here follows, retries or stores.

mod commands;
mod engine;
mod failure;
mod feed;
mod log;
mod outcome;
mod session;
mod signals;
mod span;
mod term;
mod usage;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::commands::Command;
use crate::failure::Failure;
use crate::session::Session;
use crate::term::out::{Colour, Form, Out};

/// An engine that runs for weeks allocates and frees with every event, on several threads: this allocator takes
/// an eighth less CPU time for it than the C library's, and gives memory back.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Follow agent work after the connection drops.
///
/// Taskbell keeps A2A tasks attached, confirms what agents say of them, and tells when one needs an answer or
/// has ended. `taskbell serve` runs the engine; the other commands talk to it. A task is written AGENT/TASKID;
/// a unique prefix of the id is enough.
#[derive(Debug, Parser)]
#[command(
    name = "taskbell",
    version,
    max_term_width = 100,
    after_help = "\
Example:
  taskbell serve --demo &
  taskbell send demo 'build it' --follow"
)]
struct Cli {
    /// The folder where the engine keeps its data [default: the platform's]
    #[arg(long, value_name = "DIR", env = "TASKBELL_DATA_DIR", global = true, hide_env_values = true)]
    data_dir: Option<PathBuf>,
    /// Answer with one JSON document, or JSON lines, on stdout
    #[arg(long, global = true)]
    json: bool,
    /// Colour the output [auto: on a terminal, unless NO_COLOR is set]
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, hide_default_value = true, global = true)]
    color: Colour,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        // The place, never the message: it could quote what was being worked on.
        let place =
            panic.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        use std::io::Write;
        if taskbell_engine::guarded::is_guarded() {
            let _ = writeln!(
                std::io::stderr(),
                "taskbell: a request met an error of its own{place}; please report it"
            );
            return;
        }
        let _ =
            writeln!(std::io::stderr(), "taskbell: stopped by an error of its own{place}; please report it");
        std::process::exit(i32::from(outcome::PANICKED));
    }));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error),
    };
    let form = if cli.json { Form::Json } else { Form::People };
    let out = Out::new(form, cli.color);
    match start(cli, out) {
        Ok(exit) => ExitCode::from(exit),
        Err(failure) => report(out, &failure),
    }
}

fn start(cli: Cli, out: Out) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("start_failed", format!("failed to start: {error}")))?;
    let session = Session::new(cli.data_dir, out);
    let done = runtime.block_on(cli.command.run(&session));
    // Never joined: a thread may hang in a keyring that does not answer, or in a read of the terminal.
    runtime.shutdown_background();
    done
}

fn report(out: Out, failure: &Failure) -> ExitCode {
    if !failure.is_closed_pipe() {
        out.progress("");
        let told = if out.is_json() { out.json(&failure.document()) } else { Err(Failure::new("", "")) };
        // The document may have nowhere to go; the line then still has.
        if told.is_err() {
            out.remark(&failure.line());
        }
    }
    ExitCode::from(failure.exit())
}
