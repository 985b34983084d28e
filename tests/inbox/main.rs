//! The inbox from outside: what strangers send over raw sockets, and what is on the disk afterwards.
//!
//! Registrations are written into the database of a stopped engine, so that these tests need no agent that
//! registers. Those that need root or `strace` leave with a printed reason where there is none.
//! `TASKBELL_LONG=1` runs the long variants.

mod corpus;
mod disk;
mod floods;
mod kills;
mod load;
mod scene;
mod strace;
mod wire;
mod worth;

use std::time::Duration;

/// Long enough for any step here on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);
