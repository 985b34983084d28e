//! The extensions of one call: what is asked for, and what the agent says it activated.

use std::sync::{Mutex, PoisonError};

use reqwest::header::{HeaderMap, HeaderValue};
use taskbell_core::extensions;

/// Asked once, answered once; a call that is tried again keeps the last answer.
#[derive(Debug, Default)]
pub struct Negotiation {
    asked: Vec<String>,
    activated: Mutex<Vec<String>>,
}

impl Negotiation {
    /// `asked` as [`extensions::read`] gives it.
    pub fn new(asked: Vec<String>) -> Self {
        Self { asked, activated: Mutex::default() }
    }

    /// What the agent activated, of what was asked for.
    pub fn activated(&self) -> Vec<String> {
        self.activated.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// `None`: nothing is asked for, and no header says so.
    pub(super) fn header_value(&self) -> Option<HeaderValue> {
        if self.asked.is_empty() {
            return None;
        }
        HeaderValue::try_from(extensions::write(&self.asked)).ok()
    }

    /// Agents of both versions are seen under both names.
    pub(super) fn read_answer(&self, headers: &HeaderMap) {
        let values = extensions::HEADERS.iter().flat_map(|name| headers.get_all(*name));
        let activated = extensions::activated(&self.asked, values.map(HeaderValue::as_bytes));
        *self.activated.lock().unwrap_or_else(PoisonError::into_inner) = activated;
    }
}
