//! Scripted A2A v1.0 test agent: our code on top of the reference Rust server
//! crate (`a2a-server-lf`). The text of a task's first message is a script;
//! see `../../py1/agent.py`. Binds 127.0.0.1 only.
//!
//! Flags: --port N (9310), --push-timeout S (30), --no-push, --guard (keep the
//! SDK's SSRF guard, which refuses loopback webhooks). Env: AGENT_TOKEN=t1[,t2],
//! AGENT_PRESETS=FILE.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a::*;
use a2a_server::agent_card::{agent_card_router, StaticAgentCard};
use a2a_server::jsonrpc::jsonrpc_router;
use a2a_server::rest::rest_router;
use a2a_server::{
    AgentExecutor, DefaultRequestHandler, ExecutorContext, HttpPushSender, HttpPushSenderConfig,
    InMemoryPushConfigStore, InMemoryTaskStore,
};
use axum::extract::Request;
use axum::http::{header, StatusCode};
use axum::middleware::Next;
use axum::response::IntoResponse;
use futures::stream::{self, BoxStream};
use tokio::sync::mpsc;
use tokio::time::sleep;

type Event = Result<StreamResponse, A2AError>;

#[derive(Clone)]
struct Script {
    steps: u32,
    interval: f64,
    ask: u32,
    auth: u32,
    authwait: f64,
    fail: String,
    reject: bool,
    artifact: bool,
    chunks: u32,
    message: bool,
    task_first: bool,
    pad: usize,
    hold: f64,
    nocancel: bool,
    kind: String,
    body: String,
    say: String,
    done: u32,
    asked: bool,
    authed: bool,
}

impl Script {
    fn parse(text: &str) -> Self {
        let mut s = Script {
            steps: 5, interval: 0.2, ask: 0, auth: 0, authwait: 2.0, fail: "no".into(),
            reject: false, artifact: true, chunks: 3, message: false, task_first: true, pad: 0,
            hold: 0.0, nocancel: false, kind: "text".into(), body: String::new(),
            say: String::new(), done: 0, asked: false, authed: false,
        };
        for word in text.split_whitespace() {
            let Some((k, v)) = word.split_once('=') else { continue };
            match k {
                "steps" => s.steps = v.parse().unwrap_or(s.steps),
                "interval" => s.interval = v.parse().unwrap_or(s.interval),
                "ask" => s.ask = v.parse().unwrap_or(s.ask),
                "auth" => s.auth = v.parse().unwrap_or(s.auth),
                "authwait" => s.authwait = v.parse().unwrap_or(s.authwait),
                "fail" => s.fail = v.to_string(),
                "reject" => s.reject = v == "yes",
                "artifact" => s.artifact = v == "yes",
                "chunks" => s.chunks = v.parse().unwrap_or(s.chunks),
                "reply" => s.message = v == "message",
                "first" => s.task_first = v != "status",
                "pad" => s.pad = v.parse().unwrap_or(s.pad),
                "hold" => s.hold = v.parse().unwrap_or(s.hold),
                "nocancel" => s.nocancel = v == "yes",
                "kind" => s.kind = v.to_string(),
                "body" => s.body = unquote(v),
                "say" => s.say = unquote(v),
                _ => {}
            }
        }
        s
    }
}

fn unquote(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut i) = (Vec::new(), 0);
    while i < bytes.len() {
        let hex = text.get(i + 1..i + 3).and_then(|h| u8::from_str_radix(h, 16).ok());
        match (bytes[i], hex) {
            (b'%', Some(b)) => { out.push(b); i += 3; }
            (b, _) => { out.push(b); i += 1; }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn make_part(s: &Script, i: u32) -> Part {
    let n = s.chunks;
    let or = |default: String| if s.body.is_empty() { default } else { s.body.clone() };
    match s.kind.as_str() {
        "file" => Part::raw(or(format!("file {i}/{n}")).into_bytes()).with_media_type("text/plain").with_filename("output.txt"),
        "url" => Part::url("https://example.com/output.txt").with_media_type("text/plain").with_filename("output.txt"),
        "data" => Part::data(serde_json::from_str(&s.body).unwrap_or_else(|_| serde_json::json!({"key": "value", "chunk": i, "of": n}))),
        _ => Part::text(or(format!("chunk {i}/{n};"))),
    }
}

/// AGENT_PRESETS: JSON object messageId prefix -> script; the longest match wins.
fn preset(message_id: &str) -> Option<String> {
    let text = std::fs::read_to_string(std::env::var("AGENT_PRESETS").ok()?).ok()?;
    let map: HashMap<String, String> = serde_json::from_str(&text).ok()?;
    map.into_iter().filter(|(p, _)| message_id.starts_with(p.as_str())).max_by_key(|(p, _)| p.len()).map(|(_, s)| s)
}

type Scripts = Arc<Mutex<HashMap<String, Script>>>;

struct Scripted {
    scripts: Scripts,
}

struct Turn {
    tx: mpsc::Sender<Event>,
    task_id: String,
    context_id: String,
}

impl Turn {
    fn msg(&self, text: &str) -> Message {
        let mut m = Message::new(Role::Agent, vec![Part::text(text)]);
        m.task_id = Some(self.task_id.clone());
        m.context_id = Some(self.context_id.clone());
        m
    }

    async fn status(&self, state: TaskState, text: Option<&str>) -> bool {
        let ev = StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: self.task_id.clone(),
            context_id: self.context_id.clone(),
            status: TaskStatus {
                state,
                message: text.map(|t| self.msg(t)),
                timestamp: Some(chrono::Utc::now()),
            },
            metadata: None,
        });
        self.tx.send(Ok(ev)).await.is_ok()
    }
}

async fn pause(secs: f64) {
    if secs > 0.0 {
        sleep(Duration::from_secs_f64(secs)).await;
    }
}

/// Runs one turn; `None` as soon as nobody takes events any more.
async fn run(turn: Turn, scripts: Scripts, ctx: ExecutorContext) -> Option<()> {
    let text = ctx.message.as_ref().and_then(|m| m.text()).unwrap_or("").to_string();
    let known = scripts.lock().unwrap().get(&turn.task_id).cloned();
    let resumed = known.is_some();
    let chosen = ctx.message.as_ref().and_then(|m| preset(&m.message_id)).unwrap_or_else(|| text.clone());
    let mut s = known.unwrap_or_else(|| Script::parse(&chosen));
    let save = |s: &Script| {
        scripts.lock().unwrap().insert(turn.task_id.clone(), s.clone());
    };
    save(&s);
    let ok = |sent: bool| if sent { Some(()) } else { None };

    if s.message {
        let _ = turn.tx.send(Ok(StreamResponse::Message(turn.msg(&if s.say.is_empty() { format!("plain reply: {text}") } else { s.say.clone() })))).await;
        return Some(());
    }
    if !resumed {
        pause(s.hold).await;
        if s.task_first {
            let task = Task {
                id: turn.task_id.clone(),
                context_id: turn.context_id.clone(),
                status: TaskStatus { state: TaskState::Submitted, message: None, timestamp: Some(chrono::Utc::now()) },
                artifacts: None,
                history: ctx.message.clone().map(|m| vec![m]),
                metadata: None,
            };
            ok(turn.tx.send(Ok(StreamResponse::Task(task))).await.is_ok())?;
        }
    }
    if s.reject {
        ok(turn.status(TaskState::Rejected, Some("rejected by script")).await)?;
        return Some(());
    }
    if resumed {
        ok(turn.status(TaskState::Working, Some(&format!("resumed with: {text}"))).await)?;
    }
    while s.done < s.steps {
        pause(s.interval).await;
        s.done += 1;
        save(&s);
        let mut body = format!("step {}/{}", s.done, s.steps);
        if body.len() < s.pad {
            body = format!("{body} {}", "x".repeat(s.pad - body.len() - 1));
        }
        ok(turn.status(TaskState::Working, Some(&body)).await)?;
        if s.ask == s.done && !s.asked {
            s.asked = true;
            save(&s);
            ok(turn.status(TaskState::InputRequired, Some("need input: continue?")).await)?;
            return Some(());
        }
        if s.auth == s.done && !s.authed {
            s.authed = true;
            save(&s);
            ok(turn.status(TaskState::AuthRequired, Some("need auth")).await)?;
            if s.authwait == 0.0 {
                return Some(());
            }
            pause(s.authwait).await;
            ok(turn.status(TaskState::Working, Some("auth obtained out of band")).await)?;
        }
    }
    match s.fail.as_str() {
        "raise" => {
            let _ = turn.tx.send(Err(A2AError::internal("scripted executor crash"))).await;
            return Some(());
        }
        "yes" => {
            turn.status(TaskState::Failed, Some("failed by script")).await;
            return Some(());
        }
        _ => {}
    }
    if s.artifact {
        for i in 0..s.chunks {
            let ev = StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                task_id: turn.task_id.clone(),
                context_id: turn.context_id.clone(),
                artifact: Artifact {
                    artifact_id: format!("art-{}", turn.task_id),
                    name: Some("result.txt".into()),
                    description: None,
                    parts: vec![make_part(&s, i + 1)],
                    metadata: None,
                    extensions: None,
                },
                append: Some(i > 0),
                last_chunk: Some(i + 1 == s.chunks),
                metadata: None,
            });
            ok(turn.tx.send(Ok(ev)).await.is_ok())?;
            pause(s.interval.min(0.1)).await;
        }
    }
    turn.status(TaskState::Completed, Some(if s.say.is_empty() { "done" } else { &s.say })).await;
    Some(())
}

fn receiver_stream(rx: mpsc::Receiver<Event>) -> BoxStream<'static, Event> {
    Box::pin(stream::unfold(rx, |mut rx| async move { rx.recv().await.map(|e| (e, rx)) }))
}

impl AgentExecutor for Scripted {
    fn execute(&self, ctx: ExecutorContext) -> BoxStream<'static, Event> {
        let (tx, rx) = mpsc::channel(1);
        let turn = Turn { tx, task_id: ctx.task_id.clone(), context_id: ctx.context_id.clone() };
        tokio::spawn(run(turn, self.scripts.clone(), ctx));
        receiver_stream(rx)
    }

    fn cancel(&self, ctx: ExecutorContext) -> BoxStream<'static, Event> {
        let refuse = self.scripts.lock().unwrap().get(&ctx.task_id).is_some_and(|s| s.nocancel);
        let (tx, rx) = mpsc::channel(1);
        let turn = Turn { tx, task_id: ctx.task_id.clone(), context_id: ctx.context_id };
        tokio::spawn(async move {
            if refuse {
                let _ = turn.tx.send(Err(A2AError::task_not_cancelable(&turn.task_id))).await;
            } else {
                turn.status(TaskState::Canceled, None).await;
            }
        });
        receiver_stream(rx)
    }
}

#[tokio::main]
async fn main() {
    let (mut port, mut push, mut guard, mut timeout) = (9310u16, true, false, 30.0f64);
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        match a.as_str() {
            "--port" => port = args.next().unwrap().parse().unwrap(),
            "--push-timeout" => timeout = args.next().unwrap().parse().unwrap(),
            "--no-push" => push = false,
            "--guard" => guard = true,
            other => panic!("unknown flag {other}"),
        }
    }
    let tokens: Vec<String> = std::env::var("AGENT_TOKEN")
        .unwrap_or_default().split(',').filter(|t| !t.is_empty()).map(str::to_string).collect();

    let base = format!("http://127.0.0.1:{port}");
    let capabilities = AgentCapabilities {
        streaming: Some(true), push_notifications: Some(push), extensions: None, extended_agent_card: None,
    };
    let card = AgentCard {
        name: "peer-rs".into(),
        description: "Scripted test agent on a2a-server-lf".into(),
        version: "1.0.0".into(),
        supported_interfaces: vec![
            AgentInterface::new(format!("{base}/"), "JSONRPC"),
            AgentInterface::new(format!("{base}/rest"), "HTTP+JSON"),
        ],
        capabilities: capabilities.clone(),
        default_input_modes: vec!["text/plain".into()],
        default_output_modes: vec!["text/plain".into()],
        skills: vec![AgentSkill {
            id: "script".into(), name: "script".into(), description: "runs a scripted task".into(),
            tags: vec!["test".into()], examples: None, input_modes: None, output_modes: None,
            security_requirements: None,
        }],
        provider: None, documentation_url: None, icon_url: None,
        security_schemes: (!tokens.is_empty()).then(|| {
            HashMap::from([("bearer".to_string(), SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
                scheme: "bearer".into(), description: None, bearer_format: None,
            }))])
        }),
        security_requirements: None,
        signatures: None,
    };

    let mut handler = DefaultRequestHandler::new(
        Scripted { scripts: Arc::default() },
        InMemoryTaskStore::new(),
    );
    if push {
        handler = handler.with_push_notifications(
            InMemoryPushConfigStore::new(),
            HttpPushSender::new(Some(HttpPushSenderConfig {
                timeout: Duration::from_secs_f64(timeout),
                fail_on_error: false,
                validate_urls: guard,
            })),
        );
    }
    let handler = Arc::new(handler.with_capabilities(capabilities));
    let app = axum::Router::new()
        .merge(agent_card_router(Arc::new(StaticAgentCard::new(card))))
        .merge(jsonrpc_router(handler.clone()))
        .nest("/rest", rest_router(handler))
        .layer(axum::middleware::from_fn(move |req: Request, next: Next| {
            let tokens = tokens.clone();
            async move {
                let given = req.headers().get(header::AUTHORIZATION)
                    .and_then(|v| v.to_str().ok()).and_then(|v| v.split_once(' '))
                    .filter(|(s, _)| s.eq_ignore_ascii_case("bearer")).map(|(_, t)| t.to_string());
                let open = tokens.is_empty() || req.uri().path().starts_with("/.well-known/");
                if open || given.is_some_and(|t| tokens.contains(&t)) {
                    next.run(req).await
                } else {
                    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer realm=\"a2a\"")],
                     "{\"error\":\"unauthorized\"}").into_response()
                }
            }
        }));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    println!("peer-rs on {base}/");
    axum::serve(listener, app).await.unwrap();
}
