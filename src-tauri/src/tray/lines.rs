//! What the tray's menu says. Pure: tasks and the time in, lines out.

use taskbell_engine::api::views::{FollowingMode, TaskSummary};

/// Waiting rows that the menu has room for.
pub const ROWS: usize = 5;

/// Characters of a row. Menus grow with their widest line.
const WIDEST: usize = 56;

/// A task in the menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub task: String,
    pub text: String,
}

/// The menu, but for what never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    pub counts: String,
    pub waiting: Vec<Row>,
    /// Until when notices are held up, as a sentence; `None`: they are shown.
    pub quiet: Option<String>,
    /// What stops when this program is quit: a sentence, then the tasks.
    pub quit: Vec<String>,
}

/// How the engine is doing, as far as a look has told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineIs {
    /// In this process: it stops with it.
    Here,
    /// In another process: it goes on.
    Attached,
}

/// The lines for the open tasks. `more`: there are further ones than these. `quiet_until`: the clock on the wall when
/// notices are shown again, where they are held up.
pub fn of(
    open: &[TaskSummary],
    more: bool,
    engine: EngineIs,
    quiet_until: Option<&str>,
    now_ms: i64,
) -> Lines {
    let mut waiting: Vec<&TaskSummary> = open.iter().filter(|task| task.needs_you).collect();
    // Who waits longest comes first.
    waiting.sort_by_key(|task| task.waiting_since.map_or(i64::MAX, |since| since.ms()));
    let run = open.len() - waiting.len();
    let plus = if more { "+" } else { "" };
    Lines {
        counts: format!("{} wait · {run}{plus} run · {}", waiting.len(), confirmed(open, now_ms)),
        waiting: waiting.iter().take(ROWS).map(|task| row(task)).collect(),
        quiet: quiet_until.map(|until| format!("Quiet until {until}: show notices again")),
        quit: quit(open, plus, engine),
    }
}

/// The lines where no engine answers.
pub fn without_engine() -> Lines {
    Lines {
        counts: "The engine does not answer".to_owned(),
        waiting: Vec::new(),
        quiet: None,
        quit: vec!["Nothing is followed now".to_owned()],
    }
}

/// The least fresh of all counts: one task that is not confirmed must not hide behind the others.
fn confirmed(open: &[TaskSummary], now_ms: i64) -> String {
    let followed = || open.iter().filter(|task| task.following.mode != FollowingMode::Paused);
    let unconfirmed = followed().filter(|task| task.last_confirmed.is_none()).count();
    if unconfirmed > 0 {
        return format!("{unconfirmed} not confirmed yet");
    }
    let oldest = followed().filter_map(|task| Some(task.last_confirmed.as_ref()?.at.ms())).min();
    match oldest {
        Some(at_ms) => format!("confirmed {} ago", ago(now_ms.saturating_sub(at_ms))),
        None => "nothing to confirm".to_owned(),
    }
}

/// Rounded down to what changes seldom, so that a menu that is open stays quiet.
fn ago(ms: i64) -> String {
    let seconds = (ms / 1_000).max(0);
    match seconds {
        0..10 => format!("{seconds} s"),
        10..60 => format!("{} s", seconds / 10 * 10),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn row(task: &TaskSummary) -> Row {
    let asks = task.question.as_deref().filter(|question| !question.is_empty()).unwrap_or(&task.title);
    Row { task: task.task.to_string(), text: plain(&format!("{}: {asks}", task.agent)) }
}

/// Text of an agent as a menu can show it: one line, bounded, and no `&`, which menus take for a shortcut.
fn plain(text: &str) -> String {
    taskbell_core::text::one_line(text, WIDEST).replace('&', "&&")
}

fn quit(open: &[TaskSummary], plus: &str, engine: EngineIs) -> Vec<String> {
    let live: Vec<&TaskSummary> =
        open.iter().filter(|task| task.following.mode != FollowingMode::Paused).collect();
    let said = match (engine, live.len()) {
        (EngineIs::Attached, _) => "Nothing stops: the engine goes on without this window".to_owned(),
        (EngineIs::Here, 0) => "Nothing is followed now".to_owned(),
        (EngineIs::Here, 1) if plus.is_empty() => "1 live watch stops until Taskbell runs again".to_owned(),
        (EngineIs::Here, live) => format!("{live}{plus} live watches stop until Taskbell runs again"),
    };
    let mut lines = vec![said];
    if engine == EngineIs::Here {
        lines.extend(live.iter().take(ROWS).map(|task| plain(&format!("{}: {}", task.agent, task.title))));
        if live.len() > ROWS {
            lines.push(format!("and {}{plus} more", live.len() - ROWS));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_700_000_000_000;

    fn at(ago_ms: i64) -> String {
        taskbell_engine::api::views::UtcTime::from_ms(NOW - ago_ms).to_string()
    }

    fn task(id: &str, waits_ms: Option<i64>, confirmed_ms: Option<i64>, mode: &str) -> TaskSummary {
        serde_json::from_value(json!({
            "task": format!("demo/{id}"), "agent": "demo", "id": id, "contextId": null, "title": "build it",
            "state": if waits_ms.is_some() { "input-required" } else { "working" }, "rawState": "",
            "question": waits_ms.map(|_| format!("which one, {id}?")),
            "following": {"mode": mode, "since": at(0), "attempt": 0},
            "lastConfirmed": confirmed_ms.map(|ms| json!({"at": at(ms), "by": "stream"})),
            "needsYou": waits_ms.is_some(), "needsSignIn": false, "settled": false,
            "createdAt": at(0), "updatedAt": at(0), "terminalAt": null,
            "waitingSince": waits_ms.map(at), "repliedAt": null,
            "pinned": false, "archived": false, "source": "send",
        }))
        .unwrap()
    }

    #[test]
    fn the_first_line_counts_and_says_how_fresh_the_least_fresh_task_is() {
        let open = [
            task("a", Some(60_000), Some(2_000), "stream"),
            task("b", Some(90_000), Some(3_000), "stream"),
            task("c", None, Some(27_000), "poll"),
        ];
        let lines = of(&open, false, EngineIs::Here, None, NOW);
        assert_eq!(lines.counts, "2 wait · 1 run · confirmed 20 s ago");
        assert_eq!(of(&[], false, EngineIs::Here, None, NOW).counts, "0 wait · 0 run · nothing to confirm");
    }

    #[test]
    fn a_task_that_was_never_confirmed_is_not_hidden_by_the_others() {
        let open = [task("a", None, Some(1_000), "stream"), task("b", None, None, "reconnecting")];
        assert_eq!(
            of(&open, true, EngineIs::Here, None, NOW).counts,
            "0 wait · 2+ run · 1 not confirmed yet"
        );
    }

    #[test]
    fn the_five_that_wait_longest_are_named_with_their_question() {
        let open: Vec<TaskSummary> =
            (1..=7).map(|n| task(&format!("t{n}"), Some(n * 1_000), Some(0), "stream")).collect();
        let waiting = of(&open, false, EngineIs::Here, None, NOW).waiting;
        let named: Vec<&str> = waiting.iter().map(|row| row.task.as_str()).collect();
        assert_eq!(named, ["demo/t7", "demo/t6", "demo/t5", "demo/t4", "demo/t3"]);
        assert_eq!(waiting[0].text, "demo: which one, t7?");
    }

    #[test]
    fn an_agents_words_stay_one_short_line_without_shortcuts() {
        let mut asking = task("a", Some(0), Some(0), "stream");
        asking.question = Some(format!("yes & no\nor\u{202e} what {}", "x".repeat(500)));
        let text = &of(&[asking], false, EngineIs::Here, None, NOW).waiting[0].text;
        assert!(text.starts_with("demo: yes && no"), "{text}");
        assert!(!text.contains(['\n', '\u{202e}']), "{text:?}");
        assert!(text.chars().count() <= WIDEST + 1, "{text}");
    }

    #[test]
    fn quitting_says_what_stops() {
        let open = [
            task("a", None, Some(0), "stream"),
            task("b", None, Some(0), "poll"),
            task("c", None, Some(0), "paused"),
        ];
        assert_eq!(
            of(&open, false, EngineIs::Here, None, NOW).quit,
            ["2 live watches stop until Taskbell runs again", "demo: build it", "demo: build it"]
        );
        assert!(of(&open, false, EngineIs::Attached, None, NOW).quit[0].starts_with("Nothing stops"));
        assert_eq!(of(&open[2..], false, EngineIs::Here, None, NOW).quit, ["Nothing is followed now"]);
        let many: Vec<TaskSummary> =
            (1..=8).map(|n| task(&format!("t{n}"), None, Some(0), "stream")).collect();
        let lines = of(&many, true, EngineIs::Here, None, NOW).quit;
        assert_eq!((lines.len(), lines.last().unwrap().as_str()), (ROWS + 2, "and 3+ more"));
    }

    #[test]
    fn quiet_says_until_when_and_how_to_end_it() {
        let quiet = of(&[], false, EngineIs::Here, Some("07:00"), NOW).quiet;
        assert_eq!(quiet.as_deref(), Some("Quiet until 07:00: show notices again"));
        assert_eq!(of(&[], false, EngineIs::Here, None, NOW).quiet, None);
    }

    #[test]
    fn times_are_rounded_to_what_one_reads_at_a_glance() {
        for (ms, text) in [
            (-5, "0 s"),
            (4_200, "4 s"),
            (59_999, "50 s"),
            (61_000, "1 min"),
            (7_200_000, "2 h"),
            (86_400_000 * 3, "3 d"),
        ] {
            assert_eq!(ago(ms), text);
        }
    }
}
