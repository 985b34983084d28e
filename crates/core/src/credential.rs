//! Credentials for agents, bound by type to the one origin they were given for.
//!
//! A [`Secret`] cannot be printed or serialised. A [`BoundCredential`] turns into request headers
//! only for a URL of its own origin, so a token of one agent cannot reach another by mistake
//! (the confused deputy). Where secrets are kept is the keychain's matter, not this module's.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use url::Url;
use zeroize::Zeroizing;

/// A secret text. Wiped when dropped; `Debug` says REDACTED; there is no `Display`, no `Serialize`
/// and no comparison (compare digests instead).
///
/// Text and not octets, because some stores (KDE Wallet) keep text only. Binary keys are encoded first.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text itself. Each call is a place to look at when looking for leaks.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("REDACTED")
    }
}

/// Scheme, host and port: what a credential is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

/// Why a text or URL has no origin that a credential could be bound to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    #[error("an origin is written https://host or https://host:port")]
    Shape,
    #[error("scheme {scheme:?} carries no agent, only http and https do")]
    Scheme { scheme: String },
}

impl Origin {
    /// The origin of a URL; user names and passwords in it are not part of it.
    pub fn of(url: &Url) -> Result<Self, OriginError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(OriginError::Scheme { scheme: url.scheme().to_owned() });
        }
        match (url.host_str(), url.port_or_known_default()) {
            (Some(host), Some(port)) if !host.is_empty() => {
                Ok(Self { scheme: url.scheme().to_owned(), host: host.to_owned(), port })
            }
            _ => Err(OriginError::Shape),
        }
    }

    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// As the URL parser writes it: lower case, `xn--` form, IPv6 in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = if self.scheme == "https" { 443 } else { 80 };
        write!(f, "{}://{}", self.scheme, self.host)?;
        if self.port == default { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

impl FromStr for Origin {
    type Err = OriginError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::of(&Url::parse(text).map_err(|_| OriginError::Shape)?)
    }
}

impl TryFrom<String> for Origin {
    type Error = OriginError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> Self {
        origin.to_string()
    }
}

/// What sort of credential an agent has; the word may be stored and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CredentialKind {
    Bearer,
    Basic,
    Headers,
    TokenCommand,
}

impl CredentialKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bearer => "bearer",
            Self::Basic => "basic",
            Self::Headers => "headers",
            Self::TokenCommand => "token-command",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Bearer, Self::Basic, Self::Headers, Self::TokenCommand]
            .into_iter()
            .find(|k| k.as_str() == word)
    }
}

/// Why a credential cannot be used or read back. Never holds a part of the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    #[error("{name:?} is no header name")]
    HeaderName { name: String },
    #[error("header {name} belongs to the connection and cannot be a credential")]
    HeaderReserved { name: String },
    #[error("the value for header {name} holds characters that a header cannot carry")]
    HeaderValue { name: String },
    #[error("a user name for basic authentication holds no colon")]
    UserName,
    #[error("the {kind} credential is empty", kind = .kind.as_str())]
    Empty { kind: CredentialKind },
    #[error("the stored credential is not one that this version wrote")]
    Stored,
}

/// An agent's credential before it is bound to an origin.
#[derive(Debug, Clone)]
pub enum Credential {
    Bearer(Secret),
    Basic {
        user: String,
        password: Secret,
    },
    /// Header names in lower case, with their values.
    Headers(Vec<(String, Secret)>),
    /// A command line that prints a token. The line is no secret; what it prints is.
    TokenCommand(String),
}

/// Headers that frame a request or name its target: a credential must not overwrite them.
const RESERVED_HEADERS: [&str; 12] = [
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "accept",
    "a2a-version",
    "last-event-id",
];

impl Credential {
    pub fn kind(&self) -> CredentialKind {
        match self {
            Self::Bearer(_) => CredentialKind::Bearer,
            Self::Basic { .. } => CredentialKind::Basic,
            Self::Headers(_) => CredentialKind::Headers,
            Self::TokenCommand(_) => CredentialKind::TokenCommand,
        }
    }

    /// Checks that it can be sent at all, so that a bad paste is told at once and not as a failed request.
    fn checked(self) -> Result<Self, CredentialError> {
        let kind = self.kind();
        match &self {
            Self::Bearer(token) if token.is_empty() => return Err(CredentialError::Empty { kind }),
            Self::Bearer(token) => check_value("authorization", token.expose())?,
            Self::Basic { user, .. } if user.contains(':') => return Err(CredentialError::UserName),
            Self::Basic { .. } => (),
            Self::Headers(headers) if headers.is_empty() => return Err(CredentialError::Empty { kind }),
            Self::Headers(headers) => {
                for (name, value) in headers {
                    check_name(name)?;
                    check_value(name, value.expose())?;
                }
            }
            Self::TokenCommand(line) if line.trim().is_empty() => {
                return Err(CredentialError::Empty { kind });
            }
            Self::TokenCommand(_) => (),
        }
        Ok(match self {
            Self::Headers(headers) => Self::Headers(
                headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect(),
            ),
            other => other,
        })
    }
}

fn check_name(name: &str) -> Result<(), CredentialError> {
    // RFC 9110 §5.6.2, token.
    let token = !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
    if !token || name.len() > 256 {
        return Err(CredentialError::HeaderName { name: name.chars().take(80).collect() });
    }
    if RESERVED_HEADERS.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
        return Err(CredentialError::HeaderReserved { name: name.to_ascii_lowercase() });
    }
    Ok(())
}

fn check_value(name: &str, value: &str) -> Result<(), CredentialError> {
    // RFC 9110 §5.5: visible characters, space and tab. Line ends would start a header of their own.
    let visible = value.bytes().all(|b| b == b'\t' || (0x20..0x7f).contains(&b));
    if visible && value.trim() == value {
        Ok(())
    } else {
        Err(CredentialError::HeaderValue { name: name.to_ascii_lowercase() })
    }
}

/// A credential and the one origin it may be sent to.
#[derive(Debug, Clone)]
pub struct BoundCredential {
    origin: Origin,
    credential: Credential,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Stored<'a> {
    Bearer { token: std::borrow::Cow<'a, str> },
    Basic { user: std::borrow::Cow<'a, str>, password: std::borrow::Cow<'a, str> },
    Headers { headers: Vec<(std::borrow::Cow<'a, str>, std::borrow::Cow<'a, str>)> },
    TokenCommand { command: std::borrow::Cow<'a, str> },
}

#[derive(Serialize, Deserialize)]
struct StoredBound<'a> {
    origin: Origin,
    #[serde(flatten, borrow)]
    credential: Stored<'a>,
}

impl BoundCredential {
    /// Binds; refuses what no request could carry.
    pub fn new(origin: Origin, credential: Credential) -> Result<Self, CredentialError> {
        Ok(Self { origin, credential: credential.checked()? })
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    pub fn kind(&self) -> CredentialKind {
        self.credential.kind()
    }

    /// The headers for a request to `url`: `None` for another origin, and for a token command,
    /// whose token has to be fetched first (see [`Self::with_token`]). Names are in lower case.
    pub fn headers_for(&self, url: &Url) -> Option<Vec<(String, Secret)>> {
        if !self.is_for(url) {
            return None;
        }
        match &self.credential {
            Credential::Bearer(token) => {
                Some(vec![("authorization".to_owned(), Secret::new(format!("Bearer {}", token.expose())))])
            }
            Credential::Basic { user, password } => {
                let pair = Zeroizing::new(format!("{user}:{}", password.expose()));
                let value = Secret::new(format!("Basic {}", BASE64.encode(pair.as_bytes())));
                Some(vec![("authorization".to_owned(), value)])
            }
            Credential::Headers(headers) => Some(headers.clone()),
            Credential::TokenCommand(_) => None,
        }
    }

    /// The command line that prints a token for `url`, where the credential is one and is meant for it.
    pub fn command_for(&self, url: &Url) -> Option<&str> {
        match &self.credential {
            Credential::TokenCommand(line) if self.is_for(url) => Some(line),
            _ => None,
        }
    }

    /// What the token command printed, bound to the same origin as the command.
    pub fn with_token(&self, token: Secret) -> Result<Self, CredentialError> {
        Self::new(self.origin.clone(), Credential::Bearer(token))
    }

    fn is_for(&self, url: &Url) -> bool {
        Origin::of(url).is_ok_and(|origin| origin == self.origin)
    }

    /// One text for one keychain item. The origin travels inside it, so that an item put under
    /// another agent's handle still goes nowhere else.
    pub fn to_stored(&self) -> Secret {
        let credential = match &self.credential {
            Credential::Bearer(token) => Stored::Bearer { token: token.expose().into() },
            Credential::Basic { user, password } => {
                Stored::Basic { user: user.into(), password: password.expose().into() }
            }
            Credential::Headers(headers) => Stored::Headers {
                headers: headers.iter().map(|(name, value)| (name.into(), value.expose().into())).collect(),
            },
            Credential::TokenCommand(command) => Stored::TokenCommand { command: command.into() },
        };
        let stored = StoredBound { origin: self.origin.clone(), credential };
        Secret::new(serde_json::to_string(&stored).expect("texts always serialise"))
    }

    /// Reads what [`Self::to_stored`] wrote.
    pub fn from_stored(stored: &Secret) -> Result<Self, CredentialError> {
        // The parser's message could quote the secret, so it is not passed on.
        let stored: StoredBound<'_> =
            serde_json::from_str(stored.expose()).map_err(|_| CredentialError::Stored)?;
        let credential = match stored.credential {
            Stored::Bearer { token } => Credential::Bearer(Secret::new(token)),
            Stored::Basic { user, password } => {
                Credential::Basic { user: user.into_owned(), password: Secret::new(password) }
            }
            Stored::Headers { headers } => Credential::Headers(
                headers.into_iter().map(|(name, value)| (name.into_owned(), Secret::new(value))).collect(),
            ),
            Stored::TokenCommand { command } => Credential::TokenCommand(command.into_owned()),
        };
        Self::new(stored.origin, credential)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANARY: &str = "canary-5d1f";

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn bearer_for(origin: &str) -> BoundCredential {
        BoundCredential::new(origin.parse().unwrap(), Credential::Bearer(Secret::new(CANARY))).unwrap()
    }

    #[test]
    fn a_secret_prints_redacted_wherever_it_is_nested() {
        let bound = bearer_for("https://agent.example.com");
        let headers = bound.headers_for(&url("https://agent.example.com/")).unwrap();
        let basic = Credential::Basic { user: "u".into(), password: Secret::new(CANARY) };
        for text in [format!("{bound:?}"), format!("{headers:?}"), format!("{:#?}", Some(basic))] {
            assert!(text.contains("REDACTED") && !text.contains(CANARY), "{text}");
        }
    }

    #[test]
    fn a_token_is_refused_for_every_other_origin() {
        let bound = bearer_for("https://agent.example.com");
        for other in [
            "https://other.example.com/",
            "http://agent.example.com/",
            "https://agent.example.com:8443/",
            "https://agent.example.com.evil.example/",
            "https://agent.example.com@evil.example/",
            "https://agent.example.com./",
            "ws://agent.example.com/",
            "data:,x",
        ] {
            assert!(bound.headers_for(&url(other)).is_none(), "{other} must get no token");
        }
    }

    #[test]
    fn the_same_origin_written_otherwise_gets_the_token() {
        let bound = bearer_for("https://Agent.Example.com:443/some/path");
        for same in [
            "https://agent.example.com/a?b#c",
            "https://AGENT.example.com:443/",
            "https://u@agent.example.com/",
        ] {
            let headers = bound.headers_for(&url(same)).unwrap();
            assert_eq!(headers[0].0, "authorization");
            assert_eq!(headers[0].1.expose(), format!("Bearer {CANARY}"));
        }
    }

    #[test]
    fn basic_is_the_base64_of_user_and_password() {
        let credential = Credential::Basic { user: "Aladdin".into(), password: Secret::new("open sesame") };
        let bound = BoundCredential::new("http://127.0.0.1:9".parse().unwrap(), credential).unwrap();
        let headers = bound.headers_for(&url("http://127.0.0.1:9/x")).unwrap();
        assert_eq!(headers[0].1.expose(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "the example of RFC 7617");
    }

    #[test]
    fn a_token_command_gives_no_headers_until_its_token_is_known() {
        let origin: Origin = "https://agent.example.com".parse().unwrap();
        let command = Credential::TokenCommand("print-token --for agent".into());
        let bound = BoundCredential::new(origin, command).unwrap();
        let here = url("https://agent.example.com/");
        assert!(bound.headers_for(&here).is_none());
        assert_eq!(bound.command_for(&here), Some("print-token --for agent"));
        assert_eq!(bound.command_for(&url("https://other.example.com/")), None);
        let token = bound.with_token(Secret::new("t")).unwrap();
        assert_eq!(token.headers_for(&here).unwrap()[0].1.expose(), "Bearer t");
        assert!(token.headers_for(&url("https://other.example.com/")).is_none());
    }

    #[test]
    fn values_that_would_start_another_header_are_refused() {
        let origin: Origin = "https://agent.example.com".parse().unwrap();
        for bad in ["a\r\nHost: evil", "a\nb", "a\0", "é", " a", "a "] {
            let refused = BoundCredential::new(origin.clone(), Credential::Bearer(Secret::new(bad)));
            assert!(refused.is_err(), "{bad:?}");
        }
        for bad in ["", "a b", "a:", "Host", "Content-Length", "é"] {
            let headers = Credential::Headers(vec![(bad.into(), Secret::new("v"))]);
            assert!(BoundCredential::new(origin.clone(), headers).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn every_kind_comes_back_from_its_keychain_text_with_its_origin() {
        let origin: Origin = "https://agent.example.com:8443".parse().unwrap();
        let all = [
            Credential::Bearer(Secret::new("quote \" and \\ back")),
            Credential::Basic { user: "ü".into(), password: Secret::new("p:w\n") },
            Credential::Headers(vec![
                ("X-Api-Key".into(), Secret::new("k")),
                ("x-b".into(), Secret::new("")),
            ]),
            Credential::TokenCommand("cmd \"x\"".into()),
        ];
        for credential in all {
            let bound = BoundCredential::new(origin.clone(), credential).unwrap();
            let stored = bound.to_stored();
            let back = BoundCredential::from_stored(&stored).unwrap();
            assert_eq!(back.origin(), &origin);
            assert_eq!(back.kind(), bound.kind());
            assert_eq!(back.to_stored().expose(), stored.expose(), "nothing may be lost on the way");
        }
    }

    #[test]
    fn a_damaged_keychain_text_is_refused_without_being_quoted() {
        for bad in ["", CANARY, "{}", r#"{"origin":"https://a.example","kind":"canary-5d1f"}"#] {
            let error = BoundCredential::from_stored(&Secret::new(bad)).unwrap_err();
            assert!(!format!("{error} {error:?}").contains(CANARY));
        }
    }

    #[test]
    fn an_origin_reads_back_from_its_own_text() {
        for text in [
            "https://a.example",
            "http://127.0.0.1:7420",
            "https://[::1]:8443",
            "https://xn--bcher-kva.example",
        ] {
            assert_eq!(text.parse::<Origin>().unwrap().to_string(), text);
        }
        for bad in ["", "a.example", "ftp://a.example", "file:///etc", "data:,x"] {
            assert!(bad.parse::<Origin>().is_err(), "{bad:?}");
        }
    }
}
