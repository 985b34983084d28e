//! Work for one request, whose panic is that request's alone.
//!
//! A panic anywhere else ends the process: nobody knows what it left half done. The program's panic hook asks
//! [`is_guarded`] which of the two it is.

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// The work panicked. What it said went to the panic hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Panicked;

/// Whether this thread works for one request right now.
pub fn is_guarded() -> bool {
    GUARDED.get()
}

/// Runs `work`; what it shares with others must be sound wherever it may panic.
pub(crate) async fn guarded<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        let before = GUARDED.replace(true);
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        GUARDED.set(before);
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_and_nothing_around_it_is_guarded() {
        let work = guarded(async {
            tokio::task::yield_now().await;
            assert!(is_guarded());
            std::hint::black_box(None::<u8>).unwrap()
        });
        assert_eq!(work.await, Err(Panicked));
        assert!(!is_guarded());
        assert_eq!(guarded(async { 7 }).await, Ok(7));
    }
}
