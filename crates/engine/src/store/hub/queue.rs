//! What waits for one listener: bounded, and given up at once where it does not keep up.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::Told;

/// Events that wait for one listener. They are shared by all who listen to the task.
pub(super) const QUEUE: usize = 2_048;
/// Octets that wait for one listener, unless it is a single event.
pub(super) const QUEUE_OCTETS: usize = 4 << 20;

/// What waits for one listener, seen from both ends.
#[derive(Default)]
pub(super) struct Queue {
    pub waiting: VecDeque<Arc<Told>>,
    pub octets: usize,
    /// Nothing more is put in.
    pub closed: bool,
    pub waker: Option<Waker>,
}

pub(super) type Shared = Arc<Mutex<Queue>>;

pub(super) fn lock(queue: &Shared) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn close(queue: &Shared) {
    let waker = {
        let mut queue = lock(queue);
        queue.closed = true;
        queue.waker.take()
    };
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// False: it lags, and is cut. What waited for it is given up at once, for it may never be fetched.
pub(super) fn put(queue: &Shared, told: &Arc<Told>) -> bool {
    let waker = {
        let mut queue = lock(queue);
        let size = told.size();
        let full =
            queue.waiting.len() >= QUEUE || (!queue.waiting.is_empty() && queue.octets + size > QUEUE_OCTETS);
        if full {
            queue.waiting = VecDeque::new();
            queue.closed = true;
        } else {
            queue.octets += size;
            queue.waiting.push_back(Arc::clone(told));
        }
        let waker = queue.waker.take();
        if full {
            drop(queue);
            if let Some(waker) = waker {
                waker.wake();
            }
            return false;
        }
        waker
    };
    if let Some(waker) = waker {
        waker.wake();
    }
    true
}
