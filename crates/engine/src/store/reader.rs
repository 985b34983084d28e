//! Reading: a few read-only connections, used on blocking threads, each for one short transaction.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::error::StoreError;
use super::open::open_for_reading;

const READERS: usize = 4;

/// The pool. Connections are made when first needed.
pub(crate) struct Readers {
    folder: PathBuf,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
    closed: AtomicBool,
}

impl Readers {
    pub(crate) fn new(folder: PathBuf) -> Arc<Self> {
        Arc::new(Self {
            folder,
            idle: Mutex::new(Vec::with_capacity(READERS)),
            permits: Semaphore::new(READERS),
            closed: AtomicBool::new(false),
        })
    }

    /// Runs `read` on one snapshot of the store.
    pub(crate) async fn read<T, F>(self: &Arc<Self>, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let _permit = self.permits.acquire().await.map_err(|_| StoreError::Stopped)?;
        let pool = Arc::clone(self);
        let ran = tokio::task::spawn_blocking(move || {
            let connection = match pool.take() {
                Some(connection) => connection,
                None => open_for_reading(&pool.folder)?,
            };
            let transaction = connection.unchecked_transaction()?;
            let result = read(&transaction);
            transaction.finish()?;
            if result.as_ref().is_err_and(StoreError::is_damage) {
                return result; // A connection that met damage is not used again.
            }
            pool.give_back(connection);
            result
        });
        match ran.await {
            Ok(result) => result,
            // The reader panicked, or the runtime is ending.
            Err(_) => Err(StoreError::Stopped),
        }
    }

    /// No more reads; idle connections are closed.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.permits.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn take(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn give_back(&self, connection: Connection) {
        if !self.closed.load(Ordering::SeqCst) {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}
