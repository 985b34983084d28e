//! A desktop of its own for each test: a screen, a bus, dunst, and an engine that shows notices there.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use taskbell_core::ids::{AgentName, TaskRef};
use taskbell_engine::api::views::NoticeView;
use taskbell_engine::api::window::Windows;
use taskbell_engine::data_dir::DataDir;
use taskbell_engine::notifier::{NoticeEvent, Notices};
use taskbell_engine::running::{CredentialStore, EngineOptions, PortsTaken, RunningEngine};
use taskbell_engine::tasks::{Outgoing, Sent};
use tokio::sync::broadcast;

pub const SOON: Duration = Duration::from_secs(15);
pub const SERVICE: &str = "org.freedesktop.Notifications";
pub const PATH: &str = "/org/freedesktop/Notifications";

const BUS: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
"#;

/// In its menu of buttons somebody always takes Snooze.
const DUNST: &str = "[global]\nmarkup = full\ndmenu = /bin/grep -m1 Snooze\n";

/// A process that ends with its owner, also a stopped one.
pub struct Owned(pub Child);

impl Owned {
    pub fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn start(command: &mut Command) -> Owned {
    Owned(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// Screen, bus, and a notification service where one was started.
pub struct Session {
    home: tempfile::TempDir,
    display: String,
    pub address: String,
    dunst: Option<Owned>,
    _bus: Owned,
    _screen: Owned,
}

impl Session {
    /// `None` where the machine lacks the programs.
    pub fn start() -> Option<Self> {
        Self::start_with(|_, _| None)
    }

    /// The bus starts dunst at the first call to it, as a desktop's does.
    pub fn with_dunst_on_demand() -> Option<Self> {
        Self::start_with(|home, display| {
            let services = home.join("services");
            std::fs::create_dir(&services).unwrap();
            let home = home.display();
            let service = format!(
                "[D-BUS Service]\nName={SERVICE}\n\
                 Exec=/usr/bin/env DISPLAY={display} HOME={home} dunst -config {home}/dunstrc\n"
            );
            std::fs::write(services.join(format!("{SERVICE}.service")), service).unwrap();
            Some(services)
        })
    }

    /// `services` says for the home folder and the display where the bus finds what it may start.
    fn start_with(services: impl FnOnce(&Path, &str) -> Option<PathBuf>) -> Option<Self> {
        for program in ["Xvfb", "dbus-daemon", "dunst"] {
            if !["/usr/bin", "/usr/local/bin", "/bin"].iter().any(|dir| Path::new(dir).join(program).exists())
            {
                eprintln!("skipped: {program} is not installed");
                return None;
            }
        }
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("dunstrc"), DUNST).unwrap();
        let mut screen = Command::new("Xvfb");
        screen
            .args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp", "-noreset"])
            .stdout(Stdio::piped());
        let mut screen = start(&mut screen);
        let display = format!(":{}", first_line(&mut screen));
        let services = services(home.path(), &display)
            .map_or_else(String::new, |folder| format!("<servicedir>{}</servicedir>", folder.display()));
        std::fs::write(
            home.path().join("bus.conf"),
            BUS.replace("</busconfig>", &(services + "</busconfig>")),
        )
        .unwrap();
        let mut bus = Command::new("dbus-daemon");
        bus.arg(format!("--config-file={}", home.path().join("bus.conf").display()));
        bus.args(["--nofork", "--nopidfile", "--print-address=1"]).stdout(Stdio::piped());
        let mut bus = start(&mut bus);
        let address = first_line(&mut bus);
        Some(Self { home, display, address, dunst: None, _bus: bus, _screen: screen })
    }

    pub async fn with_dunst() -> Option<Self> {
        let mut session = Self::start()?;
        session.start_dunst().await;
        Some(session)
    }

    pub async fn start_dunst(&mut self) {
        let said = std::fs::OpenOptions::new().create(true).append(true).open(self.said()).unwrap();
        let mut dunst = Command::new("dunst");
        dunst
            .args(["-print", "-config"])
            .arg(self.home.path().join("dunstrc"))
            .env("DISPLAY", &self.display)
            .env("DBUS_SESSION_BUS_ADDRESS", &self.address)
            .env("HOME", self.home.path())
            .env_remove("WAYLAND_DISPLAY")
            .stdout(said);
        self.dunst = Some(start(&mut dunst));
        let bus = self.connect().await;
        let names = zbus::fdo::DBusProxy::new(&bus).await.unwrap();
        until("dunst on the bus", async || names.name_has_owner(SERVICE.try_into().unwrap()).await.unwrap())
            .await;
    }

    pub fn dunst(&self) -> &Owned {
        self.dunst.as_ref().unwrap()
    }

    pub fn said(&self) -> PathBuf {
        self.home.path().join("dunst.out")
    }

    /// Every notice that dunst was given, as summary and body.
    pub fn shown(&self) -> Vec<(String, String)> {
        let said = std::fs::read_to_string(self.said()).unwrap_or_default();
        let value = |block: &str, name: &str| {
            let from = block.split_once(&format!("\t{name}: '"))?.1;
            Some(from.split_once("'\n")?.0.to_owned())
        };
        said.split("appname:")
            .skip(1)
            .filter_map(|block| Some((value(block, "summary")?, value(block, "body")?)))
            .collect()
    }

    pub fn titles(&self) -> Vec<String> {
        self.shown().into_iter().map(|(summary, _)| summary).collect()
    }

    pub async fn connect(&self) -> zbus::Connection {
        let builder = zbus::connection::Builder::address(self.address.as_str()).unwrap();
        tokio::time::timeout(SOON, builder.build()).await.expect("the bus answers").unwrap()
    }

    /// How many stand on the screen.
    pub async fn displayed(&self) -> u32 {
        let bus = self.connect().await;
        let values = ("org.dunstproject.cmd0", "displayedLength");
        let properties = Some("org.freedesktop.DBus.Properties");
        let answer = bus.call_method(Some(SERVICE), PATH, properties, "Get", &values).await.unwrap();
        let value: zbus::zvariant::OwnedValue = answer.body().deserialize().unwrap();
        value.try_into().unwrap()
    }

    pub async fn press<B: serde::Serialize + zbus::zvariant::DynamicType>(&self, method: &str, values: &B) {
        let dunst = Some("org.dunstproject.cmd0");
        self.connect().await.call_method(Some(SERVICE), PATH, dunst, method, values).await.unwrap();
    }
}

pub fn first_line(process: &mut Owned) -> String {
    let mut line = String::new();
    // The pipe stays open: who writes into a closed one ends.
    BufReader::new(process.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !is_so().await {
        assert!(Instant::now() < end, "not within {SOON:?}: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// An engine with its demo agent that shows notices on a bus.
pub struct World {
    pub running: RunningEngine,
    pub events: broadcast::Receiver<NoticeEvent>,
    pub _folder: tempfile::TempDir,
}

pub fn options(folder: &Path, address: &str) -> EngineOptions {
    EngineOptions {
        data_dir: DataDir::at(folder),
        gateway: "127.0.0.1:0".parse().unwrap(),
        inbox: "127.0.0.1:0".parse().unwrap(),
        ports_taken: PortsTaken::Refuse,
        credential_store: CredentialStore::Memory,
        demo: true,
        windows: Windows::new(),
        notices: Notices::ShownOn(address.to_owned()),
    }
}

pub async fn send(running: &RunningEngine, text: &str) -> TaskRef {
    let outgoing = Outgoing { text: text.to_owned(), context_id: None, parts: Vec::new(), push: None };
    match running.engine().send(&AgentName::new("demo").unwrap(), outgoing).await.unwrap() {
        Sent::Task(key) => running.engine().summary_of(key).await.unwrap().task,
        other => panic!("a task, not {other:?}"),
    }
}

impl World {
    pub async fn start(address: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let running = RunningEngine::start(options(folder.path(), address)).await.unwrap();
        let events = running.engine().notifier().events();
        Self { running, events, _folder: folder }
    }

    pub async fn send(&self, text: &str) -> TaskRef {
        send(&self.running, text).await
    }

    pub async fn notices(&self) -> Vec<NoticeView> {
        let mut items = self.running.engine().notices(None, 1_000).await.unwrap().items;
        items.reverse();
        items
    }

    pub async fn outcomes(&self) -> Vec<(String, String)> {
        let word = |outcome: Option<String>| outcome.unwrap_or_else(|| "pending".to_owned());
        self.notices().await.into_iter().map(|item| (item.kind, word(item.outcome))).collect()
    }

    pub async fn until_outcomes(&self, expected: &[(&str, &str)]) {
        let what = format!("{expected:?}");
        let is = |(kind, outcome): &(String, String), wanted: &(&str, &str)| {
            (kind.as_str(), outcome.as_str()) == *wanted
        };
        until(&what, async || {
            let now = self.outcomes().await;
            now.len() == expected.len() && now.iter().zip(expected).all(|(one, wanted)| is(one, wanted))
        })
        .await;
    }
}
