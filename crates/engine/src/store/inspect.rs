//! Looking at a database without working on it: for `doctor`, on a folder that no engine holds.
//! Changes nothing and repairs nothing.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::migrations;
use super::open::{BUSY_TIMEOUT, FILE_NAME, OpenError};

/// What a look at the database found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The version of its tables.
    pub version: u32,
    /// The version that this program writes; an older file is migrated when an engine starts.
    pub known: u32,
    /// The first fault that SQLite's quick check found.
    pub fault: Option<String>,
}

/// Looks at the database in `folder`; `None` where there is none yet.
/// Errors: it cannot be read at all.
pub fn inspect(folder: &Path) -> Result<Option<Inspection>, OpenError> {
    let path = folder.join(FILE_NAME);
    if !path.exists() {
        return Ok(None);
    }
    let look = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        let version = migrations::version(&connection)?;
        let checked: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        let fault = (checked != "ok").then_some(checked);
        Ok(Inspection { version, known: migrations::LATEST, fault })
    };
    match look() {
        Ok(inspection) => Ok(Some(inspection)),
        Err(error) => {
            let error: rusqlite::Error = error;
            Err(OpenError::Store { path: path.clone(), source: error.into() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, wall_clock};

    #[tokio::test]
    async fn a_database_is_looked_at_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(inspect(folder.path()).unwrap(), None);
        let (store, _) = Store::open(folder.path(), wall_clock()).unwrap();
        store.close(std::time::Duration::from_secs(5)).await.unwrap();
        let before = std::fs::read(folder.path().join(FILE_NAME)).unwrap();
        let found = inspect(folder.path()).unwrap().unwrap();
        assert_eq!((found.version, found.fault), (migrations::LATEST, None));
        assert_eq!(std::fs::read(folder.path().join(FILE_NAME)).unwrap(), before);
    }

    #[test]
    fn what_is_no_database_is_an_error_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        std::fs::write(&path, "no database at all, and long enough to be read as a header".repeat(20))
            .unwrap();
        assert!(inspect(folder.path()).is_err());
        assert!(path.exists());
    }
}
