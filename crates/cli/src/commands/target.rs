//! `target`: where clients are called back.

use clap::Subcommand;
use taskbell_core::ids::ClientName;
use taskbell_core::text;
use taskbell_engine::api::views::{AllowTargetRequest, TargetView};

use crate::failure::Failure;
use crate::session::Session;
use crate::term::marks::{AMBER, GREEN, RED};
use crate::term::out::Out;
use crate::term::table::{Cell, Give, Table};
use crate::words::Clock;

/// See and change where clients of the gateway are called back
///
/// A client may name any public https address. A port of this machine needs your approval, client by client.
#[derive(Debug, Subcommand)]
pub enum Target {
    /// Let a client be called back at a port of this machine
    #[command(after_help = "Example:\n  taskbell target allow editor 9000")]
    Allow {
        /// The client's name
        client: ClientName,
        /// The port, called as http://127.0.0.1:PORT
        #[arg(value_parser = clap::value_parser!(u16).range(1..))]
        port: u16,
    },
    /// List the targets: how they do, what waits for them, what was dropped
    #[command(after_help = "Example:\n  taskbell target list")]
    List,
    /// Take an approval back
    #[command(after_help = "Example:\n  taskbell target remove 3")]
    Remove(One),
    /// Send nothing to a target for now; ends and questions wait
    #[command(after_help = "Example:\n  taskbell target pause 3")]
    Pause(One),
    /// Call a target again, and send it what waits
    #[command(after_help = "Example:\n  taskbell target resume 3")]
    Resume(One),
}

#[derive(Debug, clap::Args)]
pub struct One {
    /// As `target list` numbers it
    id: u64,
}

impl Target {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let out = session.out;
        let engine = session.engine().await?;
        let target = match self {
            Self::List => {
                let page = engine.targets().await?;
                if out.is_json() {
                    out.json(&page)?;
                } else if page.items.is_empty() {
                    out.remark("no client registered a callback");
                } else {
                    out.table(&table(&page.items, &Clock::system()))?;
                }
                return Ok(0);
            }
            Self::Remove(one) => {
                engine.remove_target(one.id).await?;
                if out.is_json() {
                    out.json(&serde_json::json!({ "removed": one.id }))?;
                } else {
                    out.line(&format!("removed target {}", one.id))?;
                }
                return Ok(0);
            }
            Self::Allow { client, port } => engine.allow_target(&AllowTargetRequest { client, port }).await?,
            Self::Pause(one) => engine.change_target(one.id, "pause").await?,
            Self::Resume(one) => engine.change_target(one.id, "resume").await?,
        };
        show(&target, out)?;
        Ok(0)
    }
}

fn show(target: &TargetView, out: Out) -> Result<(), Failure> {
    if out.is_json() {
        out.json(target)
    } else {
        out.table(&table(std::slice::from_ref(target), &Clock::system()))
    }
}

fn table(targets: &[TargetView], clock: &Clock) -> Table {
    let mut table = Table::new([
        ("ID", Give::Keep),
        ("CLIENT", Give::Cut(8)),
        ("TARGET", Give::Cut(20)),
        ("STATE", Give::Keep),
        ("WAITING", Give::Keep),
        ("DROPPED", Give::Keep),
        ("LAST ERROR", Give::Cut(12)),
    ]);
    for target in targets {
        let style = match target.state.as_str() {
            "ok" => GREEN,
            "failing" => AMBER,
            _ => RED,
        };
        let error = match (&target.last_error, target.last_failed_at) {
            (Some(error), Some(at)) => format!("{} {}", text::plain(error), clock.ago(at)),
            (_, _) => String::new(),
        };
        table.row([
            target.id.to_string().into(),
            text::plain(target.client.as_str()).into(),
            text::plain(&target.target).into(),
            Cell::styled(text::plain(&target.state), style),
            target.waiting.to_string().into(),
            format!("{}/{}", target.dropped, target.updates).into(),
            error.into(),
        ]);
    }
    table
}
