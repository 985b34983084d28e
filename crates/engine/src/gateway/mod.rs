//! The local gateway: agents of this user as A2A endpoints for programs on this machine.
//!
//! | question | room |
//! |---|---|
//! | who may call | [`clients`] |

pub mod clients;

use crate::parts::Parts;
use crate::store::StoreError;
use clients::Clients;

/// What the gateway's rooms share. Clones share it.
#[derive(Clone)]
pub struct Gateway {
    parts: Parts,
    clients: Clients,
}

impl Gateway {
    pub async fn load(parts: Parts) -> Result<Self, StoreError> {
        let clients = Clients::load(parts.store().clone()).await?;
        Ok(Self { parts, clients })
    }

    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    pub fn parts(&self) -> &Parts {
        &self.parts
    }
}
