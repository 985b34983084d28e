//! Judges the text of a callback URL, before anything is looked up or connected to.
//!
//! The order of the checks fixes the reason that is told. The host as written must equal the host that the URL
//! standard's parser makes of it: this one comparison fells octal, hexadecimal, decimal, short, padded,
//! percent-encoded and uncompressed forms, all of which name an address that the text hides.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use url::{Host, Url};

use super::address::classify;
use super::{Refusal, name, port};

const TEXT_MOST: usize = 2_048;

/// A target on the public internet whose text is in order. What its name leads to is judged at every attempt.
#[derive(Clone, PartialEq, Eq)]
pub struct CallbackTarget {
    url: Url,
    host: TargetHost,
}

/// Where a callback goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetHost {
    Name(String),
    Address(IpAddr),
}

impl fmt::Debug for CallbackTarget {
    /// Without path and query, which may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallbackTarget").field(&self.origin()).finish()
    }
}

impl CallbackTarget {
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let written = Written::read(text, &["https"])?;
        let url = parse_url(text)?;
        let host = judge_host(&url, written.host)?;
        let target = Self { url, host };
        if port::is_allowed(target.port()) { Ok(target) } else { Err(Refusal::Port) }
    }

    /// The text to store and to call.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    pub fn url(&self) -> &Url {
        &self.url
    }

    pub fn host(&self) -> &TargetHost {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or(443)
    }

    /// Scheme, host and port: whose failures and pauses are counted together.
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }
}

/// A target on this machine: plain HTTP, loopback written in one of its three usual forms. Whether the user
/// approved its port for the client is for the caller to look up.
#[derive(Clone, PartialEq, Eq)]
pub struct LoopbackTarget {
    url: Url,
    address: IpAddr,
}

impl fmt::Debug for LoopbackTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LoopbackTarget").field(&self.origin()).finish()
    }
}

impl LoopbackTarget {
    /// `None` for anything that is not `http://` to this machine; that is judged as a public target.
    pub fn parse(text: &str) -> Result<Option<Self>, Refusal> {
        let Ok(written) = Written::read(text, &["http"]) else { return Ok(None) };
        // Never looked up: a resolver may answer anything for this name.
        let address = match written.host.to_ascii_lowercase().as_str() {
            "127.0.0.1" | "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
            "[::1]" => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
            _ => return Ok(None),
        };
        let url = parse_url(text)?;
        let target = Self { url, address };
        if target.port() == 0 { Err(Refusal::Port) } else { Ok(Some(target)) }
    }

    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Where it is connected to, without any lookup.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or(80)
    }

    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }
}

/// A URL's text, split before any parser has touched it.
struct Written<'a> {
    host: &'a str,
}

impl<'a> Written<'a> {
    fn read(text: &'a str, schemes: &[&str]) -> Result<Self, Refusal> {
        if text.is_empty() {
            return Err(Refusal::Empty);
        }
        if text.len() > TEXT_MOST {
            return Err(Refusal::TooLong);
        }
        if text.bytes().any(|b| b <= 0x20 || b == 0x7f) {
            return Err(Refusal::ControlOrSpace);
        }
        if !text.is_ascii() {
            return Err(Refusal::NonAscii);
        }
        if text.contains('\\') {
            return Err(Refusal::Backslash);
        }
        let (scheme, rest) = text.split_once(':').ok_or(Refusal::Scheme)?;
        if !schemes.iter().any(|allowed| scheme.eq_ignore_ascii_case(allowed)) {
            return Err(Refusal::Scheme);
        }
        let rest = rest.strip_prefix("//").ok_or(Refusal::Malformed)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(Refusal::Userinfo);
        }
        if text.contains('#') {
            return Err(Refusal::Fragment);
        }
        let (host, port) = split_port(authority)?;
        if host.is_empty() {
            return Err(Refusal::Malformed);
        }
        port.map_or(Ok(()), check_port_text)?;
        Ok(Self { host })
    }
}

/// Host and port text; of a bracketed host nothing but a port may follow.
fn split_port(authority: &str) -> Result<(&str, Option<&str>), Refusal> {
    let after_host = match authority.find(']') {
        Some(end) if authority.starts_with('[') => end + 1,
        Some(_) => return Err(Refusal::Malformed),
        None if authority.starts_with('[') => return Err(Refusal::Malformed),
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at_checked(after_host).ok_or(Refusal::Malformed)?;
    match rest.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if rest.is_empty() => Ok((host, None)),
        None => Err(Refusal::Malformed),
    }
}

fn check_port_text(text: &str) -> Result<(), Refusal> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    if digits && text.parse::<u16>().is_ok() { Ok(()) } else { Err(Refusal::Port) }
}

/// What is stored is this URL's text, which escapes have made longer, and it is judged again at every attempt.
fn parse_url(text: &str) -> Result<Url, Refusal> {
    let url = Url::parse(text).map_err(|_| Refusal::Malformed)?;
    if url.as_str().len() > TEXT_MOST { Err(Refusal::TooLong) } else { Ok(url) }
}

fn judge_host(url: &Url, written: &str) -> Result<TargetHost, Refusal> {
    let canonical = url.host_str().ok_or(Refusal::Malformed)?;
    if written.to_ascii_lowercase() != canonical {
        return Err(Refusal::HostNotCanonical);
    }
    let judge_address = |address: IpAddr| match classify(address) {
        None => Ok(TargetHost::Address(address)),
        Some(class) => Err(Refusal::Address(class)),
    };
    match url.host() {
        Some(Host::Domain(domain)) => {
            name::judge(domain)?;
            Ok(TargetHost::Name(domain.to_owned()))
        }
        Some(Host::Ipv4(address)) => judge_address(address.into()),
        Some(Host::Ipv6(address)) => judge_address(address.into()),
        None => Err(Refusal::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_target_on_this_machine_is_only_one_of_three_spellings_over_plain_http() {
        for (text, address) in [
            ("http://127.0.0.1:9000/hook", "127.0.0.1"),
            ("http://localhost:9000/hook", "127.0.0.1"),
            ("http://[::1]:9000/hook", "::1"),
        ] {
            let target = LoopbackTarget::parse(text).unwrap().unwrap();
            assert_eq!((target.address().to_string().as_str(), target.port()), (address, 9000));
        }
        for other in [
            "https://127.0.0.1:9000/",
            "http://127.0.0.2:9000/",
            "http://127.1:9000/",
            "http://localhost.:9000/",
            "http://127.0.0.1@10.0.0.1:9000/",
            "http://127.0.0.1:9000/#a",
            "http://[::ffff:7f00:1]:9000/",
            "http://localhost.example.com:9000/",
        ] {
            assert_eq!(LoopbackTarget::parse(other), Ok(None), "{other}");
            assert!(CallbackTarget::parse(other).is_err(), "{other} must be refused as a public target");
        }
    }

    #[test]
    fn what_grows_too_long_by_its_escapes_is_refused_at_once_and_not_at_every_attempt() {
        for (start, refused) in [
            ("https://hooks.example.com/", CallbackTarget::parse(&fits("https://hooks.example.com/")).err()),
            ("http://127.0.0.1:9000/", LoopbackTarget::parse(&fits("http://127.0.0.1:9000/")).err()),
        ] {
            assert_eq!(refused, Some(Refusal::TooLong), "{start}");
        }
    }

    /// A text within the limit that starts so; each of its quotes is three characters of a URL.
    fn fits(start: &str) -> String {
        format!("{start}{}", "\"".repeat(TEXT_MOST - start.len()))
    }

    #[test]
    fn debug_output_shows_no_path() {
        let target = CallbackTarget::parse("https://hooks.example.com/T0/B0/secret?key=secret").unwrap();
        assert!(!format!("{target:?}").contains("secret"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        /// Near to URLs, so that most get past the first checks.
        #[test]
        fn whatever_is_allowed_is_https_to_a_public_host_in_the_form_it_was_written(
            text in r"(https|http|HTTPS)://?[a-z0-9.\[\]:@%x-]{0,24}(:[0-9a]{0,6})?[/?#]?[a-z%.\\]{0,6}"
        ) {
            if let Ok(target) = CallbackTarget::parse(&text) {
                prop_assert_eq!(target.url().scheme(), "https");
                prop_assert!(target.url().username().is_empty() && target.url().password().is_none());
                match target.host() {
                    TargetHost::Address(address) => prop_assert_eq!(classify(*address), None),
                    TargetHost::Name(name) => {
                        prop_assert!(name.parse::<IpAddr>().is_err() && text.to_ascii_lowercase().contains(name));
                    }
                }
                let again = CallbackTarget::parse(target.as_str());
                prop_assert_eq!(again.as_ref(), Ok(&target), "the stored form is a target itself");
            }
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = CallbackTarget::parse(&text);
            let _ = LoopbackTarget::parse(&text);
        }
    }
}
