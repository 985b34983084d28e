//! The command line of the window's program. Most people never see it: it starts from a menu.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use taskbell_engine::api::window::Windows;
use taskbell_engine::data_dir::{DataDir, DataDirError};
use taskbell_engine::inbox;
use taskbell_engine::keychain::{KeychainError, passphrase_from_environment};
use taskbell_engine::listen::DEFAULT_ADDRESS;
use taskbell_engine::notifier::{Notices, OtherWay};
use taskbell_engine::running::{CredentialStore, EngineOptions, PortsTaken};

/// The window of Taskbell: what waits for you, and what runs.
#[derive(Debug, Parser)]
#[command(name = "taskbell-desktop", version, max_term_width = 100)]
pub struct Options {
    /// A link of the form taskbell://task/AGENT/TASKID, as the desktop hands it over
    #[arg(value_name = "LINK")]
    link: Option<String>,
    /// Start in the tray, without a window on the screen
    #[arg(long)]
    hidden: bool,
    /// The folder where the engine keeps its data [default: the platform's]
    #[arg(long, value_name = "DIR", env = "TASKBELL_DATA_DIR", hide_env_values = true)]
    data_dir: Option<PathBuf>,
    /// Where local programs find the gateway, the API and the page; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value_t = DEFAULT_ADDRESS)]
    gateway: SocketAddr,
    /// Where callbacks arrive, through a tunnel or proxy of yours; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value_t = inbox::DEFAULT_ADDRESS)]
    inbox: SocketAddr,
    /// Run the built-in agent too, named demo
    #[arg(long, env = "TASKBELL_DEMO", value_parser = clap::builder::FalseyValueParser::new(), hide_env_values = true)]
    demo: bool,
    /// Where secrets are kept: the system's keyring, an encrypted file (TASKBELL_PASSPHRASE), or memory
    #[arg(long, value_name = "WHERE", value_enum, default_value_t)]
    credential_store: Store,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Store {
    #[default]
    Os,
    File,
    Memory,
}

impl Options {
    pub fn link(&self) -> Option<&str> {
        self.link.as_deref()
    }

    /// A link is somebody who wants to see something.
    pub fn starts_hidden(&self) -> bool {
        self.hidden && self.link.is_none()
    }

    pub fn data_dir(&self) -> Result<DataDir, DataDirError> {
        // An empty variable is as good as none.
        match self.data_dir.as_ref().filter(|path| !path.as_os_str().is_empty()) {
            Some(path) => Ok(DataDir::at(path)),
            None => DataDir::of_platform(),
        }
    }

    /// What the engine in this process is started with.
    pub fn engine(
        &self,
        data_dir: DataDir,
        windows: Windows,
        other_way: OtherWay,
    ) -> Result<EngineOptions, KeychainError> {
        Ok(EngineOptions {
            data_dir,
            gateway: self.gateway,
            inbox: self.inbox,
            ports_taken: PortsTaken::Retry,
            credential_store: match self.credential_store {
                Store::Os => CredentialStore::Os,
                Store::File => CredentialStore::File { passphrase: passphrase_from_environment()? },
                Store::Memory => CredentialStore::Memory,
            },
            demo: self.demo,
            windows,
            notices: Notices::ShownOr { address: None, other: other_way },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn started_from_a_menu_it_needs_no_arguments() {
        let options = Options::try_parse_from(["taskbell-desktop"]).unwrap();
        assert_eq!((options.gateway, options.credential_store), (DEFAULT_ADDRESS, Store::Os));
    }

    #[test]
    fn a_desktop_goes_on_without_its_port() {
        let options = Options::try_parse_from(["taskbell-desktop", "--demo"]).unwrap();
        let engine = options.engine(DataDir::at("x"), Windows::new(), OtherWay::new(|_, _| Ok(()))).unwrap();
        assert!(engine.demo);
        assert_eq!(engine.ports_taken, PortsTaken::Retry);
    }
}
