//! Since when each part is as it is, and how it was before.
//!
//! Known in memory first: the history is stored once it can be, so a full disk hides no time.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Finding;
use crate::api::views::{HealthItem, HealthState, UtcTime};
use crate::engine::Engine;
use crate::store::health_history::{self, HistoryRow};
use crate::store::{Store, StoreError};

/// How often everything is looked at without being asked.
const PERIOD: Duration = Duration::from_secs(5);
/// Changes that wait to be stored. The oldest go.
const WAITING_MAX: usize = 500;

/// What is known of the parts.
#[derive(Debug, Default)]
pub struct HealthWatch(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    parts: HashMap<String, (HealthState, i64)>,
    waiting: Vec<HistoryRow>,
    worst: Option<HealthState>,
    /// The worst state is another one and that was not announced yet.
    worst_is_new: bool,
}

impl HealthWatch {
    /// Goes on from what was stored.
    pub fn new(latest: Vec<HistoryRow>) -> Self {
        let worst = latest.iter().map(|row| row.state).max();
        let parts = latest.into_iter().map(|row| (row.component, (row.state, row.at_ms))).collect();
        Self(Mutex::new(Known { parts, worst, ..Known::default() }))
    }

    /// Takes note of how everything is and says since when.
    pub fn judge(&self, findings: Vec<Finding>, now_ms: i64) -> Vec<HealthItem> {
        let mut known = self.known();
        let mut present = HashSet::new();
        let mut items = Vec::new();
        for finding in findings {
            present.insert(finding.component.clone());
            let since_ms = match known.parts.get(&finding.component) {
                Some((state, since_ms)) if *state == finding.state => *since_ms,
                Some(_) | None => {
                    let since_ms = finding.since_ms.unwrap_or(now_ms).min(now_ms);
                    known.note(finding.component.clone(), finding.state, since_ms, finding.detail.clone());
                    since_ms
                }
            };
            items.push(HealthItem {
                component: finding.component,
                state: finding.state,
                since: UtcTime::from_ms(since_ms),
                detail: finding.detail,
                fix: finding.fix,
                action: finding.action,
            });
        }
        // What is not listed any more is over, or gone with its agent or receiver.
        let gone: Vec<String> = known.parts.keys().filter(|name| !present.contains(*name)).cloned().collect();
        for name in gone {
            if known.parts.remove(&name).is_some_and(|(state, _)| state != HealthState::Ok) {
                known.wait(HistoryRow {
                    id: 0,
                    component: name,
                    state: HealthState::Ok,
                    at_ms: now_ms,
                    detail: "that is over".to_owned(),
                });
            }
        }
        let worst = items.iter().map(|item| item.state).max();
        if worst != known.worst {
            // The first look of all finds how it is, and not that anything changed.
            known.worst_is_new |= known.worst.is_some();
            known.worst = worst;
        }
        items
    }

    /// Stores what has changed. What could not be stored waits for the next time.
    pub async fn store(&self, store: &Store) -> Result<(), StoreError> {
        let (rows, worst) = {
            let mut known = self.known();
            let worst = if std::mem::take(&mut known.worst_is_new) { known.worst } else { None };
            (std::mem::take(&mut known.waiting), worst)
        };
        if rows.is_empty() && worst.is_none() {
            return Ok(());
        }
        let written = rows.clone();
        let stored = store.write(move |context| health_history::record(context, &written, worst)).await;
        // Late is stored or not: a row twice is less than one missing.
        if stored.is_err() {
            let mut known = self.known();
            let newer = std::mem::replace(&mut known.waiting, rows);
            newer.into_iter().for_each(|row| known.wait(row));
            known.worst_is_new |= worst.is_some();
        }
        stored
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn note(&mut self, component: String, state: HealthState, at_ms: i64, detail: String) {
        self.parts.insert(component.clone(), (state, at_ms));
        self.wait(HistoryRow { id: 0, component, state, at_ms, detail });
    }

    fn wait(&mut self, row: HistoryRow) {
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.remove(0);
        }
        self.waiting.push(row);
    }
}

/// Looks at everything now and then, for ever.
pub async fn run(engine: Engine) {
    loop {
        if let Err(error) = engine.look_at_health().await {
            // Of a store that fails its own item tells.
            tracing::debug!(%error, "the health was not stored");
        }
        tokio::time::sleep(PERIOD).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(component: &str, state: HealthState) -> Finding {
        Finding::new(component, state, "as it is")
    }

    #[test]
    fn a_part_is_as_it_is_since_it_changed_and_not_since_the_engine_runs() {
        let stored = HistoryRow {
            id: 1,
            component: "keyring".into(),
            state: HealthState::Bad,
            at_ms: 1_000,
            detail: "locked".into(),
        };
        let watch = HealthWatch::new(vec![stored]);
        let at = |items: &[HealthItem]| items.iter().map(|item| item.since.ms()).collect::<Vec<_>>();
        assert_eq!(at(&watch.judge(vec![found("keyring", HealthState::Bad)], 9_000)), [1_000]);
        assert!(watch.known().waiting.is_empty(), "nothing changed");
        assert_eq!(at(&watch.judge(vec![found("keyring", HealthState::Ok)], 10_000)), [10_000]);
        assert_eq!(at(&watch.judge(vec![found("keyring", HealthState::Ok)], 20_000)), [10_000]);
        assert_eq!(watch.known().waiting.len(), 1);
    }

    #[test]
    fn the_worst_state_is_announced_when_it_is_another_one_only() {
        let watch = HealthWatch::default();
        watch.judge(vec![found("a", HealthState::Ok)], 0);
        assert!(!watch.known().worst_is_new, "the first look is no change");
        watch.judge(vec![found("a", HealthState::Ok), found("b", HealthState::Bad)], 1);
        assert!(std::mem::take(&mut watch.known().worst_is_new));
        watch.judge(vec![found("a", HealthState::Bad), found("b", HealthState::Bad)], 2);
        assert!(!watch.known().worst_is_new, "it was bad before");
        watch.judge(vec![found("a", HealthState::Ok)], 3);
        assert!(watch.known().worst_is_new);
        let last = watch.known().waiting.last().cloned().unwrap();
        assert_eq!((last.component.as_str(), last.state), ("b", HealthState::Ok), "what is gone is over");
    }

    #[test]
    fn what_waits_for_the_store_is_bounded() {
        let watch = HealthWatch::default();
        for n in 0..2_000 {
            let state = if n % 2 == 0 { HealthState::Ok } else { HealthState::Bad };
            watch.judge(vec![found("a", state)], n);
        }
        assert_eq!(watch.known().waiting.len(), WAITING_MAX);
    }
}
