//! The log in the data folder: rotated by size, bounded in total, readable by its owner alone.
//!
//! Written by the program that holds the folder. A log that cannot be written stops nothing: Health says so until it
//! can be again, and the log then says how much it lacks.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tracing::Subscriber;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, reload};

use crate::api::views::HealthState;
use crate::health::Finding;

const FOLDER: &str = "logs";
const NAME: &str = "taskbell.log";
/// One file, and how many older ones are kept beside it: 20 MiB together.
const FILE_MAX: u64 = 4 << 20;
const OLDER: u32 = 4;
/// After a failure it is tried again so often.
const AGAIN: Duration = Duration::from_secs(1);

/// The log of this program. It writes nowhere until it is given a folder.
pub static LOG: LogFiles = LogFiles::new();

/// Rotated files.
#[derive(Debug)]
pub struct LogFiles(Mutex<State>);

#[derive(Debug)]
struct State {
    folder: Option<PathBuf>,
    file: Option<(File, u64)>,
    /// Why the last line was not written, and when it was tried.
    fault: Option<(String, Instant)>,
    lost: u64,
    file_max: u64,
}

impl LogFiles {
    const fn new() -> Self {
        Self(Mutex::new(State { folder: None, file: None, fault: None, lost: 0, file_max: FILE_MAX }))
    }

    /// Writes into `logs` below that folder from now on.
    pub fn open_below(&self, data_dir: &Path) {
        let mut state = self.state();
        state.folder = Some(data_dir.join(FOLDER));
        state.file = None;
        state.fault = None;
    }

    /// The folder is somebody else's from now on.
    pub fn close(&self) {
        let mut state = self.state();
        state.folder = None;
        state.file = None;
    }

    /// One line with its end. Lost where it cannot be written.
    pub fn write_line(&self, line: &[u8]) {
        self.state().write(line, Instant::now());
    }

    /// How the log is; none where there is none. Tries again where it failed.
    pub fn look(&self) -> Option<Finding> {
        let mut state = self.state();
        let folder = state.folder.clone()?;
        if state.fault.is_some() {
            state.write(b"", Instant::now());
        }
        Some(match &state.fault {
            None => Finding::new("log", HealthState::Ok, format!("kept in {}", folder.display())),
            Some((fault, _)) => {
                let detail = format!("{} lines could not be kept: {fault}", state.lost);
                Finding::new("log", HealthState::Warn, detail).fix(format!(
                    "free space, or make {} writable; following goes on, and the log by itself",
                    folder.display()
                ))
            }
        })
    }

    /// The last octets of the newest file as text, from the beginning of a line on.
    pub fn tail(&self, octets: u64) -> io::Result<String> {
        let Some(path) = self.state().folder.as_ref().map(|folder| folder.join(NAME)) else {
            return Ok(String::new());
        };
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(error),
        };
        let start = file.metadata()?.len().saturating_sub(octets);
        file.seek(SeekFrom::Start(start))?;
        let mut read = Vec::new();
        file.take(octets).read_to_end(&mut read)?;
        let text = String::from_utf8_lossy(&read).into_owned();
        Ok(match (start, text.split_once('\n')) {
            (0, _) | (_, None) => text,
            (_, Some((_, rest))) => rest.to_owned(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn write(&mut self, line: &[u8], now: Instant) {
        let Some(folder) = self.folder.clone() else { return };
        let too_soon = |at: Instant| now.saturating_duration_since(at) < AGAIN;
        if self.fault.as_ref().is_some_and(|(_, at)| too_soon(*at)) {
            self.lost += u64::from(!line.is_empty());
            return;
        }
        match self.try_write(&folder, line) {
            Ok(()) => self.fault = None,
            Err(error) => {
                self.lost += u64::from(!line.is_empty());
                self.file = None;
                self.fault = Some((error.to_string(), now));
            }
        }
    }

    fn try_write(&mut self, folder: &Path, line: &[u8]) -> io::Result<()> {
        let path = folder.join(NAME);
        let (mut file, mut length) = match self.file.take() {
            Some(open) => open,
            None => open(folder, &path)?,
        };
        let mut text = Vec::new();
        if self.lost > 0 {
            text.extend_from_slice(
                format!("{} lines are missing here: the log could not be written\n", self.lost).as_bytes(),
            );
        }
        text.extend_from_slice(line);
        if length > 0 && length + text.len() as u64 > self.file_max {
            drop(file);
            rotate(folder)?;
            (file, length) = open(folder, &path)?;
        }
        if let Err(error) = file.write_all(&text) {
            // Half a line would be read as a whole one.
            let _ = file.set_len(length);
            return Err(error);
        }
        self.lost = 0;
        self.file = Some((file, length + text.len() as u64));
        Ok(())
    }
}

fn open(folder: &Path, path: &Path) -> io::Result<(File, u64)> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    // Not the folders above: a data folder that was moved away must be able to come back.
    match builder.create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => (),
    }
    let mut options = File::options();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// `taskbell.log` becomes `taskbell.1.log`, and so on; the oldest goes.
fn rotate(folder: &Path) -> io::Result<()> {
    let older = |n: u32| folder.join(format!("taskbell.{n}.log"));
    for n in (1..OLDER).rev() {
        match fs::rename(older(n), older(n + 1)) {
            Ok(()) => (),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (),
            Err(error) => return Err(error),
        }
    }
    fs::rename(folder.join(NAME), older(1))
}

/// For `tracing_subscriber`: each event is one write.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        LOG.write_line(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes the level of what is written, as soon as somebody writes.
static LEVEL: OnceLock<Box<dyn Fn(LevelFilter) + Send + Sync>> = OnceLock::new();

/// What a program's `tracing` writes into [`LOG`], whatever goes to its stderr. One a program.
pub fn layer<S>() -> impl Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync + 'static,
{
    let (filter, handle) = reload::Layer::new(written(LevelFilter::INFO));
    let set = move |level| {
        if let Err(error) = handle.reload(written(level)) {
            tracing::warn!(%error, "the level of the log stays as it is");
        }
    };
    // A second log would be our own mistake; the first one is the one that is set.
    let first = LEVEL.set(Box::new(set)).is_ok();
    debug_assert!(first);
    tracing_subscriber::fmt::layer()
        .with_writer(|| LogWriter)
        .with_ansi(false)
        .log_internal_errors(false)
        .with_filter(filter)
}

/// Sets the level of our own words: error, warn, info, debug or trace.
pub fn set_level(word: &str) {
    if let (Some(set), Ok(level)) = (LEVEL.get(), word.parse()) {
        set(level);
    }
}

/// Of what we use only warnings: at a finer level it writes what it sends and receives.
fn written(level: LevelFilter) -> Targets {
    Targets::new().with_default(level.min(LevelFilter::WARN)).with_target("taskbell", level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path) -> Vec<(String, u64)> {
        let entries = fs::read_dir(folder.join(FOLDER)).unwrap().map(Result::unwrap);
        let mut found: Vec<_> = entries
            .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()))
            .collect();
        found.sort();
        found
    }

    #[test]
    fn files_are_rotated_and_all_together_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let log = LogFiles::new();
        log.write_line(b"before there is a folder\n");
        log.open_below(folder.path());
        log.state().file_max = 1_000;
        for n in 0..200 {
            log.write_line(format!("line {n:03} {}\n", "x".repeat(90)).as_bytes());
        }
        let found = files(folder.path());
        assert_eq!(found.len(), 1 + OLDER as usize, "{found:?}");
        assert!(found.iter().all(|(_, length)| *length <= 1_000), "{found:?}");
        assert!(log.tail(250).unwrap().ends_with(&format!("line 199 {}\n", "x".repeat(90))));
        assert!(log.tail(250).unwrap().starts_with("line 198"), "from the beginning of a line on");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(folder.path().join(FOLDER)), 0o700);
            assert_eq!(mode(folder.path().join(FOLDER).join(NAME)), 0o600);
        }
    }

    #[test]
    fn a_log_that_cannot_be_written_is_told_and_goes_on_by_itself_with_a_word_about_what_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let in_the_way = folder.path().join(FOLDER);
        fs::write(&in_the_way, "not a folder").unwrap();
        let log = LogFiles::new();
        assert_eq!(log.look(), None, "there is no log");
        log.open_below(folder.path());
        for _ in 0..3 {
            log.write_line(b"into nowhere\n");
        }
        let told = log.look().unwrap();
        assert_eq!((told.state, told.fix.is_some()), (HealthState::Warn, true));
        assert!(told.detail.starts_with("3 lines"), "{told:?}");
        fs::remove_file(&in_the_way).unwrap();
        let later = Instant::now() + AGAIN;
        log.state().write(b"", later);
        assert_eq!(log.look().unwrap().state, HealthState::Ok, "healed without a line to write");
        log.write_line(b"and on\n");
        assert_eq!(
            log.tail(1_000).unwrap(),
            "3 lines are missing here: the log could not be written\nand on\n"
        );
    }
}
