//! Callbacks asked for at agents and taken at the inbox, from outside against the finished program.

mod documents;
mod front;
mod keyring;
mod peers;
mod reach;
mod stage;
mod tunnels;
mod work;
