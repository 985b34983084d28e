//! Receivers, and a network of the test's own.
//!
//! Two namespaces without a way out, joined by a pair of cables: the engine and the test in one, receivers in the
//! other at addresses that are public and not on the link. Names are in a hosts file of the test's own, certificates
//! are by an authority of its own. Needs root; without it a test says so and is skipped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use std::os::fd::AsFd as _;
use taskbell_tests::process::Process;
use taskbell_tests::taskbell::Setup;
use taskbell_tests::{Taskbell, wait_until};
use tempfile::TempDir;

use crate::stage::PATIENCE;

/// Where the receivers are.
pub const RECEIVER: &str = "93.184.216.34";
pub const OTHER: &str = "93.184.216.35";

/// A receiver, in Python or on Node.
pub struct Receiver {
    process: Process,
    seen: Vec<Value>,
    pub port: u16,
}

impl Receiver {
    pub async fn python() -> Self {
        Self::start("python3", &[&file("receiver.py"), "0"], 1).await
    }

    pub async fn python_at(port: u16) -> Self {
        Self::start("python3", &[&file("receiver.py"), &port.to_string()], 1).await
    }

    pub async fn node() -> Self {
        Self::start("node", &[&file("receiver.mjs")], 1).await
    }

    async fn start(program: &str, arguments: &[&str], ports: usize) -> Self {
        let process = Process::start("receiver", program, |command| {
            command.args(arguments);
        });
        let mut receiver = Self { process, seen: Vec::new(), port: 0 };
        for _ in 0..ports {
            let line = receiver.process.next_line(PATIENCE).await.expect("the receiver listens");
            let line: Value = serde_json::from_str(&line).expect("JSON");
            receiver.port = u16::try_from(line["listening"].as_u64().expect("a port")).expect("a port");
        }
        receiver
    }

    /// What came so far.
    pub async fn seen(&mut self) -> &[Value] {
        while let Some(line) = self.process.next_line(std::time::Duration::from_millis(1)).await {
            self.seen.push(serde_json::from_str(&line).expect("JSON"));
        }
        &self.seen
    }

    /// The first request that fits.
    pub async fn until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        wait_until(PATIENCE, what, async || self.seen().await.iter().find(|seen| fits(seen)).cloned()).await
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }
}

fn file(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("dispatcher").join(name).display().to_string()
}

/// The state that a body in 1.0 tells.
pub fn state_of(seen: &Value) -> String {
    let body: Value = serde_json::from_str(seen["body"].as_str().expect("a body")).expect("JSON");
    body["task"]["status"]["state"].as_str().unwrap_or_default().to_owned()
}

/// Two namespaces; this thread is in the first while it exists.
pub struct Network {
    inside: String,
    outside: String,
    home: File,
    pub files: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Network {
    /// `None`, with the reason printed: there is no network of one's own here.
    pub fn enter(test: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: {test} needs root for network namespaces");
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tb{}x{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let (inside, outside) = (format!("{name}i"), format!("{name}o"));
        if let Err(reason) = try_ip(&["netns", "add", &inside]) {
            println!("skipped: {test} needs network namespaces: {reason}");
            return None;
        }
        ip(&["netns", "add", &outside]);
        let home = File::open("/proc/thread-self/ns/net").expect("this thread's network");
        let files = TempDir::with_prefix("taskbell-test-").expect("a folder");
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"));
        let network = Self { inside, outside, home, files, authority: authority.expect("an authority") };
        network.cable();
        std::fs::write(network.path("ca.pem"), network.authority.pem()).expect("written");
        std::fs::write(network.path("resolv.conf"), "nameserver 127.0.0.1\noptions attempts:1 timeout:1\n")
            .expect("written");
        network.names(&[]);
        let within = File::open(format!("/run/netns/{}", network.inside)).expect("the namespace");
        move_into_link_name_space(within.as_fd(), Some(LinkNameSpaceType::Network)).expect("entered");
        Some(network)
    }

    fn cable(&self) {
        let (inside, outside) = (self.inside.as_str(), self.outside.as_str());
        ip(&[
            "link", "add", "near", "netns", inside, "type", "veth", "peer", "name", "far", "netns", outside,
        ]);
        for (space, link, address) in [(inside, "near", "10.77.0.1/30"), (outside, "far", "10.77.0.2/30")] {
            ip(&["-n", space, "addr", "add", address, "dev", link]);
            ip(&["-n", space, "link", "set", link, "up"]);
            ip(&["-n", space, "link", "set", "lo", "up"]);
        }
        for address in [RECEIVER, OTHER] {
            ip(&["-n", outside, "addr", "add", &format!("{address}/32"), "dev", "lo"]);
        }
        ip(&["-n", inside, "route", "add", "default", "via", "10.77.0.2"]);
    }

    /// Pulls the cable, or puts it back.
    pub fn plug(&self, is_in: bool) {
        ip(&["-n", &self.inside, "link", "set", "near", if is_in { "up" } else { "down" }]);
        if is_in {
            ip(&["-n", &self.inside, "route", "replace", "default", "via", "10.77.0.2"]);
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// From now on these names lead there, and no others anywhere. In place, for the file is mounted.
    pub fn names(&self, names: &[(&str, &str)]) {
        let mut text = "127.0.0.1 localhost\n".to_owned();
        for (name, address) in names {
            text.push_str(&format!("{address} {name}\n"));
        }
        std::fs::write(self.path("hosts"), text).expect("written");
    }

    /// A certificate for these names, `PORT:CERT:KEY` for the receiver.
    pub fn listener(&self, port: u16, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> String {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.authority).expect("signed");
        self.keep(port, &signed.pem(), &key)
    }

    /// By nobody but itself.
    pub fn self_signed(&self, port: u16, name: &str) -> String {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("names");
        let signed = params.self_signed(&key).expect("signed");
        self.keep(port, &signed.pem(), &key)
    }

    fn keep(&self, port: u16, certificate: &str, key: &KeyPair) -> String {
        let (cert, key_file) = (self.path(&format!("{port}.crt")), self.path(&format!("{port}.key")));
        std::fs::write(&cert, certificate).expect("written");
        std::fs::write(&key_file, key.serialize_pem()).expect("written");
        format!("{port}:{}:{}", cert.display(), key_file.display())
    }

    /// Receivers beyond the cable.
    pub async fn receiver(&self, listeners: &[String]) -> Receiver {
        let script = file("receiver.py");
        let python = which_python();
        let mut arguments = vec!["netns", "exec", self.outside.as_str(), python.as_str(), script.as_str()];
        arguments.extend(listeners.iter().map(String::as_str));
        Receiver::start("ip", &arguments, listeners.len()).await
    }

    /// An engine that sees our names and trusts our authority.
    pub fn setup(&self) -> Setup {
        let mounts = format!(
            "mount --bind {} /etc/hosts && mount --bind {} /etc/resolv.conf && exec \"$@\"",
            self.path("hosts").display(),
            self.path("resolv.conf").display()
        );
        let authority = self.path("ca.pem").display().to_string();
        Taskbell::setup()
            .under(&["/usr/bin/unshare", "--mount", "sh", "-c", &mounts, "sh"])
            .env("SSL_CERT_FILE", &authority)
            .env("HTTPS_PROXY", "http://127.0.0.1:9")
            .env("ALL_PROXY", "http://127.0.0.1:9")
            .env("https_proxy", "http://127.0.0.1:9")
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        move_into_link_name_space(self.home.as_fd(), Some(LinkNameSpaceType::Network)).expect("back home");
        for space in [&self.inside, &self.outside] {
            if let Err(reason) = try_ip(&["netns", "del", space]) {
                eprintln!("namespace {space} stays: {reason}");
            }
        }
    }
}

/// The interpreter itself, since what chooses among several may not work elsewhere.
fn which_python() -> String {
    let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    String::from_utf8(asked.expect("python3").stdout).expect("a path").trim().to_owned()
}

fn ip(arguments: &[&str]) {
    try_ip(arguments).unwrap_or_else(|reason| panic!("ip {arguments:?}: {reason}"));
}

fn try_ip(arguments: &[&str]) -> Result<(), String> {
    let program =
        ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip"].into_iter().find(|path| Path::new(path).exists());
    let Some(program) = program else { return Err("iproute2 is not installed".to_owned()) };
    let done = Command::new(program).args(arguments).output().map_err(|error| error.to_string())?;
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()) }
}
