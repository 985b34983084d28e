//! Secrets in memory, gone with the process. Chosen by `--credential-store memory` and by tests.

use std::collections::HashMap;

use taskbell_core::credential::Secret;

use super::{Backend, KeychainError};

#[derive(Default)]
pub(super) struct Memory {
    items: HashMap<String, Secret>,
}

impl Backend for Memory {
    fn limit(&self) -> usize {
        usize::MAX
    }

    fn is_kept(&self) -> bool {
        false
    }

    fn set(&mut self, item: &str, text: &Secret) -> Result<(), KeychainError> {
        self.items.insert(item.to_owned(), text.clone());
        Ok(())
    }

    fn get(&mut self, item: &str) -> Result<Secret, KeychainError> {
        self.items.get(item).cloned().ok_or_else(|| KeychainError::NoEntry { handle: item.to_owned() })
    }

    fn delete(&mut self, item: &str) -> Result<(), KeychainError> {
        match self.items.remove(item) {
            Some(_) => Ok(()),
            None => Err(KeychainError::NoEntry { handle: item.to_owned() }),
        }
    }

    fn forget(&mut self) {}
}
