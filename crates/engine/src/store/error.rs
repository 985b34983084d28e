//! Why the store could not do something, told apart by SQLite's extended code and never by text.

use rusqlite::ffi;

/// A failed read or write. Cheap to clone: one failed commit is told to every caller in its batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another process holds the database's write lock, or the queue stayed full. Nothing was stored.
    #[error("the store is busy")]
    Busy,
    /// The disk is full. Nothing of this command was stored.
    #[error("the disk is full")]
    Full,
    /// The folder or file cannot be written. Nothing of this command was stored.
    #[error("the store cannot be written (sqlite code {code})")]
    ReadOnly { code: i32 },
    /// Reading or writing the disk failed.
    #[error("the disk failed (sqlite code {code})")]
    Io { code: i32 },
    /// The file is damaged. It is checked, and set aside if need be, at the next start.
    #[error("the database is damaged (sqlite code {code})")]
    Damaged { code: i32 },
    /// The disk failed twice while committing: nothing is acknowledged until a restart.
    #[error("the store stopped writing after the disk failed again (sqlite code {code})")]
    Suspended { code: i32 },
    /// No answer within the deadline. The command may or may not be stored.
    #[error("the store did not answer in time and the outcome is unknown")]
    Late,
    /// The writer is gone: closed, or dead.
    #[error("the store is stopped")]
    Stopped,
    /// A row that must be unique exists already.
    #[error("{what} exists already")]
    Exists { what: String },
    /// A row that the command needs is not there.
    #[error("no {what}")]
    Missing { what: String },
    /// A stored value that this version cannot read.
    #[error("{what} in the database is not readable: {reason}")]
    Unreadable { what: &'static str, reason: String },
    /// Any other answer of SQLite: a fault of ours.
    #[error("sqlite refused (code {code}): {message}")]
    Sqlite { code: i32, message: String },
}

impl StoreError {
    /// The stable word that scripts and the page match on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Busy => "store_busy",
            Self::Full => "disk_full",
            Self::ReadOnly { .. } => "store_read_only",
            Self::Io { .. } => "disk_failed",
            Self::Damaged { .. } => "store_damaged",
            Self::Suspended { .. } => "store_suspended",
            Self::Late => "store_late",
            Self::Stopped => "store_stopped",
            Self::Exists { .. } => "exists",
            Self::Missing { .. } => "not_found",
            Self::Unreadable { .. } => "store_unreadable",
            Self::Sqlite { .. } => "store_failed",
        }
    }

    /// Whether the same command may succeed later without anybody changing it.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Busy
                | Self::Full
                | Self::ReadOnly { .. }
                | Self::Io { .. }
                | Self::Suspended { .. }
                | Self::Late
        )
    }

    /// Whether it is about the database as a whole, so that all of a batch shares it.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match &error {
            rusqlite::Error::SqliteFailure(failure, message) => {
                let code = failure.extended_code;
                match code & 0xff {
                    ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => Self::Busy,
                    ffi::SQLITE_FULL => Self::Full,
                    ffi::SQLITE_READONLY | ffi::SQLITE_CANTOPEN | ffi::SQLITE_PERM => Self::ReadOnly { code },
                    ffi::SQLITE_IOERR => Self::Io { code },
                    ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => Self::Damaged { code },
                    // Constraint texts name tables and columns, never values.
                    _ => {
                        Self::Sqlite { code, message: message.clone().unwrap_or_else(|| failure.to_string()) }
                    }
                }
            }
            rusqlite::Error::FromSqlConversionFailure(_, _, reason) => {
                Self::Unreadable { what: "a column", reason: reason.to_string() }
            }
            other => Self::Sqlite { code: -1, message: other.to_string() },
        }
    }
}

/// Whether SQLite refused because a unique row exists.
pub(crate) fn is_unique_violation(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::SqliteFailure(failure, _)
        if matches!(failure.extended_code, ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(extended: i32) -> StoreError {
        rusqlite::Error::SqliteFailure(ffi::Error::new(extended), None).into()
    }

    #[test]
    fn extended_codes_decide_and_texts_do_not() {
        assert_eq!(of(ffi::SQLITE_BUSY_SNAPSHOT), StoreError::Busy);
        assert_eq!(of(ffi::SQLITE_FULL), StoreError::Full);
        assert_eq!(of(ffi::SQLITE_IOERR_FSYNC), StoreError::Io { code: ffi::SQLITE_IOERR_FSYNC });
        assert_eq!(of(ffi::SQLITE_READONLY_DBMOVED).code(), "store_read_only");
        assert_eq!(of(ffi::SQLITE_CORRUPT_INDEX).code(), "store_damaged");
        assert_eq!(of(ffi::SQLITE_CONSTRAINT_UNIQUE).code(), "store_failed");
    }
}
