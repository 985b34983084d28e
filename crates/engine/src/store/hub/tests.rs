use serde_json::json;
use taskbell_core::dialect::read;

use super::queue::{QUEUE, QUEUE_OCTETS};
use super::*;

fn status(state: &str) -> StreamEvent {
    read::stream_event(json!({"statusUpdate":{"contextId":"c","status":{"state":state}}})).unwrap()
}

fn padded(octets: usize) -> StreamEvent {
    read::stream_event(
        json!({"artifactUpdate":{"artifact":{"artifactId":"a","parts":[{"text":"x".repeat(octets)}]}}}),
    )
    .unwrap()
}

const KEY: TaskKey = TaskKey(1);

fn hub() -> (Hubs, Arc<Hub>) {
    let hubs = Hubs::new(5);
    let end = LogEnd { id: EventId { start_ms: 3, n: 7 }, octets: 100 };
    let hub = hubs.open(KEY, &TaskId::new("t"), None, end);
    (hubs, hub)
}

fn tell(hubs: &Hubs, event: StreamEvent) -> Option<Batch> {
    hubs.tell(KEY, &mut [event])
}

fn ready(feed: &mut Feed) -> Option<Arc<Told>> {
    let mut context = Context::from_waker(std::task::Waker::noop());
    match feed.poll_next(&mut context) {
        Poll::Ready(told) => told,
        Poll::Pending => None,
    }
}

fn is_closed(feed: &mut Feed) -> bool {
    let mut context = Context::from_waker(std::task::Waker::noop());
    matches!(feed.poll_next(&mut context), Poll::Ready(None))
}

#[test]
fn a_task_without_a_hub_tells_nobody() {
    assert!(tell(&Hubs::new(5), status("working")).is_none());
}

#[test]
fn numbers_go_on_from_the_log_and_the_place_before_the_first_is_the_logs_last() {
    let (hubs, hub) = hub();
    let (id, mut feed) = hub.listen(Dialect::V1);
    assert_eq!(id, EventId { start_ms: 3, n: 7 });
    tell(&hubs, status("working")).unwrap();
    assert_eq!(ready(&mut feed).unwrap().id, EventId { start_ms: 5, n: 8 });
    assert_eq!(hub.listen(Dialect::V1).0, EventId { start_ms: 5, n: 8 });
}

#[test]
fn who_joins_gets_what_the_writer_has_not_seen_and_nothing_that_it_has() {
    let (hubs, hub) = hub();
    let first = tell(&hubs, status("submitted")).unwrap();
    let second = tell(&hubs, status("working")).unwrap();
    hub.settle(&first.told);
    let (id, mut feed) = hub.listen(Dialect::V1);
    assert_eq!(id.n, 8);
    assert_eq!(ready(&mut feed).unwrap().id.n, 9);
    tell(&hubs, status("completed")).unwrap();
    assert_eq!(ready(&mut feed).unwrap().id.n, 10);
    assert!(is_closed(&mut feed), "the task is over");
    drop(second);
}

#[test]
fn after_the_end_nothing_is_told() {
    let (hubs, hub) = hub();
    let last = tell(&hubs, status("failed")).unwrap();
    assert!(tell(&hubs, status("working")).is_none());
    assert!(hub.tell_stored(&mut [status("completed")]).is_empty());
    hubs.close_if_over(&hub);
    assert!(hubs.get(KEY).is_some(), "its end is not with the writer yet");
    drop(last);
    hubs.close_if_over(&hub);
    assert!(hubs.get(KEY).is_none());
}

#[test]
fn what_is_never_stored_does_not_wait_for_ever() {
    let (hubs, hub) = hub();
    let batch = tell(&hubs, status("working")).unwrap();
    assert_eq!(hub.applied_to(), 7);
    drop(batch);
    assert_eq!(hub.applied_to(), 8, "the log has a hole, which whoever comes back is told");
}

#[test]
fn one_that_lags_is_cut_and_the_others_hear_everything() {
    let (hubs, hub) = hub();
    let (_, mut slow) = hub.listen(Dialect::V1);
    let (_, mut quick) = hub.listen(Dialect::V03);
    for n in 0..QUEUE + 10 {
        tell(&hubs, status("working")).unwrap();
        assert_eq!(ready(&mut quick).unwrap().id.n, 8 + n as u64);
    }
    assert!(is_closed(&mut slow), "and what waited for it is given up");
    assert_eq!(hubs.listeners(KEY), 1);
}

#[test]
fn octets_count_as_well_as_events_but_a_single_one_is_always_let_through() {
    let (hubs, hub) = hub();
    let (_, mut feed) = hub.listen(Dialect::V1);
    tell(&hubs, padded(QUEUE_OCTETS * 2)).unwrap();
    assert!(ready(&mut feed).is_some());
    tell(&hubs, padded(QUEUE_OCTETS / 2)).unwrap();
    tell(&hubs, padded(QUEUE_OCTETS)).unwrap();
    assert!(is_closed(&mut feed));
}

#[test]
fn one_that_leaves_is_forgotten_at_once() {
    let (hubs, hub) = hub();
    let (_, feed) = hub.listen(Dialect::V1);
    assert_eq!(hubs.listeners(KEY), 1);
    drop(feed);
    assert_eq!(hubs.listeners(KEY), 0);
}

#[test]
fn a_lost_task_is_told_and_goes_on_should_it_be_found() {
    let (hubs, hub) = hub();
    let (_, mut feed) = hub.listen(Dialect::V1);
    hubs.lose(KEY);
    assert!(ready(&mut feed).unwrap().is_lost() && is_closed(&mut feed));
    let found = tell(&hubs, status("working")).unwrap();
    assert_eq!(found.told[0].id.n, 8, "being lost is no event of the log");
}

#[test]
fn each_dialect_is_written_once_somebody_listens_in_it_and_translated_otherwise() {
    let (hubs, hub) = hub();
    let (_, _new) = hub.listen(Dialect::V1);
    let only_new = tell(&hubs, status("working")).unwrap();
    assert_eq!(only_new.told[0].stored_line(Dialect::V03), None);
    assert!(only_new.told[0].line(Dialect::V03).contains(r#""kind":"status-update""#));
    let (_, _old) = hub.listen(Dialect::V03);
    let both = tell(&hubs, status("working")).unwrap();
    assert_eq!(both.told[0].stored_line(Dialect::V03), Some(&*only_new.told[0].line(Dialect::V03)));
}

#[tokio::test]
async fn whoever_heard_something_can_wait_until_the_writer_has_it() {
    let (hubs, _hub) = hub();
    let batch = tell(&hubs, status("working")).unwrap();
    let waits = {
        let hubs = hubs.clone();
        tokio::spawn(async move { hubs.caught_up(KEY).await })
    };
    tokio::task::yield_now().await;
    assert!(!waits.is_finished());
    drop(batch);
    tokio::time::timeout(CATCHES_UP_WITHIN / 2, waits).await.unwrap().unwrap();
}
