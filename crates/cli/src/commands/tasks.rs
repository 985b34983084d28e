//! `tasks`: the list.

use clap::Args;
use taskbell_core::ids::AgentName;
use taskbell_core::search::Screen;
use taskbell_core::text;
use taskbell_engine::api::views::{ShownState, TaskFilter, TaskSummary};

use super::view::query;
use crate::failure::Failure;
use crate::session::Session;
use crate::term::marks::{self, AMBER, DIM};
use crate::term::out::Out;
use crate::term::table::{Cell, Give, Table};
use crate::words::{self, Clock};

/// List tasks, the latest change first
///
/// A query has words, "phrases" and keys: state: agent: via: verdict: is: since:, with a minus before what is to be left
/// out. Words are looked for in titles, questions, answers, conversations, notes and ids.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  taskbell tasks --open report agent:builder since:7d")]
pub struct Tasks {
    /// What to look for
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    /// Only those of this view; `view list` names them
    #[arg(long, value_name = "NAME")]
    view: Option<String>,
    /// Only those that have not ended
    #[arg(long)]
    open: bool,
    /// Only those that wait for you
    #[arg(long)]
    needs_you: bool,
    /// Only those of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentName>,
    /// Only those in this state; may be given more than once
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Vec<ShownState>,
    /// At most so many
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Where the page before said that it goes on
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

fn state(word: &str) -> Result<ShownState, String> {
    ShownState::from_word(word).ok_or_else(|| {
        let words: Vec<&str> = ShownState::ALL.iter().map(|state| state.word()).collect();
        format!("it is one of {}", words.join(", "))
    })
}

impl Tasks {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let out = session.out;
        let engine = session.engine().await?;
        let filter = TaskFilter {
            query: query(&engine, Screen::Tasks, self.view.as_deref(), &self.query).await?,
            open: self.open,
            needs_you: self.needs_you,
            agent: self.agent,
            states: self.state,
            limit: self.limit,
            cursor: self.cursor,
        };
        let page = engine.tasks(&filter).await?;
        if out.is_json() {
            out.json(&page)?;
            return Ok(0);
        }
        if page.items.is_empty() {
            out.remark("no such task");
            return Ok(0);
        }
        out.table(&table(&page.items, &Clock::system(), out))?;
        if let Some(next) = page.next {
            out.remark(&format!("there are more: add --cursor {}", text::plain(&next)));
        }
        Ok(0)
    }
}

fn table(tasks: &[TaskSummary], clock: &Clock, out: Out) -> Table {
    let mut table = Table::new([
        ("STATE", Give::Keep),
        ("TASK", Give::Keep),
        ("TITLE", Give::Cut(12)),
        ("CONFIRMED", Give::Cut(12)),
    ]);
    let names = short_names(tasks, out);
    for (task, name) in tasks.iter().zip(names) {
        let question = words::question(task).filter(|_| task.needs_you);
        let (title, style) = match (&task.hit, question) {
            (Some(hit), _) if hit.place != "title" => (
                format!("{} · {}: {}", text::plain(&task.title), hit.place, words::hit(hit)),
                anstyle::Style::new(),
            ),
            (_, Some(question)) => (question, AMBER),
            (_, None) => (text::plain(&task.title), anstyle::Style::new()),
        };
        table.row([
            marks::cell(task.state),
            name.into(),
            Cell::styled(title, style),
            Cell::styled(seen(task, clock), DIM),
        ]);
    }
    table
}

fn seen(task: &TaskSummary, clock: &Clock) -> String {
    task.last_confirmed.as_ref().map_or_else(
        || "not yet".to_owned(),
        |last| format!("{} by {}", clock.ago(last.at), text::plain(&last.by)),
    )
}

/// On a terminal ids are shortened as far as they stay different in this list, and to eight letters at least:
/// the commands take a unique prefix. A file or a pipe gets them whole.
fn short_names(tasks: &[TaskSummary], out: Out) -> Vec<String> {
    let whole = || tasks.iter().map(|task| words::task_name(&task.task)).collect();
    if out.width().is_none() {
        return whole();
    }
    let ids: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
    let Some(length) = (8..36).find(|length| are_distinct(&ids, *length)) else { return whole() };
    let short = |task: &TaskSummary| {
        let id: String = task.id.as_str().chars().take(length).collect();
        words::task_name(&format!("{}/{id}", task.agent))
    };
    tasks.iter().map(short).collect()
}

fn are_distinct(ids: &[&str], length: usize) -> bool {
    let mut prefixes: Vec<String> = ids.iter().map(|id| id.chars().take(length).collect()).collect();
    prefixes.sort_unstable();
    prefixes.windows(2).all(|pair| pair[0] != pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shortened_only_as_far_as_they_stay_different() {
        assert!(are_distinct(&["0123456789a", "0123456789b"], 11));
        assert!(!are_distinct(&["0123456789a", "0123456789b"], 10));
        assert!(are_distinct(&["日本語のタスク番号一", "日本語のタスク番号二"], 10));
    }

    #[test]
    fn a_state_of_no_version_is_refused_with_the_words_there_are() {
        assert_eq!(state("wrong-identity"), Ok(ShownState::WrongIdentity));
        assert!(state("running").unwrap_err().contains("input-required"));
    }
}
