//! The table of what went wrong for others names tests that there are.

use std::path::Path;

#[test]
fn every_test_that_the_table_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let table = std::fs::read_to_string(root.join("tests/field-cases.md")).expect("the table");
    let mut named = 0;
    for (file, test) in table.split('`').filter_map(|word| word.split_once("::")) {
        if !file.contains('/') {
            continue;
        }
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let there =
            if file.ends_with(".rs") { text.contains(&format!("fn {test}(")) } else { text.contains(test) };
        assert!(there, "{file} has no {test}");
        named += 1;
    }
    assert!(named > 60, "the table names {named} tests");
}
