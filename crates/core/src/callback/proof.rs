//! Whether a callback proves that it comes from whom we registered at.
//!
//! A registration carries a notification token and a credential for `Authorization`, or one of them. Real
//! senders send one or the other, so by default any valid one admits; a wrong one rejects even beside a right
//! one. Only digests are compared, in constant time, and the work is the same whatever is presented.

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// SHA-256 of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    pub fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    fn equals(&self, other: Option<&Self>) -> Choice {
        // Compared with something in any case: the absence of a digest must not be quicker.
        let (known, there) = match other {
            Some(other) => (other.0, Choice::from(1)),
            None => ([0; 32], Choice::from(0)),
        };
        self.0.ct_eq(&known) & there
    }
}

/// How many of the registered proofs a callback must show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProofPolicy {
    #[default]
    Any,
    All,
}

impl ProofPolicy {
    pub fn word(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::All => "all",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Any, Self::All].into_iter().find(|policy| policy.word() == word)
    }
}

/// The scheme of a registered credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    Bearer,
    Basic,
}

impl Scheme {
    pub fn word(self) -> &'static str {
        match self {
            Self::Bearer => "bearer",
            Self::Basic => "basic",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Bearer, Self::Basic].into_iter().find(|scheme| scheme.word() == word)
    }
}

/// What a registration accepts. The default is one that accepts nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Registered {
    pub policy: ProofPolicy,
    pub token: Option<Digest>,
    /// The scheme, and the digest of what stands after it.
    pub credential: Option<(Scheme, Digest)>,
    pub previous: Option<Previous>,
}

/// The proofs before a rotation, which the agent may still use for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Previous {
    pub token: Option<Digest>,
    /// Of the same scheme.
    pub credential: Option<Digest>,
    pub until_ms: i64,
}

/// What a request shows. Header values as received, white space around them removed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Presented<'a> {
    pub token: Option<&'a [u8]>,
    pub authorization: Option<&'a [u8]>,
}

/// What became of one proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProofWord {
    /// Neither registered nor presented.
    Unused,
    Valid,
    /// Valid until shortly after a rotation: the agent has not taken the new one.
    ValidOld,
    Wrong,
    Missing,
}

impl ProofWord {
    pub const ALL: [Self; 5] = [Self::Unused, Self::Valid, Self::ValidOld, Self::Wrong, Self::Missing];

    pub fn word(self) -> &'static str {
        match self {
            Self::Unused => "unused",
            Self::Valid => "valid",
            Self::ValidOld => "valid-old",
            Self::Wrong => "wrong",
            Self::Missing => "missing",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }

    fn is_valid(self) -> bool {
        matches!(self, Self::Valid | Self::ValidOld)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    pub admitted: bool,
    pub token: ProofWord,
    pub credential: ProofWord,
}

/// Judges what a request shows at `now_ms`. An unknown path is judged with [`Registered::default`], so that it
/// costs as much as a wrong secret.
pub fn judge(registered: &Registered, presented: Presented<'_>, now_ms: i64) -> Judgement {
    let previous = registered.previous.as_ref().filter(|previous| now_ms < previous.until_ms);
    let token = judge_one(
        presented.token,
        registered.token.as_ref(),
        previous.and_then(|previous| previous.token.as_ref()),
        Choice::from(1),
    );
    let (credentials, right_scheme) = match presented.authorization {
        None => (None, Choice::from(1)),
        Some(value) => {
            let (scheme, credentials) = split(value);
            let registered = registered.credential.map(|(scheme, _)| scheme.word()).unwrap_or_default();
            (Some(credentials), Choice::from(u8::from(scheme.eq_ignore_ascii_case(registered.as_bytes()))))
        }
    };
    let credential = judge_one(
        credentials,
        registered.credential.as_ref().map(|(_, digest)| digest),
        previous.and_then(|previous| previous.credential.as_ref()),
        right_scheme,
    );
    let words = [token, credential];
    let none_wrong = !words.contains(&ProofWord::Wrong);
    let admitted = none_wrong
        && match registered.policy {
            ProofPolicy::Any => words.into_iter().any(ProofWord::is_valid),
            ProofPolicy::All => {
                !words.contains(&ProofWord::Missing) && words.into_iter().any(ProofWord::is_valid)
            }
        };
    Judgement { admitted, token, credential }
}

fn judge_one(
    presented: Option<&[u8]>,
    registered: Option<&Digest>,
    previous: Option<&Digest>,
    otherwise: Choice,
) -> ProofWord {
    let shown = Digest::of(presented.unwrap_or_default());
    let now = shown.equals(registered) & otherwise;
    let before = shown.equals(previous) & otherwise;
    match (presented.is_some(), registered.is_some() || previous.is_some()) {
        (false, false) => ProofWord::Unused,
        (false, true) => ProofWord::Missing,
        (true, _) if now.into() => ProofWord::Valid,
        (true, _) if before.into() => ProofWord::ValidOld,
        // What was never registered is wrong as well: nobody who knows the registration sends it.
        (true, _) => ProofWord::Wrong,
    }
}

/// The scheme, and what stands after it and one or more spaces (RFC 9110 §11.4). Nothing else separates.
fn split(value: &[u8]) -> (&[u8], &[u8]) {
    let end = value.iter().position(|octet| *octet == b' ').unwrap_or(value.len());
    let (scheme, rest) = value.split_at(end);
    let start = rest.iter().position(|octet| *octet != b' ').unwrap_or(rest.len());
    (scheme, &rest[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000;

    fn both(policy: ProofPolicy) -> Registered {
        Registered {
            policy,
            token: Some(Digest::of(b"tok")),
            credential: Some((Scheme::Bearer, Digest::of(b"sec"))),
            previous: None,
        }
    }

    fn shown<'a>(token: Option<&'a str>, authorization: Option<&'a str>) -> Presented<'a> {
        Presented { token: token.map(str::as_bytes), authorization: authorization.map(str::as_bytes) }
    }

    fn admits(registered: &Registered, token: Option<&str>, authorization: Option<&str>) -> bool {
        judge(registered, shown(token, authorization), NOW).admitted
    }

    #[test]
    fn any_one_valid_proof_admits() {
        let any = both(ProofPolicy::Any);
        assert!(admits(&any, Some("tok"), None));
        assert!(admits(&any, None, Some("Bearer sec")));
        assert!(admits(&any, Some("tok"), Some("Bearer sec")));
        assert!(!admits(&any, None, None));
    }

    #[test]
    fn a_wrong_proof_rejects_even_beside_a_right_one() {
        let any = both(ProofPolicy::Any);
        assert!(!admits(&any, Some("tok"), Some("Bearer other")));
        assert!(!admits(&any, Some("other"), Some("Bearer sec")));
        assert!(!admits(&any, Some("tok"), Some("Digest username=x")));
    }

    #[test]
    fn all_wants_every_registered_proof() {
        let all = both(ProofPolicy::All);
        assert!(admits(&all, Some("tok"), Some("Bearer sec")));
        assert!(!admits(&all, Some("tok"), None));
        assert!(!admits(&all, None, Some("Bearer sec")));
        let token_only = Registered { credential: None, ..all };
        assert!(admits(&token_only, Some("tok"), None), "of what is registered, not of what there could be");
    }

    #[test]
    fn a_proof_that_was_never_registered_is_wrong() {
        let token_only = Registered { credential: None, ..both(ProofPolicy::Any) };
        let judged = judge(&token_only, shown(Some("tok"), Some("Bearer sec")), NOW);
        assert_eq!((judged.admitted, judged.credential), (false, ProofWord::Wrong));
    }

    #[test]
    fn a_registration_without_proofs_and_an_unknown_one_admit_nobody() {
        for policy in [ProofPolicy::Any, ProofPolicy::All] {
            let nothing = Registered { policy, ..Registered::default() };
            for (token, authorization) in
                [(None, None), (Some(""), None), (None, Some("")), (None, Some(" "))]
            {
                assert!(!admits(&nothing, token, authorization), "{token:?} {authorization:?}");
            }
        }
    }

    #[test]
    fn the_scheme_ignores_case_and_is_followed_by_spaces_only() {
        let any = both(ProofPolicy::Any);
        for right in ["bearer sec", "BEARER   sec"] {
            assert!(admits(&any, None, Some(right)), "{right:?}");
        }
        for wrong in
            ["Bearer\tsec", "Bearersec", "sec", "Bearer", "Bearer ", "Basic sec", "Bearer sec, Bearer sec"]
        {
            assert!(!admits(&any, None, Some(wrong)), "{wrong:?}");
        }
    }

    #[test]
    fn no_part_of_a_secret_is_enough() {
        let any = both(ProofPolicy::Any);
        for wrong in ["", "t", "to", "tokk", "Tok", "tok "] {
            assert!(!admits(&any, Some(wrong), None), "{wrong:?}");
        }
    }

    #[test]
    fn after_a_rotation_the_old_proofs_hold_until_their_time() {
        let rotated = Registered {
            token: Some(Digest::of(b"new-tok")),
            credential: Some((Scheme::Bearer, Digest::of(b"new-sec"))),
            previous: Some(Previous {
                token: Some(Digest::of(b"tok")),
                credential: Some(Digest::of(b"sec")),
                until_ms: NOW + 1,
            }),
            policy: ProofPolicy::Any,
        };
        let old = shown(Some("tok"), Some("Bearer sec"));
        let judged = judge(&rotated, old, NOW);
        assert_eq!((judged.admitted, judged.token), (true, ProofWord::ValidOld));
        assert!(!judge(&rotated, old, NOW + 1).admitted);
        assert_eq!(judge(&rotated, shown(Some("new-tok"), None), NOW + 1).token, ProofWord::Valid);
    }

    #[test]
    fn what_was_shown_and_what_was_not_is_told_apart() {
        let any = both(ProofPolicy::Any);
        let judged = judge(&any, shown(Some("tok"), None), NOW);
        assert_eq!((judged.token, judged.credential), (ProofWord::Valid, ProofWord::Missing));
        for word in ProofWord::ALL {
            assert_eq!(ProofWord::from_word(word.word()), Some(word));
        }
    }
}
