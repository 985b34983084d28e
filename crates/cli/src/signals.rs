//! The signals that ask a program in the foreground to stop.

use crate::failure::Failure;

/// SIGINT and SIGTERM; Ctrl-C elsewhere.
pub struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// From now on the signals are ours to act on.
    pub fn listen() -> Result<Self, Failure> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let failed =
                |error| Failure::new("start_failed", format!("failed to listen for signals: {error}"));
            Ok(Self {
                interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
                terminate: signal(SignalKind::terminate()).map_err(failed)?,
            })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Returns when one arrives.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => (),
            _ = self.terminate.recv() => (),
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whoever signals again does not want to wait for a clean stop.
    pub fn second_leaves_at_once(mut self) {
        tokio::spawn(async move {
            self.next().await;
            // As a shell tells a death by SIGINT.
            std::process::exit(130);
        });
    }
}
