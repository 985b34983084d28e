//! Health over HTTP: every fault has what helps, times are those of the change, and trying it works.

use std::time::Duration;

use serde_json::{Value, json};

use super::Served;

async fn item(served: &Served, component: &str) -> Value {
    let health = served.call("GET /api/v1/health", "").await.json();
    let items = health["items"].as_array().unwrap();
    // Whatever is wrong says what helps.
    for item in items {
        assert!(item["state"] == "ok" || item["fix"].is_string(), "{item}");
    }
    items.iter().find(|item| item["component"] == component).cloned().unwrap_or(Value::Null)
}

async fn wait_for_history(served: &Served, component: &str, states: &[&str]) -> Value {
    let end = std::time::Instant::now() + Duration::from_secs(15);
    loop {
        let start = format!("GET /api/v1/health/history?component={component}");
        let history = served.call(&start, "").await.json();
        let found: Vec<&str> =
            history["items"].as_array().unwrap().iter().map(|item| item["state"].as_str().unwrap()).collect();
        if found == states {
            return history;
        }
        assert!(std::time::Instant::now() < end, "{component} was {found:?} and not {states:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_part_is_in_its_state_since_it_came_into_it_and_its_changes_are_kept() {
    let served = Served::start().await;
    let first = item(&served, "gateway").await;
    assert_eq!(first["state"], "ok");
    wait_for_history(&served, "gateway", &["ok"]).await;
    let taken = std::time::Instant::now();
    served.state.access.note_port_taken("127.0.0.1:7420 is taken by process 12 (nginx)".to_owned(), taken);
    let bad = item(&served, "gateway").await;
    assert_eq!(bad["state"], "bad");
    assert!(bad["since"].as_str() >= first["since"].as_str(), "{bad} {first}");
    let history = wait_for_history(&served, "gateway", &["bad", "ok"]).await;
    assert_eq!(history["items"][0]["at"], bad["since"], "the history and the item say the same");
    assert_eq!(item(&served, "gateway").await["since"], bad["since"], "looking changes nothing");
    let read = |connection: &rusqlite::Connection| {
        let sql = "SELECT body_json FROM changes WHERE kind = 'health' ORDER BY seq DESC LIMIT 1";
        Ok(connection.query_row(sql, [], |row| row.get::<_, String>(0))?)
    };
    assert_eq!(served.store.read(read).await.unwrap(), r#"{"state":"bad"}"#, "the feed tells of the worst");
    served.state.access.set_port(served.address.port());
    assert_eq!(item(&served, "gateway").await["state"], "ok");
    wait_for_history(&served, "gateway", &["ok", "bad", "ok"]).await;
}

#[tokio::test]
async fn what_a_fault_offers_to_click_is_an_operation_that_there_is() {
    let served = Served::start().await;
    let document = serde_json::to_value(crate::api::document()).unwrap();
    let health = served.call("GET /api/v1/health", "").await.json();
    let mut offered = 0;
    for item in health["items"].as_array().unwrap() {
        let action = &item["action"];
        if action.is_null() {
            continue;
        }
        offered += 1;
        let (method, path) = (action["method"].as_str().unwrap(), action["path"].as_str().unwrap());
        let known = document["paths"]
            .as_object()
            .unwrap()
            .iter()
            .any(|(_, methods)| methods[method.to_lowercase()]["operationId"] == action["operation"]);
        assert!(known, "{action}");
        let answer = served.call(&format!("{method} {path}"), "{}").await;
        assert!(answer.status < 300, "{action}: {answer:?}");
    }
    assert!(offered > 0, "the setting of the public address is offered: {health}");
}

#[tokio::test]
async fn the_self_test_tries_each_part_and_leaves_nothing_behind() {
    let served = Served::start().await;
    let tests = served.call("POST /api/v1/health/self-test", "{}").await.json();
    let result = |component: &str| {
        let items = tests["items"].as_array().unwrap();
        items.iter().find(|item| item["component"] == component).cloned().unwrap_or_else(|| panic!("{tests}"))
    };
    for component in ["keyring", "store", "gateway", "notices"] {
        assert_eq!(result(component)["ok"], true, "{tests}");
    }
    let left = |connection: &rusqlite::Connection| {
        let sql = "SELECT count(*) FROM meta WHERE key = 'self_test'";
        Ok(connection.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    };
    assert_eq!(served.store.read(left).await.unwrap(), 0);
    served.state.access.note_port_taken("the port is taken by another".to_owned(), std::time::Instant::now());
    let tests = served.call("POST /api/v1/health/self-test", "{}").await.json();
    let gateway =
        tests["items"].as_array().unwrap().iter().find(|item| item["component"] == "gateway").cloned();
    assert_eq!(gateway.unwrap()["ok"], false, "a part that does not work is told");
}

#[tokio::test]
async fn the_store_is_checked_and_copied_when_asked() {
    let served = Served::start().await;
    assert_eq!(item(&served, "backup").await["detail"], "there is no copy yet; one is made each day");
    let checked = served.call("POST /api/v1/health/store/check", "{}").await.json();
    assert_eq!(checked["ok"], true, "{checked}");
    let copied = served.call("POST /api/v1/health/store/backup", "{}").await.json();
    assert_eq!(copied["ok"], true, "{copied}");
    let backup = item(&served, "backup").await;
    assert!(backup["detail"].as_str().unwrap().starts_with("the store was copied at 2"), "{backup}");
    // Where the folder cannot be written, that is said and what helps with it.
    let backups = served.folder.path().join("backups");
    std::fs::remove_dir_all(&backups).unwrap();
    std::fs::write(&backups, "not a folder").unwrap();
    let copied = served.call("POST /api/v1/health/store/backup", "{}").await.json();
    assert_eq!(copied["ok"], false, "{copied}");
    let backup = item(&served, "backup").await;
    assert_eq!((&backup["state"], &backup["action"]["operation"]), (&"warn".into(), &"back_up_store".into()));
}

#[tokio::test]
async fn diagnostics_tell_of_everything_and_hold_nothing_that_is_the_users_alone() {
    let agent = taskbell_demo_agent::start(taskbell_demo_agent::Options::default()).await.unwrap();
    let served = Served::start().await;
    let ask = async |start: &str, body: Value| {
        let answer = served.call(start, &body.to_string()).await;
        assert!(answer.status < 300, "{start}: {answer:?}");
        answer.json()
    };
    let added = json!({
        "url": agent.base_url(), "name": "builder", "useCardUrl": false, "allowHttp": false,
        "credential": { "kind": "bearer", "token": "canary-credential-1" },
    });
    ask("POST /api/v1/agents", added).await;
    let client = ask("POST /api/v1/clients", json!({ "name": "editor" })).await;
    let key = client["key"].as_str().unwrap().to_owned();
    let sent = ask("POST /api/v1/agents/builder/send", json!({ "text": "canary words of a task" })).await;
    let setting = async |key: &str, value: &str| {
        ask(&format!("PUT /api/v1/settings/{key}"), json!({ "value": value })).await;
    };
    setting("public_url", "https://h.example/canary-path").await;
    setting("tunnel.command", "true canary-tunnel-token").await;
    setting("retention.days", "61").await;

    let parts = served.call("GET /api/v1/diagnostics", "").await;
    let text = &parts.body;
    let id = sent["task"].as_str().unwrap().rsplit('/').next().unwrap();
    for secret in ["canary", key.as_str(), id, super::TOKEN] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
    let parts = parts.json();
    let part = |name: &str| {
        let items = parts["items"].as_array().unwrap();
        let found = items.iter().find(|item| item["name"] == name).unwrap_or_else(|| panic!("{parts}"));
        found["text"].as_str().unwrap().to_owned()
    };
    let read = |name: &str| -> Value { serde_json::from_str(&part(name)).unwrap() };
    assert_eq!(read("settings.json")["settings"]["retention.days"], "61");
    assert_eq!(read("settings.json")["settings"]["public_url"], "https://h.example/…");
    assert_eq!(read("settings.json")["leftOut"], json!(["tunnel.command"]));
    assert_eq!(read("agents.json")[0]["host"], "127.0.0.1");
    assert_eq!(read("counts.json")["clients"], json!({ "active": 1 }));
    assert!(read("health.json")["now"].as_array().unwrap().len() > 5, "{parts}");
    assert!(read("store.json")["octets"][0].as_u64().unwrap() > 0, "{parts}");
    assert_eq!(read("versions.json")["taskbell"], env!("CARGO_PKG_VERSION"));
    agent.stop().await.unwrap();
}
