//! `inbox`: what came, what it was worth, the same again, and a test.

use clap::{Args, Subcommand};
use serde_json::Value;
use taskbell_core::ids::{AgentName, TaskRef};
use taskbell_core::search::Screen;
use taskbell_core::text;
use taskbell_engine::api::views::{
    CallbackDetail, CallbackVerdict, CallbackView, DifferenceView, InboxTestView, ProofsView, ReplayView,
    ShownState,
};
use taskbell_engine::claims::ClaimFilter;

use super::view::query;
use crate::failure::Failure;
use crate::session::Session;
use crate::term::clean;
use crate::term::marks::{AMBER, BLUE, BOLD, DIM, GREEN, RED};
use crate::term::out::Out;
use crate::term::table::{Cell, Give, Table};
use crate::words::{self, Clock};

/// See the callbacks that came, and whether their tasks bear them out
#[derive(Debug, Subcommand)]
pub enum Inbox {
    /// List what came, the latest first
    #[command(after_help = "Example:\n  taskbell inbox list --verdict ahead --agent builder")]
    List(List),
    /// Show one: both documents and where they differ, its proofs, its headers, its body
    #[command(after_help = "Example:\n  taskbell inbox show 17")]
    Show(One),
    /// Read its task now and hold the callback against it; changes nothing
    #[command(after_help = "Example:\n  taskbell inbox replay 17")]
    Replay(One),
    /// Post a callback of our own in each dialect to our own inbox
    #[command(after_help = "Example:\n  taskbell inbox test")]
    Test,
}

#[derive(Debug, Args)]
pub struct List {
    /// What to look for: words of the task, "phrases", agent: state: verdict: is: since:
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    /// Only of one agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentName>,
    /// Only of one task: AGENT/TASKID, or a unique prefix
    #[arg(long, value_name = "TASK")]
    task: Option<TaskRef>,
    /// Only with this verdict; may be given more than once
    #[arg(long, value_name = "VERDICT", value_parser = verdict)]
    verdict: Vec<CallbackVerdict>,
    /// Only those of this view; `view list` names them
    #[arg(long, value_name = "NAME")]
    view: Option<String>,
    /// Rows at most
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Go on after a page: its `next`
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

#[derive(Debug, Args)]
pub struct One {
    /// As `inbox list` names it
    id: String,
}

fn verdict(word: &str) -> Result<CallbackVerdict, String> {
    CallbackVerdict::from_word(word).ok_or_else(|| {
        format!("a verdict is one of {}", CallbackVerdict::ALL.map(CallbackVerdict::word).join(", "))
    })
}

impl Inbox {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let out = session.out;
        let engine = session.engine().await?;
        match self {
            Self::List(list) => {
                let task = match &list.task {
                    Some(task) => Some(engine.resolve(task).await?),
                    None => None,
                };
                let filter = ClaimFilter {
                    query: query(&engine, Screen::Inbox, list.view.as_deref(), &list.query).await?,
                    agent: list.agent,
                    task,
                    verdicts: list.verdict,
                    limit: Some(list.limit),
                    cursor: list.cursor,
                };
                let page = engine.inbox(&filter).await?;
                if out.is_json() {
                    out.json(&page)?;
                } else if page.items.is_empty() {
                    out.remark("nothing came; `taskbell inbox test` tries it");
                } else {
                    out.table(&table(&page.items, &Clock::system()))?;
                    if let Some(next) = page.next {
                        out.remark(&format!("more: taskbell inbox list --cursor {next}"));
                    }
                }
            }
            Self::Show(one) => {
                let detail = engine.callback(&one.id).await?;
                if out.is_json() {
                    out.json(&detail)?;
                } else {
                    out.lines(page(&detail, &Clock::system(), out))?;
                }
            }
            Self::Replay(one) => {
                let replay = engine.replay(&one.id).await?;
                if out.is_json() {
                    out.json(&replay)?;
                } else {
                    out.lines(replay_lines(&replay, out))?;
                }
                return Ok(u8::from(replay.error.is_some()));
            }
            Self::Test => {
                let tests = engine.test_inbox().await?;
                let ok = tests.items.iter().all(|test| test.ok);
                if out.is_json() {
                    out.json(&tests)?;
                } else {
                    out.table(&test_table(&tests.items))?;
                }
                return Ok(u8::from(!ok));
            }
        }
        Ok(0)
    }
}

fn style(verdict: CallbackVerdict) -> anstyle::Style {
    match verdict {
        CallbackVerdict::Confirmed => GREEN,
        CallbackVerdict::Pending => BLUE,
        CallbackVerdict::Ahead | CallbackVerdict::Unreachable => AMBER,
        CallbackVerdict::Rejected | CallbackVerdict::Unmatched => RED,
        CallbackVerdict::Behind | CallbackVerdict::Duplicate => DIM,
    }
}

/// `claimed → confirmed`.
fn states(claimed: Option<ShownState>, confirmed: Option<ShownState>) -> String {
    let word = |state: Option<ShownState>| state.map_or("–", ShownState::word);
    format!("{} → {}", word(claimed), word(confirmed))
}

fn proofs(proofs: Option<&ProofsView>) -> String {
    let Some(proofs) = proofs else { return String::new() };
    format!("token {}, authorization {}", text::plain(&proofs.token), text::plain(&proofs.authorization))
}

fn table(items: &[CallbackView], clock: &Clock) -> Table {
    let mut table = Table::new([
        ("ID", Give::Keep),
        ("WHEN", Give::Keep),
        ("VERDICT", Give::Keep),
        ("TASK", Give::Cut(12)),
        ("CLAIMED → CONFIRMED", Give::Keep),
        ("PROOFS", Give::Cut(12)),
    ]);
    for item in items {
        let times = if item.count > 1 { format!(" ×{}", item.count) } else { String::new() };
        let task = item.task.as_ref().map(words::task_name);
        table.row([
            text::plain(&item.id).into(),
            Cell::styled(clock.ago(item.at), DIM),
            Cell::styled(format!("{}{times}", item.verdict.word()), style(item.verdict)),
            task.unwrap_or_else(|| text::plain(&item.registration)).into(),
            states(item.claimed, item.confirmed).into(),
            Cell::styled(proofs(item.proofs.as_ref()), DIM),
        ]);
    }
    table
}

fn page(detail: &CallbackDetail, clock: &Clock, out: Out) -> Vec<String> {
    let item = &detail.item;
    let label = |name: &str| out.paint(DIM, &format!("{name:10}"));
    let mut lines = vec![format!(
        "{}  {}",
        out.paint(BOLD, &format!("callback {}", text::plain(&item.id))),
        out.paint(style(item.verdict), item.verdict.word()),
    )];
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("{}{value}", label(name)));
        }
    };
    fact("why", text::plain(&item.text));
    fact("task", item.task.as_ref().map(words::task_name).unwrap_or_default());
    fact("claims", states(item.claimed, item.confirmed));
    let times = if item.count > 1 { format!(", {} times", item.count) } else { String::new() };
    fact("came", format!("{}{times}", clock.ago(item.at)));
    fact("proofs", proofs(item.proofs.as_ref()));
    fact("to", text::plain(&detail.url));
    for (name, value) in &detail.headers {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        fact("header", format!("{}: {}", text::plain(name), text::plain(&value)));
    }
    lines.extend(difference_lines(&detail.differences, out));
    if let Some(confirmation) = &detail.confirmation {
        let short = if confirmation.shortened { ", without its content" } else { "" };
        lines.push(String::new());
        lines.push(out.paint(DIM, &format!("the task as read {}{short}", clock.ago(confirmation.at))));
        lines.extend(document_lines(&confirmation.document));
    }
    lines.push(String::new());
    match &detail.body {
        Some(body) => {
            lines.push(out.paint(DIM, "the body as it came"));
            let read = serde_json::from_str::<Value>(body);
            lines.extend(read.map_or_else(|_| clean::lines(body), |value| document_lines(&value)));
        }
        None => lines.push(out.paint(DIM, "its body is not kept")),
    }
    lines
}

fn document_lines(document: &Value) -> Vec<String> {
    let text = serde_json::to_string_pretty(document).unwrap_or_default();
    clean::lines(&text).into_iter().map(|line| format!("  {line}")).collect()
}

fn difference_lines(differences: &[DifferenceView], out: Out) -> Vec<String> {
    let mut lines = Vec::new();
    for difference in differences {
        let shown = |value: &Value| text::one_line(&value.to_string(), 60);
        let confirmed = difference.confirmed.as_ref().map_or_else(|| "nothing".to_owned(), shown);
        lines.push(format!(
            "{} {}: claimed {}, confirmed {confirmed}",
            out.paint(AMBER, "≠"),
            text::plain(&difference.pointer),
            shown(&difference.claimed),
        ));
    }
    lines
}

fn replay_lines(replay: &ReplayView, out: Out) -> Vec<String> {
    let mut lines = vec![
        format!(
            "callback {} of {}: {} now, {} before",
            text::plain(&replay.id),
            words::task_name(&replay.task),
            out.paint(style(replay.verdict), replay.verdict.word()),
            replay.before.word(),
        ),
        format!("{}; {}", states(replay.claimed, replay.confirmed), text::plain(&replay.text)),
    ];
    lines.extend(replay.error.as_deref().map(|error| out.paint(AMBER, &text::plain(error))));
    lines.extend(difference_lines(&replay.differences, out));
    lines
}

fn test_table(tests: &[InboxTestView]) -> Table {
    let mut table = Table::new([
        ("DIALECT", Give::Keep),
        ("RESULT", Give::Keep),
        ("STATUS", Give::Keep),
        ("TOOK", Give::Keep),
        ("PROOFS", Give::Cut(12)),
        ("WHY", Give::Cut(12)),
    ]);
    for test in tests {
        let (result, style) = if test.ok { ("✓ taken and kept", GREEN) } else { ("✗ failed", RED) };
        table.row([
            text::plain(&test.dialect).into(),
            Cell::styled(result, style),
            test.status.map(|status| status.to_string()).unwrap_or_default().into(),
            format!("{} ms", test.took_ms).into(),
            Cell::styled(proofs(test.proofs.as_ref()), DIM),
            text::plain(test.error.as_deref().unwrap_or_default()).into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::out::{Colour, Form};
    use serde_json::json;

    #[test]
    fn a_callback_is_shown_with_both_states_and_what_differs_and_no_control_character() {
        let detail: CallbackDetail = serde_json::from_value(json!({
            "id": "17", "at": "2026-01-05T10:00:00.000Z", "lastAt": "2026-01-05T10:00:00.000Z", "count": 2,
            "task": "demo/t-1", "agent": "demo", "shape": "status", "claimed": "completed",
            "claimedRaw": "completed", "confirmed": "working", "verdict": "ahead", "verdictAt": null,
            "reason": "not_ended", "text": "it tells an end, and the task as read goes on",
            "proofs": {"token": "valid", "authorization": "missing"}, "size": 10, "outOfOrder": false,
            "registration": "abcdef…", "headers": {"content-type": "application/json\u{1b}[31m"},
            "body": "{\"x\":\"\u{1b}[2Jhi\"}", "claim": null, "confirmation": null,
            "differences": [{"pointer": "/status/state", "claimed": "a", "confirmed": "b"}],
            "url": "https://h/a2a/callbacks/abcdef…", "policy": "any"
        }))
        .unwrap();
        let clock = Clock::system();
        let lines = page(&detail, &clock, Out::new(Form::People, Colour::Never)).join("\n");
        for part in [
            "callback 17  ahead",
            "claims    completed → working",
            "token valid, authorization missing",
            "≠ /status/state: claimed \"a\", confirmed \"b\"",
            ", 2 times",
        ] {
            assert!(lines.contains(part), "{part} is missing:\n{lines}");
        }
        assert!(!lines.contains('\u{1b}'), "{lines:?}");
    }
}
