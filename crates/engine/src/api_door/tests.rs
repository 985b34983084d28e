use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::api::views::SettingView;
use crate::data_dir::DataDir;
use crate::notifier::Notices;
use crate::running::{CredentialStore, EngineOptions, PortsTaken, RunningEngine};

const SOON: Duration = Duration::from_secs(10);

fn options(folder: &TempDir) -> EngineOptions {
    EngineOptions {
        data_dir: DataDir::at(folder.path()),
        gateway: "127.0.0.1:0".parse().unwrap(),
        inbox: "127.0.0.1:0".parse().unwrap(),
        ports_taken: PortsTaken::Refuse,
        credential_store: CredentialStore::Memory,
        demo: false,
        windows: Windows::new(),
        notices: Notices::Recorded,
    }
}

async fn both_ways(engine: &RunningEngine, folder: &TempDir) -> [ApiDoor; 2] {
    let client = ApiClient::connect(&DataDir::at(folder.path())).await.unwrap();
    [engine.door(), ApiDoor::there(client)]
}

fn value(answer: &Answer) -> Value {
    serde_json::from_str(answer.body.get()).unwrap()
}

#[tokio::test]
async fn a_window_is_answered_alike_here_and_attached() {
    let folder = tempfile::tempdir().unwrap();
    let engine = RunningEngine::start(options(&folder)).await.unwrap();
    let [here, there] = both_ways(&engine, &folder).await;
    assert!(!here.is_attached() && there.is_attached());
    for (method, path, body, status) in [
        ("GET", "/api/v1/tasks?open=true", None, 200),
        ("GET", "/api/v1/agents", None, 200),
        ("GET", "/api/v1/tasks/demo/nothing", None, 404),
        ("PUT", "/api/v1/settings/retention.days", Some(json!({"value": "12"})), 200),
        ("PUT", "/api/v1/settings/retention.days", Some(json!({"value": "many"})), 400),
        ("DELETE", "/api/v1/settings/retention.days", None, 200),
        ("DELETE", "/api/v1/agents/nobody", None, 404),
        ("GET", "/api/v1/nothing", None, 404),
    ] {
        let body = body.map(|body| body.to_string().into_bytes());
        let one = here.ask(method, path, body.clone()).await.unwrap();
        let other = there.ask(method, path, body).await.unwrap();
        assert_eq!((one.status, other.status), (status, status), "{method} {path}");
        assert_eq!(value(&one), value(&other), "{method} {path}");
    }
    let setting: SettingView = here.get("/api/v1/settings/retention.days").await.unwrap();
    assert_eq!(setting.key, "retention.days");
    engine.stop().await;
}

#[tokio::test]
async fn nothing_but_the_api_is_behind_the_door() {
    let folder = tempfile::tempdir().unwrap();
    let engine = RunningEngine::start(options(&folder)).await.unwrap();
    for door in both_ways(&engine, &folder).await {
        for (method, path) in [
            ("GET", "/"),
            ("GET", "http://127.0.0.1:1/api/v1/tasks"),
            ("GET", "//example.com/api/v1/tasks"),
            ("GET", "/api/v2/tasks"),
            ("GET", "tasks"),
            ("GET", ""),
            ("PATCH", "/api/v1/tasks"),
            ("CONNECT", "/api/v1/tasks"),
            ("GET", "/api/v1/changes"),
            ("GET", "/api/v1/changes?after=0"),
            ("GET", "/api/v1/window/calls"),
        ] {
            let refused = door.ask(method, path, None).await.unwrap_err();
            assert_eq!(refused.code, "bad_request", "{method} {path}");
        }
    }
    let climbing = both_ways(&engine, &folder).await[1].ask("GET", "/api/v1/../../page.js", None).await;
    assert!(climbing.is_err(), "the page's assets are none of the API");
    engine.stop().await;
}

#[tokio::test]
async fn changes_come_in_order_here_and_attached_until_the_engine_stops() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(&folder);
    options.demo = true;
    let engine = RunningEngine::start(options).await.unwrap();
    let [here, there] = both_ways(&engine, &folder).await;
    let mut feeds = [here.changes(Some(0)).await.unwrap(), there.changes(Some(0)).await.unwrap()];
    let body = json!({"text": "steps=2 interval=0.05"}).to_string().into_bytes();
    let sent = here.ask("POST", "/api/v1/agents/demo/send", Some(body)).await.unwrap();
    assert_eq!(sent.status, 200, "{}", sent.body);
    let mut seen = Vec::new();
    for feed in &mut feeds {
        let mut all = Vec::new();
        let ended = tokio::time::timeout(SOON, async {
            loop {
                match feed.next().await.unwrap() {
                    DoorEvent::Change { seq, json } => {
                        let change: Value = serde_json::from_str(json.get()).unwrap();
                        assert_eq!(change["seq"], seq);
                        all.push(seq);
                        if change["kind"] == "task" && json.get().contains("completed") {
                            break;
                        }
                        if change["state"] == "completed" {
                            break;
                        }
                    }
                    DoorEvent::Reset => panic!("nothing is missing from the beginning on"),
                }
            }
        });
        ended.await.expect("the task ends");
        assert!(all.is_sorted(), "{all:?}");
        seen.push(all);
    }
    assert_eq!(seen[0], seen[1], "both ways tell the same");
    engine.stop().await;
    let [mut feed, _] = feeds;
    let ended = tokio::time::timeout(SOON, async { while feed.next().await.is_ok() {} });
    ended.await.expect("a stopped engine ends its feed");
}
