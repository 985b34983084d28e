//! Files that the page gives to the user: into the folder for downloads, under a name that is free there.
//!
//! The page proposes a name; a folder it cannot name. Nothing is ever overwritten.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Characters of a name; file systems take 255 octets.
const LONGEST: usize = 60;
/// Files of one name. More are a page that runs wild.
const COPIES: u32 = 1_000;

/// The user's folder for downloads, or the home folder.
pub fn folder() -> Option<PathBuf> {
    let user = directories::UserDirs::new()?;
    let downloads = user.download_dir().filter(|folder| folder.is_dir());
    Some(downloads.unwrap_or_else(|| user.home_dir()).to_path_buf())
}

/// Writes a file of about that name, and answers where.
pub fn save_in(folder: &Path, name: &str, content: &[u8]) -> io::Result<PathBuf> {
    let name = tame(name);
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => (stem, format!(".{ending}")),
        _ => (name.as_str(), String::new()),
    };
    for copy in 1..=COPIES {
        let free = if copy == 1 { name.clone() } else { format!("{stem} ({copy}){ending}") };
        let path = folder.join(free);
        let mut new = OpenOptions::new();
        new.write(true).create_new(true);
        // For its user: an agent's answer is nobody else's business, and it is no program.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut new, 0o600);
        match new.open(&path) {
            Ok(mut file) => {
                let written = file.write_all(content).and_then(|()| file.sync_all());
                if let Err(error) = written {
                    // Half a file would be taken for the whole. That it stays is less than why it was not written.
                    let _ = std::fs::remove_file(&path);
                    return Err(error);
                }
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{COPIES} files are named like {name}")))
}

/// A name within a folder, on any system, that does not hide and names no device.
fn tame(name: &str) -> String {
    let line = taskbell_core::text::one_line(name, 400);
    let allowed = |c: char| c.is_alphanumeric() || "-_.() ".contains(c);
    let kept: String = line.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    let (stem, ending) = match kept.rsplit_once('.') {
        Some((stem, ending)) if ending.chars().count() <= 10 => (stem, format!(".{ending}")),
        _ => (kept.as_str(), String::new()),
    };
    let short: String = stem.chars().take(LONGEST).collect();
    let name = format!("{short}{ending}");
    let name = name.trim_matches(|c| c == '.' || c == ' ');
    let device = ["con", "prn", "aux", "nul", "com", "lpt"]
        .iter()
        .any(|word| name.to_lowercase().starts_with(word) && name.len() <= word.len() + 5);
    match name {
        "" => "file".to_owned(),
        name if device => format!("_{name}"),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_within_its_folder_whoever_proposes_it() {
        for (name, tamed) in [
            ("result.txt", "result.txt"),
            ("../../.ssh/authorized_keys", "_.._.ssh_authorized_keys"),
            ("/etc/passwd", "_etc_passwd"),
            ("C:\\x\\y.exe", "C__x_y.exe"),
            (".bashrc", "bashrc"),
            ("..", "file"),
            ("", "file"),
            ("a\nb\u{202e}gpj.exe", "a bgpj.exe"),
            ("nul", "_nul"),
            ("COM1.txt", "_COM1.txt"),
            ("Ergebnis für Jörg.md", "Ergebnis für Jörg.md"),
        ] {
            assert_eq!(tame(name), tamed, "{name:?}");
        }
        assert!(tame(&"é".repeat(4_000)).len() <= 2 * LONGEST);
    }

    #[test]
    fn a_file_that_is_there_is_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = ["one", "two", "three"]
            .iter()
            .map(|text| save_in(folder.path(), "answer.json", text.as_bytes()).unwrap())
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["answer.json", "answer (2).json", "answer (3).json"]);
        assert_eq!(std::fs::read(folder.path().join("answer.json")).unwrap(), b"one");
        let missing = save_in(&folder.path().join("none"), "answer.json", b"x").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    #[cfg(unix)]
    fn a_link_that_waits_under_the_name_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        std::os::unix::fs::symlink(&target, folder.path().join("answer.txt")).unwrap();
        let path = save_in(folder.path(), "answer.txt", b"x").unwrap();
        assert!(path.ends_with("answer (2).txt") && !target.exists());
    }
}
