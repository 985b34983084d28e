//! Which rows of the inbox a page has. Keys of callbacks are found in indexes that hold all that a filter asks for: a
//! callback's row may be long.

use rusqlite::{Connection, ToSql};
use taskbell_core::ids::AgentName;
use taskbell_core::verdict::Verdict;

use super::{ItemFilter, ItemRow, REFUSED, read};
use crate::store::error::StoreError;
use crate::store::lists::keys_of;
use crate::store::search::{self, Hits};

/// Tasks with the words, or registrations of an agent, that are looked up by their keys. More are met while the
/// callbacks are walked.
const FEW: usize = 2_000;

/// What a query's words and names come to.
pub(super) struct Search {
    /// Tasks with the words, or without them.
    tasks: Vec<(Hits, bool)>,
    /// Keys of agents.
    agents: Vec<(Vec<i64>, bool)>,
}

impl Search {
    /// None: nothing can be meant.
    pub(super) fn of(connection: &Connection, filter: &ItemFilter) -> Result<Option<Self>, StoreError> {
        let query = &filter.query;
        let mut tasks = Vec::new();
        for (expression, holds) in [(query.wanted(), true), (query.unwanted(), false)] {
            if let Some(expression) = expression {
                tasks.push((search::hits(connection, &expression)?, holds));
            }
        }
        let mut agents = Vec::new();
        let named: Vec<AgentName> = filter.agent.iter().cloned().collect();
        for (names, holds) in [(&named, true), (&query.agents.any, true), (&query.agents.none, false)] {
            if names.is_empty() {
                continue;
            }
            let keys = keys_of(connection, names)?;
            if holds && keys.is_empty() {
                return Ok(None);
            }
            agents.push((keys, holds));
        }
        Ok(Some(Self { tasks, agents }))
    }

    fn takes(&self, task: Option<i64>) -> bool {
        self.tasks.iter().all(|(hits, wanted)| task.is_some_and(|task| hits.holds(task)) == *wanted)
    }

    fn few(&self) -> Option<Vec<i64>> {
        self.tasks.iter().filter(|(_, wanted)| *wanted).find_map(|(hits, _)| hits.few(FEW))
    }
}

/// Where keys of callbacks are taken from.
enum Walk {
    /// Of one task, or of few.
    Tasks(Vec<i64>),
    /// Those with this verdict, which is not what callbacks usually get.
    Unlike(Verdict),
    /// All, or all with one of these verdicts.
    All(Vec<Verdict>),
}

fn is_unlike(verdict: Verdict) -> bool {
    !matches!(verdict, Verdict::Pending | Verdict::Confirmed | Verdict::Duplicate)
}

/// Keys of callbacks with their times, the latest first.
pub(super) fn callbacks(
    connection: &Connection,
    filter: &ItemFilter,
    search: &Search,
    before_ms: i64,
    limit: usize,
) -> Result<Vec<(i64, i64)>, StoreError> {
    let verdicts: Vec<Verdict> = Verdict::ALL.into_iter().filter(|verdict| filter.takes(*verdict)).collect();
    let walks = match (filter.task, search.few()) {
        (Some(task), _) => vec![Walk::Tasks(vec![task.0])],
        (None, Some(few)) => vec![Walk::Tasks(few)],
        (None, None) if verdicts.len() == Verdict::ALL.len() => vec![Walk::All(Vec::new())],
        (None, None) => {
            let (unlike, usual): (Vec<Verdict>, Vec<Verdict>) =
                verdicts.iter().partition(|verdict| is_unlike(**verdict));
            let mut walks: Vec<Walk> = unlike.into_iter().map(Walk::Unlike).collect();
            if !usual.is_empty() {
                walks.push(Walk::All(usual));
            }
            walks
        }
    };
    let mut found = Vec::new();
    for walk in &walks {
        found.extend(keys(connection, filter, search, walk, &verdicts, before_ms, limit)?);
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    found.truncate(limit);
    Ok(found)
}

fn keys(
    connection: &Connection,
    filter: &ItemFilter,
    search: &Search,
    walk: &Walk,
    verdicts: &[Verdict],
    before_ms: i64,
    limit: usize,
) -> Result<Vec<(i64, i64)>, StoreError> {
    let (sql, values) = statement(connection, filter, search, walk, verdicts, before_ms)?;
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(rusqlite::params_from_iter(values))?;
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        if search.takes(row.get(2)?) {
            found.push((row.get(0)?, row.get(1)?));
        }
    }
    Ok(found)
}

fn statement(
    connection: &Connection,
    filter: &ItemFilter,
    search: &Search,
    walk: &Walk,
    verdicts: &[Verdict],
    before_ms: i64,
) -> Result<(String, Vec<Box<dyn ToSql>>), StoreError> {
    let mut values: Vec<Box<dyn ToSql>> = vec![Box::new(before_ms), Box::new(filter.since_ms())];
    let quoted = |words: &[&str]| words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ");
    let some =
        |verdicts: &[Verdict]| quoted(&verdicts.iter().map(|verdict| verdict.word()).collect::<Vec<_>>());
    let (from, own) = match walk {
        Walk::Tasks(keys) => {
            values.push(Box::new(serde_json::to_string(keys).unwrap_or_default()));
            let own = if verdicts.len() == Verdict::ALL.len() {
                String::new()
            } else {
                format!(" AND c.verdict IN ({})", some(verdicts))
            };
            (
                "json_each(?3) k CROSS JOIN callbacks c INDEXED BY callbacks_by_task ON c.task_ref = k.value",
                own,
            )
        }
        Walk::Unlike(verdict) => (
            "callbacks c INDEXED BY callbacks_unlike",
            format!(
                " AND c.verdict NOT IN ('pending', 'confirmed', 'duplicate') AND c.verdict = '{}'",
                verdict.word()
            ),
        ),
        Walk::All(verdicts) if verdicts.is_empty() => {
            ("callbacks c INDEXED BY callbacks_by_time", String::new())
        }
        Walk::All(verdicts) => {
            ("callbacks c INDEXED BY callbacks_by_time", format!(" AND c.verdict IN ({})", some(verdicts)))
        }
    };
    let mut sql =
        format!("SELECT c.at_ms, c.id, c.task_ref FROM {from} WHERE c.at_ms <= ?1 AND c.at_ms >= ?2{own}");
    for (states, holds) in [(&filter.query.states.any, true), (&filter.query.states.none, false)] {
        if !states.is_empty() {
            let words: Vec<&str> = states.iter().map(|state| state.word()).collect();
            let not = if holds { "" } else { "NOT " };
            sql.push_str(&format!(" AND coalesce(c.claimed_state, '') {not}IN ({})", quoted(&words)));
        }
    }
    for (agents, holds) in &search.agents {
        let not = if *holds { "" } else { "NOT " };
        let agents = agents.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        if *holds && are_few(connection, &agents)? {
            sql.push_str(&format!(
                " AND c.registration_ref IN (SELECT r.id FROM registrations r WHERE r.agent_id IN ({agents}))"
            ));
        } else {
            sql.push_str(&format!(
                " AND (SELECT coalesce(r.agent_id, 0) FROM registrations r WHERE r.id = c.registration_ref) {not}IN ({agents})"
            ));
        }
    }
    sql.push_str(" ORDER BY c.at_ms DESC, c.id DESC");
    Ok((sql, values))
}

fn are_few(connection: &Connection, agents: &str) -> Result<bool, StoreError> {
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 FROM registrations WHERE agent_id IN ({agents}) LIMIT {})",
        FEW + 1
    );
    let count: i64 = connection.prepare_cached(&sql)?.query_row([], |row| row.get(0))?;
    Ok(count <= FEW as i64)
}

/// Rows of what was not taken, which are few: quarantined ones, or refusals.
pub(super) fn others(
    connection: &Connection,
    select: &str,
    time: &str,
    filter: &ItemFilter,
    search: &Search,
    before_ms: i64,
    limit: usize,
) -> Result<Vec<ItemRow>, StoreError> {
    let is_refused = select == REFUSED;
    // What is of another task is in quarantine, with its own row.
    let own = if is_refused { "c.reason <> 'other_task'" } else { "c.id > 0" };
    let mut sql =
        format!("{select} WHERE {own} AND {time} <= ?1 AND {time} >= ?2 AND (?3 IS NULL OR r.task_ref = ?3)");
    for (agents, holds) in &search.agents {
        let not = if *holds { "" } else { "NOT " };
        let agents = agents.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        sql.push_str(&format!(" AND coalesce(r.agent_id, 0) {not}IN ({agents})"));
    }
    let last = if is_refused { "c.registration_ref" } else { "c.id" };
    sql.push_str(&format!(" ORDER BY {time} DESC, {last} DESC"));
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query((before_ms, filter.since_ms(), filter.task))?;
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        let item = read(row)?;
        if search.takes(item.task_key.map(|key| key.0)) {
            found.push(item);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
