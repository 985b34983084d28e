//! An engine with tasks and registrations, and a look at what it has stored.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Bytes, http::StatusCode, routing::get};
use rusqlite::{Connection, OpenFlags, params};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use taskbell_tests::{Taskbell, taskbell::Setup, wait_until};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::PATIENCE;

/// An agent of 0.3 that knows every task in one state, and counts how often it is read.
pub struct Teller {
    port: u16,
    reads: Arc<AtomicU64>,
    state: Arc<Mutex<&'static str>>,
    router: Router,
    server: JoinHandle<()>,
}

/// The state of an agent that is gone: connections that are still open end in 503, new ones are refused.
const GONE: &str = "gone";

impl Teller {
    pub async fn start(state: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback can be listened on");
        let port = listener.local_addr().expect("it was just bound").port();
        let reads = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&reads);
        let state = Arc::new(Mutex::new(state));
        let now = Arc::clone(&state);
        let card = json!({
            "name": "teller", "description": "", "version": "1", "protocolVersion": "0.3.0",
            "url": format!("http://127.0.0.1:{port}/"), "preferredTransport": "JSONRPC",
            "capabilities": {"streaming": false, "pushNotifications": false},
            "defaultInputModes": ["text"], "defaultOutputModes": ["text"], "skills": []
        });
        let answer = move |body: Bytes| async move {
            if *now.lock().expect("nobody panics") == GONE {
                return Err(StatusCode::SERVICE_UNAVAILABLE);
            }
            let request: Value = serde_json::from_slice(&body).expect("a request of ours");
            let id = &request["id"];
            let answer = match request["method"].as_str() {
                Some("tasks/get" | "GetTask") => {
                    count.fetch_add(1, Ordering::SeqCst);
                    let state = *now.lock().expect("nobody panics");
                    let task = json!({"kind": "task", "id": request["params"]["id"],
                        "contextId": "conversation-10", "status": {"state": state}});
                    json!({"jsonrpc": "2.0", "id": id, "result": task})
                }
                _ => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "not here"}}),
            };
            Ok(axum::Json(answer))
        };
        let card = move || async move { axum::Json(card) };
        let router = Router::new()
            .route("/.well-known/agent-card.json", get(card))
            .fallback(axum::routing::post(answer));
        let server = serve(listener, router.clone());
        Self { port, reads, state, router, server }
    }

    /// Gone, until [`Self::come_back`].
    pub async fn leave(&mut self) {
        self.tell(GONE);
        self.server.abort();
        let refused = async || TcpStream::connect(("127.0.0.1", self.port)).await.is_err().then_some(());
        wait_until(PATIENCE, "nobody listens", refused).await;
    }

    pub async fn come_back(&mut self, state: &'static str) {
        self.tell(state);
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await.expect("it is still ours");
        self.server = serve(listener, self.router.clone());
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// From now on it knows every task in this state.
    pub fn tell(&self, state: &'static str) {
        *self.state.lock().expect("nobody panics") = state;
    }

    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }
}

fn serve(listener: TcpListener, router: Router) -> JoinHandle<()> {
    tokio::spawn(async move {
        // Ends only by being aborted.
        let _ = axum::serve(listener, router).await;
    })
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A registration to write into the database.
#[derive(Debug, Clone, Default)]
pub struct Registration {
    pub path: String,
    pub token: Option<String>,
    pub bearer: Option<String>,
    /// The encoded pair.
    pub basic: Option<String>,
    /// The id of its task; none where it is not known yet.
    pub task: Option<String>,
    pub all: bool,
    pub removed: bool,
}

impl Registration {
    /// With a token, for this task.
    pub fn with_token(path: &str, task: &str, token: &str) -> Self {
        Self {
            path: path.to_owned(),
            task: Some(task.to_owned()),
            token: Some(token.to_owned()),
            ..Self::default()
        }
    }
}

/// Writes registrations into the database of an engine that is not running.
pub fn seed(folder: &Path, registrations: &[Registration]) {
    let mut connection = Connection::open(folder.join("taskbell.db")).expect("the database opens");
    let transaction = connection.transaction().expect("nobody else writes");
    let digest = |secret: &Option<String>| secret.as_ref().map(|secret| Sha256::digest(secret).to_vec());
    for registration in registrations {
        let scheme = match (&registration.bearer, &registration.basic) {
            (Some(_), _) => Some("bearer"),
            (None, Some(_)) => Some("basic"),
            (None, None) => None,
        };
        let credential = registration.bearer.as_ref().or(registration.basic.as_ref()).cloned();
        let sql =
            "INSERT INTO registrations (path, purpose, agent_id, task_ref, config_id, url, state, policy,
                key_version, scheme, token_sha256, credential_sha256, created_at_ms, removed_at_ms, revision)
            SELECT ?1, 'task', (SELECT min(id) FROM agents), (SELECT id FROM tasks WHERE task_id = ?2), ?1,
                'https://inbox.example.com/a2a/callbacks/' || ?1, ?3, ?4, 1, ?5, ?6, ?7, 1, ?8,
                (SELECT coalesce(max(revision), 0) + 1 FROM registrations)";
        let values = params![
            registration.path,
            registration.task,
            if registration.removed { "removed" } else { "active" },
            if registration.all { "all" } else { "any" },
            scheme,
            digest(&registration.token),
            digest(&credential),
            registration.removed.then_some(1),
        ];
        transaction.execute(sql, values).expect("a registration is written");
    }
    transaction.commit().expect("the registrations are written");
}

/// What the inbox has stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stock {
    pub rows: i64,
    /// Arrivals: repeats included.
    pub arrivals: i64,
    pub quarantined: i64,
    /// How often tasks were made due.
    pub dirty: i64,
}

/// A look into the database beside a running engine.
pub struct Look(Connection);

impl Look {
    pub fn into(folder: &Path) -> Self {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let connection = Connection::open_with_flags(folder.join("taskbell.db"), flags).expect("it opens");
        connection.busy_timeout(Duration::from_secs(10)).expect("a connection");
        Self(connection)
    }

    pub fn number(&self, sql: &str) -> i64 {
        self.0.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    pub fn text(&self, sql: &str) -> String {
        self.0.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Bodies that are kept, each with how often it came.
    pub fn bodies(&self) -> Vec<(Vec<u8>, i64)> {
        let mut statement = self.0.prepare("SELECT body, count FROM callbacks").expect("a statement");
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
        rows.map(|row| row.expect("a row")).collect()
    }

    pub fn stock(&self) -> Stock {
        Stock {
            rows: self.number("SELECT count(*) FROM callbacks"),
            arrivals: self.number("SELECT coalesce(sum(count), 0) FROM callbacks"),
            quarantined: self.number("SELECT count(*) FROM quarantine"),
            dirty: self.number("SELECT coalesce(sum(dirty), 0) FROM due_reads"),
        }
    }
}

/// An agent, an engine that knows tasks of it, and registrations for them.
pub struct Scene {
    pub teller: Teller,
    pub taskbell: Taskbell,
}

impl Scene {
    /// The tasks are watched, so the engine knows them, and then the registrations are there.
    pub async fn start(setup: Setup, state: &'static str, registrations: &[Registration]) -> Self {
        let teller = Teller::start(state).await;
        let mut taskbell = setup.start().await;
        taskbell.add_agent("a", &teller.url()).await;
        let mut tasks: Vec<&str> = registrations.iter().filter_map(|r| r.task.as_deref()).collect();
        tasks.sort_unstable();
        tasks.dedup();
        for task in tasks {
            taskbell.cli(&["watch", "a", task]).await.ok();
        }
        taskbell.cli(&["settings", "set", "public_url", "https://inbox.example.com"]).await.ok();
        taskbell.stop().await;
        seed(&taskbell.data_dir(), registrations);
        taskbell.come_up().await;
        Self { teller, taskbell }
    }

    pub fn inbox(&self) -> &str {
        &self.taskbell.ready().inbox
    }

    pub fn folder(&self) -> PathBuf {
        self.taskbell.data_dir()
    }

    pub fn look(&self) -> Look {
        Look::into(&self.folder())
    }

    /// Waits until everything due has been read.
    pub async fn settled(&self, limit: Duration) {
        let look = self.look();
        let sql = "SELECT count(*) FROM due_reads WHERE dirty > clean";
        wait_until(limit, "all that is due is read", async || (look.number(sql) == 0).then_some(())).await;
    }
}
