//! `delivery`: callbacks that leave.

use clap::{Args, Subcommand};
use taskbell_core::delivery::{DeliveryState, Lane};
use taskbell_core::ids::TaskRef;
use taskbell_core::text;
use taskbell_engine::api::views::{AttemptView, DeliveryView};
use taskbell_engine::api_client::Endpoint;

use crate::failure::Failure;
use crate::session::Session;
use crate::term::marks::{AMBER, BLUE, DIM, GREEN, RED};
use crate::term::table::{Cell, Give, Table};
use crate::words::{self, Clock};

/// See what was sent to the callbacks that clients registered
#[derive(Debug, Subcommand)]
pub enum Delivery {
    /// List what left or is to leave, the newest first
    #[command(after_help = "Example:\n  taskbell delivery list --state failed")]
    List(List),
    /// Show one with its attempts
    #[command(after_help = "Example:\n  taskbell delivery show 17")]
    Show(One),
    /// Send one again now
    #[command(after_help = "Example:\n  taskbell delivery retry 17")]
    Retry(One),
}

#[derive(Debug, Args)]
pub struct List {
    /// Only of one task: AGENT/TASKID, or a unique prefix
    #[arg(long, value_name = "TASK")]
    task: Option<TaskRef>,
    /// Only in this state
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<DeliveryState>,
    /// Only of this lane: reserved or best-effort
    #[arg(long, value_name = "LANE", value_parser = lane)]
    lane: Option<Lane>,
    /// Rows at most
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Go on after a page: its `next`
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

#[derive(Debug, Args)]
pub struct One {
    /// As `delivery list` numbers it
    id: u64,
}

fn state(word: &str) -> Result<DeliveryState, String> {
    let words = || DeliveryState::ALL.map(DeliveryState::word).join(", ");
    DeliveryState::from_word(word).ok_or_else(|| format!("a state is one of {}", words()))
}

fn lane(word: &str) -> Result<Lane, String> {
    Lane::from_word(word).ok_or_else(|| "a lane is reserved or best-effort".to_owned())
}

impl Delivery {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let out = session.out;
        let engine = session.engine().await?;
        let delivery = match self {
            Self::List(list) => {
                let task = match &list.task {
                    Some(task) => Some(engine.resolve(task).await?.to_string()),
                    None => None,
                };
                let endpoint = Endpoint::from("deliveries")
                    .with("limit", list.limit)
                    .with_some("task", task)
                    .with_some("state", list.state.map(DeliveryState::word))
                    .with_some("lane", list.lane.map(Lane::word))
                    .with_some("cursor", list.cursor);
                let page = engine.deliveries(&endpoint).await?;
                if out.is_json() {
                    out.json(&page)?;
                } else if page.items.is_empty() {
                    out.remark("nothing was sent; clients register callbacks through the gateway");
                } else {
                    out.table(&table(&page.items, &Clock::system()))?;
                    if let Some(next) = page.next {
                        out.remark(&format!("more: taskbell delivery list --cursor {next}"));
                    }
                }
                return Ok(0);
            }
            Self::Show(one) => engine.delivery(one.id).await?,
            Self::Retry(one) => engine.retry_delivery(one.id).await?,
        };
        if out.is_json() {
            out.json(&delivery)?;
        } else {
            out.table(&table(std::slice::from_ref(&delivery), &Clock::system()))?;
            if !delivery.attempts.is_empty() {
                out.line("")?;
                out.table(&attempts(&delivery.attempts))?;
            }
        }
        Ok(0)
    }
}

fn table(deliveries: &[DeliveryView], clock: &Clock) -> Table {
    let mut table = Table::new([
        ("ID", Give::Keep),
        ("TASK", Give::Cut(14)),
        ("TELLS", Give::Keep),
        ("TARGET", Give::Cut(16)),
        ("STATE", Give::Keep),
        ("TRIES", Give::Keep),
        ("WHY", Give::Cut(12)),
        ("MADE", Give::Keep),
    ]);
    for delivery in deliveries {
        let style = match DeliveryState::from_word(&delivery.state) {
            Some(DeliveryState::Delivered) => GREEN,
            Some(DeliveryState::Queued | DeliveryState::Sending) => BLUE,
            Some(DeliveryState::Failed | DeliveryState::OutcomeUnknown) => AMBER,
            Some(DeliveryState::Superseded | DeliveryState::Dropped | DeliveryState::Cancelled) => DIM,
            Some(DeliveryState::Exhausted | DeliveryState::Rejected | DeliveryState::RefusedByPolicy)
            | None => RED,
        };
        let why = delivery.waits_for.as_ref().or(delivery.last_error.as_ref());
        table.row([
            delivery.id.to_string().into(),
            words::task_name(&delivery.task).into(),
            text::plain(&delivery.task_state).into(),
            text::plain(&delivery.target).into(),
            Cell::styled(text::plain(&delivery.state), style),
            delivery.tries.to_string().into(),
            text::plain(why.map(String::as_str).unwrap_or_default()).into(),
            clock.ago(delivery.created_at).into(),
        ]);
    }
    table
}

fn attempts(attempts: &[AttemptView]) -> Table {
    let mut table = Table::new([
        ("STARTED", Give::Keep),
        ("TOOK", Give::Keep),
        ("CAME", Give::Cut(12)),
        ("ADDRESS", Give::Cut(12)),
        ("COUNTED", Give::Keep),
    ]);
    for attempt in attempts {
        let took = match attempt.ended_at {
            Some(ended) => format!("{} ms", ended.ms().saturating_sub(attempt.started_at.ms())),
            None => "runs".to_owned(),
        };
        let came = match (attempt.status, &attempt.error) {
            (Some(status), None) => status.to_string(),
            (Some(status), Some(error)) => format!("{status} {}", text::plain(error)),
            (None, Some(error)) => text::plain(error),
            (None, None) => String::new(),
        };
        table.row([
            attempt.started_at.to_string().into(),
            took.into(),
            came.into(),
            text::plain(attempt.address.as_deref().unwrap_or_default()).into(),
            if attempt.counted { "yes" } else { "no" }.to_owned().into(),
        ]);
    }
    table
}
