//! The rows of the agent text corpus that are markdown: which links may be opened, which not, what is blocked.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Deserialize;
use taskbell_core::markdown::{Block, Inline, parse};

#[derive(Deserialize)]
struct Row {
    id: String,
    name: String,
    #[serde(rename = "where")]
    place: String,
    text: Option<String>,
    expect: Expect,
}

#[derive(Deserialize)]
struct Expect {
    must: Vec<String>,
    clickable_links: Option<BTreeSet<String>>,
    inert_links: Option<BTreeSet<String>>,
    blocked_images: Option<usize>,
}

#[derive(Default)]
struct Found {
    clickable: BTreeSet<String>,
    inert: BTreeSet<String>,
    images: usize,
    /// A caution or a host on every link that can be opened.
    hosts: bool,
    text: String,
}

#[test]
fn every_markdown_row_has_exactly_its_links_and_images() {
    let folder = std::env::var_os("TASKBELL_HOSTILE").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hostile")),
        PathBuf::from,
    );
    let path = folder.join("agent_output.jsonl");
    let rows = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut checked = 0;
    for line in rows.lines() {
        let row: Row = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        if row.place != "markdown" {
            continue;
        }
        checked += 1;
        let name = format!("{} {}", row.id, row.name);
        let text = row.text.unwrap_or_else(|| panic!("{name}: has no text"));
        let began = Instant::now();
        let blocks = parse(&text);
        assert!(began.elapsed() < Duration::from_secs(2), "{name}: took {:?}", began.elapsed());
        let mut found = Found { hosts: true, ..Found::default() };
        look(&blocks, &mut found);
        assert_eq!(Some(&found.clickable), row.expect.clickable_links.as_ref(), "{name}: links to open");
        assert_eq!(Some(&found.inert), row.expect.inert_links.as_ref(), "{name}: inert links");
        assert_eq!(Some(found.images), row.expect.blocked_images, "{name}: images");
        assert!(found.hosts, "{name}: a link that can be opened says where it leads");
        if row.expect.must.iter().any(|must| must == "shown_as_literal_text") {
            // Underscores may be marks of emphasis.
            let squeezed =
                |text: &str| text.replace('_', "").split_whitespace().collect::<Vec<_>>().join(" ");
            let html = text.split("\n\n").next().map(squeezed).unwrap_or_default();
            assert!(squeezed(&found.text).contains(&html), "{name}: {} lacks {html}", found.text);
        }
    }
    assert!(checked > 20, "the corpus must hold markdown rows");
}

fn look(blocks: &[Block], found: &mut Found) {
    for block in blocks {
        match block {
            Block::Paragraph(spans) | Block::Heading { content: spans, .. } => look_spans(spans, found),
            Block::List { items, .. } => items.iter().for_each(|item| look(item, found)),
            Block::Quote(inner) => look(inner, found),
            Block::Table(table) => {
                table.rows.iter().chain([&table.head]).flatten().for_each(|cell| look_spans(cell, found));
            }
            Block::Code { text, .. } | Block::Text(text) => found.text.push_str(text),
            Block::Rule | Block::Cut { .. } => {}
        }
    }
}

fn look_spans(spans: &[Inline], found: &mut Found) {
    for span in spans {
        match span {
            Inline::Text(words) | Inline::Code(words) => found.text.push_str(words),
            Inline::Strong(inner) | Inline::Emphasis(inner) | Inline::Strikethrough(inner) => {
                look_spans(inner, found);
            }
            Inline::LineBreak => found.text.push('\n'),
            Inline::Link(link) => {
                let set = if link.inert.is_none() { &mut found.clickable } else { &mut found.inert };
                set.insert(link.url.clone());
                found.hosts &= link.inert.is_some() || link.host.is_some();
                look_spans(&link.content, found);
            }
            Inline::Image(image) => {
                found.images += 1;
                found.hosts &= image.host.is_some();
            }
        }
    }
}
