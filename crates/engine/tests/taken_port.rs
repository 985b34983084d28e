//! A desktop app starts although another program has its port, and takes it over once it is free.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use taskbell_engine::api::views::{HealthState, HealthView};
use taskbell_engine::api::window::Windows;
use taskbell_engine::api_client::ApiClient;
use taskbell_engine::data_dir::DataDir;
use taskbell_engine::notifier::Notices;
use taskbell_engine::running::{CredentialStore, EngineOptions, PortsTaken, RunningEngine};

/// The port is tried each 10 s.
const FREED_WITHIN: Duration = Duration::from_secs(25);

#[tokio::test(flavor = "multi_thread")]
async fn a_taken_port_stops_a_headless_engine_and_not_a_desktop() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = DataDir::at(folder.path());
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = |ports_taken| EngineOptions {
        data_dir: data_dir.clone(),
        gateway: holder.local_addr().unwrap(),
        inbox: "127.0.0.1:0".parse().unwrap(),
        ports_taken,
        credential_store: CredentialStore::Memory,
        demo: false,
        windows: Windows::new(),
        notices: Notices::Recorded,
    };
    let refused = RunningEngine::start(options(PortsTaken::Refuse)).await.map(|_| ()).unwrap_err();
    assert_eq!(refused.code(), "port_taken");

    let engine = RunningEngine::start(options(PortsTaken::Retry)).await.unwrap();
    assert!(engine.ready().is_none(), "nobody is told of a port that is not ours");
    assert_eq!(ApiClient::connect(&data_dir).await.unwrap_err().code, "engine_port_taken");
    let health: HealthView = engine.door().get("/api/v1/health").await.unwrap();
    assert_eq!(health.gateway, None);
    let gateway = health.items.iter().find(|item| item.component == "gateway").unwrap();
    assert_eq!(gateway.state, HealthState::Bad);
    if cfg!(target_os = "linux") {
        assert!(gateway.detail.contains(&std::process::id().to_string()), "{}", gateway.detail);
    }

    drop(holder);
    let end = Instant::now() + FREED_WITHIN;
    let client = loop {
        match ApiClient::connect(&data_dir).await {
            Ok(client) => break client,
            Err(error) => assert!(Instant::now() < end, "the freed port was not taken: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let health: HealthView = client.get("health").await.unwrap();
    let gateway = health.items.iter().find(|item| item.component == "gateway").unwrap();
    assert_eq!(gateway.state, HealthState::Ok, "{gateway:?}");
    assert_eq!(health.gateway, engine.ready().map(|ready| ready.gateway.clone()));
    engine.stop().await;
    assert!(data_dir.runtime().unwrap().is_none(), "a clean stop leaves no trace");
}
