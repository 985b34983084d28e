//! Callbacks: how many a second are acknowledged after their flush, how late at an even pace, and whether an
//! unknown address takes another time than a wrong secret.
//!
//! Every receiver gets the same requests by the same sender: 600 octets, each body another, a token as its proof,
//! over connections that stay open. Ours proves, parses, stores, counts repeats, marks the task due and announces;
//! what it is measured beside does less.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use taskbell_core::callback::{Digest, ProofPolicy, RegistrationPath};
use taskbell_core::dialect::read;
use taskbell_core::ids::AgentName;
use taskbell_engine::store::registrations::{NewRegistration, Purpose, insert};
use taskbell_engine::store::task_records::{Adoption, Told, adopt};
use taskbell_engine::store::tasks::{Channel, TaskSource};
use taskbell_engine::store::{Store, StoreError, WriteContext, agents, wall_clock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::program::{Program, folder, text};
use crate::roles::receiver::TOKEN;
use crate::table::{Figure, Table, percentile};
use crate::{Failure, Scale};

/// Ours takes 50 callbacks a second of one registration.
const REGISTRATIONS: usize = 2_000;
const BODY_BYTES: usize = 600;
const AT_ONCE: [usize; 3] = [1, 16, 64];
/// The even pace.
const PER_SECOND: u64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ours,
    Bare,
    Grouped,
    Single,
    Python,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Ours, Self::Bare, Self::Grouped, Self::Single, Self::Python];

    fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Bare => "bare axum, nothing stored",
            Self::Grouped => "group commit alone",
            Self::Single => "one commit a request",
            Self::Python => "Starlette and SQLite",
        }
    }

    fn target(self) -> &'static str {
        match self {
            Self::Bare => "≥ 0.3 × at 64",
            Self::Grouped => "≥ 0.65 × at 64",
            Self::Single => "≥ 5 × at 64",
            Self::Python => "≥ 8 × at 64",
            Self::Ours => "–",
        }
    }
}

/// What was measured of one receiver.
#[derive(Default)]
struct Measured {
    /// Callbacks a second, by the number of connections.
    rates: [Vec<f64>; AT_ONCE.len()],
    /// 99th percentile at full speed, milliseconds.
    p99: [Vec<f64>; AT_ONCE.len()],
    /// The same at the even pace.
    paced: Vec<f64>,
}

pub async fn run(scale: Scale, table: &mut Table) -> Result<(), Failure> {
    let window = Duration::from_millis(scale.pick(3_000, 300));
    let mut all: Vec<(Kind, Measured)> = Kind::ALL.map(|kind| (kind, Measured::default())).into();
    // In turn, so that a machine that changes its pace is the same for all.
    for _ in 0..scale.runs() {
        for (kind, measured) in &mut all {
            if let Err(error) = measure(*kind, window, measured).await {
                eprintln!("{} was not measured: {error}", kind.name());
            }
        }
    }
    let ours = all.remove(0).1;
    for (place, connections) in AT_ONCE.into_iter().enumerate() {
        for (kind, measured) in &all {
            table.add_beside(
                format!("callbacks acknowledged, {connections} connections"),
                Figure::new(ours.rates[place].clone(), "/s"),
                (kind.name(), Figure::new(measured.rates[place].clone(), "/s")),
                kind.target(),
            );
        }
        table.add_beside(
            format!("p99 at that speed, {connections} connections"),
            Figure::new(ours.p99[place].clone(), "ms"),
            (Kind::Grouped.name(), Figure::new(all[1].1.p99[place].clone(), "ms")),
            "–",
        );
    }
    for (kind, measured) in &all {
        table.add_beside(
            format!("callbacks at {PER_SECOND} a second: p99"),
            Figure::new(ours.paced.clone(), "ms"),
            (kind.name(), Figure::new(measured.paced.clone(), "ms")),
            if *kind == Kind::Grouped { "≤ 1.5 ×" } else { "–" },
        );
    }
    let (unknown, wrong) = refusals(scale).await?;
    table.add_beside(
        "401 for an unknown address: median",
        Figure::new(unknown, "µs"),
        ("for a wrong secret", Figure::new(wrong, "µs")),
        "within 5 µs",
    );
    Ok(())
}

async fn measure(kind: Kind, window: Duration, measured: &mut Measured) -> Result<(), Failure> {
    let data = folder()?;
    let mut program = start(kind, data.path()).await?;
    let inbox = program.answer().await?["inbox"].as_str().ok_or("no inbox")?.to_owned();
    let address = inbox.trim_start_matches("http://").to_owned();
    let next = Arc::new(AtomicU64::new(0));
    full_speed(&address, 16, window / 4, &next).await?; // Warm.
    for (place, connections) in AT_ONCE.into_iter().enumerate() {
        let mut late = full_speed(&address, connections, window, &next).await?;
        measured.rates[place].push(late.len() as f64 / window.as_secs_f64());
        late.sort_by(f64::total_cmp);
        measured.p99[place].push(percentile(&late, 0.99));
    }
    let mut late = at_pace(&address, window, &next).await?;
    late.sort_by(f64::total_cmp);
    measured.paced.push(percentile(&late, 0.99));
    program.kill().await
}

async fn start(kind: Kind, data: &Path) -> Result<Program, Failure> {
    let data_text = text(data)?;
    match kind {
        Kind::Ours => {
            seed(data).await?;
            Program::role(&["engine", data_text])
        }
        Kind::Bare => Program::role(&["receiver", "bare", data_text]),
        Kind::Grouped => Program::role(&["receiver", "grouped", data_text]),
        Kind::Single => Program::role(&["receiver", "single", data_text]),
        Kind::Python => {
            let here = Path::new(env!("CARGO_MANIFEST_DIR"));
            let mut command = Command::new(super::python_peer("py1").await?);
            command.arg(here.join("peers/receiver.py")).arg(data.join("callbacks.db"));
            Program::start("receiver.py", command)
        }
    }
}

/// Tasks that have ended, so that nothing is followed, and a registration for each.
async fn seed(data: &Path) -> Result<(), Failure> {
    let (store, _) = Store::open(data, wall_clock())?;
    store.write(seed_rows).await?;
    Ok(store.close(Duration::from_secs(10)).await?)
}

fn seed_rows(context: &mut WriteContext<'_>) -> Result<(), StoreError> {
    let name = AgentName::new("elsewhere").expect("a name");
    let origin = "http://127.0.0.1:9".parse().expect("an origin");
    let agent = agents::NewAgent {
        name: &name,
        registered_url: "http://127.0.0.1:9/",
        origin: &origin,
        use_card_url: false,
        allow_http: false,
    };
    let agent = agents::insert(context, &agent)?;
    for number in 0..REGISTRATIONS {
        let task = serde_json::json!({"id": task(number), "status": {"state": "completed"}});
        let adoption = Adoption {
            source: TaskSource::Watch,
            channel: Channel::Manual,
            told: Told::ByGetTask,
            title: "of the bench",
            credential_version: 0,
        };
        let (task, _) = adopt(context, agent, read::task(task).expect("a task"), 1, adoption)?;
        let path = RegistrationPath::parse(&path(number)).expect("26 of a-z and 0-9");
        let new = NewRegistration {
            path: &path,
            purpose: Purpose::Task,
            agent: Some(agent),
            task: Some(task),
            config_id: "c",
            url: "http://127.0.0.1/",
            policy: ProofPolicy::Any,
            key_version: 1,
            token: Some(Digest::of(TOKEN.as_bytes())),
            credential: None,
        };
        insert(context, &new)?;
    }
    Ok(())
}

fn path(number: usize) -> String {
    format!("bench{number:021}")
}

fn task(number: usize) -> String {
    format!("task-{number}")
}

fn request(host: &str, count: u64) -> Vec<u8> {
    let number = count as usize % REGISTRATIONS;
    let head = format!(
        r#"{{"statusUpdate":{{"taskId":"{}","contextId":"c","status":{{"state":"working"}},"metadata":{{"n":{count},"x":""#,
        task(number)
    );
    let tail = "\"}}}";
    let body = format!("{head}{}{tail}", "x".repeat(BODY_BYTES.saturating_sub(head.len() + tail.len())));
    of(host, &path(number), TOKEN, &body)
}

fn of(host: &str, path: &str, token: &str, body: &str) -> Vec<u8> {
    format!(
        "POST /a2a/callbacks/{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         A2A-Notification-Token: {token}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A connection that stays open. No HTTP library: what is measured is the other side.
struct Sender {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl Sender {
    async fn connect(address: &str) -> Result<Self, Failure> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, buffer: Vec::with_capacity(4_096) })
    }

    /// Sends and waits for the whole answer; its status.
    async fn send(&mut self, request: &[u8]) -> Result<u16, Failure> {
        self.socket.write_all(request).await?;
        self.buffer.clear();
        loop {
            if self.socket.read_buf(&mut self.buffer).await? == 0 {
                return Err("the receiver ended a connection".into());
            }
            let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
            let head = std::str::from_utf8(&self.buffer[..end])?.to_ascii_lowercase();
            let length = head.split("\r\n").find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.ok_or("an answer without a length")?.trim().parse()?;
            if self.buffer.len() >= end + 4 + length {
                return Ok(head.get(9..12).ok_or("no status")?.parse()?);
            }
        }
    }
}

/// Milliseconds of each callback that was acknowledged.
async fn full_speed(
    address: &str,
    connections: usize,
    window: Duration,
    next: &Arc<AtomicU64>,
) -> Result<Vec<f64>, Failure> {
    let began = Instant::now();
    let mut senders = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let (mut sender, next, host) =
            (Sender::connect(address).await?, Arc::clone(next), address.to_owned());
        senders.spawn(async move {
            let mut late = Vec::new();
            while began.elapsed() < window {
                let request = request(&host, next.fetch_add(1, Ordering::Relaxed));
                let sent = Instant::now();
                taken(sender.send(&request).await?)?;
                late.push(sent.elapsed().as_secs_f64() * 1e3);
            }
            Ok::<_, Failure>(late)
        });
    }
    collect(senders).await
}

/// The same at an even pace. Late is late against the time at which it should have left.
async fn at_pace(address: &str, window: Duration, next: &Arc<AtomicU64>) -> Result<Vec<f64>, Failure> {
    const CONNECTIONS: u64 = 64;
    let began = tokio::time::Instant::now() + Duration::from_millis(50);
    let mut senders = tokio::task::JoinSet::new();
    for connection in 0..CONNECTIONS {
        let (mut sender, next, host) =
            (Sender::connect(address).await?, Arc::clone(next), address.to_owned());
        senders.spawn(async move {
            let mut late = Vec::new();
            for turn in 0.. {
                let due = Duration::from_micros((turn * CONNECTIONS + connection) * 1_000_000 / PER_SECOND);
                if due >= window {
                    break;
                }
                let request = request(&host, next.fetch_add(1, Ordering::Relaxed));
                tokio::time::sleep_until(began + due).await;
                // The timer's own grain is a millisecond and no matter of the receiver.
                let sent = tokio::time::Instant::now();
                taken(sender.send(&request).await?)?;
                late.push(sent.elapsed().as_secs_f64() * 1e3);
            }
            Ok::<_, Failure>(late)
        });
    }
    collect(senders).await
}

fn taken(status: u16) -> Result<(), Failure> {
    if status == 200 { Ok(()) } else { Err(format!("a callback was answered with {status}").into()) }
}

async fn collect(mut senders: tokio::task::JoinSet<Result<Vec<f64>, Failure>>) -> Result<Vec<f64>, Failure> {
    let mut all = Vec::new();
    while let Some(done) = senders.join_next().await {
        all.extend(done??);
    }
    Ok(all)
}

/// Microseconds of refusals, in turn over one connection: unknown addresses, wrong secrets. Medians of each run.
async fn refusals(scale: Scale) -> Result<(Vec<f64>, Vec<f64>), Failure> {
    let data = folder()?;
    let mut program = start(Kind::Ours, data.path()).await?;
    let inbox = program.answer().await?["inbox"].as_str().ok_or("no inbox")?.to_owned();
    let address = inbox.trim_start_matches("http://").to_owned();
    let mut sender = Sender::connect(&address).await?;
    let (mut unknown, mut wrong) = (Vec::new(), Vec::new());
    for _ in 0..scale.runs() {
        let mut micros = [Vec::new(), Vec::new()];
        for turn in 0..scale.pick(20_000, 500) {
            let path = if turn % 2 == 0 { format!("nobody{turn:020}") } else { path(turn % REGISTRATIONS) };
            let request = of(&address, &path, "wrong", "");
            let sent = Instant::now();
            let status = sender.send(&request).await?;
            if status != 401 {
                return Err(format!("a wrong secret was answered with {status}").into());
            }
            micros[turn % 2].push(sent.elapsed().as_secs_f64() * 1e6);
        }
        let [mut first, mut second] = micros;
        first.sort_by(f64::total_cmp);
        second.sort_by(f64::total_cmp);
        unknown.push(percentile(&first, 0.5));
        wrong.push(percentile(&second, 0.5));
    }
    program.kill().await?;
    Ok((unknown, wrong))
}
