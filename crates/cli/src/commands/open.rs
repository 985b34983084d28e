//! `open`: the page, signed in.

use std::process::{Command, Stdio};

use clap::Args;
use url::Url;

use crate::failure::Failure;
use crate::session::Session;

/// Print the address of the page, and open it where there is a screen
///
/// The address signs its first visitor in. It is good once and for a minute.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  taskbell open")]
pub struct Open {
    /// Only print it
    #[arg(long)]
    print: bool,
}

impl Open {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let login = session.engine().await?.page_login().await?;
        // It is handed to another program: an address in the parser's own form, or nothing.
        let url =
            Url::parse(&login.url).ok().filter(|url| matches!(url.scheme(), "http" | "https")).ok_or_else(
                || Failure::new("engine_unreadable", "the engine answered with an address that is none"),
            )?;
        if session.out.is_json() {
            session.out.json(&serde_json::json!({"url": url.as_str()}))?;
        } else {
            session.out.line(url.as_str())?;
            if !self.print && has_screen() && !show(&url) {
                session.out.remark("no browser could be started: open the address by hand");
            }
        }
        Ok(0)
    }
}

fn has_screen() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(any(target_os = "macos", windows)) || set("DISPLAY") || set("WAYLAND_DISPLAY")
}

fn show(url: &Url) -> bool {
    // rundll32 and not `start`: that one is a shell's, to which `&` in an address means something.
    let (program, first): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    Command::new(program)
        .args(first)
        .arg(url.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .is_ok()
}
