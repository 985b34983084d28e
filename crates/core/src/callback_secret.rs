//! The secrets by which callbacks prove themselves: derived, so that the keyring holds one item an agent
//! however many registrations there are.
//!
//! `HMAC-SHA256(key of the agent, purpose, registration, key version)`, with a length before each part. Who
//! knows one secret learns nothing of the key or of another registration's. What is stored is their SHA-256:
//! verifying needs neither the key nor the keyring.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD as BASE64_URL};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::callback::{Digest, Scheme};
use crate::credential::Secret;
use crate::push_config::PushAuthentication;

/// The user name in a Basic credential.
const BASIC_USER: &str = "inbox";
const KEY_OCTETS: usize = 32;

/// An agent's key.
#[derive(Debug, Clone)]
pub struct CallbackKey(Secret);

/// A stored text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored key for callbacks is not one that this version wrote")]
pub struct NotAKey;

impl CallbackKey {
    /// From random octets.
    pub fn new(octets: [u8; KEY_OCTETS]) -> Self {
        let octets = Zeroizing::new(octets);
        Self(Secret::new(BASE64_URL.encode(octets.as_slice())))
    }

    /// From the keyring.
    pub fn from_stored(text: Secret) -> Result<Self, NotAKey> {
        let octets = BASE64_URL.decode(text.expose()).map(Zeroizing::new).map_err(|_| NotAKey)?;
        if octets.len() == KEY_OCTETS { Ok(Self(text)) } else { Err(NotAKey) }
    }

    /// For the keyring: text, because some stores keep text only.
    pub fn to_stored(&self) -> Secret {
        self.0.clone()
    }

    /// The secrets of one registration under one version of its proof.
    pub fn derive(&self, registration: &str, version: i64, scheme: Scheme) -> CallbackSecrets {
        let token = self.mac("notification token", registration, version);
        let credentials = match scheme {
            Scheme::Bearer => self.mac("bearer credential", registration, version),
            Scheme::Basic => {
                let password = self.mac("basic credential", registration, version);
                let pair = Zeroizing::new(format!("{BASIC_USER}:{}", password.expose()));
                Secret::new(BASE64.encode(pair.as_bytes()))
            }
        };
        CallbackSecrets { token, credentials, scheme }
    }

    fn mac(&self, purpose: &str, registration: &str, version: i64) -> Secret {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.0.expose().as_bytes()).expect("a key of any length");
        for part in [purpose.as_bytes(), registration.as_bytes(), version.to_be_bytes().as_slice()] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        let octets = mac.finalize().into_bytes();
        Secret::new(BASE64_URL.encode(octets))
    }
}

/// What one registration hands to its agent.
#[derive(Debug, Clone)]
pub struct CallbackSecrets {
    pub token: Secret,
    /// As it stands after the scheme: for Basic already encoded.
    pub credentials: Secret,
    pub scheme: Scheme,
}

impl CallbackSecrets {
    pub fn token_digest(&self) -> Digest {
        Digest::of(self.token.expose().as_bytes())
    }

    pub fn credentials_digest(&self) -> Digest {
        Digest::of(self.credentials.expose().as_bytes())
    }

    pub fn authentication(&self) -> PushAuthentication {
        PushAuthentication {
            scheme: self.scheme.word().to_owned(),
            credentials: Some(self.credentials.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(fill: u8) -> CallbackKey {
        CallbackKey::new([fill; KEY_OCTETS])
    }

    #[test]
    fn the_same_registration_has_the_same_secrets_again() {
        let (one, again) = (key(1).derive("r", 1, Scheme::Bearer), key(1).derive("r", 1, Scheme::Bearer));
        assert_eq!(one.token_digest(), again.token_digest());
        assert_eq!(one.credentials_digest(), again.credentials_digest());
    }

    #[test]
    fn no_two_of_key_registration_version_scheme_and_purpose_share_a_secret() {
        let mut seen = std::collections::HashSet::new();
        for fill in [1, 2] {
            for registration in ["r", "r1"] {
                for version in [1, 2] {
                    let bearer = key(fill).derive(registration, version, Scheme::Bearer);
                    let basic = key(fill).derive(registration, version, Scheme::Basic);
                    assert!(seen.insert(bearer.token_digest().0));
                    assert!(seen.insert(bearer.credentials_digest().0));
                    assert!(seen.insert(basic.credentials_digest().0));
                    assert_eq!(bearer.token_digest(), basic.token_digest());
                }
            }
        }
    }

    #[test]
    fn basic_credentials_are_a_user_and_a_password() {
        let secrets = key(1).derive("r", 1, Scheme::Basic);
        let decoded = String::from_utf8(BASE64.decode(secrets.credentials.expose()).unwrap()).unwrap();
        let (user, password) = decoded.split_once(':').unwrap();
        assert_eq!((user, password.len()), ("inbox", 43));
    }

    #[test]
    fn every_secret_fits_a_header_and_carries_256_bits() {
        let secrets = key(9).derive("abc", 7, Scheme::Bearer);
        for secret in [&secrets.token, &secrets.credentials] {
            assert_eq!(secret.expose().len(), 43);
            assert!(secret.expose().bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)));
        }
    }

    #[test]
    fn a_key_survives_the_keyring_and_other_texts_are_no_keys() {
        let stored = key(3).to_stored();
        let back = CallbackKey::from_stored(stored).unwrap();
        assert_eq!(
            back.derive("r", 1, Scheme::Bearer).token_digest(),
            key(3).derive("r", 1, Scheme::Bearer).token_digest()
        );
        for text in ["", "short", "not base64 at all, and long enough to be a key ..."] {
            assert!(CallbackKey::from_stored(Secret::new(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn nothing_here_prints_a_secret() {
        let key = key(5);
        let secrets = key.derive("r", 1, Scheme::Bearer);
        let printed = format!("{key:?} {secrets:?}");
        assert!(!printed.contains(secrets.token.expose()) && !printed.contains(key.to_stored().expose()));
    }
}
