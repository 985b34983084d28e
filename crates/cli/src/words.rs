//! Tasks and changes as people read them. Pure: the moment and the time zone are arguments.
//!
//! Every text of a peer goes through `term::clean` or `taskbell_core::text` here, and nowhere later.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;
use taskbell_core::state::TaskState;
use taskbell_core::text;
use taskbell_engine::api::views::{ChangeView, FollowingMode, SearchHit, ShownState, TaskSummary, UtcTime};

use crate::span;
use crate::term::clean;
use crate::term::marks::{self, AMBER, DIM};
use crate::term::out::Out;

/// What relative times are relative to.
#[derive(Debug, Clone)]
pub struct Clock {
    pub now_ms: i64,
    pub zone: TimeZone,
}

impl Clock {
    pub fn system() -> Self {
        Self { now_ms: Timestamp::now().as_millisecond(), zone: TimeZone::system() }
    }

    pub fn ago(&self, at: UtcTime) -> String {
        span::ago(at.ms(), self.now_ms)
    }

    /// `09:02` today, with the date before it on other days.
    pub fn moment(&self, at: UtcTime) -> String {
        self.time(at.ms(), false)
    }

    /// `09:02:11` today, with the date before it on other days.
    fn time(&self, ms: i64, seconds: bool) -> String {
        let Ok(at) = Timestamp::from_millisecond(ms) else { return "?".to_owned() };
        let at = at.to_zoned(self.zone.clone());
        let today = Timestamp::from_millisecond(self.now_ms)
            .is_ok_and(|now| now.to_zoned(self.zone.clone()).date() == at.date());
        let clock = if seconds { "%H:%M:%S" } else { "%H:%M" };
        let form = if today { clock.to_owned() } else { format!("%Y-%m-%d {clock}") };
        at.strftime(&form).to_string()
    }
}

/// `AGENT/TASKID`, safe to print: the id is the agent's.
pub fn task_name(task: &impl ToString) -> String {
    text::one_line(&task.to_string(), 300)
}

/// How we hear of it and when it was last confirmed: `confirmed 40 s ago by stream`.
pub fn confirmed(task: &TaskSummary, clock: &Clock) -> String {
    task.last_confirmed.as_ref().map_or_else(
        || "not confirmed yet".to_owned(),
        |last| format!("confirmed {} by {}", clock.ago(last.at), text::plain(&last.by)),
    )
}

/// `stream since 09:02`, `reconnecting since 09:02, attempt 3`.
pub fn following(task: &TaskSummary, clock: &Clock) -> String {
    let since = clock.time(task.following.since.ms(), false);
    let attempt = match task.following.attempt {
        0 => String::new(),
        attempt => format!(", attempt {attempt}"),
    };
    let sign_in = if task.needs_sign_in { "; the agent refuses our credential" } else { "" };
    format!("{} since {since}{attempt}{sign_in}", task.following.mode.word())
}

/// What the agent says beside a state: its question, or the words of its last status.
pub fn question(task: &TaskSummary) -> Option<String> {
    task.question.as_deref().map(clean::headline).filter(|words| !words.is_empty())
}

/// The line of a task that has the words of a query.
pub fn hit(hit: &SearchHit) -> String {
    text::plain(&hit.parts.iter().map(|part| part.text.as_str()).collect::<String>())
}

/// The texts of a 1.0 message or status message.
pub fn message_text(message: &Value) -> String {
    let parts = message.get("parts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
    texts.join("\n")
}

/// One change as lines; none where it says nothing to people.
pub fn change(change: &ChangeView, clock: &Clock, out: Out) -> Vec<String> {
    let body = &change.body;
    let text_of = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    if change.kind == "gap" {
        return vec![out.paint(AMBER, &gap(body, clock))];
    }
    let words = clean::lines(text_of("text"));
    let said = match change.kind.as_str() {
        "task" | "status" => {
            let flags = flags(body);
            match ShownState::from_word(text_of("state")) {
                Some(state) => {
                    let raw = raw_word(state, text_of("rawState"));
                    format!("{}{raw}{flags}", out.state(state))
                }
                None => flags.trim_start().to_owned(),
            }
        }
        "artifact" => {
            let name = [text_of("name"), text_of("artifactId")].map(text::plain);
            let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_else(|| "unnamed".into());
            let more = if body.get("append") == Some(&Value::Bool(true)) { " +" } else { "" };
            format!("▤ {name}{more}")
        }
        "callback" => callback(body),
        "registration" => {
            let reason = text::plain(text_of("reason"));
            let reason = if reason.is_empty() { reason } else { format!(" ({reason})") };
            out.paint(DIM, &format!("callbacks: {}{reason}", text::plain(text_of("registration"))))
        }
        "message" if text_of("role") == "user" => "→ you".to_owned(),
        "message" => "← agent".to_owned(),
        "following" => {
            let mode =
                FollowingMode::from_word(text_of("mode")).map(|mode| format!("following: {}", mode.word()));
            let trouble = match body.get("trouble") {
                Some(Value::String(code)) => Some(format!("trouble: {}", text::plain(code))),
                Some(Value::Null) => Some("trouble: none any more".to_owned()),
                _ => None,
            };
            let said: Vec<String> = [mode, trouble].into_iter().flatten().collect();
            out.paint(DIM, &said.join("; "))
        }
        other => out.paint(DIM, &text::plain(other)),
    };
    let head = format!(
        "{}  {}  {said}",
        out.paint(DIM, &clock.time(change.at.ms(), true)),
        out.paint(DIM, &format!("{:7}", channel(change))),
    );
    let mut lines = vec![head.trim_end().to_owned()];
    match words.as_slice() {
        [] => (),
        // Short words stand beside their state.
        [only] if only.chars().count() <= 60 => {
            lines[0].push_str("  ");
            lines[0].push_str(only);
        }
        words => lines.extend(words.iter().map(|line| format!("    {line}"))),
    }
    lines
}

/// By which way it was heard. How we follow is our own doing and was heard from nobody.
fn channel(change: &ChangeView) -> String {
    let is_ours = matches!(change.kind.as_str(), "following" | "registration");
    if is_ours { String::new() } else { text::one_line(&change.source, 7) }
}

/// The agent's own word, where it says more than ours: `TASK_STATE_WORKING` is `working`.
pub fn raw_word(state: ShownState, raw: &str) -> String {
    let raw_word = text::plain(raw);
    let same = TaskState::from_word(raw).word() == state.word() && state != ShownState::Unknown;
    if same || raw_word.is_empty() { String::new() } else { format!(" ({raw_word})") }
}

/// `✉ callback 17 confirmed (completed)`, or that one came.
fn callback(body: &serde_json::Map<String, Value>) -> String {
    let number = body.get("callback").and_then(Value::as_u64).unwrap_or_default();
    let word = |name: &str| body.get(name).and_then(Value::as_str).map(text::plain);
    if let Some(refused) = body.get("refused").and_then(Value::as_u64) {
        let reason = word("reason").unwrap_or_default().replace('_', " ");
        return format!("✉ {refused} callbacks refused: {reason}");
    }
    let times = body.get("count").and_then(Value::as_u64).filter(|count| *count > 1);
    let claimed = word("claimed").map(|claimed| format!(" (claims {claimed})")).unwrap_or_default();
    match (word("verdict"), times) {
        (Some(verdict), _) => format!("✉ callback {number} {verdict}{claimed}"),
        (None, Some(times)) => format!("✉ callback {number} came {times} times"),
        (None, None) => format!("✉ callback {number} came"),
    }
}

fn flags(body: &serde_json::Map<String, Value>) -> String {
    let is = |name: &str, value: bool| body.get(name) == Some(&Value::Bool(value));
    let said = [
        (is("created", true), "followed from now on"),
        (is("settled", true), "confirmed by a read"),
        (is("found", true), "found again"),
        (is("missed", true), "its end was missed"),
        (is("late", true), "the callback of its end came late"),
        (is("pinned", true), "pinned"),
        (is("pinned", false), "not pinned any more"),
        (is("archived", true), "archived"),
        (is("archived", false), "not archived any more"),
        (is("muted", true), "muted"),
        (is("muted", false), "not muted any more"),
        (is("snoozed", true), "put off"),
        (is("snoozed", false), "not put off any more"),
        (is("note", true), "note written"),
        (is("note", false), "note taken away"),
        (body.contains_key("deleted"), "deleted"),
    ];
    let said: Vec<&str> = said.into_iter().filter_map(|(holds, words)| holds.then_some(words)).collect();
    if said.is_empty() { String::new() } else { format!("  ({})", said.join(", ")) }
}

/// `── not connected 09:02–09:11: text in between is not available ──`.
fn gap(body: &serde_json::Map<String, Value>, clock: &Clock) -> String {
    let at = |name: &str| -> Option<i64> {
        let at: Timestamp = body.get(name)?.as_str()?.parse().ok()?;
        Some(at.as_millisecond())
    };
    let reason = body.get("reason").and_then(Value::as_str).map(|reason| text::one_line(reason, 40));
    let reason = reason.filter(|reason| !reason.is_empty()).map(|reason| format!(" ({reason})"));
    let reason = reason.unwrap_or_default();
    let (Some(from), Some(to)) = (at("from"), at("to")) else {
        return format!("── not connected for a while{reason}: text in between is not available ──");
    };
    // A short one is told to the second, or both ends would read the same.
    let seconds = to.saturating_sub(from) < 120_000;
    let (start, end) = (clock.time(from, seconds), clock.time(to, seconds));
    if start == end {
        format!("── not connected at {start}{reason}: text of that moment may be missing ──")
    } else {
        format!("── not connected {start}–{end}{reason}: text in between is not available ──")
    }
}

/// The moving line while somebody attends to a task: never a percentage, only what was last said and how long
/// ago. An agent's progress is a hint, and how long it takes is not known.
#[derive(Debug)]
pub struct Progress {
    state: Option<ShownState>,
    mode: Option<FollowingMode>,
    last_words: String,
    last_at: Instant,
    tick: usize,
}

impl Default for Progress {
    fn default() -> Self {
        Self { state: None, mode: None, last_words: String::new(), last_at: Instant::now(), tick: 0 }
    }
}

impl Progress {
    pub fn began(&mut self, task: &TaskSummary) {
        self.state = Some(task.state);
        self.mode = Some(task.following.mode);
        self.last_words = question(task).unwrap_or_default();
    }

    pub fn changed(&mut self, change: &ChangeView) {
        let text_of = |name: &str| change.body.get(name).and_then(Value::as_str);
        self.last_at = Instant::now();
        self.state = text_of("state").and_then(ShownState::from_word).or(self.state);
        self.mode = text_of("mode").and_then(FollowingMode::from_word).or(self.mode);
        if let Some(words) = text_of("text").map(clean::headline).filter(|words| !words.is_empty()) {
            self.last_words = words;
        }
    }

    /// The line as it is now; the wheel turns with each.
    pub fn line(&mut self) -> String {
        self.tick = self.tick.wrapping_add(1);
        progress(self.tick, self.state, self.mode, &self.last_words, self.last_at.elapsed())
    }
}

fn progress(
    tick: usize,
    state: Option<ShownState>,
    mode: Option<FollowingMode>,
    last_words: &str,
    quiet: Duration,
) -> String {
    const WHEEL: [char; 6] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠇'];
    let (Some(state), Some(mode)) = (state, mode) else { return String::new() };
    let quiet =
        if quiet.as_secs() < 5 { String::new() } else { format!(" · quiet for {}", span::short(quiet)) };
    let words = text::one_line(last_words, 60);
    let words = if words.is_empty() { words } else { format!(" · {words}") };
    let mark = if state.is_waiting() { marks::of_state(state).shape } else { WHEEL[tick % WHEEL.len()] };
    format!("{mark} {} · by {}{quiet}{words}", state.word(), mode.word())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::out::{Colour, Form};
    use serde_json::json;

    fn clock() -> Clock {
        Clock { now_ms: 1_700_000_000_000, zone: TimeZone::UTC }
    }

    fn plain(kind: &str, body: Value) -> Vec<String> {
        painted(kind, body, Colour::Never)
    }

    fn painted(kind: &str, body: Value, colour: Colour) -> Vec<String> {
        let view = ChangeView {
            seq: 1,
            at: UtcTime::from_ms(1_700_000_000_000),
            task: None,
            agent: None,
            source: "stream".into(),
            kind: kind.into(),
            body: ChangeView::body_of(&body.to_string()),
        };
        change(&view, &clock(), Out::new(Form::People, colour))
    }

    #[test]
    fn a_status_reads_as_time_channel_state_and_words() {
        assert_eq!(
            plain("status", json!({"state": "working", "text": "step 3 of 12", "from": "submitted"})),
            ["22:13:20  stream   ● working  step 3 of 12"]
        );
        assert_eq!(
            plain("status", json!({"state": "unknown", "rawState": "paused", "text": ""})),
            ["22:13:20  stream   ? unknown (paused)"]
        );
    }

    #[test]
    fn long_words_stand_below_their_state_line_by_line() {
        let lines = plain(
            "artifact",
            json!({"artifactId": "a", "name": "log", "append": true, "text": "one\n  two\n"}),
        );
        assert_eq!(lines, ["22:13:20  stream   ▤ log +", "    one", "      two"]);
    }

    #[test]
    fn a_registration_says_where_it_stands_and_why() {
        assert_eq!(
            plain("registration", json!({"registration": "active", "reason": null})),
            ["22:13:20           callbacks: active"]
        );
        let failed = json!({"registration": "failed", "reason": "push_not_supported"});
        assert_eq!(
            plain("registration", failed),
            ["22:13:20           callbacks: failed (push_not_supported)"]
        );
    }

    #[test]
    fn a_gap_is_drawn_and_says_what_it_means() {
        let body = json!({"from": "2023-11-14T09:02:00Z", "to": "2023-11-14T09:11:00Z", "reason": "cut"});
        assert_eq!(
            plain("gap", body),
            ["── not connected 09:02–09:11 (cut): text in between is not available ──"]
        );
        let short = json!({"from": "2023-11-14T09:02:01Z", "to": "2023-11-14T09:02:04Z"});
        assert_eq!(
            plain("gap", short),
            ["── not connected 09:02:01–09:02:04: text in between is not available ──"]
        );
        assert!(plain("gap", json!({}))[0].starts_with("── not connected"));
    }

    #[test]
    fn another_day_is_named() {
        let body = json!({"from": "2020-09-13T12:26:40Z", "to": "2020-09-13T12:36:40Z"});
        assert!(plain("gap", body)[0].contains("2020-09-13 12:26–2020-09-13 12:36"));
    }

    #[test]
    fn no_change_lets_an_escape_sequence_of_a_peer_through() {
        let evil = "x\u{1b}[31m\u{1b}]0;t\u{7}\u{9b}2J\u{202e}\r\u{8}y\n\u{1b}[Az";
        for kind in ["task", "status", "artifact", "message", "gap", "following", "notice", evil] {
            let body = json!({
                "state": evil, "rawState": evil, "text": evil, "name": evil, "artifactId": evil,
                "mode": evil, "trouble": evil, "role": evil, "deleted": evil, "from": evil,
            });
            for line in plain(kind, body) {
                assert!(line.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{kind:?}: {line:?}");
            }
        }
        let raw = plain("status", json!({"state": "unknown", "rawState": evil}));
        assert!(raw[0].contains("? unknown (x"), "{raw:?}");
    }

    #[test]
    fn our_own_colours_are_the_only_escapes() {
        let lines = painted("status", json!({"state": "failed", "text": "\u{1b}[5mboom"}), Colour::Always);
        assert!(lines[0].contains("\u{1b}[31m✗ failed\u{1b}[0m") && lines[0].ends_with("boom"), "{lines:?}");
        assert!(!lines[0].contains("\u{1b}[5m"));
    }

    #[test]
    fn the_moving_line_tells_how_long_it_was_quiet_and_never_a_percentage() {
        let working = Some(ShownState::Working);
        let line =
            progress(0, working, Some(FollowingMode::Stream), "step 3\u{1b}[2J", Duration::from_secs(240));
        assert_eq!(line, "⠋ working · by stream · quiet for 4 min · step 3");
        let asked = Some(ShownState::InputRequired);
        let line = progress(9, asked, Some(FollowingMode::Poll), "", Duration::ZERO);
        assert_eq!(line, "▲ input-required · by poll");
    }
}
