//! The one writer: a thread that takes commands from many callers and commits them together.
//!
//! ```text
//! callers ──queue──> BEGIN IMMEDIATE ─ (SAVEPOINT ─ command ─ RELEASE | ROLLBACK TO)* ─ COMMIT ──> answers, doorbell
//! ```
//!
//! Whatever queued up during the last commit is the next batch. A command that somebody waits for is never held
//! up; one that nobody waits for gives others a moment to join it, for a commit costs as much as many commands
//! ([`Haste`]). A command that fails
//! rolls back alone; a commit that fails is told to all of its batch. A command that panics ends the
//! thread, and so every caller gets [`StoreError::Stopped`]: acknowledging is impossible from then on.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ffi};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::error::StoreError;
use super::open::{self, CLEAN};
use super::state::WriterState;

/// Commands in one transaction. A commit is one flush whatever its size; the bound keeps the wait of the
/// first caller short.
const BATCH: usize = 256;
/// Commands in the channel; callers beyond wait (back-pressure).
pub(crate) const QUEUE: usize = 1024;
/// Commands taken off the channel while another process holds the write lock.
const PENDING: usize = 1024;
/// How long a durable write waits for the lock before its caller is told.
pub(crate) const WRITE_WAITS: Duration = Duration::from_secs(2);
/// How long a posted write waits: nobody is told, so it is given up later.
pub(crate) const POST_WAITS: Duration = Duration::from_secs(60);
/// One try for the lock, so that waiting callers are looked after in between.
const LOCK_SLICE: Duration = Duration::from_millis(20);
/// The log is folded into the database after this much quiet.
const IDLE: Duration = Duration::from_secs(1);
/// How long commands that may wait are given company. Shorter than anybody sees, and long enough for the events
/// of a lively hour to share a few dozen commits a second.
const COMPANY: Duration = Duration::from_millis(10);

/// What a command gets.
pub struct WriteContext<'a> {
    /// Inside the transaction. Commands must not begin, commit or roll back.
    pub tx: &'a Connection,
    /// What earlier commands left on this thread.
    pub state: &'a mut WriterState,
    /// The wall clock at the start of the batch, Unix milliseconds.
    pub now_ms: i64,
    pub(super) last_seq: u64,
    /// A registration is another than before: the inbox reads them again.
    pub(super) registrations_changed: bool,
}

/// A command in the queue.
pub(crate) trait Job: Send {
    /// Runs inside the batch. An error rolls this command back.
    fn run(&mut self, context: &mut WriteContext<'_>) -> Result<(), StoreError>;
    /// Called once, after the commit or instead of it.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

pub(crate) struct Queued {
    pub job: Box<dyn Job>,
    pub expires: Instant,
    pub haste: Haste,
}

/// Whether a command begins a commit by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Haste {
    /// Somebody waits for it.
    AtOnce,
    /// It is committed with the next that is in haste, or within 10 ms.
    MayWait,
}

pub(crate) enum Message {
    Job(Queued),
    Close(oneshot::Sender<Result<(), StoreError>>),
}

/// Waits for its commit.
pub(crate) struct WriteJob<T, F> {
    command: Option<F>,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> WriteJob<T, F> {
    pub(crate) fn new(command: F, reply: oneshot::Sender<Result<T, StoreError>>) -> Self {
        Self { command: Some(command), result: None, reply }
    }
}

impl<T, F> Job for WriteJob<T, F>
where
    T: Send,
    F: FnOnce(&mut WriteContext<'_>) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, context: &mut WriteContext<'_>) -> Result<(), StoreError> {
        let Some(command) = self.command.take() else { return Err(StoreError::Stopped) };
        let result = command(context);
        let outcome = result.as_ref().map(|_| ()).map_err(Clone::clone);
        self.result = Some(result);
        outcome
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let result = match (outcome, self.result) {
            (_, Some(Err(own))) => Err(own),
            (Err(error), _) => Err(error),
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => Err(StoreError::Stopped),
        };
        // The caller may have gone; the row is stored all the same.
        let _ = self.reply.send(result);
    }
}

/// Nobody waits: failures are counted and logged.
pub(crate) struct PostJob<F> {
    what: &'static str,
    command: Option<F>,
    failure: Option<StoreError>,
    stats: Arc<Stats>,
}

impl<F> PostJob<F> {
    pub(crate) fn new(what: &'static str, command: F, stats: Arc<Stats>) -> Self {
        Self { what, command: Some(command), failure: None, stats }
    }
}

impl<F> Job for PostJob<F>
where
    F: FnOnce(&mut WriteContext<'_>) -> Result<(), StoreError> + Send,
{
    fn run(&mut self, context: &mut WriteContext<'_>) -> Result<(), StoreError> {
        let Some(command) = self.command.take() else { return Err(StoreError::Stopped) };
        let outcome = command(context);
        self.failure = outcome.as_ref().err().cloned();
        outcome
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        if let Some(error) = self.failure.or(outcome.err()) {
            self.stats.failed_posts.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(what = self.what, %error, "a posted write was not stored");
        }
    }
}

/// Counts since the start.
#[derive(Debug, Default)]
pub struct Stats {
    pub(crate) commits: AtomicU64,
    pub(crate) commands: AtomicU64,
    pub(crate) largest_batch: AtomicU64,
    pub(crate) failed_posts: AtomicU64,
    /// Commits that changed registrations.
    pub(crate) registrations: AtomicU64,
    /// Why the last transaction was not stored; none once one is again.
    fault: Mutex<Option<StoreError>>,
}

/// A reading of the writer's counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterCounts {
    /// Transactions committed.
    pub commits: u64,
    /// Commands in them.
    pub commands: u64,
    pub largest_batch: u64,
    /// Posted writes that were not stored.
    pub failed_posts: u64,
}

impl Stats {
    pub(crate) fn fault(&self) -> Option<StoreError> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_fault(&self, fault: Option<StoreError>) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    pub(crate) fn read(&self) -> WriterCounts {
        WriterCounts {
            commits: self.commits.load(Ordering::Relaxed),
            commands: self.commands.load(Ordering::Relaxed),
            largest_batch: self.largest_batch.load(Ordering::Relaxed),
            failed_posts: self.failed_posts.load(Ordering::Relaxed),
        }
    }
}

/// Unix milliseconds, from whoever opened the store.
pub type WallClock = Arc<dyn Fn() -> i64 + Send + Sync>;

pub(crate) struct Writer {
    pub connection: Connection,
    pub folder: PathBuf,
    pub messages: mpsc::Receiver<Message>,
    pub clock: WallClock,
    pub stats: Arc<Stats>,
    /// Ends the wait for company.
    pub hurry: Arc<Notify>,
    pub doorbell: watch::Sender<u64>,
    /// Set where damage was met: such a store is not marked as closed, so the next start checks it.
    pub suspect: Arc<AtomicBool>,
}

impl Writer {
    /// Runs until closed or until every sender is gone.
    pub(crate) fn run(self) {
        // For its timer only; the thread has no other use for a runtime.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let Ok(runtime) = runtime else {
            tracing::error!("the store's writer could not start");
            return;
        };
        if let Err(error) = self.connection.busy_timeout(LOCK_SLICE) {
            tracing::error!(%error, "the store's writer could not start");
            return;
        }
        Running {
            place: Place::of(&self.folder),
            writer: self,
            state: WriterState::default(),
            pending: VecDeque::new(),
            inbox: Vec::with_capacity(BATCH),
            closing: None,
            in_haste: false,
            unfolded: false,
            disk_faults: 0,
            suspended: None,
        }
        .run(&runtime);
    }
}

/// The database file as it was opened. SQLite goes on writing into a file that was moved away or deleted;
/// what is acknowledged then would be lost.
struct Place {
    path: PathBuf,
    inode: Option<u64>,
}

impl Place {
    fn of(folder: &Path) -> Self {
        let path = folder.join(open::FILE_NAME);
        let inode = inode(&path);
        Self { path, inode }
    }

    fn check(&self) -> Result<(), StoreError> {
        match inode(&self.path) {
            now if now.is_some() && now == self.inode => Ok(()),
            _ => Err(StoreError::ReadOnly { code: ffi::SQLITE_READONLY_DBMOVED }),
        }
    }
}

/// Looks without opening: closing a descriptor of our own would drop SQLite's locks.
fn inode(path: &Path) -> Option<u64> {
    let meta = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    return Some(std::os::unix::fs::MetadataExt::ino(&meta));
    #[cfg(not(unix))]
    return meta.is_file().then_some(0);
}

struct Running {
    writer: Writer,
    place: Place,
    state: WriterState,
    pending: VecDeque<Queued>,
    inbox: Vec<Message>,
    closing: Option<oneshot::Sender<Result<(), StoreError>>>,
    /// Something came that is not to wait, since there was nothing to do.
    in_haste: bool,
    /// Commits since the log was last folded into the database.
    unfolded: bool,
    disk_faults: u32,
    suspended: Option<StoreError>,
}

impl Running {
    fn run(mut self, runtime: &tokio::runtime::Runtime) {
        loop {
            if self.pending.is_empty() && !self.wait(runtime) {
                break;
            }
            self.take_waiting();
            if let Some(error) = self.suspended.clone() {
                self.answer_pending(&error);
            } else if !self.pending.is_empty() {
                self.commit_batch();
            }
        }
        self.finish();
    }

    /// Waits for something to do; false once closed and drained.
    fn wait(&mut self, runtime: &tokio::runtime::Runtime) -> bool {
        self.in_haste = false;
        loop {
            let receive = self.writer.messages.recv_many(&mut self.inbox, BATCH);
            let received = if self.unfolded {
                runtime.block_on(async { tokio::time::timeout(IDLE, receive).await })
            } else {
                Ok(runtime.block_on(receive))
            };
            match received {
                Ok(0) => return false,
                Ok(_) => {
                    self.sort_inbox();
                    runtime.block_on(self.gather());
                    return true;
                }
                Err(_elapsed) => {
                    self.unfolded = false;
                    self.fold_log("PASSIVE");
                }
            }
        }
    }

    /// Gives commands that may wait a moment for others to join them.
    async fn gather(&mut self) {
        let enough = tokio::time::sleep(COMPANY);
        tokio::pin!(enough);
        while !self.in_haste && self.pending.len() < BATCH {
            tokio::select! {
                biased;
                () = self.writer.hurry.notified() => return,
                received = self.writer.messages.recv_many(&mut self.inbox, BATCH) => match received {
                    0 => return,
                    _ => self.sort_inbox(),
                },
                () = &mut enough => return,
            }
        }
    }

    /// Takes what is in the channel already, within the bound.
    fn take_waiting(&mut self) {
        while self.pending.len() < PENDING {
            match self.writer.messages.try_recv() {
                Ok(message) => {
                    self.inbox.push(message);
                    self.sort_inbox();
                }
                Err(_) => return,
            }
        }
    }

    fn sort_inbox(&mut self) {
        for message in self.inbox.drain(..) {
            match message {
                Message::Job(queued) => {
                    self.in_haste |= queued.haste == Haste::AtOnce;
                    self.pending.push_back(queued);
                }
                Message::Close(done) => {
                    self.in_haste = true;
                    self.writer.messages.close();
                    self.closing = Some(done);
                }
            }
        }
    }

    fn commit_batch(&mut self) {
        if !self.begin() {
            return;
        }
        let mut ran: Vec<Box<dyn Job>> = Vec::with_capacity(self.pending.len().min(BATCH));
        let rung = *self.writer.doorbell.borrow();
        let mut context = WriteContext {
            tx: &self.writer.connection,
            state: &mut self.state,
            now_ms: (self.writer.clock)(),
            last_seq: rung,
            registrations_changed: false,
        };
        let mut failure = None;
        let fence = if self.pending.len() == 1 { Fence::Transaction } else { Fence::Savepoint };
        while ran.len() < BATCH
            && let Some(mut queued) = self.pending.pop_front()
        {
            let outcome = run_alone(queued.job.as_mut(), &mut context, fence);
            ran.push(queued.job);
            if let Err(error) = outcome {
                failure = Some(error);
                break;
            }
        }
        let (last_seq, registrations_changed) = (context.last_seq, context.registrations_changed);
        if failure.is_none() {
            failure = execute(&self.writer.connection, "COMMIT").and_then(|()| self.place.check()).err();
        }
        match failure {
            None => {
                self.unfolded = true;
                let stats = &self.writer.stats;
                stats.set_fault(None);
                stats.commits.fetch_add(1, Ordering::Relaxed);
                stats.commands.fetch_add(ran.len() as u64, Ordering::Relaxed);
                stats.largest_batch.fetch_max(ran.len() as u64, Ordering::Relaxed);
                if registrations_changed {
                    // Before any caller hears of it: whoever registers at an agent next is known here already.
                    stats.registrations.fetch_add(1, Ordering::Release);
                }
                for job in ran {
                    job.answer(Ok(()));
                }
                if last_seq > rung {
                    self.writer.doorbell.send_replace(last_seq);
                }
            }
            Some(error) => {
                if !self.writer.connection.is_autocommit()
                    && let Err(error) = execute(&self.writer.connection, "ROLLBACK")
                {
                    tracing::error!(%error, "failed to roll back");
                }
                self.state.rolled_back();
                tracing::warn!(%error, commands = ran.len(), "a batch was not stored");
                for job in ran {
                    job.answer(Err(error.clone()));
                }
                self.handle_fault(&error);
            }
        }
    }

    /// Takes the write lock; callers who have waited long enough for it are told meanwhile.
    fn begin(&mut self) -> bool {
        loop {
            match execute(&self.writer.connection, "BEGIN IMMEDIATE") {
                Ok(()) => return true,
                Err(StoreError::Busy) => {
                    self.expire();
                    self.take_waiting();
                    if self.pending.is_empty() {
                        return false;
                    }
                }
                Err(error) => {
                    self.answer_pending(&error);
                    self.handle_fault(&error);
                    return false;
                }
            }
        }
    }

    fn expire(&mut self) {
        let now = Instant::now();
        if self.pending.iter().all(|queued| queued.expires > now) {
            return;
        }
        for queued in std::mem::take(&mut self.pending) {
            if queued.expires > now {
                self.pending.push_back(queued);
            } else {
                self.writer.stats.set_fault(Some(StoreError::Busy));
                queued.job.answer(Err(StoreError::Busy));
            }
        }
    }

    fn answer_pending(&mut self, error: &StoreError) {
        for queued in self.pending.drain(..) {
            queued.job.answer(Err(error.clone()));
        }
    }

    /// After a failed flush nobody knows what the disk holds: the file is opened and checked anew, once.
    /// The second time nothing is acknowledged any more.
    fn handle_fault(&mut self, error: &StoreError) {
        self.writer.stats.set_fault(Some(error.clone()));
        match error {
            StoreError::Damaged { .. } => self.writer.suspect.store(true, Ordering::SeqCst),
            StoreError::Io { code } => {
                self.writer.suspect.store(true, Ordering::SeqCst);
                self.disk_faults += 1;
                if self.disk_faults > 1 {
                    self.suspend(*code);
                    return;
                }
                match open::reopen_after_fault(&self.writer.folder) {
                    Ok(connection) => match connection.busy_timeout(LOCK_SLICE) {
                        Ok(()) => self.writer.connection = connection,
                        Err(_) => self.suspend(*code),
                    },
                    Err(error) => {
                        tracing::error!(%error, "the database did not open again after a disk fault");
                        self.suspend(*code);
                    }
                }
            }
            _ => (),
        }
    }

    fn suspend(&mut self, code: i32) {
        tracing::error!(code, "the disk failed again: nothing is stored until a restart");
        self.suspended = Some(StoreError::Suspended { code });
    }

    fn fold_log(&self, mode: &str) {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        if let Err(error) = self.writer.connection.query_row(&sql, [], |_| Ok(())) {
            tracing::warn!(%error, "failed to fold the write-ahead log into the database");
        }
    }

    /// Marks the store as closed, where somebody closed it and it is sound.
    fn finish(mut self) {
        let Some(done) = self.closing.take() else { return };
        let result = match &self.suspended {
            Some(error) => Err(error.clone()),
            None if self.writer.suspect.load(Ordering::SeqCst) => Ok(()),
            None => self
                .writer
                .connection
                .busy_timeout(open::BUSY_TIMEOUT)
                .and_then(|()| open::mark_clean(&self.writer.connection, CLEAN))
                .map_err(StoreError::from),
        };
        if result.is_ok() {
            self.fold_log("TRUNCATE");
        }
        drop(self); // Closes the database before the caller is told.
        let _ = done.send(result);
    }
}

/// What a command's failure rolls back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fence {
    Savepoint,
    /// The command has no company, so the transaction is its own: a savepoint would cost a tenth of it.
    Transaction,
}

impl Fence {
    fn put_up(self, connection: &Connection) -> Result<(), StoreError> {
        match self {
            Self::Savepoint => execute(connection, "SAVEPOINT command"),
            Self::Transaction => Ok(()),
        }
    }

    fn take_down(self, connection: &Connection) -> Result<(), StoreError> {
        match self {
            Self::Savepoint => execute(connection, "RELEASE command"),
            Self::Transaction => Ok(()),
        }
    }

    /// Leaves an open transaction with what was before the command.
    fn roll_back(self, connection: &Connection) -> Result<(), StoreError> {
        match self {
            Self::Savepoint => {
                execute(connection, "ROLLBACK TO command")?;
                execute(connection, "RELEASE command")
            }
            Self::Transaction => {
                execute(connection, "ROLLBACK")?;
                execute(connection, "BEGIN IMMEDIATE")
            }
        }
    }
}

/// One command behind its fence. `Err` only where the whole transaction is lost.
fn run_alone(job: &mut dyn Job, context: &mut WriteContext<'_>, fence: Fence) -> Result<(), StoreError> {
    let connection = context.tx;
    let seq_before = context.last_seq;
    fence.put_up(connection)?;
    match job.run(context) {
        Ok(()) => fence.take_down(connection),
        // SQLite rolls everything back by itself on some errors (disk full, I/O).
        Err(error) if connection.is_autocommit() => Err(error),
        Err(error) => {
            fence.roll_back(connection)?;
            context.state.rolled_back();
            context.last_seq = seq_before;
            if error.is_damage() { Err(error) } else { Ok(()) }
        }
    }
}

fn execute(connection: &Connection, sql: &'static str) -> Result<(), StoreError> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}
