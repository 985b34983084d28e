use taskbell_core::search::{Query, Screen};

use super::*;
use crate::store::keys::TaskKey;
use crate::store::migrations;

fn store() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    migrations::migrate(&mut connection).unwrap();
    connection
        .execute_batch(
            "INSERT INTO agents (id, name, registered_url, origin, use_card_url, allow_http, created_at_ms)
             VALUES (1, 'one', 'u', 'o', 0, 0, 0)",
        )
        .unwrap();
    connection
}

fn filter(query: &str) -> ItemFilter {
    let query = Query::parse(query, Screen::Inbox).unwrap();
    ItemFilter { query, now_ms: 1_000, ..ItemFilter::default() }
}

fn plan(connection: &Connection, filter: &ItemFilter, walk: &Walk) -> Vec<String> {
    let search = Search::of(connection, filter).unwrap().unwrap();
    let verdicts: Vec<Verdict> = Verdict::ALL.into_iter().filter(|verdict| filter.takes(*verdict)).collect();
    let (sql, values) = statement(connection, filter, &search, walk, &verdicts, i64::MAX).unwrap();
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let rows = statement.query_map(rusqlite::params_from_iter(values), |row| row.get(3)).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn callbacks_are_looked_up_in_the_order_of_an_index_and_none_is_read_for_a_filter() {
    let connection = store();
    for query in ["", "state:completed", "-state:completed", "agent:one", "-agent:one", "since:1h", "is:open"]
    {
        let plan = plan(&connection, &filter(query), &Walk::All(vec![Verdict::Confirmed]));
        let first = plan.first().unwrap();
        assert!(first.starts_with("SEARCH c USING COVERING INDEX callbacks_by_time"), "{query}: {plan:?}");
        assert!(
            !plan.iter().any(|line| line.contains("TEMP B-TREE") || line.starts_with("SCAN c")),
            "{plan:?}"
        );
    }
    let unlike = plan(&connection, &filter("verdict:unmatched"), &Walk::Unlike(Verdict::Unmatched));
    assert_eq!(unlike.len(), 1, "{unlike:?}");
    assert!(
        unlike[0].contains("COVERING INDEX callbacks_unlike (verdict=? AND at_ms>? AND at_ms<?)"),
        "{unlike:?}"
    );
}

#[test]
fn callbacks_of_a_task_are_looked_up_by_it() {
    let connection = store();
    let of_task = ItemFilter { task: Some(TaskKey(1)), ..filter("verdict:confirmed") };
    let plan = plan(&connection, &of_task, &Walk::Tasks(vec![1]));
    assert!(
        plan.iter().any(|line| line.contains("SEARCH c USING INDEX callbacks_by_task (task_ref=?)")),
        "{plan:?}"
    );
}
