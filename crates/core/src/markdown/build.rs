//! From the parser's events to the tree, within its bounds.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use super::link::{host_of, judge};
use super::{
    Alignment, Block, Budget, DEPTH_MAX, INPUT_MAX, Image, Inline, NODES_MAX, TABLE_COLUMNS_MAX,
    TABLE_ROWS_MAX, Table, text_of,
};
use crate::text;

const LANGUAGE_MAX: usize = 32;

pub(super) fn document(text: &str, budget: &mut Budget) -> Vec<Block> {
    let mut end = text.len().min(INPUT_MAX).min(budget.octets);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let (read, beyond) = text.split_at(end);
    // Before the parser, so that no escape sequence is torn apart by marks; and again behind it, for
    // entities make characters.
    let read = text::lines(read);
    let mut tree = Tree::new();
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let most = NODES_MAX.min(budget.nodes);
    let mut left = 0;
    for (event, range) in Parser::new_ext(&read, options).into_offset_iter() {
        if tree.nodes >= most {
            left = read.len().saturating_sub(range.start);
            break;
        }
        tree.take(event);
    }
    budget.octets -= end;
    budget.nodes = budget.nodes.saturating_sub(tree.nodes);
    let mut blocks = tree.finish();
    let octets = left + beyond.len();
    if octets > 0 {
        blocks.push(Block::Cut { octets });
    }
    blocks
}

/// What is open and how it closes.
enum Open {
    Root,
    Quote,
    Item,
    List { start: Option<u64>, items: Vec<Vec<Block>> },
    Paragraph,
    Heading(u8),
    Code(Option<String>),
    Html,
    Table(Table),
    Row { head: bool, columns: usize },
    Cell,
    Strong,
    Emphasis,
    Strikethrough,
    Link(String),
    Image(String),
}

struct Frame {
    open: Open,
    blocks: Vec<Block>,
    /// Of a container: text that stands in it without a paragraph.
    inlines: Vec<Inline>,
    cells: Vec<Vec<Inline>>,
    /// Of code and HTML.
    text: String,
}

impl Frame {
    fn new(open: Open) -> Self {
        Self { open, blocks: Vec::new(), inlines: Vec::new(), cells: Vec::new(), text: String::new() }
    }

    fn wrap_loose_text(&mut self) {
        if !self.inlines.is_empty() {
            let paragraph = Block::Paragraph(std::mem::take(&mut self.inlines));
            self.blocks.push(paragraph);
        }
    }
}

struct Tree {
    /// What holds the frame on top, the document first.
    below: Vec<Frame>,
    top: Frame,
    /// Elements open beyond the greatest depth: their text goes to the deepest that is there.
    beyond: usize,
    nodes: usize,
}

impl Tree {
    fn new() -> Self {
        Self { below: Vec::new(), top: Frame::new(Open::Root), beyond: 0, nodes: 0 }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(_) if self.beyond > 0 => self.beyond += 1,
            Event::Start(tag) => self.start(tag),
            Event::End(_) if self.beyond > 0 => {
                self.beyond -= 1;
                self.add_text("\n");
            }
            Event::End(_) => self.close(),
            Event::Text(words) | Event::Html(words) | Event::InlineHtml(words) => self.add_text(&words),
            Event::Code(words) => self.add_inline(Inline::Code(text::lines(&words))),
            Event::SoftBreak => self.add_text("\n"),
            Event::HardBreak => self.add_inline(Inline::LineBreak),
            Event::Rule if self.beyond > 0 => {}
            Event::Rule => self.add_block(Block::Rule),
            // Not asked for.
            Event::InlineMath(words) | Event::DisplayMath(words) | Event::FootnoteReference(words) => {
                self.add_text(&words);
            }
            Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        // Rows and cells belong to their table; a container may need a paragraph for loose text.
        let needs = if matches!(tag, Tag::Table(_)) { 3 } else { 1 };
        if self.below.len() + needs >= DEPTH_MAX {
            self.beyond = 1;
            return;
        }
        let open = match tag {
            Tag::Paragraph => Open::Paragraph,
            Tag::Heading { level, .. } => Open::Heading(level as u8),
            Tag::BlockQuote(_) => Open::Quote,
            Tag::CodeBlock(CodeBlockKind::Indented) => Open::Code(None),
            Tag::CodeBlock(CodeBlockKind::Fenced(label)) => Open::Code(language(&label)),
            Tag::HtmlBlock => Open::Html,
            Tag::List(start) => Open::List { start, items: Vec::new() },
            Tag::Item => Open::Item,
            Tag::Table(alignments) => Open::Table(Table {
                alignments: alignments.iter().take(TABLE_COLUMNS_MAX).map(alignment).collect(),
                cut_columns: alignments.len().saturating_sub(TABLE_COLUMNS_MAX),
                ..Table::default()
            }),
            Tag::TableHead => Open::Row { head: true, columns: 0 },
            Tag::TableRow => Open::Row { head: false, columns: 0 },
            Tag::TableCell => Open::Cell,
            Tag::Emphasis => Open::Emphasis,
            Tag::Strong => Open::Strong,
            Tag::Strikethrough => Open::Strikethrough,
            Tag::Link { dest_url, .. } => Open::Link(dest_url.into_string()),
            Tag::Image { dest_url, .. } => Open::Image(dest_url.into_string()),
            // Not asked for: shown as what is in them.
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => Open::Quote,
        };
        self.below.push(std::mem::replace(&mut self.top, Frame::new(open)));
    }

    fn close(&mut self) {
        let Some(below) = self.below.pop() else { return };
        let mut done = std::mem::replace(&mut self.top, below);
        done.wrap_loose_text_of_container();
        match done.open {
            Open::Root => {}
            Open::Quote => self.add_block(Block::Quote(done.blocks)),
            Open::Item => {
                self.nodes += 1;
                if let Open::List { items, .. } = &mut self.top.open {
                    items.push(done.blocks);
                }
            }
            Open::List { start, items } => self.add_block(Block::List { start, items }),
            Open::Paragraph => self.add_block(Block::Paragraph(done.inlines)),
            Open::Heading(level) => self.add_block(Block::Heading { level, content: done.inlines }),
            Open::Code(language) => self.add_block(Block::Code { language, text: done.text }),
            Open::Html => self.add_block(Block::Text(done.text.trim_end_matches('\n').to_owned())),
            Open::Table(table) => self.add_block(Block::Table(table)),
            Open::Row { head, .. } => {
                if let Open::Table(table) = &mut self.top.open {
                    if head {
                        table.head = done.cells;
                    } else if table.rows.len() < TABLE_ROWS_MAX {
                        table.rows.push(done.cells);
                    } else {
                        table.cut_rows += 1;
                    }
                }
            }
            Open::Cell => {
                if let Open::Row { columns, .. } = &mut self.top.open {
                    *columns += 1;
                    if *columns <= TABLE_COLUMNS_MAX {
                        self.nodes += 1;
                        self.top.cells.push(done.inlines);
                    }
                }
            }
            Open::Strong => self.add_inline(Inline::Strong(done.inlines)),
            Open::Emphasis => self.add_inline(Inline::Emphasis(done.inlines)),
            Open::Strikethrough => self.add_inline(Inline::Strikethrough(done.inlines)),
            Open::Link(url) => self.add_inline(Inline::Link(judge(&url, done.inlines))),
            Open::Image(url) => {
                let image = Image {
                    alt: text::plain(&text_of(&done.inlines)),
                    host: host_of(&url),
                    url: text::one_line(&url, 2_000),
                };
                self.add_inline(Inline::Image(image));
            }
        }
    }

    fn add_block(&mut self, block: Block) {
        self.nodes += 1;
        self.top.wrap_loose_text();
        self.top.blocks.push(block);
    }

    fn add_inline(&mut self, inline: Inline) {
        match (&mut self.top.open, inline) {
            (Open::Code(_) | Open::Html, inline) => self.top.text.push_str(&text_of(&[inline])),
            (_, inline) => {
                self.nodes += 1;
                self.top.inlines.push(inline);
            }
        }
    }

    fn add_text(&mut self, words: &str) {
        let words = text::lines(words);
        if matches!(self.top.open, Open::Code(_) | Open::Html) {
            self.top.text.push_str(&words);
        } else if let Some(Inline::Text(before)) = self.top.inlines.last_mut() {
            before.push_str(&words);
        } else if !words.is_empty() {
            self.add_inline(Inline::Text(words));
        }
    }

    fn finish(mut self) -> Vec<Block> {
        while !self.below.is_empty() {
            self.close();
        }
        self.top.wrap_loose_text();
        self.top.blocks
    }
}

impl Frame {
    fn wrap_loose_text_of_container(&mut self) {
        if matches!(self.open, Open::Quote | Open::Item) {
            self.wrap_loose_text();
        }
    }
}

/// A fence's label is the agent's: only what a name of a language is made of.
fn language(label: &str) -> Option<String> {
    let word = label.split_whitespace().next()?;
    let plain = word.len() <= LANGUAGE_MAX
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"+#._-".contains(&b));
    plain.then(|| word.to_owned())
}

fn alignment(of: &pulldown_cmark::Alignment) -> Alignment {
    match of {
        pulldown_cmark::Alignment::None => Alignment::None,
        pulldown_cmark::Alignment::Left => Alignment::Left,
        pulldown_cmark::Alignment::Center => Alignment::Center,
        pulldown_cmark::Alignment::Right => Alignment::Right,
    }
}
