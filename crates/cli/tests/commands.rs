//! The program as a script meets it, without an engine.

// The lint knows tests by their attribute, and not what only tests call.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(20);

/// `taskbell` with an environment of its own: nothing of whoever runs the tests reaches it.
fn taskbell(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taskbell"));
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").stdin(Stdio::null()).args(args);
    command
}

fn run(args: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    taskbell(home.path(), args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
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
    fn exit_within(&mut self, limit: Duration) -> std::process::ExitStatus {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "the program did not leave within {limit:?}");
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_wrong_command_line_exits_2_with_one_line() {
    for args in [
        &["nonsense"][..],
        &["send"],
        &["wait", "no-task"],
        &["wait", "demo/1", "--timeout", "soon"],
        &["tasks", "--state", "running"],
        &["agent", "add", "http://127.0.0.1:1", "--name", "A B"],
        &["agent", "add", "http://127.0.0.1:1", "--name", "a", "--token-env", "MISSING"],
        &["reconcile"],
        &["reconcile", "--all", "--agent", "a"],
        &["send", "demo", "hi", "--wait", "--follow"],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        let said = stderr(&output);
        assert!(said.starts_with("taskbell: ") && said.trim_end().lines().count() == 1, "{args:?}: {said:?}");
        assert_eq!(stdout(&output), "", "{args:?}");
    }
}

#[test]
fn a_wrong_command_line_with_json_is_a_document() {
    for args in [&["nonsense", "--json"][..], &["--json"], &["--json", "wait", "demo"]] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(document["error"]["code"], "usage", "{document}");
        assert!(document["error"]["message"].as_str().is_some_and(|message| !message.is_empty()));
        assert_eq!(stderr(&output), "", "{args:?}");
    }
}

#[test]
fn without_an_engine_commands_exit_1_and_say_what_to_run() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let data = data.to_str().unwrap();
    for args in [
        &["tasks"][..],
        &["agent", "list"],
        &["send", "demo", "hi"],
        &["wait", "demo/1", "--timeout", "1s"],
        &["follow", "demo/1"],
        &["reconcile", "--all"],
        &["settings", "list"],
        &["open"],
    ] {
        let output = taskbell(home.path(), args).args(["--json", "--data-dir", data]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(document["error"]["code"], "no_engine", "{document}");
        let people = taskbell(home.path(), args).env("TASKBELL_DATA_DIR", data).output().unwrap();
        assert_eq!(people.status.code(), Some(1));
        assert!(
            stderr(&people).contains("taskbell serve") && stderr(&people).contains(data),
            "{}",
            stderr(&people)
        );
    }
    assert!(!Path::new(data).exists(), "asking makes no folder");
}

#[test]
fn a_secret_in_the_environment_is_never_told() {
    let home = tempfile::tempdir().unwrap();
    let output = taskbell(home.path(), &["agent", "add", "http://127.0.0.1:1", "--name", "a"])
        .args(["--header-env", "X-Key=KEY", "--json"])
        .env("KEY", "canary-5d1f")
        .output()
        .unwrap();
    assert!(!stdout(&output).contains("canary") && !stderr(&output).contains("canary"));
}

#[test]
fn help_and_version_were_asked_for_and_exit_0() {
    for args in [&["--help"][..], &["--version"], &["agent", "add", "--help"], &["help", "wait"]] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(!stdout(&output).is_empty() && stderr(&output).is_empty(), "{args:?}");
    }
}

#[test]
fn completions_name_the_commands_of_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        assert!(stdout(&output).contains("set-credential"), "{shell}");
    }
}

#[cfg(unix)]
#[test]
fn bash_accepts_its_completions() {
    let script = stdout(&run(&["completions", "bash"]));
    let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(bash.wait().unwrap().success());
}

#[test]
fn every_command_has_a_manual_page_with_its_options_and_its_examples_line_by_line() {
    let home = tempfile::tempdir().unwrap();
    let output = taskbell(home.path(), &["man"]).arg(home.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let names: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
    let help = stdout(&run(&["--help"]));
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(listed.contains(&"serve") && listed.contains(&"demo-agent"), "{listed:?}");
    for name in listed {
        assert!(names.contains(&format!("taskbell-{name}.1")), "{name}: {names:?}");
    }
    assert!(!names.contains(&"taskbell-man.1".to_owned()), "it is not listed");

    let page = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap();
    assert!(page("taskbell-agent-add.1").contains("\\-\\-token\\-env"), "an option of its own");
    assert!(page("taskbell-agent-add.1").contains("\\-\\-data\\-dir"), "a global option");
    assert!(page("taskbell-agent-add.1").ends_with("taskbell\\-agent(1), taskbell(1)\n"));
    assert!(page("taskbell-demo-agent.1").ends_with("\ntaskbell(1)\n"));
    let whole = page("taskbell.1");
    let examples = whole.split(".SH EXAMPLES\n.nf\n").nth(1).unwrap();
    let lines: Vec<&str> = examples.lines().take_while(|line| *line != ".fi").collect();
    assert_eq!(lines.len(), 2, "{examples}");
    assert!(lines[0].contains("taskbell serve \\-\\-demo"), "{examples}");
}

#[test]
fn manual_pages_that_cannot_be_written_are_told() {
    let home = tempfile::tempdir().unwrap();
    let output = taskbell(home.path(), &["man"]).arg(home.path().join("none")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).starts_with("taskbell: failed to write the manual pages into"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let home = tempfile::tempdir().unwrap();
    // More than a pipe holds, so that the write happens after the reader has gone.
    let mut child = Running(
        taskbell(home.path(), &["completions", "zsh"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    drop(child.0.stdout.take());
    let status = child.exit_within(LIMIT);
    let mut said = String::new();
    child.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((status.code(), said.as_str()), (Some(0), ""));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_the_output_is_told() {
    let home = tempfile::tempdir().unwrap();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = taskbell(home.path(), &["completions", "bash"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("taskbell: failed to write the output"), "{}", stderr(&output));
}

#[test]
fn doctor_works_alone_and_makes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let output = taskbell(home.path(), &["doctor", "--json", "--data-dir"]).arg(&data).output().unwrap();
    let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let state_of = |check: &str| {
        let items = document["items"].as_array().unwrap();
        items.iter().find(|item| item["check"] == check).unwrap_or_else(|| panic!("{check}: {document}"))["state"].clone()
    };
    for (check, state) in [("data folder", "ok"), ("lock", "ok"), ("engine", "warn"), ("database", "ok")] {
        assert_eq!(state_of(check), state, "{document}");
    }
    assert_ne!(state_of("keyring"), "ok", "there is no session bus in this environment: {document}");
    assert_eq!(output.status.code(), Some(0), "nothing is bad: {document}");
    assert!(!data.exists());
}

#[test]
fn doctor_calls_a_file_in_place_of_the_folder_bad() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("file");
    std::fs::write(&data, "").unwrap();
    let output = taskbell(home.path(), &["doctor", "--data-dir"]).arg(&data).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("✗ bad   data folder"), "{}", stdout(&output));
    assert!(!stdout(&output).contains('\u{1b}'), "no colour where nobody looks");
}

#[cfg(unix)]
#[test]
fn the_demo_agent_says_where_it_is_and_stops_on_a_signal() {
    for signal in ["-INT", "-TERM"] {
        let home = tempfile::tempdir().unwrap();
        let mut child =
            Running(taskbell(home.path(), &["demo-agent", "--json"]).stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(ready["ready"], true);
        let url = ready["url"].as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap();
        let mut socket = std::net::TcpStream::connect(address).unwrap();
        let request = format!(
            "GET /.well-known/agent-card.json HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let pid = child.0.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        assert_eq!(child.exit_within(LIMIT).code(), Some(0), "{signal}");
    }
}

#[test]
fn a_demo_agent_on_a_taken_port_says_so() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(&["demo-agent", "--addr", &address]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).starts_with(&format!("taskbell: failed to listen at {address}")),
        "{}",
        stderr(&output)
    );
}
