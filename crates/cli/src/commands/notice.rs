//! `notice`: what was told on the desktop, a test, and quiet.

use clap::Subcommand;
use taskbell_core::text;
use taskbell_engine::api::views::{QuietRequest, QuietView};

use crate::failure::Failure;
use crate::session::Session;
use crate::term::table::{Give, Table};

/// See what was told on the desktop
#[derive(Debug, Subcommand)]
pub enum Notice {
    /// List the newest notices with what came of each
    #[command(after_help = "Example:\n  taskbell notice list")]
    List,
    /// Show a notice now and say what came of it
    #[command(after_help = "Example:\n  taskbell notice test")]
    Test,
    /// Hold notices up for a while, or see whether they are; what comes meanwhile is told together at the end
    #[command(after_help = "Example:\n  taskbell notice quiet 1h\n\n\
        Quiet hours of every day are the settings quiet.from and quiet.to.")]
    Quiet {
        /// How long (30m, 2h), tomorrow, or off
        #[arg(value_name = "FOR", value_parser = parse_wish)]
        wish: Option<Wish>,
    },
}

/// What is asked of the quiet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    Minutes(u32),
    Tomorrow,
    Off,
}

fn parse_wish(text: &str) -> Result<Wish, String> {
    let minutes = |digits: &str, unit: u32| digits.parse::<u32>().ok()?.checked_mul(unit);
    let wish = match text {
        "tomorrow" => Some(Wish::Tomorrow),
        "off" => Some(Wish::Off),
        _ => match (text.strip_suffix('m'), text.strip_suffix('h')) {
            (Some(digits), _) => minutes(digits, 1).map(Wish::Minutes),
            (_, Some(digits)) => minutes(digits, 60).map(Wish::Minutes),
            (None, None) => None,
        },
    };
    wish.ok_or_else(|| "write how long as 30m or 2h, or say tomorrow or off".to_owned())
}

fn sentence(quiet: &QuietView) -> String {
    let urgent = match quiet.urgent.as_slice() {
        [] => String::new(),
        kinds => format!(", except {}", kinds.join(", ")),
    };
    match &quiet.until {
        Some(until) => format!("quiet until {until}{urgent}"),
        None => "not quiet: notices are shown".to_owned(),
    }
}

impl Notice {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let out = session.out;
        let engine = session.engine().await?;
        let notices = match self {
            Self::Quiet { wish } => {
                let ask = |minutes, until| QuietRequest { minutes, until };
                let quiet = match wish {
                    None => engine.quiet().await?,
                    Some(Wish::Off) => engine.end_quiet().await?,
                    Some(Wish::Minutes(minutes)) => engine.ask_for_quiet(&ask(Some(minutes), None)).await?,
                    Some(Wish::Tomorrow) => {
                        engine.ask_for_quiet(&ask(None, Some("tomorrow".to_owned()))).await?
                    }
                };
                if out.is_json() {
                    out.json(&quiet)?;
                } else {
                    out.line(&text::plain(&sentence(&quiet)))?;
                }
                return Ok(0);
            }
            Self::List => {
                let page = engine.notices().await?;
                if out.is_json() {
                    out.json(&page)?;
                    return Ok(0);
                }
                page.items
            }
            Self::Test => {
                let notice = engine.test_notice().await?;
                if out.is_json() {
                    out.json(&notice)?;
                    return Ok(0);
                }
                vec![notice]
            }
        };
        let mut table = Table::new([
            ("KIND", Give::Keep),
            ("OUTCOME", Give::Keep),
            ("TASK", Give::Cut(12)),
            ("TITLE", Give::Cut(20)),
            ("WHY", Give::Cut(20)),
        ]);
        for notice in &notices {
            table.row([
                text::plain(&notice.kind).into(),
                text::plain(notice.outcome.as_deref().unwrap_or("pending")).into(),
                text::plain(&notice.task.as_ref().map(ToString::to_string).unwrap_or_default()).into(),
                text::plain(&notice.title).into(),
                text::plain(notice.detail.as_deref().unwrap_or_default()).into(),
            ]);
        }
        out.table(&table)?;
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_is_asked_for_in_minutes_hours_or_until_tomorrow() {
        assert_eq!(parse_wish("30m"), Ok(Wish::Minutes(30)));
        assert_eq!(parse_wish("2h"), Ok(Wish::Minutes(120)));
        assert_eq!(parse_wish("tomorrow"), Ok(Wish::Tomorrow));
        assert_eq!(parse_wish("off"), Ok(Wish::Off));
        for bad in ["", "1", "1d", "-1h", "99999999999h", "4294967295h", "h", "tonight"] {
            assert!(parse_wish(bad).is_err(), "{bad}");
        }
    }
}
