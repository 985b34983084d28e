//! TLS as a client: the system's trust, and why a connection did not come about.

use std::sync::Arc;

use rustls_platform_verifier::BuilderVerifierExt as _;
use taskbell_core::tls::TlsFault;

/// A configuration with the system's trust, and why it trusts nobody where the system has no certificates.
pub(crate) fn client_config() -> Result<(rustls::ClientConfig, Option<String>), rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let (tls, problem) = match tls.clone().with_platform_verifier() {
        Ok(tls) => (tls, None),
        Err(error) => (tls.with_root_certificates(rustls::RootCertStore::empty()), Some(error.to_string())),
    };
    Ok((tls.with_no_client_auth(), problem))
}

pub(crate) fn fault(error: &rustls::Error) -> TlsFault {
    use rustls::{AlertDescription, CertificateError};
    match error {
        rustls::Error::InvalidCertificate(fault) => match fault {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFault::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                TlsFault::NotYetValid
            }
            CertificateError::UnknownIssuer | CertificateError::BadSignature => TlsFault::UnknownIssuer,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                TlsFault::WrongName
            }
            CertificateError::Revoked => TlsFault::Revoked,
            _ => TlsFault::Certificate,
        },
        rustls::Error::PeerIncompatible(_)
        | rustls::Error::AlertReceived(
            AlertDescription::ProtocolVersion | AlertDescription::InsufficientSecurity,
        ) => TlsFault::Version,
        _ => TlsFault::Handshake,
    }
}
