//! The engine's proof that it knows the API token, given before it is asked for the token itself.
//!
//! A program that took a stale port answers a challenge wrongly and so never sees the token.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use taskbell_core::credential::Secret;

/// Characters of a challenge at most.
pub const MAX_CHALLENGE: usize = 128;

/// HMAC-SHA256 over the challenge with the token as its key, in lowercase hex.
pub fn prove(token: &Secret, challenge: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(token.expose().as_bytes()).expect("a key of any length");
    mac.update(challenge.as_bytes());
    hex(&mac.finalize().into_bytes())
}

/// Whether `proof` answers the challenge. Takes the same time wherever they differ.
pub fn is_proof(token: &Secret, challenge: &str, proof: &str) -> bool {
    same(&prove(token, challenge), proof)
}

/// Compares by digest, so that neither content nor length shows in the time it takes.
pub(crate) fn same(expected: &str, given: &str) -> bool {
    Sha256::digest(expected).ct_eq(&Sha256::digest(given)).into()
}

/// Fresh random octets in hex: a token, a nonce or a challenge of 256 bits.
pub fn random_text() -> Result<String, getrandom::Error> {
    let mut octets = [0_u8; 32];
    getrandom::fill(&mut octets)?;
    Ok(hex(&octets))
}

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::with_capacity(octets.len() * 2), |mut text, octet| {
        let _ = write!(text, "{octet:02x}"); // Writing to a String cannot fail.
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proof_is_hmac_sha256_in_hex() {
        // RFC 4231, test case 2.
        let proof = prove(&Secret::new("Jefe"), "what do ya want for nothing?");
        assert_eq!(proof, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn only_the_right_token_over_the_right_challenge_is_a_proof() {
        let token = Secret::new("t1");
        let proof = prove(&token, "c");
        assert!(is_proof(&token, "c", &proof));
        assert!(!is_proof(&Secret::new("t2"), "c", &proof));
        assert!(!is_proof(&token, "d", &proof));
        assert!(!is_proof(&token, "c", &proof.to_uppercase()));
        assert!(!is_proof(&token, "c", ""));
    }

    #[test]
    fn random_texts_differ() {
        assert_ne!(random_text().unwrap(), random_text().unwrap());
        assert_eq!(random_text().unwrap().len(), 64);
    }
}
