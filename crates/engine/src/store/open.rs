//! Opens `taskbell.db`: refuses a newer file, checks after an unclean stop, sets a damaged file aside
//! and restores the newest backup, migrates. What happened comes back as an [`OpenReport`].
//!
//! The caller holds the data folder's lock, so no other engine has the file open. Only SQLite opens the
//! database file: closing a descriptor of our own would drop SQLite's locks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::backup;
use super::error::StoreError;
use super::migrations;

pub(crate) const FILE_NAME: &str = "taskbell.db";
/// How long SQLite waits for another process's lock.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
/// The write-ahead log is folded into the database at 16 MiB (pages of 4 KiB), and when idle.
const CHECKPOINT_PAGES: u32 = 4096;

/// What opening found and did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenReport {
    /// There was no database before.
    pub created: bool,
    /// The version before the migration, where one ran on a file that had tables.
    pub migrated_from: Option<u32>,
    /// The last engine did not close the store; how long the check took.
    pub checked_after_unclean_stop: Option<Duration>,
    /// The file was damaged and is kept aside.
    pub damage: Option<Damage>,
}

/// A damaged database that was set aside. Tasks must be read again from their agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    pub reason: DamageReason,
    /// Where the file is now, with `-wal` and `-shm` beside it. Never deleted by us.
    pub moved_to: PathBuf,
    /// The backup that took its place; `None`: none opened cleanly, and the store starts empty.
    pub restored_from: Option<PathBuf>,
}

/// How the damage showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DamageReason {
    /// The file holds nothing.
    ZeroLength,
    /// A write-ahead log without its database.
    Missing,
    /// SQLite refused to read it.
    Refused { code: i32 },
    /// `quick_check` found a fault; its first line.
    Check { finding: String },
}

/// Why no store could be opened. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "the database {} has version {found} and this program knows up to {known}: it was used by a newer Taskbell",
        .path.display()
    )]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("the database {} cannot keep a write-ahead log here (journal mode {mode:?})", .path.display())]
    NoWriteAheadLog { path: PathBuf, mode: String },
    #[error("failed to open the database {}", .path.display())]
    Store { path: PathBuf, source: StoreError },
    #[error("failed to {doing} {}", .path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },
}

impl OpenError {
    /// The stable word that scripts match on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Newer { .. } => "store_newer",
            Self::NoWriteAheadLog { .. } => "store_no_wal",
            Self::Store { source, .. } => source.code(),
            Self::File { source, .. } if source.kind() == io::ErrorKind::StorageFull => "disk_full",
            Self::File { .. } => "store_file",
        }
    }
}

pub(crate) fn file_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::File { doing, path, source }
}

/// Opens the store in `folder` for the one writer. `now_ms` names what is set aside.
pub(crate) fn open_for_writing(folder: &Path, now_ms: i64) -> Result<(Connection, OpenReport), OpenError> {
    let path = folder.join(FILE_NAME);
    let mut report = OpenReport::default();
    let reason = match found_file(&path)? {
        Found::Nothing => {
            report.created = true;
            None
        }
        Found::Suspect(reason) => Some(reason),
        Found::Database => None,
    };
    let reason = match reason {
        Some(reason) => reason,
        None => match try_open(&path, folder, now_ms, &mut report) {
            Ok(connection) => return Ok((connection, report)),
            Err(Refusal::Damaged(reason)) => reason,
            Err(Refusal::Other(error)) => return Err(error),
        },
    };
    let moved_to = move_aside(&path, now_ms)?;
    let mut damage = Damage { reason, moved_to, restored_from: None };
    for candidate in backup::newest_first(folder)? {
        backup::put_in_place(&candidate, &path)?;
        match try_open(&path, folder, now_ms, &mut report) {
            Ok(connection) => {
                damage.restored_from = Some(candidate);
                report.damage = Some(damage);
                return Ok((connection, report));
            }
            // The backup itself stays; only the copy goes.
            Err(Refusal::Damaged(_)) | Err(Refusal::Other(OpenError::Newer { .. })) => {
                remove_with_logs(&path)?
            }
            Err(Refusal::Other(error)) => return Err(error),
        }
    }
    report.damage = Some(damage);
    match try_open(&path, folder, now_ms, &mut report) {
        Ok(connection) => Ok((connection, report)),
        Err(Refusal::Other(error)) => Err(error),
        Err(Refusal::Damaged(reason)) => {
            let code = if let DamageReason::Refused { code } = reason { code } else { 0 };
            Err(OpenError::Store { path, source: StoreError::Damaged { code } })
        }
    }
}

/// Opens once more after a failed commit, in the middle of a run: checks, but neither migrates nor sets aside.
pub(crate) fn reopen_after_fault(folder: &Path) -> Result<Connection, StoreError> {
    let connection = connect(&folder.join(FILE_NAME))?;
    configure(&connection)?;
    match quick_check(&connection)? {
        None => Ok(connection),
        Some(_) => Err(StoreError::Damaged { code: 0 }),
    }
}

/// A connection that reads only, with its own view of the file.
pub(crate) fn open_for_reading(folder: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(folder.join(FILE_NAME), flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cache_size", -2048)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Notes in the file whether the store was closed, for the next start.
pub(crate) fn mark_clean(connection: &Connection, clean: &'static str) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO meta (key, value) VALUES ('clean', ?1) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        [clean],
    )?;
    Ok(())
}

/// A random name for this store, made once: keeps its items in the keychain apart from those of other folders.
fn give_install_id(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "INSERT INTO meta (key, value) VALUES ('install_id', ?1) ON CONFLICT (key) DO NOTHING";
    connection.execute(sql, [uuid::Uuid::new_v4().simple().to_string()])?;
    Ok(())
}

pub(crate) fn install_id(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row("SELECT value FROM meta WHERE key = 'install_id'", [], |row| row.get(0))
}

pub(crate) const CLEAN: &str = "1";
pub(crate) const UNCLEAN: &str = "0";

enum Found {
    Nothing,
    Database,
    Suspect(DamageReason),
}

fn found_file(path: &Path) -> Result<Found, OpenError> {
    let length = |path: &Path| match fs::metadata(path) {
        Ok(meta) => Ok(Some(meta.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error("look at", path)(error)),
    };
    let log = length(&beside(path, "-wal"))?.unwrap_or(0);
    Ok(match length(path)? {
        None if log > 0 => Found::Suspect(DamageReason::Missing),
        None => Found::Nothing,
        Some(0) => Found::Suspect(DamageReason::ZeroLength),
        Some(_) => Found::Database,
    })
}

enum Refusal {
    Damaged(DamageReason),
    Other(OpenError),
}

fn try_open(path: &Path, folder: &Path, now_ms: i64, report: &mut OpenReport) -> Result<Connection, Refusal> {
    let refused = |error: StoreError| match error {
        StoreError::Damaged { code } => Refusal::Damaged(DamageReason::Refused { code }),
        other => Refusal::Other(OpenError::Store { path: path.to_owned(), source: other }),
    };
    let logs_before = [beside(path, "-wal").exists(), beside(path, "-shm").exists()];
    let mut connection = connect(path).map_err(refused)?;
    let found = migrations::version(&connection).map_err(|error| refused(error.into()))?;
    if found > migrations::LATEST {
        drop(connection);
        forget_empty_logs(path, logs_before);
        let error = OpenError::Newer { path: path.to_owned(), found, known: migrations::LATEST };
        return Err(Refusal::Other(error));
    }
    configure(&connection).map_err(refused)?;
    let mode: String = connection
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .map_err(|error| refused(error.into()))?;
    if mode != "wal" {
        return Err(Refusal::Other(OpenError::NoWriteAheadLog { path: path.to_owned(), mode }));
    }
    if found > 0 && !was_closed(&connection).map_err(refused)? {
        let started = Instant::now();
        let finding = quick_check(&connection).map_err(refused)?;
        report.checked_after_unclean_stop = Some(started.elapsed());
        if let Some(finding) = finding {
            return Err(Refusal::Damaged(DamageReason::Check { finding }));
        }
    }
    if found > 0 && found < migrations::LATEST {
        backup::back_up(folder, now_ms).map_err(Refusal::Other)?;
        report.migrated_from = Some(found);
    }
    migrations::migrate(&mut connection).map_err(|error| refused(error.into()))?;
    mark_clean(&connection, UNCLEAN).map_err(|error| refused(error.into()))?;
    give_install_id(&connection).map_err(|error| refused(error.into()))?;
    Ok(connection)
}

/// Opens without changing anything yet, not even by closing again.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // A newer program's log must not be folded in by our looking at its version.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

fn configure(connection: &Connection) -> Result<(), StoreError> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    if cfg!(target_os = "macos") {
        // fsync alone leaves the data in the drive's cache there.
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    }
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "cache_size", -8192)?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
    connection.pragma_update_and_check(
        None,
        "journal_size_limit",
        4 * 4096 * CHECKPOINT_PAGES,
        |_| Ok(()),
    )?;
    connection.set_prepared_statement_cache_capacity(256);
    if let Some(path) = connection.path() {
        owner_only(Path::new(path));
    }
    Ok(())
}

/// The file is made with the process's mask; the folder is 0700 already, so a failure here opens nothing.
/// SQLite gives `-wal` and `-shm` the mode of the database.
fn owner_only(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        for path in [path.to_owned(), beside(path, "-wal"), beside(path, "-shm")] {
            let wide = fs::metadata(&path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0);
            if wide && let Err(error) = fs::set_permissions(&path, fs::Permissions::from_mode(0o600)) {
                tracing::warn!(path = %path.display(), %error, "failed to narrow the database's permissions");
            }
        }
    }
    #[cfg(not(unix))]
    let _ = path;
}

fn was_closed(connection: &Connection) -> Result<bool, StoreError> {
    let clean: Option<String> = connection
        .query_row("SELECT value FROM meta WHERE key = 'clean'", [], |row| row.get(0))
        .optional()?;
    Ok(clean.as_deref() == Some(CLEAN))
}

/// The first finding, or `None` where the file is sound.
fn quick_check(connection: &Connection) -> Result<Option<String>, StoreError> {
    let first: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok((first != "ok").then_some(first))
}

fn move_aside(path: &Path, now_ms: i64) -> Result<PathBuf, OpenError> {
    let stamp = backup::stamp(now_ms);
    let name = |suffix: &str| path.with_file_name(format!("{FILE_NAME}.damaged-{stamp}{suffix}"));
    let mut target = name("");
    let mut count = 1;
    while target.exists() || beside(&target, "-wal").exists() {
        count += 1;
        target = name(&format!("-{count}"));
    }
    // The database first: a kill in between leaves a log without a database, which the next start
    // sets aside too. The other order would leave a database that silently lacks its log.
    for suffix in ["", "-wal", "-shm"] {
        let from = beside(path, suffix);
        match fs::rename(&from, beside(&target, suffix)) {
            Ok(()) => (),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (),
            Err(error) => return Err(file_error("set aside", &from)(error)),
        }
    }
    Ok(target)
}

fn remove_with_logs(path: &Path) -> Result<(), OpenError> {
    for suffix in ["", "-wal", "-shm"] {
        let path = beside(path, suffix);
        match fs::remove_file(&path) {
            Ok(()) => (),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (),
            Err(error) => return Err(file_error("remove", &path)(error)),
        }
    }
    Ok(())
}

/// Removes the empty `-wal` and the `-shm` that our look made.
fn forget_empty_logs(path: &Path, [had_wal, had_shm]: [bool; 2]) {
    let wal = beside(path, "-wal");
    if !had_wal && fs::metadata(&wal).is_ok_and(|meta| meta.len() == 0) {
        let mut made = vec![wal];
        if !had_shm {
            made.push(beside(path, "-shm"));
        }
        for path in made {
            if let Err(error) = fs::remove_file(&path) {
                tracing::debug!(path = %path.display(), %error, "an empty log stays");
            }
        }
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
