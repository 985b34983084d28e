use std::fs;

use taskbell_tests::canary::Canary;

#[test]
fn a_planted_secret_is_found_in_every_form() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let canary = Canary::new("form");
    let deep = folder.path().join("a/b");
    fs::create_dir_all(&deep).expect("a folder");
    let hex: String = canary.secret().bytes().map(|octet| format!("{octet:02x}")).collect();
    fs::write(folder.path().join("plain"), format!("\0\0{}\0", canary.secret())).expect("a file");
    fs::write(deep.join("hex"), hex).expect("a file");
    assert_eq!(canary.files_with_it(folder.path()).len(), 2, "plain and hexadecimal, at any depth");
    // What `printf 'Basic user:canary-form-…' | base64` gives at each alignment.
    for before in ["", "u", "us", "use"] {
        let text = format!("{before}{}:", canary.secret());
        assert!(canary.is_in(encode(text.as_bytes()).as_bytes()), "base64 after {} octets", before.len());
    }
    assert!(!Canary::new("form").is_in(canary.secret().as_bytes()), "another secret is not there");
}

fn encode(octets: &[u8]) -> String {
    let mut child = std::process::Command::new("base64")
        .arg("-w0")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("base64 is installed");
    std::io::Write::write_all(child.stdin.as_mut().expect("piped"), octets).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8(output.stdout).expect("base64 is ASCII")
}
