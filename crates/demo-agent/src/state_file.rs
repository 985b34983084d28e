//! The state file: one JSON document a line, the later line of a task wins.
//!
//! Changes are appended in the background: a question, a message or an end within 100 ms, progress
//! within a second. The file is written anew at the start and when it has grown far beyond what it
//! holds. It survives the death of the process; no fsync, so not that of the machine. Registrations for
//! callbacks are not kept: their secrets do not belong on a disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use taskbell_core::dialect::v1::Extras;
use taskbell_core::dialect::{read, v1};
use taskbell_core::task::Task;
use tokio::sync::Notify;

use crate::live_task::{LiveTask, Motion, Urgency};
use crate::script::Place;

const SOON: Duration = Duration::from_millis(100);
const LATER: Duration = Duration::from_secs(1);
/// The file is written anew when this much was appended, and at least as much as it held before.
const COMPACT_BYTES: u64 = 16 << 20;

/// A task as a line keeps it.
pub struct Kept {
    pub owner: usize,
    pub task: Task,
    pub script: String,
    pub place: Place,
    pub motion: Motion,
    pub sequence: u64,
    pub messages: u64,
}

#[derive(Serialize, Deserialize)]
struct Line {
    owner: usize,
    script: String,
    place: Place,
    motion: Motion,
    sequence: u64,
    messages: u64,
    task: Value,
}

impl Kept {
    pub fn of(task: &LiveTask) -> Self {
        let inner = task.lock();
        Self {
            owner: task.owner,
            task: inner.task.clone(),
            script: inner.script_text.clone(),
            place: inner.place,
            motion: inner.motion,
            sequence: inner.sequence,
            messages: inner.messages(),
        }
    }

    fn write(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let line = Line {
            owner: self.owner,
            script: self.script.clone(),
            place: self.place,
            motion: self.motion,
            sequence: self.sequence,
            messages: self.messages,
            task: v1::task(&self.task, Extras::Keep),
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.push(b'\n');
        Ok(())
    }

    fn read(line: &str) -> Option<Self> {
        let line: Line = serde_json::from_str(line).ok()?;
        let task = read::task(line.task).ok()?;
        Some(Self {
            owner: line.owner,
            task,
            script: line.script,
            place: line.place,
            motion: line.motion,
            sequence: line.sequence,
            messages: line.messages,
        })
    }
}

/// The file and what is still to be written to it.
pub struct Journal {
    path: PathBuf,
    unsaved: Mutex<Unsaved>,
    soon: Notify,
    later: Notify,
    file: Mutex<Option<Open>>,
}

#[derive(Default)]
struct Unsaved {
    tasks: Vec<Arc<LiveTask>>,
}

struct Open {
    file: File,
    appended: u64,
    base: u64,
}

impl Journal {
    /// Reads the file, where there is one. A torn last line is what a kill leaves and is skipped; a file
    /// of which no line can be read is refused rather than overwritten.
    pub fn open(path: &Path) -> io::Result<(Arc<Self>, Vec<Kept>)> {
        let text = match fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let mut order = Vec::new();
        let mut newest = std::collections::HashMap::new();
        for kept in text.lines().filter_map(Kept::read) {
            let task_id = kept.task.id.clone();
            if newest.insert(task_id.clone(), kept).is_none() {
                order.push(task_id);
            }
        }
        if order.is_empty() && !text.trim().is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no line of it holds a task"));
        }
        let kept: Vec<Kept> = order.iter().filter_map(|task_id| newest.remove(task_id)).collect();
        let journal = Self {
            path: path.to_owned(),
            unsaved: Mutex::default(),
            soon: Notify::new(),
            later: Notify::new(),
            file: Mutex::default(),
        };
        journal.rewrite(&kept)?;
        Ok((Arc::new(journal), kept))
    }

    pub fn note(&self, task: &Arc<LiveTask>, urgency: Urgency) {
        let is_new = !std::mem::replace(&mut task.lock().is_dirty, true);
        if is_new {
            self.unsaved.lock().unwrap_or_else(PoisonError::into_inner).tasks.push(Arc::clone(task));
        }
        match urgency {
            Urgency::Soon => self.soon.notify_one(),
            Urgency::Later => self.later.notify_one(),
        }
    }

    /// Writes in the background until it is dropped. `all` is asked when the file is written anew.
    pub async fn run(self: Arc<Self>, all: impl Fn() -> Vec<Kept> + Send + Sync + 'static) {
        let all = Arc::new(all);
        loop {
            tokio::select! {
                () = self.soon.notified() => tokio::time::sleep(SOON).await,
                () = self.later.notified() => tokio::select! {
                    () = tokio::time::sleep(LATER) => {}
                    () = self.soon.notified() => tokio::time::sleep(SOON).await,
                },
            }
            let (journal, all) = (Arc::clone(&self), Arc::clone(&all));
            let written = tokio::task::spawn_blocking(move || {
                journal.save()?;
                if journal.is_bloated() { journal.rewrite(&all()) } else { Ok(()) }
            });
            match written.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "failed to write the demo agent's state file"),
                Err(error) => tracing::warn!(%error, "writing the demo agent's state file was broken off"),
            }
        }
    }

    /// Appends every task that changed since the last time.
    pub fn save(&self) -> io::Result<()> {
        let tasks = std::mem::take(&mut self.unsaved.lock().unwrap_or_else(PoisonError::into_inner).tasks);
        let mut lines = Vec::new();
        for task in tasks {
            // Unmarked before the look: a change after it marks the task again.
            task.lock().is_dirty = false;
            Kept::of(&task).write(&mut lines)?;
        }
        let mut place = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = place.as_mut() {
            open.file.write_all(&lines)?;
            open.appended += lines.len() as u64;
        }
        Ok(())
    }

    fn is_bloated(&self) -> bool {
        let place = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        place.as_ref().is_some_and(|open| open.appended > COMPACT_BYTES.max(open.base))
    }

    /// Writes the whole file anew beside the old one and puts it in its place.
    fn rewrite(&self, kept: &[Kept]) -> io::Result<()> {
        let mut place = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = Vec::new();
        for kept in kept {
            kept.write(&mut lines)?;
        }
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        let mut file = private_file(Path::new(&beside))?;
        file.write_all(&lines)?;
        fs::rename(&beside, &self.path)?;
        *place = Some(Open { file, appended: 0, base: lines.len() as u64 });
        Ok(())
    }
}

/// Messages are the user's own: nobody else reads them.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
