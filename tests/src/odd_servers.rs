//! Servers that are not what the user thinks they are.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, http::Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::{ports::free_port, process::Process, wait::wait_until};

/// Answers every request with the same status, type and body.
pub struct Monotone {
    port: u16,
    asked: Arc<AtomicUsize>,
    server: JoinHandle<()>,
}

impl Monotone {
    /// # Panics
    /// When loopback cannot be listened on.
    pub async fn start(status: u16, content_type: &'static str, body: impl Into<String>) -> Self {
        Self::with_header(status, content_type, body, None).await
    }

    /// The same with one more header.
    ///
    /// # Panics
    /// When loopback cannot be listened on.
    pub async fn with_header(
        status: u16,
        content_type: &'static str,
        body: impl Into<String>,
        header: Option<(&'static str, String)>,
    ) -> Self {
        let body = body.into();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback can be listened on");
        let port = listener.local_addr().expect("it was just bound").port();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let answer = move || {
            let (body, header) = (body.clone(), header.clone());
            count.fetch_add(1, Ordering::Relaxed);
            async move {
                let mut answer = Response::builder().status(status).header("Content-Type", content_type);
                if let Some((name, value)) = header {
                    answer = answer.header(name, value);
                }
                answer.body(Body::from(body)).expect("these headers are valid")
            }
        };
        let router = Router::new().fallback(answer);
        let server = tokio::spawn(async move {
            // Ends only with the test.
            let _ = axum::serve(listener, router).await;
        });
        Self { port, asked, server }
    }

    /// A web page where an agent was expected.
    pub async fn html() -> Self {
        Self::start(200, "text/html; charset=utf-8", "<!doctype html><title>Welcome</title><p>Sign in").await
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// How many requests it has answered.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Monotone {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A card of an agent of 0.3 that lives at `url`.
pub fn card_03(url: &str) -> Value {
    json!({
        "name": "card-03", "description": "an agent of 0.3", "version": "1",
        "protocolVersion": "0.3.0", "url": url, "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": true, "pushNotifications": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [],
    })
}

/// A TLS server with a certificate that nobody vouches for.
pub struct SelfSigned {
    port: u16,
    _folder: TempDir,
    _server: Process,
}

impl SelfSigned {
    /// # Panics
    /// When openssl cannot make the certificate or serve it.
    pub async fn start() -> Self {
        let folder = TempDir::with_prefix("taskbell-tls-").expect("a temporary folder");
        let (key, certificate) = (folder.path().join("key.pem"), folder.path().join("cert.pem"));
        let made = tokio::process::Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
            .args([
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1",
            ])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .await
            .expect("openssl is installed");
        assert!(made.status.success(), "openssl req: {}", String::from_utf8_lossy(&made.stderr));
        let port = free_port();
        let server = Process::start("openssl s_server", "openssl", |command| {
            command.args(["s_server", "-quiet", "-www", "-accept", &format!("127.0.0.1:{port}")]);
            command.arg("-key").arg(&key).arg("-cert").arg(&certificate).stdin(std::process::Stdio::null());
        });
        wait_until(Duration::from_secs(10), "the TLS server listens", async || {
            TcpStream::connect(("127.0.0.1", port)).await.ok().map(drop)
        })
        .await;
        Self { port, _folder: folder, _server: server }
    }

    pub fn url(&self) -> String {
        format!("https://localhost:{}/", self.port)
    }
}
