//! Registrations, callbacks and what they make due, on real files.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use taskbell_core::callback::{Digest, Presented, ProofPolicy, RegistrationPath, Scheme, judge, read_claim};
use taskbell_core::dialect::read;
use taskbell_core::ids::AgentName;
use taskbell_engine::store::callbacks::{self, NewCallback, Stored};
use taskbell_engine::store::refused::{self, NewQuarantine, Refusals};
use taskbell_engine::store::registrations::{self, NewRegistration, Purpose, RegistrationState};
use taskbell_engine::store::task_records::{Adoption, Told, adopt};
use taskbell_engine::store::tasks::{self, Channel, TaskSource};
use taskbell_engine::store::{
    AgentKey, RegistrationKey, Store, StoreError, TaskKey, WriteContext, agents, changes,
};

struct Fixture {
    store: Store,
    now_ms: Arc<AtomicI64>,
    agent: AgentKey,
    task: TaskKey,
    _folder: tempfile::TempDir,
}

async fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let now_ms = Arc::new(AtomicI64::new(1_000));
    let clock = Arc::clone(&now_ms);
    let (store, _) = Store::open(folder.path(), Arc::new(move || clock.load(Ordering::SeqCst))).unwrap();
    let (agent, task) = store
        .write(|context| {
            let name = AgentName::new("builder").unwrap();
            let origin = "https://a.example".parse().unwrap();
            let new = agents::NewAgent {
                name: &name,
                registered_url: "https://a.example/",
                origin: &origin,
                use_card_url: false,
                allow_http: false,
            };
            let agent = agents::insert(context, &new)?;
            Ok((agent, add_task(context, agent, "t-1")?))
        })
        .await
        .unwrap();
    Fixture { store, now_ms, agent, task, _folder: folder }
}

fn add_task(context: &mut WriteContext<'_>, agent: AgentKey, id: &str) -> Result<TaskKey, StoreError> {
    let task = read::task(serde_json::json!({"id": id, "status": {"state": "working"}})).unwrap();
    let adoption = Adoption {
        source: TaskSource::Send,
        channel: Channel::Manual,
        title: "a task",
        credential_version: 0,
        told: Told::Otherwise,
    };
    Ok(adopt(context, agent, task, 1, adoption)?.0)
}

fn path(number: u8) -> RegistrationPath {
    RegistrationPath::of_random([number; 26])
}

fn register(
    context: &mut WriteContext<'_>,
    path: &RegistrationPath,
    agent: AgentKey,
    task: Option<TaskKey>,
) -> Result<RegistrationKey, StoreError> {
    let new = NewRegistration {
        path,
        purpose: Purpose::Task,
        agent: Some(agent),
        task,
        config_id: "c-1",
        url: "https://inbox.example.com/a2a/callbacks/x",
        policy: ProofPolicy::Any,
        key_version: 1,
        token: Some(Digest::of(b"tok")),
        credential: Some((Scheme::Bearer, Digest::of(b"sec"))),
    };
    registrations::insert(context, &new)
}

fn callback(registration: RegistrationKey, body: &str) -> NewCallback {
    let claim = read_claim(body.as_bytes()).unwrap();
    let registered = taskbell_core::callback::Registered {
        token: Some(Digest::of(b"tok")),
        ..taskbell_core::callback::Registered::default()
    };
    NewCallback {
        registration,
        body: body.as_bytes().to_vec(),
        sha256: Digest::of(body.as_bytes()),
        headers_json: "{}".to_owned(),
        proofs: judge(&registered, Presented { token: Some(b"tok"), authorization: None }, 0),
        claim,
        bound: false,
    }
}

const DONE: &str = r#"{"statusUpdate":{"taskId":"t-1","status":{"state":"completed"},"final":true}}"#;

async fn arrive(store: &Store, new: NewCallback) -> Result<Stored, StoreError> {
    store.write(move |context| callbacks::store(context, &new)).await
}

#[tokio::test]
async fn a_revision_is_not_given_again_after_its_row_is_gone() {
    let Fixture { store, agent, task, _folder, .. } = fixture().await;
    let first = store.write(move |c| register(c, &path(1), agent, Some(task))).await.unwrap();
    let revision = store.read(move |c| registrations::get(c, first)).await.unwrap().revision;
    store.write(move |c| registrations::delete(c, first)).await.unwrap();
    store.write(move |c| register(c, &path(2), agent, Some(task))).await.unwrap();
    let news = store.read(move |c| registrations::inbox_rows(c, revision)).await.unwrap();
    assert_eq!(news.len(), 1, "the inbox would refuse its callbacks");
}

#[tokio::test]
async fn a_registration_comes_back_with_its_digests_and_where_it_stands() {
    let Fixture { store, agent, task, now_ms, _folder, .. } = fixture().await;
    let before = store.registrations_revision();
    let key = store.write(move |c| register(c, &path(1), agent, Some(task))).await.unwrap();
    assert!(store.registrations_revision() > before, "the inbox must hear of it before its caller does");
    now_ms.store(2_000, Ordering::SeqCst);
    store.write(move |c| registrations::set_registered(c, key, Some("theirs"))).await.unwrap();
    let row = store.read(|c| registrations::find_by_path(c, &path(1))).await.unwrap().unwrap();
    assert_eq!((row.key, row.state, row.task), (key, RegistrationState::Active, Some(task)));
    assert_eq!((row.remote_id.as_deref(), row.registered_at_ms), (Some("theirs"), Some(2_000)));
    assert_eq!(row.proof.credential, Some((Scheme::Bearer, Digest::of(b"sec"))));
    assert_eq!(row.proof.previous, None);
}

#[tokio::test]
async fn a_rotation_keeps_the_proofs_before_it_for_a_while() {
    let Fixture { store, agent, task, _folder, .. } = fixture().await;
    let key = store.write(move |c| register(c, &path(1), agent, Some(task))).await.unwrap();
    let rotate = move |context: &mut WriteContext<'_>| {
        let (token, credential) = (Some(Digest::of(b"tok-2")), Some(Digest::of(b"sec-2")));
        registrations::set_proofs(context, key, 2, token, credential, 9_000)
    };
    store.write(rotate).await.unwrap();
    let row = store.read(move |c| registrations::get(c, key)).await.unwrap();
    assert_eq!((row.key_version, row.proof.token), (2, Some(Digest::of(b"tok-2"))));
    let previous = row.proof.previous.unwrap();
    assert_eq!((previous.token, previous.until_ms), (Some(Digest::of(b"tok")), 9_000));
}

#[tokio::test]
async fn only_what_changed_is_read_again() {
    let Fixture { store, agent, task, _folder, .. } = fixture().await;
    let first = store.write(move |c| register(c, &path(1), agent, Some(task))).await.unwrap();
    let second = store.write(move |c| register(c, &path(2), agent, Some(task))).await.unwrap();
    let all = store.read(|c| registrations::inbox_rows(c, 0)).await.unwrap();
    assert_eq!(all.iter().map(|row| row.key).collect::<Vec<_>>(), [first, second]);
    let seen = all.last().unwrap().revision;
    store.write(move |c| registrations::set_removed(c, first)).await.unwrap();
    let news = store.read(move |c| registrations::inbox_rows(c, seen)).await.unwrap();
    assert_eq!(
        news.iter().map(|row| (row.key, row.state)).collect::<Vec<_>>(),
        [(first, RegistrationState::Removed)]
    );
}

#[tokio::test]
async fn a_callback_is_stored_once_counted_again_and_makes_its_task_due_each_time() {
    let Fixture { store, agent, task, now_ms, _folder, .. } = fixture().await;
    let key = store.write(move |c| register(c, &path(1), agent, Some(task))).await.unwrap();
    let first = arrive(&store, callback(key, DONE)).await.unwrap();
    assert_eq!((first.task, first.repeated), (Some(task), false));
    now_ms.store(5_000, Ordering::SeqCst);
    let second = arrive(&store, callback(key, DONE)).await.unwrap();
    assert_eq!((second.callback, second.repeated), (first.callback, true));
    let rows = store.read(move |c| callbacks::of_task(c, task)).await.unwrap();
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((row.count, row.at_ms, row.last_at_ms, row.dirty), (2, 1_000, 5_000, Some(2)));
    assert_eq!((row.verdict.word(), row.body.as_deref()), ("pending", Some(DONE.as_bytes())));
    let due = store.read(move |c| callbacks::due(c, task)).await.unwrap();
    assert_eq!((due.dirty, due.clean, due.is_due()), (2, 0, true));
    let state = store.read(move |c| tasks::get(c, task)).await.unwrap().state;
    assert_eq!(state.word(), "working", "a claim changes nothing but its own row");
}

#[tokio::test]
async fn a_task_is_due_until_a_read_that_began_after_the_last_callback() {
    let Fixture { store, agent, task, _folder, .. } = fixture().await;
    let key = store.write(move |c| register(c, &path(1), agent, Some(task))).await.unwrap();
    arrive(&store, callback(key, DONE)).await.unwrap();
    let begun_at = store.read(move |c| callbacks::due(c, task)).await.unwrap().dirty;
    arrive(&store, callback(key, DONE)).await.unwrap();
    store.write(move |c| callbacks::set_clean(c, task, begun_at)).await.unwrap();
    assert_eq!(store.read(callbacks::due_tasks).await.unwrap(), [task]);
    store.write(move |c| callbacks::set_clean(c, task, begun_at + 1)).await.unwrap();
    assert!(store.read(callbacks::due_tasks).await.unwrap().is_empty());
    store.write(move |c| callbacks::set_clean(c, task, begun_at)).await.unwrap();
    assert!(
        store.read(callbacks::due_tasks).await.unwrap().is_empty(),
        "an older read makes nothing due again"
    );
}

#[tokio::test]
async fn what_came_before_its_task_was_known_is_bound_with_it() {
    let Fixture { store, agent, task, _folder, .. } = fixture().await;
    let key = store.write(move |c| register(c, &path(1), agent, None)).await.unwrap();
    assert_eq!(arrive(&store, callback(key, DONE)).await.unwrap().task, None);
    let foreign = r#"{"task":{"id":"t-<b>2</b>"}}"#;
    arrive(&store, callback(key, foreign)).await.unwrap();
    assert!(store.read(callbacks::due_tasks).await.unwrap().is_empty());
    store.write(move |c| registrations::bind(c, key, task)).await.unwrap();
    assert_eq!(store.read(callbacks::due_tasks).await.unwrap(), [task]);
    let rows = store.read(move |c| callbacks::of_task(c, task)).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.claimed_task_id.as_str()).collect::<Vec<_>>(), ["t-1"]);
    let kept = store.read(|c| refused::list_quarantine(c, 10)).await.unwrap();
    assert_eq!(kept.iter().map(|row| row.reason.as_str()).collect::<Vec<_>>(), ["other_task"]);
}

#[tokio::test]
async fn a_claim_whose_task_never_became_known_is_quarantined_and_makes_up_no_task() {
    let Fixture { store, agent, now_ms, _folder, .. } = fixture().await;
    let key = store.write(move |c| register(c, &path(1), agent, None)).await.unwrap();
    arrive(&store, callback(key, DONE)).await.unwrap();
    now_ms.store(2_000, Ordering::SeqCst);
    arrive(&store, callback(key, r#"{"task":{"id":"t-9"}}"#)).await.unwrap();
    let gone = store.write(|c| callbacks::quarantine_unbound(c, 1_500, 10)).await.unwrap();
    assert_eq!(gone, 1, "the later one has time yet");
    let kept = store.read(|c| refused::list_quarantine(c, 10)).await.unwrap();
    assert_eq!((kept.len(), kept[0].reason.as_str(), kept[0].detail.as_str()), (1, "never_bound", "t-1"));
    let tasks =
        store.read(|c| Ok(c.query_row("SELECT count(*) FROM tasks", [], |row| row.get::<_, i64>(0))?));
    assert_eq!(tasks.await.unwrap(), 1);
}

#[tokio::test]
async fn a_claim_of_another_task_than_the_one_that_was_bound_meanwhile_makes_nothing_due() {
    let Fixture { store, agent, task, _folder, .. } = fixture().await;
    let key = store.write(move |c| register(c, &path(1), agent, None)).await.unwrap();
    store.write(move |c| registrations::bind(c, key, task)).await.unwrap();
    let stored = arrive(&store, callback(key, r#"{"task":{"id":"t-9"}}"#)).await.unwrap();
    assert_eq!(stored.task, None);
    assert!(store.read(callbacks::due_tasks).await.unwrap().is_empty());
    assert_eq!(store.write(|c| callbacks::quarantine_unbound(c, i64::MAX, 10)).await.unwrap(), 1);
}

#[tokio::test]
async fn a_deleted_task_takes_everything_with_it_and_the_next_callback_is_told() {
    let Fixture { store, agent, task, _folder, .. } = fixture().await;
    let key = store.write(move |c| register(c, &path(1), agent, Some(task))).await.unwrap();
    arrive(&store, callback(key, DONE)).await.unwrap();
    store.write(move |c| tasks::delete(c, task)).await.unwrap();
    let error = arrive(&store, callback(key, DONE)).await.unwrap_err();
    assert_eq!(error.code(), "not_found");
    let left: i64 = store
        .read(|c| {
            let sql = "SELECT (SELECT count(*) FROM registrations) + (SELECT count(*) FROM callbacks)
                           + (SELECT count(*) FROM due_reads)";
            Ok(c.query_row(sql, [], |row| row.get(0))?)
        })
        .await
        .unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn a_body_that_comes_a_thousand_times_is_ten_lines_of_news() {
    let Fixture { store, agent, task, _folder, .. } = fixture().await;
    let key = store.write(move |c| register(c, &path(1), agent, Some(task))).await.unwrap();
    store
        .write(move |context| {
            for _ in 0..1_000 {
                callbacks::store(context, &callback(key, DONE))?;
            }
            Ok(())
        })
        .await
        .unwrap();
    let news = store.read(move |c| changes::changes_of_task(c, task, 0, 5_000)).await.unwrap();
    assert_eq!(news.iter().filter(|change| change.kind == "callback").count(), 10);
    let rows = store.read(move |c| callbacks::of_task(c, task)).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.count).collect::<Vec<_>>(), [1_000]);
}

#[tokio::test]
async fn refusals_are_counted_and_the_quarantine_has_an_end() {
    let Fixture { store, agent, task, _folder, .. } = fixture().await;
    let key = store.write(move |c| register(c, &path(1), agent, Some(task))).await.unwrap();
    store
        .write(move |context| {
            for count in [3, 4] {
                let refusals =
                    Refusals { registration: key, reason: "proof", count, detail: "token wrong".into() };
                refused::count(context, &refusals)?;
            }
            for number in 0..1_100_u32 {
                let new = NewQuarantine {
                    registration: key,
                    reason: "other_task",
                    size: 4,
                    sha256: Digest::of(&number.to_le_bytes()),
                    detail: format!("t-{number}"),
                };
                refused::quarantine(context, &new)?;
            }
            Ok(())
        })
        .await
        .unwrap();
    let counts = store.read(move |c| refused::counts(c, key)).await.unwrap();
    assert_eq!(counts.iter().map(|row| row.count).collect::<Vec<_>>(), [7]);
    let kept = store.read(|c| refused::list_quarantine(c, 5_000)).await.unwrap();
    assert_eq!((kept.len(), kept[0].detail.as_str()), (1_000, "t-1099"));
}
