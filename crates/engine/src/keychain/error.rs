//! Why the keychain could not do something. No variant holds a secret.

/// A failed call. Told apart by the stores' own codes, never by text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeychainError {
    /// There is no store to talk to: no D-Bus session, no Secret Service, no collection.
    #[error("this session has no keyring ({reason})")]
    NoStore { reason: String },
    /// The keyring is locked and was not unlocked for us.
    #[error("the keyring is locked")]
    Locked,
    /// The store says that it has no such item. A store that lost its collection says the same,
    /// so this does not prove that there never was one.
    #[error("the keyring has no item {handle}")]
    NoEntry { handle: String },
    /// No answer within the deadline; whether a write took place is unknown.
    #[error("the keyring did not answer in time")]
    TimedOut,
    /// What was written a moment ago could not be read back: the store keeps nothing.
    #[error("the keyring accepts secrets but does not keep them")]
    NotKept,
    /// A part of a long value is missing or is not the one that was written. Nothing was returned.
    #[error("the keyring's item {handle} is incomplete")]
    Incomplete { handle: String },
    /// The item was not written by this program, or by a newer one.
    #[error("the keyring's item {handle} is not readable")]
    Unreadable { handle: String },
    /// More than the store takes even in parts.
    #[error("the value for {handle} is too long for the keyring")]
    TooLong { handle: String },
    /// The passphrase does not open the file, or the file was changed.
    #[error("the passphrase does not open the credential file")]
    WrongPassphrase,
    /// The credential file was chosen and there is no passphrase.
    #[error("the credential file needs a passphrase: set TASKBELL_PASSPHRASE")]
    NoPassphrase,
    /// Too many calls are waiting.
    #[error("the keyring has too many calls waiting")]
    Busy,
    /// The thread that talks to the store is gone.
    #[error("the keyring is stopped")]
    Stopped,
    /// Reading or writing the credential file failed.
    #[error("failed to {doing} the credential file ({kind})")]
    File { doing: &'static str, kind: std::io::ErrorKind },
    /// Any other answer of the store.
    #[error("the keyring failed ({reason})")]
    Other { reason: String },
}

impl KeychainError {
    /// The store as a whole is out of reach, whatever was asked of it.
    pub(super) fn is_of_the_store(&self) -> bool {
        match self {
            Self::NoStore { .. }
            | Self::Locked
            | Self::TimedOut
            | Self::WrongPassphrase
            | Self::NoPassphrase
            | Self::Stopped
            | Self::File { .. } => true,
            Self::NoEntry { .. }
            | Self::NotKept
            | Self::Incomplete { .. }
            | Self::Unreadable { .. }
            | Self::TooLong { .. }
            | Self::Busy
            | Self::Other { .. } => false,
        }
    }

    /// Whether a code is that of a failure of the store as a whole.
    pub(crate) fn is_code_of_the_store(code: &str) -> bool {
        let reason = String::new();
        [
            Self::NoStore { reason },
            Self::Locked,
            Self::TimedOut,
            Self::WrongPassphrase,
            Self::NoPassphrase,
            Self::Stopped,
            Self::File { doing: "read", kind: std::io::ErrorKind::Other },
        ]
        .iter()
        .any(|error| error.is_of_the_store() && error.code() == code)
    }

    /// The stable word that scripts and the page match on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoStore { .. } => "keyring_none",
            Self::Locked => "keyring_locked",
            Self::NoEntry { .. } => "keyring_no_entry",
            Self::TimedOut => "keyring_timed_out",
            Self::NotKept => "keyring_not_kept",
            Self::Incomplete { .. } => "keyring_incomplete",
            Self::Unreadable { .. } => "keyring_unreadable",
            Self::TooLong { .. } => "keyring_too_long",
            Self::WrongPassphrase => "keyring_wrong_passphrase",
            Self::NoPassphrase => "keyring_no_passphrase",
            Self::Busy => "keyring_busy",
            Self::Stopped => "keyring_stopped",
            Self::File { .. } => "keyring_file",
            Self::Other { .. } => "keyring_failed",
        }
    }

    /// Whether waiting may help: work that needs the secret waits and uses up no try.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::NoStore { .. }
                | Self::Locked
                | Self::TimedOut
                | Self::Busy
                | Self::File { .. }
                | Self::Other { .. }
        )
    }
}
