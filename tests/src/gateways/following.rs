//! Gateway A: follow agent work after the connection drops.
//!
//! Method names of 0.3; `SubscribeToTask` and `GetTask` exist beside them, and
//! every frame keeps the vocabulary of the method that was asked. The bearer
//! token is bound to this audience and a task to its owner. A turn starts
//! without blocking. Its reply is read only as text artifact of the completed
//! task, never from a callback, and nothing is replayed.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::{HeaderMap, Response, StatusCode, header},
    response::IntoResponse,
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use super::{
    callbacks::{Callback, Tunnel, deliver},
    ledger::{Call, Change, Ledger, Vocabulary},
    sse,
};

const TASK_NOT_FOUND: i64 = -32001;
const NOT_CANCELABLE: i64 = -32002;
const UNSUPPORTED: i64 = -32004;
const UNKNOWN_METHOD: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// A running gateway.
pub struct GatewayA {
    ledger: Arc<Ledger>,
    port: u16,
    tunnel: Tunnel,
    server: JoinHandle<()>,
}

#[derive(Clone)]
struct App {
    ledger: Arc<Ledger>,
    port: u16,
}

impl GatewayA {
    /// Starts it with one owner, `alice`, whose token is `token`.
    ///
    /// # Panics
    /// When loopback cannot be listened on.
    pub async fn start(token: &str) -> Self {
        let ledger = Arc::new(Ledger::default());
        ledger.lock().tokens.insert(token.to_owned(), "alice".to_owned());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback can be listened on");
        let port = listener.local_addr().expect("it was just bound").port();
        let app = App { ledger: Arc::clone(&ledger), port };
        let router = Router::new()
            .route("/.well-known/agent-card.json", get(card))
            .route("/a2a/coder", post(call))
            .with_state(app);
        let server = tokio::spawn(async move {
            // Ends only with the test.
            let _ = axum::serve(listener, router).await;
        });
        Self { ledger, port, tunnel: Tunnel::default(), server }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Where callbacks to a public origin go.
    pub fn set_tunnel(&mut self, tunnel: Tunnel) {
        self.tunnel = tunnel;
    }

    /// Accepts `token` as `owner`'s from now on.
    pub fn accept(&self, token: &str, owner: &str) {
        self.ledger.lock().tokens.insert(token.to_owned(), owner.to_owned());
    }

    /// Refuses `token` from now on.
    pub fn expire(&self, token: &str) {
        self.ledger.lock().tokens.remove(token);
    }

    /// The task reports progress.
    pub fn work(&self, task: &str, said: &str) {
        self.tell(task, "working", Some(said), None);
    }

    /// An approval pause.
    pub fn ask(&self, task: &str, question: &str) {
        self.tell(task, "input-required", Some(question), None);
    }

    /// The turn succeeds; its reply becomes the task's text artifact.
    pub fn finish(&self, task: &str, reply: &str) {
        self.tell(task, "completed", None, Some(reply));
    }

    pub fn fail(&self, task: &str) {
        self.tell(task, "failed", Some("it failed"), None);
    }

    fn tell(&self, task: &str, state: &str, said: Option<&str>, reply: Option<&str>) {
        let mut inner = self.ledger.lock();
        let entry = inner.advance(task, state, said);
        if let Some(reply) = reply {
            entry.reply = Some(reply.to_owned());
            entry.tell_artifact();
        }
        entry.tell_status();
        // Status only, whatever vocabulary the registration used; retried.
        let body = json!({"statusUpdate": {
            "taskId": entry.id,
            "contextId": entry.context,
            "status": {"state": entry.state, "timestamp": entry.timestamp()},
            "final": entry.is_terminal(),
        }});
        for callback in entry.callbacks.clone() {
            tokio::spawn(deliver(callback, self.tunnel.clone(), body.to_string(), 3));
        }
    }

    /// Ends every open stream though the tasks go on.
    pub fn cut_streams(&self) {
        for entry in self.ledger.lock().tasks.values() {
            entry.tell(Change::Cut);
        }
    }

    pub fn open_streams(&self) -> usize {
        self.ledger.lock().open_streams
    }

    /// All requests so far.
    pub fn calls(&self) -> Vec<Call> {
        self.ledger.lock().calls.clone()
    }

    /// Message ids of all turns started or continued.
    pub fn messages(&self) -> Vec<String> {
        self.ledger.lock().messages.clone()
    }

    /// How many callbacks are registered for a task.
    pub fn callbacks(&self, task: &str) -> usize {
        self.ledger.lock().tasks.get(task).map_or(0, |entry| entry.callbacks.len())
    }
}

impl Drop for GatewayA {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn card(State(app): State<App>) -> Json<Value> {
    Json(json!({
        "name": "gateway-a",
        "description": "Follow agent work after the connection drops",
        "version": "1",
        "protocolVersion": "0.3.0",
        "url": format!("http://127.0.0.1:{}/a2a/coder", app.port),
        "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": true, "pushNotifications": true},
        "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        "security": [{"bearer": []}],
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "turn", "name": "turn", "description": "one turn", "tags": []}],
    }))
}

async fn call(State(app): State<App>, headers: HeaderMap, Json(request): Json<Value>) -> Response<Body> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let method = request["method"].as_str().unwrap_or_default().to_owned();
    let token = text("authorization").and_then(|value| value.strip_prefix("Bearer ").map(str::to_owned));
    let owner = token.and_then(|token| app.ledger.lock().tokens.get(&token).cloned());
    app.ledger.lock().calls.push(Call {
        method: method.clone(),
        version: text("a2a-version"),
        accept: text("accept"),
        last_event_id: text("last-event-id"),
        owner: owner.clone(),
        params: request["params"].clone(),
    });
    let Some(owner) = owner else {
        let challenge = [(header::WWW_AUTHENTICATE, "Bearer error=\"invalid_token\"")];
        return (StatusCode::UNAUTHORIZED, challenge).into_response();
    };
    let id = request["id"].clone();
    if matches!(method.as_str(), "tasks/resubscribe" | "SubscribeToTask") {
        return subscribe(&app, &owner, &method, &request["params"], id);
    }
    if method == "message/stream" {
        return match start(&app, &owner, &request["params"]) {
            Ok(task) => {
                let task = task["id"].as_str().unwrap_or_default();
                sse::follow(&app.ledger, task, Vocabulary::V03, id).expect("it was just started")
            }
            Err((code, message)) => error(id, code, &message),
        };
    }
    match answer(&app, &owner, &method, &request["params"]) {
        Ok(result) => Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response(),
        Err((code, message)) => error(id, code, &message),
    }
}

fn error(id: Value, code: i64, message: &str) -> Response<Body> {
    Json(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})).into_response()
}

fn subscribe(app: &App, owner: &str, method: &str, params: &Value, id: Value) -> Response<Body> {
    let task = params["id"].as_str().unwrap_or_default();
    let (found, terminal) = match app.ledger.lock().owned(owner, task) {
        Some(entry) => (true, entry.is_terminal()),
        None => (false, false),
    };
    let vocabulary = if method == "SubscribeToTask" { Vocabulary::V1 } else { Vocabulary::V03 };
    if !found {
        return error(id, TASK_NOT_FOUND, "Task not found");
    }
    if terminal && vocabulary == Vocabulary::V1 {
        return error(id, UNSUPPORTED, "Task is in a terminal state");
    }
    // A terminal task is reported and the stream closed at once.
    sse::follow(&app.ledger, task, vocabulary, id).expect("it was just found")
}

type Answer = Result<Value, (i64, String)>;

fn not_found() -> (i64, String) {
    (TASK_NOT_FOUND, "Task not found".to_owned())
}

fn start(app: &App, owner: &str, params: &Value) -> Answer {
    let message = &params["message"];
    let message_id =
        message["messageId"].as_str().ok_or((INVALID_PARAMS, "messageId is missing".to_owned()))?;
    let said: String =
        message["parts"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect();
    let mut inner = app.ledger.lock();
    inner.messages.push(message_id.to_owned());
    if let Some(task) = message["taskId"].as_str() {
        let entry = inner.owned(owner, task).ok_or_else(not_found)?;
        if entry.is_terminal() {
            return Err((INVALID_PARAMS, "Task is in a terminal state".to_owned()));
        }
        let task = task.to_owned();
        let entry = inner.advance(&task, "working", None);
        entry.tell_status();
        return Ok(entry.task(Vocabulary::V03));
    }
    if let Some(direct) = said.strip_prefix("direct:") {
        return Ok(
            json!({"kind": "message", "role": "agent", "messageId": format!("answer-to-{message_id}"),
            "parts": [{"kind": "text", "text": direct}]}),
        );
    }
    Ok(inner.open(owner, message["contextId"].as_str()).task(Vocabulary::V03))
}

fn answer(app: &App, owner: &str, method: &str, params: &Value) -> Answer {
    let task = params["id"].as_str().unwrap_or_default();
    match method {
        "message/send" => start(app, owner, params),
        "tasks/get" | "GetTask" => {
            let vocabulary = if method == "GetTask" { Vocabulary::V1 } else { Vocabulary::V03 };
            Ok(app.ledger.lock().owned(owner, task).ok_or_else(not_found)?.task(vocabulary))
        }
        "tasks/cancel" => {
            let mut inner = app.ledger.lock();
            if inner.owned(owner, task).ok_or_else(not_found)?.is_terminal() {
                return Err((NOT_CANCELABLE, "Task cannot be canceled".to_owned()));
            }
            let entry = inner.advance(task, "canceled", None);
            entry.tell_status();
            Ok(entry.task(Vocabulary::V03))
        }
        "tasks/pushNotificationConfig/set" => {
            // The documented body is flat; the task is named by taskId.
            let callback = Callback::register(params).map_err(|message| (INVALID_PARAMS, message))?;
            let mut inner = app.ledger.lock();
            let task = params["taskId"].as_str().unwrap_or_default();
            let entry = inner.owned(owner, task).ok_or_else(not_found)?;
            let shown = shown(task, &callback);
            entry.callbacks.retain(|known| known.id != callback.id);
            entry.callbacks.push(callback);
            Ok(shown)
        }
        "tasks/pushNotificationConfig/get" | "tasks/pushNotificationConfig/list" => {
            let mut inner = app.ledger.lock();
            let entry = inner.owned(owner, task).ok_or_else(not_found)?;
            let all: Vec<Value> = entry.callbacks.iter().map(|callback| shown(task, callback)).collect();
            if method.ends_with("list") {
                return Ok(json!(all));
            }
            let wanted = &params["pushNotificationConfigId"];
            all.into_iter().find(|one| wanted.is_null() || one["id"] == *wanted).ok_or_else(not_found)
        }
        "tasks/pushNotificationConfig/delete" => {
            let mut inner = app.ledger.lock();
            let entry = inner.owned(owner, task).ok_or_else(not_found)?;
            entry.callbacks.retain(|callback| params["pushNotificationConfigId"] != callback.id);
            Ok(Value::Null)
        }
        _ => Err((UNKNOWN_METHOD, format!("Method not found: {method}"))),
    }
}

/// A registration as it is shown: secrets are not echoed.
fn shown(task: &str, callback: &Callback) -> Value {
    json!({"taskId": task, "id": callback.id, "url": callback.url})
}
