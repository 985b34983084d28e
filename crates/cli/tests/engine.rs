//! The program against a running engine of its own, and the demo agent as the other side.
#![cfg(unix)]
// The lint knows tests by their attribute, and not what only tests call.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(20);

fn taskbell(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taskbell"));
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
    command.env("TASKBELL_DATA_DIR", home.join("data")).args(args);
    command
}

/// A child that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn signal(&self, signal: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    fn exit_within(&mut self, limit: Duration) -> Option<i32> {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < until, "the program did not leave within {limit:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn next_line(&mut self) -> String {
        let mut line = String::new();
        // Unbuffered, so that nothing is lost for the next call.
        let stdout = self.0.stdout.as_mut().unwrap();
        let mut octet = [0];
        while stdout.read(&mut octet).unwrap() == 1 && octet[0] != b'\n' {
            line.push(char::from(octet[0]));
        }
        line
    }
}

/// A data folder with an engine on it.
struct World {
    home: tempfile::TempDir,
    engine: Option<Running>,
    ready: Value,
}

impl World {
    fn with_demo() -> Self {
        let mut world = Self { home: tempfile::tempdir().unwrap(), engine: None, ready: Value::Null };
        world.serve(&["--demo"]);
        world
    }

    fn serve(&mut self, more: &[&str]) {
        let ports = ["serve", "--json", "--gateway", "127.0.0.1:0", "--inbox", "127.0.0.1:0"];
        let mut command = taskbell(self.home.path(), &ports);
        command.args(["--credential-store", "memory"]).args(more).stdout(Stdio::piped());
        let mut engine = Running(command.spawn().unwrap());
        self.ready = serde_json::from_str(&engine.next_line()).unwrap();
        assert_eq!(self.ready["ready"], true);
        self.engine = Some(engine);
    }

    fn command(&self, args: &[&str]) -> Command {
        taskbell(self.home.path(), args)
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// With `--json`: the exit code and the document.
    fn json(&self, args: &[&str]) -> (Option<i32>, Value) {
        let output = self.command(args).arg("--json").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let document =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"));
        (output.status.code(), document)
    }

    /// `send --wait`, once the task is sent.
    fn sent_and_waiting(&self, text: &str) -> (Running, String) {
        let mut wait = self.command(&["send", "demo", text, "--wait", "--timeout", "60s", "--json"]);
        let mut wait = Running(wait.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let mut told = String::new();
        BufReader::new(wait.0.stderr.as_mut().unwrap()).read_line(&mut told).unwrap();
        let task = told.trim().strip_prefix("sent as ").unwrap_or_else(|| panic!("{told}")).to_owned();
        (wait, task)
    }

    fn send(&self, text: &str) -> String {
        let (code, sent) = self.json(&["send", "demo", text]);
        assert_eq!(code, Some(0), "{sent}");
        sent["task"].as_str().unwrap_or_else(|| panic!("{sent}")).to_owned()
    }
}

#[test]
fn each_end_of_a_task_has_its_exit_code() {
    let world = World::with_demo();
    for (script, code, state) in [
        ("steps=1 interval=0.05", 0, "completed"),
        ("steps=1 interval=0.05 fail=yes", 3, "failed"),
        ("reject=yes", 4, "rejected"),
        ("steps=2 interval=0.05 ask=1", 6, "input-required"),
        ("steps=2 interval=0.05 auth=1 authwait=600", 7, "auth-required"),
        ("steps=1 interval=600", 124, "submitted"),
    ] {
        let task = world.send(script);
        let (left, document) =
            world.json(&["wait", &task, "--timeout", if code == 124 { "1s" } else { "20s" }]);
        assert_eq!((left, document["state"].as_str()), (Some(code), Some(state)), "{script}: {document}");
        assert_eq!(document["timedOut"], code == 124);
        assert_eq!(document["task"], task.as_str());
    }
    let (left, document) = world.json(&["send", "demo", "steps=1 interval=0.05 fail=yes", "--wait"]);
    assert_eq!((left, &document["state"]), (Some(3), &"failed".into()));
}

#[test]
fn a_question_that_was_answered_does_not_end_the_next_wait() {
    let world = World::with_demo();
    let task = world.send("steps=3 interval=0.1 ask=1");
    assert_eq!(world.json(&["wait", &task, "--timeout", "20s"]).0, Some(6));
    assert_eq!(world.json(&["wait", &task, "--timeout", "1s", "--until", "terminal"]).0, Some(124));
    assert_eq!(world.json(&["reply", &task, "the red one"]).0, Some(0));
    let (code, document) = world.json(&["wait", &task, "--timeout", "20s"]);
    assert_eq!((code, &document["state"]), (Some(0), &"completed".into()));
}

#[test]
fn cancel_says_what_came_of_it() {
    let world = World::with_demo();
    let task = world.send("steps=100 interval=1");
    let (code, document) = world.json(&["cancel", &task]);
    assert_eq!((code, &document["state"]), (Some(0), &"canceled".into()), "{document}");
    assert_eq!(world.json(&["wait", &task]).0, Some(5));
}

#[test]
fn follow_tells_everything_in_order_and_leaves_at_the_end() {
    let world = World::with_demo();
    let task = world.send("steps=4 interval=0.1 chunks=2");
    for when in ["while it runs", "afterwards"] {
        let output = world.run(&["follow", &task, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{when}");
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let seqs: Vec<u64> = lines.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
        assert!(seqs.windows(2).all(|two| two[0] <= two[1]), "{when}: {seqs:?}");
        for line in &lines {
            assert!(
                line["at"].is_string() && line["source"].is_string() && line["kind"].is_string(),
                "{line}"
            );
        }
        assert!(lines.iter().any(|line| line["kind"] == "artifact"), "{when}: {text}");
        assert!(lines.iter().any(|line| line["state"] == "completed"), "{when}: {text}");
    }
}

#[test]
fn no_escape_sequence_of_an_agent_reaches_people() {
    let world = World::with_demo();
    let evil = "%1b%5b2J%1b%5d0;owned%07%c2%9b31m%0d%08end";
    let task = world.send(&format!("steps=1 interval=0.05 say=x{evil} body=y{evil}"));
    assert_eq!(world.run(&["wait", &task]).status.code(), Some(0));
    for args in [&["show", &task][..], &["tasks"], &["follow", &task], &["wait", &task]] {
        let output = world.run(args);
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{args:?}: {text:?}");
        let coloured = world.command(args).args(["--color", "always"]).output().unwrap();
        let text = String::from_utf8(coloured.stdout).unwrap();
        assert!(
            !text.contains("\u{1b}[2J") && !text.contains("\u{1b}]") && !text.contains('\u{9b}'),
            "{args:?}: {text:?}"
        );
    }
    let shown = String::from_utf8(world.run(&["show", &task]).stdout).unwrap();
    assert!(shown.contains("y") && shown.contains("end"), "the words themselves stay: {shown}");
}

#[test]
fn a_wait_outlives_a_crash_and_restart_of_the_engine() {
    let home = tempfile::tempdir().unwrap();
    let mut agent =
        Running(taskbell(home.path(), &["demo-agent", "--json"]).stdout(Stdio::piped()).spawn().unwrap());
    let agent_ready: Value = serde_json::from_str(&agent.next_line()).unwrap();
    let mut world = World { home, engine: None, ready: Value::Null };
    world.serve(&[]);
    let url = agent_ready["url"].as_str().unwrap();
    assert_eq!(world.json(&["agent", "add", url, "--name", "demo"]).0, Some(0));
    let (mut wait, task) = world.sent_and_waiting("steps=8 interval=0.5");
    let mut follow =
        Running(world.command(&["follow", &task, "--json"]).stdout(Stdio::piped()).spawn().unwrap());
    // It listens once it has told the beginning.
    follow.next_line();
    drop(world.engine.take());
    world.serve(&[]);
    assert_eq!(wait.exit_within(LIMIT * 2), Some(0));
    assert_eq!(follow.exit_within(LIMIT), Some(0));
    let document: Value = serde_json::from_str(&wait.next_line()).unwrap();
    assert_eq!(document["state"], "completed");
}

#[test]
fn an_engine_that_is_gone_for_good_ends_a_wait_with_no_engine() {
    let mut world = World::with_demo();
    let (mut wait, _task) = world.sent_and_waiting("steps=1 interval=600");
    drop(world.engine.take());
    assert_eq!(wait.exit_within(LIMIT * 3), Some(1));
    let document: Value = serde_json::from_str(&wait.next_line()).unwrap();
    assert_eq!(document["error"]["code"], "no_engine");
}

#[test]
fn messages_files_and_data_are_sent_and_a_plain_answer_is_printed() {
    let world = World::with_demo();
    let (code, answer) = world.json(&["send", "demo", "reply=message say=forty-two"]);
    assert_eq!(code, Some(0));
    assert!(answer["message"].to_string().contains("forty-two"), "{answer}");
    let people = world.run(&["send", "demo", "reply=message say=forty-two"]);
    assert_eq!(String::from_utf8(people.stdout).unwrap(), "forty-two\n");
    let file = world.home.path().join("note.txt");
    std::fs::write(&file, "a note").unwrap();
    let data = world.home.path().join("data.json");
    std::fs::write(&data, r#"{"branch":"main"}"#).unwrap();
    let mut child = world.command(&["send", "demo", "-", "--wait", "--json", "--file"]);
    let child = child.arg(&file).arg("--data").arg(&data);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"steps=1 interval=0.05\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (_, shown) = world.json(&["show", document["task"].as_str().unwrap()]);
    assert!(shown["history"].to_string().contains("note.txt"), "{}", shown["history"]);
}

#[test]
fn tasks_are_kept_hidden_and_removed() {
    let world = World::with_demo();
    let task = world.send("steps=1 interval=0.05");
    assert_eq!(world.json(&["wait", &task]).0, Some(0));
    let (_, pinned) = world.json(&["task", "pin", &task]);
    assert_eq!(pinned["pinned"], true, "{pinned}");
    assert_eq!(world.json(&["task", "pin", &task, "--off"]).1["pinned"], false);
    assert_eq!(world.json(&["task", "archive", &task]).1["archived"], true);
    assert_eq!(world.json(&["tasks"]).1["items"].as_array().unwrap().len(), 0);
    let (code, deleted) = world.json(&["task", "delete", &task]);
    assert_eq!((code, deleted["deleted"].as_str()), (Some(0), Some(task.as_str())));
    assert_eq!(world.json(&["show", &task]).0, Some(1));
}

#[test]
fn agents_settings_health_and_the_page_answer_in_their_forms() {
    let world = World::with_demo();
    let (code, agents) = world.json(&["agent", "list"]);
    assert_eq!((code, &agents["items"][0]["name"]), (Some(0), &"demo".into()), "{agents}");
    assert_eq!(world.json(&["agent", "test", "demo"]).1["reachable"], true);
    assert_eq!(world.json(&["agent", "pin", "demo", "0.3"]).1["pinnedDialect"], "0.3");
    assert_eq!(world.json(&["agent", "pin", "demo", "observed"]).1["pinnedDialect"], Value::Null);
    assert_eq!(world.json(&["settings", "set", "retention.days", "60"]).1["value"], "60");
    assert_eq!(String::from_utf8(world.run(&["settings", "get", "retention.days"]).stdout).unwrap(), "60\n");
    assert!(world.json(&["settings", "list"]).1["items"].as_array().unwrap().len() > 1);
    let (_, open) = world.json(&["open"]);
    let gateway = world.ready["gateway"].as_str().unwrap();
    let url = open["url"].as_str().unwrap();
    assert!(url.starts_with(gateway) && url.contains("#login="), "{open}");
    let (_, doctor) = world.json(&["doctor"]);
    let engine =
        doctor["items"].as_array().unwrap().iter().find(|item| item["check"] == "engine").unwrap().clone();
    assert_eq!(engine["state"], "ok", "{doctor}");
    let task = world.send("steps=1 interval=0.05");
    assert_eq!(world.json(&["wait", &task]).0, Some(0));
    let (code, reconciled) = world.json(&["reconcile", &task]);
    assert_eq!((code, &reconciled["items"][0]["verdict"]), (Some(0), &"unchanged".into()), "{reconciled}");
    for args in
        [&["agent", "list"][..], &["agent", "show", "demo"], &["settings", "list"], &["doctor"], &["tasks"]]
    {
        let output = world.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        assert!(!output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn an_engine_holds_its_folder_and_stops_in_three_seconds() {
    for signal in ["-INT", "-TERM"] {
        let mut world = World::with_demo();
        world.send("steps=1 interval=600");
        let again = world.run(&["serve", "--gateway", "127.0.0.1:0", "--inbox", "127.0.0.1:0"]);
        let said = String::from_utf8(again.stderr).unwrap();
        assert_eq!(again.status.code(), Some(1), "{said}");
        let last = said.lines().last().unwrap();
        assert!(last.starts_with("taskbell: ") && last.contains(&world.ready["pid"].to_string()), "{said}");
        let mut engine = world.engine.take().unwrap();
        engine.signal(signal);
        assert_eq!(engine.exit_within(Duration::from_secs(4)), Some(0), "{signal}");
        assert_eq!(world.json(&["tasks"]).1["error"]["code"], "no_engine");
    }
}

#[test]
fn people_are_told_where_it_is_and_what_to_try() {
    let home = tempfile::tempdir().unwrap();
    let ports = ["serve", "--demo", "--gateway", "127.0.0.1:0", "--inbox", "127.0.0.1:0"];
    let mut command = taskbell(home.path(), &ports);
    command.args(["--credential-store", "memory"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut engine = Running(command.spawn().unwrap());
    let lines = BufReader::new(engine.0.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut text = String::new();
    for line in lines {
        text += &format!("{line}\n");
        if line.ends_with("taskbell tasks") {
            break; // The last line there is.
        }
    }
    assert!(text.starts_with("gateway  http://127.0.0.1:") && text.contains("#login="), "{text}");
    assert!(text.contains("taskbell send demo"), "{text}");
    engine.signal("-TERM");
    assert_eq!(engine.exit_within(Duration::from_secs(4)), Some(0));
}
