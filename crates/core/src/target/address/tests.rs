use proptest::prelude::*;

use super::*;

/// The same rule said a second time without the table: by octets and segments.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, d] = address.octets();
    let private = matches!((a, b), (0 | 10 | 127 | 224..=255, _) | (192, 168) | (169, 254) | (172, 16..=31));
    let shared = matches!((a, b), (100, 64..=127) | (198, 18 | 19));
    let assigned = matches!(
        (a, b, c),
        (192, 0, 0 | 2) | (192, 31, 196) | (192, 52, 193) | (192, 88, 99) | (192, 175, 48)
    );
    let documents = matches!((a, b, c), (198, 51, 100) | (203, 0, 113));
    let special = private || shared || assigned || documents;
    !(special || (a, b, c, d) == (168, 63, 129, 16))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, _, e, f, _, _] = address.segments();
    let special = match (a, b) {
        (0x2001, 0..0x200) | (0x2001, 0xdb8) | (0x2002, _) => true,
        (0x2620, 0x4f) => c == 0x8000,
        (0x3fff, b) => b < 0x1000,
        _ => false,
    };
    (0x2000..0x4000).contains(&a) && !special && !(f == 0x5efe && e & !0x200 == 0)
}

/// Addresses near the edges of the table's rows, where a wrong prefix length shows.
fn near_an_edge() -> impl Strategy<Value = IpAddr> {
    let v4 = (0..V4.len(), any::<u32>(), 0_u32..=32).prop_map(|(row, noise, keep)| {
        let (base, _, _) = V4[row];
        let mask = if keep == 0 { 0 } else { u32::MAX << (32 - keep) };
        IpAddr::V4(Ipv4Addr::from(u32::from(base) ^ (noise & !mask)))
    });
    let v6 = (0..V6.len(), any::<u128>(), 0_u32..=128).prop_map(|(row, noise, keep)| {
        let (base, _, _) = V6[row];
        let mask = if keep == 0 { 0 } else { u128::MAX << (128 - keep) };
        IpAddr::V6(Ipv6Addr::from(u128::from(base) ^ (noise & !mask)))
    });
    prop_oneof![v4, v6]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn table_and_second_formulation_agree_near_every_edge(address in near_an_edge()) {
        prop_assert_eq!(classify(address).is_none(), is_public(address), "{}", address);
    }

    #[test]
    fn table_and_second_formulation_agree_anywhere(v4 in any::<u32>(), v6 in any::<u128>()) {
        // A third of all IPv6 addresses drawn lies in the one range that is public.
        let v6 = if v6 % 3 == 0 { (v6 >> 3) | (1 << 125) } else { v6 };
        for address in [IpAddr::V4(v4.into()), IpAddr::V6(v6.into())] {
            prop_assert_eq!(classify(address).is_none(), is_public(address), "{}", address);
        }
    }

    #[test]
    fn no_address_that_the_standard_library_calls_special_is_public(v4 in any::<u32>()) {
        let address = Ipv4Addr::from(v4);
        let special = address.is_private() || address.is_loopback() || address.is_link_local()
            || address.is_multicast() || address.is_broadcast() || address.is_documentation()
            || address.is_unspecified();
        prop_assert!(!special || classify(address.into()).is_some());
    }
}

#[test]
fn the_first_and_last_address_of_every_range_are_in_it_and_their_neighbours_are_judged_alone() {
    for (base, length, _) in V4 {
        let first = u32::from(*base);
        let last = first | (u32::MAX.checked_shr(*length).unwrap_or(0));
        for inside in [first, last] {
            assert!(classify(IpAddr::V4(inside.into())).is_some(), "{}", Ipv4Addr::from(inside));
        }
        for outside in [first.wrapping_sub(1), last.wrapping_add(1)] {
            let outside = IpAddr::V4(outside.into());
            assert_eq!(classify(outside).is_none(), is_public(outside), "{outside}");
        }
    }
}

#[test]
fn every_embedding_of_an_ipv4_address_is_refused_whatever_it_embeds() {
    for text in [
        "::8.8.8.8",
        "::ffff:8.8.8.8",
        "::ffff:0:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "64:ff9b:1::8.8.8.8",
        "2002:808:808::1",
        "2001:0:808:808::1",
        "2606:4700::5efe:8.8.8.8",
        "2606:4700::200:5efe:808:808",
    ] {
        let address: IpAddr = text.parse().unwrap();
        assert_eq!(classify(address), Some(AddressClass::EmbeddedV4), "{text}");
    }
}
