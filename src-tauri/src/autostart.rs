//! Starting with the desktop session, hidden in the tray, as the setting `autostart` has it.
//!
//! On Linux a desktop entry in the user's own `autostart` folder, as the Desktop Application Autostart Specification
//! has it. It is there while the setting is on, always names the program that runs now, and goes with the setting.
//! Elsewhere the system's own list of start-up items is the place, and the setting says so in the log.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use taskbell_engine::api::views::SettingView;
use taskbell_engine::api_door::DoorEvent;
use tauri::{AppHandle, Manager as _, Wry};

use crate::desk::Desk;

/// After a feed that ended.
const AGAIN: Duration = Duration::from_secs(2);
const SETTING: &str = "/api/v1/settings/autostart";
const FILE: &str = "taskbell-desktop.desktop";

/// Follows the setting until the program ends.
pub async fn keep(app: AppHandle<Wry>) {
    loop {
        if let Ok(door) = app.state::<Desk>().door().await {
            // Listening first, so that no change is missed.
            let feed = door.changes(None).await;
            match door.get::<SettingView>(SETTING).await {
                Ok(setting) => apply(setting.value == "on").await,
                Err(error) => {
                    tracing::debug!(code = error.code, "the setting autostart is not known: {error}")
                }
            }
            if let Ok(mut feed) = feed {
                // What ends the feed is worth a look as well.
                while feed.next().await.is_ok_and(|event| !is_setting(&event)) {}
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Whether the setting may be another.
fn is_setting(event: &DoorEvent) -> bool {
    #[derive(serde::Deserialize)]
    struct Told {
        kind: String,
    }
    match event {
        DoorEvent::Change { json, .. } => {
            serde_json::from_str::<Told>(json.get()).is_ok_and(|told| told.kind == "setting")
        }
        DoorEvent::Reset => true,
    }
}

async fn apply(on: bool) {
    let Some(folder) = folder() else {
        if on {
            tracing::warn!(
                "this program does not start with the session: add it to the start-up items of this system"
            );
        }
        return;
    };
    let applied = tokio::task::spawn_blocking(move || {
        let program = std::env::current_exe()?;
        if on { enter(&folder, &program) } else { leave(&folder) }
    });
    match applied.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!("the setting autostart could not be applied: {error}"),
        Err(_panic) => tracing::warn!("the setting autostart could not be applied"),
    }
}

#[cfg(target_os = "linux")]
fn folder() -> Option<PathBuf> {
    Some(directories::BaseDirs::new()?.config_dir().join("autostart"))
}

#[cfg(not(target_os = "linux"))]
fn folder() -> Option<PathBuf> {
    None
}

/// Tells an entry of ours from one that the user made, which is left alone.
const OURS: &str = "X-Taskbell-Setting=autostart";

fn enter(folder: &Path, program: &Path) -> io::Result<()> {
    let path = folder.join(FILE);
    let wanted = entry(program);
    match std::fs::read_to_string(&path) {
        Ok(there) if there == wanted || !there.contains(OURS) => return Ok(()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    std::fs::create_dir_all(folder)?;
    // Whole or not at all: a session may start at any moment.
    let draft = folder.join(format!(".{FILE}.new"));
    std::fs::write(&draft, wanted)?;
    std::fs::rename(draft, path)
}

fn leave(folder: &Path) -> io::Result<()> {
    let path = folder.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(there) if there.contains(OURS) => std::fs::remove_file(path),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn entry(program: &Path) -> String {
    format!(
        "[Desktop Entry]\nType=Application\nName=Taskbell\nComment=Follows agent tasks\nIcon=taskbell\n\
         Exec={} --hidden\nTerminal=false\n{OURS}\n",
        quoted(&program.display().to_string())
    )
}

/// An argument of `Exec` (Desktop Entry Specification, "The Exec key"): quoted, then escaped as any string is.
fn quoted(argument: &str) -> String {
    let mut text = String::from("\"");
    for c in argument.chars() {
        match c {
            '"' | '`' | '$' => text.extend(['\\', '\\', c]),
            '\\' => text.push_str("\\\\\\\\"),
            '%' => text.push_str("%%"),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_is_an_entry_for_the_program_that_runs_now_and_off_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("autostart");
        enter(&folder, Path::new("/opt/old/taskbell-desktop")).unwrap();
        enter(&folder, Path::new("/usr/bin/taskbell-desktop")).unwrap();
        let text = std::fs::read_to_string(folder.join(FILE)).unwrap();
        assert!(text.contains("\nExec=\"/usr/bin/taskbell-desktop\" --hidden\n"), "{text}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "and nothing beside it");
        leave(&folder).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        leave(&folder).unwrap();
        leave(&home.path().join("none")).unwrap();
    }

    #[test]
    fn an_entry_that_the_user_made_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        std::fs::write(&path, "[Desktop Entry]\nExec=taskbell-desktop --demo\n").unwrap();
        enter(folder.path(), Path::new("/usr/bin/taskbell-desktop")).unwrap();
        leave(folder.path()).unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "[Desktop Entry]\nExec=taskbell-desktop --demo\n"
        );
    }

    #[test]
    fn a_path_of_any_characters_stays_one_argument() {
        assert_eq!(quoted("/a b/$x`y\"z\\w%u"), "\"/a b/\\\\$x\\\\`y\\\\\"z\\\\\\\\w%%u\"");
    }
}
