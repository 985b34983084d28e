//! One change of the feed, as streamed, listed and shown in a timeline.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use taskbell_core::ids::{AgentName, TaskRef};
use utoipa::ToSchema;

use super::UtcTime;

/// A change. The members below are the same for all; those of its kind stand beside them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeView {
    /// Its place in the feed; grows, never used twice.
    pub seq: u64,
    pub at: UtcTime,
    #[schema(value_type = Option<String>)]
    pub task: Option<TaskRef>,
    #[schema(value_type = Option<String>)]
    pub agent: Option<AgentName>,
    /// `stream`, `push`, `poll`, `manual` or `gateway`.
    pub source: String,
    /// `task`, `status`, `artifact`, `message`, `gap`, `following`, `notice`, …
    pub kind: String,
    #[serde(flatten)]
    #[schema(value_type = Object, additional_properties)]
    pub body: Map<String, Value>,
}

/// Names that a body cannot take.
const OWN: [&str; 6] = ["seq", "at", "task", "agent", "source", "kind"];

impl ChangeView {
    /// The members of a stored body. A body that is no object stands under `body`; a member that has
    /// the name of one of ours stands under that name with a trailing underscore, so that no name comes twice.
    pub fn body_of(json: &str) -> Map<String, Value> {
        let mut body = match serde_json::from_str(json) {
            Ok(Value::Object(body)) => body,
            Ok(Value::Null) => Map::new(),
            Ok(other) => Map::from_iter([("body".to_owned(), other)]),
            Err(_) => Map::from_iter([("body".to_owned(), Value::String(json.to_owned()))]),
        };
        for name in OWN {
            if let Some(value) = body.remove(name) {
                body.insert(format!("{name}_"), value);
            }
        }
        body
    }
}
