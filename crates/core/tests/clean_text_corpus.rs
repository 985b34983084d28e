//! The column `plain` of the agent text corpus: every text as the one line that lists show.

use std::path::PathBuf;

use serde::Deserialize;
use taskbell_core::text::plain;

#[derive(Deserialize)]
struct Row {
    id: String,
    name: String,
    text: Option<String>,
    text_gen: Option<Generator>,
    plain: Option<String>,
}

#[derive(Deserialize)]
struct Generator {
    unit: String,
    count: usize,
}

#[test]
fn every_text_becomes_its_plain_line() {
    let folder = std::env::var_os("TASKBELL_HOSTILE").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hostile")),
        PathBuf::from,
    );
    let path = folder.join("agent_output.jsonl");
    let rows = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut checked = 0;
    let mut wrong = Vec::new();
    for line in rows.lines() {
        let row: Row = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let text = match (row.text, row.text_gen) {
            (Some(text), None) => text,
            (None, Some(g)) => g.unit.repeat(g.count),
            _ => panic!("{}: a row has a text or a generator", row.id),
        };
        if let Some(expected) = row.plain {
            checked += 1;
            let cleaned = plain(&text);
            if cleaned != expected {
                wrong.push(format!("{} {}: {cleaned:?} instead of {expected:?}", row.id, row.name));
            }
        }
    }
    assert!(checked > 0, "the corpus must hold plain lines");
    assert!(wrong.is_empty(), "{} of {checked}:\n{}", wrong.len(), wrong.join("\n"));
}
