//! What the tests of this program share: a real engine with the built-in agent.

use std::path::Path;
use std::time::{Duration, Instant};

use taskbell_engine::api::window::Windows;
use taskbell_engine::data_dir::DataDir;
use taskbell_engine::notifier::Notices;
use taskbell_engine::running::{CredentialStore, EngineOptions, PortsTaken, RunningEngine};

pub async fn engine(folder: &Path) -> RunningEngine {
    let options = EngineOptions {
        data_dir: DataDir::at(folder),
        gateway: "127.0.0.1:0".parse().unwrap(),
        inbox: "127.0.0.1:0".parse().unwrap(),
        ports_taken: PortsTaken::Refuse,
        credential_store: CredentialStore::Memory,
        demo: true,
        windows: Windows::new(),
        notices: Notices::Recorded,
    };
    RunningEngine::start(options).await.unwrap()
}

pub async fn wait_until(limit: Duration, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < end, "not within {limit:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
