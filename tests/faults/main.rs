//! Faults from outside: the finished program while something breaks around it.
//!
//! Each test says what must hold meanwhile and afterwards. Those that need root, a namespace, `libfaketime`
//! or a keyring leave with a printed reason where there is none. `TASKBELL_LONG=1` runs the long variants.

mod answers;
mod clock;
mod kills;
mod logs;
mod process;
mod secrets;
mod starting;
mod store;
mod streams;
mod support;

use std::time::Duration;

/// Long enough for any step here on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A token of the gateways' only owner.
pub const TOKEN: &str = "token-of-alice";
