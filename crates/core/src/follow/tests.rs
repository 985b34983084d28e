//! The rules of following, as sentences.

use super::*;

const S: Duration = Duration::from_secs(1);

struct World {
    machine: FollowMachine,
    now: Instant,
}

impl World {
    fn new(reattach: Reattach) -> Self {
        let now = Instant::now();
        Self { machine: FollowMachine::new(FollowTimes::default(), reattach, TaskState::Working, now), now }
    }

    fn live() -> Self {
        let mut world = Self::new(Reattach::Works);
        assert_eq!(world.act(), Some(Action::Read), "GetTask comes first");
        world.read(TaskState::Working, false);
        assert_eq!(world.act(), Some(Action::Subscribe), "then subscribe");
        world.machine.handle_attached(world.now);
        world.task_frame(TaskState::Working);
        assert_eq!(world.act(), None);
        world
    }

    fn act(&mut self) -> Option<Action> {
        self.machine.poll_action(self.now)
    }

    fn read(&mut self, state: TaskState, changed: bool) {
        self.machine.handle_read(ReadNote { state, changed }, self.now, 1.0);
    }

    fn task_frame(&mut self, state: TaskState) {
        self.machine.handle_frame(FrameNote { kind: FrameKind::Task, state, wants_read: false }, self.now);
    }

    fn cut(&mut self) {
        self.machine.handle_cut(self.now, 1.0);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    /// Lets time pass until there is something to do.
    fn next(&mut self) -> Option<Action> {
        for _ in 0..100 {
            if let Some(action) = self.act() {
                return Some(action);
            }
            self.now = self.now.max(self.machine.poll_timeout()?);
        }
        None
    }
}

#[test]
fn a_cut_is_read_at_once_and_reattached_after_a_wait() {
    let mut world = World::live();
    world.cut();
    assert_eq!(world.act(), Some(Action::Read));
    assert_eq!(world.machine.mode(), Mode::Reconnecting);
    world.read(TaskState::Working, false);
    let cut_at = world.now;
    assert_eq!(world.next(), Some(Action::Read), "once more, straight before attaching");
    assert!(world.now - cut_at <= S);
    world.read(TaskState::Working, false);
    assert_eq!(world.act(), Some(Action::Subscribe));
}

#[test]
fn a_stream_that_is_always_closed_is_asked_for_at_most_ten_times_in_the_first_minute() {
    let mut world = World::new(Reattach::Works);
    let start = world.now;
    let mut attempts = 0;
    while world.now - start < Duration::from_secs(60) {
        match world.next() {
            Some(Action::Read) => world.read(TaskState::Working, false),
            Some(Action::Subscribe) => {
                attempts += 1;
                world.machine.handle_attached(world.now);
                world.task_frame(TaskState::Working);
                world.pass(Duration::from_millis(200));
                world.cut();
            }
            Some(Action::CloseStream(_)) => {}
            None => unreachable!("there is always a next step"),
        }
    }
    assert!((5..=10).contains(&attempts), "{attempts} attempts");
}

#[test]
fn a_silent_stream_is_kept_while_reads_find_nothing_new_and_doubted_less_each_time() {
    let mut world = World::live();
    let mut last = world.now;
    let mut waits = Vec::new();
    for _ in 0..5 {
        assert_eq!(world.next(), Some(Action::Read));
        waits.push((world.now - last).as_secs());
        last = world.now;
        world.read(TaskState::Working, false);
    }
    assert_eq!(waits, [45, 90, 180, 300, 300]);
    assert_eq!(world.machine.mode(), Mode::Stream, "not one reconnect");
}

#[test]
fn a_silent_stream_that_missed_something_is_replaced() {
    let mut world = World::live();
    assert_eq!(world.next(), Some(Action::Read));
    world.read(TaskState::Working, true);
    assert_eq!(world.act(), None, "its news may be on the way");
    assert_eq!(world.next(), Some(Action::CloseStream(CloseReason::Silent)));
    assert_eq!(world.next(), Some(Action::Read));
}

#[test]
fn a_stream_that_tells_the_news_a_moment_after_the_read_found_it_is_kept() {
    let mut world = World::live();
    assert_eq!(world.next(), Some(Action::Read));
    world.read(TaskState::Working, true);
    world.pass(Duration::from_millis(50));
    world.machine.handle_bytes(world.now);
    world.pass(10 * S);
    assert_eq!((world.act(), world.machine.mode()), (None, Mode::Stream));
}

#[test]
fn a_silent_stream_that_missed_the_end_was_not_listened_to() {
    let mut world = World::live();
    assert_eq!(world.next(), Some(Action::Read));
    world.read(TaskState::Completed, true);
    assert_eq!(world.act(), Some(Action::CloseStream(CloseReason::Silent)));
    assert_eq!(world.machine.ending(), Some(Ending::Settled));
}

#[test]
fn bytes_of_any_kind_keep_a_stream_alive() {
    let mut world = World::live();
    for _ in 0..60 {
        world.pass(4 * S);
        world.machine.handle_bytes(world.now);
        assert_eq!(world.act(), None, "ten minutes of comments are no silence");
    }
}

#[test]
fn a_stream_that_does_not_begin_with_a_task_is_followed_by_a_read() {
    let mut world = World::new(Reattach::Works);
    assert_eq!(world.act(), Some(Action::Read));
    world.read(TaskState::Working, false);
    assert_eq!(world.act(), Some(Action::Subscribe));
    world.machine.handle_attached(world.now);
    assert_eq!(world.act(), None);
    world.pass(2 * S);
    assert_eq!(world.act(), Some(Action::Read), "what happened before the stream opened is found");
}

#[test]
fn a_terminal_frame_ends_following_only_once_a_read_agrees() {
    let mut world = World::live();
    world.machine.handle_frame(
        FrameNote { kind: FrameKind::Update, state: TaskState::Completed, wants_read: true },
        world.now,
    );
    assert_eq!(world.act(), Some(Action::CloseStream(CloseReason::Over)));
    assert_eq!(world.act(), Some(Action::Read));
    assert_eq!(world.machine.ending(), None);
    world.read(TaskState::Completed, true);
    assert_eq!(world.machine.ending(), Some(Ending::Settled));
    assert_eq!(world.act(), None);
}

#[test]
fn a_read_that_does_not_agree_with_a_terminal_frame_is_repeated_and_then_given_up() {
    let mut world = World::live();
    world.machine.handle_frame(
        FrameNote { kind: FrameKind::Update, state: TaskState::Completed, wants_read: true },
        world.now,
    );
    assert_eq!(world.act(), Some(Action::CloseStream(CloseReason::Over)));
    let mut reads = 0;
    while world.next() == Some(Action::Read) {
        reads += 1;
        world.machine.handle_unsettled_read(world.now, 1.0);
    }
    assert_eq!((reads, world.machine.ending()), (5, Some(Ending::Unsettled)));
}

#[test]
fn an_end_that_a_restart_found_unconfirmed_is_read_again_until_it_is_or_is_not() {
    let now = Instant::now();
    let machine = FollowMachine::new(FollowTimes::default(), Reattach::Works, TaskState::Completed, now);
    let mut world = World { machine, now };
    let mut reads = 0;
    while world.next() == Some(Action::Read) {
        reads += 1;
        world.machine.handle_unsettled_read(world.now, 1.0);
    }
    assert_eq!((reads, world.machine.ending()), (SETTLE_TRIES, Some(Ending::Unsettled)));
}

#[test]
fn an_end_whose_agent_went_away_is_confirmed_when_it_is_back() {
    let mut world = World::live();
    world.task_frame(TaskState::Completed);
    assert_eq!(world.act(), Some(Action::CloseStream(CloseReason::Over)));
    assert_eq!(world.act(), Some(Action::Read));
    world.machine.handle_read_failed(ReadFailure::Unreachable, Identity::Same, world.now, 1.0);
    assert_eq!(world.next(), Some(Action::Read));
    world.machine.handle_unsettled_read(world.now, 1.0);
    assert_eq!(world.next(), Some(Action::Read), "and no stream is asked for");
    world.read(TaskState::Completed, false);
    assert_eq!(world.machine.ending(), Some(Ending::Settled));
}

#[test]
fn any_refusal_means_read_the_task() {
    for kind in
        [FaultKind::TaskTerminal, FaultKind::TaskNotFound, FaultKind::InvalidParams, FaultKind::Internal]
    {
        let mut world = World::new(Reattach::Works);
        world.act();
        world.read(TaskState::Working, false);
        assert_eq!(world.act(), Some(Action::Subscribe));
        world.machine.handle_subscribe_refused(kind, world.now, 1.0);
        assert_eq!(world.act(), Some(Action::Read), "{kind:?}");
        world.read(TaskState::Completed, true);
        assert_eq!(world.machine.ending(), Some(Ending::Settled));
    }
}

#[test]
fn an_agent_without_streams_is_polled_slower_while_nothing_changes() {
    let mut world = World::new(Reattach::Works);
    world.act();
    world.read(TaskState::Working, false);
    assert_eq!(world.act(), Some(Action::Subscribe));
    world.machine.handle_subscribe_refused(FaultKind::UnsupportedOperation, world.now, 1.0);
    assert_eq!(world.machine.mode(), Mode::Poll);
    let start = world.now;
    let mut reads = 0;
    while world.now - start < Duration::from_secs(300) {
        assert_eq!(world.next(), Some(Action::Read));
        reads += 1;
        world.read(TaskState::Working, false);
    }
    assert!((12..=25).contains(&reads), "{reads} reads in five minutes");
}

#[test]
fn a_waiting_task_whose_stream_is_closed_is_polled_and_attached_again_once_it_moves() {
    let mut world = World::live();
    world.machine.handle_frame(
        FrameNote { kind: FrameKind::Update, state: TaskState::InputRequired, wants_read: false },
        world.now,
    );
    world.cut();
    assert_eq!(world.act(), Some(Action::Read));
    world.read(TaskState::InputRequired, false);
    for _ in 0..10 {
        assert_eq!(world.next(), Some(Action::Read), "polled, not subscribed");
        world.read(TaskState::InputRequired, false);
    }
    world.machine.handle_poked();
    assert_eq!(world.act(), Some(Action::Read), "a reply was sent");
    world.read(TaskState::Working, true);
    assert_eq!(world.act(), Some(Action::Subscribe));
}

#[test]
fn not_found_twice_is_lost_and_once_is_not() {
    let mut world = World::new(Reattach::Works);
    world.act();
    world.machine.handle_read_failed(ReadFailure::NotFound, Identity::Same, world.now, 1.0);
    assert_eq!(world.machine.ending(), None);
    assert_eq!(world.next(), Some(Action::Read));
    world.machine.handle_read_failed(ReadFailure::NotFound, Identity::Same, world.now, 1.0);
    assert_eq!(world.machine.ending(), Some(Ending::Lost));
}

#[test]
fn not_found_after_a_new_credential_is_the_wrong_identity() {
    let mut world = World::new(Reattach::Works);
    for _ in 0..2 {
        assert_eq!(world.next(), Some(Action::Read));
        world.machine.handle_read_failed(ReadFailure::NotFound, Identity::Changed, world.now, 1.0);
    }
    assert_eq!(world.machine.ending(), Some(Ending::WrongIdentity));
}

#[test]
fn a_failing_read_does_not_close_a_stream_that_lives() {
    let mut world = World::live();
    assert_eq!(world.next(), Some(Action::Read));
    world.machine.handle_read_failed(ReadFailure::Unusable, Identity::Same, world.now, 1.0);
    assert_eq!(world.machine.mode(), Mode::Stream);
}

#[test]
fn while_the_agent_cannot_be_reached_nothing_is_tried() {
    let mut world = World::live();
    world.cut();
    assert_eq!(world.act(), Some(Action::Read));
    world.machine.handle_read_failed(ReadFailure::Unreachable, Identity::Same, world.now, 1.0);
    world.pass(30 * S);
    assert_eq!(world.act(), None);
    world.machine.handle_link_up(Duration::from_millis(100), world.now);
    assert_eq!(world.next(), Some(Action::Read));
}

#[test]
fn after_sleep_every_stream_is_closed_and_the_task_read_at_once() {
    let mut world = World::live();
    world.machine.handle_wake();
    assert_eq!(world.act(), Some(Action::CloseStream(CloseReason::Slept)));
    assert_eq!(world.act(), Some(Action::Read));
    world.read(TaskState::Working, false);
    assert_eq!(world.act(), Some(Action::Subscribe));
}

#[test]
fn a_403_to_the_same_credential_is_tried_again_within_a_minute_each_time() {
    let mut world = World::live();
    world.cut();
    for refused in 0..12 {
        assert_eq!(world.next(), Some(Action::Read), "refused {refused} times");
        let asked = world.now;
        world.machine.handle_read_failed(ReadFailure::Forbidden, Identity::Same, world.now, 1.0);
        assert!(!world.machine.needs_sign_in());
        assert!(world.machine.poll_timeout().unwrap() - asked <= Duration::from_secs(60));
    }
    world.next();
    world.machine.handle_read_failed(ReadFailure::Forbidden, Identity::Changed, world.now, 1.0);
    assert_eq!(world.machine.ending(), Some(Ending::WrongIdentity));
}

#[test]
fn a_task_that_needs_a_sign_in_heals_when_the_credential_is_set() {
    let mut world = World::live();
    world.cut();
    world.act();
    world.machine.handle_read_failed(ReadFailure::Unauthorized, Identity::Same, world.now, 1.0);
    assert!(world.machine.needs_sign_in());
    assert_eq!(world.act(), None);
    world.machine.handle_poked();
    assert_eq!(world.act(), Some(Action::Read));
}

#[test]
fn an_end_found_by_somebody_else_ends_following_and_closes_the_stream() {
    let mut world = World::live();
    world.machine.handle_rung(TaskState::Completed, true);
    assert_eq!(world.act(), Some(Action::CloseStream(CloseReason::Over)));
    assert_eq!(world.machine.ending(), Some(Ending::Settled));
}

#[test]
fn retry_after_is_waited_for() {
    let mut world = World::live();
    world.cut();
    world.act();
    world.machine.handle_read_failed(ReadFailure::Later(Some(20 * S)), Identity::Same, world.now, 1.0);
    let asked = world.now;
    assert_eq!(world.next(), Some(Action::Read));
    assert!(world.now - asked >= 20 * S);
}

fn suspect() -> World {
    let mut world = World::new(Reattach::Suspect);
    world.act();
    world.read(TaskState::Working, false);
    assert_eq!(world.act(), Some(Action::Subscribe));
    world.machine.handle_attached(world.now);
    world
}

fn is_polled_from_now_on(mut world: World) {
    assert_eq!(world.act(), Some(Action::CloseStream(CloseReason::Harmful)));
    for _ in 0..3 {
        assert_eq!(world.next(), Some(Action::Read));
        world.read(TaskState::Working, true);
    }
    assert_eq!((world.machine.mode(), world.machine.reattach()), (Mode::Poll, Reattach::Harmful));
}

#[test]
fn a_suspect_agent_that_says_nothing_at_first_is_read_and_still_listened_to() {
    let mut world = suspect();
    assert_eq!(world.next(), Some(Action::Read), "silence does no harm, and may only be a slow line");
    world.read(TaskState::Working, false);
    assert_eq!((world.act(), world.machine.reattach()), (None, Reattach::Suspect));
}

#[test]
fn a_suspect_agent_that_begins_with_an_update_is_polled() {
    let mut world = suspect();
    let update = FrameNote { kind: FrameKind::Update, state: TaskState::Working, wants_read: false };
    world.machine.handle_frame(update, world.now);
    is_polled_from_now_on(world);
}

#[test]
fn a_suspect_agent_that_begins_with_a_task_is_trusted() {
    let mut world = suspect();
    world.task_frame(TaskState::Working);
    assert_eq!(world.machine.reattach(), Reattach::Works);
}

#[test]
fn where_callbacks_are_expected_it_is_read_less_often_and_said_so() {
    let mut world = World::new(Reattach::Never);
    world.act();
    world.read(TaskState::Working, false);
    assert_eq!(world.machine.mode(), Mode::Poll);
    world.machine.handle_push(true, world.now);
    assert_eq!(world.machine.mode(), Mode::PushAndPoll);
    let armed = world.now;
    assert_eq!(world.next(), Some(Action::Read));
    assert!(world.now - armed >= 10 * S, "{:?}", world.now - armed);
    for _ in 0..20 {
        world.read(TaskState::Working, false);
        world.next();
    }
    let before = world.now;
    world.read(TaskState::Working, false);
    world.next();
    assert!(world.now - before > 100 * S && world.now - before <= 300 * S, "{:?}", world.now - before);
}

#[test]
fn callbacks_that_cannot_arrive_any_more_bring_the_short_waits_back() {
    let mut world = World::new(Reattach::Never);
    world.act();
    world.read(TaskState::Working, false);
    world.machine.handle_push(true, world.now);
    for _ in 0..20 {
        world.read(TaskState::Working, false);
        world.next();
    }
    world.read(TaskState::Working, false);
    world.machine.handle_push(false, world.now);
    let lost = world.now;
    assert_eq!((world.machine.mode(), world.next()), (Mode::Poll, Some(Action::Read)));
    assert!(world.now - lost <= S, "{:?}", world.now - lost);
}

#[test]
fn a_stream_is_a_stream_whatever_is_registered() {
    let mut world = World::live();
    world.machine.handle_push(true, world.now);
    assert_eq!(world.machine.mode(), Mode::Stream);
}
