//! The data folder: where it is, who holds it, and how clients find the engine that runs on it.
//!
//! One engine per folder, decided by a lock on `taskbell.lock` before any port or database is opened.
//! `runtime.json` tells clients where that engine listens; they trust it only while the lock is held.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use taskbell_core::credential::Secret;

const LOCK_FILE: &str = "taskbell.lock";
const RUNTIME_FILE: &str = "runtime.json";

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another engine runs on it.
    #[error("the data folder {} is held by {}", .path.display(), holder_text(*.pid))]
    Held { path: PathBuf, pid: Option<u32> },
    #[error("the data folder {} is not writable", .path.display())]
    ReadOnly { path: PathBuf, source: io::Error },
    #[error("{} is not a folder", .path.display())]
    NotAFolder { path: PathBuf },
    /// SQLite's write-ahead log needs shared memory and working locks, which these do not give.
    #[error(
        "the data folder {} is on a network file system ({kind}): name a local one with --data-dir",
        .path.display()
    )]
    Network { path: PathBuf, kind: String },
    #[error("this user has no home folder: name a data folder with --data-dir")]
    NoHome,
    #[error("{} is not what an engine writes", .path.display())]
    RuntimeUnreadable { path: PathBuf },
    #[error("failed to {doing} {}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

impl DataDirError {
    /// The stable word that scripts match on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Held { .. } => "data_dir_held",
            Self::ReadOnly { .. } => "data_dir_read_only",
            Self::NotAFolder { .. } => "data_dir_not_a_folder",
            Self::Network { .. } => "data_dir_network",
            Self::NoHome => "data_dir_no_home",
            Self::RuntimeUnreadable { .. } => "runtime_unreadable",
            Self::Io { .. } => "data_dir_failed",
        }
    }
}

fn holder_text(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DataDirError {
    let path = path.to_owned();
    move |source| match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            DataDirError::ReadOnly { path, source }
        }
        _ => DataDirError::Io { doing, path, source },
    }
}

/// What a running engine tells its clients; the file is readable by its user only.
#[derive(Debug, Clone)]
pub struct Runtime {
    pub pid: u32,
    /// `http://host:port` of gateway, API and page; `None` while the port is taken.
    pub gateway: Option<String>,
    /// `http://host:port` of the inbox; `None` while the port is taken.
    pub inbox: Option<String>,
    /// The API token of this run.
    pub token: Secret,
}

/// A data folder, not held: what a client looks at.
#[derive(Debug, Clone)]
pub struct DataDir {
    path: PathBuf,
}

impl DataDir {
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where the platform keeps such things: `~/.local/share/taskbell`, `~/Library/Application Support/taskbell`,
    /// `%LOCALAPPDATA%\taskbell\data`.
    pub fn of_platform() -> Result<Self, DataDirError> {
        let dirs = directories::ProjectDirs::from("", "", "taskbell").ok_or(DataDirError::NoHome)?;
        Ok(Self::at(dirs.data_local_dir()))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder if need be (0700, repaired where wider) and takes its lock.
    /// Errors: [`DataDirError::Held`] at once, by whom.
    pub fn hold(&self) -> Result<HeldDataDir, DataDirError> {
        self.prepare()?;
        let path = self.path.join(LOCK_FILE);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut lock = options.open(&path).map_err(io_error("open", &path))?;
        self.take(&lock, &path)?;
        lock.set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| write!(lock, "{}", std::process::id()))
            .and_then(|()| lock.flush())
            .map_err(io_error("write", &path))?;
        let held = HeldDataDir { dir: self.clone(), _lock: lock };
        // Left by an engine that was killed: its token must not be taken for ours.
        held.retract()?;
        Ok(held)
    }

    /// Whether an engine runs on this folder.
    pub fn is_held(&self) -> Result<bool, DataDirError> {
        let path = self.path.join(LOCK_FILE);
        let lock = match File::open(&path) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(io_error("open", &path)(error)),
        };
        match lock.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(io_error("lock", &path)(error)),
        }
    }

    /// Where the engine that holds the folder listens; `None` where none runs or it is not ready yet.
    pub fn runtime(&self) -> Result<Option<Runtime>, DataDirError> {
        // The file first: an engine that starts in between has removed the old one under its lock.
        let runtime = self.read_runtime()?;
        if runtime.is_some() && self.is_held()? { Ok(runtime) } else { Ok(None) }
    }

    fn read_runtime(&self) -> Result<Option<Runtime>, DataDirError> {
        #[derive(Deserialize)]
        struct Written {
            pid: u32,
            gateway: Option<String>,
            inbox: Option<String>,
            token: String,
        }
        let path = self.path.join(RUNTIME_FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("read", &path)(error)),
        };
        // The parser's message could quote the token.
        let written: Written =
            serde_json::from_str(&text).map_err(|_| DataDirError::RuntimeUnreadable { path })?;
        let Written { pid, gateway, inbox, token } = written;
        Ok(Some(Runtime { pid, gateway, inbox, token: Secret::new(token) }))
    }

    fn prepare(&self) -> Result<(), DataDirError> {
        let path = &self.path;
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(path) {
            Ok(()) => (),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory) =>
            {
                return Err(DataDirError::NotAFolder { path: path.clone() });
            }
            Err(error) => return Err(io_error("make", path)(error)),
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(path).map_err(io_error("look at", path))?.permissions().mode();
            if mode & 0o077 != 0 {
                fs::set_permissions(path, fs::Permissions::from_mode(0o700))
                    .map_err(io_error("narrow the permissions of", path))?;
                tracing::warn!(path = %path.display(), "the data folder was open to others and is not any more");
            }
        }
        #[cfg(target_os = "linux")]
        if let (Ok(mounts), Ok(real)) = (fs::read_to_string("/proc/self/mountinfo"), fs::canonicalize(path))
            && let Some(kind) = network_file_system(&mounts, &real)
        {
            return Err(DataDirError::Network { path: path.clone(), kind: kind.to_owned() });
        }
        Ok(())
    }

    fn take(&self, lock: &File, path: &Path) -> Result<(), DataDirError> {
        // A client that looks whether the folder is held has a shared lock for a moment;
        // that must not pass for an engine. Two engines never both get past this.
        let mut tries = 0;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) if tries < 5 => {
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(DataDirError::Held { path: self.path.clone(), pid: self.holder(lock) });
                }
                Err(TryLockError::Error(error)) => return Err(io_error("lock", path)(error)),
            }
        }
    }

    /// The lock file says it; on Windows, where a locked file cannot be read, the runtime file.
    fn holder(&self, mut lock: &File) -> Option<u32> {
        let mut text = String::new();
        match lock.read_to_string(&mut text) {
            Ok(_) => text.trim().parse().ok(),
            Err(_) => self.read_runtime().ok().flatten().map(|runtime| runtime.pid),
        }
    }
}

/// A folder whose lock this process holds, until it is dropped.
#[derive(Debug)]
pub struct HeldDataDir {
    dir: DataDir,
    _lock: File,
}

impl HeldDataDir {
    pub fn path(&self) -> &Path {
        &self.dir.path
    }

    /// Tells clients where to find us: whole or not at all.
    pub fn publish(&self, runtime: &Runtime) -> Result<(), DataDirError> {
        let path = self.dir.path.join(RUNTIME_FILE);
        let text = serde_json::json!({
            "pid": runtime.pid,
            "gateway": runtime.gateway,
            "inbox": runtime.inbox,
            "token": runtime.token.expose(),
        });
        write_private(&path, format!("{text}\n").as_bytes()).map_err(io_error("write", &path))
    }

    /// Removes what [`Self::publish`] wrote: on a clean stop.
    pub fn retract(&self) -> Result<(), DataDirError> {
        let path = self.dir.path.join(RUNTIME_FILE);
        match fs::remove_file(&path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(io_error("remove", &path)(error)),
        }
    }
}

/// Replaces a file as a whole: readable by its user only from the first octet, flushed before it has its name.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    // A leftover could be somebody's link or have a wide mode.
    match fs::remove_file(&partial) {
        Ok(()) => (),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (),
        Err(error) => return Err(error),
    }
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&partial).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&partial, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&partial);
        return written;
    }
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// The kind of the network file system that `path` lies on, from the text of `/proc/self/mountinfo`.
/// By name and not by the number `statfs` gives, which is the same for every FUSE program.
#[cfg(any(target_os = "linux", test))]
fn network_file_system<'a>(mountinfo: &'a str, path: &Path) -> Option<&'a str> {
    const NETWORK: [&str; 20] = [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "afs",
        "ncpfs",
        "ceph",
        "glusterfs",
        "lustre",
        "9p",
        "beegfs",
        "fuse.sshfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.glusterfs",
        "fuse.davfs2",
        "davfs",
        "fuse.gvfsd-fuse",
        "fuse.smbnetfs",
    ];
    let mut nearest: Option<(usize, &str)> = None;
    for line in mountinfo.lines() {
        // 36 35 98:0 /root /mount/point rw,noatime master:1 - ext4 /dev/root rw
        let mut halves = line.split(" - ");
        let (Some(left), Some(right)) = (halves.next(), halves.next()) else { continue };
        let (Some(point), Some(kind)) = (left.split(' ').nth(4), right.split(' ').next()) else { continue };
        let point = unescaped(point);
        // Later lines hide earlier ones on the same point.
        if path.starts_with(&point) && nearest.is_none_or(|(length, _)| point.len() >= length) {
            nearest = Some((point.len(), kind));
        }
    }
    nearest.map(|(_, kind)| kind).filter(|kind| NETWORK.contains(kind))
}

/// Mount points write space, tab, line end and backslash as three octal digits.
#[cfg(any(target_os = "linux", test))]
fn unescaped(point: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .into_iter()
        .fold(point.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> Runtime {
        Runtime {
            pid: 7,
            gateway: Some("http://127.0.0.1:7420".into()),
            inbox: None,
            token: Secret::new("canary-token"),
        }
    }

    #[test]
    fn a_second_hold_is_refused_with_the_holders_number() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::at(folder.path());
        let held = dir.hold().unwrap();
        assert!(dir.is_held().unwrap());
        let error = dir.hold().unwrap_err();
        let me = std::process::id();
        assert!(matches!(error, DataDirError::Held { pid: Some(pid), .. } if pid == me), "{error:?}");
        drop(held);
        assert!(!dir.is_held().unwrap());
        dir.hold().unwrap();
    }

    #[test]
    fn of_many_that_start_together_one_wins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        for _ in 0..20 {
            let barrier = std::sync::Barrier::new(4);
            let won: Vec<_> = std::thread::scope(|scope| {
                let starts: Vec<_> = (0..4)
                    .map(|_| {
                        scope.spawn(|| {
                            barrier.wait();
                            DataDir::at(&path).hold()
                        })
                    })
                    .collect();
                starts.into_iter().map(|start| start.join().unwrap()).collect()
            });
            assert_eq!(won.iter().filter(|held| held.is_ok()).count(), 1);
        }
    }

    #[test]
    fn clients_read_what_the_holder_published_and_only_while_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::at(folder.path());
        let held = dir.hold().unwrap();
        assert!(dir.runtime().unwrap().is_none());
        held.publish(&runtime()).unwrap();
        let read = dir.runtime().unwrap().unwrap();
        assert_eq!((read.pid, read.gateway.as_deref(), read.inbox), (7, Some("http://127.0.0.1:7420"), None));
        assert_eq!(read.token.expose(), "canary-token");
        drop(held); // As a kill would: nothing is retracted.
        assert!(
            dir.runtime().unwrap().is_none(),
            "a stale token must not be sent to whoever has the port now"
        );
        let held = dir.hold().unwrap();
        assert!(dir.runtime().unwrap().is_none(), "the next engine removes the stale file");
        held.publish(&runtime()).unwrap();
        held.retract().unwrap();
        assert!(dir.runtime().unwrap().is_none());
    }

    #[test]
    fn a_runtime_file_that_is_not_ours_is_named_and_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(RUNTIME_FILE), r#"{"token":"canary-token","pid":"x"}"#).unwrap();
        let error = DataDir::at(folder.path()).runtime().unwrap_err();
        assert_eq!(error.code(), "runtime_unreadable");
        assert!(!format!("{error} {error:?} {:?}", runtime()).contains("canary"));
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "x").unwrap();
        assert_eq!(DataDir::at(&path).hold().unwrap_err().code(), "data_dir_not_a_folder");
        assert_eq!(DataDir::at(path.join("below")).hold().unwrap_err().code(), "data_dir_not_a_folder");
    }

    #[cfg(unix)]
    #[test]
    fn folder_and_files_are_for_their_user_only() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a").join("b");
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let held = DataDir::at(&path).hold().unwrap();
        held.publish(&runtime()).unwrap();
        assert_eq!(mode(&path), 0o700, "a wider folder is repaired");
        assert_eq!(mode(&path.join(RUNTIME_FILE)), 0o600);
        assert_eq!(mode(&path.join(LOCK_FILE)), 0o600);
    }

    #[test]
    fn network_mounts_are_told_by_the_nearest_mount_point() {
        let mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            30 22 0:40 / /home rw shared:5 - nfs4 server:/home rw\n\
            31 30 8:2 / /home/ada/local rw - ext4 /dev/sda2 rw\n\
            32 22 0:41 / /mnt/my\\040share rw - fuse.sshfs host: rw\n\
            33 22 0:42 / /mnt/usb rw - fuseblk /dev/sdb1 rw\n\
            garbage\n";
        let kind = |path: &str| network_file_system(mounts, Path::new(path));
        assert_eq!(kind("/home/ada/data"), Some("nfs4"));
        assert_eq!(kind("/home/ada/local/data"), None);
        assert_eq!(kind("/homes"), None, "a mount point is a folder, not a prefix of its name");
        assert_eq!(kind("/mnt/my share/x"), Some("fuse.sshfs"));
        assert_eq!(kind("/mnt/usb"), None);
        assert_eq!(kind("/var"), None);
    }
}
