//! Lists of tasks: which, in what order, a page at a time.
//!
//! The keys are found first, in one index whose columns decide, and the page's rows are read by their keys. What a
//! filter needs beside its index ([`Walk`]) is in `tasks_listed`, or there are few to look at.

use rusqlite::{Connection, ToSql};
use taskbell_core::ids::AgentName;
use taskbell_core::search::{Is, Query};

use super::error::StoreError;
use super::keys::TaskKey;
use super::search::{self, Hits};
use super::tasks::{TaskRow, get};

/// Which tasks to list. All that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Not ended.
    pub open: bool,
    pub needs_you: bool,
    pub agent: Option<AgentName>,
    /// Words of states and verdicts; empty: all.
    pub states: Vec<String>,
    /// Changed or created at or after this.
    pub since_ms: Option<i64>,
    /// Those out of the lists as well. Where the query says something of it, that holds.
    pub archived: bool,
    pub query: Query,
    /// The wall clock: what is snoozed until then needs nobody before.
    pub now_ms: i64,
}

/// Where a page goes on: the last row's `updated_at_ms` and id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskCursor {
    pub updated_at_ms: i64,
    pub key: TaskKey,
}

/// Before the newest.
const START: TaskCursor = TaskCursor { updated_at_ms: i64::MAX, key: TaskKey(i64::MAX) };

/// So few hits are looked up by their keys; more are met while the list is walked.
const FEW: usize = 2_000;

/// It waits for its user, and is not put off: `?now` is the wall clock. The same as [`TaskRow::needs_you`].
const WAITS: &str = "t.waiting_since_ms IS NOT NULL AND t.waiting_since_ms > coalesce(t.replied_at_ms, 0)";
const SNOOZED: &str = "coalesce(t.snoozed_until_ms, 0) > ?now AND t.waiting_since_ms IS NOT NULL
    AND t.waiting_since_ms <= t.snoozed_at_ms";
const SIGN_IN: &str = "coalesce(t.trouble, '') IN ('unauthorized', 'forbidden')";

/// One page, the latest change first.
pub fn list(
    connection: &Connection,
    filter: &TaskFilter,
    after: Option<TaskCursor>,
    limit: u32,
) -> Result<Vec<TaskRow>, StoreError> {
    let keys = keys(connection, filter, after.unwrap_or(START), limit)?;
    keys.into_iter().map(|(_, key)| get(connection, key)).collect()
}

/// Which index the keys are taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Walk {
    /// By these keys, which are few: sorted afterwards.
    Few(Vec<i64>),
    /// An index of what is wanted and nothing else.
    Rare(&'static str),
    /// One walk a state, joined.
    Shown(Vec<String>),
    /// All, by the index that has every column of a filter.
    All,
}

fn keys(
    connection: &Connection,
    filter: &TaskFilter,
    after: TaskCursor,
    limit: u32,
) -> Result<Vec<(i64, TaskKey)>, StoreError> {
    let Some(clauses) = clauses(connection, filter)? else { return Ok(Vec::new()) };
    let mut sets = Vec::new();
    if let Some(wanted) = filter.query.wanted() {
        sets.push((search::hits(connection, &wanted)?, true));
    }
    if let Some(unwanted) = filter.query.unwanted() {
        sets.push((search::hits(connection, &unwanted)?, false));
    }
    let verdicts = &filter.query.verdicts;
    if !verdicts.any.is_empty() {
        sets.push((search::tasks_with_verdicts(connection, &verdicts.any)?, true));
    }
    if !verdicts.none.is_empty() {
        sets.push((search::tasks_with_verdicts(connection, &verdicts.none)?, false));
    }
    let few = sets
        .iter()
        .filter(|(_, wanted)| *wanted)
        .filter_map(|(hits, _)| hits.few(FEW))
        .min_by_key(|few| few.len());
    let walk = match few {
        Some(few) => Walk::Few(few),
        None => clauses.walk(!sets.is_empty()),
    };
    let run =
        |walk: &Walk, state: Option<&str>| walk_keys(connection, &clauses, walk, state, after, limit, &sets);
    match &walk {
        Walk::Shown(states) => {
            let mut found = Vec::new();
            for state in states {
                found.extend(run(&walk, Some(state))?);
            }
            found.sort_unstable_by(|one, other| other.cmp(one));
            found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            Ok(found)
        }
        Walk::Few(_) | Walk::Rare(_) | Walk::All => run(&walk, None),
    }
}

/// A filter as SQL. Words in it are ours; what users wrote is bound.
struct Clauses {
    sql: Vec<String>,
    now_ms: i64,
    since_ms: i64,
    /// All are of this kind, which has an index of its own.
    rare: Option<&'static str>,
    /// Any of these; empty: all.
    states: Vec<String>,
    /// Nothing but states is asked for, of what is not archived.
    states_alone: bool,
}

impl Clauses {
    fn walk(&self, has_sets: bool) -> Walk {
        match self.rare {
            Some(index) => Walk::Rare(index),
            None if self.states_alone && !has_sets => Walk::Shown(self.states.clone()),
            None => Walk::All,
        }
    }
}

/// None: no task can be meant.
fn clauses(connection: &Connection, filter: &TaskFilter) -> Result<Option<Clauses>, StoreError> {
    let query = &filter.query;
    let mut sql: Vec<String> = Vec::new();
    let mut rare: Vec<(u8, &'static str)> = Vec::new();
    let mut alone = true;
    let mut say = |clause: String| {
        sql.push(clause);
    };
    let not = |holds: bool| if holds { "" } else { "NOT " };

    let open = filter.open || query.says_of(Is::Open) == Some(true);
    let waits = filter.needs_you || query.says_of(Is::Waiting) == Some(true);
    let modes = query.via.any.iter().any(|via| !via.is_mode());
    let followed =
        open || waits || query.says_of(Is::Snoozed) == Some(true) || (!query.via.any.is_empty() && !modes);
    if followed {
        say("t.following <> 'ended'".to_owned());
        rare.push((3, "tasks_followed"));
    }
    if waits {
        say(format!("(({WAITS} AND NOT ({SNOOZED})) OR {SIGN_IN})"));
    }
    for (is, holds) in &query.is {
        match is {
            Is::Open if *holds => {}
            Is::Open => say("t.following = 'ended'".to_owned()),
            Is::Waiting if *holds => {}
            Is::Waiting => {
                say(format!("(t.following = 'ended' OR NOT (({WAITS} AND NOT ({SNOOZED})) OR {SIGN_IN}))"))
            }
            Is::Snoozed => say(format!("{}({SNOOZED} AND t.following <> 'ended')", not(*holds))),
            Is::Pinned => {
                say(format!("t.pinned_at_ms IS {}NULL", if *holds { "NOT " } else { "" }));
                rare.extend(holds.then_some((0, "tasks_pinned")));
            }
            Is::Muted => {
                say(format!("t.muted_at_ms IS {}NULL", if *holds { "NOT " } else { "" }));
                rare.extend(holds.then_some((1, "tasks_muted")));
            }
            Is::Archived => rare.extend(holds.then_some((2, "tasks_archived"))),
            Is::Noted => {
                say(format!("t.id {}IN (SELECT n.task_ref FROM task_notes n)", not(*holds)));
            }
        }
        alone &= *is == Is::Archived && !holds;
    }
    let archived = query.says_of(Is::Archived).or((!filter.archived).then_some(false));
    match archived {
        Some(false) => say("t.archived_at_ms IS NULL".to_owned()),
        Some(true) => say("t.archived_at_ms IS NOT NULL".to_owned()),
        None => {}
    }
    if !query.via.is_open() {
        alone = false;
        for (values, holds) in [(&query.via.any, true), (&query.via.none, false)] {
            if values.is_empty() {
                continue;
            }
            let words = |modes: bool| {
                let of_kind = values.iter().filter(|via| via.is_mode() == modes);
                of_kind.map(|via| format!("'{}'", via.word())).collect::<Vec<_>>().join(", ")
            };
            say(format!(
                "{}(coalesce(t.confirmed_by, '') IN ({}) OR t.mode IN ({}))",
                not(holds),
                words(false),
                words(true)
            ));
        }
    }
    let agents = filter.agent.iter().map(|agent| (std::slice::from_ref(agent), true));
    for (names, holds) in agents.chain([(&query.agents.any[..], true), (&query.agents.none[..], false)]) {
        if names.is_empty() {
            continue;
        }
        alone = false;
        let keys = keys_of(connection, names)?;
        if holds && keys.is_empty() {
            return Ok(None);
        }
        let keys = keys.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        say(format!("t.agent_id {}IN ({keys})", not(holds)));
    }
    let named: Vec<String> = query.states.any.iter().map(|state| state.word().to_owned()).collect();
    let states = match (filter.states.is_empty(), named.is_empty()) {
        (true, _) => named,
        (false, true) => filter.states.clone(),
        (false, false) => {
            let both: Vec<String> = named.into_iter().filter(|word| filter.states.contains(word)).collect();
            if both.is_empty() {
                return Ok(None);
            }
            both
        }
    };
    if !query.states.none.is_empty() {
        alone = false;
        let none: Vec<String> = query.states.none.iter().map(|state| state.word().to_owned()).collect();
        say(format!("coalesce(t.verdict, t.state) NOT IN ({})", quoted(&none)));
    }
    alone &= !followed && archived == Some(false) && !states.is_empty();
    let since = query.since_ms.map(|ago| filter.now_ms.saturating_sub(ago));
    Ok(Some(Clauses {
        now_ms: filter.now_ms,
        since_ms: since.max(filter.since_ms).unwrap_or(i64::MIN),
        rare: rare.into_iter().min().map(|(_, index)| index),
        states_alone: alone,
        states,
        sql,
    }))
}

/// Words of states, as SQL has them.
fn quoted(words: &[String]) -> String {
    let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', "''")));
    quoted.collect::<Vec<_>>().join(", ")
}

/// Also of removed agents, whose tasks are still there.
pub(super) fn keys_of(connection: &Connection, names: &[AgentName]) -> Result<Vec<i64>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT id FROM agents WHERE name = ?1")?;
    let mut keys = Vec::new();
    for name in names {
        let found = statement.query_map([name.as_str()], |row| row.get::<_, i64>(0))?;
        for key in found {
            keys.push(key?);
        }
    }
    Ok(keys)
}

fn walk_keys(
    connection: &Connection,
    clauses: &Clauses,
    walk: &Walk,
    state: Option<&str>,
    after: TaskCursor,
    limit: u32,
    sets: &[(Hits, bool)],
) -> Result<Vec<(i64, TaskKey)>, StoreError> {
    let (sql, values) = statement(clauses, walk, state, after);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(rusqlite::params_from_iter(values))?;
    let mut found = Vec::new();
    while found.len() < usize::try_from(limit).unwrap_or(usize::MAX)
        && let Some(row) = rows.next()?
    {
        let key: i64 = row.get(1)?;
        if sets.iter().all(|(hits, wanted)| hits.holds(key) == *wanted) {
            found.push((row.get(0)?, TaskKey(key)));
        }
    }
    Ok(found)
}

/// The walk as a statement. A page always has a place where it begins, so that it is looked for in its index.
fn statement(
    clauses: &Clauses,
    walk: &Walk,
    state: Option<&str>,
    after: TaskCursor,
) -> (String, Vec<Box<dyn ToSql>>) {
    let mut values: Vec<Box<dyn ToSql>> = vec![
        Box::new(after.updated_at_ms),
        Box::new(after.key),
        Box::new(clauses.since_ms),
        Box::new(clauses.now_ms),
    ];
    let from = match walk {
        Walk::Few(few) => {
            values.push(Box::new(serde_json::to_string(few).unwrap_or_default()));
            "FROM json_each(?5) k CROSS JOIN tasks t ON t.id = k.value".to_owned()
        }
        Walk::Rare(index) => format!("FROM tasks t INDEXED BY {index}"),
        Walk::Shown(_) => {
            values.push(Box::new(state.unwrap_or_default().to_owned()));
            "FROM tasks t INDEXED BY tasks_by_shown".to_owned()
        }
        Walk::All => "FROM tasks t INDEXED BY tasks_listed".to_owned(),
    };
    let mut sql = format!(
        "SELECT t.updated_at_ms, t.id {from} WHERE (t.updated_at_ms, t.id) < (?1, ?2) AND t.updated_at_ms >= ?3
         AND ?4 IS NOT NULL"
    );
    if matches!(walk, Walk::Shown(_)) {
        sql.push_str(" AND coalesce(t.verdict, t.state) = ?5");
    } else if !clauses.states.is_empty() {
        sql.push_str(&format!(" AND coalesce(t.verdict, t.state) IN ({})", quoted(&clauses.states)));
    }
    for clause in &clauses.sql {
        sql.push_str(" AND ");
        sql.push_str(&clause.replace("?now", "?4"));
    }
    sql.push_str(" ORDER BY t.updated_at_ms DESC, t.id DESC");
    (sql, values)
}

#[cfg(test)]
mod tests;
