//! `show`: one task with everything known of it.

use clap::Args;
use taskbell_core::ids::TaskRef;
use taskbell_core::text;
use taskbell_engine::api::views::{ArtifactView, TaskDetail};

use crate::failure::Failure;
use crate::session::Session;
use crate::term::clean;
use crate::term::marks::{AMBER, BOLD, DIM};
use crate::term::out::Out;
use crate::term::table::wrap;
use crate::words::{self, Clock};

/// Show a task: its state, how it is followed, its artifacts and what happened
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  taskbell show builder/3f2a9c1e")]
pub struct Show {
    /// AGENT/TASKID, or a unique prefix
    task: TaskRef,
}

impl Show {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let engine = session.engine().await?;
        let task = engine.resolve(&self.task).await?;
        let detail = engine.task(&task).await?;
        if session.out.is_json() {
            session.out.json(&detail)?;
        } else {
            session.out.lines(page(&detail, &Clock::system(), session.out))?;
        }
        Ok(0)
    }
}

/// The three facts first, each on its line; then what it made, then how it came about.
fn page(detail: &TaskDetail, clock: &Clock, out: Out) -> Vec<String> {
    let task = &detail.summary;
    let label = |name: &str| out.paint(DIM, &format!("{name:10}"));
    let mut lines = Vec::new();
    let title = text::plain(&task.title);
    if !title.is_empty() {
        lines.push(out.paint(BOLD, &title));
    }
    lines.push(out.paint(DIM, &words::task_name(&task.task)));
    let raw = words::raw_word(task.state, &task.raw_state);
    lines.push(format!("{}{}{raw}, {}", label("task"), out.state(task.state), words::confirmed(task, clock)));
    lines.push(format!("{}{}", label("following"), words::following(task, clock)));
    let registrations = match detail.registrations.len() {
        0 => "none registered".to_owned(),
        count => format!("{count} registered"),
    };
    lines.push(format!("{}{registrations}, {} received", label("callbacks"), detail.callbacks.len()));
    if let Some(context) = &task.context_id {
        lines.push(format!("{}{}", label("context"), text::plain(context)));
    }
    if let Some(until) = task.snoozed_until {
        lines.push(format!("{}until {}", label("put off"), clock.moment(until)));
    }
    let flags = [(task.pinned, "pinned"), (task.archived, "archived"), (task.muted, "muted")];
    let flags: Vec<&str> = flags.into_iter().filter_map(|(holds, word)| holds.then_some(word)).collect();
    if !flags.is_empty() {
        lines.push(format!("{}{}", label("kept"), flags.join(", ")));
    }
    if let Some(note) = &detail.note {
        let mut wrapped = block(note, out);
        lines.extend(wrapped.next().map(|line| format!("{}{}", label("note"), line.trim_start())));
        lines.extend(wrapped.map(|line| format!("{:8}{line}", "")));
    }
    let said = detail.status.get("message").map(words::message_text).unwrap_or_default();
    let style = if task.needs_you { AMBER } else { anstyle::Style::new() };
    if !said.trim().is_empty() {
        lines.push(String::new());
        lines.extend(block(&said, out).map(|line| out.paint(style, &line)));
    }
    for artifact in &detail.artifacts {
        lines.push(String::new());
        lines.extend(artifact_lines(artifact, out));
    }
    if !detail.timeline.is_empty() {
        lines.push(String::new());
        lines.push(out.paint(DIM, "timeline"));
        lines.extend(detail.timeline.iter().flat_map(|change| words::change(change, clock, out)));
    }
    if task.needs_you && task.state.is_waiting() {
        lines.push(String::new());
        lines.push(format!("answer with: taskbell reply {} TEXT", words::task_name(&task.task)));
    }
    lines
}

fn artifact_lines(artifact: &ArtifactView, out: Out) -> Vec<String> {
    let name = artifact.name.as_deref().map(text::plain).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| text::plain(&artifact.artifact_id));
    let missing = if artifact.incomplete { "  (parts of it were missed)" } else { "" };
    let mut lines = vec![format!("{}{}", out.paint(BOLD, &format!("▤ {name}")), out.paint(AMBER, missing))];
    lines.extend(artifact.description.iter().map(|text| out.paint(DIM, &text::plain(text))));
    lines.extend(block(&artifact.text, out));
    let others = artifact.parts.iter().filter(|part| part.get("text").is_none()).count();
    if others > 0 {
        lines.push(out.paint(DIM, &format!("  and {others} that are not text: see --json")));
    }
    lines
}

fn block(text: &str, out: Out) -> impl Iterator<Item = String> {
    let width = out.width().map(|width| width.saturating_sub(2));
    clean::lines(text).into_iter().flat_map(move |line| wrap(&line, width)).map(|line| match line.as_str() {
        "" => line,
        _ => format!("  {line}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::out::{Colour, Form};
    use jiff::tz::TimeZone;
    use serde_json::json;

    fn detail(evil: &str) -> TaskDetail {
        let at = "2023-11-14T22:12:40.000Z";
        serde_json::from_value(json!({
            "task": format!("demo/t-1{evil}"), "agent": "demo", "id": format!("t-1{evil}"),
            "contextId": format!("c-1{evil}"), "title": format!("Build it{evil}"), "state": "input-required",
            "rawState": format!("input-required{evil}"), "question": format!("Which branch?{evil}"),
            "following": {"mode": "stream", "since": at, "attempt": 2},
            "lastConfirmed": {"at": at, "by": "stream"}, "needsYou": true, "needsSignIn": false,
            "settled": false, "createdAt": at, "updatedAt": at, "terminalAt": null, "waitingSince": at,
            "repliedAt": null, "pinned": true, "archived": false, "source": "send",
            "artifacts": [{"artifactId": "a", "name": format!("log{evil}"), "description": evil,
                "text": format!("one\n\ttwo{evil}"), "parts": [{"text": "one"}, {"data": {}}], "incomplete": true}],
            "history": [], "status": {"state": "TASK_STATE_INPUT_REQUIRED",
                "message": {"parts": [{"text": format!("Which branch?{evil}")}]}},
            "timeline": [{"seq": 1, "at": at, "task": null, "agent": null, "source": "stream", "kind": "gap",
                "from": "2023-11-14T22:02:00Z", "to": "2023-11-14T22:11:00Z", "reason": evil}],
            "callbacks": [], "registrations": [], "metadata": {}, "muted": true, "snoozedUntil": null,
            "hasNote": true, "note": format!("ask first{evil}\nthen build"), "hit": null,
        }))
        .unwrap()
    }

    fn shown(evil: &str) -> Vec<String> {
        let clock = Clock { now_ms: 1_700_000_000_000, zone: TimeZone::UTC };
        page(&detail(evil), &clock, Out::new(Form::People, Colour::Never))
    }

    #[test]
    fn the_three_facts_stand_on_lines_of_their_own() {
        let lines = shown("");
        assert_eq!(
            lines[..6],
            [
                "Build it",
                "demo/t-1",
                "task      ▲ input-required, confirmed 40 s ago by stream",
                "following stream since 22:12, attempt 2",
                "callbacks none registered, 0 received",
                "context   c-1",
            ]
        );
        let text = lines.join("\n");
        assert!(
            text.contains("▤ log  (parts of it were missed)\n\n  one\n      two\n  and 1 that"),
            "{text}"
        );
        assert!(text.contains("── not connected 22:02–22:11: text in between is not available ──"), "{text}");
        assert!(
            text.contains("kept      pinned, muted\nnote      ask first\n          then build\n"),
            "{text}"
        );
        assert!(text.ends_with("answer with: taskbell reply demo/t-1 TEXT"), "{text}");
    }

    #[test]
    fn no_part_of_the_page_lets_an_escape_sequence_through() {
        for line in shown("\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\r\u{8}\u{202e}") {
            assert!(line.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{line:?}");
        }
    }
}
