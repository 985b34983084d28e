use taskbell_core::search::Screen;

use super::*;
use crate::store::migrations;

const NOW: i64 = 1_000_000;

fn store() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    migrations::migrate(&mut connection).unwrap();
    connection
        .execute_batch(
            "INSERT INTO agents (id, name, registered_url, origin, use_card_url, allow_http, created_at_ms)
             VALUES (1, 'one', 'u', 'o', 0, 0, 0), (2, 'two', 'u', 'o', 0, 0, 0);
             INSERT INTO agents (id, name, registered_url, origin, use_card_url, allow_http, created_at_ms, removed_at_ms)
             VALUES (3, 'two', 'u', 'o', 0, 0, 0, 5);",
        )
        .unwrap();
    connection
}

fn filter(query: &str) -> TaskFilter {
    let query = Query::parse(query, Screen::Tasks).unwrap();
    TaskFilter { query, now_ms: NOW, ..TaskFilter::default() }
}

/// What SQLite does for the walks of a filter, a line a step.
fn plan(connection: &Connection, filter: &TaskFilter, has_sets: bool) -> Vec<String> {
    let clauses = clauses(connection, filter).unwrap().unwrap();
    plan_of(connection, &clauses, &clauses.walk(has_sets))
}

fn plan_of(connection: &Connection, clauses: &Clauses, walk: &Walk) -> Vec<String> {
    let (sql, values) = statement(clauses, walk, Some("failed"), START);
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let rows = statement.query_map(rusqlite::params_from_iter(values), |row| row.get(3)).unwrap();
    rows.map(Result::unwrap).collect()
}

const QUERIES: &[(&str, &str)] = &[
    ("", "COVERING INDEX tasks_listed"),
    ("-is:archived", "COVERING INDEX tasks_listed"),
    ("state:failed", "INDEX tasks_by_shown"),
    ("state:failed,rejected since:7d", "INDEX tasks_by_shown"),
    ("state:failed agent:one", "COVERING INDEX tasks_listed"),
    ("-state:failed", "COVERING INDEX tasks_listed"),
    ("agent:one", "COVERING INDEX tasks_listed"),
    ("-agent:one", "COVERING INDEX tasks_listed"),
    ("via:stream", "COVERING INDEX tasks_listed"),
    ("-via:stream,paused", "COVERING INDEX tasks_listed"),
    ("-is:open", "COVERING INDEX tasks_listed"),
    ("is:noted", "COVERING INDEX tasks_listed"),
    ("-is:pinned -is:muted", "COVERING INDEX tasks_listed"),
    ("is:pinned state:completed", "INDEX tasks_pinned"),
    ("is:muted", "INDEX tasks_muted"),
    ("is:archived", "INDEX tasks_archived"),
    ("is:open", "INDEX tasks_followed"),
    ("is:waiting", "INDEX tasks_followed"),
    ("is:snoozed", "INDEX tasks_followed"),
    ("via:reconnecting", "INDEX tasks_followed"),
    ("is:open is:pinned", "INDEX tasks_pinned"),
];

#[test]
fn every_list_is_looked_up_in_the_order_of_an_index_and_no_row_is_read_for_a_filter() {
    let connection = store();
    for (query, index) in QUERIES {
        let plan = plan(&connection, &filter(query), false);
        let first = plan.first().unwrap();
        assert!(first.starts_with("SEARCH t USING") && first.contains(index), "{query}: {plan:?}");
        for line in &plan {
            assert!(!line.contains("TEMP B-TREE"), "{query} is sorted: {plan:?}");
            assert!(!line.starts_with("SCAN t"), "{query} goes through all tasks: {plan:?}");
        }
    }
}

#[test]
fn the_filters_of_before_are_looked_up_as_well() {
    let connection = store();
    let plain = || filter("");
    for (filter, index) in [
        (TaskFilter { open: true, ..plain() }, "tasks_followed"),
        (TaskFilter { needs_you: true, ..plain() }, "tasks_followed"),
        (TaskFilter { states: vec!["failed".to_owned()], ..plain() }, "tasks_by_shown"),
        (TaskFilter { archived: true, since_ms: Some(5), ..plain() }, "tasks_listed"),
    ] {
        let plan = plan(&connection, &filter, false);
        assert!(plan[0].starts_with("SEARCH t USING") && plan[0].contains(index), "{plan:?}");
    }
}

#[test]
fn few_hits_are_looked_up_by_their_keys_and_many_are_met_on_a_walk() {
    let connection = store();
    let clauses = clauses(&connection, &filter("state:failed")).unwrap().unwrap();
    let few = plan_of(&connection, &clauses, &Walk::Few(vec![1, 2]));
    assert!(few.iter().any(|line| line.contains("SEARCH t USING INTEGER PRIMARY KEY")), "{few:?}");
    let many = plan(&connection, &filter("state:failed"), true);
    assert!(many[0].contains("COVERING INDEX tasks_listed"), "{many:?}");
}

#[test]
fn an_agent_that_was_removed_is_meant_by_its_name_too_and_an_unknown_one_means_no_task() {
    let connection = store();
    let keys = |name: &str| keys_of(&connection, &[AgentName::new(name).unwrap()]).unwrap();
    assert_eq!(keys("two"), [2, 3]);
    assert!(clauses(&connection, &filter("agent:nobody")).unwrap().is_none());
}

#[test]
fn a_state_that_a_filter_and_a_query_do_not_share_means_no_task() {
    let connection = store();
    let both = TaskFilter { states: vec!["failed".to_owned()], ..filter("state:completed") };
    assert!(clauses(&connection, &both).unwrap().is_none());
}
