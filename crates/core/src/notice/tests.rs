use proptest::prelude::*;

use super::*;
use crate::ids::MessageId;
use crate::task::{Part, Role};

fn agent() -> AgentName {
    AgentName::new("demo").unwrap()
}

fn says(id: &str, text: &str) -> Message {
    Message::new(MessageId::new(id), Role::Agent, vec![Part::text(text)])
}

struct Task {
    replied_at_ms: Option<i64>,
    cancel_asked_at_ms: Option<i64>,
}

const UNTOUCHED: Task = Task { replied_at_ms: None, cancel_asked_at_ms: None };

impl Task {
    fn told(&self, from: TaskState, to: TaskState, message: Option<&Message>) -> Option<NewNotice> {
        let agent = agent();
        let subject = Subject {
            agent: &agent,
            title: "build it",
            replied_at_ms: self.replied_at_ms,
            cancel_asked_at_ms: self.cancel_asked_at_ms,
        };
        of_status(subject, StatusChange { from, to, message, at_ms: 7_000 })
    }
}

use TaskState::{
    AuthRequired, Canceled, Completed, Failed, InputRequired, Rejected, Submitted, Unknown, Working,
};

#[test]
fn every_entry_into_a_waiting_state_is_told_with_the_question() {
    let asks = says("m1", "\n  Which\u{202e} branch?\nmain or next");
    let notice = UNTOUCHED.told(Working, InputRequired, Some(&asks)).unwrap();
    assert_eq!(
        (notice.kind, notice.title.as_str(), notice.body.as_str()),
        (NoticeKind::Waiting, "demo needs your answer", "Which branch?")
    );
    let notice = UNTOUCHED.told(Working, AuthRequired, None).unwrap();
    assert_eq!(
        (notice.kind, notice.title.as_str(), notice.body.as_str()),
        (NoticeKind::Waiting, "demo needs you to authorize it", "build it")
    );
    assert!(UNTOUCHED.told(Submitted, InputRequired, None).is_some(), "asked at once");
    assert!(UNTOUCHED.told(InputRequired, AuthRequired, None).is_some(), "another thing to do");
}

#[test]
fn a_question_sounds_unlike_an_end() {
    let (question, end) = (NoticeKind::Waiting, NoticeKind::Finished);
    assert!(
        question.urgency() == Urgency::Critical
            && question.usual_way() == Way::Sound
            && question.wants_attention()
    );
    assert!(end.urgency() == Urgency::Low && end.usual_way() == Way::Silent && !end.wants_attention());
}

#[test]
fn a_second_question_is_another_transition() {
    let key =
        |task: &Task, from, message: &Message| task.told(from, InputRequired, Some(message)).unwrap().key;
    let first = key(&UNTOUCHED, Working, &says("m1", "a?"));
    assert_ne!(first, key(&UNTOUCHED, Working, &says("m2", "a?")), "another message");
    assert_ne!(first, key(&UNTOUCHED, Working, &says("m1", "b?")), "other words under the same id");
    assert_ne!(first, key(&UNTOUCHED, InputRequired, &says("m2", "b?")), "without work in between");
    let answered = Task { replied_at_ms: Some(6_000), ..UNTOUCHED };
    assert_ne!(first, key(&answered, Working, &says("m1", "a?")), "asked again after a reply");
}

#[test]
fn the_same_question_from_another_channel_is_the_same_transition() {
    let asks = says("k-1", "confirm");
    let key = |from| UNTOUCHED.told(from, InputRequired, Some(&asks)).unwrap().key;
    assert_eq!(key(Working), key(Submitted), "a poll may have missed the work in between");
    assert_eq!(
        UNTOUCHED.told(Submitted, Working, Some(&asks)),
        None,
        "the same words while it works are no question"
    );
    assert_eq!(UNTOUCHED.told(InputRequired, InputRequired, None), None);
}

#[test]
fn a_question_without_words_may_get_them_later() {
    let key = |message: Option<&Message>| UNTOUCHED.told(Working, InputRequired, message).unwrap().key;
    assert!(is_unworded(&key(None)));
    assert!(!is_unworded(&key(Some(&says("m", "a?")))) && !is_unworded(&key(Some(&says("", "a?")))));
}

#[test]
fn ends_are_told_once_a_state_and_say_why_they_failed() {
    let why = says("m", "out of memory");
    let told =
        |to| UNTOUCHED.told(Working, to, Some(&why)).map(|notice| (notice.kind, notice.title, notice.body));
    let notice = |kind, title: &str, body: &str| Some((kind, title.to_owned(), body.to_owned()));
    assert_eq!(told(Completed), notice(NoticeKind::Finished, "demo finished", "build it"));
    assert_eq!(told(Failed), notice(NoticeKind::Failed, "demo failed", "build it: out of memory"));
    assert_eq!(told(Rejected), notice(NoticeKind::Failed, "demo rejected a task", "build it: out of memory"));
    assert_eq!(told(Canceled), notice(NoticeKind::Finished, "demo says a task was canceled", "build it"));
    let key = |from| UNTOUCHED.told(from, Completed, None).unwrap().key;
    assert_eq!(key(Working), key(InputRequired));
    assert_eq!(UNTOUCHED.told(Completed, Completed, Some(&why)), None);
}

#[test]
fn progress_is_never_told() {
    for (from, to) in [(Submitted, Working), (Working, Working), (InputRequired, Working), (Working, Unknown)]
    {
        assert_eq!(UNTOUCHED.told(from, to, Some(&says("m", "working 1 of 10000"))), None, "{from:?} {to:?}");
    }
}

#[test]
fn the_users_own_cancellation_is_not_told_but_what_came_of_it_instead_is() {
    let canceled = Task { cancel_asked_at_ms: Some(5_000), ..UNTOUCHED };
    assert_eq!(canceled.told(Working, Canceled, None), None);
    assert!(canceled.told(Working, Completed, None).is_some());
    assert!(canceled.told(Working, Failed, None).is_some());
}

#[test]
fn a_task_that_its_agent_does_not_know_is_lost_and_not_finished() {
    let agent = agent();
    let subject = Subject { agent: &agent, title: "child", replied_at_ms: None, cancel_asked_at_ms: None };
    for gone in [Gone::Lost, Gone::WrongIdentity] {
        assert_eq!(of_verdict(subject, gone, 1).kind, NoticeKind::Lost);
    }
}

#[test]
fn titles_are_ours_whatever_an_agent_writes() {
    for text in [
        "Update required: enter your password",
        "</text><b>x",
        "--icon=/etc/passwd -u critical",
        "%s%n {0} $(id)",
    ] {
        let notice = UNTOUCHED.told(Working, InputRequired, Some(&says("m", text))).unwrap();
        assert_eq!((notice.title.as_str(), notice.body.as_str()), ("demo needs your answer", text));
    }
}

fn pending(id: i64, kind: NoticeKind) -> Pending {
    let way = kind.usual_way();
    Pending {
        id,
        kind,
        created_at_ms: 0,
        snoozed_until_ms: None,
        in_view: false,
        way,
        muted: false,
        held: false,
    }
}

/// Decides at a time that is not quiet.
fn plan(pending: &[Pending], now_ms: i64, allowance: usize) -> Plan {
    super::plan(pending, Hush::default(), now_ms, allowance)
}

#[test]
fn a_question_is_shown_at_once_and_an_end_waits_for_others() {
    let both = [pending(1, NoticeKind::Waiting), pending(2, NoticeKind::Finished)];
    let now = plan(&both, 0, 5);
    assert_eq!((now.show, now.again_at_ms), (vec![vec![1]], Some(2_000)));
    let later = plan(&[pending(2, NoticeKind::Finished), pending(3, NoticeKind::Finished)], 2_000, 5);
    assert_eq!(
        (later.show, later.again_at_ms),
        (vec![vec![2, 3]], None),
        "what finished together is one notice"
    );
}

#[test]
fn forty_ends_within_a_minute_are_few_notices() {
    let mut allowance = Allowance::new(0);
    let (mut waiting, mut shown, mut told): (Vec<Pending>, usize, usize) = (Vec::new(), 0, 0);
    for at_ms in (0..75_000).step_by(500) {
        if at_ms % 1_500 == 0 && at_ms < 60_000 {
            waiting.push(Pending { created_at_ms: at_ms, ..pending(at_ms, NoticeKind::Finished) });
        }
        let left = allowance.at(at_ms);
        let now = plan(&waiting, at_ms, left);
        allowance.take(now.show.len());
        shown += now.show.len();
        told += now.show.iter().map(Vec::len).sum::<usize>();
        waiting.retain(|notice| !now.show.iter().flatten().any(|id| *id == notice.id));
    }
    assert_eq!(told, 40, "every one is told of");
    assert!(shown <= 11, "{shown} notices");
}

#[test]
fn what_the_user_looks_at_is_not_told_except_a_question_that_goes_on_waiting() {
    let seen = |kind| Pending { in_view: true, ..pending(1, kind) };
    assert_eq!(plan(&[seen(NoticeKind::Finished)], 0, 5).suppress, [(1, Reason::InView)]);
    assert_eq!(plan(&[seen(NoticeKind::Failed)], 0, 5).suppress, [(1, Reason::InView)]);
    let question = plan(&[seen(NoticeKind::Waiting)], 0, 5);
    assert_eq!((question.show.len(), question.suppress.len(), question.again_at_ms), (0, 0, Some(30_000)));
    assert_eq!(plan(&[seen(NoticeKind::Waiting)], 30_000, 5).show, [vec![1]]);
}

#[test]
fn what_is_snoozed_waits_for_its_time() {
    let snoozed = [Pending { snoozed_until_ms: Some(60_000), ..pending(1, NoticeKind::Waiting) }];
    assert_eq!(plan(&snoozed, 59_999, 5), Plan { again_at_ms: Some(60_000), ..Plan::default() });
    assert_eq!(plan(&snoozed, 60_000, 5).show, [vec![1]]);
}

#[test]
fn many_questions_at_once_are_one_notice_with_the_questions_first() {
    let many: Vec<Pending> = (1..=3).map(|id| pending(id, NoticeKind::Waiting)).collect();
    assert_eq!(plan(&many, 0, 5).show, [vec![1, 2, 3]]);
    let shown = |kind, body| Shown { kind, title: "demo", body };
    let mut notices = vec![shown(NoticeKind::Finished, "f"); 12];
    notices.extend([
        shown(NoticeKind::Waiting, "a?"),
        shown(NoticeKind::Waiting, "b?"),
        shown(NoticeKind::SignIn, "s"),
    ]);
    let (title, body) = merged(&notices);
    assert_eq!(title, "2 tasks need you, 12 finished, 1 agent needs a sign-in");
    assert_eq!(body, "demo: a?\ndemo: b?\ndemo: s\ndemo: f\ndemo: f\nand 10 more");
}

#[test]
fn without_an_allowance_everything_waits_and_is_then_told_together() {
    let mixed =
        [pending(1, NoticeKind::Waiting), pending(2, NoticeKind::Failed), pending(3, NoticeKind::Finished)];
    let none = plan(&mixed, 5_000, 0);
    assert_eq!((none.show.len(), none.again_at_ms), (0, Some(17_000)));
    assert_eq!(plan(&mixed, 17_000, 1).show, [vec![1, 2, 3]]);
}

#[test]
fn a_burst_of_five_is_followed_by_one_every_twelve_seconds() {
    let mut allowance = Allowance::new(0);
    assert_eq!(allowance.at(0), 5);
    allowance.take(5);
    assert_eq!([allowance.at(11_999), allowance.at(12_000), allowance.at(24_000)], [0, 1, 2]);
    assert_eq!(allowance.at(-50_000), 2, "a clock set back gives nothing");
}

#[test]
fn in_quiet_hours_nothing_is_told_but_what_the_user_calls_urgent() {
    let all: Vec<Pending> =
        NoticeKind::ALL.into_iter().zip(1..).map(|(kind, id)| pending(id, kind)).collect();
    let quiet = Hush { until_ms: Some(60_000), urgent: &[] };
    let held = super::plan(&all, quiet, 5_000, 5);
    assert_eq!((held.show.len(), held.hold.len(), held.again_at_ms), (0, all.len(), Some(60_000)));
    let urgent = super::plan(&all, Hush { urgent: &[NoticeKind::Waiting], ..quiet }, 5_000, 5);
    assert_eq!((urgent.show, urgent.hold.len()), (vec![vec![1]], all.len() - 1));
    assert!(super::plan(&all, quiet, 60_000, 5).hold.is_empty(), "the quiet is over");
}

#[test]
fn what_came_in_quiet_hours_is_one_digest_at_their_end() {
    let held = |id, kind| Pending { held: true, ..pending(id, kind) };
    let night = [
        held(1, NoticeKind::Finished),
        held(2, NoticeKind::Waiting),
        held(3, NoticeKind::Failed),
        held(4, NoticeKind::Paused),
        pending(5, NoticeKind::Waiting),
    ];
    assert_eq!(plan(&night, 60_000, 5).show, [vec![1, 2, 3, 4], vec![5]], "what comes later is its own");
    let said: Vec<Shown<'_>> =
        night.iter().take(4).map(|one| Shown { kind: one.kind, title: "demo", body: "b" }).collect();
    let (title, _) = merged(&said);
    assert_eq!(title, "1 task needs you, 1 failed, 1 finished, 1 receiver of callbacks paused");
}

#[test]
fn a_muted_task_and_a_kind_that_is_off_are_recorded_and_not_told() {
    let muted = Pending { muted: true, ..pending(1, NoticeKind::Waiting) };
    let off = Pending { way: Way::Off, held: true, ..pending(2, NoticeKind::Failed) };
    let quiet = Hush { until_ms: Some(60_000), urgent: &[NoticeKind::Waiting] };
    let now = super::plan(&[muted, off], quiet, 0, 5);
    assert_eq!(now.suppress, [(1, Reason::Muted), (2, Reason::Off)]);
    assert_eq!((now.show.len(), now.hold.len(), now.again_at_ms), (0, 0, None));
}

#[test]
fn a_receiver_that_is_paused_is_named_and_nothing_is_said_to_be_lost() {
    let client = ClientName::new("ide").unwrap();
    let notice = of_pause(&client, "http://127.0.0.1:3000", 5);
    assert_eq!((notice.kind, notice.title.as_str()), (NoticeKind::Paused, "Callbacks for ide are paused"));
    assert!(
        notice.body.starts_with("http://127.0.0.1:3000 has failed") && notice.body.contains("wait until")
    );
    assert_ne!(notice.key, of_pause(&client, "http://127.0.0.1:3000", 6).key, "paused again later");
}

proptest! {
    #[test]
    fn nothing_is_shown_twice_or_beyond_the_allowance_and_nothing_is_forgotten(
        kinds in proptest::collection::vec((0_usize..NoticeKind::ALL.len(), any::<bool>(), 0_i64..40_000, proptest::option::of(0_i64..40_000), any::<[bool; 2]>()), 0..40),
        quiet_until_ms in proptest::option::of(0_i64..40_000),
        now_ms in 0_i64..40_000,
        allowance in 0_usize..6,
    ) {
        let notices: Vec<Pending> = kinds.iter().zip(0..).map(|((kind, in_view, created, snoozed, [muted, held]), id)| Pending {
            created_at_ms: *created, snoozed_until_ms: *snoozed, in_view: *in_view, muted: *muted, held: *held,
            ..pending(id, NoticeKind::ALL[*kind])
        }).collect();
        let hush = Hush { until_ms: quiet_until_ms, urgent: &[NoticeKind::Waiting] };
        let plan = super::plan(&notices, hush, now_ms, allowance);
        prop_assert!(plan.show.len() <= allowance);
        let mut told: Vec<i64> = plan.show.concat();
        told.extend(plan.suppress.iter().map(|(id, _)| id));
        let all = told.len();
        told.sort_unstable();
        told.dedup();
        prop_assert_eq!(told.len(), all, "each at most once");
        prop_assert!(told.len() == notices.len() || plan.again_at_ms.is_some(), "what is left is looked at again");
    }
}
