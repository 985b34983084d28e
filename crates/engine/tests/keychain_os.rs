//! The keychain against a real gnome-keyring on a private D-Bus session. Each test runs this program again
//! under `dbus-run-session`, so that no test touches the keyring of whoever runs it.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use secret_service::EncryptionType;
use secret_service::blocking::SecretService;
use taskbell_core::credential::Secret;
use taskbell_engine::keychain::{Keychain, KeychainChoice, KeychainError, KeychainHealth};

const CHILD: &str = "TASKBELL_TEST_CHILD";
const DONE: &str = "the child came to its end";

/// The system's keychain with a deadline short enough for a test.
fn keychain(deadline: Duration) -> Keychain {
    Keychain::start(KeychainChoice::Os, "test", deadline).unwrap()
}

const PATIENT: Duration = Duration::from_secs(20);

fn run_async(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
}

/// Runs `test` again as a child on a bus of its own; what it said, or `None` where the machine lacks the programs.
fn on_a_private_bus(test: &str) -> Option<String> {
    for program in ["dbus-run-session", "gnome-keyring-daemon"] {
        if Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_err()
        {
            eprintln!("skipped: {program} is not installed");
            return None;
        }
    }
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new("dbus-run-session");
    command.arg("--").arg(std::env::current_exe().unwrap());
    Some(run_child(command, test, home.path()))
}

fn run_child(mut command: Command, test: &str, home: &Path) -> String {
    let started = Instant::now();
    let output = command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, test)
        .env("HOME", home)
        .env("XDG_DATA_HOME", home.join("data"))
        .env("XDG_RUNTIME_DIR", home)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && said.contains(DONE),
        "after {:?}: {said}\n{}",
        started.elapsed(),
        String::from_utf8_lossy(&output.stderr)
    );
    said
}

fn is_child(test: &str) -> bool {
    std::env::var(CHILD).is_ok_and(|name| name == test)
}

/// A gnome-keyring of our own, its login collection open under an empty password.
struct Daemon(Child);

impl Daemon {
    fn start() -> Self {
        let control = Path::new(&std::env::var_os("XDG_RUNTIME_DIR").unwrap()).join("keyring/control");
        // One that was killed leaves its own behind, which would look like ours being ready.
        match std::fs::remove_file(&control) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
            Ok(()) | Err(_) => {}
        }
        let mut child = Command::new("gnome-keyring-daemon")
            .args(["--foreground", "--unlock", "--components=secrets"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let daemon = Self(child);
        let started = Instant::now();
        // Asking the bus before our daemon has the name would make the bus start another one.
        while !(control.exists() && has_collection()) {
            assert!(started.elapsed() < Duration::from_secs(20), "the keyring must start");
            std::thread::sleep(Duration::from_millis(50));
        }
        daemon
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill(); // Ends a stopped process too.
        let _ = self.0.wait();
    }
}

fn unix_ms() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis()
}

fn has_collection() -> bool {
    let Ok(service) = SecretService::connect(EncryptionType::Plain) else { return false };
    service.get_default_collection().is_ok_and(|collection| matches!(collection.is_locked(), Ok(false)))
}

#[test]
fn a_secret_is_kept_and_found_by_another_handle() {
    const NAME: &str = "a_secret_is_kept_and_found_by_another_handle";
    if !is_child(NAME) {
        on_a_private_bus(NAME);
        return;
    }
    let _daemon = Daemon::start();
    run_async(async {
        let first = keychain(PATIENT);
        assert_eq!(first.probe("nonce").await, KeychainHealth::Kept);
        assert_eq!(
            first.get("probe").await.unwrap_err().code(),
            "keyring_no_entry",
            "the probe leaves nothing"
        );
        let long = "ü𝄞".repeat(4000);
        first.set("agent-1", Secret::new(long.as_str())).await.unwrap();
        let second = keychain(PATIENT);
        assert_eq!(second.get("agent-1").await.unwrap().expose(), long);
        let elsewhere = Keychain::start(KeychainChoice::Os, "another folder", PATIENT).unwrap();
        assert_eq!(elsewhere.get("agent-1").await.unwrap_err().code(), "keyring_no_entry");
        second.set("agent-1", Secret::new("short")).await.unwrap();
        assert_eq!(first.get("agent-1").await.unwrap().expose(), "short");
        first.delete("agent-1").await.unwrap();
        assert_eq!(second.get("agent-1").await.unwrap_err().code(), "keyring_no_entry");
        second.delete("agent-1").await.unwrap();
    });
    println!("{DONE}");
}

#[test]
fn a_locked_keyring_is_named_and_works_again_when_unlocked() {
    const NAME: &str = "a_locked_keyring_is_named_and_works_again_when_unlocked";
    if !is_child(NAME) {
        on_a_private_bus(NAME);
        return;
    }
    let daemon = Daemon::start();
    run_async(async {
        let keychain = keychain(PATIENT);
        keychain.set("agent-1", Secret::new("one")).await.unwrap();
        let lock = || {
            let service = SecretService::connect(EncryptionType::Plain).unwrap();
            service.get_default_collection().unwrap().lock().unwrap();
        };
        tokio::task::spawn_blocking(lock).await.unwrap();
        assert_eq!(keychain.get("agent-1").await.unwrap_err(), KeychainError::Locked);
        assert_eq!(keychain.set("agent-2", Secret::new("two")).await, Err(KeychainError::Locked));
        assert_eq!(keychain.probe("nonce").await, KeychainHealth::Failing(KeychainError::Locked));
        drop(daemon);
        let _daemon = tokio::task::spawn_blocking(Daemon::start).await.unwrap();
        assert_eq!(keychain.get("agent-1").await.unwrap().expose(), "one", "a new daemon is found by itself");
    });
    println!("{DONE}");
}

#[test]
fn a_stopped_keyring_costs_one_deadline_heals_and_lets_the_process_leave() {
    const NAME: &str = "a_stopped_keyring_costs_one_deadline_heals_and_lets_the_process_leave";
    if !is_child(NAME) {
        if let Some(said) = on_a_private_bus(NAME) {
            let now = unix_ms();
            let line = said.split("left at ").nth(1).unwrap().lines().next().unwrap();
            let (left, daemon) = line.split_once(" the daemon ").unwrap();
            // Stopped, and its parent has left: nobody else ends it.
            assert!(Command::new("kill").args(["-KILL", daemon]).status().unwrap().success());
            let took = now.saturating_sub(left.parse::<u128>().unwrap());
            assert!(took < 3000, "leaving took {took} ms");
        }
        return;
    }
    let daemon = Daemon::start();
    run_async(async {
        let keychain = keychain(Duration::from_millis(700));
        keychain.set("agent-1", Secret::new("one")).await.unwrap();
        daemon.signal("-STOP");
        let started = Instant::now();
        assert_eq!(keychain.get("agent-1").await.unwrap_err(), KeychainError::TimedOut);
        let took = started.elapsed();
        assert!((Duration::from_millis(650)..Duration::from_secs(3)).contains(&took), "{took:?}");
        let started = Instant::now();
        assert_eq!(keychain.get("agent-1").await.unwrap_err(), KeychainError::TimedOut);
        assert!(started.elapsed() < Duration::from_millis(300), "the second caller is told at once");
        daemon.signal("-CONT");
        let started = Instant::now();
        let value = loop {
            match keychain.get("agent-1").await {
                Ok(value) => break value,
                Err(error) => assert!(started.elapsed() < Duration::from_secs(20), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert_eq!(value.expose(), "one");
        daemon.signal("-STOP");
        assert_eq!(keychain.get("agent-1").await.unwrap_err(), KeychainError::TimedOut);
    });
    println!("{DONE}");
    // The runtime is gone and the keychain's thread is still inside its call into a stopped daemon.
    // Leaving must not wait for it: the parent measures from here.
    println!("left at {} the daemon {}", unix_ms(), daemon.0.id());
    let _ = std::io::stdout().flush();
    std::mem::forget(daemon);
}

#[test]
fn without_a_bus_or_a_keyring_there_is_no_store() {
    const NAME: &str = "without_a_bus_or_a_keyring_there_is_no_store";
    if is_child(NAME) {
        run_async(async {
            let keychain = keychain(PATIENT);
            let started = Instant::now();
            let health = keychain.probe("nonce").await;
            assert!(matches!(&health, KeychainHealth::Failing(KeychainError::NoStore { .. })), "{health:?}");
            assert!(started.elapsed() < Duration::from_secs(5));
            assert_eq!(keychain.get("agent-1").await.unwrap_err().code(), "keyring_none");
        });
        println!("{DONE}");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut no_bus = Command::new(std::env::current_exe().unwrap());
    no_bus.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}/none", home.path().display()));
    run_child(no_bus, NAME, home.path());
}
