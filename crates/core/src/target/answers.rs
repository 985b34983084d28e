//! Judges what a lookup answered, and who was connected to.

use std::net::IpAddr;

use super::address::{self, AddressClass, classify};

/// What this machine is and what lies beside it on its networks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    pub own_addresses: Vec<IpAddr>,
    /// Address and length of the prefixes that are reached without a router.
    pub on_link: Vec<(IpAddr, u8)>,
}

impl Surroundings {
    fn judge(&self, address: IpAddr) -> Result<(), AnswerFault> {
        if let Some(class) = classify(address) {
            return Err(AnswerFault::Forbidden(class));
        }
        if self.own_addresses.contains(&address) {
            return Err(AnswerFault::OwnAddress);
        }
        // A prefix of length 0 would be a default route: nothing is beside us by that.
        let beside = |(base, length): &(IpAddr, u8)| *length > 0 && address::within(address, *base, *length);
        if self.on_link.iter().any(beside) {
            return Err(AnswerFault::OnLink);
        }
        Ok(())
    }
}

/// Why none of the answers to a lookup is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AnswerFault {
    #[error("the name has no address")]
    Empty,
    #[error("the name has no address but synthesised ones")]
    NoneUsable,
    #[error("the name leads to an address that is not public")]
    Forbidden(AddressClass),
    #[error("the name leads to a neighbour on this machine's network")]
    OnLink,
    #[error("the name leads to this machine")]
    OwnAddress,
}

impl AnswerFault {
    pub fn code(self) -> &'static str {
        match self {
            Self::Empty => "dns_empty",
            Self::NoneUsable => "dns_no_usable_answer",
            Self::Forbidden(_) => "dns_forbidden_answer",
            Self::OnLink => "ip_on_link",
            Self::OwnAddress => "ip_own_address",
        }
    }

    /// Whether it is our rule and not the network's state.
    pub fn is_policy(self) -> bool {
        match self {
            Self::Forbidden(_) | Self::OnLink | Self::OwnAddress => true,
            Self::Empty | Self::NoneUsable => false,
        }
    }
}

/// The addresses that may be connected to, IPv6 and IPv4 in turn. One forbidden answer refuses all: a mixed
/// answer is the mark of a name made to lead inside. Only answers of NAT64's well-known prefix are dropped,
/// since networks without IPv4 add them to every name.
pub fn judge_answers(answers: &[IpAddr], surroundings: &Surroundings) -> Result<Vec<IpAddr>, AnswerFault> {
    if answers.is_empty() {
        return Err(AnswerFault::Empty);
    }
    let usable: Vec<IpAddr> = answers.iter().copied().filter(|answer| !address::is_nat64(*answer)).collect();
    if usable.is_empty() {
        return Err(AnswerFault::NoneUsable);
    }
    for answer in &usable {
        surroundings.judge(*answer)?;
    }
    Ok(in_turn(&usable))
}

/// A host that is written as a number, at an attempt. At registration its class alone is judged, since a
/// machine may be elsewhere by then.
pub fn judge_literal(address: IpAddr, surroundings: &Surroundings) -> Result<Vec<IpAddr>, AnswerFault> {
    surroundings.judge(address)?;
    Ok(vec![address])
}

/// Whether the peer of a connection is one of those judged.
pub fn is_vetted(peer: IpAddr, vetted: &[IpAddr]) -> bool {
    vetted.contains(&peer)
}

fn in_turn(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let mut sixes = addresses.iter().filter(|address| address.is_ipv6());
    let mut fours = addresses.iter().filter(|address| address.is_ipv4());
    let mut all: Vec<IpAddr> = Vec::new();
    loop {
        let (six, four) = (sixes.next(), fours.next());
        if six.is_none() && four.is_none() {
            return all;
        }
        for address in six.into_iter().chain(four) {
            if !all.contains(address) {
                all.push(*address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn families_are_tried_in_turn_and_none_twice() {
        let answers = ips(&["1.1.1.1", "1.1.1.1", "8.8.8.8", "9.9.9.9", "2606:4700::1", "2606:4700::2"]);
        let judged = judge_answers(&answers, &Surroundings::default()).unwrap();
        assert_eq!(judged, ips(&["2606:4700::1", "1.1.1.1", "2606:4700::2", "8.8.8.8", "9.9.9.9"]));
    }

    #[test]
    fn a_neighbour_or_this_machine_is_refused_in_either_family() {
        let surroundings = Surroundings {
            own_addresses: ips(&["93.184.216.34"]),
            on_link: vec![("93.184.217.0".parse().unwrap(), 24), ("2a02:1:2:3::".parse().unwrap(), 64)],
        };
        let judge = |text: &str| judge_answers(&ips(&[text]), &surroundings).map(|_| ());
        assert_eq!(judge("93.184.216.34"), Err(AnswerFault::OwnAddress));
        assert_eq!(judge("93.184.217.9"), Err(AnswerFault::OnLink));
        assert_eq!(judge("2a02:1:2:3::77"), Err(AnswerFault::OnLink));
        assert_eq!(judge("2a02:1:2:4::77"), Ok(()));
        let literal = judge_literal("93.184.217.9".parse().unwrap(), &surroundings);
        assert_eq!(literal, Err(AnswerFault::OnLink));
    }

    #[test]
    fn a_mapped_peer_is_not_taken_for_the_address_it_holds() {
        assert!(!is_vetted("::ffff:1.1.1.1".parse().unwrap(), &ips(&["1.1.1.1"])));
    }
}
