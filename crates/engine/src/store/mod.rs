//! What is kept: one SQLite file, one writer thread with group commit, a few readers.
//!
//! | question | room |
//! |---|---|
//! | opening, damage, the clean mark | [`open`] |
//! | tables and their versions | [`migrations`] |
//! | daily copies | [`backup`] |
//! | commands, group commit, deadlines | [`writer`] |
//! | what the writer remembers between commands | [`state`] |
//! | reading | [`reader`] |
//! | the tables, one room a family | [`settings`], [`changes`], [`agents`], [`tasks`], [`task_content`], [`sends`], [`notices`],
//! [`clients`], [`gateway_tasks`], [`gateway_traffic`], [`registrations`], [`registration_work`], [`callbacks`], [`refused`], [`targets`],
//! [`client_push_configs`], [`deliveries`] |
//! | lists of tasks, the words they are found by, saved views | [`lists`], [`search`], [`views`] |
//! | what their users keep of tasks: flags and notes | [`flags`] |
//! | how the parts of the program were | [`health_history`] |
//! | what a change of a task gives to be sent | [`outbox`] |
//! | how frames and reads change a task | [`task_records`] |
//! | who is told of it, and the log of that | [`hub`], [`gateway_log`] |
//! | what callbacks claimed, held against reads; ends that were missed | [`verdicts`], [`ends`] |
//! | the inbox and an agent's callbacks, for people; how long they are kept | [`inbox`], [`report_card`], [`bodies`] |
//!
//! No secret is stored here: agents' credentials are in the keychain, callback proofs are digests.

pub mod agents;
mod allowance;
pub mod backup;
pub mod bodies;
pub mod callbacks;
pub mod changes;
pub mod client_push_configs;
pub mod clients;
pub mod deliveries;
pub mod ends;
pub mod error;
pub mod flags;
pub mod gateway_log;
pub mod gateway_tasks;
pub mod gateway_traffic;
pub mod health_history;
pub mod hub;
pub mod inbox;
pub mod inspect;
pub mod keys;
pub mod lists;
pub mod migrations;
pub mod notices;
pub mod open;
pub mod outbox;
pub mod reader;
pub mod refused;
pub mod registration_work;
pub mod registrations;
pub mod report_card;
pub mod search;
pub mod sends;
pub mod settings;
pub mod state;
pub mod targets;
pub mod task_content;
pub mod task_records;
pub mod tasks;
pub mod verdicts;
pub mod views;
pub mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;
use tokio::sync::{Notify, mpsc, oneshot, watch};

pub use error::StoreError;
pub use hub::Hubs;
pub use keys::{
    AgentKey, CallbackKey, ClientKey, ConfigKey, DeliveryKey, RegistrationKey, SecretKey, TargetKey, TaskKey,
};
pub use open::{Damage, DamageReason, OpenError, OpenReport};
pub use state::{Remembered, WriterState};
pub use writer::{WallClock, WriteContext, WriterCounts};

use reader::Readers;
use writer::{Haste, Message, POST_WAITS, PostJob, QUEUE, Queued, Stats, WRITE_WAITS, WriteJob, Writer};

/// After this the caller is told that the outcome is unknown: the disk is slow, not the lock held.
const ANSWERS_WITHIN: Duration = Duration::from_secs(4);

/// The store. Clones share it.
#[derive(Clone)]
pub struct Store {
    folder: PathBuf,
    install_id: String,
    messages: mpsc::Sender<Message>,
    readers: Arc<Readers>,
    doorbell: watch::Receiver<u64>,
    stats: Arc<Stats>,
    hurry: Arc<Notify>,
    suspect: Arc<AtomicBool>,
}

/// The system's wall clock.
pub fn wall_clock() -> WallClock {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

impl Store {
    /// Opens the store in a data folder whose lock the caller holds, and starts the writer.
    /// Blocks: a check after an unclean stop takes about 1.5 ms a megabyte.
    pub fn open(folder: &Path, clock: WallClock) -> Result<(Self, OpenReport), OpenError> {
        let (connection, report) = open::open_for_writing(folder, clock())?;
        let store_error = |source| OpenError::Store {
            path: folder.join(open::FILE_NAME),
            source: StoreError::from(source),
        };
        let last_seq = changes::last_seq(&connection).map_err(store_error)?;
        let install_id = open::install_id(&connection).map_err(store_error)?;
        let (ring, doorbell) = watch::channel(last_seq);
        let (sender, messages) = mpsc::channel(QUEUE);
        let stats = Arc::new(Stats::default());
        let hurry = Arc::new(Notify::new());
        let suspect = Arc::new(AtomicBool::new(false));
        let writer = Writer {
            connection,
            folder: folder.to_owned(),
            messages,
            clock,
            stats: Arc::clone(&stats),
            hurry: Arc::clone(&hurry),
            doorbell: ring,
            suspect: Arc::clone(&suspect),
        };
        std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(open::file_error("start a writer for", folder))?;
        let readers = Readers::new(folder.to_owned());
        let folder = folder.to_owned();
        let store = Self { folder, install_id, messages: sender, readers, doorbell, stats, hurry, suspect };
        Ok((store, report))
    }

    /// Runs `command` in the next batch and answers after its commit: what it wrote is on the disk.
    ///
    /// Errors: the command's own; [`StoreError::Busy`] after 2 s where the lock or the queue is held up
    /// (nothing stored); [`StoreError::Late`] after 4 s more (unknown); those of the commit.
    pub async fn write<T, F>(&self, command: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut WriteContext<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        self.call_writer(command, Haste::AtOnce).await
    }

    /// As [`Store::write`], for what can be read again from the agent and what nobody waits for: it goes along
    /// with the next commit, or begins one after 10 ms.
    pub async fn write_along<T, F>(&self, command: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut WriteContext<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        self.call_writer(command, Haste::MayWait).await
    }

    /// Has what may wait committed at once.
    pub fn hurry(&self) {
        self.hurry.notify_one();
    }

    async fn call_writer<T, F>(&self, command: F, haste: Haste) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut WriteContext<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(WriteJob::new(command, reply));
        let expires = Instant::now() + WRITE_WAITS;
        let permit = match self.messages.try_reserve() {
            Ok(permit) => permit,
            Err(mpsc::error::TrySendError::Closed(())) => return Err(StoreError::Stopped),
            Err(mpsc::error::TrySendError::Full(())) => {
                match tokio::time::timeout(WRITE_WAITS, self.messages.reserve()).await {
                    Ok(permit) => permit.map_err(|_| StoreError::Stopped)?,
                    Err(_elapsed) => return Err(StoreError::Busy),
                }
            }
        };
        permit.send(Message::Job(Queued { job, expires, haste }));
        match tokio::time::timeout(ANSWERS_WITHIN, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_gone)) => Err(StoreError::Stopped),
            Err(_elapsed) => Err(StoreError::Late),
        }
    }

    /// Puts `command` into the queue and returns; waits only while the queue is full. It is committed with the
    /// next command that somebody waits for, or after 10 ms. Failures are counted and logged under `what`. For
    /// what can be read again from the agent after a power cut.
    pub async fn post<F>(&self, what: &'static str, command: F) -> Result<(), StoreError>
    where
        F: FnOnce(&mut WriteContext<'_>) -> Result<(), StoreError> + Send + 'static,
    {
        let job = Box::new(PostJob::new(what, command, Arc::clone(&self.stats)));
        let queued = Queued { job, expires: Instant::now() + POST_WAITS, haste: Haste::MayWait };
        self.messages.send(Message::Job(queued)).await.map_err(|_| StoreError::Stopped)
    }

    /// Puts `command` into the queue if there is room. For what nobody misses.
    pub fn try_post<F>(&self, what: &'static str, command: F)
    where
        F: FnOnce(&mut WriteContext<'_>) -> Result<(), StoreError> + Send + 'static,
    {
        let job = Box::new(PostJob::new(what, command, Arc::clone(&self.stats)));
        let queued = Queued { job, expires: Instant::now() + POST_WAITS, haste: Haste::MayWait };
        if self.messages.try_send(Message::Job(queued)).is_err() {
            tracing::debug!(what, "the store's queue is full");
        }
    }

    /// Runs `read` on one snapshot of what is committed, on a blocking thread.
    pub async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let result = self.readers.read(read).await;
        if result.as_ref().is_err_and(StoreError::is_damage) {
            self.suspect.store(true, Ordering::SeqCst);
        }
        result
    }

    /// Rings after each commit that recorded changes; its value is the last sequence number.
    pub fn doorbell(&self) -> watch::Receiver<u64> {
        self.doorbell.clone()
    }

    /// A random name made with the database; the namespace of its items in the keychain.
    pub fn install_id(&self) -> &str {
        &self.install_id
    }

    /// Commands that wait in the queue.
    pub fn queued(&self) -> usize {
        self.messages.max_capacity() - self.messages.capacity()
    }

    /// Grows with each commit that changed registrations, before its callers are answered.
    pub fn registrations_revision(&self) -> u64 {
        self.stats.registrations.load(Ordering::Acquire)
    }

    /// Why the last transaction was not stored; none once one is again.
    pub fn fault(&self) -> Option<StoreError> {
        self.stats.fault()
    }

    pub fn counts(&self) -> WriterCounts {
        self.stats.read()
    }

    /// Returns when the writer takes no more commands: closed, or dead. Where nobody closed it, the
    /// process must say so and leave, for nothing can be acknowledged.
    pub async fn stopped(&self) {
        self.messages.closed().await;
    }

    /// How long the database and its write-ahead log are, in octets.
    pub fn octets(&self) -> [u64; 2] {
        // Looked at without opening: closing a descriptor of our own would drop SQLite's locks.
        [open::FILE_NAME.to_owned(), format!("{}-wal", open::FILE_NAME)]
            .map(|name| std::fs::metadata(self.folder.join(name)).map_or(0, |found| found.len()))
    }

    /// When the newest copy was made, in Unix milliseconds; none: there is no copy. Blocks for a look at the folder.
    pub fn last_backup_ms(&self) -> Result<Option<i64>, OpenError> {
        Ok(backup::newest_first(&self.folder)?.first().and_then(|path| backup::made_at_ms(path)))
    }

    /// The first fault that a check of the whole file finds; none: it is sound. Takes about 1.5 ms a megabyte.
    pub async fn check(&self) -> Result<Option<String>, StoreError> {
        self.read(|connection| {
            let first: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            Ok((first != "ok").then_some(first))
        })
        .await
    }

    /// Copies the store now; the path of the copy.
    pub async fn back_up(&self, now_ms: i64) -> Result<PathBuf, OpenError> {
        let folder = self.folder.clone();
        let copied = tokio::task::spawn_blocking(move || backup::back_up(&folder, now_ms));
        copied.await.unwrap_or_else(|_| {
            Err(OpenError::Store { path: self.folder.join(open::FILE_NAME), source: StoreError::Stopped })
        })
    }

    /// Copies the store where the newest copy is a day old; the path of the new one.
    pub async fn back_up_if_due(&self, now_ms: i64) -> Result<Option<PathBuf>, OpenError> {
        let folder = self.folder.clone();
        let copied = tokio::task::spawn_blocking(move || {
            if backup::is_due(&folder, now_ms)? {
                backup::back_up(&folder, now_ms).map(Some)
            } else {
                Ok(None)
            }
        });
        copied.await.unwrap_or_else(|_| {
            Err(OpenError::Store { path: self.folder.join(open::FILE_NAME), source: StoreError::Stopped })
        })
    }

    /// Stores what is queued, marks the store as closed and closes it. After `limit` the caller is told
    /// [`StoreError::Late`] and may leave: what was acknowledged is safe, the next start checks the file.
    pub async fn close(&self, limit: Duration) -> Result<(), StoreError> {
        self.readers.close();
        let (done, closed) = oneshot::channel();
        let close = async {
            self.messages.send(Message::Close(done)).await.map_err(|_| StoreError::Stopped)?;
            closed.await.map_err(|_| StoreError::Stopped)?
        };
        tokio::time::timeout(limit, close).await.unwrap_or(Err(StoreError::Late))
    }
}
