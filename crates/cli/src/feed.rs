//! Attending to one task until it is where it is wanted. What `wait` and `follow` have in common.
//!
//! Listen first, then read the current state: nothing that happens in between is missed. The feed itself
//! comes back after a restart of the engine, and says so when the engine is gone for good.

use std::time::Duration;

use taskbell_core::ids::TaskRef;
use taskbell_engine::api::views::{ChangeView, FollowingMode, ShownState, TaskDetail, TaskSummary};
use taskbell_engine::api_client::{ChangeFeed, ClientError, FeedEvent};
use tokio::time::{self, Instant};

use crate::engine::Engine;
use crate::failure::Failure;
use crate::outcome::{Outcome, Standing, Until};
use crate::session::NO_ENGINE;

/// A terminal state that a stream told is confirmed by a read, which may bring what the stream did not.
/// Whoever attends is told after the confirmation, but does not wait for an agent that gives none.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(3);
/// For what the feed of a task does not tell: that the task was deleted.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// As patient as the feed.
const AWAY_WITHIN: Duration = Duration::from_secs(15);
const TICK: Duration = Duration::from_millis(250);

/// Who wants to see what happens meanwhile.
pub trait Watcher {
    /// The task as it was when listening began.
    fn began(&mut self, task: &TaskDetail) -> Result<(), Failure>;
    fn changed(&mut self, change: &ChangeView) -> Result<(), Failure>;
    /// Four times a second, for a line that moves.
    fn ticked(&mut self);
}

/// How attending ended.
#[derive(Debug)]
pub struct Attended {
    pub task: TaskSummary,
    /// `None`: the time was up.
    pub outcome: Option<Outcome>,
}

/// Attends to a task until it settles for `until`, or for `limit` at most.
///
/// Errors: `no_engine` when the engine went and did not come back; whatever the engine refuses.
pub async fn attend(
    engine: &Engine,
    task: &TaskRef,
    until: Until,
    limit: Option<Duration>,
    watcher: &mut impl Watcher,
) -> Result<Attended, Failure> {
    let started = Instant::now();
    let deadline = limit.map(|limit| started + limit);
    let mut engine = engine.clone();
    let mut feed = listen(&mut engine, task).await?;
    let detail = read(&mut engine, task).await?;
    watcher.began(&detail)?;
    let mut now_is = detail.summary;
    let mut confirm_by = None;
    let mut ticks = time::interval(TICK);
    ticks.set_missed_tick_behavior(time::MissedTickBehavior::Skip);
    loop {
        let settled = Standing::of(&now_is).settles(until);
        if let Some(outcome) = settled {
            let confirm_by = *confirm_by.get_or_insert_with(|| Instant::now() + CONFIRMED_WITHIN);
            if outcome.is_waiting() || is_confirmed(&now_is) || Instant::now() >= confirm_by {
                return Ok(Attended { task: now_is, outcome: Some(outcome) });
            }
        } else {
            confirm_by = None;
        }
        let wake = [Some(Instant::now() + LOOK_AGAIN), deadline, confirm_by].into_iter().flatten().min();
        let event = {
            // Kept over the ticks: it remembers for how long the engine has been away.
            let next = feed.next();
            tokio::pin!(next);
            loop {
                tokio::select! {
                    event = &mut next => break Some(event?),
                    () = time::sleep_until(wake.unwrap_or_else(Instant::now)) => break None,
                    _ = ticks.tick() => watcher.ticked(),
                }
            }
        };
        match event {
            Some(FeedEvent::Change(change)) => {
                watcher.changed(&change)?;
                if !may_settle(&change) {
                    continue;
                }
            }
            Some(FeedEvent::Reset) => (),
            None if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                // Over already, and only its confirmation is still to come: that is no timeout.
                return Ok(Attended { task: now_is, outcome: settled });
            }
            None => (),
        }
        // The engine may be away just now, and the time up before it is back.
        let read = read(&mut engine, task);
        now_is = match deadline {
            None => read.await?.summary,
            Some(deadline) => match time::timeout_at(deadline, read).await {
                Ok(read) => read?.summary,
                Err(_elapsed) => return Ok(Attended { task: now_is, outcome: settled }),
            },
        };
    }
}

/// The open feed of a task. The engine answered a moment ago: where it does not now, it is being restarted.
async fn listen(engine: &mut Engine, task: &TaskRef) -> Result<ChangeFeed, Failure> {
    let give_up = Instant::now() + AWAY_WITHIN;
    loop {
        let mut feed = engine.changes(task);
        match feed.open().await {
            Ok(()) => return Ok(feed),
            Err(error) if error.may_pass() && Instant::now() < give_up => find_again(engine, &error).await,
            Err(error) => return Err(error.into()),
        }
    }
}

/// The task as the engine knows it now, also when the engine has just been restarted.
async fn read(engine: &mut Engine, task: &TaskRef) -> Result<TaskDetail, Failure> {
    let give_up = Instant::now() + AWAY_WITHIN;
    loop {
        match engine.task(task).await {
            Ok(task) => return Ok(task),
            Err(error) if error.may_pass() && Instant::now() < give_up => find_again(engine, &error).await,
            Err(error) => return Err(error.into()),
        }
    }
}

async fn find_again(engine: &mut Engine, failed: &ClientError) {
    match engine.again().await {
        // An engine that answered, and is merely busy, is not to be asked at once again.
        Ok(found) if failed.status.is_none() => *engine = found,
        Ok(_) | Err(_) => time::sleep(TICK).await,
    }
}

fn is_confirmed(task: &TaskSummary) -> bool {
    task.settled || task.following.mode == FollowingMode::Ended
}

/// Whether a change can have ended a wait. An agent may tell its progress a thousand times; none of those
/// is worth a read.
fn may_settle(change: &ChangeView) -> bool {
    match change.kind.as_str() {
        "artifact" | "message" | "gap" | "notice" | "registration" | "callback" => false,
        "status" => {
            let state = change.body.get("state").and_then(serde_json::Value::as_str);
            !matches!(
                state.and_then(ShownState::from_word),
                Some(ShownState::Working | ShownState::Submitted)
            )
        }
        _ => true,
    }
}

/// What to say of an engine that went away while somebody attended to a task.
pub fn told_as_gone(failure: Failure) -> Failure {
    match failure.code() {
        "engine_unreachable" | "engine_not_proven" => Failure::new(
            NO_ENGINE,
            "the engine went away and did not come back; start it with 'taskbell serve'",
        ),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn change(kind: &str, body: serde_json::Value) -> ChangeView {
        ChangeView {
            seq: 1,
            at: 0.into(),
            task: None,
            agent: None,
            source: "stream".into(),
            kind: kind.into(),
            body: ChangeView::body_of(&body.to_string()),
        }
    }

    #[test]
    fn only_changes_that_can_end_a_wait_are_worth_a_read() {
        for (kind, body, worth) in [
            ("status", json!({"state": "working"}), false),
            ("artifact", json!({"text": "x"}), false),
            ("callback", json!({"verdict": "confirmed"}), false),
            ("status", json!({"state": "completed"}), true),
            ("status", json!({"state": "input-required"}), true),
            ("status", json!({"state": "lost"}), true),
            ("status", json!({}), true),
            ("task", json!({"settled": true}), true),
            ("following", json!({"mode": "ended"}), true),
            ("of-a-later-version", json!({}), true),
        ] {
            assert_eq!(may_settle(&change(kind, body.clone())), worth, "{kind} {body}");
        }
    }
}
