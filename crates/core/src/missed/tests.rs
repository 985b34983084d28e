use super::*;

const MINUTE: i64 = 60_000;

/// Found by a poll ten minutes after everything began, with a stream open and no registration.
fn end() -> End {
    End {
        found_by: FoundBy::Poll,
        at_ms: 10 * MINUTE,
        following: Following::Stream,
        known_since_ms: MINUTE,
        heard_before_ms: Some(9 * MINUTE),
        unreachable: false,
        run_started_ms: 0,
        registered_at_ms: None,
        told_at_ms: None,
    }
}

fn later(end: End) -> Finding {
    judge(end, end.at_ms + WAIT_MS)
}

fn missed(way: Way, why: Why) -> Finding {
    Finding::Missed { way, why }
}

#[test]
fn what_was_told_was_not_missed() {
    assert_eq!(judge(End { found_by: FoundBy::Told, ..end() }, 0), Finding::NotMissed);
}

#[test]
fn an_open_stream_that_did_not_tell_missed_it() {
    assert_eq!(judge(end(), end().at_ms), missed(Way::Stream, Why::StreamSilent), "at once");
    let between = End { following: Following::BetweenStreams, ..end() };
    assert_eq!(later(between), missed(Way::Stream, Why::NoStreamOpen));
}

#[test]
fn a_registered_callback_has_ten_seconds_to_follow() {
    let pushed = End { registered_at_ms: Some(2 * MINUTE), ..end() };
    assert_eq!(judge(pushed, pushed.at_ms), Finding::WaitUntil(pushed.at_ms + WAIT_MS));
    assert_eq!(later(pushed), missed(Way::Push, Why::NotCalledBack));
    let told = End { told_at_ms: Some(pushed.at_ms + 5_000), ..pushed };
    assert_eq!(later(told), Finding::NotMissed);
    assert_eq!(judge(told, told.at_ms + 5_000), Finding::NotMissed, "as soon as it came");
}

#[test]
fn a_clock_set_back_does_not_prolong_the_wait() {
    let pushed = End { registered_at_ms: Some(2 * MINUTE), ..end() };
    assert_eq!(judge(pushed, 0), missed(Way::Push, Why::NotCalledBack));
}

#[test]
fn a_registration_that_was_just_made_is_not_blamed() {
    let late = End { registered_at_ms: Some(10 * MINUTE - 2_000), ..end() };
    assert_eq!(later(late), missed(Way::Stream, Why::StreamSilent));
    assert_eq!(later(End { following: Following::Poll, ..late }), Finding::NotMissed);
}

#[test]
fn a_task_that_is_only_polled_misses_nothing_by_being_polled() {
    let polled = End { following: Following::Poll, ..end() };
    assert_eq!(later(polled), Finding::NotMissed);
    let asked = End { found_by: FoundBy::Manual, ..polled };
    assert_eq!(later(asked), missed(Way::Poll, Why::NotYetPolled));
}

#[test]
fn what_ended_while_we_did_not_run_was_missed_for_that_reason() {
    let away = End { run_started_ms: 10 * MINUTE - 100, ..end() };
    for (following, registered, way) in [
        (Following::BetweenStreams, None, Way::Stream),
        (Following::Poll, None, Way::Poll),
        (Following::Poll, Some(2 * MINUTE), Way::Push),
    ] {
        let end = End { following, registered_at_ms: registered, ..away };
        assert_eq!(later(end), missed(way, Why::NotRunning));
    }
    let told = End { told_at_ms: Some(5 * MINUTE), ..away };
    assert_eq!(later(told), Finding::NotMissed, "a callback had come before we stopped");
}

#[test]
fn an_agent_that_was_away_is_named() {
    let away = End { unreachable: true, following: Following::BetweenStreams, ..end() };
    assert_eq!(later(away), missed(Way::Stream, Why::AgentUnreachable));
    let both = End { run_started_ms: 10 * MINUTE - 100, ..away };
    assert_eq!(later(both), missed(Way::Stream, Why::NotRunning), "nobody knows how long it was away before");
}

#[test]
fn a_task_over_within_moments_was_not_missed_unless_the_user_had_to_ask() {
    let quick = End { known_since_ms: 10 * MINUTE - 300, following: Following::BetweenStreams, ..end() };
    assert_eq!(later(quick), Finding::NotMissed);
    let asked = End { found_by: FoundBy::Manual, ..quick };
    assert_eq!(later(asked), missed(Way::Stream, Why::NoStreamOpen));
}

#[test]
fn a_paused_task_was_missed_because_it_was_paused() {
    let paused = End { found_by: FoundBy::Manual, following: Following::Paused, ..end() };
    assert_eq!(later(paused), missed(Way::Poll, Why::Paused));
}

#[test]
fn every_word_is_read_back() {
    for why in Why::ALL {
        assert_eq!(Why::from_word(why.word()), Some(why));
    }
    for way in [Way::Stream, Way::Push, Way::Poll] {
        assert_eq!(Way::from_word(way.word()), Some(way));
    }
}
