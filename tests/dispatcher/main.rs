//! Callbacks that leave, from outside against the finished program: to receivers in a network of the test's own, to
//! programs on this machine, over kills and floods.

mod by_hand;
mod flood;
mod keyring;
mod kills;
mod names;
mod network;
mod receivers;
mod shipped;
mod stage;
mod world;
