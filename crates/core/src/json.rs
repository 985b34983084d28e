//! JSON with limits: the only door through which a peer's JSON becomes a `Value`.
//!
//! Stricter than the grammar in two ways. Nesting deeper than [`MAX_DEPTH`] is refused, so that
//! nothing behind this door can run out of stack on it. A key repeated within one object is
//! refused, because parsers disagree on which of the two wins, and an answer that two programs
//! read differently confirms nothing.
//!
//! One pass builds the value and applies both rules; there is no second walk over it. What the
//! members mean is not decided here.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use crate::text::one_line;

/// How many arrays and objects may lie within each other. A bare number has depth 0, `[]` depth 1.
pub const MAX_DEPTH: usize = 64;

/// How many characters of a repeated key a fault shows.
const SHOWN_KEY: usize = 64;

/// Why a text is no JSON that is taken. Lines and columns count from 1; columns count octets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    #[error("JSON is not UTF-8 from octet {valid_up_to}")]
    NotUtf8 { valid_up_to: usize },
    #[error("JSON is nested deeper than {MAX_DEPTH}")]
    TooDeep,
    /// `key` is cleaned and cut: it is a peer's text on its way into a log.
    #[error("JSON repeats the key {key:?} within one object")]
    RepeatedKey { key: String },
    /// The text ended within a value; an empty text is one too.
    #[error("JSON ends too early at line {line} column {column}")]
    Unfinished { line: usize, column: usize },
    /// A whole value, and then something other than white space.
    #[error("JSON is followed by other text at line {line} column {column}")]
    TrailingText { line: usize, column: usize },
    #[error("JSON is malformed at line {line} column {column}")]
    Syntax { line: usize, column: usize },
}

/// Parses one whole JSON document.
pub fn parse(bytes: &[u8]) -> Result<Value, JsonFault> {
    // One check of the whole is quicker than one for each string within it.
    let text = std::str::from_utf8(bytes).map_err(|e| JsonFault::NotUtf8 { valid_up_to: e.valid_up_to() })?;
    parse_str(text)
}

/// [`parse`] for text already known to be UTF-8, such as the data of an event.
pub fn parse_str(text: &str) -> Result<Value, JsonFault> {
    // serde carries nothing but text in an error, so a fault of ours leaves by this side door.
    let broken_rule = RefCell::new(None);
    let mut source = serde_json::Deserializer::from_str(text);
    let seed = ValueSeed { depth_left: MAX_DEPTH, broken_rule: &broken_rule };
    let value = match seed.deserialize(&mut source) {
        Ok(value) => value,
        Err(error) => return Err(broken_rule.take().unwrap_or_else(|| grammar_fault(&error))),
    };
    source.end().map_err(|error| JsonFault::TrailingText { line: error.line(), column: error.column() })?;
    Ok(value)
}

/// Writes a value as one line that stays one line in an event stream. JSON itself keeps U+2028, U+2029
/// and U+0085 as they are, and a Python SDK in the field breaks events at them, so they are escaped.
pub fn write_line(value: &Value) -> String {
    const BREAKS: [char; 3] = ['\u{2028}', '\u{2029}', '\u{85}'];
    let text = value.to_string();
    if !text.contains(BREAKS) {
        return text;
    }
    // Outside of strings JSON holds ASCII only, so an escape is right wherever one of them stands.
    text.replace(BREAKS[0], "\\u2028").replace(BREAKS[1], "\\u2029").replace(BREAKS[2], "\\u0085")
}

fn grammar_fault(error: &serde_json::Error) -> JsonFault {
    let (line, column) = (error.line(), error.column());
    match error.classify() {
        Category::Eof => JsonFault::Unfinished { line, column },
        Category::Syntax | Category::Data | Category::Io => JsonFault::Syntax { line, column },
    }
}

#[derive(Clone, Copy)]
struct ValueSeed<'r> {
    depth_left: usize,
    broken_rule: &'r RefCell<Option<JsonFault>>,
}

impl ValueSeed<'_> {
    fn refuse<E: serde::de::Error>(&self, fault: JsonFault) -> E {
        self.broken_rule.replace(Some(fault));
        E::custom("refused")
    }

    /// The seed for what lies within this value.
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.depth_left.checked_sub(1) {
            Some(depth_left) => Ok(Self { depth_left, ..self }),
            None => Err(self.refuse(JsonFault::TooDeep)),
        }
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;
    fn deserialize<D: serde::Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut items = Vec::new();
        while let Some(item) = source.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut members = Map::new();
        while let Some(key) = source.next_key::<String>()? {
            let value = source.next_value_seed(inner)?;
            match members.entry(key) {
                Entry::Vacant(place) => {
                    place.insert(value);
                }
                Entry::Occupied(place) => {
                    return Err(self.refuse(JsonFault::RepeatedKey { key: one_line(place.key(), SHOWN_KEY) }));
                }
            }
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nested(depth: usize) -> String {
        format!("{}{}", "[".repeat(depth), "]".repeat(depth))
    }

    #[test]
    fn nesting_is_taken_up_to_the_limit_and_refused_beyond() {
        assert!(parse_str(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(parse_str(&nested(MAX_DEPTH + 1)), Err(JsonFault::TooDeep));
        let objects = format!("{}1{}", "{\"a\":".repeat(MAX_DEPTH), "}".repeat(MAX_DEPTH));
        assert!(parse_str(&objects).is_ok(), "a scalar in the innermost object adds no depth");
        assert_eq!(parse_str(&format!("[{objects}]")), Err(JsonFault::TooDeep));
    }

    #[test]
    fn a_million_open_brackets_are_refused_without_overflow() {
        assert_eq!(parse(&vec![b'['; 1_000_000]), Err(JsonFault::TooDeep));
    }

    #[test]
    fn a_key_repeated_in_one_object_is_refused_however_it_is_spelled() {
        let repeated = |key: &str| Err(JsonFault::RepeatedKey { key: key.to_owned() });
        assert_eq!(parse_str(r#"{"id":1,"id":1}"#), repeated("id"));
        assert_eq!(parse_str(r#"{"a":[{"id":1,"\u0069d":2}]}"#), repeated("id"));
        assert!(parse_str(r#"{"a":{"id":1},"b":{"id":1}}"#).is_ok(), "another object is another place");
    }

    #[test]
    fn a_repeated_key_is_shown_clean_and_short() {
        let long = format!("\\u001b[2J{}", "k".repeat(1000));
        let fault = parse_str(&format!("{{\"{long}\":1,\"{long}\":1}}")).unwrap_err();
        assert_eq!(fault, JsonFault::RepeatedKey { key: format!("{}…", "k".repeat(SHOWN_KEY - 1)) });
    }

    #[test]
    fn a_number_is_written_as_it_was_read_to_the_last_bit() {
        for text in
            ["7.777777377777779e+65", "0.1", "-5e-324", "1.7976931348623157e+308", "18446744073709551615"]
        {
            assert_eq!(write_line(&parse_str(text).unwrap()), text);
        }
    }

    #[test]
    fn faults_of_the_grammar_say_where() {
        assert_eq!(parse_str("{\"a\":\n  tru}"), Err(JsonFault::Syntax { line: 2, column: 6 }));
        assert_eq!(parse_str("{} {}"), Err(JsonFault::TrailingText { line: 1, column: 4 }));
        assert_eq!(parse_str("{}\n]"), Err(JsonFault::TrailingText { line: 2, column: 1 }));
        assert_eq!(parse_str(""), Err(JsonFault::Unfinished { line: 1, column: 0 }));
        assert!(matches!(parse_str(r#"{"jsonrpc":"2.0","re"#), Err(JsonFault::Unfinished { .. })));
        assert!(matches!(parse_str(r#""\ud800""#), Err(JsonFault::Syntax { .. })), "a lone surrogate");
        assert!(matches!(parse_str("1e999"), Err(JsonFault::Syntax { .. })), "a number no f64 holds");
    }

    #[test]
    fn what_is_written_holds_no_line_break_of_any_kind_and_reads_back_the_same() {
        let value = serde_json::json!({"a\u{2029}":"x\u{2028}y\u{85}z\n\r\u{b}"});
        let line = write_line(&value);
        assert!(line.chars().all(|c| !c.is_control() && c != '\u{2028}' && c != '\u{2029}'), "{line}");
        assert_eq!(parse_str(&line).unwrap(), value);
    }

    #[test]
    fn octets_that_are_not_utf8_are_refused_with_their_place() {
        assert_eq!(parse(b"{\"a\":\"\xff\"}"), Err(JsonFault::NotUtf8 { valid_up_to: 6 }));
        assert_eq!(parse(b"[\"\xed\xa0\x80\"]"), Err(JsonFault::NotUtf8 { valid_up_to: 2 }));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::hash_map(any::<String>(), inner, 0..8)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_valid_document_reads_as_serde_json_reads_it(value in any_json()) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let expected: Value = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(parse(text.as_bytes()).unwrap(), expected);
            }
        }

        #[test]
        fn nothing_is_taken_that_serde_json_refuses(text in r#"[\[\]{}:,"a1e.\\u \n-]{0,40}"#) {
            let ours = parse_str(&text);
            match serde_json::from_str::<Value>(&text) {
                Ok(value) => match ours {
                    Ok(our_value) => prop_assert_eq!(our_value, value),
                    Err(fault) => {
                        let is_ours = matches!(fault, JsonFault::RepeatedKey { .. } | JsonFault::TooDeep);
                        prop_assert!(is_ours, "{:?}", fault);
                    }
                },
                Err(_) => prop_assert!(ours.is_err()),
            }
        }

        #[test]
        fn arbitrary_octets_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
