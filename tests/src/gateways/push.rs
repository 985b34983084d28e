//! Gateway B: push notifications.
//!
//! Method names of 1.0 on the gateway root. A callback carries `{"task":T}`
//! with T byte for byte what GetTask returns. Terminal and waiting states have
//! a lane of their own with one retry; other updates are sent once and may be
//! dropped. A callback that fails twice is lost: GetTask is the only way to
//! hear of it then.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

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
pub struct GatewayB {
    app: App,
    tunnel: Tunnel,
    server: JoinHandle<()>,
}

#[derive(Clone)]
struct App {
    ledger: Arc<Ledger>,
    port: u16,
    /// Answers reattaching to a finished task with "not found", as servers do
    /// that look for a live run only.
    forgets_finished_runs: Arc<AtomicBool>,
    /// Loses the updates of the best-effort lane.
    drops_progress: Arc<AtomicBool>,
}

impl GatewayB {
    /// Starts it with one owner, `alice`, whose token is `token`.
    ///
    /// # Panics
    /// When loopback cannot be listened on.
    pub async fn start(token: &str) -> Self {
        let ledger = Arc::new(Ledger::default());
        ledger.lock().tokens.insert(token.to_owned(), "alice".to_owned());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback can be listened on");
        let port = listener.local_addr().expect("it was just bound").port();
        let app = App { ledger, port, forgets_finished_runs: Arc::default(), drops_progress: Arc::default() };
        let router = Router::new()
            .route("/.well-known/agent-card.json", get(card))
            .route("/", post(call))
            .with_state(app.clone());
        let server = tokio::spawn(async move {
            // Ends only with the test.
            let _ = axum::serve(listener, router).await;
        });
        Self { app, tunnel: Tunnel::default(), server }
    }

    pub fn port(&self) -> u16 {
        self.app.port
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.app.port)
    }

    /// Where callbacks to a public origin go.
    pub fn set_tunnel(&mut self, tunnel: Tunnel) {
        self.tunnel = tunnel;
    }

    /// Accepts `token` as `owner`'s from now on.
    pub fn accept(&self, token: &str, owner: &str) {
        self.app.ledger.lock().tokens.insert(token.to_owned(), owner.to_owned());
    }

    /// Refuses `token` from now on.
    pub fn expire(&self, token: &str) {
        self.app.ledger.lock().tokens.remove(token);
    }

    /// From now on reattaching to a finished task answers "not found".
    pub fn forget_finished_runs(&self) {
        self.app.forgets_finished_runs.store(true, Ordering::Relaxed);
    }

    /// From now on updates of the best-effort lane are lost.
    pub fn drop_progress(&self) {
        self.app.drops_progress.store(true, Ordering::Relaxed);
    }

    pub fn work(&self, task: &str, said: &str) {
        self.tell(task, "working", Some(said), None);
    }

    pub fn ask(&self, task: &str, question: &str) {
        self.tell(task, "input-required", Some(question), None);
    }

    pub fn finish(&self, task: &str, reply: &str) {
        self.tell(task, "completed", None, Some(reply));
    }

    pub fn fail(&self, task: &str) {
        self.tell(task, "failed", Some("it failed"), None);
    }

    fn tell(&self, task: &str, state: &str, said: Option<&str>, reply: Option<&str>) {
        let mut inner = self.app.ledger.lock();
        let entry = inner.advance(task, state, said);
        if let Some(reply) = reply {
            entry.reply = Some(reply.to_owned());
            entry.tell_artifact();
        }
        entry.tell_status();
        let reserved = !matches!(state, "submitted" | "working");
        if !reserved && self.app.drops_progress.load(Ordering::Relaxed) {
            return;
        }
        let tries = if reserved { 2 } else { 1 };
        let body = json!({"task": entry.task(Vocabulary::V1)});
        for callback in entry.callbacks.clone() {
            tokio::spawn(deliver(callback, self.tunnel.clone(), body.to_string(), tries));
        }
    }

    /// Ends every open stream though the tasks go on.
    pub fn cut_streams(&self) {
        for entry in self.app.ledger.lock().tasks.values() {
            entry.tell(Change::Cut);
        }
    }

    pub fn open_streams(&self) -> usize {
        self.app.ledger.lock().open_streams
    }

    pub fn calls(&self) -> Vec<Call> {
        self.app.ledger.lock().calls.clone()
    }

    pub fn messages(&self) -> Vec<String> {
        self.app.ledger.lock().messages.clone()
    }

    pub fn callbacks(&self, task: &str) -> usize {
        self.app.ledger.lock().tasks.get(task).map_or(0, |entry| entry.callbacks.len())
    }
}

impl Drop for GatewayB {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn card(State(app): State<App>) -> Json<Value> {
    let url = format!("http://127.0.0.1:{}/", app.port);
    Json(json!({
        "name": "gateway-b",
        "description": "Push notifications",
        "version": "1",
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true, "pushNotifications": true},
        "securitySchemes": {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "run", "name": "run", "description": "one run", "tags": []}],
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
        let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
        return (StatusCode::UNAUTHORIZED, challenge).into_response();
    };
    let id = request["id"].clone();
    let params = &request["params"];
    let result = check_fields(&method, params).and_then(|()| match method.as_str() {
        "SubscribeToTask" => subscribe(&app, &owner, params).map(Reply::Follow),
        "SendStreamingMessage" => {
            send(&app, &owner, params).map(|result| match result["task"]["id"].as_str() {
                Some(task) => Reply::Follow(task.to_owned()),
                None => Reply::Result(result),
            })
        }
        _ => answer(&app, &owner, &method, params).map(Reply::Result),
    });
    match result {
        Ok(Reply::Result(result)) => {
            Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
        }
        Ok(Reply::Follow(task)) => {
            sse::follow(&app.ledger, &task, Vocabulary::V1, id).expect("it was just looked up")
        }
        Err((code, message)) => {
            Json(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
                .into_response()
        }
    }
}

enum Reply {
    Result(Value),
    /// A stream of this task.
    Follow(String),
}

type Failure = (i64, String);
type Answer = Result<Value, Failure>;

fn not_found() -> Failure {
    (TASK_NOT_FOUND, "Task not found".to_owned())
}

/// Servers of 1.0 in several languages refuse fields that the protocol buffers
/// do not have, so this one does too.
fn check_fields(method: &str, params: &Value) -> Result<(), Failure> {
    let allowed: &[&str] = match method {
        "SendMessage" | "SendStreamingMessage" => &["tenant", "message", "configuration", "metadata"],
        "GetTask" => &["tenant", "id", "historyLength"],
        "SubscribeToTask" => &["tenant", "id"],
        "CancelTask" => &["tenant", "id", "metadata"],
        "CreateTaskPushNotificationConfig" => &["tenant", "id", "taskId", "url", "token", "authentication"],
        "GetTaskPushNotificationConfig" | "DeleteTaskPushNotificationConfig" => &["tenant", "taskId", "id"],
        "ListTaskPushNotificationConfigs" => &["tenant", "taskId", "pageSize", "pageToken"],
        _ => return Ok(()),
    };
    only(params, allowed)?;
    only(
        &params["configuration"],
        &[
            "acceptedOutputModes",
            "historyLength",
            "returnImmediately",
            "taskPushNotificationConfig",
            "pushNotificationConfig",
        ],
    )?;
    only(
        &params["message"],
        &["messageId", "contextId", "taskId", "role", "parts", "metadata", "extensions", "referenceTaskIds"],
    )
}

fn only(object: &Value, allowed: &[&str]) -> Result<(), Failure> {
    let odd = object.as_object().into_iter().flatten().find(|(name, _)| !allowed.contains(&name.as_str()));
    odd.map_or(Ok(()), |(name, _)| Err((INVALID_PARAMS, format!("unknown field {name}"))))
}

fn subscribe(app: &App, owner: &str, params: &Value) -> Result<String, Failure> {
    let task = params["id"].as_str().unwrap_or_default();
    let mut inner = app.ledger.lock();
    if !inner.owned(owner, task).ok_or_else(not_found)?.is_terminal() {
        return Ok(task.to_owned());
    }
    if app.forgets_finished_runs.load(Ordering::Relaxed) {
        return Err(not_found());
    }
    Err((UNSUPPORTED, "Task is in a terminal state".to_owned()))
}

fn send(app: &App, owner: &str, params: &Value) -> Answer {
    let message = &params["message"];
    let message_id =
        message["messageId"].as_str().ok_or((INVALID_PARAMS, "messageId is missing".to_owned()))?;
    let said: String =
        message["parts"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect();
    // The inline field has its earlier name here.
    let inline = &params["configuration"]["pushNotificationConfig"];
    let callback = if inline.is_null() {
        None
    } else {
        Some(Callback::register(inline).map_err(|message| (INVALID_PARAMS, message))?)
    };
    let mut inner = app.ledger.lock();
    inner.messages.push(message_id.to_owned());
    if let Some(task) = message["taskId"].as_str() {
        if inner.owned(owner, task).ok_or_else(not_found)?.is_terminal() {
            return Err((UNSUPPORTED, "Task is in a terminal state".to_owned()));
        }
        let entry = inner.advance(task, "working", None);
        entry.tell_status();
        return Ok(json!({"task": entry.task(Vocabulary::V1)}));
    }
    if let Some(direct) = said.strip_prefix("direct:") {
        return Ok(json!({"message": {"role": "ROLE_AGENT", "messageId": format!("answer-to-{message_id}"),
            "parts": [{"text": direct}]}}));
    }
    let entry = inner.open(owner, message["contextId"].as_str());
    entry.callbacks.extend(callback);
    Ok(json!({"task": entry.task(Vocabulary::V1)}))
}

fn answer(app: &App, owner: &str, method: &str, params: &Value) -> Answer {
    let task = params["id"].as_str().unwrap_or_default();
    let of_task = params["taskId"].as_str().unwrap_or_default();
    match method {
        "SendMessage" => send(app, owner, params),
        "GetTask" => Ok(app.ledger.lock().owned(owner, task).ok_or_else(not_found)?.task(Vocabulary::V1)),
        "CancelTask" => {
            let mut inner = app.ledger.lock();
            if inner.owned(owner, task).ok_or_else(not_found)?.is_terminal() {
                return Err((NOT_CANCELABLE, "Task cannot be canceled".to_owned()));
            }
            let entry = inner.advance(task, "canceled", None);
            entry.tell_status();
            Ok(entry.task(Vocabulary::V1))
        }
        "CreateTaskPushNotificationConfig" => {
            let callback = Callback::register(params).map_err(|message| (INVALID_PARAMS, message))?;
            let mut inner = app.ledger.lock();
            let entry = inner.owned(owner, of_task).ok_or_else(not_found)?;
            let shown = shown(of_task, &callback);
            entry.callbacks.retain(|known| known.id != callback.id);
            entry.callbacks.push(callback);
            Ok(shown)
        }
        "GetTaskPushNotificationConfig" => {
            let mut inner = app.ledger.lock();
            let entry = inner.owned(owner, of_task).ok_or_else(not_found)?;
            let found = entry.callbacks.iter().find(|callback| callback.id == task);
            found.map(|callback| shown(of_task, callback)).ok_or_else(not_found)
        }
        "ListTaskPushNotificationConfigs" => {
            let mut inner = app.ledger.lock();
            let entry = inner.owned(owner, of_task).ok_or_else(not_found)?;
            let all: Vec<Value> = entry.callbacks.iter().map(|callback| shown(of_task, callback)).collect();
            Ok(json!({"configs": all}))
        }
        "DeleteTaskPushNotificationConfig" => {
            let mut inner = app.ledger.lock();
            let entry = inner.owned(owner, of_task).ok_or_else(not_found)?;
            entry.callbacks.retain(|callback| callback.id != task);
            Ok(Value::Null)
        }
        _ => Err((UNKNOWN_METHOD, format!("Method not found: {method}"))),
    }
}

fn shown(task: &str, callback: &Callback) -> Value {
    json!({"taskId": task, "id": callback.id, "url": callback.url})
}
