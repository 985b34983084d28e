//! The tunnel: a command that is kept running, its address, and the renewal when that is another.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use taskbell_tests::ports::free_port;
use taskbell_tests::process::Process;
use taskbell_tests::{GatewayB, Taskbell, eventually, wait_until};
use tempfile::TempDir;

use crate::stage::{PATIENCE, api, list, registration};

const TOKEN: &str = "token-of-alice";

async fn reaches(taskbell: &Taskbell, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    wait_until(PATIENCE, what, async || {
        let view = api(taskbell, "reachability").await;
        holds(&view).then_some(view)
    })
    .await
}

fn is_alive(pid: &str) -> bool {
    Path::new("/proc").join(pid.trim()).exists()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_is_kept_its_address_used_and_what_is_registered_renewed_with_another() {
    let folder = TempDir::with_prefix("taskbell-tunnel-").expect("a temporary folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(file("address"), "https://one.example.com").expect("a folder of our own");
    let script = format!(
        "#!/bin/sh\necho $$ > {pid}\necho \"$1\" > {inbox}\nenv > {env}\necho 'see https://github.com/x for help'\n\
         echo \"| your address is $(cat {address}) |\" >&2\nexec sleep 600\n",
        pid = file("pid"),
        inbox = file("inbox"),
        env = file("env"),
        address = file("address"),
    );
    std::fs::write(file("tunnel.sh"), script).expect("a folder of our own");
    let gateway = GatewayB::start(TOKEN).await;
    let mut taskbell = Taskbell::setup().silence(2).credential_file("hush hush passphrase").start().await;
    taskbell.add_agent_with_token("b", &gateway.url(), TOKEN).await;
    let command = format!("sh {} {{inbox}}", file("tunnel.sh"));
    taskbell.cli(&["settings", "set", "tunnel.command", &command]).await.exits(0);
    let view = reaches(&taskbell, "the tunnel is up", |view| view["tunnel"] == "up").await;
    assert_eq!(
        (view["publicUrl"].as_str(), view["source"].as_str()),
        (Some("https://one.example.com"), Some("tunnel"))
    );
    let told = std::fs::read_to_string(file("inbox")).expect("it was told");
    assert_eq!(format!("http://{}", told.trim()), taskbell.ready().inbox);
    let environment = std::fs::read_to_string(file("env")).expect("it wrote it down");
    assert!(!environment.contains("hush hush"), "the passphrase is not a tunnel's business");
    let task = taskbell.send("b", "a long run").await;
    registration(&taskbell, &task, "active").await;

    std::fs::write(file("address"), "https://two.example.com").expect("a folder of our own");
    let first = std::fs::read_to_string(file("pid")).expect("it wrote it down");
    Command::new("kill").arg(first.trim()).status().expect("kill runs");
    reaches(&taskbell, "it has another address", |view| view["publicUrl"] == "https://two.example.com").await;
    wait_until(PATIENCE, "the registration is renewed", async || {
        let items = list(&taskbell, &task).await;
        let url = items[0]["url"].as_str().unwrap_or_default();
        (url.starts_with("https://two.example.com") && items[0]["state"] == "active").then_some(())
    })
    .await;
    assert_eq!(gateway.callbacks(task.id()), 1);

    let second = std::fs::read_to_string(file("pid")).expect("it wrote it down");
    assert!(is_alive(&second));
    taskbell.stop().await;
    eventually(PATIENCE, "the tunnel ends with its engine", || !is_alive(&second)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_that_fails_says_why_and_goes_when_it_is_unset() {
    let taskbell = Taskbell::start().await;
    let command = "echo 'no account, see https://dashboard.ngrok.com' >&2; exit 3";
    taskbell.cli(&["settings", "set", "tunnel.command", command]).await.exits(0);
    let view = reaches(&taskbell, "it is down", |view| view["tunnel"] == "down").await;
    assert!(view["tunnelDetail"].as_str().is_some_and(|detail| detail.contains("no account")), "{view}");
    assert!(view["publicUrl"].is_null(), "a dashboard is no tunnel: {view}");
    let doctor = taskbell.cli_text(&["doctor"]).await;
    assert!(doctor.stdout.contains("no account"), "{}", doctor.stdout);
    taskbell.cli(&["settings", "set", "tunnel.command", ""]).await.exits(0);
    reaches(&taskbell, "there is none", |view| view["tunnel"] == "off").await;
}

/// What a process started, and what that started.
fn descendants(pid: i32) -> Vec<i32> {
    let listed = Command::new("ps").args(["-o", "pid=", "--ppid", &pid.to_string()]).output();
    let listed = String::from_utf8_lossy(&listed.expect("ps runs").stdout).into_owned();
    let children: Vec<i32> = listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    children.iter().flat_map(|child| [vec![*child], descendants(*child)].concat()).collect()
}

/// An ssh server of this test alone.
struct SshServer {
    folder: TempDir,
    port: u16,
}

impl SshServer {
    fn new() -> Option<Self> {
        if !Path::new("/usr/sbin/sshd").exists() {
            println!("skipped: this machine has no ssh server");
            return None;
        }
        let folder = TempDir::with_prefix("taskbell-ssh-").expect("a temporary folder");
        for key in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", key])
                .current_dir(folder.path())
                .status();
            assert!(made.is_ok_and(|status| status.success()), "ssh-keygen");
        }
        std::fs::copy(folder.path().join("user.pub"), folder.path().join("authorized")).expect("copied");
        Some(Self { folder, port: free_port() })
    }

    async fn start(&self) -> Process {
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        let conf = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {key}\nPidFile {pid}\nAuthorizedKeysFile {keys}\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nAllowTcpForwarding remote\n\
             PermitRootLogin prohibit-password\n",
            port = self.port,
            key = file("host"),
            pid = file("sshd.pid"),
            keys = file("authorized"),
        );
        std::fs::write(file("conf"), conf).expect("a folder of our own");
        // Where the system's own server was never started this is missing; it stays empty.
        std::fs::create_dir_all("/run/sshd").expect("root may make it");
        let conf = file("conf");
        let server = Process::start("sshd", Path::new("/usr/sbin/sshd"), |command| {
            command.args(["-D", "-e", "-f", &conf]);
        });
        wait_until(PATIENCE, "sshd listens", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.ok().map(drop)
        })
        .await;
        server
    }

    /// The setting for a tunnel to it that ends at `remote`.
    fn command(&self, remote: u16) -> String {
        let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
        format!(
            "ssh-remote {user}@127.0.0.1 127.0.0.1:{remote} -p {} -i {} -o UserKnownHostsFile=/dev/null \
             -o StrictHostKeyChecking=no",
            self.port,
            self.folder.path().join("user").display(),
        )
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ssh_preset_leads_to_the_inbox_and_comes_back_with_its_server() {
    let Some(server) = SshServer::new() else { return };
    let mut running = server.start().await;
    let remote = free_port();
    let taskbell = Taskbell::setup().arg("--public-url").arg("https://inbox.example.com").start().await;
    taskbell.cli(&["settings", "set", "tunnel.command", &server.command(remote)]).await.exits(0);
    let callback = format!("http://127.0.0.1:{remote}/a2a/callbacks/abcdefghijklmnopqrstuvwxyz");
    let is_through = async || {
        let request = taskbell_tests::a2a::http().post(&callback).header("Host", "inbox.example.com");
        let answer = request.header("Content-Type", "application/json").body("{}").send().await.ok()?;
        // Nobody registered that one: the inbox's own answer.
        (answer.status().as_u16() == 401).then_some(())
    };
    wait_until(PATIENCE, "a callback comes through", is_through).await;
    assert_eq!(api(&taskbell, "reachability").await["tunnel"], "up");
    // The sessions are processes of their own, which outlive the listener.
    let sessions = descendants(running.pid());
    running.kill().await;
    for session in sessions {
        Command::new("kill").arg("-9").arg(session.to_string()).status().expect("kill runs");
    }
    let view = reaches(&taskbell, "the lost server is noticed", |view| view["tunnel"] == "down").await;
    assert!(view["tunnelDetail"].is_string(), "{view}");
    let _running = server.start().await;
    wait_until(PATIENCE, "callbacks come through again", is_through).await;
}
