//! The API on a real listener with a real store. Requests are written by hand where their octets matter.

mod feed;
mod guards;
mod health;
mod nouns;
mod openapi;
mod sessions;
mod settings;
mod windows;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use taskbell_core::credential::Secret;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::access::Access;
use super::window::Windows;
use super::{ApiState, guarded};
use crate::data_dir::{DataDir, HeldDataDir, Runtime};
use crate::engine::Engine;
use crate::keychain::{Keychain, KeychainChoice};
use crate::listen::{Bound, Limits};
use crate::store::{Store, wall_clock};

pub(super) const TOKEN: &str = "canary-token-51c0";

/// An engine's API as `serve` runs it.
pub(super) struct Served {
    pub address: SocketAddr,
    pub store: Store,
    pub state: ApiState,
    pub folder: TempDir,
    held: HeldDataDir,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Served {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let held = DataDir::at(folder.path()).hold().unwrap();
        let (store, opened) = Store::open(folder.path(), wall_clock()).unwrap();
        let keychain = Keychain::start(KeychainChoice::Memory, "test", Duration::from_secs(2)).unwrap();
        let engine = Engine::with_store(store.clone(), opened, keychain).await.unwrap();
        let (stop, stopped) = watch::channel(false);
        let access = Arc::new(Access::new(Secret::new(TOKEN)));
        engine.set_access(&access);
        let state = ApiState { engine, access, windows: Windows::new(), stop: stopped.clone() };
        let bound = Bound::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = bound.address();
        state.access.set_port(address.port());
        let serving = tokio::spawn(bound.serve(guarded(state.clone()), Limits::default(), stopped));
        let served = Self { address, store, state, folder, held, stop, serving };
        served.publish(address);
        served
    }

    fn publish(&self, address: SocketAddr) {
        let gateway = Some(format!("http://{address}"));
        let token = Secret::new(TOKEN);
        self.held.publish(&Runtime { pid: std::process::id(), gateway, inbox: None, token }).unwrap();
    }

    pub fn dir(&self) -> DataDir {
        DataDir::at(self.folder.path())
    }

    /// Stops the listener and binds it anew on another port, as a restart does.
    pub async fn restart(&mut self) {
        self.stop.send_replace(true);
        (&mut self.serving).await.unwrap();
        let (stop, stopped) = watch::channel(false);
        let access = Arc::new(Access::new(Secret::new(TOKEN)));
        self.state.engine.set_access(&access);
        self.state = ApiState { access, stop: stopped.clone(), ..self.state.clone() };
        let bound = Bound::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        self.address = bound.address();
        self.state.access.set_port(self.address.port());
        self.serving = tokio::spawn(bound.serve(guarded(self.state.clone()), Limits::default(), stopped));
        self.stop = stop;
        self.publish(self.address);
    }

    /// One request with exactly these header lines; `HOST` and `ORIGIN` in them stand for our own.
    pub async fn ask(&self, start: &str, headers: &[&str], body: &str) -> Answer {
        let host = format!("127.0.0.1:{}", self.address.port());
        let mut head = format!("{start} HTTP/1.1\r\n");
        for line in headers {
            let line = line.replace("ORIGIN", &format!("http://{host}")).replace("HOST", &host);
            head.push_str(&format!("{line}\r\n"));
        }
        if !body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("Connection: close\r\n\r\n");
        self.send(format!("{head}{body}").as_bytes()).await
    }

    /// As a program of the user: our host, the token, JSON.
    pub async fn call(&self, start: &str, body: &str) -> Answer {
        let token = format!("Authorization: Bearer {TOKEN}");
        self.ask(start, &["Host: HOST", &token, "Content-Type: application/json"], body).await
    }

    pub async fn send(&self, request: &[u8]) -> Answer {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        // A refused request is answered before it is read to its end.
        let _ = socket.write_all(request).await;
        let mut octets = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(15), socket.read_to_end(&mut octets));
        let _ = read.await.expect("the engine closes what it has answered");
        Answer::read(&octets)
    }
}

/// An answer taken apart.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    fn read(octets: &[u8]) -> Self {
        let text = String::from_utf8_lossy(octets).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// The code of the error that it must be.
    pub fn code(&self) -> String {
        assert!(!self.head.contains("access-control-"), "no answer may have a CORS header: {}", self.head);
        assert!(self.head.contains("content-type: application/json"), "an error must be JSON: {self:?}");
        let json = self.json();
        assert!(json["error"]["message"].is_string(), "{json}");
        json["error"]["code"].as_str().unwrap().to_owned()
    }
}
