//! Numbered steps from an empty file to today's tables. Each is one transaction with its version,
//! so a kill half-way leaves the version before. A step, once released, never changes.

use rusqlite::{Connection, TransactionBehavior};

/// In order; the n-th (from 1) makes version n.
const STEPS: &[&str] = &[
    include_str!("migrations/0001_first.sql"),
    include_str!("migrations/0002_notices.sql"),
    include_str!("migrations/0003_gateway.sql"),
    include_str!("migrations/0004_inbox.sql"),
    include_str!("migrations/0005_registration_work.sql"),
    include_str!("migrations/0006_verdicts.sql"),
    include_str!("migrations/0007_dispatcher.sql"),
    include_str!("migrations/0008_search.sql"),
    include_str!("migrations/0009_health.sql"),
    include_str!("migrations/0010_gateway_rows.sql"),
];

/// The version this program writes.
pub const LATEST: u32 = STEPS.len() as u32;

/// The version of the file; 0 is an empty one.
pub fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Runs the steps that are missing and returns the version there was.
/// The caller has refused newer files.
pub fn migrate(connection: &mut Connection) -> rusqlite::Result<u32> {
    migrate_with(connection, STEPS)
}

/// As a program of that version left it.
#[cfg(test)]
pub(crate) fn migrate_to(connection: &mut Connection, version: usize) -> rusqlite::Result<u32> {
    migrate_with(connection, &STEPS[..version])
}

fn migrate_with(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<u32> {
    let before = version(connection)?;
    for (index, step) in steps.iter().enumerate().skip(before as usize) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", index as u32 + 1)?;
        transaction.commit()?;
    }
    Ok(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(connection: &Connection) -> Vec<(String, String)> {
        let mut rows = connection
            .prepare("SELECT name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name")
            .unwrap();
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }

    #[test]
    fn every_earlier_version_arrives_at_the_same_tables() {
        let mut fresh = Connection::open_in_memory().unwrap();
        migrate(&mut fresh).unwrap();
        for start in 0..=STEPS.len() {
            let mut connection = Connection::open_in_memory().unwrap();
            migrate_with(&mut connection, &STEPS[..start]).unwrap();
            assert_eq!(version(&connection).unwrap(), start as u32);
            assert_eq!(migrate(&mut connection).unwrap(), start as u32);
            assert_eq!(version(&connection).unwrap(), LATEST);
            assert_eq!(schema(&connection), schema(&fresh), "from version {start}");
            let broken: Vec<String> = connection
                .prepare("PRAGMA foreign_key_check")
                .unwrap()
                .query_map([], |row| row.get(0))
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert!(broken.is_empty(), "{broken:?}");
        }
    }

    #[test]
    fn a_step_that_fails_half_way_leaves_the_version_before() {
        let mut connection = Connection::open_in_memory().unwrap();
        let steps = [
            "CREATE TABLE a (x INTEGER) STRICT;",
            "CREATE TABLE b (x INTEGER) STRICT; CREATE TABLE a (y ANY);",
        ];
        migrate_with(&mut connection, &steps).unwrap_err();
        assert_eq!(version(&connection).unwrap(), 1);
        let names: Vec<String> = schema(&connection).into_iter().map(|row| row.0).collect();
        assert_eq!(names, ["a"], "nothing of the failed step may stay");
    }

    #[test]
    fn every_table_is_strict() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let loose: i64 = connection
            .query_row(
                // The full text index has tables of its own making.
                "SELECT count(*) FROM pragma_table_list
                 WHERE strict = 0 AND type = 'table' AND name NOT LIKE 'sqlite_%'",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(loose, 0);
    }
}
