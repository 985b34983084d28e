//! The engine as `taskbell serve` runs it, asked in process: the HTTP of its faces is there and unused.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Instant;

use futures::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use taskbell_core::agent::{CardOrigin, PlainHttp};
use taskbell_core::ids::{AgentName, ClientName, TaskId, TaskRef};
use taskbell_engine::agents::manage::AgentWish;
use taskbell_engine::api::views::{Page, ReconcileRequest, TaskFilter};
use taskbell_engine::api::window::Windows;
use taskbell_engine::claims::ClaimFilter;
use taskbell_engine::data_dir::DataDir;
use taskbell_engine::engine::Engine;
use taskbell_engine::error::EngineError;
use taskbell_engine::notifier::Notices;
use taskbell_engine::running::{CredentialStore, EngineOptions, PortsTaken, RunningEngine};

use super::{answer_all, say};
use crate::Failure;

const WATCHES_AT_ONCE: usize = 32;
/// The name under which the one agent of a measurement is known.
pub const AGENT: &str = "demo";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
pub enum Question {
    Add {
        url: String,
    },
    Watch {
        tasks: Vec<String>,
    },
    /// A client's key, and the agent's address at the gateway.
    Client,
    /// Changes recorded so far, committed ones.
    Changes,
    Reconcile,
    /// Times of one list page, in milliseconds, as often as said.
    List {
        filter: Filter,
        cursor: Option<String>,
        times: usize,
    },
    Show {
        task: String,
        times: usize,
    },
    /// Times of the first page of tasks that a query finds.
    Find {
        query: String,
        times: usize,
    },
    /// The same of callbacks.
    Inbox {
        query: String,
        times: usize,
    },
    /// Tasks that are not in the full text index yet.
    ToIndex,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    All,
    Open,
    NeedsYou,
}

pub async fn run(folder: &Path) -> Result<(), Failure> {
    let options = EngineOptions {
        data_dir: DataDir::at(folder),
        gateway: (Ipv4Addr::LOCALHOST, 0).into(),
        inbox: (Ipv4Addr::LOCALHOST, 0).into(),
        ports_taken: PortsTaken::Refuse,
        credential_store: CredentialStore::Memory,
        demo: false,
        windows: Windows::new(),
        notices: Notices::Recorded,
    };
    let running = RunningEngine::start(options).await?;
    say(&json!({ "ready": true, "inbox": running.inbox() }));
    let (name, engine) = (AgentName::new(AGENT)?, running.engine());
    let gateway = running.ready().map(|ready| ready.gateway.clone()).ok_or("the gateway has no address")?;
    answer_all(async |question: Question| match question {
        Question::Client => {
            let (_, key) = engine.gateway().clients().add(ClientName::new("bench")?).await?;
            Ok(json!({ "url": format!("{gateway}/agents/{AGENT}/"), "key": key.expose() }))
        }
        question => answer(engine, &name, question).await,
    })
    .await?;
    running.stop().await;
    Ok(())
}

async fn answer(engine: &Engine, name: &AgentName, question: Question) -> Result<Value, Failure> {
    match question {
        // Told by whoever knows where the gateway is.
        Question::Client => Err("not asked here".into()),
        Question::Add { url } => {
            let wish = AgentWish {
                name: name.clone(),
                url: url.parse()?,
                card_origin: CardOrigin::Record,
                plain_http: PlainHttp::LoopbackOnly,
                credential: None,
            };
            engine.add_agent(wish).await?;
            Ok(json!({}))
        }
        Question::Watch { tasks } => {
            let watches = tasks.into_iter().map(|task| async move {
                engine.watch(name, &TaskId::new(task)).await.map(|_| ()).map_err(Failure::from)
            });
            let done: Vec<Result<(), Failure>> =
                futures::stream::iter(watches).buffer_unordered(WATCHES_AT_ONCE).collect().await;
            done.into_iter().collect::<Result<Vec<()>, Failure>>()?;
            Ok(json!({}))
        }
        Question::Changes => Ok(json!({ "changes": *engine.store().doorbell().borrow() })),
        Question::Reconcile => {
            let request = ReconcileRequest { all: true, ..ReconcileRequest::default() };
            let began = Instant::now();
            let items = engine.reconcile(request).await?;
            let ms = began.elapsed().as_secs_f64() * 1e3;
            let failed = items.iter().filter(|item| item.error.is_some()).count();
            Ok(json!({ "ms": ms, "read": items.len() - failed }))
        }
        Question::List { filter, cursor, times } => {
            let filter = TaskFilter {
                open: matches!(filter, Filter::Open),
                needs_you: matches!(filter, Filter::NeedsYou),
                limit: Some(100),
                cursor,
                ..TaskFilter::default()
            };
            pages(times, || engine.tasks(filter.clone())).await
        }
        Question::Find { query, times } => {
            let filter = TaskFilter { query: Some(query), limit: Some(100), ..TaskFilter::default() };
            pages(times, || engine.tasks(filter.clone())).await
        }
        Question::Inbox { query, times } => {
            let filter = ClaimFilter { query: Some(query), limit: Some(100), ..ClaimFilter::default() };
            let claims = engine.claims();
            pages(times, || claims.list(filter.clone())).await
        }
        Question::ToIndex => Ok(json!({ "left": engine.tasks_to_index().await? })),
        Question::Show { task, times } => {
            let task = TaskRef { agent: name.clone(), task: TaskId::new(task) };
            let mut ms = Vec::with_capacity(times);
            for _ in 0..times {
                let began = Instant::now();
                std::hint::black_box(serde_json::to_vec(&engine.task(&task).await?)?);
                ms.push(began.elapsed().as_secs_f64() * 1e3);
            }
            Ok(json!({ "ms": ms }))
        }
    }
}

/// Times of a page, read and written as JSON, and how many rows it has.
async fn pages<T: Serialize, F>(times: usize, mut ask: impl FnMut() -> F) -> Result<Value, Failure>
where
    F: Future<Output = Result<Page<T>, EngineError>>,
{
    let mut rows = 0;
    let mut ms = Vec::with_capacity(times);
    for _ in 0..times {
        let began = Instant::now();
        let page = ask().await?;
        rows = page.items.len();
        std::hint::black_box(serde_json::to_vec(&page)?);
        ms.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(json!({ "ms": ms, "rows": rows }))
}
