//! Proof that the tools of these tests do what they say: a proxy that does not
//! cut, or a search that finds nothing, would make every other test pass.

mod canary;
mod field_cases;
mod gateways;
mod peers;
mod proxy;
mod session;
