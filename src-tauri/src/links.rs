//! Which addresses may leave for the user's browser or mail program. The page asks the user before, and shows
//! the host; this decides, whatever the page says.

use url::Url;

/// Longer ones are no addresses that anybody reads.
const LONGEST: usize = 8 * 1024;

/// Why an address is not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LinkFault {
    #[error("the address is none that can be opened")]
    Unreadable,
    #[error("only http, https and mailto addresses are opened")]
    Scheme,
    #[error("an address that names a user before its host is not opened")]
    UserInfo,
}

/// The address as it may be opened.
pub fn check(text: &str) -> Result<Url, LinkFault> {
    if text.len() > LONGEST || text.chars().any(char::is_control) {
        return Err(LinkFault::Unreadable);
    }
    let url = Url::parse(text).map_err(|_| LinkFault::Unreadable)?;
    match url.scheme() {
        "http" | "https" if url.host_str().is_none_or(str::is_empty) => Err(LinkFault::Unreadable),
        // `https://good.example@evil.example` shows one host and opens another.
        "http" | "https" if !url.username().is_empty() || url.password().is_some() => {
            Err(LinkFault::UserInfo)
        }
        // A mail may be addressed and titled. Attachments are a local file in somebody else's hands.
        "mailto" if url.query_pairs().any(|(key, _)| key.to_ascii_lowercase().starts_with("attach")) => {
            Err(LinkFault::Unreadable)
        }
        "http" | "https" | "mailto" => Ok(url),
        _ => Err(LinkFault::Scheme),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web_and_mail_addresses_are_opened() {
        for (text, opened) in [
            ("https://example.com/a?b=c#d", "https://example.com/a?b=c#d"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/"),
            ("HTTPS://EXAMPLE.com", "https://example.com/"),
            ("mailto:someone@example.com?subject=hi", "mailto:someone@example.com?subject=hi"),
        ] {
            assert_eq!(check(text).unwrap().as_str(), opened);
        }
    }

    #[test]
    fn nothing_else_is_opened() {
        use LinkFault::{Scheme, Unreadable, UserInfo};
        for (text, fault) in [
            ("javascript:alert(1)", Scheme),
            (" javascript:alert(1)", Scheme),
            ("java\nscript:alert(1)", Unreadable),
            ("file:///etc/passwd", Scheme),
            ("smb://host/share", Scheme),
            ("data:text/html,hello", Scheme),
            ("ms-msdt:/id", Scheme),
            ("taskbell://task/t-7", Scheme),
            ("vbscript:x", Scheme),
            ("/usr/bin/true", Unreadable),
            ("--help", Unreadable),
            ("", Unreadable),
            ("https://", Unreadable),
            ("https://good.example@evil.example/", UserInfo),
            ("https://:secret@evil.example/", UserInfo),
            ("mailto:a@b.example?attach=/etc/passwd", Unreadable),
            ("mailto:a@b.example?Attachment=/etc/passwd", Unreadable),
            ("https://example.com/\u{0}", Unreadable),
        ] {
            assert_eq!(check(text), Err(fault), "{text:?}");
        }
        assert_eq!(check(&format!("https://example.com/{}", "a".repeat(LONGEST))), Err(Unreadable));
    }
}
