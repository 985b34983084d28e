//! Command lines of the user's, run by the system's shell.

use tokio::process::Command;

/// The line as the user wrote it.
#[cfg(unix)]
pub fn command(line: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line);
    command
}

#[cfg(windows)]
pub fn command(line: &str) -> Command {
    let mut command = Command::new("cmd");
    // The line goes to cmd as the user wrote it; quoting it once more would change its meaning.
    command.arg("/C").raw_arg(line);
    command
}

/// Kills what the shell started as well, when the command is given up. The command must be a process group of its
/// own.
pub struct GroupGuard {
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
}

impl GroupGuard {
    #[cfg(unix)]
    pub fn of(child: &tokio::process::Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { group: id.and_then(rustix::process::Pid::from_raw) }
    }

    #[cfg(not(unix))]
    pub fn of(_: &tokio::process::Child) -> Self {
        Self {}
    }

    /// It ended by itself.
    pub fn disarm(mut self) {
        #[cfg(unix)]
        {
            self.group = None;
        }
        #[cfg(not(unix))]
        let _ = &mut self;
    }
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.group {
            // Gone already is what we wanted.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}
