//! The dispatcher on a real database, with receivers on this machine that were approved, and a clock that can be
//! set ahead.

mod lanes;
mod records;
mod registering;
mod retries;
mod world;
