//! Scripts for messages whose id begins in a known way: how a test kit whose texts are fixed says what is
//! to happen.

use std::collections::HashMap;

/// Scripts by the beginning of a message's id. The longest beginning wins; the empty one is the script of
/// every other message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Presets {
    /// Longest beginning first.
    scripts: Vec<(String, String)>,
}

impl Presets {
    /// Reads a JSON object of scripts by the beginning of the id.
    ///
    /// # Errors
    /// The text is no JSON object of texts.
    pub fn read(json: &str) -> Result<Self, serde_json::Error> {
        let scripts: HashMap<String, String> = serde_json::from_str(json)?;
        let mut scripts: Vec<_> = scripts.into_iter().collect();
        scripts.sort_unstable_by(|(one, _), (other, _)| other.len().cmp(&one.len()).then(one.cmp(other)));
        Ok(Self { scripts })
    }

    /// The script of a message with this id, where there is one.
    pub fn script(&self, message_id: &str) -> Option<&str> {
        let known = self.scripts.iter().find(|(beginning, _)| message_id.starts_with(beginning.as_str()))?;
        Some(&known.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_names_the_script_and_the_empty_one_that_of_all_others() {
        let presets = Presets::read(r#"{"":"steps=1","ask-":"ask=1","ask-twice-":"ask=2"}"#).unwrap();
        assert_eq!(presets.script("ask-twice-7"), Some("ask=2"));
        assert_eq!(presets.script("ask-7"), Some("ask=1"));
        assert_eq!(presets.script("other"), Some("steps=1"));
        assert_eq!(Presets::default().script("ask-7"), None);
    }

    #[test]
    fn what_is_no_object_of_texts_is_refused() {
        for text in ["[]", r#"{"a":1}"#, "", "{"] {
            assert!(Presets::read(text).is_err(), "{text}");
        }
    }
}
