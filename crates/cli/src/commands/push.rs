//! `push`: what agents were asked to call back about.

use clap::Subcommand;
use taskbell_core::ids::TaskRef;
use taskbell_core::text;
use taskbell_engine::api::views::{RegisterRequest, RegistrationView, RegistrationsView};

use crate::failure::Failure;
use crate::session::Session;
use crate::term::out::Out;
use crate::term::table::{Give, Table};

/// See and change what agents were asked to call back about
///
/// Agents on this machine, and with a public address all others, are asked by themselves. `taskbell settings set
/// push.AGENT off` turns that off for one agent.
#[derive(Debug, Subcommand)]
pub enum Push {
    /// Ask a task's agent to call back, now
    #[command(after_help = "Example:\n  taskbell push register builder/3f2a9c1e")]
    Register {
        /// AGENT/TASKID, or a unique prefix
        task: TaskRef,
        /// Have the agent send a Basic credential instead of a Bearer one
        #[arg(long)]
        basic: bool,
    },
    /// List the registrations of a task, or of all
    #[command(after_help = "Example:\n  taskbell push list")]
    List {
        /// AGENT/TASKID, or a unique prefix
        task: Option<TaskRef>,
    },
    /// Take a task's registration back; senders are told that it is gone
    #[command(after_help = "Example:\n  taskbell push remove builder/3f2a9c1e")]
    Remove {
        /// AGENT/TASKID, or a unique prefix
        task: TaskRef,
    },
    /// Give a task's registration new secrets; the old ones hold for 24 hours more
    #[command(after_help = "Example:\n  taskbell push rotate builder/3f2a9c1e")]
    Rotate {
        /// AGENT/TASKID, or a unique prefix
        task: TaskRef,
    },
    /// Call ourselves back through the public address
    #[command(after_help = "Example:\n  taskbell push test")]
    Test,
}

impl Push {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let out = session.out;
        let engine = session.engine().await?;
        let view = match self {
            Self::Register { task, basic } => {
                let task = engine.resolve(&task).await?;
                let request = RegisterRequest { scheme: basic.then(|| "basic".to_owned()) };
                return one(&engine.register_push(&task, &request).await?, out);
            }
            Self::Rotate { task } => {
                let task = engine.resolve(&task).await?;
                return one(&engine.rotate_push(&task).await?, out);
            }
            Self::List { task: Some(task) } => {
                let task = engine.resolve(&task).await?;
                engine.registrations_of(&task).await?
            }
            Self::List { task: None } => engine.registrations().await?,
            Self::Remove { task } => {
                let task = engine.resolve(&task).await?;
                engine.remove_push(&task).await?
            }
            Self::Test => {
                let reach = engine.test_reachability().await?;
                let is_reached = reach.test == "reached";
                if out.is_json() {
                    out.json(&reach)?;
                } else {
                    let address = text::plain(reach.public_url.as_deref().unwrap_or_default());
                    let said = match &reach.test_failure {
                        Some(failure) => text::plain(&failure.detail),
                        None => {
                            "a callback of our own arrived, and nothing else of ours answers there".to_owned()
                        }
                    };
                    out.line(&format!("{address}: {said}"))?;
                }
                return Ok(if is_reached { 0 } else { 1 });
            }
        };
        if out.is_json() {
            out.json(&view)?;
        } else {
            print(&view, out)?;
        }
        Ok(0)
    }
}

fn one(registration: &RegistrationView, out: Out) -> Result<u8, Failure> {
    if out.is_json() {
        out.json(registration)?;
    } else {
        out.table(&table(std::slice::from_ref(registration)))?;
    }
    Ok(0)
}

fn print(view: &RegistrationsView, out: Out) -> Result<(), Failure> {
    out.table(&table(&view.items))?;
    if let Some(reason) = &view.reason {
        out.remark(&text::plain(&reason.detail));
    }
    Ok(())
}

fn table(items: &[RegistrationView]) -> Table {
    let mut table = Table::new([
        ("TASK", Give::Cut(12)),
        ("STATE", Give::Keep),
        ("LAST CALLBACK", Give::Keep),
        ("ADDRESS", Give::Cut(20)),
        ("WHY", Give::Cut(20)),
    ]);
    for item in items {
        let last = item.last_callback_at.map(|at| at.to_string()).unwrap_or_default();
        let why = item.failure.as_ref().map(|failure| text::plain(&failure.detail)).unwrap_or_default();
        table.row([
            text::plain(&item.task.to_string()).into(),
            text::plain(&item.state).into(),
            last.into(),
            text::plain(&item.url).into(),
            why.into(),
        ]);
    }
    table
}
