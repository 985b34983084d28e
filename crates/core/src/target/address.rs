//! Which numeric addresses belong to the public internet.
//!
//! IPv4: everything but the IANA special-purpose registry and the addresses at which clouds answer about a
//! machine. IPv6: nothing but 2000::/3, without the parts of it that embed IPv4, lead through a tunnel or are
//! set aside; so mapped, translated, unique-local, link-local and unallocated space all fall.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is not one of the public internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressClass {
    Unspecified,
    Loopback,
    Private,
    LinkLocal,
    /// Where a cloud tells a machine about itself, credentials included.
    Metadata,
    /// Shared address space of providers, and of overlay networks.
    Cgnat,
    Documentation,
    Benchmark,
    Multicast,
    Broadcast,
    /// An IPv6 address that holds an IPv4 one.
    EmbeddedV4,
    /// Set aside, or not allocated.
    Reserved,
}

impl AddressClass {
    pub fn code(self) -> &'static str {
        match self {
            Self::Unspecified => "ip_unspecified",
            Self::Loopback => "ip_loopback",
            Self::Private => "ip_private",
            Self::LinkLocal => "ip_link_local",
            Self::Metadata => "ip_metadata",
            Self::Cgnat => "ip_cgnat",
            Self::Documentation => "ip_documentation",
            Self::Benchmark => "ip_benchmark",
            Self::Multicast => "ip_multicast",
            Self::Broadcast => "ip_broadcast",
            Self::EmbeddedV4 => "ip_embedded_v4",
            Self::Reserved => "ip_reserved",
        }
    }
}

type V4Row = (Ipv4Addr, u32, AddressClass);
type V6Row = (Ipv6Addr, u32, AddressClass);

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u32, class: AddressClass) -> V4Row {
    (Ipv4Addr::new(a, b, c, d), length, class)
}

const fn v6(head: [u16; 4], length: u32, class: AddressClass) -> V6Row {
    (Ipv6Addr::new(head[0], head[1], head[2], head[3], 0, 0, 0, 0), length, class)
}

/// The first row that fits decides.
const V4: &[V4Row] = &[
    v4(169, 254, 169, 254, 32, AddressClass::Metadata),
    v4(100, 100, 100, 200, 32, AddressClass::Metadata),
    v4(168, 63, 129, 16, 32, AddressClass::Metadata),
    v4(192, 0, 0, 192, 32, AddressClass::Metadata),
    v4(0, 0, 0, 0, 32, AddressClass::Unspecified),
    v4(255, 255, 255, 255, 32, AddressClass::Broadcast),
    v4(0, 0, 0, 0, 8, AddressClass::Reserved),
    v4(10, 0, 0, 0, 8, AddressClass::Private),
    v4(100, 64, 0, 0, 10, AddressClass::Cgnat),
    v4(127, 0, 0, 0, 8, AddressClass::Loopback),
    v4(169, 254, 0, 0, 16, AddressClass::LinkLocal),
    v4(172, 16, 0, 0, 12, AddressClass::Private),
    v4(192, 0, 0, 0, 24, AddressClass::Reserved),
    v4(192, 0, 2, 0, 24, AddressClass::Documentation),
    v4(192, 31, 196, 0, 24, AddressClass::Reserved),
    v4(192, 52, 193, 0, 24, AddressClass::Reserved),
    v4(192, 88, 99, 0, 24, AddressClass::Reserved),
    v4(192, 168, 0, 0, 16, AddressClass::Private),
    v4(192, 175, 48, 0, 24, AddressClass::Reserved),
    v4(198, 18, 0, 0, 15, AddressClass::Benchmark),
    v4(198, 51, 100, 0, 24, AddressClass::Documentation),
    v4(203, 0, 113, 0, 24, AddressClass::Documentation),
    v4(224, 0, 0, 0, 4, AddressClass::Multicast),
    v4(240, 0, 0, 0, 4, AddressClass::Reserved),
];

/// Before the rule that nothing outside of 2000::/3 is public, these name what is seen there; after it, what is
/// not public within. The first row that fits decides.
const V6: &[V6Row] = &[
    (Ipv6Addr::UNSPECIFIED, 128, AddressClass::Unspecified),
    (Ipv6Addr::LOCALHOST, 128, AddressClass::Loopback),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128, AddressClass::Metadata),
    // IPv4-compatible, mapped and translated.
    (Ipv6Addr::UNSPECIFIED, 96, AddressClass::EmbeddedV4),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, AddressClass::EmbeddedV4),
    (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96, AddressClass::EmbeddedV4),
    // NAT64, well-known and local.
    v6([0x64, 0xff9b, 0, 0], 96, AddressClass::EmbeddedV4),
    v6([0x64, 0xff9b, 1, 0], 48, AddressClass::EmbeddedV4),
    v6([0x100, 0, 0, 0], 64, AddressClass::Reserved),
    // Teredo.
    v6([0x2001, 0, 0, 0], 32, AddressClass::EmbeddedV4),
    v6([0x2001, 0, 0, 0], 23, AddressClass::Reserved),
    v6([0x2001, 0xdb8, 0, 0], 32, AddressClass::Documentation),
    // 6to4.
    v6([0x2002, 0, 0, 0], 16, AddressClass::EmbeddedV4),
    v6([0x2620, 0x4f, 0x8000, 0], 48, AddressClass::Reserved),
    v6([0x3fff, 0, 0, 0], 20, AddressClass::Documentation),
    v6([0xfc00, 0, 0, 0], 7, AddressClass::Private),
    v6([0xfe80, 0, 0, 0], 10, AddressClass::LinkLocal),
    v6([0xfec0, 0, 0, 0], 10, AddressClass::Private),
    v6([0xff00, 0, 0, 0], 8, AddressClass::Multicast),
];

/// Why `address` is not of the public internet; `None` where it is.
pub fn classify(address: IpAddr) -> Option<AddressClass> {
    match address {
        IpAddr::V4(address) => {
            V4.iter().find(|(base, length, _)| within_v4(address, *base, *length)).map(|(_, _, class)| *class)
        }
        IpAddr::V6(address) => classify_v6(address),
    }
}

fn classify_v6(address: Ipv6Addr) -> Option<AddressClass> {
    let named = V6.iter().find(|(base, length, _)| within_v6(address, *base, *length));
    if let Some((_, _, class)) = named {
        return Some(*class);
    }
    if !within_v6(address, Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3) {
        return Some(AddressClass::Reserved);
    }
    // ISATAP (RFC 5214 §6.1): an interface identifier of 0000:5efe or 0200:5efe and an IPv4 address.
    let parts = address.segments();
    let is_isatap = parts[5] == 0x5efe && (parts[4] == 0 || parts[4] == 0x200);
    is_isatap.then_some(AddressClass::EmbeddedV4)
}

/// Whether `address` is one of NAT64's well-known prefix, which networks without IPv4 add to every answer.
pub(super) fn is_nat64(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => within_v6(address, Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96),
    }
}

fn within_v4(address: Ipv4Addr, base: Ipv4Addr, length: u32) -> bool {
    let differs = u32::from(address) ^ u32::from(base);
    differs.leading_zeros() >= length
}

fn within_v6(address: Ipv6Addr, base: Ipv6Addr, length: u32) -> bool {
    let differs = u128::from(address) ^ u128::from(base);
    differs.leading_zeros() >= length
}

/// Whether `address` is among the first `length` bits of `base`; two families never are.
pub(super) fn within(address: IpAddr, base: IpAddr, length: u8) -> bool {
    match (address, base) {
        (IpAddr::V4(address), IpAddr::V4(base)) => within_v4(address, base, u32::from(length)),
        (IpAddr::V6(address), IpAddr::V6(base)) => within_v6(address, base, u32::from(length)),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

#[cfg(test)]
mod tests;
