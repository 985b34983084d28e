//! Lists and errors: what every noun's answers have in common.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    pub items: Vec<T>,
    /// The `cursor` of the next page; null on the last.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// All there is.
    pub fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// What a failed request answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorBody {
    pub error: ErrorView,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorView {
    /// A stable word in snake_case; match on this.
    pub code: String,
    /// For people: what was tried and what to do. Never a secret.
    pub message: String,
}
