//! `client`: programs that may call agents through the gateway.

use clap::Subcommand;
use taskbell_core::ids::ClientName;
use taskbell_core::text;

use crate::failure::Failure;
use crate::session::Session;
use crate::term::table::{Give, Table};

/// Let programs on this machine call your agents through the gateway
#[derive(Debug, Subcommand)]
pub enum Client {
    /// Add a client and print its key, which is shown this once
    #[command(after_help = "Example:\n  taskbell client add editor")]
    Add {
        /// A name of your choice: a-z, 0-9, '-', '_' and '.'
        name: ClientName,
    },
    /// List the clients
    #[command(after_help = "Example:\n  taskbell client list")]
    List,
    /// Take a client's key back
    #[command(after_help = "Example:\n  taskbell client revoke editor")]
    Revoke {
        /// The client's name
        name: ClientName,
    },
}

impl Client {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let out = session.out;
        let engine = session.engine().await?;
        match self {
            Self::Add { name } => {
                let client = engine.add_client(&name).await?;
                if out.is_json() {
                    out.json(&client)?;
                } else {
                    out.line(&client.key)?;
                }
            }
            Self::List => {
                let page = engine.clients().await?;
                if out.is_json() {
                    out.json(&page)?;
                } else {
                    let mut table = Table::new([("NAME", Give::Keep), ("ADDED", Give::Keep)]);
                    for client in &page.items {
                        let added = client.created_at.to_string();
                        table.row([text::plain(client.name.as_str()).into(), text::plain(&added).into()]);
                    }
                    out.table(&table)?;
                }
            }
            Self::Revoke { name } => {
                engine.revoke_client(&name).await?;
                if out.is_json() {
                    out.json(&serde_json::json!({ "revoked": name }))?;
                } else {
                    out.line(&format!("revoked {name}"))?;
                }
            }
        }
        Ok(0)
    }
}
