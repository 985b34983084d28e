//! One window per data folder: what a start finds there, decided by the engine's lock.
//!
//! ```text
//! folder free                       → this program runs the engine
//! held, its engine has a window     → that window comes to the front, this program ends
//! held, its engine has no window    → this window attaches to it
//! ```

use std::time::Duration;

use serde_json::json;
use taskbell_engine::api_client::{ApiClient, ClientError};
use taskbell_engine::data_dir::DataDir;
use tokio::time::{Instant, sleep};

/// An engine that starts or stops is neither here nor gone for a moment.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// What a start found.
#[derive(Debug)]
pub enum Found {
    Nothing,
    /// Another window, which is in front now.
    Window,
    /// An engine without a window.
    Engine(ApiClient),
}

/// Looks at the folder, and raises the window that is there, with the link that this start was given.
///
/// Errors: an engine holds it and does not answer.
pub async fn look(dir: &DataDir, link: Option<&str>) -> Result<Found, ClientError> {
    let end = Instant::now() + PATIENCE;
    loop {
        if !dir.is_held()? {
            return Ok(Found::Nothing);
        }
        let failure = match ApiClient::connect(dir).await {
            Ok(client) => match raise(&client, link).await {
                Ok(()) => return Ok(Found::Window),
                Err(refused) if refused.code == "no_window" => return Ok(Found::Engine(client)),
                Err(failure) => failure,
            },
            // Only an engine with a window runs without its port.
            Err(failure) if failure.code == "engine_port_taken" => match raise_by_signal(dir)? {
                true => return Ok(Found::Window),
                false => failure,
            },
            Err(failure) => failure,
        };
        if !failure.may_pass() || Instant::now() >= end {
            return Err(failure);
        }
        sleep(PAUSE).await;
    }
}

async fn raise(client: &ApiClient, link: Option<&str>) -> Result<(), ClientError> {
    match link {
        Some(link) => client.post("window/link", &json!({ "link": link })).await,
        None => client.post("window/raise", &json!({})).await,
    }
}

/// For want of a port: the window's program takes SIGUSR2 for the same wish (SIGUSR1 is WebKit's).
#[cfg(unix)]
fn raise_by_signal(dir: &DataDir) -> Result<bool, ClientError> {
    // The folder is held, so the process that wrote this is alive.
    let Some(runtime) = dir.runtime()? else { return Ok(false) };
    let pid = i32::try_from(runtime.pid).ok().and_then(rustix::process::Pid::from_raw);
    let sent = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::USR2));
    Ok(matches!(sent, Some(Ok(()))))
}

#[cfg(not(unix))]
fn raise_by_signal(_dir: &DataDir) -> Result<bool, ClientError> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use taskbell_engine::api::window::Windows;
    use taskbell_engine::notifier::Notices;
    use taskbell_engine::running::{CredentialStore, EngineOptions, PortsTaken, RunningEngine};

    use super::*;

    fn options(dir: &DataDir) -> EngineOptions {
        EngineOptions {
            data_dir: dir.clone(),
            gateway: "127.0.0.1:0".parse().unwrap(),
            inbox: "127.0.0.1:0".parse().unwrap(),
            ports_taken: PortsTaken::Retry,
            credential_store: CredentialStore::Memory,
            demo: false,
            windows: Windows::new(),
            notices: Notices::Recorded,
        }
    }

    #[tokio::test]
    async fn a_start_finds_nothing_an_engine_or_a_window() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::at(folder.path());
        assert!(matches!(look(&dir, None).await.unwrap(), Found::Nothing));

        let options = options(&dir);
        let windows = options.windows.clone();
        let engine = RunningEngine::start(options).await.unwrap();
        assert!(matches!(look(&dir, None).await.unwrap(), Found::Engine(_)), "headless: to attach to");

        let mut calls = windows.listen();
        assert!(matches!(look(&dir, None).await.unwrap(), Found::Window));
        assert!(calls.next().await.is_some(), "the window there was told");

        engine.stop().await;
        assert!(matches!(look(&dir, None).await.unwrap(), Found::Nothing), "stopped engines are not found");
    }
}
