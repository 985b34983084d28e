//! The table families on real files: agents, settings, the change feed.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use taskbell_core::credential::{CredentialKind, Origin};
use taskbell_core::dialect::{Binding, Dialect};
use taskbell_core::ids::AgentName;
use taskbell_engine::store::{AgentKey, Store, StoreError, WriteContext, agents, changes, settings};

struct Fixture {
    store: Store,
    now_ms: Arc<AtomicI64>,
    _folder: tempfile::TempDir,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let now_ms = Arc::new(AtomicI64::new(1_000));
    let clock = Arc::clone(&now_ms);
    let (store, _) = Store::open(folder.path(), Arc::new(move || clock.load(Ordering::SeqCst))).unwrap();
    Fixture { store, now_ms, _folder: folder }
}

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

async fn add(store: &Store, called: &str) -> Result<AgentKey, StoreError> {
    let (name, origin) = (name(called), "https://a.example".parse::<Origin>().unwrap());
    let insert = move |context: &mut WriteContext<'_>| {
        let agent = agents::NewAgent {
            name: &name,
            registered_url: "https://a.example/agent",
            origin: &origin,
            use_card_url: false,
            allow_http: true,
        };
        agents::insert(context, &agent)
    };
    store.write(insert).await
}

async fn find(store: &Store, called: &str) -> Option<agents::AgentRow> {
    let name = name(called);
    store.read(move |c| agents::find(c, &name)).await.unwrap()
}

#[tokio::test]
async fn an_agent_comes_back_as_it_was_registered_and_probed() {
    let Fixture { store, now_ms, _folder } = fixture();
    let key = add(&store, "builder").await.unwrap();
    let row = find(&store, "builder").await.unwrap();
    assert_eq!(
        (row.key, row.origin.to_string(), row.created_at_ms),
        (key, "https://a.example".into(), 1_000)
    );
    assert_eq!((row.use_card_url, row.allow_http, row.quirks_json.as_str()), (false, true, "{}"));
    assert_eq!(
        (row.dialect, row.binding, row.credential_kind, row.credential_version),
        (None, None, None, 0)
    );
    now_ms.store(2_000, Ordering::SeqCst);
    let probe = move |context: &mut WriteContext<'_>| {
        let probed = agents::Probed {
            interface_url: Some("https://a.example/rpc"),
            binding: Some(Binding::Rest),
            dialect: Some(Dialect::V1),
            tenant: Some("t"),
            card_json: Some("{}"),
            card_etag: Some("\"1\""),
            ..Default::default()
        };
        agents::set_probed(context, key, &probed)?;
        agents::set_quirks(context, key, r#"{"resubscribeWithoutTask":true}"#)?;
        agents::pin_dialect(context, key, Some(Dialect::V03))
    };
    store.write(probe).await.unwrap();
    let row = find(&store, "builder").await.unwrap();
    assert_eq!(
        (row.binding, row.dialect, row.pinned_dialect),
        (Some(Binding::Rest), Some(Dialect::V1), Some(Dialect::V03))
    );
    assert_eq!(
        (row.interface_url.as_deref(), row.tenant.as_deref()),
        (Some("https://a.example/rpc"), Some("t"))
    );
    assert_eq!((row.card_etag.as_deref(), row.card_read_at_ms), (Some("\"1\""), Some(2_000)));
    assert!(row.quirks_json.contains("resubscribe"));
}

#[tokio::test]
async fn each_credential_of_a_slot_has_its_own_version() {
    let Fixture { store, _folder, .. } = fixture();
    let key = add(&store, "builder").await.unwrap();
    let set = |kind| store.write(move |context| agents::set_credential(context, key, kind));
    assert_eq!(set(Some(CredentialKind::Bearer)).await.unwrap(), 1);
    assert_eq!(set(Some(CredentialKind::TokenCommand)).await.unwrap(), 2);
    let row = find(&store, "builder").await.unwrap();
    assert_eq!(
        (row.credential_kind, row.credential_changed_at_ms),
        (Some(CredentialKind::TokenCommand), Some(1_000))
    );
    assert_eq!(set(None).await.unwrap(), 3, "emptying is a change too");
    assert_eq!(find(&store, "builder").await.unwrap().credential_kind, None);
}

#[tokio::test]
async fn a_name_is_taken_until_its_agent_is_removed_and_the_next_one_is_another_agent() {
    let Fixture { store, _folder, .. } = fixture();
    let first = add(&store, "builder").await.unwrap();
    assert_eq!(add(&store, "builder").await, Err(StoreError::Exists { what: "agent builder".into() }));
    store.write(move |context| agents::remove(context, first)).await.unwrap();
    assert!(find(&store, "builder").await.is_none());
    assert_eq!(
        store.write(move |context| agents::remove(context, first)).await.unwrap_err().code(),
        "not_found"
    );
    let second = add(&store, "builder").await.unwrap();
    let rows = store.read(agents::list).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.key).collect::<Vec<_>>(), [second]);
    let tombstone = store.read(move |c| agents::get(c, first)).await.unwrap();
    assert!(tombstone.removed_at_ms.is_some());
    assert_ne!(tombstone.credential_handle(), rows[0].credential_handle(), "no secret is inherited by name");
}

#[tokio::test]
async fn an_oddity_is_news_once_and_counted_after() {
    let Fixture { store, now_ms, _folder } = fixture();
    let key = add(&store, "builder").await.unwrap();
    let note = |detail: &'static str| {
        store.write(move |context| agents::record_oddity(context, key, "terminal-regressed", detail))
    };
    assert!(note("one").await.unwrap());
    now_ms.store(5_000, Ordering::SeqCst);
    assert!(!note("two").await.unwrap());
    let rows = store.read(move |c| agents::oddities(c, key)).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].count, rows[0].detail.as_str(), rows[0].first_at_ms, rows[0].last_at_ms),
        (2, "two", 1_000, 5_000)
    );
}

#[tokio::test]
async fn a_word_that_this_version_does_not_know_is_an_error_with_the_columns_name() {
    let Fixture { store, _folder, .. } = fixture();
    let key = add(&store, "builder").await.unwrap();
    let spoil = move |context: &mut WriteContext<'_>| {
        context.tx.execute("UPDATE agents SET dialect = '7.0' WHERE id = ?1", [key])?;
        Ok(())
    };
    store.write(spoil).await.unwrap();
    let error = store.read(agents::list).await.unwrap_err();
    assert_eq!(error.code(), "store_unreadable");
    assert!(error.to_string().contains("dialect holds \"7.0\""), "{error}");
}

#[tokio::test]
async fn settings_are_set_replaced_and_cleared() {
    let Fixture { store, _folder, .. } = fixture();
    for value in ["7", "30"] {
        store.write(move |context| settings::set(context, "retention.days", value)).await.unwrap();
    }
    assert_eq!(store.read(|c| settings::get(c, "retention.days")).await.unwrap().as_deref(), Some("30"));
    assert_eq!(store.read(settings::list).await.unwrap(), [("retention.days".to_owned(), "30".to_owned())]);
    store.write(|context| settings::clear(context, "retention.days")).await.unwrap();
    assert_eq!(store.read(|c| settings::get(c, "retention.days")).await.unwrap(), None);
}

async fn record(store: &Store, body_json: &'static str) -> u64 {
    let record = move |context: &mut WriteContext<'_>| {
        let change =
            changes::NewChange { agent: None, task: None, source: "poll", kind: "status", body_json };
        changes::record_change(context, &change)
    };
    store.write(record).await.unwrap()
}

#[tokio::test]
async fn changes_are_read_in_order_from_any_point_and_ring_the_bell() {
    let Fixture { store, _folder, .. } = fixture();
    let mut bell = store.doorbell();
    for (n, body) in ["{\"n\":1}", "{\"n\":2}", "{\"n\":3}"].into_iter().enumerate() {
        assert_eq!(record(&store, body).await, n as u64 + 1);
    }
    let rang = tokio::time::timeout(Duration::from_secs(5), bell.wait_for(|seq| *seq == 3)).await;
    assert_eq!(*rang.unwrap().unwrap(), 3);
    let after = store.read(|c| changes::changes_after(c, 1, 10)).await.unwrap();
    assert_eq!(after.iter().map(|row| row.seq).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(
        (after[0].body_json.as_str(), after[0].source.as_str(), after[0].at_ms),
        ("{\"n\":2}", "poll", 1_000)
    );
    assert_eq!(store.read(|c| changes::changes_after(c, 0, 1)).await.unwrap().len(), 1);
    assert!(store.read(|c| changes::changes_after(c, u64::MAX, 9)).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_pruned_number_is_never_given_again_also_after_a_restart() {
    let Fixture { store, now_ms, _folder } = fixture();
    record(&store, "1").await;
    now_ms.store(9_000, Ordering::SeqCst);
    record(&store, "2").await;
    let prune = |before_ms| store.write(move |context| changes::prune(context, before_ms, 100));
    assert_eq!(prune(5_000).await.unwrap(), 1);
    assert_eq!(store.read(changes::first_seq).await.unwrap(), Some(2));
    assert_eq!(prune(99_000).await.unwrap(), 1);
    assert_eq!(store.read(changes::first_seq).await.unwrap(), None);
    store.close(Duration::from_secs(10)).await.unwrap();
    let install_id = store.install_id().to_owned();
    let (store, _) = Store::open(_folder.path(), Arc::new(|| 1)).unwrap();
    assert_eq!(store.install_id(), install_id, "the keychain's items would be lost otherwise");
    assert_eq!(*store.doorbell().borrow(), 2);
    assert_eq!(record(&store, "3").await, 3);
}
