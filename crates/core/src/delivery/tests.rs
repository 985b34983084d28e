use super::*;

fn status(status: u16) -> Outcome {
    Outcome::Status { status, retry_after: None }
}

fn asked(status: u16, seconds: u64) -> Outcome {
    Outcome::Status { status, retry_after: Some(Duration::from_secs(seconds)) }
}

/// The waits and the end of a delivery whose every attempt has this outcome.
fn run(schedule: Schedule, outcome: Outcome) -> (Vec<u64>, Next) {
    let mut waits = Vec::new();
    let mut tries = Tries::default();
    loop {
        tries = tries.with(outcome);
        match next(schedule, tries, outcome, 0.5) {
            Next::TryAgain { after } => waits.push(after.as_secs()),
            end => return (waits, end),
        }
    }
}

#[test]
fn a_schedule_says_how_often_it_tries_at_most() {
    assert_eq!([Schedule::Series, Schedule::Once, Schedule::Never].map(Schedule::tries), [9, 2, 1]);
}

#[test]
fn a_receiver_that_fails_is_tried_nine_times_over_28_hours() {
    for outcome in [status(500), status(429), status(408), status(302), Outcome::Failed(Failure::Timeout)] {
        let (waits, end) = run(Schedule::Series, outcome);
        assert_eq!(waits, [5, 60, 300, 1_800, 7_200, 18_000, 36_000, 36_000], "{outcome:?}");
        assert_eq!(end, Next::Over(DeliveryState::Exhausted));
        assert_eq!(waits.iter().sum::<u64>() / 3_600, 27, "and six tenths");
    }
}

#[test]
fn the_plain_contract_is_one_retry() {
    assert_eq!(run(Schedule::Once, status(503)), (vec![5], Next::Over(DeliveryState::Exhausted)));
    assert_eq!(run(Schedule::Once, status(404)), (vec![30], Next::Over(DeliveryState::Rejected)));
}

#[test]
fn best_effort_has_one_try() {
    assert_eq!(run(Schedule::Never, status(503)), (vec![], Next::Over(DeliveryState::Exhausted)));
    assert_eq!(run(Schedule::Never, status(404)), (vec![], Next::Over(DeliveryState::Rejected)));
    let refused = Outcome::Failed(Failure::PeerMismatch);
    assert_eq!(run(Schedule::Never, refused), (vec![], Next::Over(DeliveryState::RefusedByPolicy)));
    assert_eq!(run(Schedule::Never, status(204)), (vec![], Next::Delivered));
}

#[test]
fn an_answer_that_blames_the_request_gets_one_retry_after_half_a_minute() {
    for code in [400, 401, 403, 404, 413, 422] {
        assert_eq!(
            run(Schedule::Series, status(code)),
            (vec![30], Next::Over(DeliveryState::Rejected)),
            "{code}"
        );
    }
}

#[test]
fn gone_ends_it_and_its_registration_at_once() {
    assert_eq!(run(Schedule::Series, status(410)), (vec![], Next::DisableConfig));
}

#[test]
fn our_own_refusal_is_tried_twice_more_since_a_network_may_heal() {
    let refused = Outcome::Failed(Failure::Answers(AnswerFault::OnLink));
    assert_eq!(run(Schedule::Series, refused), (vec![5, 60], Next::Over(DeliveryState::RefusedByPolicy)));
    let empty = Outcome::Failed(Failure::Answers(AnswerFault::Empty));
    assert_eq!(run(Schedule::Series, empty).1, Next::Over(DeliveryState::Exhausted), "a name may come back");
}

#[test]
fn a_refusal_after_other_failures_is_counted_from_there() {
    let mut tries = Tries::default();
    for _ in 0..4 {
        tries = tries.with(status(500));
    }
    let refused = Outcome::Failed(Failure::PeerMismatch);
    tries = tries.with(refused);
    assert!(matches!(next(Schedule::Series, tries, refused, 0.5), Next::TryAgain { .. }));
}

#[test]
fn retry_after_wins_where_it_is_later_and_never_shortens_or_exceeds_a_day() {
    let first = |outcome| next(Schedule::Series, Tries::default().with(outcome), outcome, 0.5);
    assert_eq!(first(asked(429, 3_600)), Next::TryAgain { after: Duration::from_secs(3_600) });
    assert_eq!(first(asked(503, 1)), Next::TryAgain { after: Duration::from_secs(5) });
    assert_eq!(first(asked(503, 10 * 86_400)), Next::TryAgain { after: LONGEST });
}

#[test]
fn waits_differ_by_a_fifth_to_either_side() {
    let first = |jitter| next(Schedule::Series, Tries::default().with(status(500)), status(500), jitter);
    assert_eq!(first(0.0), Next::TryAgain { after: Duration::from_secs(4) });
    assert_eq!(first(1.0), Next::TryAgain { after: Duration::from_secs(6) });
}

#[test]
fn ends_and_questions_are_reserved_and_progress_is_not() {
    for state in TaskState::ALL {
        let reserved = matches!(
            state.word(),
            "completed" | "failed" | "canceled" | "rejected" | "input-required" | "auth-required"
        );
        assert_eq!(Lane::of(state) == Lane::Reserved, reserved, "{}", state.word());
    }
}

#[test]
fn a_target_that_fails_five_times_is_probed_and_after_five_days_left_to_its_user() {
    let hours = |hours: u64| Duration::from_secs(hours * 3_600);
    assert_eq!(breaker(4, hours(1)), Breaker::Closed);
    assert_eq!(breaker(5, hours(1)), Breaker::Open { probe_after: Duration::from_secs(300) });
    assert_eq!(breaker(40, hours(121)), Breaker::Paused);
    assert_eq!(breaker(2, hours(121)), Breaker::Closed, "two failures in a week are no outage");
}

#[test]
fn every_word_reads_back() {
    for state in DeliveryState::ALL {
        assert_eq!(DeliveryState::from_word(state.word()), Some(state));
    }
    for lane in [Lane::Reserved, Lane::BestEffort] {
        assert_eq!(Lane::from_word(lane.word()), Some(lane));
    }
}
