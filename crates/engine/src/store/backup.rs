//! Daily copies of the database in `backups/`, by `VACUUM INTO`; the newest three are kept.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::open::{FILE_NAME, OpenError, file_error, open_for_reading};

const FOLDER: &str = "backups";
const KEPT: usize = 3;
const PERIOD_MS: i64 = 24 * 60 * 60 * 1000;

/// UTC, to the second, sortable: `20260102T030405Z`.
pub(crate) fn stamp(now_ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(now_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.strftime("%Y%m%dT%H%M%SZ").to_string()
}

fn stamp_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.strip_prefix("taskbell-")?.strip_suffix(".db")
}

/// When a backup was made, by its name.
pub(crate) fn made_at_ms(path: &Path) -> Option<i64> {
    let time = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", stamp_of(path)?).ok()?;
    Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// The backups in `folder`, the newest first.
pub(crate) fn newest_first(folder: &Path) -> Result<Vec<PathBuf>, OpenError> {
    let backups = folder.join(FOLDER);
    let entries = match fs::read_dir(&backups) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(file_error("list", &backups)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(file_error("list", &backups))?.path();
        if stamp_of(&path).is_some() {
            found.push(path);
        }
    }
    found.sort_by(|a, b| b.file_name().cmp(&a.file_name()));
    Ok(found)
}

/// Whether the newest backup is a day old. A backup from the future (the clock was wrong) counts as old.
pub(crate) fn is_due(folder: &Path, now_ms: i64) -> Result<bool, OpenError> {
    let backups = newest_first(folder)?;
    let Some(newest) = backups.first().and_then(|path| stamp_of(path)) else { return Ok(true) };
    let (now, day_ago) = (stamp(now_ms), stamp(now_ms - PERIOD_MS));
    Ok(newest <= day_ago.as_str() || newest > now.as_str())
}

/// Copies the store as it is now and drops all but the newest three. Blocks; the writer goes on meanwhile.
pub(crate) fn back_up(folder: &Path, now_ms: i64) -> Result<PathBuf, OpenError> {
    let backups = folder.join(FOLDER);
    make_private_folder(&backups).map_err(file_error("make", &backups))?;
    let finished = backups.join(format!("taskbell-{}.db", stamp(now_ms)));
    let partial = backups.join("partial");
    let made = copy_into(folder, &partial).and_then(|()| {
        fs::rename(&partial, &finished).map_err(file_error("name", &finished))?;
        sync_folder(&backups).map_err(file_error("flush", &backups))
    });
    if let Err(error) = made {
        // A full disk must not stay full because of us.
        let _ = fs::remove_file(&partial);
        return Err(error);
    }
    for old in newest_first(folder)?.into_iter().skip(KEPT) {
        fs::remove_file(&old).map_err(file_error("remove", &old))?;
    }
    Ok(finished)
}

fn copy_into(folder: &Path, partial: &Path) -> Result<(), OpenError> {
    let store = |source| OpenError::Store { path: folder.join(FILE_NAME), source };
    // VACUUM INTO takes an empty file, and so the copy has its narrow mode from the first octet.
    drop(make_private_file(partial).map_err(file_error("make", partial))?);
    let connection = open_for_reading(folder).map_err(store)?;
    let target = partial.to_str().ok_or_else(|| {
        file_error("name", partial)(io::Error::new(io::ErrorKind::InvalidInput, "path is not Unicode"))
    })?;
    connection.execute("VACUUM INTO ?1", [target]).map_err(|error| store(error.into()))?;
    // SQLite has closed the copy again, so a descriptor of ours harms no lock.
    let file = fs::File::options().read(true).write(true).open(partial);
    file.and_then(|file| file.sync_all()).map_err(file_error("flush", partial))
}

/// Copies a backup to where the database belongs, flushed before it has its name.
pub(crate) fn put_in_place(backup: &Path, database: &Path) -> Result<(), OpenError> {
    let partial = database.with_file_name("restoring");
    let mut from = fs::File::open(backup).map_err(file_error("read", backup))?;
    let mut to = make_private_file(&partial).map_err(file_error("make", &partial))?;
    io::copy(&mut from, &mut to).and_then(|_| to.sync_all()).map_err(file_error("restore", &partial))?;
    drop(to);
    fs::rename(&partial, database).map_err(file_error("name", database))
}

fn make_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

fn make_private_file(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { fs::File::open(path)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_due_after_a_day_and_when_the_clock_went_back() {
        let folder = tempfile::tempdir().unwrap();
        let day = PERIOD_MS;
        let now = 1_800_000_000_000;
        assert!(is_due(folder.path(), now).unwrap(), "there is none yet");
        fs::create_dir(folder.path().join(FOLDER)).unwrap();
        fs::write(folder.path().join(FOLDER).join(format!("taskbell-{}.db", stamp(now))), "x").unwrap();
        fs::write(folder.path().join(FOLDER).join("partial"), "x").unwrap();
        assert!(!is_due(folder.path(), now).unwrap());
        assert!(!is_due(folder.path(), now + day - 1000).unwrap());
        assert!(is_due(folder.path(), now + day).unwrap());
        assert!(
            is_due(folder.path(), now - 10 * day).unwrap(),
            "a stamp from the future must not stop backups"
        );
    }
}
