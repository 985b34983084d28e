//! Where strangers reach the inbox: the address that a tunnel or reverse proxy gives it.

use std::fmt;
use std::str::FromStr;

use url::{Host, Url};

use crate::callback::{PATH_PREFIX, RegistrationPath};

/// `https://host[:port][/prefix]`, or `http://127.0.0.1:port` for agents on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(Url);

/// Why a text is no public address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublicUrlError {
    #[error("a public address is written https://host, https://host:port or https://host/prefix")]
    Shape,
    #[error("a public address is https: agents refuse to call anything else")]
    NotHttps,
    #[error("a public address holds no user name or password")]
    UserInfo,
    #[error("a public address ends with its path, without ? and #")]
    Query,
    #[error("{host} is an address of this machine alone, which no agent elsewhere can call")]
    Loopback { host: String },
}

impl PublicUrl {
    /// The loopback address of the inbox itself.
    pub fn local(inbox: std::net::SocketAddr) -> Self {
        Self(Url::parse(&format!("http://{inbox}")).expect("an address makes a URL"))
    }

    /// Where callbacks of a registration with this path arrive.
    pub fn callback(&self, path: &RegistrationPath) -> String {
        format!("{self}{PATH_PREFIX}{}", path.as_str())
    }

    /// The registration that a URL names, where it is one of our callbacks below this address.
    pub fn registration_of(&self, url: &str) -> Option<RegistrationPath> {
        RegistrationPath::of_request(url.strip_prefix(&self.to_string())?)
    }

    /// As `Host` names it: with the port where it is not the scheme's own.
    pub fn authority(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// What stands before the callbacks' path, without a slash at its end; mostly nothing.
    pub fn path(&self) -> &str {
        self.0.path().trim_end_matches('/')
    }

    /// With another path than a callback's, for looking what else answers there.
    pub fn join(&self, path: &str) -> String {
        format!("{self}{path}")
    }
}

/// Without a slash at its end.
impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl FromStr for PublicUrl {
    type Err = PublicUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text.trim()).map_err(|_| PublicUrlError::Shape)?;
        if url.scheme() != "https" {
            return Err(PublicUrlError::NotHttps);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(PublicUrlError::UserInfo);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(PublicUrlError::Query);
        }
        let local = match url.host() {
            None => return Err(PublicUrlError::Shape),
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
            Some(Host::Ipv6(address)) => address.is_loopback() || address.is_unspecified(),
        };
        if local {
            return Err(PublicUrlError::Loopback { host: url.host_str().unwrap_or_default().to_owned() });
        }
        Ok(Self(url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "abcdefghijklmnopqrstuvwxyz";

    fn path() -> RegistrationPath {
        RegistrationPath::parse(PATH).unwrap()
    }

    #[test]
    fn a_prefix_stands_before_the_path_of_callbacks() {
        for (text, callback) in [
            ("https://h.example", "https://h.example/a2a/callbacks/abcdefghijklmnopqrstuvwxyz"),
            ("https://h.example/", "https://h.example/a2a/callbacks/abcdefghijklmnopqrstuvwxyz"),
            (
                "https://h.example:8443/taskbell/",
                "https://h.example:8443/taskbell/a2a/callbacks/abcdefghijklmnopqrstuvwxyz",
            ),
        ] {
            assert_eq!(text.parse::<PublicUrl>().unwrap().callback(&path()), callback);
        }
    }

    #[test]
    fn what_agents_cannot_call_is_refused_with_the_reason() {
        for (text, error) in [
            ("h.example", PublicUrlError::Shape),
            ("http://h.example", PublicUrlError::NotHttps),
            ("https://user:secret@h.example", PublicUrlError::UserInfo),
            ("https://h.example/?a", PublicUrlError::Query),
            ("https://h.example/#a", PublicUrlError::Query),
            ("https://127.0.0.1:7421", PublicUrlError::Loopback { host: "127.0.0.1".into() }),
            ("https://localhost", PublicUrlError::Loopback { host: "localhost".into() }),
            ("https://[::1]", PublicUrlError::Loopback { host: "[::1]".into() }),
        ] {
            assert_eq!(text.parse::<PublicUrl>(), Err(error), "{text}");
        }
    }

    #[test]
    fn our_own_callbacks_are_known_by_their_address() {
        let public: PublicUrl = "https://h.example/tb".parse().unwrap();
        assert_eq!(public.registration_of(&public.callback(&path())), Some(path()));
        for other in [
            format!("https://h.example/a2a/callbacks/{PATH}"),
            format!("https://h.example/tb/a2a/callbacks/{PATH}x"),
            format!("https://h.example/tb/a2a/callbacks/{PATH}/.."),
            format!("https://h.example.evil/tb/a2a/callbacks/{PATH}"),
        ] {
            assert_eq!(public.registration_of(&other), None, "{other}");
        }
    }

    #[test]
    fn the_host_is_named_as_a_request_names_it() {
        let authority = |text: &str| text.parse::<PublicUrl>().unwrap().authority();
        assert_eq!(authority("https://H.Example/x"), "h.example");
        assert_eq!(authority("https://h.example:443"), "h.example");
        assert_eq!(authority("https://h.example:8443"), "h.example:8443");
        let local = PublicUrl::local("127.0.0.1:7421".parse().unwrap());
        assert_eq!(
            (local.to_string().as_str(), local.authority().as_str()),
            ("http://127.0.0.1:7421", "127.0.0.1:7421")
        );
    }
}
