//! Callbacks asked for at agents and taken at the inbox, from outside against the finished program.

mod documents;
mod keyring;
mod peers;
mod stage;
mod work;
