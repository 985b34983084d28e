//! Every list, search and detail with a large store: 100,000 tasks, a million changes, 200,000 callbacks.
//!
//! The store is that of `start`, with words of different frequency, tasks of every kind and callbacks put in. The
//! engine finds it as it finds one of before there was an index, which it makes in the background.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::json;
use taskbell_engine::store::wall_clock;
use tokio::time::sleep;

use super::{number, numbers, start};
use crate::program::{self, Program, text};
use crate::roles::engine::Question;
use crate::table::{Figure, Table, percentile};
use crate::{Failure, Scale};

const INDEXED_WITHIN: Duration = Duration::from_secs(600);
/// Changes that every task has more than in `start`.
const MORE_CHANGES: usize = 5;
/// The changes of one long task.
const LONG: usize = 2_000;

/// Queries of the list of tasks, and what each is an example of.
const TASKS: &[(&str, &str)] = &[
    ("", "no query"),
    ("build", "a word that every task has"),
    ("build thing", "two words that every task has"),
    ("\"build the thing\"", "a phrase that every task has"),
    ("nightly", "a word that a third has"),
    ("needle77", "a word that a thousandth has"),
    ("need", "the beginning of a word that all have"),
    ("ne", "the beginning of words, two letters"),
    ("build needle77", "a word of all with one of few"),
    ("build -nightly", "a word of all without one of a third"),
    ("-build", "not a word that all have"),
    ("state:failed", "a state that a tenth has"),
    ("state:rejected", "a state that ten have"),
    ("state:failed,rejected since:7d", "failed this week"),
    ("-state:completed", "not the usual state"),
    ("agent:rare", "an agent of 20 tasks"),
    ("-agent:demo", "not the usual agent"),
    ("via:poll", "a channel that 100 were confirmed by"),
    ("is:archived", "archived"),
    ("is:pinned", "pinned"),
    ("is:open", "open"),
    ("is:noted", "with a note"),
    ("verdict:confirmed", "with a confirmed callback"),
    ("verdict:unmatched", "with a callback that did not fit"),
    ("-verdict:confirmed", "without a confirmed callback"),
    ("build state:rejected", "a word of all, a state of ten"),
    ("nightly agent:rare", "a word of a third, an agent of 20"),
    ("nightly via:poll state:failed", "a word of a third, three filters"),
    ("build verdict:unmatched", "a word of all, a callback of few"),
];

/// The same of callbacks.
const CALLBACKS: &[(&str, &str)] = &[
    ("", "no query"),
    ("build", "a word that every task has"),
    ("nightly", "a word that a third has"),
    ("needle77", "a word that a thousandth has"),
    ("verdict:unmatched", "a rare verdict"),
    ("verdict:confirmed", "the usual verdict"),
    ("is:open", "not settled"),
    ("state:failed", "a state that a tenth claims"),
    ("state:rejected", "a state that none claims"),
    ("agent:rare", "an agent of 20 tasks"),
    ("-agent:demo", "not the usual agent"),
    ("since:1h", "of the last hour"),
    ("nightly verdict:unmatched", "a word of a third, a rare verdict"),
];

pub async fn run(scale: Scale, table: &mut Table) -> Result<(), Failure> {
    let tasks = scale.pick(100_000, 2_000);
    let times = scale.pick(30, 3);
    let folder = program::folder()?;
    let now_ms = wall_clock()();
    start::fill(folder.path(), tasks, now_ms).await?;
    add(folder.path(), tasks, now_ms)?;
    let size =
        || -> Result<f64, Failure> { Ok(folder.path().join("taskbell.db").metadata()?.len() as f64 / 1e6) };
    let before = size()?;

    let began = Instant::now();
    let mut program = Program::role(&["engine", text(folder.path())?])?;
    program.answer().await?;
    let ready = began.elapsed().as_secs_f64() * 1e3;
    while number(&program.ask(&Question::ToIndex).await?, "left")? > 0.0 {
        if began.elapsed() > INDEXED_WITHIN {
            return Err("the store was not indexed in time".into());
        }
        sleep(Duration::from_millis(200)).await;
    }
    let took = began.elapsed().as_secs_f64();
    program.end().await?;
    let store =
        format!("{tasks} tasks, {} changes, {} callbacks", tasks * (5 + MORE_CHANGES) + LONG, tasks * 2);
    table.add(
        format!("engine ready with a store that is not indexed yet: {store}"),
        Figure::new(vec![ready], "ms"),
        "≤ 150 ms",
    );
    table.add("indexed in the background, tasks a second", Figure::new(vec![tasks as f64 / took], "/s"), "–");
    table.add(
        format!("what the index adds to {before:.0} MB"),
        Figure::new(vec![size()? - before], "MB"),
        "–",
    );

    let mut program = Program::role(&["engine", text(folder.path())?])?;
    program.answer().await?;
    let mut worst = Worst::default();
    for (query, what) in TASKS {
        let question = Question::Find { query: (*query).to_owned(), times };
        worst.look(&mut program, table, &question, format!("tasks, {what} (`{query}`)")).await?;
    }
    for (query, what) in CALLBACKS {
        let question = Question::Inbox { query: (*query).to_owned(), times };
        worst.look(&mut program, table, &question, format!("inbox, {what} (`{query}`)")).await?;
    }
    let task = start::task_id(tasks / 2);
    let question = Question::Show { task, times };
    worst.look(&mut program, table, &question, format!("one task with {LONG} changes")).await?;
    program.end().await?;
    table.add(format!("the slowest of these: {}", worst.what), Figure::new(worst.ms, "ms"), "≤ 20 ms");
    Ok(())
}

#[derive(Default)]
struct Worst {
    what: String,
    ms: Vec<f64>,
    median: f64,
}

impl Worst {
    async fn look(
        &mut self,
        program: &mut Program,
        table: &mut Table,
        question: &Question,
        what: String,
    ) -> Result<(), Failure> {
        let answer = program.ask(question).await?;
        let mut ms = numbers(&answer, "ms");
        ms.sort_by(f64::total_cmp);
        let (median, p99) = (percentile(&ms, 0.5), percentile(&ms, 0.99));
        let rows = answer["rows"].as_u64().map(|rows| format!(", {rows} rows")).unwrap_or_default();
        if median > self.median {
            *self = Self { what: what.clone(), ms: ms.clone(), median };
        }
        table.add(format!("{what}{rows}: p50; p99 is {p99:.2} ms"), Figure::new(ms, "ms"), "≤ 20 ms");
        Ok(())
    }
}

/// Words, kinds of tasks, notes, changes and callbacks.
fn add(folder: &Path, tasks: usize, now_ms: i64) -> Result<(), Failure> {
    let mut connection = Connection::open(folder.join("taskbell.db"))?;
    let tx = connection.transaction()?;
    let rare = (tasks / 5_000).max(1);
    tx.execute_batch(&format!(
        "INSERT INTO agents (id, name, registered_url, origin, interface_url, binding, dialect, use_card_url,
             allow_http, created_at_ms)
         VALUES (2, 'rare', 'http://127.0.0.1:9/', 'http://127.0.0.1:9', 'http://127.0.0.1:9/', 'JSONRPC', '1.0',
             0, 0, {now_ms});
         UPDATE tasks SET agent_id = 2 WHERE id % {tasks} < {rare};
         UPDATE tasks SET title = title || ' needle' || (id % 1000) || CASE WHEN id % 3 = 0 THEN ' nightly' ELSE '' END;
         UPDATE tasks SET state = 'rejected' WHERE id % ({tasks} / 10) = 7;
         UPDATE tasks SET confirmed_by = 'poll' WHERE id % ({tasks} / 100) = 3;
         UPDATE tasks SET archived_at_ms = {now_ms} WHERE id % 10 = 4;
         UPDATE tasks SET pinned_at_ms = {now_ms} WHERE id % ({tasks} / 50) = 5;
         INSERT INTO task_notes (task_ref, text, at_ms) SELECT id, 'a note', {now_ms} FROM tasks WHERE id % 200 = 9;
         INSERT OR REPLACE INTO meta (key, value) SELECT 'search_next', CAST(max(id) AS TEXT) FROM tasks;"
    ))?;
    {
        let mut change = tx.prepare(
            "INSERT INTO changes (at_ms, agent_id, task_ref, source, kind, body_json)
             VALUES (?1, 1, ?2, 'stream', 'status', ?3)",
        )?;
        let mut registration = tx.prepare(
            "INSERT INTO registrations (id, path, purpose, agent_id, task_ref, config_id, url, state, policy,
                 key_version, created_at_ms, revision)
             VALUES (?1, ?2, 'task', CASE WHEN ?1 % ?3 < ?4 THEN 2 ELSE 1 END, ?1, 'c', 'http://h/', 'ended', 'any',
                 1, 0, ?1)",
        )?;
        let mut callback = tx.prepare(
            "INSERT INTO callbacks (registration_ref, task_ref, at_ms, last_at_ms, count, sha256, size, body,
                 headers_json, token_proof, credential_proof, shape, claimed_task_id, claimed_state, dirty, verdict,
                 reason, confirmed_state)
             VALUES (?1, ?1, ?2, ?2, 1, ?3, 900, ?4, '{}', 'valid', 'unused', 'task', ?5, ?6, 1, ?7, NULL, ?6)",
        )?;
        let body = json!({ "statusUpdate": { "status": { "message": "word ".repeat(180) } } }).to_string();
        for key in 1..=tasks {
            let at_ms = start::updated_ms(now_ms, tasks, key);
            for step in 0..MORE_CHANGES {
                let text = json!({ "state": "working", "text": format!("step {step} of the work") });
                change.execute((at_ms, key as i64, text.to_string()))?;
            }
            let path = format!("{key:0>26}");
            registration.execute((key as i64, path, tasks as i64, rare as i64))?;
            for number in 0..2_u8 {
                let state = if key % 10 == 0 { "failed" } else { "completed" };
                let verdict = match key % 1_000 {
                    500 => "unmatched",
                    501 => "ahead",
                    _ if number == 1 => "duplicate",
                    _ if key % 2 == 0 => "behind",
                    _ => "confirmed",
                };
                callback.execute(rusqlite::params![
                    key as i64,
                    at_ms,
                    [&key.to_le_bytes()[..], &[number; 24]].concat(),
                    body.as_bytes(),
                    start::task_id(key),
                    state,
                    verdict,
                ])?;
            }
        }
        for step in 0..LONG {
            let text = json!({ "state": "working", "text": format!("step {step} of long work") });
            change.execute((now_ms, (tasks / 2) as i64, text.to_string()))?;
        }
    }
    tx.commit()?;
    Ok(())
}
