//! What an agent wrote, as a tree of typed nodes from which the page builds its own.
//!
//! Agent text never becomes HTML: raw HTML in it is text like any other, images are not loaded, and a link
//! leads somewhere only where its address is one that a browser or a mail program opens. The whole is
//! bounded in size, depth and number of nodes, and says so where something was cut.
//!
//! CommonMark with tables and strikethrough. No footnotes, no task lists, no bare addresses made to links:
//! what is not in the tree is shown as it was written.

mod build;
mod link;

pub use link::{Caution, InertReason, Link, destination, judge};

/// Octets of text that are read; the rest is cut.
pub const INPUT_MAX: usize = 2 << 20;
/// Blocks and spans within one another.
pub const DEPTH_MAX: usize = 32;
/// Blocks, spans and cells of one document.
pub const NODES_MAX: usize = 20_000;
pub const TABLE_COLUMNS_MAX: usize = 64;
pub const TABLE_ROWS_MAX: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    Paragraph(Vec<Inline>),
    /// `level` is 1 to 6.
    Heading {
        level: u8,
        content: Vec<Inline>,
    },
    List {
        /// The first number of an ordered list.
        start: Option<u64>,
        items: Vec<Vec<Block>>,
    },
    Quote(Vec<Block>),
    Code {
        /// One word of letters, digits and `+#._-`.
        language: Option<String>,
        text: String,
    },
    Table(Table),
    Rule,
    /// Raw HTML, as it was written.
    Text(String),
    /// Here the document was cut: so many octets of it are not shown.
    Cut {
        octets: usize,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inline {
    /// A `\n` in it is a line break that the agent may not have meant.
    Text(String),
    Code(String),
    Strong(Vec<Inline>),
    Emphasis(Vec<Inline>),
    Strikethrough(Vec<Inline>),
    LineBreak,
    Link(Link),
    Image(Image),
}

/// An image that is not loaded, for its address would learn that it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub alt: String,
    pub url: String,
    /// The host it would have come from, in its ASCII form.
    pub host: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alignment {
    None,
    Left,
    Center,
    Right,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// One a column shown.
    pub alignments: Vec<Alignment>,
    pub head: Vec<Vec<Inline>>,
    pub rows: Vec<Vec<Vec<Inline>>>,
    /// Columns and rows that are not shown.
    pub cut_columns: usize,
    pub cut_rows: usize,
}

/// What several documents of one answer may have together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub octets: usize,
    pub nodes: usize,
}

/// The tree of `text`. Never fails: what is no markdown is text.
pub fn parse(text: &str) -> Vec<Block> {
    parse_within(text, &mut Budget { octets: INPUT_MAX, nodes: NODES_MAX })
}

/// As [`parse`], and takes what it uses out of `budget`.
pub fn parse_within(text: &str, budget: &mut Budget) -> Vec<Block> {
    build::document(text, budget)
}

/// The text of spans without their marks.
pub fn text_of(spans: &[Inline]) -> String {
    let mut text = String::new();
    collect(spans, &mut text);
    text
}

fn collect(spans: &[Inline], text: &mut String) {
    for span in spans {
        match span {
            Inline::Text(words) | Inline::Code(words) => text.push_str(words),
            Inline::Strong(inner) | Inline::Emphasis(inner) | Inline::Strikethrough(inner) => {
                collect(inner, text);
            }
            Inline::LineBreak => text.push('\n'),
            Inline::Link(link) => collect(&link.content, text),
            Inline::Image(image) => text.push_str(&image.alt),
        }
    }
}

#[cfg(test)]
mod tests;
