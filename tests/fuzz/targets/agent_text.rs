//! An agent's text becomes a bounded tree and a clean line, whatever is in it; and a link that can be opened leads to the web
//! or to a mail address.
#![no_main]

use libfuzzer_sys::fuzz_target;
use taskbell_core::markdown::{self, Block, Budget, Inline};
use taskbell_core::text;
use url::Url;

fn assert_clean(line: &str) {
    assert!(!line.chars().any(char::is_control), "{line:?}");
    assert!(!line.contains(['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}']), "{line:?}");
}

fn judge_blocks(blocks: &[Block]) {
    for block in blocks {
        match block {
            Block::Paragraph(spans) | Block::Heading { content: spans, .. } => judge_spans(spans),
            Block::List { items, .. } => items.iter().for_each(|item| judge_blocks(item)),
            Block::Quote(inner) => judge_blocks(inner),
            Block::Table(table) => {
                assert!(table.alignments.len() <= markdown::TABLE_COLUMNS_MAX);
                assert!(table.rows.len() <= markdown::TABLE_ROWS_MAX);
                table.rows.iter().flatten().chain(&table.head).for_each(|cell| judge_spans(cell));
            }
            Block::Code { .. } | Block::Rule | Block::Text(_) | Block::Cut { .. } => (),
        }
    }
}

fn judge_spans(spans: &[Inline]) {
    for span in spans {
        match span {
            Inline::Strong(inner) | Inline::Emphasis(inner) | Inline::Strikethrough(inner) => {
                judge_spans(inner)
            }
            Inline::Link(link) => {
                judge_spans(&link.content);
                if link.inert.is_none() {
                    let url = Url::parse(&link.url).expect("what can be opened is a URL");
                    assert!(matches!(url.scheme(), "http" | "https" | "mailto"), "{url}");
                }
            }
            Inline::Text(_) | Inline::Code(_) | Inline::LineBreak | Inline::Image(_) => (),
        }
    }
}

fuzz_target!(|given: &str| {
    let mut budget = Budget { octets: 4_096, nodes: 200 };
    judge_blocks(&markdown::parse_within(given, &mut budget));
    assert!(budget.octets <= 4_096 && budget.nodes <= 200, "a budget is used up, never overdrawn");
    let line = text::plain(given);
    assert_clean(&line);
    assert!(line.chars().count() <= text::LIST_LENGTH);
    assert_eq!(text::plain(&line), line, "a clean line stays as it is");
    for shown in text::lines(given).split('\n') {
        assert_clean(&shown.replace('\t', " "));
    }
});
