//! Rows as the API shows them.

use serde_json::{Map, Value};
use taskbell_core::dialect::read;
use taskbell_core::dialect::v1::{self, Extras};
use taskbell_core::ids::{AgentName, ArtifactId, TaskRef};
use taskbell_core::search::{Snippet, SnippetPart};
use taskbell_core::task::Task;
use taskbell_core::text::one_line;

use crate::agents::Agent;
use crate::api::views::{
    AgentView, ArtifactView, CallbackView, CapabilitiesView, ChangeView, ConfirmedView, CredentialView,
    FollowingMode, FollowingView, HitPart, LinkView, NoticeView, OddityView, ReachView, ReasonView,
    ReconcileItem, ReconcileVerdict, RegistrationView, ReportCardView, SearchHit, ShownState, TaskDetail,
    TaskSummary, UtcTime,
};
use crate::link::LinkState;
use crate::reachability::{ProbeState, ReachState, TunnelState};
use crate::reconciler::{self, Reconciled};
use crate::store::agents::OddityRow;
use crate::store::changes::ChangeRow;
use crate::store::notices::NoticeRow;
use crate::store::registration_work::WorkTimes;
use crate::store::registrations::RegistrationRow;
use crate::store::report_card::ReportCard;
use crate::store::search::Place;
use crate::store::tasks::{Channel, FollowMode, TaskRow};

const QUESTION: usize = 200;

fn shown(word: &str) -> ShownState {
    ShownState::from_word(word).unwrap_or(ShownState::Unknown)
}

pub fn summary(row: &TaskRow, now_ms: i64) -> TaskSummary {
    let words = last_words(row);
    TaskSummary {
        task: row.task_ref(),
        agent: row.agent.clone(),
        id: row.task_id.clone(),
        context_id: row.context_id.as_ref().map(ToString::to_string),
        title: row.title.clone(),
        state: shown(row.state_word()),
        raw_state: row.raw_state.clone(),
        question: words.clone().filter(|_| row.state.is_interrupted()),
        words,
        following: FollowingView {
            mode: match row.mode {
                FollowMode::Stream => FollowingMode::Stream,
                FollowMode::PushAndPoll => FollowingMode::PushPoll,
                FollowMode::Poll => FollowingMode::Poll,
                FollowMode::Reconnecting => FollowingMode::Reconnecting,
                FollowMode::Paused => FollowingMode::Paused,
                FollowMode::Ended => FollowingMode::Ended,
            },
            since: UtcTime::from_ms(row.mode_since_ms),
            attempt: row.attempt,
            trouble: row.trouble.clone(),
        },
        last_confirmed: row.confirmed_at_ms.map(|at_ms| ConfirmedView {
            at: UtcTime::from_ms(at_ms),
            by: row.confirmed_by.map_or("poll", Channel::word).to_owned(),
        }),
        needs_you: row.needs_you(now_ms),
        needs_sign_in: row.needs_sign_in(),
        settled: row.settled,
        created_at: UtcTime::from_ms(row.created_at_ms),
        updated_at: UtcTime::from_ms(row.updated_at_ms),
        terminal_at: row.terminal_at_ms.map(UtcTime::from_ms),
        waiting_since: row.waiting_since_ms.map(UtcTime::from_ms),
        replied_at: row.replied_at_ms.map(UtcTime::from_ms),
        pinned: row.pinned_at_ms.is_some(),
        archived: row.archived_at_ms.is_some(),
        muted: row.muted_at_ms.is_some(),
        snoozed_until: row.snoozed_until(now_ms).map(UtcTime::from_ms),
        has_note: row.has_note,
        hit: None,
        source: row.source.word().to_owned(),
    }
}

/// The first line of the message that came with the state: the question, while the task waits.
fn last_words(row: &TaskRow) -> Option<String> {
    let status: Value = serde_json::from_str(&row.status_json).ok()?;
    let text = read::status(status).ok()?.message?.text();
    let line = one_line(text.lines().next().unwrap_or_default(), QUESTION);
    (!line.is_empty()).then_some(line)
}

/// Where the words of a query stand in a task.
pub fn hit((place, found): (Place, Snippet)) -> SearchHit {
    let part = |part: SnippetPart| HitPart { text: part.text, hit: part.hit };
    SearchHit { place: place.word().to_owned(), parts: found.parts.into_iter().map(part).collect() }
}

pub fn detail(
    row: &TaskRow,
    now_ms: i64,
    task: &Task,
    incomplete: &[ArtifactId],
    timeline: Vec<ChangeView>,
    callbacks: Vec<CallbackView>,
) -> TaskDetail {
    TaskDetail {
        summary: summary(row, now_ms),
        note: None,
        artifacts: task
            .artifacts
            .iter()
            .map(|artifact| ArtifactView {
                artifact_id: artifact.artifact_id.to_string(),
                name: artifact.name.clone(),
                description: artifact.description.clone(),
                text: artifact.text(),
                parts: artifact.parts.iter().map(|part| v1::part(part, Extras::Keep)).collect(),
                incomplete: incomplete.contains(&artifact.artifact_id),
            })
            .collect(),
        history: task.history.iter().map(|message| v1::message(message, Extras::Keep)).collect(),
        status: v1::status(&task.status, Extras::Keep),
        timeline,
        callbacks,
        registrations: Vec::new(),
        metadata: task.metadata.clone(),
    }
}

pub fn notice(row: &NoticeRow) -> NoticeView {
    NoticeView {
        id: row.id.unsigned_abs(),
        task: row.task.clone(),
        kind: row.kind.word().to_owned(),
        title: row.title.clone(),
        body: row.body.clone(),
        at: UtcTime::from_ms(row.created_at_ms),
        shown_at: row.shown_at_ms.map(UtcTime::from_ms),
        outcome: row.outcome.map(|outcome| outcome.word().to_owned()),
        detail: row.detail.clone(),
        snoozed_until: row.snoozed_until_ms.map(UtcTime::from_ms),
    }
}

/// A change, under the names that people know.
pub fn change(row: &ChangeRow, task: Option<TaskRef>, agent: Option<AgentName>) -> ChangeView {
    let mut body = ChangeView::body_of(&row.body_json);
    // Times are kept in milliseconds and shown as times.
    for (kept, shown) in [("fromMs", "from"), ("toMs", "to"), ("snoozedUntilMs", "snoozedUntil")] {
        if let Some(at_ms) = body.remove(kept).and_then(|value| value.as_i64()) {
            body.insert(shown.to_owned(), Value::String(UtcTime::from_ms(at_ms).to_string()));
        }
    }
    ChangeView {
        seq: row.seq,
        at: UtcTime::from_ms(row.at_ms),
        agent: agent.or_else(|| task.as_ref().map(|task| task.agent.clone())),
        task,
        source: row.source.clone(),
        kind: row.kind.clone(),
        body,
    }
}

pub fn agent(agent: &Agent, oddities: Vec<OddityRow>, open_tasks: u64) -> AgentView {
    let now = agent.now();
    let row = &now.row;
    let card: Option<Value> = row.card_json.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let capability = |name: &str| {
        card.as_ref().and_then(|card| card.get("capabilities")?.get(name)?.as_bool()).unwrap_or(false)
    };
    let quirks = match serde_json::to_value(now.client.quirks()) {
        Ok(Value::Object(map)) => map,
        Ok(_) | Err(_) => Map::new(),
    };
    AgentView {
        name: row.name.clone(),
        url: row.registered_url.clone(),
        card_url: row.card_url.clone(),
        interface_url: row.interface_url.clone(),
        binding: row.binding.map(|binding| binding.word().to_owned()),
        dialect: row.dialect,
        pinned_dialect: row.pinned_dialect,
        declared_url: foreign_url(row, card.as_ref()),
        tenant: row.tenant.clone(),
        credential: row.credential_kind.map(|kind| CredentialView {
            kind,
            changed_at: row.credential_changed_at_ms.map(UtcTime::from_ms),
        }),
        capabilities: CapabilitiesView {
            streaming: capability("streaming"),
            push_notifications: capability("pushNotifications"),
        },
        quirks,
        oddities: oddities.into_iter().map(oddity).collect(),
        link: match agent.link.state() {
            LinkState::Unknown => LinkView::Unknown,
            LinkState::Up => LinkView::Up,
            LinkState::Down => LinkView::Down,
        },
        open_tasks,
    }
}

fn oddity(row: OddityRow) -> OddityView {
    OddityView {
        kind: row.kind,
        detail: one_line(&row.detail, QUESTION),
        count: row.count.unsigned_abs(),
        last_at: UtcTime::from_ms(row.last_at_ms),
    }
}

pub fn report_card(agent: AgentName, card: ReportCard, oddities: Vec<OddityRow>) -> ReportCardView {
    ReportCardView {
        agent,
        expected: card.expected,
        arrived: card.arrived,
        late: card.late,
        late_median_ms: card.late_median_ms,
        missed: card.missed,
        received: card.received,
        confirmed: card.confirmed,
        duplicate: card.duplicate,
        out_of_order: card.out_of_order,
        unmatched: card.unmatched,
        wrong_proof: card.wrong_proof,
        refused: card.refused,
        echoed_secrets: card.echoed_secrets,
        oddities: oddities.into_iter().map(oddity).collect(),
    }
}

/// What the card names as its address, where that is another origin than the registered one.
fn foreign_url(row: &crate::store::agents::AgentRow, card: Option<&Value>) -> Option<String> {
    let card = taskbell_core::agent::AgentCard::from_value(card?.clone()).ok()?;
    let base = url::Url::parse(&row.registered_url).ok()?;
    taskbell_core::agent::candidates(&card, &taskbell_core::agent::base_of(&base))
        .into_iter()
        .map(|interface| interface.url)
        .find(|url| url.origin() != base.origin())
        .map(|url| url.to_string())
}

pub fn reconciled(found: Reconciled) -> ReconcileItem {
    ReconcileItem {
        task: found.task,
        before: shown(found.before),
        after: shown(found.after),
        verdict: match found.verdict {
            reconciler::ReconcileVerdict::Unchanged => ReconcileVerdict::Unchanged,
            reconciler::ReconcileVerdict::Changed => ReconcileVerdict::Changed,
            reconciler::ReconcileVerdict::Lost => ReconcileVerdict::Lost,
            reconciler::ReconcileVerdict::WrongIdentity => ReconcileVerdict::WrongIdentity,
            reconciler::ReconcileVerdict::Unreachable => ReconcileVerdict::Unreachable,
        },
        missed: found.missed.is_some(),
        found_by: found.found_by.map(|channel| channel.word().to_owned()),
        missed_way: found.missed.map(|(way, _)| way.word().to_owned()),
        missed_why: found.missed.map(|(_, why)| why.sentence().to_owned()),
        error: found.error,
    }
}

pub fn registration(row: &RegistrationRow, task: &TaskRow, times: WorkTimes) -> RegistrationView {
    RegistrationView {
        id: row.key.0.unsigned_abs(),
        task: task.task_ref(),
        agent: task.agent.clone(),
        state: row.state.word().to_owned(),
        url: row.url.replace(row.path.as_str(), &row.path.to_string()),
        config_id: row.config_id.clone(),
        remote_id: row.remote_id.as_deref().map(|id| one_line(id, QUESTION)),
        scheme: row.proof.credential.map(|(scheme, _)| scheme.word().to_owned()),
        policy: row.proof.policy.word().to_owned(),
        key_version: row.key_version.unsigned_abs(),
        old_proof_until: row
            .proof
            .previous
            .as_ref()
            .filter(|previous| previous.token.is_some())
            .map(|previous| UtcTime::from_ms(previous.until_ms)),
        echoed: row.echoed,
        failure: row.failure_code.as_ref().map(|code| ReasonView {
            code: code.clone(),
            detail: row.failure_detail.clone().unwrap_or_default(),
        }),
        next_try_at: times.next_try_at_ms.map(UtcTime::from_ms),
        created_at: UtcTime::from_ms(row.created_at_ms),
        registered_at: row.registered_at_ms.map(UtcTime::from_ms),
        ended_at: row.ended_at_ms.map(UtcTime::from_ms),
        answers_until: row.answers_until_ms.map(UtcTime::from_ms),
        removed_at: row.removed_at_ms.map(UtcTime::from_ms),
        withdrawn_at: times.withdrawn_at_ms.map(UtcTime::from_ms),
        last_callback_at: row.last_callback_at_ms.map(UtcTime::from_ms),
    }
}

pub fn reach(state: &ReachState) -> ReachView {
    let (tunnel, tunnel_detail) = match &state.tunnel {
        TunnelState::Off => ("off", None),
        TunnelState::Starting => ("starting", None),
        TunnelState::Up => ("up", None),
        TunnelState::Down { detail } => ("down", Some(detail.clone())),
    };
    let (test, test_at, test_failure) = match &state.probe {
        ProbeState::Never => ("never", None, None),
        ProbeState::Reached { at_ms } => ("reached", Some(*at_ms), None),
        ProbeState::Failing { since_ms, code, detail } => (
            "failing",
            Some(*since_ms),
            Some(ReasonView { code: (*code).to_owned(), detail: detail.clone() }),
        ),
    };
    ReachView {
        inbox: state.inbox.map(|address| format!("http://{address}")),
        public_url: state.public.as_ref().map(|public| public.url.to_string()),
        source: state.public.as_ref().map(|public| public.source.word().to_owned()),
        tunnel: tunnel.to_owned(),
        tunnel_detail,
        test: test.to_owned(),
        test_at: test_at.map(UtcTime::from_ms),
        test_failure,
    }
}
