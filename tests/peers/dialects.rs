//! SDKs of 1.x that also speak 0.3 on the same URL, met by a card of 0.3.

use taskbell_tests::{Cut, FaultProxy, Peer, PeerKind, Taskbell, When, eventually, odd_servers::card_03};

use crate::stage::{PATIENCE, Stage, THREE_CHUNKS, THREE_SECONDS};

async fn in_the_old_dialect(kind: PeerKind) -> Stage {
    let peer = Peer::start(kind).await;
    let proxy = FaultProxy::before(peer.port()).await;
    proxy.serve_card(card_03(&peer.url()));
    let taskbell = Taskbell::setup().silence(2).start().await;
    taskbell.add_agent("peer", &proxy.url()).await;
    Stage { taskbell, proxy, peer }
}

async fn is_spoken_throughout_and_survives_a_cut(kind: PeerKind) {
    let stage = in_the_old_dialect(kind).await;
    let task = stage.send(THREE_SECONDS).await;
    stage.works(&task).await;
    eventually(PATIENCE, "the stream flows", || stage.proxy.open_streams() == 1).await;
    stage.proxy.cut_streams(Cut::CleanEnd);
    stage.completes_with(&task, THREE_CHUNKS).await;
    stage.proxy.assert_sent_once_each(1);
    let seen = stage.proxy.seen();
    let sends: Vec<_> =
        seen.iter().filter(|seen| seen.is_send()).filter_map(|seen| seen.method.clone()).collect();
    assert!(sends.iter().all(|method| method.starts_with("message/")), "a card of 0.3 decides: {sends:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn py1_is_followed_in_the_old_dialect_when_its_card_is_old() {
    is_spoken_throughout_and_survives_a_cut(PeerKind::Py1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn js1_is_followed_in_the_old_dialect_when_its_card_is_old() {
    is_spoken_throughout_and_survives_a_cut(PeerKind::Js1).await;
}

async fn finished_is_finished(kind: PeerKind) {
    let stage = in_the_old_dialect(kind).await;
    let direct = stage.peer.direct();
    let id = direct.send("steps=1 interval=0.05").await;
    taskbell_tests::wait_until(PATIENCE, "the agent is done", async || {
        (direct.get(&id).await.state == "completed").then_some(())
    })
    .await;
    stage.taskbell.cli(&["watch", "peer", &id]).await.ok();
    stage.completes_with(&taskbell_tests::taskbell::TaskName::new("peer", &id), THREE_CHUNKS).await;
    assert_eq!(stage.proxy.count(When::Sends), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn py1_reports_a_finished_task_in_the_old_dialect() {
    finished_is_finished(PeerKind::Py1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn js1_reports_a_finished_task_in_the_old_dialect() {
    finished_is_finished(PeerKind::Js1).await;
}

/// The reference server takes minutes to build.
#[tokio::test(flavor = "multi_thread")]
async fn the_reference_server_is_followed_through_a_cut() {
    if !taskbell_tests::long_run("the_reference_server_is_followed_through_a_cut") {
        return;
    }
    let stage = Stage::set(PeerKind::Rs).await;
    let task = stage.send(THREE_SECONDS).await;
    stage.flows(&task).await;
    stage.proxy.cut_streams(Cut::Reset);
    stage.taskbell.wait(&task).await.exits(0);
    assert_eq!(
        stage.taskbell.show(&task).await.text(),
        THREE_CHUNKS,
        "chunks of one artifact are joined by its id"
    );
    stage.proxy.assert_sent_once_each(1);
}
