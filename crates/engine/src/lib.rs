//!
//! Workers write rows and ring doorbells that carry no data; they do not call each other.
//!
//! | noun | room |
//! |---|---|
//! | the data folder, its lock, `runtime.json` | [`data_dir`] |
//! | the database | [`store`] |

pub mod data_dir;
pub mod store;
