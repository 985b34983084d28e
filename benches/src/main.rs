//! Measures Taskbell beside other programs that do the same work, on this machine, in one run.
//!
//! Figures only: nothing here passes or fails. Absolute times say as much about the machine as about
//! the programs, so each row names its peer and the ratio is what counts. Every program measured is a
//! process of its own; all of them are this binary again in one of its [`roles`], or the Python SDK.
//!
//! | question | room |
//! |---|---|
//! | what is measured | [`rows`], one room a row |
//! | the programs measured and what feeds them | [`roles`] |
//! | a desktop for programs with a window | [`screen`] |
//! | starting, asking and weighing a program | [`program`] |
//! | how figures are shown | [`table`] |
//! | what they were measured on | [`machine`] |

mod machine;
mod program;
mod roles;
mod rows;
mod screen;
mod table;
mod wire;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::roles::Role;
use crate::table::Table;

/// The engine measured here is as the program has it, and so are its peers of the same language.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Whatever went wrong: a measurement that cannot be made is told and the others go on.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Measure Taskbell beside other programs
#[derive(Parser)]
struct Cli {
    /// Small numbers and one run each, to see that everything works
    #[arg(long, global = true)]
    quick: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Memory and CPU of followed streams
    Streams,
    /// All streams back after the agent's restart
    Restart,
    /// Reading a thousand tasks again
    Sweep,
    /// Start, pages and idle memory with a large store
    Start,
    /// Lists, searches and details with a large store
    Search,
    /// Durable writes with group commit
    Store,
    /// Callbacks acknowledged at the inbox
    Inbox,
    /// Ends called back beside a flood of progress
    Dispatcher,
    /// The window beside the least one there is; its page under a quick feed
    Window,
    /// Events through the gateway and through relays
    Gateway,
    #[command(hide = true, subcommand)]
    Role(Role),
    /// The row of `restart`, within a network namespace where nobody else connects
    #[command(hide = true)]
    RestartAlone,
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    Full,
    Quick,
}

impl Scale {
    /// One of the two.
    pub fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }

    /// Runs of each measurement: the median of these counts.
    pub fn runs(self) -> usize {
        self.pick(3, 1)
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let scale = if cli.quick { Scale::Quick } else { Scale::Full };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("taskbell-benches: failed to start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let done = match cli.command {
        Some(Command::Role(role)) => runtime.block_on(role.run()),
        Some(Command::RestartAlone) => runtime.block_on(rows::restart::run_alone(scale)),
        command => runtime.block_on(measure(command, scale)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("taskbell-benches: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(command: Option<Command>, scale: Scale) -> Result<(), Failure> {
    println!("{}", machine::describe());
    let wants = |one: &Command| {
        command.as_ref().is_none_or(|command| std::mem::discriminant(command) == std::mem::discriminant(one))
    };
    let mut table = Table::default();
    let mut failed = false;
    // One after the other: two at a time would measure each other.
    if wants(&Command::Store) {
        failed |= told(rows::store::run(scale, &mut table).await, "store");
    }
    if wants(&Command::Inbox) {
        failed |= told(rows::inbox::run(scale, &mut table).await, "inbox");
    }
    if wants(&Command::Dispatcher) {
        failed |= told(rows::dispatcher::run(scale, &mut table).await, "dispatcher");
    }
    if wants(&Command::Start) {
        failed |= told(rows::start::run(scale, &mut table).await, "start");
    }
    if wants(&Command::Search) {
        failed |= told(rows::search::run(scale, &mut table).await, "search");
    }
    if wants(&Command::Window) {
        failed |= told(rows::window::run(scale, &mut table).await, "window");
    }
    if wants(&Command::Sweep) {
        failed |= told(rows::sweep::run(scale, &mut table).await, "sweep");
    }
    if wants(&Command::Restart) {
        failed |= told(rows::restart::run(scale, &mut table).await, "restart");
    }
    if wants(&Command::Streams) {
        failed |= told(rows::streams::run(scale, &mut table).await, "streams");
    }
    if wants(&Command::Gateway) {
        failed |= told(rows::gateway::run(scale, &mut table).await, "gateway");
    }
    println!("{table}");
    if failed { Err("not everything could be measured; see above".into()) } else { Ok(()) }
}

fn told(done: Result<(), Failure>, what: &str) -> bool {
    if let Err(error) = &done {
        eprintln!("{what}: {error}");
    }
    done.is_err()
}
