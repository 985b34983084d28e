//! `reconcile`: read tasks now, and say what had been missed.

use std::time::Duration;

use clap::Args;
use taskbell_core::ids::{AgentName, TaskRef};
use taskbell_core::text;
use taskbell_engine::api::views::{ReconcileItem, ReconcileRequest, ReconcileVerdict};

use crate::failure::Failure;
use crate::session::Session;
use crate::span;
use crate::term::marks::{self, AMBER, DIM, RED};
use crate::term::out::Out;
use crate::term::table::{Cell, Give, Table};
use crate::words;

/// Ask the agents what their tasks are now, and say what had been missed
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  taskbell reconcile --since 2h")]
#[group(id = "which", required = true, multiple = false)]
pub struct Reconcile {
    /// AGENT/TASKID, or a unique prefix; may be more than one
    tasks: Vec<TaskRef>,
    /// All that are open
    #[arg(long)]
    all: bool,
    /// The open ones of one agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentName>,
    /// All that changed within this time, ended ones too
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
    since: Option<Duration>,
}

impl Reconcile {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let engine = session.engine().await?;
        let mut tasks = Vec::new();
        for task in &self.tasks {
            tasks.push(engine.resolve(task).await?);
        }
        let request = ReconcileRequest {
            tasks,
            all: self.all,
            agent: self.agent,
            since_ms: self.since.map(|since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
        };
        let page = engine.reconcile(&request).await?;
        let out = session.out;
        if out.is_json() {
            out.json(&page)?;
            return Ok(0);
        }
        if page.items.is_empty() {
            out.remark("no such task");
            return Ok(0);
        }
        out.table(&table(&page.items))?;
        remark(&page.items, out);
        Ok(0)
    }
}

fn table(items: &[ReconcileItem]) -> Table {
    let mut table = Table::new([
        ("TASK", Give::Keep),
        ("BEFORE", Give::Keep),
        ("AFTER", Give::Keep),
        ("VERDICT", Give::Keep),
        ("NOTE", Give::Cut(12)),
    ]);
    for item in items {
        let (verdict, style) = match item.verdict {
            ReconcileVerdict::Unchanged => ("unchanged", DIM),
            ReconcileVerdict::Changed => ("changed", anstyle::Style::new()),
            ReconcileVerdict::Lost => ("lost", RED),
            ReconcileVerdict::WrongIdentity => ("wrong identity", RED),
            ReconcileVerdict::Unreachable => ("unreachable", AMBER),
        };
        let note = item.error.as_deref().map(text::plain).or_else(|| missed(item)).unwrap_or_default();
        table.row([
            words::task_name(&item.task).into(),
            marks::cell(item.before),
            marks::cell(item.after),
            Cell::styled(verdict, style),
            note.into(),
        ]);
    }
    table
}

/// `missed by push: the agent did not call back; found by poll`.
fn missed(item: &ReconcileItem) -> Option<String> {
    let plain = |text: &Option<String>| text.as_deref().map(text::plain);
    item.missed.then(|| {
        let way = plain(&item.missed_way).map_or_else(String::new, |way| format!(" by {way}"));
        let why = plain(&item.missed_why).map_or_else(String::new, |why| format!(": {why}"));
        let found = plain(&item.found_by).map_or_else(String::new, |by| format!("; found by {by}"));
        format!("missed{way}{why}{found}")
    })
}

fn remark(items: &[ReconcileItem], out: Out) {
    let count = |holds: fn(&ReconcileItem) -> bool| items.iter().filter(|item| holds(item)).count();
    let missed = count(|item| item.missed);
    let unreachable = count(|item| item.verdict == ReconcileVerdict::Unreachable);
    let mut said = format!("{} read, {missed} missed before", items.len() - unreachable);
    if unreachable > 0 {
        said.push_str(&format!(", {unreachable} not read: what was known of them stands"));
    }
    out.remark(&said);
}
