//! Extensions that the card declares. The agent does nothing for them: it says which of them a request activates,
//! and refuses messages that lack a required one, as the protocol has it.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use taskbell_core::dialect::Dialect;
use taskbell_core::dialect::errors::{ErrorAnswer, ErrorKind};
use taskbell_core::extensions;

/// An extension in the card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredExtension {
    pub uri: String,
    /// Messages that do not ask for it are refused (1.0: -32008).
    pub required: bool,
}

/// All that the card declares.
pub struct Extensions(pub Vec<DeclaredExtension>);

impl Extensions {
    /// `capabilities.extensions` of the card.
    pub fn in_card(&self) -> Value {
        let one = |extension: &DeclaredExtension| match extension.required {
            true => json!({ "uri": extension.uri, "required": true }),
            false => json!({ "uri": extension.uri }),
        };
        self.0.iter().map(one).collect()
    }

    /// Whether a message with these headers may be taken.
    pub fn check(&self, asked: &HeaderMap) -> Result<(), ErrorAnswer> {
        let activated = self.activated(asked);
        match self.0.iter().find(|extension| extension.required && !activated.contains(&extension.uri)) {
            None => Ok(()),
            Some(missing) => {
                let text = format!("extension {} is required and was not asked for", missing.uri);
                Err(ErrorAnswer::new(ErrorKind::ExtensionSupportRequired, text))
            }
        }
    }

    /// The header that tells what is activated, under the name that it was asked for by.
    pub fn answer(&self, asked: &HeaderMap) -> Option<(HeaderName, HeaderValue)> {
        let activated = self.activated(asked);
        if activated.is_empty() {
            return None;
        }
        let is_new = asked.contains_key(extensions::header(Dialect::V1));
        let name = extensions::header(if is_new { Dialect::V1 } else { Dialect::V03 });
        let value = HeaderValue::try_from(extensions::write(&activated)).ok()?;
        Some((HeaderName::from_static(name), value))
    }

    fn activated(&self, asked: &HeaderMap) -> Vec<String> {
        let declared: Vec<String> = self.0.iter().map(|extension| extension.uri.clone()).collect();
        let values = extensions::HEADERS.iter().flat_map(|name| asked.get_all(*name));
        extensions::activated(&declared, values.map(HeaderValue::as_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))])
    }

    #[test]
    fn a_message_without_the_required_extension_is_refused_and_what_is_activated_is_told() {
        let extension = |uri: &str, required| DeclaredExtension { uri: uri.to_owned(), required };
        let extensions = Extensions(vec![extension("urn:a", false), extension("urn:b", true)]);
        assert_eq!(
            extensions.check(&HeaderMap::new()).unwrap_err().kind,
            ErrorKind::ExtensionSupportRequired
        );
        let old = asked("x-a2a-extensions", "urn:c, urn:b");
        assert!(extensions.check(&old).is_ok());
        let (name, value) = extensions.answer(&old).unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("x-a2a-extensions", "urn:b"));
        assert_eq!(extensions.answer(&asked("a2a-extensions", "urn:c")), None);
    }
}
