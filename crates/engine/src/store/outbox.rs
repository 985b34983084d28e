//! What a change of a task gives the dispatcher to do, in the transaction of that change.
//!
//! Reserved states become rows. Progress becomes a mark in memory, one a config: when there is room, the task as
//! it is then is told, and what came in between is counted as dropped. A task without configs costs a look
//! into a map.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Row;
use taskbell_core::delivery::{BEST_EFFORT_LIVES, Lane};
use taskbell_core::push_body;
use taskbell_core::state::TaskState;

use super::changes::last_seq;
use super::client_push_configs::{self as configs, ConfigRow};
use super::error::StoreError;
use super::keys::{ConfigKey, TargetKey, TaskKey};
use super::state::Remembered;
use super::writer::WriteContext;
use super::{deliveries, targets, task_content};

/// Marks of progress in all.
const PROGRESS_MOST: usize = 1_000;

/// Progress of one config that is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub config: ConfigKey,
    pub task: TaskKey,
    pub target: TargetKey,
    /// Of the target.
    pub origin: Arc<str>,
    /// Changes since the last one that was told.
    pub updates: u64,
    /// Of the newest of them.
    pub at_ms: i64,
    /// In the order of their first change.
    order: u64,
}

/// Updates that will not be told, to be counted at their targets.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Dropped(pub HashMap<TargetKey, u64>);

/// What the writer tells the dispatcher: marks, and that reserved rows were written. Not kept over a restart.
#[derive(Debug, Default)]
pub struct Outbox {
    marks: Mutex<Marks>,
    /// The change that the newest reserved rows belong to. They are told before their commit, so a look that
    /// did not see that change yet has to be repeated.
    reserved_seq: AtomicU64,
    /// Reserved rows may be there that no change announces.
    noted: AtomicBool,
}

#[derive(Debug, Default)]
struct Marks {
    by_config: HashMap<ConfigKey, Mark>,
    dropped: Dropped,
    next_order: u64,
}

impl Outbox {
    /// Whether reserved rows were written with a change after this one.
    pub fn has_reserved_after(&self, seq: u64) -> bool {
        self.reserved_seq.load(Ordering::SeqCst) > seq
    }

    /// Whether rows are to be looked at whatever the changes say; asked once.
    pub fn take_noted(&self) -> bool {
        self.noted.swap(false, Ordering::SeqCst)
    }

    fn note_reserved(&self, seq: u64) {
        self.reserved_seq.fetch_max(seq, Ordering::SeqCst);
        self.noted.store(true, Ordering::SeqCst);
    }

    /// Whether any progress is to be told.
    pub fn has_marks(&self) -> bool {
        !self.lock().by_config.is_empty()
    }

    /// Those that are to be told, the longest waiting first. What waited for too long is dropped.
    pub fn marks(&self, now_ms: i64) -> Vec<Mark> {
        let mut marks = self.lock();
        let lives = targets::millis(BEST_EFFORT_LIVES);
        let expired: Vec<ConfigKey> = marks
            .by_config
            .values()
            // A clock set back makes nothing old.
            .filter(|mark| now_ms.saturating_sub(mark.at_ms) > lives)
            .map(|mark| mark.config)
            .collect();
        for config in expired {
            marks.drop_mark(config);
        }
        let mut waiting: Vec<Mark> = marks.by_config.values().cloned().collect();
        waiting.sort_unstable_by_key(|mark| mark.order);
        waiting
    }

    /// Takes one to tell it; how many changes it stands for. `None`: it is gone.
    pub fn take(&self, config: ConfigKey) -> Option<Mark> {
        self.lock().by_config.remove(&config)
    }

    /// What was dropped since the last time.
    pub fn take_dropped(&self) -> Dropped {
        std::mem::take(&mut self.lock().dropped)
    }

    fn mark(&self, brief: &Brief, task: TaskKey, now_ms: i64) {
        let (config, target) = (brief.config, brief.target);
        let mut marks = self.lock();
        if let Some(mark) = marks.by_config.get_mut(&config) {
            mark.updates += 1;
            mark.at_ms = now_ms;
            return;
        }
        if marks.by_config.len() >= PROGRESS_MOST {
            *marks.dropped.0.entry(target).or_default() += 1;
            return;
        }
        marks.next_order += 1;
        let order = marks.next_order;
        let origin = Arc::clone(&brief.origin);
        marks
            .by_config
            .insert(config, Mark { config, task, target, origin, updates: 1, at_ms: now_ms, order });
    }

    /// What is to come, or nobody listens, makes it pointless.
    fn drop_mark(&self, config: ConfigKey) {
        self.lock().drop_mark(config);
    }

    /// Drops the marks of configs that are no more, or are disabled.
    fn keep_only(&self, task: TaskKey, briefs: &[Brief]) {
        let mut marks = self.lock();
        let is_kept = |config| briefs.iter().any(|brief| brief.config == config && !brief.disabled);
        let gone = marks.by_config.values().filter(|mark| mark.task == task && !is_kept(mark.config));
        let gone: Vec<ConfigKey> = gone.map(|mark| mark.config).collect();
        for config in gone {
            marks.drop_mark(config);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Marks {
    fn drop_mark(&mut self, config: ConfigKey) {
        if let Some(mark) = self.by_config.remove(&config) {
            *self.dropped.0.entry(mark.target).or_default() += mark.updates;
        }
    }
}

/// Who wants to be told of which task, as the writer remembers it.
#[derive(Default)]
struct Registered {
    /// Absent until it is read.
    tasks: Option<HashMap<TaskKey, Vec<Brief>>>,
    outbox: Option<Arc<Outbox>>,
}

/// A config, as much of it as a change needs.
#[derive(Clone)]
struct Brief {
    config: ConfigKey,
    target: TargetKey,
    origin: Arc<str>,
    disabled: bool,
}

impl Remembered for Registered {
    fn rolled_back(&mut self) {
        self.tasks = None;
    }
}

/// From now on this outbox is told. Reserved rows are written without one as well.
pub fn attach(context: &mut WriteContext<'_>, outbox: Arc<Outbox>) {
    outbox.noted.store(true, Ordering::SeqCst);
    context.state.of::<Registered>().outbox = Some(outbox);
}

/// Configs of this task are other ones.
pub(super) fn configs_changed(context: &mut WriteContext<'_>, task: TaskKey) -> Result<(), StoreError> {
    let briefs = briefs_of(context, task)?;
    let registered = context.state.of::<Registered>();
    if let Some(outbox) = &registered.outbox {
        outbox.keep_only(task, &briefs);
    }
    if let Some(tasks) = &mut registered.tasks {
        if briefs.is_empty() {
            tasks.remove(&task);
        } else {
            tasks.insert(task, briefs);
        }
    }
    Ok(())
}

/// What a change was, for callbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// This reserved state was reached, or its content is another now.
    Reached(TaskState),
    /// Something else happened.
    Progress,
}

/// To be called when the rows of the task are written.
pub(super) fn handle_change(
    context: &mut WriteContext<'_>,
    task: TaskKey,
    told: Told,
) -> Result<(), StoreError> {
    if context.state.of::<Registered>().tasks.is_none() {
        let loaded = load(context)?;
        context.state.of::<Registered>().tasks = Some(loaded);
    }
    let registered = context.state.of::<Registered>();
    let Some(briefs) = registered.tasks.as_ref().and_then(|tasks| tasks.get(&task)) else { return Ok(()) };
    match told {
        Told::Progress => {
            let Some(outbox) = &registered.outbox else { return Ok(()) };
            for brief in briefs.iter().filter(|brief| !brief.disabled) {
                outbox.mark(brief, task, context.now_ms);
            }
            Ok(())
        }
        Told::Reached(state) => {
            let briefs = briefs.clone();
            for brief in &briefs {
                if let Some(outbox) = &context.state.of::<Registered>().outbox {
                    outbox.drop_mark(brief.config);
                }
            }
            let rows = configs::of_task(context.tx, task)?;
            tell(context, task, state, &rows)
        }
    }
}

/// A config that came with a send whose answer already had a reserved state: the transition was made under it.
pub fn tell_inline(context: &mut WriteContext<'_>, config: &ConfigRow) -> Result<(), StoreError> {
    let state = super::tasks::get(context.tx, config.task)?.state;
    match Lane::of(state) {
        Lane::Reserved => tell(context, config.task, state, std::slice::from_ref(config)),
        Lane::BestEffort => Ok(()),
    }
}

fn tell(
    context: &mut WriteContext<'_>,
    task: TaskKey,
    state: TaskState,
    configs: &[ConfigRow],
) -> Result<(), StoreError> {
    // As GetTask answers within this transaction: from the rows, not from what is remembered.
    let (content, _) = task_content::load(context.tx, task)?;
    let request = deliveries::insert_request(context, task, state)?;
    for config in configs {
        if config.disabled.is_none() {
            let body = push_body::body(&content, config.dialect, config.form);
            deliveries::put_body(context, request, config.dialect, config.form, &body)?;
        }
        deliveries::insert_reserved(context, request, config)?;
    }
    let seq = last_seq(context.tx)?;
    if let Some(outbox) = &context.state.of::<Registered>().outbox {
        outbox.note_reserved(seq);
    }
    Ok(())
}

const BRIEFS: &str = "SELECT c.task_ref, c.id, c.target_id, c.disabled_at_ms IS NOT NULL, t.origin
    FROM client_push_configs c JOIN targets t ON t.id = c.target_id";

fn load(context: &WriteContext<'_>) -> Result<HashMap<TaskKey, Vec<Brief>>, StoreError> {
    let mut tasks: HashMap<TaskKey, Vec<Brief>> = HashMap::new();
    let mut statement = context.tx.prepare_cached(BRIEFS)?;
    let rows = statement.query_map([], read_brief)?;
    for row in rows {
        let (task, brief) = row?;
        tasks.entry(task).or_default().push(brief);
    }
    Ok(tasks)
}

fn briefs_of(context: &WriteContext<'_>, task: TaskKey) -> Result<Vec<Brief>, StoreError> {
    let mut statement = context.tx.prepare_cached(&format!("{BRIEFS} WHERE c.task_ref = ?1"))?;
    let rows = statement.query_map([task], read_brief)?;
    Ok(rows.map(|row| row.map(|(_, brief)| brief)).collect::<Result<_, _>>()?)
}

fn read_brief(row: &Row<'_>) -> rusqlite::Result<(TaskKey, Brief)> {
    let origin = Arc::from(row.get::<_, String>(4)?);
    let brief = Brief { config: row.get(1)?, target: row.get(2)?, origin, disabled: row.get(3)? };
    Ok((row.get(0)?, brief))
}
