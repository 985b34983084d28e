//! The connection drops in the middle of a task, in every way it can.

use std::time::Duration;

use taskbell_tests::{Cut, Fault, PeerKind, When, eventually, long_run};

use crate::{
    stage::{PATIENCE, Stage, THREE_CHUNKS, THREE_SECONDS},
    with_every_peer,
};

with_every_peer!(
    a_clean_end_in_the_middle_is_a_cut_and_not_the_end,
    a_reset_in_the_middle_is_survived,
    half_open_silence_is_noticed,
    an_html_page_from_the_proxy_is_no_answer,
    a_stream_cut_inside_an_event_loses_nothing,
    an_agent_that_is_away_for_three_seconds_is_followed_again,
    an_answer_that_drips_is_read_to_its_end,
    many_cuts_in_a_row_do_not_become_a_storm,
    a_stream_without_a_keep_alive_is_kept,
    a_stream_without_a_keep_alive_is_kept_for_the_default_window,
);

async fn cut(kind: PeerKind, cut: Cut) {
    let stage = Stage::set(kind).await;
    let task = stage.send(THREE_SECONDS).await;
    stage.flows(&task).await;
    stage.proxy.cut_streams(cut);
    let shown = stage.completes_with(&task, THREE_CHUNKS).await;
    stage.proxy.assert_sent_once_each(1);
    // A polled task has no stream that could be cut.
    if kind != PeerKind::Py03 {
        assert!(shown.has_gap(), "nobody listened for a while, and the timeline says so: {}", shown.0);
        assert!(stage.proxy.count(When::Subscribes) >= 1, "it was attached again");
    }
    assert!(stage.proxy.most_streams() <= 1, "the old stream was closed first");
}

async fn a_clean_end_in_the_middle_is_a_cut_and_not_the_end(kind: PeerKind) {
    cut(kind, Cut::CleanEnd).await;
}

async fn a_reset_in_the_middle_is_survived(kind: PeerKind) {
    cut(kind, Cut::Reset).await;
}

async fn half_open_silence_is_noticed(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    // Longer than the window of two seconds and the read after it.
    let task = stage.send("steps=20 interval=0.3").await;
    stage.flows(&task).await;
    stage.proxy.cut_streams(Cut::Silence);
    let shown = stage.completes_with(&task, THREE_CHUNKS).await;
    stage.proxy.assert_sent_once_each(1);
    if kind != PeerKind::Py03 {
        assert!(shown.has_gap(), "a silent stretch is a gap: {}", shown.0);
    }
}

async fn an_html_page_from_the_proxy_is_no_answer(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let task = stage.send(THREE_SECONDS).await;
    stage.flows(&task).await;
    stage.proxy.set(When::Always, Fault::bad_gateway());
    stage.proxy.cut_streams(Cut::Reset);
    let before = stage.proxy.seen().len();
    eventually(PATIENCE, "the page was seen twice", || stage.proxy.seen().len() >= before + 2).await;
    let shown = stage.taskbell.show(&task).await;
    assert_eq!(shown.state(), "working", "a web page says nothing about the task: {}", shown.0);
    stage.proxy.heal();
    let shown = stage.completes_with(&task, THREE_CHUNKS).await;
    if kind != PeerKind::Py03 {
        assert!(shown.has_gap(), "nobody listened for a while: {}", shown.0);
    }
    stage.proxy.assert_sent_once_each(1);
}

async fn a_stream_cut_inside_an_event_loses_nothing(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    // Not at a boundary of events, nor of characters.
    stage.proxy.set_times(When::Subscribes, Fault::CutAfter(1201, Cut::Reset), 1);
    stage.proxy.set_times(When::Subscribes, Fault::CutAfter(903, Cut::CleanEnd), 1);
    let task = stage.send(THREE_SECONDS).await;
    stage.completes_with(&task, THREE_CHUNKS).await;
    stage.proxy.assert_sent_once_each(1);
}

async fn an_agent_that_is_away_for_three_seconds_is_followed_again(kind: PeerKind) {
    let mut stage = Stage::set(kind).await;
    let task = stage.send("steps=20 interval=0.3").await;
    stage.flows(&task).await;
    stage.proxy.down().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let shown = stage.taskbell.show(&task).await;
    assert_eq!(shown.state(), "working", "an agent that is away has not failed: {}", shown.0);
    assert_eq!(shown.mode(), "reconnecting", "{}", shown.0);
    stage.proxy.up().await;
    let shown = stage.completes_with(&task, THREE_CHUNKS).await;
    if kind != PeerKind::Py03 {
        assert!(shown.has_gap(), "three seconds without anybody listening: {}", shown.0);
    }
    stage.proxy.assert_sent_once_each(1);
}

async fn an_answer_that_drips_is_read_to_its_end(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let task = stage.send("steps=2 interval=0.2").await;
    stage.proxy.set(When::Gets, Fault::Drip(Duration::from_millis(1)));
    stage.completes_with(&task, THREE_CHUNKS).await;
}

async fn many_cuts_in_a_row_do_not_become_a_storm(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    // Every stream ends at once, properly and without a word.
    stage.proxy.set(When::Subscribes, Fault::CutAfter(1, Cut::CleanEnd));
    let task = stage.send("steps=20 interval=0.3").await;
    stage.works(&task).await;
    let before = stage.proxy.count(When::Subscribes);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let tries = stage.proxy.count(When::Subscribes) - before;
    assert!(tries <= 6, "{tries} tries in three seconds");
    stage.proxy.heal();
    if kind == PeerKind::Py03 {
        // No try lasted long enough to show that it harms the task, and one may have.
        stage.completes_as_told(&task).await;
    } else {
        stage.completes_with(&task, THREE_CHUNKS).await;
    }
    stage.proxy.assert_sent_once_each(1);
}

/// Two windows of two seconds pass without an octet from an agent that is fine. What it does next it does between
/// two reads: one that is quicker than the stream would rightly doubt it.
async fn a_stream_without_a_keep_alive_is_kept(kind: PeerKind) {
    let stage = Stage::set(kind).await;
    let task = stage.send("steps=2 interval=5 chunks=1").await;
    stage.waits_with(&task, 0).await;
    // One to begin with; a read that found nothing new keeps the stream.
    let subscribes = stage.proxy.count(When::Subscribes);
    assert!(subscribes <= 1, "{subscribes} subscriptions though the stream was never cut");
    stage.completes_with(&task, "chunk 1/1;").await;
}

async fn a_stream_without_a_keep_alive_is_kept_for_the_default_window(kind: PeerKind) {
    if !long_run("a_stream_without_a_keep_alive_is_kept_for_the_default_window") {
        return;
    }
    let stage = Stage::set(kind).await;
    stage.taskbell.cli(&["settings", "set", "follow.silence", "45"]).await.exits(0);
    let task = stage.send("steps=2 interval=33 chunks=1").await;
    stage
        .taskbell
        .shows(&task, Duration::from_secs(100), "the end", taskbell_tests::taskbell::Shown::is_terminal)
        .await;
    let subscribes = stage.proxy.count(When::Subscribes);
    assert!(subscribes <= 1, "{subscribes} subscriptions though the stream was never cut");
    stage.completes_with(&task, "chunk 1/1;").await;
}
