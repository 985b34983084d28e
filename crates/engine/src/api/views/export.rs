//! What leaves as files.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// As what a task is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExportFormat {
    /// Everything known of it, as the API shows it.
    Json,
    /// A document for people.
    Markdown,
    /// The files it made.
    Artifacts,
    /// All of that in one archive.
    Zip,
}

impl ExportFormat {
    pub const ALL: [Self; 4] = [Self::Json, Self::Markdown, Self::Artifacts, Self::Zip];

    pub fn word(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Markdown => "markdown",
            Self::Artifacts => "artifacts",
            Self::Zip => "zip",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.word() == word)
    }
}

/// Files to keep somewhere else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportView {
    pub files: Vec<ExportedFileView>,
    /// Addresses that stand in the task in place of files. Nothing was fetched.
    pub not_fetched: Vec<String>,
}

/// One of them. Either `text` or `base64` is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportedFileView {
    /// Without a path, safe on every system, of no other file here.
    pub name: String,
    pub media_type: String,
    pub text: Option<String>,
    pub base64: Option<String>,
}
