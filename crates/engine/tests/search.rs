//! Finding tasks in a real database: words, filters, what is indexed when, and what users keep of tasks.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use taskbell_core::dialect::read;
use taskbell_core::ids::AgentName;
use taskbell_core::search::{Query, Screen};
use taskbell_engine::search_index::{Turn, run_once};
use taskbell_engine::store::agents::{self, NewAgent};
use taskbell_engine::store::changes;
use taskbell_engine::store::flags::{self, Flag};
use taskbell_engine::store::lists::{self, TaskFilter};
use taskbell_engine::store::task_records::{Adoption, Told, adopt, apply_events};
use taskbell_engine::store::tasks::{self, Channel, TaskSource};
use taskbell_engine::store::{AgentKey, Store, TaskKey, notices, search};

struct World {
    _folder: tempfile::TempDir,
    store: Store,
    agent: AgentKey,
    now_ms: Arc<AtomicI64>,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now_ms = Arc::new(AtomicI64::new(1_000_000));
        let clock = Arc::clone(&now_ms);
        let store = Store::open(folder.path(), Arc::new(move || clock.load(Ordering::SeqCst))).unwrap().0;
        let agent = Self::add_agent(&store, "builder").await;
        Self { _folder: folder, store, agent, now_ms }
    }

    async fn add_agent(store: &Store, name: &'static str) -> AgentKey {
        let insert = move |context: &mut taskbell_engine::store::WriteContext<'_>| {
            let name = AgentName::new(name).unwrap();
            let agent = NewAgent {
                name: &name,
                registered_url: "http://127.0.0.1:9/",
                origin: &"http://127.0.0.1:9".parse().unwrap(),
                use_card_url: false,
                allow_http: false,
            };
            agents::insert(context, &agent)
        };
        store.write(insert).await.unwrap()
    }

    async fn adopt_of(&self, agent: AgentKey, title: &'static str, task: Value) -> TaskKey {
        let task = read::task(task).unwrap();
        self.now_ms.fetch_add(1_000, Ordering::SeqCst);
        let adoption = Adoption {
            source: TaskSource::Send,
            channel: Channel::Poll,
            told: Told::ByGetTask,
            title,
            credential_version: 0,
        };
        self.store.write(move |context| adopt(context, agent, task, 1, adoption)).await.unwrap().0
    }

    async fn adopt(&self, title: &'static str, task: Value) -> TaskKey {
        self.adopt_of(self.agent, title, task).await
    }

    async fn event(&self, key: TaskKey, event: Value) {
        let event = (read::stream_event(event).unwrap(), 10);
        self.now_ms.fetch_add(1_000, Ordering::SeqCst);
        let apply = move |context: &mut taskbell_engine::store::WriteContext<'_>| {
            apply_events(context, key, vec![event], Channel::Stream)
        };
        self.store.write(apply).await.unwrap();
    }

    async fn index(&self) {
        while run_once(&self.store).await.unwrap() == Turn::More {}
    }

    async fn due(&self) -> usize {
        self.store.read(|connection| search::due(connection, 100)).await.unwrap().len()
    }

    async fn flag(&self, key: TaskKey, flag: Flag, at_ms: Option<i64>) {
        self.store.write(move |context| flags::set(context, key, flag, at_ms)).await.unwrap();
    }

    /// Ids of what a query finds, once everything is indexed.
    async fn find(&self, query: &str) -> Vec<String> {
        self.index().await;
        let query = Query::parse(query, Screen::Tasks).unwrap();
        let now_ms = self.now_ms.load(Ordering::SeqCst);
        let filter = TaskFilter { query, now_ms, ..TaskFilter::default() };
        let rows =
            self.store.read(move |connection| lists::list(connection, &filter, None, 100)).await.unwrap();
        rows.iter().map(|row| row.task_id.to_string()).collect()
    }

    /// Where a query's words stand in a task, the hits in brackets.
    async fn hit(&self, key: TaskKey, query: &str) -> Option<(&'static str, String)> {
        let words = Query::parse(query, Screen::Tasks).unwrap().words;
        let found = self
            .store
            .read(move |connection| search::hit(connection, key, &words, &mut search::Budget(1 << 20)));
        found.await.unwrap().map(|(place, snippet)| {
            let mark = |part: &taskbell_core::search::SnippetPart| {
                if part.hit { format!("[{}]", part.text) } else { part.text.clone() }
            };
            (place.word(), snippet.parts.iter().map(mark).collect())
        })
    }
}

fn status(state: &str, text: &str) -> Value {
    json!({"kind":"status-update","taskId":"t-1","contextId":"c","final":false,
        "status":{"state":state,"message":{"messageId":"m","role":"agent","kind":"message",
            "parts":[{"kind":"text","text":text}]}}})
}

fn artifact(text: &str) -> Value {
    json!({"kind":"artifact-update","taskId":"t-1","contextId":"c","append":false,
        "artifact":{"artifactId":"a","parts":[{"kind":"text","text":text}]}})
}

fn working(id: &str) -> Value {
    json!({"id":id,"contextId":"ctx-77","status":{"state":"working"},
        "history":[{"messageId":"u","role":"user","parts":[{"kind":"text","text":"please compile the moon lander"}]}]})
}

#[tokio::test]
async fn a_task_is_found_by_title_question_answer_note_conversation_and_ids() {
    let world = World::new().await;
    let key = world.adopt("Build the lander", working("t-1")).await;
    world.adopt("something else", json!({"id":"t-2","status":{"state":"working"}})).await;
    world.event(key, artifact("The Thrusters are calibrated.")).await;
    world.event(key, status("input-required", "Which launchpad?")).await;
    world.store.write(move |context| flags::set_note(context, key, "ask Müller first")).await.unwrap();
    for (query, place) in [
        ("lander build", "title"),
        ("launchp", "question"),
        ("thrusters", "answer"),
        ("muller", "note"),
        ("\"moon lander\"", "conversation"),
        ("ctx-77", "id"),
        ("t-1", "id"),
    ] {
        assert_eq!(world.find(query).await, ["t-1"], "{query}");
        assert_eq!(world.hit(key, query).await.map(|(place, _)| place), Some(place), "{query}");
    }
    assert_eq!(
        world.hit(key, "calibrated").await,
        Some(("answer", "The Thrusters are [calibrated].".to_owned()))
    );
    assert!(world.find("lander nonsense").await.is_empty(), "all words must be there");
    assert!(world.find("lander -thrusters").await.is_empty());
    assert_eq!(world.find("-thrusters").await, ["t-2"]);
    assert_eq!(world.find("builder").await, ["t-1", "t-2"], "by the agent's name, the latest change first");
    assert!(world.find("land").await.len() == 1 && world.find("land build").await.is_empty());
}

#[tokio::test]
async fn progress_makes_nothing_due_and_a_question_and_an_end_do() {
    let world = World::new().await;
    let key = world.adopt("one", working("t-1")).await;
    world.index().await;
    world.event(key, status("working", "step 1")).await;
    world.event(key, artifact("a chunk")).await;
    world.event(key, status("working", "step 2")).await;
    assert_eq!(world.due().await, 0, "progress is not indexed");
    world.event(key, status("input-required", "which?")).await;
    assert_eq!(world.due().await, 1);
    world.index().await;
    world.event(key, status("completed", "done")).await;
    assert_eq!(world.due().await, 1);
    assert_eq!(world.find("chunk").await, ["t-1"]);
}

#[tokio::test]
async fn what_changes_while_it_is_read_stays_due() {
    let world = World::new().await;
    let key = world.adopt("one", working("t-1")).await;
    let stale = world.store.read(|connection| {
        let due = search::due(connection, 10)?[0];
        Ok(vec![(due, search::document(connection, due.key())?)])
    });
    let stale = stale.await.unwrap();
    world.store.write(move |context| flags::set_note(context, key, "remarkable")).await.unwrap();
    world.store.write(move |context| search::index(context, &stale)).await.unwrap();
    assert_eq!(world.due().await, 1, "the note came after the task was read");
    assert_eq!(world.find("remarkable").await, ["t-1"]);
}

#[tokio::test]
async fn a_task_that_is_gone_is_found_no_more_and_its_words_are_not_indexed_again() {
    let world = World::new().await;
    let key = world.adopt("vanishing act", working("t-1")).await;
    assert_eq!(world.find("vanishing").await, ["t-1"]);
    let late = world.store.read(move |connection| {
        Ok(vec![(search::Due::Changed { key, n: 1 }, search::document(connection, key)?)])
    });
    let late = late.await.unwrap();
    world.store.write(move |context| tasks::delete(context, key)).await.unwrap();
    world.store.write(move |context| search::index(context, &late)).await.unwrap();
    let count = world.store.read(|connection| {
        let sql = "SELECT count(*) FROM search WHERE search MATCH 'vanishing'";
        Ok(connection.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(count.await.unwrap(), 0);
}

#[tokio::test]
async fn whatever_is_typed_is_an_answer_or_a_sentence_and_never_a_failure() {
    let world = World::new().await;
    world.adopt("one", working("t-1")).await;
    world.index().await;
    for text in [
        "NEAR(a b)",
        "a*b",
        "^one",
        "title : one",
        "{title} one",
        "a AND OR NOT",
        "one OR",
        "+ + a",
        "(((",
        "one)",
        "'; DROP TABLE tasks; --",
        "a\u{0}b",
        "\u{202e}one",
        "日本語",
        "*",
        "%",
        "_",
        "one -",
        "\"",
        "a\"b\"c",
        "col:\"x",
        "-",
        "--one",
        "-\"one\"",
        "state:failed,,",
        "🚀",
        "🚀 one",
        "é\u{301}",
        "\\",
        "/* one */",
    ] {
        if let Ok(query) = Query::parse(text, Screen::Tasks) {
            let filter = TaskFilter { query, ..TaskFilter::default() };
            let found = world.store.read(move |connection| lists::list(connection, &filter, None, 10)).await;
            assert!(found.is_ok(), "{text:?}: {found:?}");
        }
    }
}

#[tokio::test]
async fn filters_take_what_they_say_and_nothing_else() {
    let world = World::new().await;
    let other = World::add_agent(&world.store, "tester").await;
    let one = world.adopt("one", working("t-1")).await;
    let two = world.adopt("two", json!({"id":"t-2","status":{"state":"failed"}})).await;
    let three = world.adopt_of(other, "three", json!({"id":"t-3","status":{"state":"completed"}})).await;
    world.adopt_of(other, "four", json!({"id":"t-4","status":{"state":"input-required"}})).await;
    world.flag(one, Flag::Pinned, Some(1)).await;
    world.flag(two, Flag::Muted, Some(1)).await;
    world.flag(three, Flag::Archived, Some(1)).await;
    world.store.write(move |context| flags::set_note(context, one, "noted")).await.unwrap();
    let expected: &[(&str, &[&str])] = &[
        ("", &["t-4", "t-2", "t-1"]),
        ("is:archived", &["t-3"]),
        ("-is:archived", &["t-4", "t-2", "t-1"]),
        ("state:failed", &["t-2"]),
        ("state:failed,working", &["t-2", "t-1"]),
        ("-state:failed", &["t-4", "t-1"]),
        ("agent:tester", &["t-4"]),
        ("agent:tester is:archived", &["t-3"]),
        ("-agent:tester", &["t-2", "t-1"]),
        ("is:open", &["t-4", "t-1"]),
        ("-is:open", &["t-2"]),
        ("is:waiting", &["t-4"]),
        ("-is:waiting", &["t-2", "t-1"]),
        ("is:pinned", &["t-1"]),
        ("-is:pinned", &["t-4", "t-2"]),
        ("is:muted", &["t-2"]),
        ("is:noted", &["t-1"]),
        ("-is:noted", &["t-4", "t-2"]),
        ("is:pinned is:muted", &[]),
        ("via:poll", &["t-4", "t-2", "t-1"]),
        ("via:stream", &[]),
        ("-via:stream", &["t-4", "t-2", "t-1"]),
        ("via:reconnecting", &["t-4", "t-1"]),
        ("via:stream,reconnecting", &["t-4", "t-1"]),
        ("verdict:confirmed", &[]),
        ("-verdict:confirmed", &["t-4", "t-2", "t-1"]),
        ("since:1m", &["t-4", "t-2", "t-1"]),
        ("is:open four", &["t-4"]),
        ("two state:completed", &[]),
    ];
    for (query, ids) in expected {
        assert_eq!(world.find(query).await, *ids, "{query}");
    }
    world.now_ms.fetch_add(120_000, Ordering::SeqCst);
    assert!(world.find("since:1m").await.is_empty());
}

#[tokio::test]
async fn a_question_that_is_put_off_needs_its_user_then_and_a_new_one_at_once() {
    let world = World::new().await;
    let key = world.adopt("one", working("t-1")).await;
    world.event(key, status("input-required", "which?")).await;
    let until_ms = world.now_ms.load(Ordering::SeqCst) + 60_000;
    let snoozed = world.store.write(move |context| notices::snooze(context, key, until_ms)).await.unwrap();
    assert!(snoozed, "it waits");
    assert!(world.find("is:waiting").await.is_empty());
    assert_eq!(world.find("is:snoozed").await, ["t-1"]);
    world.event(key, status("input-required", "no, really: which?")).await;
    assert_eq!(world.find("is:waiting").await, ["t-1"], "it asked again");
    assert!(world.find("is:snoozed").await.is_empty());
    let until_ms = world.now_ms.load(Ordering::SeqCst) + 60_000;
    world.store.write(move |context| notices::snooze(context, key, until_ms)).await.unwrap();
    assert_eq!(world.find("-is:waiting").await, ["t-1"]);
    world.now_ms.fetch_add(60_001, Ordering::SeqCst);
    assert_eq!(world.find("is:waiting").await, ["t-1"], "the time is over");
}

#[tokio::test]
async fn who_takes_a_question_up_again_gets_no_notice_for_it() {
    let world = World::new().await;
    let key = world.adopt("one", working("t-1")).await;
    world.event(key, status("input-required", "which?")).await;
    let until_ms = world.now_ms.load(Ordering::SeqCst) + 60_000;
    world.store.write(move |context| notices::snooze(context, key, until_ms)).await.unwrap();
    assert_eq!(world.store.read(notices::pending).await.unwrap().len(), 1, "it is to come again");
    world.store.write(move |context| notices::wake(context, key)).await.unwrap();
    assert_eq!(world.find("is:waiting").await, ["t-1"]);
    assert!(world.store.read(notices::pending).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_flag_that_is_so_already_is_no_news() {
    let world = World::new().await;
    let key = world.adopt("one", working("t-1")).await;
    let seq = || async {
        let last = world.store.read(|connection| Ok(changes::last_seq(connection)?));
        last.await.unwrap()
    };
    world.flag(key, Flag::Pinned, Some(5)).await;
    let before = seq().await;
    world.flag(key, Flag::Pinned, Some(6)).await;
    assert_eq!(seq().await, before);
    world.flag(key, Flag::Pinned, None).await;
    assert_eq!(seq().await, before + 1);
}
