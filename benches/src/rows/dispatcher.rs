//! How late an end reaches a slow receiver while tasks flood it with progress, beside the same without a flood.
//!
//! The receiver takes 100 ms for each callback. Each task changes 20 times a second; one end comes every 250 ms.
//! Measured from the commit of the change to the receiver having read the callback.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use serde_json::json;
use taskbell_core::dialect::{Dialect, read};
use taskbell_core::ids::{AgentName, ClientName};
use taskbell_core::push_config;
use taskbell_engine::dispatcher::registration::About;
use taskbell_engine::engine::Engine;
use taskbell_engine::keychain::{DEADLINE, Keychain, KeychainChoice};
use taskbell_engine::store::task_records::{Adoption, Told, adopt, apply_events};
use taskbell_engine::store::tasks::{Channel, Following, TaskSource, set_following};
use taskbell_engine::store::{Store, TaskKey, agents, clients, targets, wall_clock};

use crate::table::{Figure, Table, percentile};
use crate::{Failure, Scale, program};

const RECEIVER_TAKES: Duration = Duration::from_millis(100);
const BETWEEN_ENDS: Duration = Duration::from_millis(250);
const BETWEEN_UPDATES: Duration = Duration::from_millis(50);
/// An end that has not arrived by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// When the end of each task was read by the receiver.
type Arrivals = Arc<Mutex<HashMap<String, Instant>>>;

pub async fn run(scale: Scale, table: &mut Table) -> Result<(), Failure> {
    let ends = scale.pick(200, 10);
    let (mut flooded, mut quiet) = (Vec::new(), Vec::new());
    for _ in 0..scale.runs() {
        quiet.push(p99(ends, false).await?);
        flooded.push(p99(ends, true).await?);
    }
    table.add_beside(
        format!("callback of an end p99, {ends} tasks flooding a slow receiver"),
        Figure::new(flooded, "ms"),
        ("without the flood", Figure::new(quiet, "ms")),
        "< 2 ×",
    );
    Ok(())
}

async fn p99(ends: usize, flood: bool) -> Result<f64, Failure> {
    let arrivals = Arrivals::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let router = Router::new().fallback(take).with_state(Arc::clone(&arrivals));
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let folder = program::folder()?;
    let (store, opened) = Store::open(folder.path(), wall_clock())?;
    let keychain = Keychain::start(KeychainChoice::Memory, store.install_id(), DEADLINE)?;
    let tasks = tasks(&store, ends).await?;
    let engine = Engine::with_store(store.clone(), opened, keychain).await?;
    register(&engine, &tasks, port).await?;
    let flooding = flood.then(|| {
        let (store, tasks) = (store.clone(), tasks.clone());
        tokio::spawn(async move { flood_with_progress(&store, &tasks).await })
    });
    let mut late = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        tokio::time::sleep(BETWEEN_ENDS).await;
        let end = json!({ "statusUpdate": { "taskId": id(index), "status": { "state": "completed" } } });
        tell(&store, *task, end).await?;
        let began = Instant::now();
        let arrived = until_arrived(&arrivals, &id(index), began).await?;
        late.push(arrived.saturating_duration_since(began).as_secs_f64() * 1_000.0);
    }
    if let Some(flooding) = flooding {
        flooding.abort();
    }
    engine.stop(Duration::from_secs(10)).await;
    serving.abort();
    late.sort_by(f64::total_cmp);
    Ok(percentile(&late, 0.99))
}

async fn take(State(arrivals): State<Arrivals>, body: Bytes) {
    if let Ok(body) = serde_json::from_slice::<serde_json::Value>(&body)
        && body["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        && let Some(id) = body["task"]["id"].as_str()
    {
        let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        arrivals.entry(id.to_owned()).or_insert_with(Instant::now);
    }
    tokio::time::sleep(RECEIVER_TAKES).await;
}

async fn until_arrived(arrivals: &Arrivals, id: &str, began: Instant) -> Result<Instant, Failure> {
    while began.elapsed() < PATIENCE {
        if let Some(at) = arrivals.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
            return Ok(*at);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Err(format!("the end of {id} did not arrive").into())
}

fn id(index: usize) -> String {
    format!("t-{index}")
}

/// Tasks that work and that nobody follows, so that nothing but the flood is measured.
async fn tasks(store: &Store, count: usize) -> Result<Vec<TaskKey>, Failure> {
    let name = AgentName::new("nobody")?;
    let origin = "http://127.0.0.1:9".parse()?;
    let made = store.write(move |context| {
        let agent = agents::insert(
            context,
            &agents::NewAgent {
                name: &name,
                registered_url: "http://127.0.0.1:9/",
                origin: &origin,
                use_card_url: false,
                allow_http: false,
            },
        )?;
        let adoption = Adoption {
            source: TaskSource::Gateway,
            channel: Channel::Gateway,
            told: Told::Otherwise,
            title: "flood",
            credential_version: 0,
        };
        let mut keys = Vec::new();
        for index in 0..count {
            let task = json!({ "id": id(index), "contextId": "c", "status": { "state": "working" } });
            let task = read::task(task).map_err(|_| taskbell_engine::store::StoreError::Stopped)?;
            let (key, _) = adopt(context, agent, task, 1, adoption)?;
            set_following(context, key, Following::Paused)?;
            keys.push(key);
        }
        Ok(keys)
    });
    Ok(made.await?)
}

async fn register(engine: &Engine, tasks: &[TaskKey], port: u16) -> Result<(), Failure> {
    let name = ClientName::new("editor")?;
    let asked = name.clone();
    let client = engine.store().write(move |context| {
        let client = clients::insert(context, &asked, &[7; 32])?.key;
        targets::approve(context, client, port)?;
        Ok(client)
    });
    let client = client.await?;
    for task in tasks {
        let config = json!({ "url": format!("http://127.0.0.1:{port}/hook") });
        let config = push_config::params(config).map_err(|_| "the config is not readable")?.config;
        let about = About { client, name: &name, task: *task, inline: false };
        engine.dispatcher().register(about, config, Dialect::V1).await?;
    }
    Ok(())
}

async fn flood_with_progress(store: &Store, tasks: &[TaskKey]) -> Result<(), Failure> {
    loop {
        let round = Instant::now();
        for (index, task) in tasks.iter().enumerate() {
            let chunk = json!({ "artifactUpdate": { "taskId": id(index), "append": true,
                "artifact": { "artifactId": "a", "parts": [{ "text": "x" }] } } });
            let event = read::stream_event(chunk).map_err(|_| "the event is not readable")?;
            let task = *task;
            let apply = move |context: &mut taskbell_engine::store::WriteContext<'_>| {
                apply_events(context, task, vec![(event, 2)], Channel::Stream).map(|_| ())
            };
            store.post("flood", apply).await?;
        }
        tokio::time::sleep(BETWEEN_UPDATES.saturating_sub(round.elapsed())).await;
    }
}

async fn tell(store: &Store, task: TaskKey, event: serde_json::Value) -> Result<(), Failure> {
    let event = read::stream_event(event).map_err(|_| "the event is not readable")?;
    store.write(move |context| apply_events(context, task, vec![(event, 3)], Channel::Stream)).await?;
    Ok(())
}
