//! The head of a request, looked at before anything of its body: target, method, host, framing, proofs.

use hyper::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderValue,
    ORIGIN, TRANSFER_ENCODING,
};
use hyper::http::request::Parts;
use hyper::{Method, Version};
use serde_json::{Map, Value};
use taskbell_core::callback::{Presented, RegistrationPath};
use taskbell_core::text;

use super::answer::Answer;
use super::framing::Framed;
use crate::reachability::ReachState;

pub(super) const MAX_HEADERS: usize = 64;
/// Octets of names and values, and of the target.
pub(super) const MAX_HEAD: usize = 32 * 1024;
/// Octets of a body.
pub(super) const MAX_BODY: u64 = 2 * 1024 * 1024;

/// Both names that senders give the token's header.
const TOKEN_HEADERS: [&str; 2] = ["a2a-notification-token", "x-a2a-notification-token"];
/// A browser's words about a request. Node's `fetch` sends `Sec-Fetch-Mode` as well, and so do agents in
/// JavaScript: that one tells nothing.
const BROWSER_HEADERS: [&str; 3] = ["sec-fetch-site", "sec-fetch-dest", "access-control-request-method"];
/// What is kept with a callback, for people. None of it decides anything.
const KEPT_HEADERS: [&str; 12] = [
    "content-type",
    "user-agent",
    "a2a-version",
    "a2a-extensions",
    "traceparent",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "cf-connecting-ip",
    "via",
];
/// Characters kept of one header.
const KEPT_LENGTH: usize = 200;

/// Under which names the inbox answers.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    own: Option<String>,
    /// As `Host` names the public address.
    public: Vec<String>,
    /// What stands before the route in the public address, for proxies that pass it on.
    prefix: Option<String>,
}

impl Place {
    pub fn of(reach: &ReachState) -> Self {
        let mut place = Self { own: reach.inbox.map(|address| address.to_string()), ..Self::default() };
        if let Some(public) = &reach.public {
            let authority = public.url.authority();
            if !authority.contains(':') {
                place.public.push(format!("{authority}:443"));
            }
            place.public.push(authority);
            place.prefix = Some(public.url.path().to_owned()).filter(|prefix| !prefix.is_empty());
        }
        place
    }

    fn answers_for(&self, host: &[u8]) -> bool {
        self.own.iter().chain(&self.public).any(|name| host.eq_ignore_ascii_case(name.as_bytes()))
    }

    /// The registration that a path names, exactly; below the prefix where there is one.
    fn registration(&self, path: &str) -> Option<RegistrationPath> {
        RegistrationPath::of_request(path).or_else(|| {
            let prefix = self.prefix.as_deref()?;
            RegistrationPath::of_request(path.strip_prefix(prefix)?)
        })
    }
}

/// The registration that a request is for, if its head may be looked at any further.
pub(super) fn check(head: &Parts, framed: Framed, place: &Place) -> Result<RegistrationPath, Answer> {
    let octets: usize = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if octets + head.uri.path().len() > MAX_HEAD || head.headers.len() > MAX_HEADERS {
        return Err(Answer::HEAD_TOO_LARGE);
    }
    if head.uri.scheme().is_some() || head.uri.authority().is_some() {
        return Err(Answer::NOT_OURS);
    }
    let path = place.registration(head.uri.path()).filter(|_| head.uri.query().is_none());
    let Some(path) = path else { return Err(Answer::NO_ROUTE) };
    if head.method != Method::POST {
        return Err(Answer::NOT_POST);
    }
    let single = |name: &str| head.headers.get_all(name).iter().nth(1).is_none();
    let decisive = [
        HOST.as_str(),
        AUTHORIZATION.as_str(),
        CONTENT_TYPE.as_str(),
        CONTENT_LENGTH.as_str(),
        CONTENT_ENCODING.as_str(),
        TRANSFER_ENCODING.as_str(),
        TOKEN_HEADERS[0],
        TOKEN_HEADERS[1],
    ];
    if !decisive.into_iter().all(single) {
        return Err(Answer::AMBIGUOUS);
    }
    match head.headers.get(HOST) {
        None => return Err(Answer::NO_HOST),
        Some(host) if !place.answers_for(host.as_bytes()) => return Err(Answer::OTHER_HOST),
        Some(_) => (),
    }
    let has = |name: &str| head.headers.contains_key(name);
    if has(ORIGIN.as_str()) || has(COOKIE.as_str()) || BROWSER_HEADERS.into_iter().any(has) {
        return Err(Answer::BROWSER);
    }
    let coding = head.headers.get(TRANSFER_ENCODING);
    if framed.ambiguous
        || coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
        || (coding.is_some() && (head.version == Version::HTTP_10 || has(CONTENT_LENGTH.as_str())))
        || head.headers.get(CONTENT_LENGTH).is_some_and(|length| !is_number(length))
    {
        return Err(Answer::AMBIGUOUS);
    }
    let [one, other] = TOKEN_HEADERS.map(|name| head.headers.get(name));
    if one.zip(other).is_some_and(|(one, other)| one != other) {
        return Err(Answer::AMBIGUOUS);
    }
    Ok(path)
}

fn is_number(value: &HeaderValue) -> bool {
    !value.is_empty() && value.as_bytes().iter().all(u8::is_ascii_digit)
}

/// The proofs that a head shows.
pub(super) fn presented(headers: &HeaderMap) -> Presented<'_> {
    let value = |name: &str| headers.get(name).map(|value| value.as_bytes().trim_ascii());
    Presented {
        token: TOKEN_HEADERS.into_iter().find_map(value),
        authorization: value(AUTHORIZATION.as_str()),
    }
}

/// Whether the body is one that can be read, by what the head says of it. Its length, where that is told.
pub(super) fn check_body(headers: &HeaderMap) -> Result<Option<u64>, Answer> {
    if headers.get(CONTENT_TYPE).is_some_and(|value| !is_json(value)) {
        return Err(Answer::MEDIA_TYPE);
    }
    if headers.get(CONTENT_ENCODING).is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        return Err(Answer::MEDIA_TYPE);
    }
    match headers.get(CONTENT_LENGTH) {
        None => Ok(None),
        Some(value) => {
            let length = value.to_str().ok().and_then(|text| text.parse::<u64>().ok());
            match length.filter(|length| *length <= MAX_BODY) {
                Some(length) => Ok(Some(length)),
                None => Err(Answer::TOO_LARGE),
            }
        }
    }
}

/// One of the two JSON types, in UTF-8.
fn is_json(value: &HeaderValue) -> bool {
    let Ok(text) = value.to_str() else { return false };
    let mut parts = text.split(';').map(str::trim);
    let json = parts.next().is_some_and(|essence| {
        ["application/json", "application/a2a+json"]
            .into_iter()
            .any(|known| essence.eq_ignore_ascii_case(known))
    });
    json && parts.all(|parameter| match parameter.split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
            let value = value.trim().trim_matches('"');
            value.eq_ignore_ascii_case("utf-8") || value.eq_ignore_ascii_case("utf8")
        }
        Some(_) | None => true,
    })
}

/// Headers to keep with a callback, as one JSON object: cleaned and cut, proofs masked.
pub(super) fn kept(headers: &HeaderMap) -> String {
    let mut kept = Map::new();
    for name in KEPT_HEADERS {
        if let Some(value) = headers.get(name) {
            let value = text::one_line(&String::from_utf8_lossy(value.as_bytes()), KEPT_LENGTH);
            kept.insert(name.to_owned(), Value::String(value));
        }
    }
    for name in TOKEN_HEADERS {
        if headers.contains_key(name) {
            kept.insert(name.to_owned(), Value::String(MASK.to_owned()));
        }
    }
    if let Some(value) = headers.get(AUTHORIZATION) {
        let scheme = value.to_str().ok().and_then(|text| text.split_once(' ')).map(|(scheme, _)| scheme);
        // Of a valid proof, so one of the schemes that we know.
        let scheme = scheme.map_or_else(String::new, |scheme| format!("{scheme} "));
        kept.insert(AUTHORIZATION.as_str().to_owned(), Value::String(format!("{scheme}{MASK}")));
    }
    Value::Object(kept).to_string()
}

const MASK: &str = "••••";

#[cfg(test)]
mod tests;
