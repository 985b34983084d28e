//! Planted secrets, and the search for them where they must not be.

use std::{fs, path::Path};

use crate::taskbell::Taskbell;

/// A made-up secret that protects nothing and is found nowhere by chance.
#[derive(Debug, Clone)]
pub struct Canary(String);

impl Canary {
    /// A new one; `name` says in a failure which secret leaked.
    pub fn new(name: &str) -> Self {
        Self(format!("canary-{name}-{}", uuid::Uuid::new_v4().simple()))
    }

    /// A secret that somebody else made, to be looked for.
    pub fn known(secret: &str) -> Self {
        Self(secret.to_owned())
    }

    /// The secret itself, to be planted.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Its forms as they could be written down: plain, base64 at each of the
    /// three alignments, hexadecimal.
    fn forms(&self) -> Vec<Vec<u8>> {
        let plain = self.0.as_bytes();
        let mut forms = vec![plain.to_vec(), hexadecimal(plain).into_bytes()];
        for shift in 0..3 {
            // Leaves out the octets whose encoding depends on their neighbours.
            let inner = plain.get(shift..).unwrap_or_default();
            let whole = inner.len() / 3 * 3;
            forms.push(base64(inner.get(..whole).unwrap_or_default()).into_bytes());
        }
        forms
    }

    /// Whether it occurs in `octets` in any form.
    pub fn is_in(&self, octets: &[u8]) -> bool {
        self.forms().iter().any(|form| octets.windows(form.len()).any(|window| window == form))
    }

    /// Asserts that it is not in `text`; `place` names the text.
    pub fn assert_not_in(&self, place: &str, text: &str) {
        assert!(!self.is_in(text.as_bytes()), "{} leaked into {place}", self.0);
    }

    /// Files below `folder` that hold it, names included.
    pub fn files_with_it(&self, folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let entries =
                fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            for entry in entries {
                let path = entry.expect("a folder can be listed").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                // A file may go between listing and reading, as a WAL does.
                let octets = fs::read(&path).unwrap_or_default();
                if self.is_in(&octets) || self.is_in(path.display().to_string().as_bytes()) {
                    found.push(path.display().to_string());
                }
            }
        }
        found
    }

    /// Asserts that neither the data folder (database, WAL, logs, runtime.json)
    /// nor anything the engine wrote holds it.
    pub fn assert_not_kept_by(&self, taskbell: &Taskbell) {
        let files = self.files_with_it(&taskbell.data_dir());
        assert!(files.is_empty(), "{} leaked into {files:?}", self.0);
        self.assert_not_in("the engine's output", &taskbell.log());
    }
}

fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Standard base64 of a length that needs no padding.
fn base64(octets: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in octets.chunks_exact(3) {
        let bits = group.iter().fold(0_usize, |bits, &octet| bits << 8 | usize::from(octet));
        for shift in [18, 12, 6, 0] {
            text.push(char::from(LETTERS[bits >> shift & 63]));
        }
    }
    text
}
