//! Finding tasks, and what their user keeps of them: lists, views, flags and notes.

use std::time::Duration;

use taskbell_core::ids::TaskRef;
use taskbell_core::search::{Query, Screen};

use super::{Engine, PAGE, PAGE_MAX};
use crate::api::views::{Page, SavedView, TaskFilter, TaskSummary};
use crate::error::EngineError;
use crate::present;
use crate::search_index;
use crate::store::flags::{self, Flag, NOTE_MAX};
use crate::store::lists::{self, TaskCursor};
use crate::store::views::{self, ViewRow};
use crate::store::{StoreError, TaskKey, agents as agent_rows, notices, search};

/// Octets of long texts that are looked through for the hits of one page.
const HITS_READ: usize = 1 << 20;
/// Views that are kept for a screen.
const VIEWS: u32 = 100;
const VIEW_NAME_MAX: usize = 60;

/// Views that are there from the start.
const BUILT_IN: &[(Screen, &str, &str)] = &[
    (Screen::Tasks, "Open", "is:open"),
    (Screen::Tasks, "Waiting", "is:waiting"),
    (Screen::Tasks, "Failed this week", "state:failed,rejected since:7d"),
    (Screen::Tasks, "Pinned", "is:pinned"),
    (Screen::Tasks, "Snoozed", "is:snoozed"),
    (Screen::Tasks, "Archived", "is:archived"),
    (Screen::Inbox, "Not settled", "is:open"),
    (Screen::Inbox, "Did not fit", "verdict:unmatched,rejected"),
    (Screen::Inbox, "Today", "since:24h"),
];

/// What somebody typed, read; agents that it names are ones that there were.
pub(crate) fn read_query(
    connection: &rusqlite::Connection,
    text: &str,
    screen: Screen,
) -> Result<Result<Query, EngineError>, StoreError> {
    let query = match Query::parse(text, screen) {
        Ok(query) => query,
        Err(error) => return Ok(Err(EngineError::new("bad_query", error.to_string()))),
    };
    for name in query.agents.any.iter().chain(&query.agents.none) {
        if !agent_rows::was_there(connection, name)? {
            return Ok(Err(EngineError::new(
                "bad_query",
                format!("agent: {name} is none of yours; `taskbell agent list` shows them"),
            )));
        }
    }
    Ok(Ok(query))
}

impl Engine {
    pub async fn tasks(&self, filter: TaskFilter) -> Result<Page<TaskSummary>, EngineError> {
        let limit = filter.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
        let after = filter.cursor.as_deref().map(parse_cursor).transpose()?;
        let now_ms = self.parts().now_ms();
        let read = self.store().read(move |connection| {
            let text = filter.query.as_deref().unwrap_or_default();
            let query = match read_query(connection, text, Screen::Tasks)? {
                Ok(query) => query,
                Err(error) => return Ok(Err(error)),
            };
            let wanted = lists::TaskFilter {
                open: filter.open,
                needs_you: filter.needs_you,
                agent: filter.agent,
                states: filter.states.iter().map(|state| state.word().to_owned()).collect(),
                since_ms: None,
                archived: false,
                query,
                now_ms,
            };
            let found = lists::list(connection, &wanted, after, limit)?;
            let next = match found.last() {
                Some(last) if found.len() == limit as usize => {
                    Some(format!("{}.{}", last.updated_at_ms, last.key.0))
                }
                Some(_) | None => None,
            };
            let mut items = Vec::with_capacity(found.len());
            let mut budget = search::Budget(HITS_READ);
            for row in &found {
                let mut item = present::summary(row, now_ms);
                if !wanted.query.words.is_empty() {
                    let hit = search::hit(connection, row.key, &wanted.query.words, &mut budget)?;
                    item.hit = hit.map(present::hit);
                }
                items.push(item);
            }
            Ok(Ok(Page { items, next }))
        });
        read.await?
    }

    /// Tasks that are not in the full text index yet, after an update of the program.
    pub async fn tasks_to_index(&self) -> Result<u64, EngineError> {
        Ok(self.store().read(search::left).await?)
    }

    pub async fn pin(&self, task: &TaskRef) -> Result<TaskSummary, EngineError> {
        self.set_flag(task, Flag::Pinned, true).await
    }

    pub async fn unpin(&self, task: &TaskRef) -> Result<TaskSummary, EngineError> {
        self.set_flag(task, Flag::Pinned, false).await
    }

    pub async fn archive(&self, task: &TaskRef) -> Result<TaskSummary, EngineError> {
        self.set_flag(task, Flag::Archived, true).await
    }

    pub async fn unarchive(&self, task: &TaskRef) -> Result<TaskSummary, EngineError> {
        self.set_flag(task, Flag::Archived, false).await
    }

    /// No notices of it from now on.
    pub async fn mute(&self, task: &TaskRef) -> Result<TaskSummary, EngineError> {
        self.set_flag(task, Flag::Muted, true).await
    }

    pub async fn unmute(&self, task: &TaskRef) -> Result<TaskSummary, EngineError> {
        self.set_flag(task, Flag::Muted, false).await
    }

    async fn set_flag(&self, task: &TaskRef, flag: Flag, is_on: bool) -> Result<TaskSummary, EngineError> {
        let key = self.row(task).await?.key;
        let at_ms = is_on.then(|| self.parts().now_ms());
        self.store().write(move |context| flags::set(context, key, flag, at_ms)).await?;
        self.summary_of(key).await
    }

    /// Writes what the user notes about a task; it is found by its words when this returns.
    pub async fn set_note(&self, task: &TaskRef, text: &str) -> Result<TaskSummary, EngineError> {
        let length = text.chars().count();
        if length > NOTE_MAX {
            return Err(EngineError::new(
                "note_too_long",
                format!("the note has {length} characters; at most {NOTE_MAX} are kept"),
            ));
        }
        let key = self.row(task).await?.key;
        let text = text.trim_end().to_owned();
        self.store().write(move |context| flags::set_note(context, key, &text)).await?;
        search_index::run_once(self.store()).await?;
        self.summary_of(key).await
    }

    /// Puts the question of a waiting task off; it is said again after so long.
    pub async fn snooze(&self, task: &TaskRef, pause: Duration) -> Result<TaskSummary, EngineError> {
        let row = self.row(task).await?;
        if !self.notifier().snooze(&row.task_ref(), pause).await? {
            return Err(EngineError::new(
                "not_waiting",
                format!("task {} does not wait for you", row.task_ref()),
            ));
        }
        self.summary_of(row.key).await
    }

    /// Puts it off no longer.
    pub async fn wake(&self, task: &TaskRef) -> Result<TaskSummary, EngineError> {
        let key = self.row(task).await?.key;
        self.store().write(move |context| notices::wake(context, key)).await?;
        self.summary_of(key).await
    }

    /// The built-in views, then those that were saved; of one screen, or of all.
    pub async fn views(&self, screen: Option<Screen>) -> Result<Vec<SavedView>, EngineError> {
        let saved = self.store().read(views::list).await?;
        let built_in = BUILT_IN.iter().map(|(screen, name, query)| (*screen, *name, *query, true));
        let saved = saved.iter().map(|row| (row.screen, row.name.as_str(), row.query.as_str(), false));
        let all = built_in.chain(saved).filter(|(of, ..)| screen.is_none_or(|screen| screen == *of));
        Ok(all
            .map(|(screen, name, query, built_in)| SavedView {
                screen: screen.word().to_owned(),
                name: name.to_owned(),
                query: query.to_owned(),
                built_in,
            })
            .collect())
    }

    /// Keeps a query under a name, whatever had that name. A query that cannot be read is refused.
    pub async fn save_view(&self, screen: Screen, name: &str, query: &str) -> Result<SavedView, EngineError> {
        let name = view_name(screen, name)?;
        let text = query.trim().to_owned();
        let checked = self.store().read({
            let text = text.clone();
            move |connection| read_query(connection, &text, screen)
        });
        checked.await??;
        let row = ViewRow { screen, name: name.clone(), query: text.clone() };
        if !self.store().write(move |context| views::save(context, &row, VIEWS)).await? {
            return Err(EngineError::new(
                "too_many_views",
                format!("there are {VIEWS} views of this list; delete one first"),
            ));
        }
        Ok(SavedView { screen: screen.word().to_owned(), name, query: text, built_in: false })
    }

    pub async fn delete_view(&self, screen: Screen, name: &str) -> Result<(), EngineError> {
        let name = view_name(screen, name)?;
        let wanted = name.clone();
        if !self.store().write(move |context| views::delete(context, screen, &wanted)).await? {
            return Err(EngineError::new(
                "unknown_view",
                format!("no view of the {} is named {name}; see `taskbell view list`", screen.word()),
            ));
        }
        Ok(())
    }
}

/// A name as it is kept: one clean line, and none of ours.
fn view_name(screen: Screen, name: &str) -> Result<String, EngineError> {
    let clean = taskbell_core::text::one_line(name, VIEW_NAME_MAX + 1);
    if clean.is_empty() || clean.chars().count() > VIEW_NAME_MAX {
        return Err(EngineError::new(
            "usage",
            format!("the name of a view has 1 to {VIEW_NAME_MAX} characters"),
        ));
    }
    let is_ours = |(of, known, _): &(Screen, &str, &str)| *of == screen && known.eq_ignore_ascii_case(&clean);
    if BUILT_IN.iter().any(is_ours) {
        return Err(EngineError::new(
            "view_built_in",
            format!("the view {clean} is built in; choose another name"),
        ));
    }
    Ok(clean)
}

fn parse_cursor(text: &str) -> Result<TaskCursor, EngineError> {
    let parsed = text.split_once('.').and_then(|(updated, key)| {
        Some(TaskCursor { updated_at_ms: updated.parse().ok()?, key: TaskKey(key.parse().ok()?) })
    });
    parsed.ok_or_else(|| EngineError::new("usage", "the cursor is none of ours; start again without one"))
}
