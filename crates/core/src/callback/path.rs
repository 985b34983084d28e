//! The part of a callback address that names a registration.

use std::fmt;

/// What stands before it in every callback address of ours.
pub const PATH_PREFIX: &str = "/a2a/callbacks/";

const LENGTH: usize = 26;
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// 26 of `a-z 0-9`: 130 random bits, so that it cannot be guessed. It is a secret of a kind, and so
/// prints as its first six characters; whoever needs all of it asks for [`Self::as_str`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RegistrationPath(String);

impl RegistrationPath {
    /// Five bits of each octet count.
    pub fn of_random(random: [u8; LENGTH]) -> Self {
        Self(random.iter().map(|octet| char::from(ALPHABET[usize::from(octet & 31)])).collect())
    }

    /// The segment itself, without what stands before it.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit();
        (text.len() == LENGTH && text.bytes().all(plain)).then(|| Self(text.to_owned()))
    }

    /// The path of a request, exactly: nothing is decoded, merged or cut off.
    pub fn of_request(path: &str) -> Option<Self> {
        Self::parse(path.strip_prefix(PATH_PREFIX)?)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What a log may hold.
    pub fn short(&self) -> &str {
        self.0.get(..6).unwrap_or_default()
    }
}

impl fmt::Display for RegistrationPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", self.short())
    }
}

impl fmt::Debug for RegistrationPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_octets_make_a_path_that_reads_back() {
        let path = RegistrationPath::of_random(std::array::from_fn(|i| (i as u8).wrapping_mul(37)));
        assert_eq!(RegistrationPath::parse(path.as_str()), Some(path.clone()));
        assert_eq!(RegistrationPath::of_request(&format!("{PATH_PREFIX}{}", path.as_str())), Some(path));
    }

    #[test]
    fn nothing_is_decoded_or_forgiven() {
        for path in [
            "/",
            "/a2a/callbacks/",
            "/a2a/callbacks/short",
            "/a2a/callbacks/cbbearer00000000000000000x/",
            "/a2a/callbacks/cbbearer00000000000000000X",
            "/a2a/callbacks/%63bearer0000000000000000001",
            "/a2a//callbacks/cbbearer000000000000000001",
            "/a2a/callbacks/../callbacks/cbbearer000000000000000001",
            "/a2a/callbacks/cbbearer000000000000000001?x",
        ] {
            assert_eq!(RegistrationPath::of_request(path), None, "{path}");
        }
    }

    #[test]
    fn a_path_is_printed_as_its_beginning_only() {
        let path = RegistrationPath::parse("cbbearer000000000000000001").unwrap();
        assert_eq!(format!("{path} {path:?}"), "cbbear… cbbear…");
    }
}
