//! Extensions that a client asks for and an agent activates: lists of URIs in a header (1.0 §3.2.6, 0.3 §3.2).
//!
//! What an extension means is between the two. Here a list is only read strictly, written in the words of the
//! version, and an answer is held to what was asked for: a header is no place for anything else.

use crate::dialect::Dialect;

/// The headers that carry a list, in lower case: that of 1.0, and that of 0.3.
pub const HEADERS: [&str; 2] = ["a2a-extensions", "x-a2a-extensions"];
/// Extensions of one request.
const MAX_URIS: usize = 32;
/// Octets of one URI.
const MAX_LENGTH: usize = 2048;

/// The header that a version names.
pub fn header(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::V1 => "a2a-extensions",
        Dialect::V03 => "x-a2a-extensions",
    }
}

/// Why a list is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExtensionsFault {
    #[error("the extensions header names more than {MAX_URIS} extensions")]
    TooMany,
    #[error("the extensions header must be a list of URIs with commas between")]
    NoUri,
}

/// Reads the values of the headers: URIs with commas between, each once, in the order given.
///
/// # Errors
/// Something in it is no URI, or there are too many.
pub fn read<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<String>, ExtensionsFault> {
    let mut uris: Vec<String> = Vec::new();
    for value in values {
        let value = std::str::from_utf8(value).map_err(|_| ExtensionsFault::NoUri)?;
        for uri in value.split(',').map(str::trim).filter(|uri| !uri.is_empty()) {
            if !is_uri(uri) {
                return Err(ExtensionsFault::NoUri);
            }
            if uris.iter().any(|known| known == uri) {
                continue;
            }
            if uris.len() == MAX_URIS {
                return Err(ExtensionsFault::TooMany);
            }
            uris.push(uri.to_owned());
        }
    }
    Ok(uris)
}

/// The value of the header.
pub fn write(uris: &[String]) -> String {
    uris.join(", ")
}

/// Of what was asked for, what an agent's answer names. Anything else in it is left out: an agent can activate
/// nothing that nobody asked for, and may repeat what it was sent.
pub fn activated<'a>(asked: &[String], answered: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let named: Vec<&str> = answered
        .into_iter()
        .filter_map(|value| std::str::from_utf8(value).ok())
        .flat_map(|value| value.split(',').map(str::trim))
        .collect();
    asked.iter().filter(|uri| named.contains(&uri.as_str())).cloned().collect()
}

/// Scheme, colon, and visible ASCII after it: what a header can hold and no list is broken by.
fn is_uri(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|one| one.is_ascii_alphanumeric() || "+-.".contains(one))
    };
    text.len() <= MAX_LENGTH
        && text.bytes().all(|octet| octet.is_ascii_graphic())
        && text.split_once(':').is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Result<Vec<String>, ExtensionsFault> {
        read(values.iter().map(|value| value.as_bytes()))
    }

    #[test]
    fn a_list_may_come_in_several_headers_and_names_each_extension_once() {
        let read = of(&["https://a.example/x/v1, urn:b", " urn:b ,,https://c.example/?q=1"]).unwrap();
        assert_eq!(read, ["https://a.example/x/v1", "urn:b", "https://c.example/?q=1"]);
        assert_eq!(write(&read), "https://a.example/x/v1, urn:b, https://c.example/?q=1");
        assert_eq!(of(&[]), Ok(Vec::new()));
        assert_eq!(of(&["", " , "]), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_uri_is_refused_and_so_are_too_many() {
        for value in ["x", "https", ":x", "a b:c", "urn:", "1a:b", "urn:ä", "urn:a\u{7f}"] {
            assert_eq!(of(&[value]), Err(ExtensionsFault::NoUri), "{value:?}");
        }
        assert_eq!(read([b"urn:\xff".as_slice()]), Err(ExtensionsFault::NoUri));
        assert_eq!(of(&[&format!("urn:{}", "x".repeat(MAX_LENGTH))]), Err(ExtensionsFault::NoUri));
        let many: Vec<String> = (0..=MAX_URIS).map(|number| format!("urn:{number}")).collect();
        assert_eq!(of(&[&many.join(",")]), Err(ExtensionsFault::TooMany));
        assert_eq!(of(&[&many[1..].join(",")]).unwrap().len(), MAX_URIS);
    }

    #[test]
    fn an_answer_activates_what_was_asked_for_and_tells_nothing_else() {
        let asked = ["urn:a".to_owned(), "urn:b".to_owned()];
        let answered = |value: &str| activated(&asked, [value.as_bytes()]);
        assert_eq!(answered("urn:b, urn:secret-of-the-agent"), ["urn:b"]);
        assert_eq!(answered("Bearer token"), Vec::<String>::new());
        assert_eq!(activated(&asked, [b"urn:b".as_slice(), b"urn:a".as_slice(), b"\xff".as_slice()]), asked);
    }
}
