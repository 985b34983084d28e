//! Which host names may be called back.

use super::Refusal;

const LABEL_MOST: usize = 63;
const NAME_MOST: usize = 253;

/// Last labels that never name a host of the public internet: special-use names (RFC 6761, 6762, 7686,
/// 8375, 9476), names that private networks use, and those of common container networks.
const SPECIAL_USE: [&str; 18] = [
    "localhost",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "test",
    "example",
    "invalid",
    "onion",
    "alt",
    "arpa",
    "docker",
    "consul",
    "cluster",
];

/// Judges a name in lower case that is no numeric address.
pub(super) fn judge(name: &str) -> Result<(), Refusal> {
    if name.ends_with('.') {
        return Err(Refusal::HostTrailingDot);
    }
    if name.len() > NAME_MOST || !name.split('.').all(is_label) {
        return Err(Refusal::HostBadLabel);
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    if SPECIAL_USE.contains(&last) {
        return Err(Refusal::HostSpecialUse);
    }
    if !name.contains('.') {
        return Err(Refusal::HostSingleLabel);
    }
    Ok(())
}

fn is_label(label: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    !label.is_empty()
        && label.len() <= LABEL_MOST
        && label.bytes().all(allowed)
        && !label.starts_with('-')
        && !label.ends_with('-')
}
