//! What this machine is called and what lies beside it, asked anew for every attempt.

use taskbell_core::target::Surroundings;

/// This machine's place in its networks.
pub trait Machine: Send + Sync {
    fn surroundings(&self) -> Surroundings;
    /// Whether any interface but the loopback is up and has an address.
    fn is_online(&self) -> bool;
}

/// As the system tells.
pub struct SystemMachine;

impl Machine for SystemMachine {
    fn surroundings(&self) -> Surroundings {
        let interfaces = match if_addrs::get_if_addrs() {
            Ok(interfaces) => interfaces,
            Err(error) => {
                tracing::warn!(%error, "failed to list this machine's addresses; its neighbours are not known");
                return Surroundings::default();
            }
        };
        let on_link = interfaces.iter().map(|interface| match &interface.addr {
            if_addrs::IfAddr::V4(address) => (address.ip.into(), address.prefixlen),
            if_addrs::IfAddr::V6(address) => (address.ip.into(), address.prefixlen),
        });
        Surroundings {
            on_link: on_link.collect(),
            own_addresses: interfaces.iter().map(|interface| interface.addr.ip()).collect(),
        }
    }

    fn is_online(&self) -> bool {
        match if_addrs::get_if_addrs() {
            Ok(interfaces) => interfaces.iter().any(|interface| {
                !interface.addr.is_loopback() && !interface.addr.is_link_local() && interface.is_oper_up()
            }),
            // Not known: then the receiver is to blame.
            Err(_) => true,
        }
    }
}
