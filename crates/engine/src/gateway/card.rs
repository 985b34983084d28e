//! The card of an agent as it is offered here, and the one for those who have a key.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::fmt::rfc2822::DateTimePrinter;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use taskbell_core::agent::AgentCard;
use taskbell_core::agent::offered::{self, Offer};
use taskbell_core::dialect::Dialect;
use taskbell_core::dialect::errors::{ErrorAnswer, ErrorKind};
use taskbell_core::json::write_line;

use super::{Caller, faults, push};
use crate::agents::Agent;

/// How long a client may use the card unasked (1.0 §8.6): an agent changes its card far more rarely.
const AGE: &str = "private, max-age=60";

/// `base` is the agent's address here, without a slash at its end.
fn offered(agent: &Agent, raw: Option<&Value>, base: &str) -> Value {
    let name = agent.name();
    let offer =
        Offer { base, name: name.as_str(), push: push::OFFERED, extended_card: has_extended_card(agent) };
    offered::card(raw, offer)
}

fn raw_card(agent: &Agent) -> Option<Value> {
    serde_json::from_str(agent.now().row.card_json.as_deref()?).ok()
}

fn has_extended_card(agent: &Agent) -> bool {
    let card = raw_card(agent).and_then(|raw| AgentCard::from_value(raw).ok());
    card.is_some_and(|card| card.capabilities.extended_card)
}

/// The public card: needs no key and holds no secret.
pub(super) fn respond(agent: &Agent, base: &str, asked: &HeaderMap) -> Response {
    let text = write_line(&offered(agent, raw_card(agent).as_ref(), base));
    let digest = Sha256::digest(text.as_bytes());
    let tag = digest.iter().take(8).fold("\"".to_owned(), |tag, octet| tag + &format!("{octet:02x}")) + "\"";
    let is_known = asked.get_all(header::IF_NONE_MATCH).iter().any(|value| {
        let tags = value.to_str().unwrap_or_default();
        tags.split(',').any(|item| item.trim() == "*" || item.trim().trim_start_matches("W/") == tag)
    });
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, "application/json")], text).into_response()
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::VARY, HeaderValue::from_static("A2A-Version"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(AGE));
    let read_at = agent.now().row.card_read_at_ms.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let read_at = read_at.and_then(|at| DateTimePrinter::new().timestamp_to_rfc9110_string(&at).ok());
    if let Some(read_at) = read_at.and_then(|text| HeaderValue::try_from(text).ok()) {
        headers.insert(header::LAST_MODIFIED, read_at);
    }
    response
}

impl Caller {
    /// The agent's own extended card, read anew and offered like the public one.
    pub(super) async fn extended_card(&self) -> Result<Value, ErrorAnswer> {
        if !has_extended_card(&self.agent) {
            // 1.0 calls it unsupported where the card declares none; 0.3 knows one code for it.
            let kind = match self.dialect {
                Dialect::V03 => ErrorKind::ExtendedCardNotConfigured,
                Dialect::V1 => ErrorKind::UnsupportedOperation,
            };
            return Err(ErrorAnswer::new(kind, "this agent has no extended card"));
        }
        let raw = self.agent_client().extended_card().await.map_err(|error| faults::of_call(&error))?;
        Ok(offered(&self.agent, Some(&raw), &self.base))
    }
}
