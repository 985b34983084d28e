//! A private desktop session: a message bus of its own with a keyring on it.
//!
//! The keyring's collection is created and unlocked with an empty password in
//! a folder of its own, so that nothing touches the user's secrets. The daemon
//! can be locked, stopped and killed, as a user's can.

use std::{path::Path, time::Duration};

use rustix::process::Signal;
use tempfile::TempDir;
use tokio::process::Command;

use crate::{process::Process, taskbell::Setup, wait::wait_until};

/// A bus that starts nothing by itself: a keyring that was killed stays dead.
const BUS: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:tmpdir=/tmp</listen>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#;

const COLLECTION: &str = "/org/freedesktop/secrets/collection/login";

/// The session; its processes end with it.
pub struct Session {
    address: String,
    home: TempDir,
    keyring: Process,
    /// After the keyring: it loses its bus last.
    _bus: Process,
}

impl Session {
    /// Whether this machine has the programs of a session.
    pub fn is_possible() -> bool {
        ["dbus-daemon", "gnome-keyring-daemon", "dbus-send"].iter().all(|program| {
            ["/usr/bin", "/usr/local/bin", "/bin"].iter().any(|dir| Path::new(dir).join(program).exists())
        })
    }

    /// Starts bus and keyring and waits until the collection is unlocked.
    ///
    /// # Panics
    /// When one of them does not come up.
    pub async fn start() -> Self {
        let home = TempDir::with_prefix("taskbell-session-").expect("a temporary folder");
        let configuration = home.path().join("bus.conf");
        std::fs::write(&configuration, BUS).expect("a folder of our own");
        let mut bus = Process::start("dbus-daemon", "dbus-daemon", |command| {
            command.arg(format!("--config-file={}", configuration.display()));
            command.args(["--nofork", "--nopidfile", "--print-address=1"]);
            private(command, home.path());
        });
        let address = bus.next_line(Duration::from_secs(10)).await.expect("the bus prints its address");
        let keyring = start_keyring(&address, home.path()).await;
        let session = Self { address, home, keyring, _bus: bus };
        session.wait_unlocked().await;
        session
    }

    /// An engine that lives in this session and keeps its secrets there.
    pub fn engine(&self) -> Setup {
        self.environment()
            .into_iter()
            .fold(Setup::default().os_keyring(), |setup, (name, value)| setup.env(name, &value))
    }

    /// Runs a command in the session and returns its standard output.
    ///
    /// # Panics
    /// When it fails or takes more than 10 seconds.
    pub async fn run(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(self.environment())
            .kill_on_drop(true)
            .stdin(std::process::Stdio::null());
        let output = tokio::time::timeout(Duration::from_secs(10), command.output())
            .await
            .unwrap_or_else(|_| panic!("{program} {arguments:?} did not end"))
            .unwrap_or_else(|error| panic!("cannot run {program}: {error}"));
        assert!(
            output.status.success(),
            "{program} {arguments:?} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let home = self.home.path().display().to_string();
        vec![
            ("DBUS_SESSION_BUS_ADDRESS", self.address.clone()),
            ("XDG_RUNTIME_DIR", home.clone()),
            ("XDG_DATA_HOME", format!("{home}/data")),
        ]
    }

    /// Locks the collection. Nobody can answer a prompt here.
    pub async fn lock(&self) {
        let collection = format!("array:objpath:{COLLECTION}");
        self.call("/org/freedesktop/secrets", "org.freedesktop.Secret.Service.Lock", &[&collection]).await;
        assert!(self.is_locked().await, "the collection did not lock");
    }

    pub async fn is_locked(&self) -> bool {
        let property = ["string:org.freedesktop.Secret.Collection", "string:Locked"];
        let answer = self.call(COLLECTION, "org.freedesktop.DBus.Properties.Get", &property).await;
        answer.contains("boolean true")
    }

    /// How many secrets the collection holds.
    pub async fn items(&self) -> usize {
        let property = ["string:org.freedesktop.Secret.Collection", "string:Items"];
        let answer = self.call(COLLECTION, "org.freedesktop.DBus.Properties.Get", &property).await;
        answer.matches("object path").count()
    }

    /// SIGSTOP: the keyring is there and never answers.
    pub fn freeze_keyring(&self) {
        self.keyring.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn thaw_keyring(&self) {
        self.keyring.signal(Signal::CONT);
    }

    /// Ends the keyring and leaves the bus.
    pub async fn kill_keyring(&mut self) {
        self.keyring.kill().await;
    }

    /// Starts the keyring on the same folder again, unlocked.
    pub async fn restart_keyring(&mut self) {
        self.keyring = start_keyring(&self.address, self.home.path()).await;
        self.wait_unlocked().await;
    }

    async fn wait_unlocked(&self) {
        wait_until(Duration::from_secs(15), "an unlocked collection", async || {
            let arguments = [
                "--session",
                "--print-reply",
                "--dest=org.freedesktop.secrets",
                COLLECTION,
                "org.freedesktop.DBus.Properties.Get",
                "string:org.freedesktop.Secret.Collection",
                "string:Locked",
            ];
            let output =
                Command::new("dbus-send").args(arguments).envs(self.environment()).output().await.ok()?;
            String::from_utf8_lossy(&output.stdout).contains("boolean false").then_some(())
        })
        .await;
    }

    async fn call(&self, object: &str, method: &str, arguments: &[&str]) -> String {
        let mut all = vec!["--session", "--print-reply", "--dest=org.freedesktop.secrets", object, method];
        all.extend(arguments);
        self.run("dbus-send", &all).await
    }
}

async fn start_keyring(address: &str, home: &Path) -> Process {
    let control = home.join("keyring");
    std::fs::create_dir_all(home.join("data")).expect("a folder of our own");
    // It refuses a folder that others could read.
    let mut folder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(folder.recursive(true), 0o700);
    folder.create(&control).expect("a folder of our own");
    let mut keyring = Process::start("gnome-keyring-daemon", "gnome-keyring-daemon", |command| {
        command
            .args(["--foreground", "--unlock", "--components=secrets", "--control-directory"])
            .arg(&control);
        private(command, home);
        command.env("DBUS_SESSION_BUS_ADDRESS", address).stdin(std::process::Stdio::piped());
    });
    // The password is everything up to the end of input; a newline counts as one character.
    keyring.feed(b"\n").await;
    keyring
}

fn private(command: &mut Command, home: &Path) {
    command.env("HOME", home).env("XDG_RUNTIME_DIR", home).env("XDG_DATA_HOME", home.join("data"));
    command.env("XDG_CONFIG_HOME", home.join("config")).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
}
