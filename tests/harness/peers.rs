use std::time::Duration;

use taskbell_tests::{Peer, PeerKind, wait_until};

async fn runs_a_script_and_forgets(kind: PeerKind) {
    let mut peer = Peer::start(kind).await;
    let direct = peer.direct();
    let task = direct.send("steps=1 interval=0.05 chunks=2").await;
    let told = wait_until(Duration::from_secs(10), "the script to end", async || {
        Some(direct.get(&task).await).filter(|told| told.state == "completed")
    })
    .await;
    assert_eq!(told.text, "chunk 1/2;chunk 2/2;");

    peer.kill().await;
    peer.come_back().await;
    let method = if kind.dialect() == taskbell_tests::a2a::Dialect::V1 { "GetTask" } else { "tasks/get" };
    let answer = direct.call(method, serde_json::json!({"id": task})).await;
    assert_eq!(answer["error"]["code"], -32001, "a restarted agent has forgotten: {answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn py03_runs_a_script_and_forgets_it_when_restarted() {
    runs_a_script_and_forgets(PeerKind::Py03).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn py1_runs_a_script_and_forgets_it_when_restarted() {
    runs_a_script_and_forgets(PeerKind::Py1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn js03_runs_a_script_and_forgets_it_when_restarted() {
    runs_a_script_and_forgets(PeerKind::Js03).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn js1_runs_a_script_and_forgets_it_when_restarted() {
    runs_a_script_and_forgets(PeerKind::Js1).await;
}
