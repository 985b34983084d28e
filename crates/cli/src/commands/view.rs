//! `view`: queries under a name.

use clap::{Args, Subcommand};
use serde_json::json;
use taskbell_core::search::Screen;
use taskbell_core::text;
use taskbell_engine::api::views::SavedView;

use crate::engine::Engine;
use crate::failure::Failure;
use crate::session::Session;
use crate::term::marks::DIM;
use crate::term::table::{Cell, Give, Table};

/// Keep queries under a name
///
/// Some views are built in. `taskbell tasks --view NAME` and `taskbell inbox list --view NAME` list what a view has.
#[derive(Debug, Subcommand)]
pub enum View {
    /// List the views with their queries
    #[command(after_help = "Example:\n  taskbell view list")]
    List {
        /// Only those of this list
        #[arg(long, value_name = "SCREEN", value_parser = screen)]
        screen: Option<Screen>,
    },
    /// Keep a query under a name, whatever had that name
    #[command(after_help = "Example:\n  taskbell view save 'Nightly failures' 'nightly state:failed'")]
    Save {
        #[command(flatten)]
        named: Named,
        /// What to look for, as in `taskbell tasks`
        query: String,
    },
    /// Delete a view that was saved
    #[command(after_help = "Example:\n  taskbell view delete 'Nightly failures'")]
    Delete {
        #[command(flatten)]
        named: Named,
    },
}

#[derive(Debug, Args)]
pub struct Named {
    /// The view's name
    name: String,
    /// What it is a list of: tasks or inbox
    #[arg(long, value_name = "SCREEN", value_parser = screen, default_value = "tasks")]
    screen: Screen,
}

fn screen(word: &str) -> Result<Screen, String> {
    Screen::from_word(word)
        .ok_or_else(|| format!("it is one of {}", Screen::ALL.map(Screen::word).join(", ")))
}

impl View {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let out = session.out;
        let engine = session.engine().await?;
        match self {
            Self::List { screen } => {
                let page = engine.views(screen).await?;
                if out.is_json() {
                    out.json(&page)?;
                } else {
                    out.table(&table(&page.items))?;
                }
            }
            Self::Save { named, query } => {
                let view = engine.save_view(named.screen, &named.name, &query).await?;
                if out.is_json() {
                    out.json(&view)?;
                } else {
                    out.line(&format!("view {} is saved", text::plain(&view.name)))?;
                }
            }
            Self::Delete { named } => {
                engine.delete_view(named.screen, &named.name).await?;
                if out.is_json() {
                    out.json(&json!({ "deleted": named.name, "screen": named.screen.word() }))?;
                } else {
                    out.line(&format!("view {} is deleted", text::plain(&named.name)))?;
                }
            }
        }
        Ok(0)
    }
}

fn table(views: &[SavedView]) -> Table {
    let mut table =
        Table::new([("LIST", Give::Keep), ("VIEW", Give::Keep), ("QUERY", Give::Cut(20)), ("", Give::Keep)]);
    for view in views {
        table.row([
            text::plain(&view.screen).into(),
            text::plain(&view.name).into(),
            text::plain(&view.query).into(),
            Cell::styled(if view.built_in { "built in" } else { "" }, DIM),
        ]);
    }
    table
}

/// What a list is asked for: the query of a view, and the words beside it.
pub(super) async fn query(
    engine: &Engine,
    screen: Screen,
    view: Option<&str>,
    words: &[String],
) -> Result<Option<String>, Failure> {
    let mut query = words.join(" ");
    if let Some(name) = view {
        let wanted = name.to_lowercase();
        let views = engine.views(Some(screen)).await?.items;
        let found = views.into_iter().find(|view| view.name.to_lowercase() == wanted).ok_or_else(|| {
            let name = text::plain(name);
            Failure::new(
                "unknown_view",
                format!("no view of this list is named {name}; see `taskbell view list`"),
            )
        })?;
        query = format!("{} {query}", found.query);
    }
    let query = query.trim();
    Ok((!query.is_empty()).then(|| query.to_owned()))
}
