//! One encrypted file, for machines without a keyring. Chosen in the open; the passphrase comes from the
//! environment or a prompt and is never stored.
//!
//! Argon2id makes the key, XChaCha20-Poly1305 seals the whole map. Both are RustCrypto crates: pure Rust,
//! reviewed, kept up with the rest of the family that is in the tree anyway. `age` would bring a file format
//! for exchange, plugins and translations, none of which a file that only we read has a use for.
//!
//! ```text
//! TBCRED1\n | memory KiB u32 | passes u32 | lanes u32 | salt 16 | nonce 24 | sealed JSON {item: text}
//! ```
//! Numbers are little-endian. All before the sealed part is authenticated with it. Each write draws a new
//! nonce and replaces the file as a whole.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use taskbell_core::credential::Secret;
use zeroize::Zeroizing;

use super::{Backend, KeychainError};
use crate::data_dir::write_private;

const MAGIC: &[u8; 8] = b"TBCRED1\n";
const SALT: usize = 16;
const NONCE: usize = 24;
const HEADER: usize = MAGIC.len() + 12 + SALT + NONCE;
/// OWASP's recommendation for Argon2id: 19 MiB, two passes, one lane.
const COST: Cost = Cost { memory_kib: 19 * 1024, passes: 2, lanes: 1 };
/// What a file may ask for at most: a changed header must not exhaust memory before it is found out.
const MOST: Cost = Cost { memory_kib: 256 * 1024, passes: 16, lanes: 4 };
const LARGEST_FILE: u64 = 16 * 1024 * 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Cost {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

type Items = BTreeMap<String, Zeroizing<String>>;

struct Key {
    cost: Cost,
    salt: [u8; SALT],
    octets: Zeroizing<[u8; 32]>,
}

pub(super) struct EncryptedFile {
    path: PathBuf,
    passphrase: Secret,
    /// Deriving takes tens of milliseconds, so once a file is enough.
    key: Option<Key>,
}

impl EncryptedFile {
    pub(super) fn new(path: PathBuf, passphrase: Secret) -> Self {
        Self { path, passphrase, key: None }
    }

    fn load(&mut self) -> Result<Items, KeychainError> {
        let file = match fs::metadata(&self.path).and_then(|meta| {
            if meta.len() > LARGEST_FILE {
                Err(io::ErrorKind::FileTooLarge.into())
            } else {
                fs::read(&self.path)
            }
        }) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Items::new()),
            Err(error) => return Err(KeychainError::File { doing: "read", kind: error.kind() }),
        };
        let unreadable = || KeychainError::Unreadable { handle: "credential file".to_owned() };
        let (header, sealed) = file.split_at_checked(HEADER).ok_or_else(unreadable)?;
        let (magic, rest) = header.split_at(MAGIC.len());
        let (numbers, rest) = rest.split_at(12);
        let (salt, nonce) = rest.split_at(SALT);
        if magic != MAGIC {
            return Err(unreadable());
        }
        let number =
            |at: usize| u32::from_le_bytes([numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]]);
        let cost = Cost { memory_kib: number(0), passes: number(4), lanes: number(8) };
        if cost.memory_kib > MOST.memory_kib || cost.passes > MOST.passes || cost.lanes > MOST.lanes {
            return Err(unreadable());
        }
        let salt = salt.try_into().map_err(|_| unreadable())?;
        let nonce: [u8; NONCE] = nonce.try_into().map_err(|_| unreadable())?;
        let cipher = self.cipher(cost, salt)?;
        let payload = Payload { msg: sealed, aad: header };
        let opened =
            cipher.decrypt(&XNonce::from(nonce), payload).map_err(|_| KeychainError::WrongPassphrase);
        let opened = match opened {
            Ok(opened) => Zeroizing::new(opened),
            Err(error) => {
                self.key = None;
                return Err(error);
            }
        };
        let items: BTreeMap<String, String> = serde_json::from_slice(&opened).map_err(|_| unreadable())?;
        Ok(items.into_iter().map(|(item, text)| (item, Zeroizing::new(text))).collect())
    }

    fn save(&mut self, items: &Items) -> Result<(), KeychainError> {
        let (cost, salt) = match &self.key {
            Some(key) => (key.cost, key.salt),
            None => (COST, random()?),
        };
        let nonce: [u8; NONCE] = random()?;
        let mut file = Vec::with_capacity(HEADER + 1024);
        file.extend_from_slice(MAGIC);
        for number in [cost.memory_kib, cost.passes, cost.lanes] {
            file.extend_from_slice(&number.to_le_bytes());
        }
        file.extend_from_slice(&salt);
        file.extend_from_slice(&nonce);
        let plain: BTreeMap<&str, &str> =
            items.iter().map(|(item, text)| (item.as_str(), text.as_str())).collect();
        let plain = serde_json::to_vec(&plain).map(Zeroizing::new);
        let plain =
            plain.map_err(|_| KeychainError::Other { reason: "items do not serialise".to_owned() })?;
        let payload = Payload { msg: &plain, aad: &file };
        let sealed = self.cipher(cost, salt)?.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| KeychainError::Other { reason: "sealing failed".to_owned() })?;
        file.extend_from_slice(&sealed);
        write_private(&self.path, &file)
            .map_err(|error| KeychainError::File { doing: "write", kind: error.kind() })
    }

    fn cipher(&mut self, cost: Cost, salt: [u8; SALT]) -> Result<XChaCha20Poly1305, KeychainError> {
        if self.passphrase.is_empty() {
            return Err(KeychainError::NoPassphrase);
        }
        let known = self.key.as_ref().filter(|key| key.cost == cost && key.salt == salt);
        let octets = match known {
            Some(key) => key.octets.clone(),
            None => {
                let octets = derive(&self.passphrase, cost, &salt)?;
                self.key = Some(Key { cost, salt, octets: octets.clone() });
                octets
            }
        };
        XChaCha20Poly1305::new_from_slice(octets.as_slice())
            .map_err(|_| KeychainError::Other { reason: "key length".to_owned() })
    }
}

fn derive(passphrase: &Secret, cost: Cost, salt: &[u8]) -> Result<Zeroizing<[u8; 32]>, KeychainError> {
    let refused = |_| KeychainError::Unreadable { handle: "credential file".to_owned() };
    let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(32)).map_err(refused)?;
    let mut octets = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.expose().as_bytes(), salt, octets.as_mut_slice())
        .map_err(refused)?;
    Ok(octets)
}

fn random<const N: usize>() -> Result<[u8; N], KeychainError> {
    let mut octets = [0; N];
    getrandom::fill(&mut octets).map_err(|_| KeychainError::Other { reason: "no randomness".to_owned() })?;
    Ok(octets)
}

impl Backend for EncryptedFile {
    fn limit(&self) -> usize {
        usize::MAX
    }

    fn is_kept(&self) -> bool {
        true
    }

    fn set(&mut self, item: &str, text: &Secret) -> Result<(), KeychainError> {
        // Reading first also means that a wrong passphrase never replaces the file.
        let mut items = self.load()?;
        items.insert(item.to_owned(), Zeroizing::new(text.expose().to_owned()));
        self.save(&items)
    }

    fn get(&mut self, item: &str) -> Result<Secret, KeychainError> {
        let items = self.load()?;
        let text = items.get(item).ok_or_else(|| KeychainError::NoEntry { handle: item.to_owned() })?;
        Ok(Secret::new(text.as_str()))
    }

    fn delete(&mut self, item: &str) -> Result<(), KeychainError> {
        let mut items = self.load()?;
        if items.remove(item).is_none() {
            return Err(KeychainError::NoEntry { handle: item.to_owned() });
        }
        self.save(&items)
    }

    fn forget(&mut self) {
        self.key = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Keychain, KeychainChoice, KeychainHealth};
    use super::*;
    use std::path::Path;
    use std::time::Duration;

    fn keychain(path: &Path, passphrase: &str) -> Keychain {
        let choice = KeychainChoice::File { path: path.to_owned(), passphrase: Secret::new(passphrase) };
        Keychain::start(choice, "", Duration::from_secs(60)).unwrap()
    }

    #[tokio::test]
    async fn secrets_outlive_the_process_and_the_file_shows_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials");
        let first = keychain(&path, "correct horse");
        assert_eq!(first.probe("nonce").await, KeychainHealth::Kept);
        first.set("agent-1", Secret::new("canary-value")).await.unwrap();
        let octets = fs::read(&path).unwrap();
        for hidden in ["canary-value", "agent-1", "correct horse"] {
            assert!(!octets.windows(hidden.len()).any(|window| window == hidden.as_bytes()), "{hidden}");
        }
        let second = keychain(&path, "correct horse");
        assert_eq!(second.get("agent-1").await.unwrap().expose(), "canary-value");
        second.delete("agent-1").await.unwrap();
        assert_eq!(second.get("agent-1").await.unwrap_err().code(), "keyring_no_entry");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no partial file stays");
    }

    #[tokio::test]
    async fn a_wrong_passphrase_is_named_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials");
        keychain(&path, "right").set("a", Secret::new("one")).await.unwrap();
        let before = fs::read(&path).unwrap();
        let wrong = keychain(&path, "wrong");
        assert_eq!(wrong.get("a").await.unwrap_err(), KeychainError::WrongPassphrase);
        assert_eq!(wrong.set("a", Secret::new("two")).await, Err(KeychainError::WrongPassphrase));
        assert_eq!(wrong.delete("a").await, Err(KeychainError::WrongPassphrase));
        assert_eq!(wrong.probe("n").await, KeychainHealth::Failing(KeychainError::WrongPassphrase));
        assert!(fs::read(&path).unwrap() == before);
        assert_eq!(keychain(&path, "").get("a").await.unwrap_err(), KeychainError::NoPassphrase);
    }

    #[tokio::test]
    async fn a_changed_or_cut_file_is_refused_and_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials");
        keychain(&path, "p").set("a", Secret::new("one")).await.unwrap();
        let whole = fs::read(&path).unwrap();
        let mut cases = vec![Vec::new(), whole[..HEADER - 1].to_vec(), whole[..whole.len() - 1].to_vec()];
        for place in [0, 8, 11, 12, 25, HEADER - 1, HEADER, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[place] ^= 0x80;
            cases.push(changed);
        }
        for case in cases {
            fs::write(&path, &case).unwrap();
            let error = keychain(&path, "p").get("a").await.unwrap_err();
            assert!(
                matches!(error, KeychainError::WrongPassphrase | KeychainError::Unreadable { .. }),
                "{error:?}"
            );
            keychain(&path, "p").set("a", Secret::new("two")).await.unwrap_err();
            assert!(fs::read(&path).unwrap() == case, "what cannot be read is not overwritten");
        }
    }
}
