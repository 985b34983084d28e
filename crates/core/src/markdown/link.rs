//! Whether an address in agent text may be opened, and what to say before it is.

use std::net::{Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::{Inline, text_of};
use crate::text;

/// Longer addresses open nothing.
const URL_MAX: usize = 16 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// As written, cleaned for display. To open it, parse it again: see [`super::InertReason`].
    pub url: String,
    /// Where it leads, in the ASCII form of its name; shown beside the link.
    pub host: Option<String>,
    /// Why it cannot be opened. `None`: a click may open it, after a question.
    pub inert: Option<InertReason>,
    /// What the question says.
    pub cautions: Vec<Caution>,
    pub content: Vec<Inline>,
}

/// Why a link opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InertReason {
    /// It leads to a place within a page, and there is none.
    Relative,
    /// Only http, https and mailto are opened.
    Scheme,
    /// White space, backslashes, control or hidden characters.
    Characters,
    /// No host, no mail address, or nothing that can be read.
    Malformed,
    TooLong,
}

/// What somebody should know before a link is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caution {
    /// What stands before the `@` is no host.
    Userinfo,
    /// This machine, or one of its network.
    LocalAddress,
    /// The text names another host than the address.
    OtherHostInText,
    /// The name has letters beyond ASCII, which may look like others.
    InternationalName,
    /// A mail that is already filled in.
    MailFields,
}

/// A link with what it leads to; `content` is what it shows.
pub fn judge(written: &str, content: Vec<Inline>) -> Link {
    let mut link = Link { url: text::lines(written), host: None, inert: None, cautions: Vec::new(), content };
    if written.len() > URL_MAX {
        link.url = text::one_line(written, 200);
        link.inert = Some(InertReason::TooLong);
        return link;
    }
    match destination(written) {
        Ok(url) if url.scheme() == "mailto" => {
            link.host = mail_host(&url);
            if url.query().is_some() {
                link.cautions.push(Caution::MailFields);
            }
        }
        Ok(url) => {
            link.host = url.host_str().map(str::to_owned);
            if !url.username().is_empty() || url.password().is_some() {
                link.cautions.push(Caution::Userinfo);
            }
            if is_local(&url) {
                link.cautions.push(Caution::LocalAddress);
            }
            if named_host(&text_of(&link.content)).is_some_and(|named| Some(&named) != link.host.as_ref()) {
                link.cautions.push(Caution::OtherHostInText);
            }
        }
        Err(reason) => link.inert = Some(reason),
    }
    if link.host.as_deref().is_some_and(|host| host.split('.').any(|label| label.starts_with("xn--"))) {
        link.cautions.push(Caution::InternationalName);
    }
    link
}

/// The host that an image would have come from.
pub(super) fn host_of(written: &str) -> Option<String> {
    let url = destination(written).ok()?;
    url.host_str().map(str::to_owned)
}

/// An address that may be opened: http and https with a host, mailto with an address. Whoever opens it
/// passes on this, never the text.
pub fn destination(written: &str) -> Result<Url, InertReason> {
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    if written.len() > URL_MAX {
        return Err(InertReason::TooLong);
    }
    let Some((scheme, rest)) = written.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) else {
        let hidden = written.contains(odd) || text::lines(written) != written;
        return Err(if hidden { InertReason::Characters } else { InertReason::Relative });
    };
    let scheme = scheme.to_ascii_lowercase();
    if !matches!(scheme.as_str(), "http" | "https" | "mailto") {
        return Err(InertReason::Scheme);
    }
    if written.contains(odd) || text::lines(written) != written {
        return Err(InertReason::Characters);
    }
    let url = Url::parse(written).map_err(|_| InertReason::Malformed)?;
    let leads_somewhere = match scheme.as_str() {
        "mailto" => url.path().split(',').all(|address| {
            address.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
        }),
        // Browsers read `https:host` as well, people do not.
        _ => rest.starts_with("//") && url.host_str().is_some_and(|host| !host.is_empty()),
    };
    if leads_somewhere { Ok(url) } else { Err(InertReason::Malformed) }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+.-".contains(&b))
}

/// The host of the one address of a mail.
fn mail_host(url: &Url) -> Option<String> {
    let (_, host) = url.path().rsplit_once('@').filter(|_| !url.path().contains(','))?;
    let host = Url::parse(&format!("https://{host}/")).ok()?;
    host.host_str().map(str::to_owned)
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            !name.contains('.') || [".localhost", ".local", ".internal"].iter().any(|end| name.ends_with(end))
        }
        Some(Host::Ipv4(address)) => is_local_v4(address),
        Some(Host::Ipv6(address)) => is_local_v6(address),
        None => false,
    }
}

fn is_local_v4(address: Ipv4Addr) -> bool {
    address.is_loopback() || address.is_private() || address.is_link_local() || address.is_unspecified()
}

fn is_local_v6(address: Ipv6Addr) -> bool {
    address.is_loopback()
        || address.is_unspecified()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        || address.to_ipv4_mapped().is_some_and(is_local_v4)
}

/// The host that a link's text seems to name.
fn named_host(shown: &str) -> Option<String> {
    let shown = shown.trim();
    let bare = shown.split_once("://").map_or(shown, |(_, rest)| rest);
    let authority = bare.split(['/', '?', '#']).next().unwrap_or_default();
    let looks_like_host = authority.contains('.')
        && !authority.contains(char::is_whitespace)
        && authority
            .rsplit('.')
            .next()
            .is_some_and(|last| last.chars().filter(|c| c.is_alphabetic()).count() >= 2);
    // `notes.txt` and `v1.alpha` are names of files more often than of hosts, unless something says otherwise.
    let says_so =
        shown.contains("://") || authority.starts_with("www.") || authority.matches('.').count() > 1;
    if !(looks_like_host && says_so) {
        return None;
    }
    let url = Url::parse(&format!("https://{bare}")).ok()?;
    url.host_str().map(str::to_owned)
}
