//! Ports that can be closed and opened again.
//!
//! A port picked by binding to 0 lies in the range from which the kernel serves
//! every outgoing connection, so it may be gone when an agent comes back to it.
//! These lie below that range and are handed out once in a process.

use std::{
    net::TcpListener,
    sync::atomic::{AtomicU16, Ordering},
};

const FIRST: u16 = 12_000;
const COUNT: u16 = 20_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A loopback port that nobody listens on at this moment.
///
/// # Panics
/// When no port of the whole range is free.
pub fn free_port() -> u16 {
    // Two test programs at once start at different places.
    let start = u16::try_from(u64::from(std::process::id()) * 97 % u64::from(COUNT)).expect("below COUNT");
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (u32::from(start) + u32::from(step)).rem_euclid(u32::from(COUNT)) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free loopback port between {FIRST} and {}", FIRST + COUNT);
}
