//! The engine's start, its list pages and its idle memory with a large store.
//!
//! The store is made by the engine's own migrations and filled by plain inserts. Its first start makes
//! the daily copy and is not measured.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::json;
use taskbell_engine::store::{Store, wall_clock};
use tokio::time::sleep;

use super::numbers;
use crate::program::{self, Program, text};
use crate::roles::engine::{AGENT, Filter, Question};
use crate::table::{Figure, Table, percentile};
use crate::{Failure, Scale};

/// Tasks of the store that have not ended; they are paused, so that nobody goes looking for their agent.
const OPEN: usize = 200;
const COPIED_WITHIN: Duration = Duration::from_secs(120);
const SETTLE: Duration = Duration::from_secs(3);

pub async fn run(scale: Scale, table: &mut Table) -> Result<(), Failure> {
    let tasks = scale.pick(100_000, 2_000);
    let folder = program::folder()?;
    let now_ms = wall_clock()();
    fill(folder.path(), tasks, now_ms).await?;
    let megabytes = folder.path().join("taskbell.db").metadata()?.len() / 1_000_000;
    wait_for_copy(folder.path()).await?;

    let (mut ready, mut memory) = (Vec::new(), Vec::new());
    let mut pages = Pages::default();
    for _ in 0..scale.pick(5, 1) {
        let (mut program, ms) = started(folder.path()).await?;
        ready.push(ms);
        sleep(SETTLE).await;
        memory.push(program.memory_kib()? / 1024.0);
        pages.look(&mut program, tasks, now_ms, scale).await?;
        program.end().await?;
    }
    let store = format!("a store of {tasks} tasks ({megabytes} MB)");
    table.add(
        format!("engine ready after a clean stop, {store}, from the start of the process"),
        Figure::new(ready, "ms"),
        "≤ 150 ms",
    );
    table.add(format!("idle memory (PSS), {store}"), Figure::new(memory, "MiB"), "≤ 40 MB");
    pages.tell(table);

    let mut after_kill = Vec::new();
    for _ in 0..scale.runs() {
        let (program, _) = started(folder.path()).await?;
        program.kill().await?;
        let (program, ms) = started(folder.path()).await?;
        after_kill.push(ms);
        program.end().await?;
    }
    table.add(
        format!("engine ready after kill -9, {store}"),
        Figure::new(after_kill, "ms"),
        "≤ 1 s at 100 MB",
    );
    Ok(())
}

async fn started(folder: &Path) -> Result<(Program, f64), Failure> {
    let began = Instant::now();
    let mut program = Program::role(&["engine", text(folder)?])?;
    program.answer().await?;
    Ok((program, began.elapsed().as_secs_f64() * 1e3))
}

async fn wait_for_copy(folder: &Path) -> Result<(), Failure> {
    let (program, _) = started(folder).await?;
    let began = Instant::now();
    let is_copy = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name().to_string_lossy().ends_with(".db"))
    };
    while !std::fs::read_dir(folder.join("backups")).is_ok_and(|mut found| found.any(is_copy)) {
        if began.elapsed() > COPIED_WITHIN {
            return Err("the daily copy was not made".into());
        }
        sleep(Duration::from_millis(100)).await;
    }
    program.end().await
}

/// Times of pages in milliseconds, of all starts together.
#[derive(Default)]
struct Pages {
    found: Vec<(&'static str, Vec<f64>)>,
}

impl Pages {
    async fn look(
        &mut self,
        program: &mut Program,
        tasks: usize,
        now_ms: i64,
        scale: Scale,
    ) -> Result<(), Failure> {
        let times = scale.pick(100, 5);
        // `key` of a row is its number, and its time follows from it.
        let cursor = |key: usize| Some(format!("{}.{key}", updated_ms(now_ms, tasks, key)));
        let questions = [
            ("first page of 100", Question::List { filter: Filter::All, cursor: None, times }),
            ("middle page of 100", Question::List { filter: Filter::All, cursor: cursor(tasks / 2), times }),
            ("last page of 100", Question::List { filter: Filter::All, cursor: cursor(101), times }),
            ("first page of 100 open ones", Question::List { filter: Filter::Open, cursor: None, times }),
            (
                "first page of 100 that need you",
                Question::List { filter: Filter::NeedsYou, cursor: None, times },
            ),
            ("one task with its content", Question::Show { task: task_id(tasks / 2), times }),
        ];
        for (what, question) in questions {
            let answer = program.ask(&question).await?;
            let rows = answer["rows"].as_u64();
            if rows.is_some_and(|rows| rows != 100) {
                return Err(format!("{what} has {rows:?} rows").into());
            }
            let ms = numbers(&answer, "ms");
            match self.found.iter_mut().find(|(known, _)| *known == what) {
                Some((_, all)) => all.extend(ms),
                None => self.found.push((what, ms)),
            }
        }
        Ok(())
    }

    fn tell(self, table: &mut Table) {
        for (what, mut ms) in self.found {
            ms.sort_by(f64::total_cmp);
            let p99 = percentile(&ms, 0.99);
            let figure = Figure::new(ms, "ms");
            table.add(format!("{what}: p50; p99 is {p99:.2} ms"), figure, "≤ 20 ms");
        }
    }
}

pub(super) fn task_id(key: usize) -> String {
    format!("{key:08x}-5c1e-4f2a-9d3b-0123456789ab")
}

/// Later keys changed later; all within the last week, so that nothing is pruned.
pub(super) fn updated_ms(now_ms: i64, tasks: usize, key: usize) -> i64 {
    let week_ms = 7 * 24 * 3_600_000_i64;
    let behind = (tasks - key) as i64;
    now_ms - behind * (week_ms / tasks as i64)
}

pub(super) async fn fill(folder: &Path, tasks: usize, now_ms: i64) -> Result<(), Failure> {
    let (store, _) = Store::open(folder, wall_clock())?;
    store.close(Duration::from_secs(10)).await?;
    let mut connection = Connection::open(folder.join("taskbell.db"))?;
    let tx = connection.transaction()?;
    tx.execute(
        "INSERT INTO agents (id, name, registered_url, origin, interface_url, binding, dialect, use_card_url,
             allow_http, created_at_ms)
         VALUES (1, ?1, 'http://127.0.0.1:9/', 'http://127.0.0.1:9', 'http://127.0.0.1:9/', 'JSONRPC', '1.0',
             0, 0, ?2)",
        (AGENT, now_ms),
    )?;
    {
        let mut insert_task = tx.prepare(
            "INSERT INTO tasks (id, agent_id, task_id, context_id, title, state, raw_state, status_json, settled,
                 following, mode, mode_since_ms, attempt, confirmed_at_ms, confirmed_by, credential_version,
                 source, created_at_ms, updated_at_ms, terminal_at_ms, waiting_since_ms)
             VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 0, ?11, 'stream', 0, 'send', ?11, ?11,
                 ?12, ?13)",
        )?;
        let mut insert_artifact = tx.prepare(
            "INSERT INTO artifacts (id, task_ref, artifact_id, position, head_json, incomplete)
             VALUES (?1, ?1, ?2, 0, ?3, 0)",
        )?;
        let mut insert_part =
            tx.prepare("INSERT INTO artifact_parts (artifact_ref, position, part_json) VALUES (?1, 0, ?2)")?;
        let mut insert_message = tx.prepare(
            "INSERT INTO messages (task_ref, position, message_id, message_json) VALUES (?1, ?2, ?3, ?4)",
        )?;
        let mut insert_change = tx.prepare(
            "INSERT INTO changes (at_ms, agent_id, task_ref, source, kind, body_json)
             VALUES (?1, 1, ?2, 'stream', 'status', ?3)",
        )?;
        let part = json!({ "text": "a sentence of an answer that fills a line. ".repeat(8) }).to_string();
        for key in 1..=tasks {
            // The open ones are spread over the whole store.
            let is_open = key % (tasks / OPEN) == 0;
            let (state, raw) = match (is_open, key % 10) {
                (true, _) => ("input-required", "TASK_STATE_INPUT_REQUIRED"),
                (false, 0) => ("failed", "TASK_STATE_FAILED"),
                (false, _) => ("completed", "TASK_STATE_COMPLETED"),
            };
            let (following, mode) = if is_open { ("paused", "paused") } else { ("ended", "ended") };
            let at_ms = updated_ms(now_ms, tasks, key);
            let message = |number: usize, role: &str| {
                json!({ "messageId": format!("{key}-{number}"), "role": role,
                    "parts": [{ "text": "step 1/3 of the work that was asked for" }] })
            };
            let status = json!({ "state": raw, "message": message(9, "ROLE_AGENT") }).to_string();
            insert_task.execute(rusqlite::params![
                key as i64,
                task_id(key),
                format!("context-{}", key / 3),
                format!("build the thing number {key}"),
                state,
                raw,
                status,
                !is_open,
                following,
                mode,
                at_ms,
                (!is_open).then_some(at_ms),
                is_open.then_some(at_ms),
            ])?;
            let head = json!({ "artifactId": format!("art-{key}"), "name": "result.txt" });
            insert_artifact.execute((key as i64, format!("art-{key}"), head.to_string()))?;
            insert_part.execute((key as i64, &part))?;
            for (position, role) in ["ROLE_USER", "ROLE_AGENT", "ROLE_AGENT"].into_iter().enumerate() {
                let id = format!("{key}-{position}");
                insert_message.execute((
                    key as i64,
                    position as i64,
                    id,
                    message(position, role).to_string(),
                ))?;
            }
            for step in 1..=5 {
                let body = json!({ "state": "working", "text": format!("step {step}/5 of the work") });
                insert_change.execute((at_ms, key as i64, body.to_string()))?;
            }
        }
    }
    tx.commit()?;
    Ok(())
}
