//! Which addresses may be called back: the judge of a target's text, host, port, numbers and DNS answers.
//!
//! Pure: looking names up and connecting is done elsewhere, and everything that comes of it is judged here,
//! at registration and again at every attempt. Little is allowed: `https`, a host written as the URL
//! standard would write it, a public address. The one exception is a target on this machine that its user
//! approved, see [`LoopbackTarget`].
//!
//! | question | room |
//! |---|---|
//! | the text of a URL | [`written`] |
//! | the name of a host | [`name`] |
//! | the port | [`port`] |
//! | a numeric address | [`address`] |
//! | the answers to a lookup, and who really answered | [`answers`] |

pub mod address;
pub mod answers;
pub mod name;
pub mod port;
pub mod written;

pub use address::{AddressClass, classify};
pub use answers::{AnswerFault, Surroundings};
pub use written::{CallbackTarget, LoopbackTarget, TargetHost};

/// Why a target's text is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    #[error("it is empty")]
    Empty,
    #[error("it is longer than 2048 octets")]
    TooLong,
    #[error("it holds a space or a control character")]
    ControlOrSpace,
    #[error("it holds characters beyond ASCII; write an international name in its xn-- form")]
    NonAscii,
    #[error("it holds a backslash")]
    Backslash,
    #[error("it must begin with https://")]
    Scheme,
    #[error("it is no URL")]
    Malformed,
    #[error("it holds a user name or password; register them as authentication")]
    Userinfo,
    #[error("it holds a fragment, which is never sent")]
    Fragment,
    #[error("its port is not one that callbacks may go to")]
    Port,
    #[error("its host is not written in its plain form")]
    HostNotCanonical,
    #[error("its host ends in a dot")]
    HostTrailingDot,
    #[error("its host is no valid name")]
    HostBadLabel,
    #[error("its host has one label only, which names a machine nearby")]
    HostSingleLabel,
    #[error("its host is a name for local or special use")]
    HostSpecialUse,
    #[error("its host is not a public address")]
    Address(AddressClass),
}

impl Refusal {
    /// The stable word for records, answers and tests.
    pub fn code(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLong => "too_long",
            Self::ControlOrSpace => "control_or_space",
            Self::NonAscii => "non_ascii",
            Self::Backslash => "backslash",
            Self::Scheme => "scheme",
            Self::Malformed => "malformed",
            Self::Userinfo => "userinfo",
            Self::Fragment => "fragment",
            Self::Port => "port",
            Self::HostNotCanonical => "host_not_canonical",
            Self::HostTrailingDot => "host_trailing_dot",
            Self::HostBadLabel => "host_bad_label",
            Self::HostSingleLabel => "host_single_label",
            Self::HostSpecialUse => "host_special_use",
            Self::Address(class) => class.code(),
        }
    }
}
