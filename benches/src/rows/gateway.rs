//! The same events direct, through relays and through the gateway: what each adds, carries and weighs.
//!
//! nginx, Caddy and the bare relay pass octets on; the gateway follows every task, merges and stores every event,
//! keeps a log for who comes back, and writes each frame for its listener.

use std::path::Path;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::sleep;

use super::number;
use crate::program::{Program, folder, text};
use crate::roles::{engine, listeners, ticker};
use crate::table::{Figure, Table};
use crate::{Failure, Scale};

const SETTLE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    Nginx,
    Caddy,
    Bare,
    Gateway,
}

impl Way {
    /// What the gateway is measured beside.
    const PEERS: [Self; 3] = [Self::Nginx, Self::Caddy, Self::Bare];

    fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::Caddy => "Caddy",
            Self::Bare => "bare axum relay",
            Self::Gateway => "gateway",
        }
    }
}

/// One figure of ours, and the same of each peer.
#[derive(Default)]
struct Beside {
    ours: Vec<f64>,
    peers: [Vec<f64>; Way::PEERS.len()],
}

impl Beside {
    fn put(&mut self, way: Way, value: f64) {
        match Way::PEERS.iter().position(|peer| *peer == way) {
            Some(place) => self.peers[place].push(value),
            None => self.ours.push(value),
        }
    }

    /// Each peer with the target that it is the anchor of.
    fn show(self, table: &mut Table, what: &str, unit: &'static str, target: impl Fn(Way) -> &'static str) {
        for (peer, values) in Way::PEERS.into_iter().zip(self.peers) {
            let (ours, theirs) = (Figure::new(self.ours.clone(), unit), Figure::new(values, unit));
            table.add_beside(what, ours, (peer.name(), theirs), target(peer));
        }
    }
}

/// The gateway and its peers, in turn within each run.
fn relays() -> impl Iterator<Item = Way> {
    Way::PEERS.into_iter().chain([Way::Gateway])
}

/// The agent, what stands before it, and who listens.
struct Line {
    ticker: Program,
    /// None on the direct way.
    relay: Option<Program>,
    listeners: Program,
    url: String,
    key: Option<String>,
    _folder: tempfile::TempDir,
}

impl Line {
    async fn start(way: Way) -> Result<Self, Failure> {
        let mut ticker = Program::role(&["ticker"])?;
        let agent = ticker.answer().await?["url"].as_str().ok_or("the agent has no address")?.to_owned();
        let folder = folder()?;
        let (relay, url, key) = match way {
            Way::Direct => (None, format!("{agent}/"), None),
            Way::Nginx => {
                let (nginx, url) = nginx(folder.path(), &agent).await?;
                (Some(nginx), url, None)
            }
            Way::Caddy => {
                let (caddy, url) = caddy(folder.path(), &agent).await?;
                (Some(caddy), url, None)
            }
            Way::Bare => {
                let mut relay = Program::role(&["relay", &format!("{agent}/")])?;
                let url = relay.answer().await?["url"].as_str().ok_or("the relay has no address")?.to_owned();
                (Some(relay), url, None)
            }
            Way::Gateway => {
                let mut engine = Program::role(&["engine", text(folder.path())?])?;
                engine.answer().await?;
                engine.ask(&engine::Question::Add { url: agent.clone() }).await?;
                let client = engine.ask(&engine::Question::Client).await?;
                let url = client["url"].as_str().ok_or("the gateway has no address")?.to_owned();
                (Some(engine), url, client["key"].as_str().map(str::to_owned))
            }
        };
        let mut listeners = Program::role(&["listeners"])?;
        listeners.answer().await?;
        Ok(Self { ticker, relay, listeners, url, key, _folder: folder })
    }

    async fn listen(&mut self, tasks: usize, listeners: usize, read: bool) -> Result<(), Failure> {
        let (url, key) = (self.url.clone(), self.key.clone());
        self.listeners.ask(&listeners::Question::Listen { url, key, tasks, listeners, read }).await?;
        Ok(())
    }

    async fn pace(&mut self, pace: ticker::Pace) -> Result<(), Failure> {
        self.ticker.ask(&ticker::Question::Pace { pace }).await?;
        Ok(())
    }

    async fn heard(&mut self, window: Duration) -> Result<Window, Failure> {
        let ms = u64::try_from(window.as_millis())?;
        let answer = self.listeners.ask(&listeners::Question::Window { ms }).await?;
        let per_second = number(&answer, "events")? / window.as_secs_f64();
        Ok(Window { per_second, p50: number(&answer, "p50")?, p99: number(&answer, "p99")? })
    }

    async fn end(self) -> Result<(), Failure> {
        self.listeners.kill().await?;
        if let Some(relay) = self.relay {
            relay.kill().await?;
        }
        self.ticker.kill().await
    }
}

/// What was heard; ages in microseconds.
struct Window {
    per_second: f64,
    p50: f64,
    p99: f64,
}

/// One process, so that its memory is its own.
async fn nginx(folder: &Path, agent: &str) -> Result<(Program, String), Failure> {
    let port = free_port()?;
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {name};"))
        .concat();
    let configuration = format!(
        "daemon off; master_process off; pid nginx.pid; error_log error.log; worker_rlimit_nofile 65536;\n\
         events {{ worker_connections 16384; }}\n\
         http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port} backlog=4096;\n\
         location / {{ proxy_pass {agent}; proxy_http_version 1.1; proxy_set_header Connection \"\";\n\
         proxy_buffering off; proxy_read_timeout 1h; }} }} }}\n"
    );
    std::fs::write(folder.join("nginx.conf"), configuration)?;
    let mut command = Command::new("/usr/sbin/nginx");
    command.args(["-p", text(folder)?, "-c", "nginx.conf", "-e", "error.log"]);
    let program = Program::start(Way::Nginx.name(), command)?;
    Ok((program, once_it_listens(port, Way::Nginx).await?))
}

/// With its defaults, but for what it would ask of the machine: certificates and a port to be told by.
async fn caddy(folder: &Path, agent: &str) -> Result<(Program, String), Failure> {
    let port = free_port()?;
    let configuration = format!(
        "{{\n admin off\n auto_https off\n log {{\n  level FATAL\n }}\n}}\n\
         http://127.0.0.1:{port} {{\n bind 127.0.0.1\n reverse_proxy {agent} {{\n  flush_interval -1\n }}\n}}\n"
    );
    std::fs::write(folder.join("Caddyfile"), configuration)?;
    let mut command = Command::new("caddy");
    command.args(["run", "--config", "Caddyfile", "--adapter", "caddyfile"]).current_dir(folder);
    command.env("HOME", folder).env("XDG_DATA_HOME", folder).env("XDG_CONFIG_HOME", folder);
    let program = Program::start(Way::Caddy.name(), command)?;
    Ok((program, once_it_listens(port, Way::Caddy).await?))
}

fn free_port() -> Result<u16, Failure> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

async fn once_it_listens(port: u16, way: Way) -> Result<String, Failure> {
    for _ in 0..200 {
        if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return Ok(format!("http://127.0.0.1:{port}/"));
        }
        sleep(Duration::from_millis(20)).await;
    }
    Err(format!("{} does not listen", way.name()).into())
}

pub async fn run(scale: Scale, table: &mut Table) -> Result<(), Failure> {
    let window = Duration::from_secs(scale.pick(10, 2));
    let streams = scale.pick(1_000, 50);
    for every_ms in scale.pick(vec![1_000, 100], vec![100]) {
        latency(scale, table, streams, every_ms, window).await?;
    }
    saturation(scale, table, window).await?;
    memory(scale, table, streams).await?;
    many_listeners(scale, table, window).await
}

async fn latency(
    scale: Scale,
    table: &mut Table,
    streams: usize,
    every_ms: u64,
    window: Duration,
) -> Result<(), Failure> {
    let rate = streams as u64 * 1_000 / every_ms;
    let (mut p50, mut p99) = (Beside::default(), Beside::default());
    for _ in 0..scale.runs() {
        let direct = aged(Way::Direct, streams, every_ms, window).await?;
        for way in relays() {
            let relayed = aged(way, streams, every_ms, window).await?;
            let share = relayed.per_second / rate as f64;
            if share < 0.9 {
                eprintln!("{} carried {:.0} of {rate} events a second", way.name(), relayed.per_second);
            }
            p50.put(way, (relayed.p50 - direct.p50) / 1e3);
            p99.put(way, (relayed.p99 - direct.p99) / 1e3);
        }
    }
    for (name, figures) in [("p50", p50), ("p99", p99)] {
        let what = format!("{streams} streams, {rate} events a second: added latency, {name}");
        figures.show(table, &what, "ms", |way| match way {
            Way::Caddy => "≤ Caddy's",
            Way::Direct | Way::Nginx | Way::Bare | Way::Gateway => "–",
        });
    }
    Ok(())
}

async fn aged(way: Way, streams: usize, every_ms: u64, window: Duration) -> Result<Window, Failure> {
    let mut line = Line::start(way).await?;
    line.listen(streams, 1, true).await?;
    line.pace(ticker::Pace::EveryMs(every_ms)).await?;
    sleep(SETTLE).await;
    let heard = line.heard(window).await?;
    line.end().await?;
    Ok(heard)
}

async fn saturation(scale: Scale, table: &mut Table, window: Duration) -> Result<(), Failure> {
    let mut carried = Beside::default();
    for _ in 0..scale.runs() {
        for way in relays() {
            let mut line = Line::start(way).await?;
            line.listen(16, 1, true).await?;
            line.pace(ticker::Pace::Flood).await?;
            sleep(SETTLE).await;
            carried.put(way, line.heard(window).await?.per_second);
            line.end().await?;
        }
    }
    let what = "16 streams, events as fast as they are taken: events a second";
    carried.show(table, what, "/s", |way| match way {
        Way::Nginx => "≥ 0.4 × nginx",
        Way::Direct | Way::Caddy | Way::Bare | Way::Gateway => "–",
    });
    Ok(())
}

async fn memory(scale: Scale, table: &mut Table, streams: usize) -> Result<(), Failure> {
    for (read, what) in [(true, "quiet"), (false, "flooded, with a listener that never reads")] {
        let mut weighed = Beside::default();
        for _ in 0..scale.runs() {
            for way in relays() {
                let mut line = Line::start(way).await?;
                sleep(SETTLE).await;
                let weight = |line: &Line| line.relay.as_ref().ok_or("no relay")?.memory_kib();
                let before = weight(&line)?;
                line.listen(streams, 1, read).await?;
                if !read {
                    line.pace(ticker::Pace::EveryMs(100)).await?;
                    sleep(SETTLE * 2).await;
                }
                sleep(SETTLE).await;
                weighed.put(way, (weight(&line)? - before) / streams as f64);
                line.end().await?;
            }
        }
        let what = format!("{streams} relayed streams, {what}: memory (PSS) a stream");
        weighed.show(table, &what, "KiB", |way| match way {
            Way::Bare if read => "≤ 2 × a bare relay's",
            Way::Direct | Way::Nginx | Way::Caddy | Way::Bare | Way::Gateway if read => "–",
            Way::Direct | Way::Nginx | Way::Caddy | Way::Bare | Way::Gateway => "bounded",
        });
    }
    Ok(())
}

/// Ten local clients on each task: one stream upstream against ten.
async fn many_listeners(scale: Scale, table: &mut Table, window: Duration) -> Result<(), Failure> {
    let tasks = scale.pick(100, 5);
    let (mut cost, mut upstream) = (Beside::default(), Beside::default());
    for _ in 0..scale.runs() {
        for way in relays() {
            let mut line = Line::start(way).await?;
            line.listen(tasks, 10, true).await?;
            line.pace(ticker::Pace::EveryMs(200)).await?;
            sleep(SETTLE).await;
            let cpu = |line: &Line| line.relay.as_ref().ok_or("no relay")?.cpu_seconds();
            let before = cpu(&line)?;
            let heard = line.heard(window).await?;
            let events = heard.per_second * window.as_secs_f64();
            cost.put(way, (cpu(&line)? - before) * 1e6 / events);
            let streams = line.ticker.ask(&ticker::Question::Streams).await?;
            upstream.put(way, number(&streams, "streams")?);
            line.end().await?;
        }
    }
    let what = format!("{tasks} tasks, ten listeners each: CPU a delivered event, stored");
    cost.show(table, &what, "µs", |way| match way {
        Way::Bare => "≤ 0.8 × a bare relay's",
        Way::Direct | Way::Nginx | Way::Caddy | Way::Gateway => "–",
    });
    let what = format!("{tasks} tasks, ten listeners each: streams at the agent");
    upstream.show(table, &what, "", |_| "one a task");
    Ok(())
}
