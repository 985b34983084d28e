//! The system's own store: Secret Service (pure Rust over D-Bus), macOS keychain, Windows credentials.
//!
//! Built on `keyring-core` and the native stores rather than on `keyring`'s ready-made front, because that
//! one connects once for the process: here a connection is made anew after each failure, so that a Secret
//! Service started later is found.

use std::sync::Arc;

use keyring_core::{CredentialStore, Entry, Error};
use taskbell_core::credential::Secret;

use super::{Backend, KeychainError};

const SERVICE: &str = "taskbell";

pub(super) struct Os {
    store: Option<Arc<CredentialStore>>,
}

impl Os {
    pub(super) fn new() -> Self {
        Self { store: None }
    }

    /// Runs `work`; where a connection from before fails, once more with a new one: a daemon that was
    /// restarted does not know our session any more. All our calls may be made twice.
    fn run<T>(
        &mut self,
        item: &str,
        work: impl Fn(&Entry) -> keyring_core::Result<T>,
    ) -> Result<T, KeychainError> {
        if let Some(store) = self.store.clone() {
            match run_on(&store, item, &work) {
                Err(KeychainError::Other { .. } | KeychainError::NoStore { .. }) => self.store = None,
                result => return result,
            }
        }
        let store = connect().map_err(|error| no_store(&error))?;
        let result = run_on(&store, item, &work);
        if !matches!(result, Err(KeychainError::Other { .. } | KeychainError::NoStore { .. })) {
            self.store = Some(store);
        }
        result
    }
}

fn run_on<T>(
    store: &Arc<CredentialStore>,
    item: &str,
    work: impl Fn(&Entry) -> keyring_core::Result<T>,
) -> Result<T, KeychainError> {
    // A new entry each time: nothing is remembered between a write and a read.
    let result = Entry::new_in_store(store, SERVICE, item).and_then(|entry| work(&entry));
    result.map_err(|error| named(error, item))
}

impl Backend for Os {
    fn limit(&self) -> usize {
        // CRED_MAX_CREDENTIAL_BLOB_SIZE; we store octets, which do not double as text would.
        if cfg!(windows) { 2560 } else { usize::MAX }
    }

    fn is_kept(&self) -> bool {
        true
    }

    fn set(&mut self, item: &str, text: &Secret) -> Result<(), KeychainError> {
        self.run(item, |entry| entry.set_secret(text.expose().as_bytes()))
    }

    fn get(&mut self, item: &str) -> Result<Secret, KeychainError> {
        let octets = zeroize::Zeroizing::new(self.run(item, Entry::get_secret)?);
        let text = std::str::from_utf8(&octets);
        text.map(Secret::new).map_err(|_| KeychainError::Unreadable { handle: item.to_owned() })
    }

    fn delete(&mut self, item: &str) -> Result<(), KeychainError> {
        self.run(item, Entry::delete_credential)
    }

    fn forget(&mut self) {
        self.store = None;
    }
}

#[cfg(target_os = "linux")]
fn connect() -> keyring_core::Result<Arc<CredentialStore>> {
    Ok(zbus_secret_service_keyring_store::Store::new()?)
}

#[cfg(target_os = "macos")]
fn connect() -> keyring_core::Result<Arc<CredentialStore>> {
    Ok(apple_native_keyring_store::keychain::Store::new()?)
}

#[cfg(windows)]
fn connect() -> keyring_core::Result<Arc<CredentialStore>> {
    Ok(windows_native_keyring_store::Store::new()?)
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
fn connect() -> keyring_core::Result<Arc<CredentialStore>> {
    Err(Error::NoDefaultStore)
}

/// The stores' texts name items and interfaces; the variants that carry octets are not printed.
fn reason(error: &Error) -> String {
    match error {
        Error::PlatformFailure(source) | Error::NoStorageAccess(source) => source.to_string(),
        Error::BadEncoding(_) | Error::BadDataFormat(..) => "the item is not readable".to_owned(),
        other => other.to_string(),
    }
}

fn no_store(error: &Error) -> KeychainError {
    KeychainError::NoStore { reason: reason(error) }
}

fn named(error: Error, item: &str) -> KeychainError {
    match &error {
        Error::NoEntry => KeychainError::NoEntry { handle: item.to_owned() },
        Error::TooLong(..) => KeychainError::TooLong { handle: item.to_owned() },
        Error::NoDefaultStore | Error::NotSupportedByStore(_) => no_store(&error),
        Error::BadEncoding(_) | Error::BadDataFormat(..) => {
            KeychainError::Unreadable { handle: item.to_owned() }
        }
        Error::NoStorageAccess(source) | Error::PlatformFailure(source) => {
            let locked = matches!(error, Error::NoStorageAccess(_));
            match secret_service_says(source.as_ref()) {
                Some(named) => named,
                None if locked => KeychainError::Locked,
                None => KeychainError::Other { reason: reason(&error) },
            }
        }
        other => KeychainError::Other { reason: reason(other) },
    }
}

#[cfg(target_os = "linux")]
fn secret_service_says(source: &(dyn std::error::Error + 'static)) -> Option<KeychainError> {
    use secret_service::Error as Service;
    let service = source.downcast_ref::<Service>()?;
    let by_bus_name = |name: &str| match name {
        "org.freedesktop.Secret.Error.IsLocked" => Some(KeychainError::Locked),
        "org.freedesktop.DBus.Error.ServiceUnknown" | "org.freedesktop.DBus.Error.NameHasNoOwner" => {
            Some(KeychainError::NoStore { reason: service.to_string() })
        }
        _ => None,
    };
    match service {
        Service::Locked | Service::Prompt | Service::PromptDisconnected => Some(KeychainError::Locked),
        // A bus and a service, but no collection to put anything in.
        Service::NoResult => Some(KeychainError::NoStore { reason: "no default collection".to_owned() }),
        Service::Unavailable => Some(KeychainError::NoStore { reason: service.to_string() }),
        Service::Zbus(zbus::Error::MethodError(name, _, _)) => by_bus_name(name.as_str()),
        _ => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn secret_service_says(_: &(dyn std::error::Error + 'static)) -> Option<KeychainError> {
    None
}
