//! What people see: where it goes, how wide it is, and how a peer's text is kept from steering it.

pub mod clean;
pub mod marks;
pub mod out;
pub mod table;
