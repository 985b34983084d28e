//! The desktop as the worker has it: where notices are shown, what it said of one, and what users press.

use taskbell_core::notice::Urgency;

use super::{Notices, OtherWay};
use crate::store::notices::NoticeOutcome;

#[cfg(target_os = "linux")]
use super::freedesktop;

/// One notice for the desktop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bubble {
    /// A newer one under the same tag takes its place.
    pub(super) tag: String,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) urgency: Urgency,
    pub(super) silent: bool,
    /// Stays until it is closed.
    pub(super) stays: bool,
    pub(super) can_snooze: bool,
    /// The one it takes the place of.
    pub(super) replaces: Option<u32>,
}

/// Why a notice was not shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ShowError {
    #[error("there is no desktop session: {0}")]
    NoDesktop(String),
    #[error("no notification service runs")]
    Absent,
    #[error("the notification service did not answer within 2 s")]
    Hung,
    #[error("the notification service does not let us: {0}")]
    NotPermitted(String),
    #[error("the notification service refused: {0}")]
    Refused(String),
}

impl ShowError {
    pub(super) fn outcome(&self) -> NoticeOutcome {
        match self {
            Self::NoDesktop(_) => NoticeOutcome::NoDesktop,
            Self::NotPermitted(_) => NoticeOutcome::NotPermitted,
            Self::Absent | Self::Hung | Self::Refused(_) => NoticeOutcome::Failed,
        }
    }
}

/// What the desktop says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Signal {
    Action {
        id: u32,
        action: String,
    },
    Closed {
        id: u32,
    },
    /// Another service, or none: what was shown is gone.
    Restarted,
}

/// A notice that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OnScreen {
    pub(super) id: u32,
    /// What is less certain of it than of others.
    pub(super) detail: Option<String>,
}

/// The other way tells no errors.
const UNCERTAIN: &str = "handed to the system, which does not tell whether it shows it";

pub(super) enum Desktop {
    /// Nobody shows notices here.
    Absent,
    #[cfg(target_os = "linux")]
    Freedesktop(freedesktop::Freedesktop, Option<OtherWay>),
    #[cfg(not(target_os = "linux"))]
    Other(OtherWay),
}

impl Desktop {
    #[cfg(target_os = "linux")]
    pub(super) fn of(notices: Notices) -> Self {
        let (address, other) = match notices {
            Notices::Recorded => return Self::Absent,
            Notices::Shown => (None, None),
            Notices::ShownOn(address) => (Some(address), None),
            Notices::ShownOr { address, other } => (address, Some(other)),
        };
        Self::Freedesktop(freedesktop::Freedesktop::new(address), other)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn of(notices: Notices) -> Self {
        match notices {
            Notices::ShownOr { other, .. } => Self::Other(other),
            Notices::Recorded | Notices::Shown | Notices::ShownOn(_) => Self::Absent,
        }
    }

    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    pub(super) async fn show(&mut self, bubble: &Bubble) -> Result<OnScreen, ShowError> {
        match self {
            Self::Absent => Err(ShowError::NoDesktop("this engine has no window".to_owned())),
            #[cfg(target_os = "linux")]
            Self::Freedesktop(desktop, other) => match (desktop.show(bubble).await, other) {
                (Ok(id), _) => Ok(OnScreen { id, detail: None }),
                // Only where it is certain that nothing was shown: what hung may still show it.
                (Err(error @ (ShowError::NoDesktop(_) | ShowError::Absent)), Some(other)) => {
                    let id = other.show(bubble).await?;
                    Ok(OnScreen { id, detail: Some(format!("{error}; {UNCERTAIN}")) })
                }
                (Err(error), _) => Err(error),
            },
            #[cfg(not(target_os = "linux"))]
            Self::Other(other) => {
                let id = other.show(bubble).await?;
                Ok(OnScreen { id, detail: Some(UNCERTAIN.to_owned()) })
            }
        }
    }

    pub(super) async fn close(&mut self, id: u32) {
        match self {
            Self::Absent => {}
            #[cfg(not(target_os = "linux"))]
            Self::Other(_) => tracing::debug!(id, "a notice is not taken back here"),
            #[cfg(target_os = "linux")]
            Self::Freedesktop(desktop, _) => desktop.close(id).await,
        }
    }

    /// Never, where nothing is heard of notices.
    pub(super) async fn next_signal(&mut self) -> Signal {
        match self {
            Self::Absent => std::future::pending().await,
            #[cfg(not(target_os = "linux"))]
            Self::Other(other) => other.next_signal().await,
            #[cfg(target_os = "linux")]
            Self::Freedesktop(desktop, None) => desktop.next_signal().await,
            #[cfg(target_os = "linux")]
            Self::Freedesktop(desktop, Some(other)) => tokio::select! {
                signal = desktop.next_signal() => signal,
                signal = other.next_signal() => signal,
            },
        }
    }
}
