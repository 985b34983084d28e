//! Why a TLS connection did not come about, to an agent or to a receiver of callbacks.

use std::fmt;

/// Why TLS could not be trusted or agreed. There is no way round any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsFault {
    Expired,
    NotYetValid,
    /// Self-signed, or signed by somebody whom this system does not trust.
    UnknownIssuer,
    WrongName,
    Revoked,
    Certificate,
    /// No common protocol version or cipher.
    Version,
    Handshake,
}

impl TlsFault {
    pub fn code(self) -> &'static str {
        match self {
            Self::Expired => "tls_expired",
            Self::NotYetValid => "tls_not_yet_valid",
            Self::UnknownIssuer => "tls_unknown_issuer",
            Self::WrongName => "tls_wrong_name",
            Self::Revoked => "tls_revoked",
            Self::Certificate => "tls_certificate",
            Self::Version => "tls_version",
            Self::Handshake => "tls_handshake",
        }
    }
}

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its certificate has expired; check this machine's clock too",
            Self::NotYetValid => "its certificate is not yet valid; check this machine's clock",
            Self::UnknownIssuer => {
                "its certificate is signed by nobody this system trusts; add its authority to the system's"
            }
            Self::WrongName => "its certificate is for another name; check the URL",
            Self::Revoked => "its certificate was revoked",
            Self::Certificate => "its certificate is not valid for a server",
            Self::Version => "it offers no TLS version or cipher that is safe",
            Self::Handshake => "the TLS handshake failed; check that the port speaks TLS",
        })
    }
}
