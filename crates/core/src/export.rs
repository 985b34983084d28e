//! A task as files that leave Taskbell: what it made, and a document for people.
//!
//! Names come from strangers, so none leads anywhere: no path, no hidden file, no name that a system keeps for itself,
//! none twice. Their text stands in fences that it cannot end. Nothing is fetched: what is an address stays one.

use std::collections::HashSet;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::task::{Artifact, Message, Part, PartContent, Role, Task};
use crate::text;

/// Characters of a file's name.
const NAME: usize = 120;

/// One file that leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedFile {
    /// Without a path, safe on every system, and of no other file of the same export.
    pub name: String,
    pub octets: Vec<u8>,
}

/// What a task made, as files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportedArtifacts {
    pub files: Vec<ExportedFile>,
    /// Addresses of files that are elsewhere, on one clean line each.
    pub not_fetched: Vec<String>,
}

/// The artifacts of a task: texts as they are, files decoded, data as JSON. Octets that are no base64 stay text.
pub fn artifacts(task: &Task) -> ExportedArtifacts {
    let mut exported = ExportedArtifacts::default();
    let mut names = Names::default();
    for (index, artifact) in task.artifacts.iter().enumerate() {
        let called = artifact.name.as_deref().or(Some(artifact.artifact_id.as_str()));
        let called = called.and_then(file_name).unwrap_or_else(|| format!("artifact-{}", index + 1));
        let mut run = String::new();
        for part in &artifact.parts {
            if let PartContent::Text(words) = &part.content
                && part.filename.is_none()
            {
                // Adjacent texts are chunks of one.
                run.push_str(words);
                continue;
            }
            end_run(&mut run, &called, &mut names, &mut exported);
            let own = part.filename.as_deref().and_then(file_name);
            let (octets, ending) = match &part.content {
                PartContent::Text(words) => (words.clone().into_bytes(), "txt"),
                PartContent::Raw(base64) => match decoded(base64) {
                    Some(octets) => (octets, "bin"),
                    None => (base64.clone().into_bytes(), "base64.txt"),
                },
                PartContent::Data(value) | PartContent::Unknown(value) => {
                    (format!("{value:#}\n").into_bytes(), "json")
                }
                PartContent::Url(url) => {
                    exported.not_fetched.push(text::one_line(url, 2_000));
                    continue;
                }
            };
            let name = names.free(&own.unwrap_or_else(|| with_ending(&called, ending)));
            exported.files.push(ExportedFile { name, octets });
        }
        end_run(&mut run, &called, &mut names, &mut exported);
    }
    exported
}

fn end_run(run: &mut String, called: &str, names: &mut Names, exported: &mut ExportedArtifacts) {
    if !run.is_empty() {
        let name = names.free(&with_ending(called, "txt"));
        exported.files.push(ExportedFile { name, octets: std::mem::take(run).into_bytes() });
    }
}

fn with_ending(name: &str, ending: &str) -> String {
    if name.contains('.') { name.to_owned() } else { format!("{name}.{ending}") }
}

/// Both alphabets, padded or not: agents send either.
fn decoded(base64: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let packed: String = base64.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    [alphabet::STANDARD, alphabet::URL_SAFE]
        .into_iter()
        .find_map(|alphabet| GeneralPurpose::new(&alphabet, config).decode(&packed).ok())
}

/// Names that were given out, without regard to case: some systems have none.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    fn free(&mut self, wanted: &str) -> String {
        if self.0.insert(wanted.to_lowercase()) {
            return wanted.to_owned();
        }
        let (stem, ending) = wanted.rsplit_once('.').map_or((wanted, ""), |(stem, ending)| (stem, ending));
        let dot = if ending.is_empty() { "" } else { "." };
        for number in 2.. {
            let name = format!("{stem} ({number}){dot}{ending}");
            if self.0.insert(name.to_lowercase()) {
                return name;
            }
        }
        unreachable!("there are more numbers than files")
    }
}

/// A stranger's name as that of a file: what stands behind the last separator, without what a system or a shell reads
/// in it. `None` where nothing is left.
pub fn file_name(given: &str) -> Option<String> {
    let last = given.rsplit(['/', '\\']).find(|piece| !piece.trim().is_empty())?;
    let clean: String = text::one_line(last, NAME)
        .chars()
        .map(|character| match character {
            '<' | '>' | ':' | '"' | '|' | '?' | '*' | '\'' | '`' | '$' | '…' => '_',
            other => other,
        })
        .collect();
    // Hidden files, options, and endings that Windows drops.
    let name = clean.trim_start_matches(['.', '-', ' ', '~']).trim_end_matches(['.', ' ']);
    if name.is_empty() {
        return None;
    }
    let stem = name.split('.').next().unwrap_or_default().to_ascii_uppercase();
    let numbered = |word: &str| {
        stem.strip_prefix(word)
            .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    let reserved =
        matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL") || numbered("COM") || numbered("LPT");
    Some(if reserved { format!("_{name}") } else { name.to_owned() })
}

/// What a document says of a task beside its content: all on one line each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    pub title: String,
    /// What it is and its value.
    pub facts: Vec<(&'static str, String)>,
    /// What happened, the oldest first.
    pub timeline: Vec<String>,
}

/// The task as a Markdown document for people.
pub fn markdown(task: &Task, facts: &Facts) -> String {
    let mut document = format!("# {}\n\n| | |\n|---|---|\n", escaped(&facts.title));
    for (what, value) in &facts.facts {
        line(&mut document, &format!("| {what} | {} |", escaped(value)));
    }
    for artifact in &task.artifacts {
        artifact_section(&mut document, artifact);
    }
    let now = task.status.message.iter().filter(|message| {
        let id = &message.message_id;
        id.as_str().is_empty() || task.history.iter().all(|known| known.message_id != *id)
    });
    let said: Vec<&Message> = task.history.iter().chain(now).collect();
    if !said.is_empty() {
        line(&mut document, "\n## Conversation");
    }
    for message in said {
        let who = match message.role {
            Role::User => "you",
            Role::Agent | Role::Unspecified => "agent",
        };
        line(&mut document, &format!("\n**{who}**\n"));
        parts(&mut document, &message.parts);
    }
    if !facts.timeline.is_empty() {
        line(&mut document, "\n## Timeline\n");
        for entry in &facts.timeline {
            line(&mut document, &format!("- {}", escaped(entry)));
        }
    }
    document
}

fn artifact_section(document: &mut String, artifact: &Artifact) {
    let name = artifact.name.as_deref().unwrap_or(artifact.artifact_id.as_str());
    line(document, &format!("\n## {}\n", escaped(name)));
    if let Some(description) = &artifact.description {
        line(document, &format!("{}\n", escaped(description)));
    }
    parts(document, &artifact.parts);
}

fn parts(document: &mut String, parts: &[Part]) {
    let mut run = String::new();
    for part in parts {
        if let PartContent::Text(words) = &part.content {
            run.push_str(words);
            continue;
        }
        fence(document, &std::mem::take(&mut run), "");
        let name = part.filename.as_deref().map(escaped).unwrap_or_else(|| "without a name".to_owned());
        match &part.content {
            PartContent::Raw(base64) => {
                let octets = decoded(base64).map_or(base64.len(), |octets| octets.len());
                line(document, &format!("- file: {name}, {octets} octets"));
            }
            PartContent::Url(url) => line(document, &format!("- file elsewhere: {name}, {}", escaped(url))),
            PartContent::Data(value) | PartContent::Unknown(value) => {
                fence(document, &format!("{value:#}"), "json");
            }
            PartContent::Text(_) => (),
        }
    }
    fence(document, &run, "");
}

/// A block that its text cannot end: its fence is longer than any run of the same mark in it.
fn fence(document: &mut String, words: &str, language: &str) {
    if words.is_empty() {
        return;
    }
    let words = text::lines(words);
    let longest = words.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let marks = "`".repeat(longest.max(2) + 1);
    line(document, &format!("{marks}{language}\n{}\n{marks}", words.trim_end_matches('\n')));
}

fn line(document: &mut String, words: &str) {
    writeln!(document, "{words}").expect("a string takes everything");
}

/// One clean line in which nothing is markup.
fn escaped(words: &str) -> String {
    let mut shown = String::new();
    for character in text::one_line(words, 2_000).chars() {
        if character.is_ascii_punctuation()
            && !matches!(character, '.' | ',' | ':' | ';' | '/' | '-' | '\'' | '?')
        {
            shown.push('\\');
        }
        shown.push(character);
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::dialect::read;
    use crate::markdown::{self, Block};

    fn task(artifacts: serde_json::Value) -> Task {
        read::task(json!({"id": "t", "status": {"state": "completed"}, "artifacts": artifacts})).unwrap()
    }

    fn named(files: &[ExportedFile]) -> Vec<(&str, &[u8])> {
        files.iter().map(|file| (file.name.as_str(), file.octets.as_slice())).collect()
    }

    #[test]
    fn chunks_are_one_file_and_octets_are_what_they_were_before_base64() {
        let exported = artifacts(&task(json!([
            {"artifactId": "a", "name": "report.md", "parts": [{"text": "one "}, {"text": "two"}]},
            {"artifactId": "b", "parts": [{"raw": "aGk_", "filename": "x.bin"}, {"data": {"k": 1}}, {"raw": "%%"}]},
        ])));
        let data = b"{\n  \"k\": 1\n}\n".as_slice();
        assert_eq!(
            named(&exported.files),
            [
                ("report.md", b"one two".as_slice()),
                ("x.bin", b"hi?"),
                ("b.json", data),
                ("b.base64.txt", b"%%"),
            ]
        );
    }

    #[test]
    fn an_address_is_listed_and_never_fetched() {
        let exported = artifacts(&task(json!([
            {"artifactId": "a", "parts": [{"url": "http://169.254.169.254/\u{202e}latest", "filename": "x"}]},
        ])));
        assert_eq!(exported.files, []);
        assert_eq!(exported.not_fetched, ["http://169.254.169.254/latest"]);
    }

    #[test]
    fn no_name_leads_out_of_the_folder_or_runs_anything() {
        for (given, name) in [
            ("../../.ssh/authorized_keys", Some("authorized_keys")),
            ("..", None),
            ("C:\\Windows\\x.dll", Some("x.dll")),
            ("/etc/passwd", Some("passwd")),
            (".bashrc", Some("bashrc")),
            ("-rf", Some("rf")),
            ("con.txt", Some("_con.txt")),
            ("LPT1", Some("_LPT1")),
            ("a\u{0}b\u{202e}c\n.txt", Some("abc .txt")),
            ("what? <is> \"this\"|*", Some("what_ _is_ _this___")),
            ("trailing. ", Some("trailing")),
            (" / ", None),
        ] {
            assert_eq!(file_name(given).as_deref(), name, "{given:?}");
        }
    }

    #[test]
    fn two_files_of_one_name_are_two_files() {
        let exported = artifacts(&task(json!([
            {"artifactId": "a", "name": "out.txt", "parts": [{"text": "1"}]},
            {"artifactId": "b", "name": "OUT.txt", "parts": [{"text": "2"}]},
            {"artifactId": "c", "name": "out.txt", "parts": [{"text": "3"}]},
        ])));
        let names: Vec<_> = exported.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["out.txt", "OUT (2).txt", "out (3).txt"]);
    }

    #[test]
    fn a_document_has_the_facts_the_result_and_what_was_said() {
        let mut task =
            task(json!([{"artifactId": "a", "name": "answer", "parts": [{"text": "```\nforty-two"}]}]));
        task.history = vec![
            read::message(json!({"messageId": "m", "role": "user", "parts": [{"text": "what?"}]})).unwrap(),
        ];
        let facts = Facts {
            title: "The *question*".to_owned(),
            facts: vec![("state", "completed".to_owned())],
            timeline: vec!["09:02 completed, by stream".to_owned()],
        };
        assert_eq!(
            markdown(&task, &facts),
            "# The \\*question\\*\n\n| | |\n|---|---|\n| state | completed |\n\n## answer\n\n````\n```\nforty-two\n````\n\
             \n## Conversation\n\n**you**\n\n```\nwhat?\n```\n\n## Timeline\n\n- 09:02 completed, by stream\n"
        );
    }

    proptest! {
        /// Read as Markdown, an agent's words are code or plain text, whatever is in them.
        #[test]
        fn nothing_that_an_agent_wrote_is_markup_of_the_document(words in r"[`~#\[\]()<>!*_|\n a-z\\]{0,80}") {
            let task = task(json!([{"artifactId": "a", "name": words, "parts": [{"text": words}, {"url": words}]}]));
            let document = markdown(&task, &Facts { title: words.clone(), ..Facts::default() });
            fn plain(blocks: &[Block]) -> bool {
                blocks.iter().all(|block| match block {
                    Block::Paragraph(spans) | Block::Heading { content: spans, .. } => {
                        spans.iter().all(|span| matches!(span, markdown::Inline::Text(_)))
                    }
                    Block::List { items, .. } => items.iter().all(|item| plain(item)),
                    Block::Code { .. } | Block::Table(_) => true,
                    Block::Quote(_) | Block::Rule | Block::Text(_) | Block::Cut { .. } => false,
                })
            }
            prop_assert!(plain(&markdown::parse(&document)), "{}", document);
        }

        #[test]
        fn a_name_is_none_or_one_plain_name(given in any::<String>()) {
            if let Some(name) = file_name(&given) {
                prop_assert!(!name.contains(['/', '\\', '\0', '\n']) && !name.starts_with('.') && name != "..");
                prop_assert!(name.chars().count() <= NAME + 1);
            }
        }
    }
}
