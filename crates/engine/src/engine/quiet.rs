//! Quiet: what holds now, asking for it, and ending it.

use jiff::tz::TimeZone;

use super::Engine;
use crate::api::views::{QuietRequest, QuietView, UtcTime};
use crate::error::EngineError;
use crate::settings;
use crate::store::changes::{NewChange, record_change};
use crate::store::{StoreError, WriteContext};

/// A week, in minutes: longer is no pause any more.
const LONGEST: u32 = 7 * 24 * 60;

impl Engine {
    /// Whether notices are held up now, and until when.
    pub async fn quiet(&self) -> Result<QuietView, EngineError> {
        let now_ms = self.parts().now_ms();
        let read = move |connection: &rusqlite::Connection| {
            let quiet = settings::quiet(connection)?;
            Ok((quiet, settings::urgent_kinds(connection)?))
        };
        let (quiet, urgent) = self.store().read(read).await?;
        let until_ms = quiet.until(now_ms, &TimeZone::system());
        Ok(QuietView {
            quiet: until_ms.is_some(),
            until: until_ms.map(UtcTime::from_ms),
            asked: quiet.asked_until_ms.is_some_and(|until_ms| until_ms > now_ms),
            urgent: urgent.into_iter().map(|kind| kind.word().to_owned()).collect(),
        })
    }

    /// Quiet from now on, for a time or until tomorrow.
    pub async fn ask_for_quiet(&self, request: QuietRequest) -> Result<QuietView, EngineError> {
        let now_ms = self.parts().now_ms();
        let until_ms = match (request.minutes, request.until.as_deref()) {
            (Some(minutes), None) if (1..=LONGEST).contains(&minutes) => {
                Some(now_ms.saturating_add(i64::from(minutes) * 60_000))
            }
            (None, Some("tomorrow")) => {
                let quiet = self.store().read(settings::quiet).await?;
                quiet.tomorrow(now_ms, &TimeZone::system())
            }
            _ => None,
        };
        let takes = || format!("quiet takes either minutes, 1 to {LONGEST}, or until, which is tomorrow");
        let until_ms = until_ms.ok_or_else(|| EngineError::new("usage", takes()))?;
        let ask = move |context: &mut WriteContext<'_>| {
            settings::ask_for_quiet(context, until_ms)?;
            announce(context)
        };
        self.store().write(ask).await?;
        self.notifier().look_again();
        self.quiet().await
    }

    /// What was held up is told now. Quiet hours that hold at this moment are over for this time.
    pub async fn end_quiet(&self) -> Result<QuietView, EngineError> {
        let now_ms = self.parts().now_ms();
        let end = move |context: &mut WriteContext<'_>| {
            let hours = settings::quiet(context.tx)?.hours_until(now_ms, &TimeZone::system());
            settings::end_quiet(context, hours)?;
            announce(context)
        };
        self.store().write(end).await?;
        self.notifier().look_again();
        self.quiet().await
    }
}

/// Whoever shows it looks again.
fn announce(context: &mut WriteContext<'_>) -> Result<(), StoreError> {
    let change = NewChange {
        agent: None,
        task: None,
        source: "manual",
        kind: "setting",
        body_json: r#"{"key":"quiet"}"#,
    };
    record_change(context, &change).map(|_| ())
}
