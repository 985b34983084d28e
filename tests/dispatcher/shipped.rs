//! The program that is shipped: no word in its environment changes what it does with callbacks.

use std::path::Path;
use std::process::Command;

use taskbell_tests::taskbell::{binary, rehearsal_binary};

/// What the program is told by its environment, as its documentation has it.
const KNOWN: [&str; 3] = ["TASKBELL_DATA_DIR", "TASKBELL_LOG", "TASKBELL_PASSPHRASE"];
/// What its page has people put their key into.
const SHOWN: &str = "TASKBELL_KEY";
/// What the program for tests listens to besides.
const SWITCHES: [&str; 2] = ["TASKBELL_CRASH_AT", "TASKBELL_FAULT"];
/// Places and faults that these name.
const WORDS: [&str; 4] = ["before-intent", "after-send", "answers-early", "skips-proof"];

/// What fits in the program, as `grep` finds it: strings stand one after the other in a program without anything
/// between them, so where a name ends cannot be seen.
fn found(program: &Path, pattern: &str) -> Vec<String> {
    let grep =
        Command::new("grep").args(["-a", "-o", "-E", pattern]).arg(program).env("LC_ALL", "C").output();
    let grep = grep.expect("grep");
    assert!(grep.status.code().is_some_and(|code| code < 2), "{}", String::from_utf8_lossy(&grep.stderr));
    String::from_utf8_lossy(&grep.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn the_program_that_is_shipped_has_no_switch_for_tests() {
    let (shipped, rehearsal) = (binary(), rehearsal_binary());
    for word in SWITCHES.into_iter().chain(WORDS) {
        assert!(
            !found(&rehearsal, word).is_empty(),
            "{word} is no longer what the program for tests listens to"
        );
        assert!(found(&shipped, word).is_empty(), "{word} is in the program that is shipped");
    }
    for name in KNOWN {
        assert!(!found(&shipped, name).is_empty(), "{name} is no longer read");
    }
    let others = found(&shipped, "TASKBELL_[A-Z_]+");
    let others: Vec<_> = others
        .iter()
        .filter(|found| !KNOWN.iter().chain([&SHOWN]).any(|name| found.starts_with(name)))
        .collect();
    assert!(others.is_empty(), "variables that nobody wrote down: {others:?}");
}
