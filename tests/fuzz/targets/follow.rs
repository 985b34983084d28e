//! Following never sticks, never spins and never holds two streams, in whatever order things happen to it.
#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use taskbell_core::fault::FaultKind;
use taskbell_core::follow::{
    Action, FollowMachine, FollowTimes, FrameKind, FrameNote, Identity, ReadFailure, ReadNote, Reattach,
};
use taskbell_core::state::TaskState;

#[derive(Debug, Arbitrary)]
struct Story {
    reattach: u8,
    happenings: Vec<Happening>,
}

#[derive(Debug, Arbitrary)]
enum Happening {
    ReadAnswers { state: u8, changed: bool },
    ReadFails { how: u8, other_identity: bool, after: u16 },
    ReadIsBehind,
    Attached,
    SubscribeRefused { how: u8 },
    SubscribeFails { how: u8, after: u16 },
    Bytes,
    Frame { task: bool, state: u8, wants_read: bool },
    Cut,
    OverLimit,
    LinkUp { after: u16 },
    Wakes,
    Rung { state: u8, settled: bool },
    Poked,
    Push { armed: bool },
    TimePasses { millis: u32 },
    TimeIsUp,
}

fn state(choice: u8) -> TaskState {
    const STATES: [TaskState; 8] = [
        TaskState::Submitted,
        TaskState::Working,
        TaskState::InputRequired,
        TaskState::AuthRequired,
        TaskState::Completed,
        TaskState::Failed,
        TaskState::Canceled,
        TaskState::Unknown,
    ];
    STATES[usize::from(choice) % STATES.len()]
}

fn failure(choice: u8, after: u16) -> ReadFailure {
    match choice % 7 {
        0 => ReadFailure::NotFound,
        1 => ReadFailure::Forbidden,
        2 => ReadFailure::Unauthorized,
        3 => ReadFailure::Unreachable,
        4 => ReadFailure::Later(None),
        5 => ReadFailure::Later(Some(Duration::from_secs(u64::from(after)))),
        _ => ReadFailure::Unusable,
    }
}

/// What the worker that does as it is told would have open.
#[derive(Default)]
struct Worker {
    reading: bool,
    subscribing: bool,
    streaming: bool,
}

impl Worker {
    /// Does all there is to do now.
    fn works(&mut self, machine: &mut FollowMachine, now: Instant) {
        for _ in 0..8 {
            let Some(action) = machine.poll_action(now) else { return };
            match action {
                Action::Read => {
                    assert!(machine.ending().is_none(), "nothing is read after the end");
                    assert!(!self.reading, "one read at a time");
                    self.reading = true;
                }
                Action::Subscribe => {
                    assert!(machine.ending().is_none(), "nobody subscribes after the end");
                    assert!(!self.streaming && !self.subscribing, "the old stream is closed first");
                    self.subscribing = true;
                }
                Action::CloseStream(_) => {
                    self.streaming = false;
                    self.subscribing = false;
                }
            }
        }
        panic!("there is always something to do: {machine:?}");
    }
}

fuzz_target!(|story: Story| {
    let start = Instant::now();
    let mut now = start;
    let reattach = [Reattach::Works, Reattach::Suspect, Reattach::Harmful, Reattach::Never];
    let reattach = reattach[usize::from(story.reattach) % reattach.len()];
    let mut machine = FollowMachine::new(FollowTimes::default(), reattach, TaskState::Working, now);
    let mut worker = Worker::default();
    worker.works(&mut machine, now);
    for happening in story.happenings {
        match happening {
            Happening::ReadAnswers { state: says, changed } if worker.reading => {
                worker.reading = false;
                machine.handle_read(ReadNote { state: state(says), changed }, now, 0.5);
            }
            Happening::ReadFails { how, other_identity, after } if worker.reading => {
                worker.reading = false;
                let identity = if other_identity { Identity::Changed } else { Identity::Same };
                machine.handle_read_failed(failure(how, after), identity, now, 0.5);
            }
            Happening::ReadIsBehind if worker.reading && machine.state().is_terminal() => {
                worker.reading = false;
                machine.handle_unsettled_read(now, 0.5);
            }
            Happening::Attached if worker.subscribing => {
                worker.subscribing = false;
                worker.streaming = true;
                machine.handle_attached(now);
            }
            Happening::SubscribeRefused { how } if worker.subscribing => {
                worker.subscribing = false;
                let kinds = [FaultKind::UnsupportedOperation, FaultKind::TaskNotFound, FaultKind::Internal];
                machine.handle_subscribe_refused(kinds[usize::from(how) % 3], now, 0.5);
            }
            Happening::SubscribeFails { how, after } if worker.subscribing => {
                worker.subscribing = false;
                machine.handle_subscribe_failed(failure(how, after), now, 0.5);
            }
            Happening::Bytes if worker.streaming => machine.handle_bytes(now),
            Happening::Frame { task, state: says, wants_read } if worker.streaming => {
                let kind = if task { FrameKind::Task } else { FrameKind::Update };
                machine.handle_frame(FrameNote { kind, state: state(says), wants_read }, now);
            }
            Happening::Cut if worker.streaming => {
                worker.streaming = false;
                machine.handle_cut(now, 0.5);
            }
            Happening::OverLimit if worker.streaming => {
                worker.streaming = false;
                machine.handle_over_limit(now);
            }
            Happening::LinkUp { after } => {
                machine.handle_link_up(Duration::from_millis(u64::from(after)), now);
            }
            Happening::Wakes => machine.handle_wake(),
            Happening::Rung { state: is, settled } => machine.handle_rung(state(is), settled),
            Happening::Poked => machine.handle_poked(),
            Happening::Push { armed } => machine.handle_push(armed, now),
            Happening::TimePasses { millis } => now += Duration::from_millis(u64::from(millis % 400_000)),
            Happening::TimeIsUp => now = machine.poll_timeout().unwrap_or(now).max(now),
            _ => continue,
        }
        worker.works(&mut machine, now);
        let due = machine.poll_timeout();
        if machine.ending().is_some() {
            assert!(!worker.streaming && !worker.subscribing, "the end closes the stream");
        } else {
            let busy = worker.reading || worker.subscribing || due.is_some();
            assert!(busy, "nothing is under way and nothing is planned: {machine:?}");
            // Due already and still nothing to do: only while what was asked for is under way.
            assert!(worker.reading || due.is_none_or(|due| due > now), "spins: {machine:?}");
        }
    }
});
