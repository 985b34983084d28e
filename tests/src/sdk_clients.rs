//! The SDKs' own clients, unmodified, as small programs that do what they are told and print what their
//! user would get.
//!
//! Their code lies in `peers/clients/`, which says what goes in and comes out.

use std::{path::Path, process::Stdio, time::Duration};

use serde_json::{Value, json};

use crate::{
    a2a::{Dialect, artifact_text, lowercase_state},
    peers::{ensure_installed, home},
    process::Process,
};

/// Longer than any story takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Which SDK a client stands on, and what it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SdkClient {
    /// PyPI a2a-sdk 0.3.
    Py03,
    /// PyPI a2a-sdk 1.x, speaking 1.0.
    Py1,
    /// The same with its compatibility client for 0.3.
    Py1Old,
    /// npm @a2a-js/sdk 0.3.
    Js03,
    /// npm @a2a-js/sdk 1.x, speaking 1.0.
    Js1,
    /// The same with its compatibility client for 0.3.
    Js1Old,
}

impl SdkClient {
    pub const ALL: [Self; 6] = [Self::Py03, Self::Py1, Self::Py1Old, Self::Js03, Self::Js1, Self::Js1Old];

    /// What goes over the wire.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::Py1 | Self::Js1 => Dialect::V1,
            Self::Py03 | Self::Py1Old | Self::Js03 | Self::Js1Old => Dialect::V03,
        }
    }

    /// Takes the steps against the agent at `url`. A key is sent as bearer token.
    ///
    /// # Panics
    /// When the program cannot be run, does not end, or leaves a step out.
    pub async fn run(self, url: &str, key: Option<&str>, steps: &[Step]) -> Story {
        let install = match self {
            Self::Py03 => "py03",
            Self::Py1 | Self::Py1Old => "py1",
            Self::Js03 | Self::Js1 | Self::Js1Old => "js",
        };
        tokio::task::spawn_blocking(move || ensure_installed(install)).await.expect("the setup says why");
        let code = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/clients");
        let (program, script) = match self {
            Self::Py03 => (home().join("py03/bin/python"), "py03.py"),
            Self::Py1 | Self::Py1Old => (home().join("py1/bin/python"), "py1.py"),
            Self::Js03 | Self::Js1 | Self::Js1Old => ("node".into(), "js.mjs"),
        };
        let words: &[&str] = match self {
            Self::Py03 => &[],
            Self::Py1 => &["1.0"],
            Self::Py1Old => &["0.3"],
            Self::Js03 => &["03"],
            Self::Js1 => &["1", "1.0"],
            Self::Js1Old => &["1", "0.3"],
        };
        let mut process = Process::start(&format!("client {self:?}"), program, |command| {
            command.arg(code.join(script)).arg(url).args(words).stdin(Stdio::piped());
            command.env_remove("CLIENT_KEY").env("PEERS_JS", home().join("js"));
            if let Some(key) = key {
                command.env("CLIENT_KEY", key);
            }
        });
        let todo: Vec<&Value> = steps.iter().map(|step| &step.what).collect();
        process.feed(json!(todo).to_string().as_bytes()).await;
        let mut story = Story(steps.iter().map(|step| (step.name, Outcome::default())).collect());
        while let Some(line) = process.next_line(LIMIT).await {
            story.take(&line);
        }
        let status = process.ended(LIMIT).await;
        assert!(status.success(), "client {self:?} ended with {status}:\n{}", process.log().text());
        story
    }
}

/// One step and the name it is asked for by.
#[derive(Debug, Clone)]
pub struct Step {
    pub name: &'static str,
    pub what: Value,
}

/// What a client was told, step by step.
#[derive(Debug, Clone)]
pub struct Story(Vec<(&'static str, Outcome)>);

/// What came of a step.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Of a stream.
    pub events: Vec<Value>,
    /// The answer, or null at a stream's end.
    pub result: Option<Value>,
    pub error: Option<Value>,
}

impl Story {
    /// What came of the step.
    ///
    /// # Panics
    /// When it was none of the steps or did not end.
    pub fn told(&self, name: &str) -> &Outcome {
        let told = &self.0.iter().find(|(known, _)| *known == name).expect("a step of this story").1;
        assert!(told.result.is_some() || told.error.is_some(), "{name} did not end: {:#?}", self.0);
        told
    }

    /// The answer of a step that went well.
    ///
    /// # Panics
    /// When it went wrong.
    pub fn answer(&self, name: &str) -> &Value {
        let told = self.told(name);
        told.result.as_ref().unwrap_or_else(|| panic!("{name} failed: {:?}", told.error))
    }

    /// The task that a step answered with.
    pub fn task(&self, name: &str) -> Seen<'_> {
        let answer = self.answer(name);
        Seen(answer.get("task").unwrap_or(answer))
    }

    /// The events of a stream that ended well.
    pub fn events(&self, name: &str) -> &[Value] {
        self.answer(name);
        &self.told(name).events
    }

    fn take(&mut self, line: &str) {
        let mut line: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("no JSON line ({error}): {line}"));
        let place = line["step"].as_u64().and_then(|place| usize::try_from(place).ok());
        let told = &mut self.0[place.expect("a number of a step")].1;
        if let Some(event) = line.get_mut("event") {
            told.events.push(event.take());
        } else if let Some(error) = line.get_mut("error") {
            told.error = Some(error.take());
        } else {
            told.result = Some(line["result"].take());
        }
    }
}

/// A task, or an event about one, as either dialect shows it.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'v>(pub &'v Value);

impl Seen<'_> {
    /// The state in the words of 0.3.
    ///
    /// # Panics
    /// When there is none.
    pub fn state(&self) -> String {
        self.state_if_any().unwrap_or_else(|| panic!("no state: {}", self.0))
    }

    /// The same for an event that may be about something else.
    pub fn state_if_any(&self) -> Option<String> {
        let inner = ["task", "statusUpdate"].iter().find_map(|name| self.0.get(name)).unwrap_or(self.0);
        inner["status"]["state"].as_str().map(lowercase_state)
    }

    /// Whether this is the task itself.
    pub fn is_task(&self) -> bool {
        self.0.get("task").is_some() || self.0["kind"] == "task"
    }

    pub fn text(&self) -> String {
        artifact_text(&self.0.get("task").unwrap_or(self.0)["artifacts"])
    }
}

/// The artifact's text as somebody has it who put the events of a stream together.
pub fn text_of_events(events: &[Value]) -> String {
    let mut text = String::new();
    for event in events {
        if Seen(event).is_task() {
            text = Seen(event).text();
        }
        let update = event.get("artifactUpdate").unwrap_or(event);
        let Some(artifact) = update.get("artifact") else { continue };
        if update["append"] != true {
            text.clear();
        }
        text.push_str(&artifact_text(&json!([artifact])));
    }
    text
}
