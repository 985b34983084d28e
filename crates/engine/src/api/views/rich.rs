//! What agents wrote, as a tree that the page builds its nodes from. Nothing in it is markup.

use serde::{Deserialize, Serialize};
use taskbell_core::markdown;
use utoipa::ToSchema;

/// A task's artifacts and conversation to look at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenderedView {
    pub artifacts: Vec<RenderedArtifact>,
    /// The oldest first.
    pub conversation: Vec<RenderedMessage>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenderedArtifact {
    pub artifact_id: String,
    /// Cleaned to one line.
    pub name: Option<String>,
    /// Chunks of it were missed.
    pub incomplete: bool,
    pub blocks: Vec<BlockView>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenderedMessage {
    pub role: RoleView,
    pub message_id: String,
    pub blocks: Vec<BlockView>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RoleView {
    User,
    Agent,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum BlockView {
    Paragraph {
        content: Vec<InlineView>,
    },
    Heading {
        /// 1 to 6.
        level: u8,
        content: Vec<InlineView>,
    },
    List {
        /// The first number of an ordered list; null: bullets.
        start: Option<u64>,
        #[schema(no_recursion)]
        items: Vec<Vec<BlockView>>,
    },
    Quote {
        #[schema(no_recursion)]
        blocks: Vec<BlockView>,
    },
    Code {
        /// One word of letters, digits and `+#._-`.
        language: Option<String>,
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Table {
        alignments: Vec<AlignmentView>,
        head: Vec<Vec<InlineView>>,
        rows: Vec<Vec<Vec<InlineView>>>,
        /// Columns and rows that are not shown.
        cut_columns: u64,
        cut_rows: u64,
    },
    Rule,
    /// To be shown as written, line by line.
    Text {
        text: String,
    },
    /// Here something was cut: so many octets are not shown.
    Cut {
        octets: u64,
    },
    /// A file in the task.
    #[serde(rename_all = "camelCase")]
    File {
        name: Option<String>,
        media_type: Option<String>,
        octets: u64,
    },
    /// A file elsewhere. Never fetched by itself.
    #[serde(rename_all = "camelCase")]
    Url {
        url: String,
        host: Option<String>,
        inert: Option<InertReasonView>,
        cautions: Vec<CautionView>,
        name: Option<String>,
        media_type: Option<String>,
    },
    /// Structured data, as indented JSON.
    #[serde(rename_all = "camelCase")]
    Data {
        media_type: Option<String>,
        text: String,
        /// Of the whole.
        octets: u64,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum InlineView {
    /// A line break in it is one that the agent may not have meant.
    Text {
        text: String,
    },
    Code {
        text: String,
    },
    Strong {
        #[schema(no_recursion)]
        content: Vec<InlineView>,
    },
    Emphasis {
        #[schema(no_recursion)]
        content: Vec<InlineView>,
    },
    Strikethrough {
        #[schema(no_recursion)]
        content: Vec<InlineView>,
    },
    LineBreak,
    Link {
        /// As written, cleaned for display.
        url: String,
        /// Where it leads, ASCII; to be shown beside the link.
        host: Option<String>,
        /// Why it opens nothing; null: a click may open it, after a question.
        inert: Option<InertReasonView>,
        cautions: Vec<CautionView>,
        #[schema(no_recursion)]
        content: Vec<InlineView>,
    },
    /// Never loaded.
    Image {
        alt: String,
        url: String,
        host: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AlignmentView {
    None,
    Left,
    Center,
    Right,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InertReasonView {
    Relative,
    Scheme,
    Characters,
    Malformed,
    TooLong,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CautionView {
    Userinfo,
    LocalAddress,
    OtherHostInText,
    InternationalName,
    MailFields,
}

/// A length as JSON has it.
pub(crate) fn octets(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

pub(crate) fn blocks(of: Vec<markdown::Block>) -> Vec<BlockView> {
    of.into_iter().map(BlockView::from).collect()
}

fn inlines(of: Vec<markdown::Inline>) -> Vec<InlineView> {
    of.into_iter().map(InlineView::from).collect()
}

impl From<markdown::Block> for BlockView {
    fn from(block: markdown::Block) -> Self {
        use markdown::Block;
        match block {
            Block::Paragraph(content) => Self::Paragraph { content: inlines(content) },
            Block::Heading { level, content } => Self::Heading { level, content: inlines(content) },
            Block::List { start, items } => {
                Self::List { start, items: items.into_iter().map(blocks).collect() }
            }
            Block::Quote(inner) => Self::Quote { blocks: blocks(inner) },
            Block::Code { language, text } => Self::Code { language, text },
            Block::Table(table) => Self::Table {
                alignments: table.alignments.into_iter().map(AlignmentView::from).collect(),
                head: table.head.into_iter().map(inlines).collect(),
                rows: table.rows.into_iter().map(|row| row.into_iter().map(inlines).collect()).collect(),
                cut_columns: octets(table.cut_columns),
                cut_rows: octets(table.cut_rows),
            },
            Block::Rule => Self::Rule,
            Block::Text(text) => Self::Text { text },
            Block::Cut { octets: left } => Self::Cut { octets: octets(left) },
        }
    }
}

impl From<markdown::Inline> for InlineView {
    fn from(span: markdown::Inline) -> Self {
        use markdown::Inline;
        match span {
            Inline::Text(text) => Self::Text { text },
            Inline::Code(text) => Self::Code { text },
            Inline::Strong(content) => Self::Strong { content: inlines(content) },
            Inline::Emphasis(content) => Self::Emphasis { content: inlines(content) },
            Inline::Strikethrough(content) => Self::Strikethrough { content: inlines(content) },
            Inline::LineBreak => Self::LineBreak,
            Inline::Link(link) => Self::Link {
                url: link.url,
                host: link.host,
                inert: link.inert.map(InertReasonView::from),
                cautions: link.cautions.into_iter().map(CautionView::from).collect(),
                content: inlines(link.content),
            },
            Inline::Image(image) => Self::Image { alt: image.alt, url: image.url, host: image.host },
        }
    }
}

impl From<markdown::Alignment> for AlignmentView {
    fn from(alignment: markdown::Alignment) -> Self {
        match alignment {
            markdown::Alignment::None => Self::None,
            markdown::Alignment::Left => Self::Left,
            markdown::Alignment::Center => Self::Center,
            markdown::Alignment::Right => Self::Right,
        }
    }
}

impl From<markdown::InertReason> for InertReasonView {
    fn from(reason: markdown::InertReason) -> Self {
        match reason {
            markdown::InertReason::Relative => Self::Relative,
            markdown::InertReason::Scheme => Self::Scheme,
            markdown::InertReason::Characters => Self::Characters,
            markdown::InertReason::Malformed => Self::Malformed,
            markdown::InertReason::TooLong => Self::TooLong,
        }
    }
}

impl From<markdown::Caution> for CautionView {
    fn from(caution: markdown::Caution) -> Self {
        match caution {
            markdown::Caution::Userinfo => Self::Userinfo,
            markdown::Caution::LocalAddress => Self::LocalAddress,
            markdown::Caution::OtherHostInText => Self::OtherHostInText,
            markdown::Caution::InternationalName => Self::InternationalName,
            markdown::Caution::MailFields => Self::MailFields,
        }
    }
}
