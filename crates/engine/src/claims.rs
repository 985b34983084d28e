//! What came to the inbox, as people look at it: lists, one callback beside the task as read, the same held against
//! the task as it is now, and a test.

mod self_test;
mod show;

use taskbell_core::dialect::read;
use taskbell_core::ids::{AgentName, TaskRef};
use taskbell_core::search::Screen;
use taskbell_core::task::Task;
use taskbell_core::verdict::{self, Fact, Judgement, Reason, Verdict};

use crate::api::views::{
    CallbackDetail, CallbackVerdict, CallbackView, InboxTestView, Page, ProofsView, ReplayView, ShownState,
    UtcTime,
};
use crate::engine::read_query;
use crate::error::EngineError;
use crate::parts::Parts;
use crate::store::inbox::{self, ItemCursor, ItemFilter, ItemId, ItemRow};
use crate::store::{CallbackKey, callbacks, tasks, verdicts};

const PAGE: u32 = 100;
const PAGE_MAX: u32 = 1_000;

/// Which rows to list. All that is given must hold; the latest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimFilter {
    pub agent: Option<AgentName>,
    pub task: Option<TaskRef>,
    /// Any of these; empty: any at all.
    pub verdicts: Vec<CallbackVerdict>,
    /// What somebody typed; its grammar is that of `taskbell_core::search`.
    pub query: Option<String>,
    /// Rows a page; `None`: the engine's choice.
    pub limit: Option<u32>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

/// The inbox's rows and what can be asked of them.
#[derive(Clone)]
pub struct Claims {
    parts: Parts,
    http: reqwest::Client,
}

impl Claims {
    /// `http` follows no redirect and uses no proxy.
    pub(crate) fn new(parts: Parts, http: reqwest::Client) -> Self {
        Self { parts, http }
    }

    pub async fn list(&self, filter: ClaimFilter) -> Result<Page<CallbackView>, EngineError> {
        let limit = filter.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
        let after = filter.cursor.as_deref().map(parse_cursor).transpose()?;
        let task = match &filter.task {
            None => None,
            Some(task) => {
                let wanted = task.clone();
                let found =
                    self.parts.store().read(move |connection| tasks::find(connection, &wanted)).await?;
                Some(found.ok_or_else(|| EngineError::unknown_task(task))?.key)
            }
        };
        if let Some(agent) = &filter.agent
            && self.parts.agents().by_name(agent).is_none()
        {
            return Err(EngineError::unknown_agent(agent));
        }
        let verdicts = filter.verdicts.iter().map(|verdict| Verdict::from(*verdict)).collect();
        let now_ms = self.parts.now_ms();
        let read = self.parts.store().read(move |connection| {
            let text = filter.query.as_deref().unwrap_or_default();
            let query = match read_query(connection, text, Screen::Inbox)? {
                Ok(query) => query,
                Err(error) => return Ok(Err(error)),
            };
            let wanted = ItemFilter { agent: filter.agent, task, verdicts, query, now_ms };
            inbox::list(connection, &wanted, after, limit).map(Ok)
        });
        let rows = read.await??;
        let next = (rows.len() == limit as usize).then(|| next_cursor(&rows, after)).flatten();
        Ok(Page { items: rows.iter().map(item).collect(), next })
    }

    pub async fn show(&self, id: &str) -> Result<CallbackDetail, EngineError> {
        let id = parse_id(id)?;
        let found = self.parts.store().read({
            let id = id.clone();
            move |connection| show::load(connection, &id)
        });
        let found = found.await?.ok_or_else(|| unknown(&id))?;
        // Two long documents compared take a while.
        tokio::task::spawn_blocking(move || show::detail(found))
            .await
            .map_err(|_| EngineError::new("internal", format!("failed to show callback {id}")))
    }

    /// Reads the task and judges the claim by that answer. Nothing of it is stored.
    pub async fn replay(&self, id: &str) -> Result<ReplayView, EngineError> {
        let id = parse_id(id)?;
        let ItemId::Callback(number) = id else { return Err(not_kept(&id)) };
        let key = CallbackKey(number);
        let found = self
            .parts
            .store()
            .read(move |connection| {
                let Some(item) = inbox::get(connection, &ItemId::Callback(number))? else { return Ok(None) };
                let row = callbacks::get(connection, key)?;
                let task = row.task.map(|task| tasks::get(connection, task)).transpose()?;
                Ok(Some((item, row, task)))
            })
            .await?;
        let (item, row, task) = found.ok_or_else(|| unknown(&id))?;
        let task = task.ok_or_else(|| {
            EngineError::new(
                "no_task",
                format!("callback {id} belongs to no task; `taskbell inbox show {id}` shows it"),
            )
        })?;
        let claim = verdicts::read_body(row.body.as_deref(), row.shape).ok_or_else(|| not_kept(&id))?;
        let mut view = ReplayView {
            id: id.to_string(),
            task: task.task_ref(),
            claimed: item.claimed.map(ShownState::from),
            confirmed: None,
            before: item.verdict.into(),
            verdict: CallbackVerdict::Unreachable,
            reason: Reason::AgentNotRead.word().to_owned(),
            text: Reason::AgentNotRead.sentence().to_owned(),
            differences: Vec::new(),
            error: None,
        };
        let Some(agent) = self.parts.agents().get(task.agent_key) else {
            view.error = Some(format!("agent {} was removed", task.agent));
            return Ok(view);
        };
        let answer = {
            let _place = agent.reads.acquire().await;
            agent.client().get_task(&task.task_id).await
        };
        crate::reads::note_link(&agent, answer.as_ref().err());
        match answer {
            Ok(now) => {
                let judged = verdict::judge(&claim, Fact { task: &now, was_in: &[] }, false);
                put_judgement(&mut view, judged);
                view.confirmed = Some(now.status.state.into());
                view.differences = show::difference_views(&claim, &now);
            }
            Err(error)
                if crate::reads::failure_of(&error) == taskbell_core::follow::ReadFailure::NotFound =>
            {
                put_judgement(
                    &mut view,
                    Judgement { verdict: Verdict::Unmatched, reason: Reason::NoSuchTask },
                );
            }
            Err(error) => view.error = Some(error.to_string()),
        }
        Ok(view)
    }

    /// Posts a callback of our own in each dialect to our own inbox.
    pub async fn self_test(&self) -> Result<Vec<InboxTestView>, EngineError> {
        self_test::run(&self.parts, &self.http).await
    }
}

fn put_judgement(view: &mut ReplayView, judged: Judgement) {
    view.verdict = judged.verdict.into();
    view.reason = judged.reason.word().to_owned();
    view.text = judged.reason.sentence().to_owned();
}

/// A row as the API shows it.
pub fn item(row: &ItemRow) -> CallbackView {
    let said = match (&row.refusal, row.reason) {
        (_, Some(reason)) => reason.sentence().to_owned(),
        (Some((word, _)), None) => format!("refused: {}", word.replace('_', " ")),
        (None, None) => Reason::NotReadYet.sentence().to_owned(),
    };
    let text = match &row.refusal {
        Some((_, detail)) if !detail.is_empty() => format!("{said} ({detail})"),
        Some(_) | None => said,
    };
    CallbackView {
        id: row.id.to_string(),
        at: UtcTime::from_ms(row.at_ms),
        last_at: UtcTime::from_ms(row.last_at_ms),
        count: row.count,
        task: row.task.clone(),
        agent: row.agent.clone(),
        shape: row.shape.map(|shape| shape.word().to_owned()),
        claimed: row.claimed.map(ShownState::from),
        claimed_raw: row.claimed_raw.clone(),
        confirmed: row.confirmed.map(ShownState::from),
        verdict: row.verdict.into(),
        verdict_at: row.verdict_at_ms.map(UtcTime::from_ms),
        reason: match (&row.refusal, row.reason) {
            (Some((reason, _)), None) => Some(reason.clone()),
            (_, reason) => reason.map(|reason| reason.word().to_owned()),
        },
        text,
        proofs: row.token_proof.zip(row.credential_proof).map(|(token, credential)| ProofsView {
            token: token.word().to_owned(),
            authorization: credential.word().to_owned(),
        }),
        size: row.size,
        out_of_order: row.out_of_order,
        registration: row.path.to_string(),
    }
}

fn parse_id(text: &str) -> Result<ItemId, EngineError> {
    text.parse().map_err(|error: inbox::ItemIdError| EngineError::new("unknown_callback", error.to_string()))
}

fn unknown(id: &ItemId) -> EngineError {
    EngineError::new(
        "unknown_callback",
        format!("no row of the inbox has the id {id}; see `taskbell inbox list`"),
    )
}

fn not_kept(id: &ItemId) -> EngineError {
    EngineError::new(
        "not_kept",
        format!("the body of {id} is not kept, so it cannot be held against its task"),
    )
}

/// `TIME.SKIP`.
fn parse_cursor(text: &str) -> Result<ItemCursor, EngineError> {
    let parsed = text
        .split_once('.')
        .and_then(|(at, skip)| Some(ItemCursor { at_ms: at.parse().ok()?, skip: skip.parse().ok()? }));
    parsed.ok_or_else(|| EngineError::new("usage", "the cursor is none of ours; start again without one"))
}

fn next_cursor(rows: &[ItemRow], after: Option<ItemCursor>) -> Option<String> {
    let last = rows.last()?.at_ms;
    let of_that_time = rows.iter().rev().take_while(|row| row.at_ms == last).count();
    let before = after.filter(|cursor| cursor.at_ms == last).map_or(0, |cursor| cursor.skip);
    let skip = before.saturating_add(u32::try_from(of_that_time).unwrap_or(u32::MAX));
    Some(format!("{last}.{skip}"))
}

/// A kept document as a task.
fn task_of(document: &str) -> Option<Task> {
    read::task(serde_json::from_str(document).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_of_somebody_else_is_refused() {
        for text in ["", "1", "a.b", "1.x", "1.-2"] {
            assert!(parse_cursor(text).is_err(), "{text}");
        }
        assert_eq!(parse_cursor("17.2").unwrap(), ItemCursor { at_ms: 17, skip: 2 });
    }
}
