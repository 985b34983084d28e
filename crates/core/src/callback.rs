//! What arrives at the inbox: where it was sent, whether it proves itself, what it claims.
//!
//! A callback is a claim. It makes a task due for reading and never changes one.

mod claim;
mod path;
mod proof;

pub use claim::{Claim, ClaimFault, Shape, read_claim};
pub use path::{PATH_PREFIX, RegistrationPath};
pub use proof::{Digest, Judgement, Presented, Previous, ProofPolicy, ProofWord, Registered, Scheme, judge};
