//! Texts for people elsewhere: addresses down to their hosts, and nothing that may be a credential or an id.
//!
//! A last net. What is known to be secret is not written in the first place.

/// Instead of what is left out.
pub const MASK: &str = "[masked]";
/// Runs of letters and digits from this length on are taken for ids and credentials.
const LONG: usize = 20;
/// Words so long are rare enough to be left out too.
const LONG_WORD: usize = 26;

/// The text without ids, credentials and the paths of addresses.
pub fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // What stands after these words is a credential whatever it looks like.
    let mut after_scheme = false;
    while let Some(first) = rest.chars().next() {
        if is_run(first) {
            let end = rest.find(|c| !is_run(c)).unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            if let Some(address) = after.strip_prefix("://") {
                let end = address.find(is_end_of_address).unwrap_or(address.len());
                let (address, after) = address.split_at(end);
                out.push_str(run);
                out.push_str("://");
                push_host(&mut out, address);
                rest = after;
                after_scheme = false;
                continue;
            }
            out.push_str(if after_scheme || is_telling(run) { MASK } else { run });
            after_scheme = ["bearer", "basic"].iter().any(|scheme| run.eq_ignore_ascii_case(scheme));
            rest = after;
        } else {
            out.push(first);
            after_scheme &= first == ' ';
            rest = rest.strip_prefix(first).unwrap_or("");
        }
    }
    out
}

fn is_run(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '=' | '~')
}

fn is_end_of_address(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '"' | '\'' | '<' | '>' | '(' | ')' | ',' | ';' | '\\' | '`')
}

fn is_telling(run: &str) -> bool {
    let has = |what: fn(&char) -> bool| run.chars().any(|c| what(&c));
    let mixed = has(char::is_ascii_digit) && has(char::is_ascii_alphabetic);
    let plain = run.chars().all(|c| c.is_ascii_alphabetic());
    run.len() >= LONG && mixed || run.len() >= LONG_WORD && plain
}

/// The host and port; user, password, path, query and fragment only as a sign that there was something.
fn push_host(out: &mut String, address: &str) {
    let end = address.find(['/', '?', '#']).unwrap_or(address.len());
    let (authority, path) = address.split_at(end);
    out.push_str(authority.rsplit('@').next().unwrap_or(authority));
    if !path.is_empty() && path != "/" {
        out.push_str("/…");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_cut_down_to_its_host() {
        assert_eq!(
            masked("callbacks through https://me:pw@h.example:8443/tb/a2a/callbacks/x?k=v do not arrive"),
            "callbacks through https://h.example:8443/… do not arrive"
        );
        assert_eq!(masked(r#"{"url":"http://127.0.0.1:7420/"}"#), r#"{"url":"http://127.0.0.1:7420"}"#);
    }

    #[test]
    fn ids_and_credentials_are_left_out_and_words_and_times_stay() {
        let id = "abcdefghij0123456789klmnop";
        assert_eq!(masked(&format!("registration {id} is due")), "registration [masked] is due");
        assert_eq!(masked("task 6f1c2a52-1111-4222-8333-944455556666 ended"), "task [masked] ended");
        assert_eq!(masked("Authorization: Bearer tok-1"), "Authorization: Bearer [masked]");
        assert_eq!(masked("abcdefghijklmnopqrstuvwxyz"), "[masked]");
        for kept in
            ["2026-12-01T04:41:00.123Z  WARN taskbell_engine::registrations::worker", "keyring_session_only"]
        {
            assert_eq!(masked(kept), kept);
        }
    }

    #[test]
    fn nothing_but_what_is_masked_changes() {
        for text in ["", "é😀 → :// x", "a://", "https://", "://", "a=b c_d"] {
            assert!(!masked(text).contains(MASK), "{text:?}");
        }
        assert_eq!(masked("é😀 → grüße"), "é😀 → grüße");
    }
}
