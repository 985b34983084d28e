//! A desktop that is nobody's: a screen, a session bus and folders of its own, for programs with a window.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::{Failure, program};

const STARTS_WITHIN: Duration = Duration::from_secs(10);

/// Screen and bus; both end when this is dropped.
pub struct Screen {
    folder: tempfile::TempDir,
    display: String,
    bus: String,
    _children: [Child; 2],
}

impl Screen {
    /// # Errors
    /// Xvfb or dbus-daemon is missing or does not start.
    pub async fn start() -> Result<Self, Failure> {
        let folder = program::folder()?;
        let mut xvfb = Command::new("Xvfb");
        // Without -noreset it starts anew whenever its last window has closed, and refuses whoever comes meanwhile.
        xvfb.args(["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset"]);
        let (screen, number) = first_line("Xvfb", xvfb).await?;
        let mut daemon = Command::new("dbus-daemon");
        let address = format!("--address=unix:path={}", folder.path().join("bus").display());
        daemon.args(["--session", "--nofork", "--print-address=1", &address]);
        let (bus, address) = first_line("dbus-daemon", daemon).await?;
        Ok(Self { folder, display: format!(":{number}"), bus: address, _children: [screen, bus] })
    }

    /// `program` as a user of this desktop starts it.
    pub fn command(&self, program: &Path) -> Command {
        let home = self.folder.path();
        let mut command = Command::new(program);
        command.env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        for name in ["HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
            command.env(name, home);
        }
        command
            .envs([("LANG", "C.UTF-8"), ("DISPLAY", &self.display), ("DBUS_SESSION_BUS_ADDRESS", &self.bus)])
            // No graphics card, no reader of screens.
            .envs([("GDK_BACKEND", "x11"), ("NO_AT_BRIDGE", "1"), ("LIBGL_ALWAYS_SOFTWARE", "1")])
            .env("WEBKIT_DISABLE_DMABUF_RENDERER", "1");
        command
    }
}

async fn first_line(name: &str, mut command: Command) -> Result<(Child, String), Failure> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command
        .spawn()
        .map_err(|error| format!("failed to start {name}: {error} (`make setup` installs it)"))?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("standard output is piped")?).lines();
    let line = tokio::time::timeout(STARTS_WITHIN, lines.next_line())
        .await
        .map_err(|_| format!("{name} was not ready within {STARTS_WITHIN:?}"))??
        .ok_or_else(|| format!("{name} ended at once"))?;
    Ok((child, line.trim().to_owned()))
}
