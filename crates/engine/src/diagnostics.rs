//! What helps somebody else to find out what is wrong, and nothing that is only the user's: no task text, no
//! credential, no key, no whole address, no id. Shown before it is saved.

use rusqlite::Connection;
use serde_json::{Map, Value, json};
use taskbell_core::mask::masked;

use crate::api::views::{DiagnosticsPart, LinkView};
use crate::engine::Engine;
use crate::logs::LOG;
use crate::store::StoreError;
use crate::store::health_history;

/// Octets of the log.
const LOG_TAIL: u64 = 256 << 10;
const HISTORY: u32 = 200;
/// What is counted, by the word in a column.
const COUNTED: &[(&str, &str)] = &[
    ("tasks by state", "SELECT coalesce(verdict, state), count(*) FROM tasks GROUP BY 1"),
    ("tasks by following", "SELECT coalesce(mode, following), count(*) FROM tasks GROUP BY 1"),
    ("callbacks by verdict", "SELECT verdict, count(*) FROM callbacks GROUP BY 1"),
    ("deliveries by state", "SELECT state, count(*) FROM deliveries GROUP BY 1"),
    ("notices by outcome", "SELECT coalesce(outcome, 'pending'), count(*) FROM notices GROUP BY 1"),
    (
        "clients",
        "SELECT CASE WHEN revoked_at_ms IS NULL THEN 'active' ELSE 'revoked' END, count(*) FROM clients GROUP BY 1",
    ),
];

/// All parts, each as it goes into the bundle.
pub async fn parts(engine: &Engine) -> Vec<DiagnosticsPart> {
    let part = |name: &str, text: String| DiagnosticsPart { name: name.to_owned(), text: masked(&text) };
    let written = |value: Value| format!("{value:#}\n");
    let mut agents = engine.agents().await.unwrap_or_default();
    agents.sort_by(|one, other| one.url.cmp(&other.url));
    let items = engine.health().await;
    // A store that cannot be read is the very thing to find out about: the rest is told all the same.
    let (counts, history) = match engine
        .store()
        .read(|connection| Ok((counts(connection)?, health_history::list(connection, None, None, HISTORY)?)))
        .await
    {
        Ok(found) => found,
        Err(error) => (json!({ "not readable": error.to_string() }), Vec::new()),
    };
    let history: Vec<Value> = history
        .iter()
        .map(|row| {
            let at = crate::api::views::UtcTime::from_ms(row.at_ms);
            json!({ "component": row.component, "state": row.state, "at": at, "detail": row.detail })
        })
        .collect();
    let hosts: Vec<Value> = agents
        .iter()
        .map(|agent| {
            let link = match agent.link {
                LinkView::Up => "up",
                LinkView::Down => "down",
                LinkView::Unknown => "unknown",
            };
            json!({ "host": host(&agent.url), "dialect": agent.dialect, "link": link, "openTasks": agent.open_tasks })
        })
        .collect();
    let settings = engine
        .export_settings()
        .await
        .map(|file| json!(file))
        .unwrap_or_else(|error| json!({ "not readable": error.message }));
    let log = LOG.tail(LOG_TAIL).unwrap_or_else(|error| format!("the log cannot be read: {error}\n"));
    vec![
        part("versions.json", written(versions())),
        part("health.json", written(json!({ "now": items, "history": history }))),
        part("settings.json", written(settings)),
        part("counts.json", written(counts)),
        part("store.json", written(engine.store_facts())),
        part("agents.json", written(Value::Array(hosts))),
        part("log.txt", log),
    ]
}

fn host(url: &str) -> String {
    let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(ToOwned::to_owned));
    host.unwrap_or_else(|| "none".to_owned())
}

fn versions() -> Value {
    json!({
        "taskbell": env!("CARGO_PKG_VERSION"),
        "sqlite": rusqlite::version(),
        "database": crate::store::migrations::LATEST,
        "system": std::env::consts::OS,
        "processor": std::env::consts::ARCH,
        "build": if cfg!(debug_assertions) { "debug" } else { "release" },
    })
}

fn counts(connection: &Connection) -> Result<Value, StoreError> {
    let mut all = Map::new();
    for (what, sql) in COUNTED {
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
        let mut counted = Map::new();
        for row in rows {
            let (word, count) = row?;
            counted.insert(word, count.into());
        }
        all.insert((*what).to_owned(), Value::Object(counted));
    }
    Ok(Value::Object(all))
}
