//! Values longer than one item of the store (Windows: 2,560 octets), by one path for all stores.
//!
//! ```text
//! item           v1:VALUE                          a value that fits
//! item           m1:SET:COUNT:SHA256               a value in parts
//! item.SET.0 …   the parts, cut between characters
//! ```
//!
//! SET is `a` or `b`, and a new value goes to the one that is not in use: parts first, then the head, then
//! the old parts. A write that is cut off leaves the old value whole; what it left behind goes with the
//! next write or delete. Reading takes all parts and their digest, or nothing.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use taskbell_core::credential::Secret;

use super::{Backend, KeychainError};

const WHOLE: &str = "v1:";
const IN_PARTS: &str = "m1:";
/// More parts than any credential needs; a bound on what a broken head can make us do.
const MOST_PARTS: usize = 64;
const SETS: [&str; 2] = ["a", "b"];

pub(super) fn get(backend: &mut dyn Backend, item: &str) -> Result<Secret, KeychainError> {
    let head = backend.get(item)?;
    match Head::read(&head) {
        Some(Head::Whole(value)) => Ok(Secret::new(value)),
        Some(Head::InParts { set, count, digest }) => {
            let mut value = zeroize::Zeroizing::new(String::new());
            for index in 0..count {
                match backend.get(&part(item, set, index)) {
                    Ok(text) => value.push_str(text.expose()),
                    Err(KeychainError::NoEntry { .. }) => {
                        return Err(KeychainError::Incomplete { handle: item.to_owned() });
                    }
                    Err(error) => return Err(error),
                }
            }
            if sha256(&value) != digest {
                return Err(KeychainError::Incomplete { handle: item.to_owned() });
            }
            Ok(Secret::new(value.as_str()))
        }
        None => Err(KeychainError::Unreadable { handle: item.to_owned() }),
    }
}

pub(super) fn set(backend: &mut dyn Backend, item: &str, value: &Secret) -> Result<(), KeychainError> {
    let before = match backend.get(item) {
        Ok(head) => Some(head),
        Err(KeychainError::NoEntry { .. }) => None,
        Err(error) => return Err(error),
    };
    let in_use = match before.as_ref().and_then(Head::read) {
        Some(Head::InParts { set, .. }) => Some(set),
        _ => None,
    };
    let limit = backend.limit();
    if value.expose().len().saturating_add(WHOLE.len()) <= limit {
        backend.set(item, &Secret::new(format!("{WHOLE}{}", value.expose())))?;
        return clear_parts(backend, item, in_use);
    }
    let pieces = cut(value.expose(), limit);
    if pieces.len() > MOST_PARTS {
        return Err(KeychainError::TooLong { handle: item.to_owned() });
    }
    let set = if in_use == Some(SETS[0]) { SETS[1] } else { SETS[0] };
    remove_set(backend, item, set)?;
    for (index, piece) in pieces.iter().enumerate() {
        backend.set(&part(item, set, index), &Secret::new(*piece))?;
    }
    let head = format!("{IN_PARTS}{set}:{}:{}", pieces.len(), sha256(value.expose()));
    backend.set(item, &Secret::new(head))?;
    match in_use {
        Some(old) => remove_set(backend, item, old),
        None => Ok(()),
    }
}

pub(super) fn delete(backend: &mut dyn Backend, item: &str) -> Result<(), KeychainError> {
    let in_use = match backend.get(item) {
        Ok(head) => match Head::read(&head) {
            Some(Head::InParts { set, .. }) => Some(set),
            _ => None,
        },
        Err(KeychainError::NoEntry { .. }) => None,
        Err(error) => return Err(error),
    };
    // The head first: without it the parts are nothing, and never a shortened secret.
    absent_is_fine(backend.delete(item))?;
    clear_parts(backend, item, in_use)
}

/// Removes what parts there may be. Stores without a limit have them only where the head says so.
fn clear_parts(backend: &mut dyn Backend, item: &str, in_use: Option<&str>) -> Result<(), KeychainError> {
    for set in SETS {
        if backend.limit() < usize::MAX || in_use == Some(set) {
            remove_set(backend, item, set)?;
        }
    }
    Ok(())
}

/// From the last to the first, so that what a cut-off removal leaves has no hole and is found again.
fn remove_set(backend: &mut dyn Backend, item: &str, set: &str) -> Result<(), KeychainError> {
    let mut count = 0;
    while count < MOST_PARTS {
        match backend.get(&part(item, set, count)) {
            Ok(_) => count += 1,
            Err(KeychainError::NoEntry { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    for index in (0..count).rev() {
        absent_is_fine(backend.delete(&part(item, set, index)))?;
    }
    Ok(())
}

fn absent_is_fine(result: Result<(), KeychainError>) -> Result<(), KeychainError> {
    match result {
        Err(KeychainError::NoEntry { .. }) => Ok(()),
        other => other,
    }
}

fn part(item: &str, set: &str, index: usize) -> String {
    format!("{item}.{set}.{index}")
}

enum Head<'a> {
    Whole(&'a str),
    InParts { set: &'static str, count: usize, digest: &'a str },
}

impl<'a> Head<'a> {
    fn read(head: &'a Secret) -> Option<Self> {
        let text = head.expose();
        if let Some(value) = text.strip_prefix(WHOLE) {
            return Some(Self::Whole(value));
        }
        let mut fields = text.strip_prefix(IN_PARTS)?.split(':');
        let set = fields.next()?;
        let set = SETS.into_iter().find(|known| *known == set)?;
        let count = fields.next()?.parse().ok().filter(|count| (1..=MOST_PARTS).contains(count))?;
        Some(Self::InParts { set, count, digest: fields.next()? })
    }
}

/// Pieces of at most `limit` octets, cut between characters (some stores keep text only).
fn cut(text: &str, limit: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = rest.floor_char_boundary(limit);
        if end == 0 {
            end = rest.ceil_char_boundary(1); // A limit below one character: the store will say so.
        }
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::with_capacity(64), |mut hex, octet| {
        let _ = write!(hex, "{octet:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A store like the Windows one: 2,560 octets an item. Stops working after some writes, as a kill would.
    struct Small {
        items: BTreeMap<String, Secret>,
        writes_left: usize,
    }

    const LIMIT: usize = 2560;

    fn small() -> Small {
        Small { items: BTreeMap::new(), writes_left: usize::MAX }
    }

    impl Small {
        fn write(&mut self) -> Result<(), KeychainError> {
            self.writes_left = self.writes_left.checked_sub(1).ok_or(KeychainError::Stopped)?;
            Ok(())
        }
    }

    impl Backend for Small {
        fn limit(&self) -> usize {
            LIMIT
        }
        fn is_kept(&self) -> bool {
            true
        }
        fn set(&mut self, item: &str, text: &Secret) -> Result<(), KeychainError> {
            self.write()?;
            if text.expose().len() > LIMIT {
                return Err(KeychainError::TooLong { handle: item.to_owned() });
            }
            self.items.insert(item.to_owned(), text.clone());
            Ok(())
        }
        fn get(&mut self, item: &str) -> Result<Secret, KeychainError> {
            self.items.get(item).cloned().ok_or_else(|| KeychainError::NoEntry { handle: item.to_owned() })
        }
        fn delete(&mut self, item: &str) -> Result<(), KeychainError> {
            self.write()?;
            self.items
                .remove(item)
                .map(drop)
                .ok_or_else(|| KeychainError::NoEntry { handle: item.to_owned() })
        }
        fn forget(&mut self) {}
    }

    fn read(store: &mut Small) -> Result<String, KeychainError> {
        get(store, "x").map(|value| value.expose().to_owned())
    }

    fn values() -> Vec<String> {
        let mut values: Vec<String> =
            [0, 1, 1280, 1281, LIMIT - 3, LIMIT - 2, LIMIT, LIMIT + 1, 6000].map(|n| "k".repeat(n)).into();
        values.push("𝄞€x".repeat(1500));
        values.push("m1:a:1:looks like a head".to_owned());
        values
    }

    #[test]
    fn every_length_comes_back_whole_and_leaves_nothing_behind() {
        let mut store = small();
        for first in values() {
            for second in values() {
                for value in [&first, &second] {
                    set(&mut store, "x", &Secret::new(value.as_str())).unwrap();
                    assert_eq!(&read(&mut store).unwrap(), value);
                    let parts = if value.len() + 3 <= LIMIT { 0 } else { cut(value, LIMIT).len() };
                    assert_eq!(store.items.len(), 1 + parts, "nothing may be left over of an earlier value");
                }
                delete(&mut store, "x").unwrap();
                assert!(store.items.is_empty(), "{:?}", store.items.keys());
            }
        }
    }

    #[test]
    fn a_write_cut_off_anywhere_leaves_the_old_value_or_the_new_one_and_no_mixture() {
        let long = |c: char| c.to_string().repeat(6000);
        for (old, new) in [(long('a'), long('b')), ("a".into(), long('b')), (long('a'), "b".into())] {
            for writes in 0..12 {
                let mut store = small();
                set(&mut store, "x", &Secret::new(old.as_str())).unwrap();
                store.writes_left = writes;
                let done = set(&mut store, "x", &Secret::new(new.as_str())).is_ok();
                let found = read(&mut store).unwrap();
                assert!(found == new || (found == old && !done), "after {writes} writes");
                store.writes_left = usize::MAX;
                set(&mut store, "x", &Secret::new("z")).unwrap();
                assert_eq!(store.items.len(), 1, "what was left behind goes with the next write");
            }
        }
    }

    #[test]
    fn a_delete_cut_off_anywhere_never_leaves_a_shortened_secret() {
        for writes in 0..6 {
            let mut store = small();
            set(&mut store, "x", &Secret::new("k".repeat(6000))).unwrap();
            store.writes_left = writes;
            let _ = delete(&mut store, "x");
            match read(&mut store) {
                Ok(value) => assert_eq!((value.len(), writes), (6000, 0)),
                Err(error) => assert!(matches!(error, KeychainError::NoEntry { .. })),
            }
            store.writes_left = usize::MAX;
            delete(&mut store, "x").unwrap();
            assert!(store.items.is_empty());
        }
    }

    #[test]
    fn a_missing_or_foreign_part_is_reported() {
        let mut store = small();
        set(&mut store, "x", &Secret::new("k".repeat(6000))).unwrap();
        let kept = store.items.clone();
        store.items.remove("x.a.1");
        assert!(matches!(read(&mut store), Err(KeychainError::Incomplete { .. })));
        store.items = kept;
        store.items.insert("x.a.2".into(), Secret::new("other"));
        assert!(matches!(read(&mut store), Err(KeychainError::Incomplete { .. })));
    }

    #[test]
    fn an_item_of_another_program_is_not_taken_for_a_secret() {
        let mut store = small();
        for text in ["", "plain", "m1:", "m1:a:0:x", "m1:a:9999:x", "m1:c:1:x", "m2:a:1:x"] {
            store.items.insert("x".into(), Secret::new(text));
            assert!(matches!(read(&mut store), Err(KeychainError::Unreadable { .. })), "{text}");
        }
    }

    #[test]
    fn what_no_number_of_parts_holds_is_too_long() {
        let mut store = small();
        let error = set(&mut store, "x", &Secret::new("k".repeat(LIMIT * 65))).unwrap_err();
        assert!(matches!(error, KeychainError::TooLong { .. }));
        assert!(store.items.is_empty());
    }
}
