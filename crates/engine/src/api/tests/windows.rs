use std::time::Duration;

use super::Served;
use crate::api::window::WindowCall;
use crate::api_client::ApiClient;

const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn an_engine_without_a_window_says_so_and_one_with_a_window_raises_it() {
    let served = Served::start().await;
    let answer = served.call("POST /api/v1/window/raise", "{}").await;
    assert_eq!((answer.status, answer.code().as_str()), (409, "no_window"));

    let mut calls = served.state.windows.listen();
    assert_eq!(served.call("POST /api/v1/window/raise", "{}").await.status, 204);
    assert_eq!(calls.next().await, Some(WindowCall::Raise));
    drop(calls);
    assert_eq!(served.call("POST /api/v1/window/raise", "{}").await.status, 409, "its window is gone");
}

#[tokio::test]
async fn a_window_of_another_process_is_raised_like_one_of_the_engines_own() {
    let served = Served::start().await;
    let client = ApiClient::connect(&served.dir()).await.unwrap();
    let mut calls = client.window_calls().await.unwrap();
    assert_eq!(served.call("POST /api/v1/window/raise", "{}").await.status, 204);
    let task: taskbell_core::ids::TaskRef = "demo/t-1".parse().unwrap();
    assert!(served.state.windows.call(WindowCall::Open { task: task.clone() }));
    let heard =
        tokio::time::timeout(SOON, async { [calls.next().await.unwrap(), calls.next().await.unwrap()] });
    assert_eq!(heard.await.unwrap(), [WindowCall::Raise, WindowCall::Open { task }]);
    drop(calls);
    tokio::time::timeout(SOON, async {
        while served.state.windows.call(WindowCall::Raise) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("a window that has closed is not counted on");
}

#[tokio::test]
async fn health_names_who_has_the_port_until_we_have_it() {
    let served = Served::start().await;
    let gateway = async || {
        let health = served.call("GET /api/v1/health", "").await.json();
        let items = health["items"].as_array().unwrap().clone();
        items.into_iter().find(|item| item["component"] == "gateway")
    };
    let ours = |item: Option<serde_json::Value>| item.is_some_and(|item| item["state"] == "ok");
    assert!(ours(gateway().await));
    let told = "127.0.0.1:7420 is taken by process 12 (nginx)";
    served.state.access.note_port_taken(told.to_owned(), std::time::Instant::now());
    let item = gateway().await.unwrap();
    assert_eq!((item["state"].as_str(), item["detail"].as_str()), (Some("bad"), Some(told)));
    served.state.access.set_port(served.address.port());
    assert!(ours(gateway().await), "the port is ours now");
}
