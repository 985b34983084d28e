//! The agents, the engine that follows their tasks through proxies, and what happens to all of them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use futures::future::join_all;
use taskbell_tests::a2a::{Dialect, Direct};
use taskbell_tests::gateways::Tunnel;
use taskbell_tests::ports::free_port;
use taskbell_tests::process::Process;
use taskbell_tests::taskbell::{TaskName, binary};
use taskbell_tests::{
    Cut, Fault, FaultProxy, GatewayA, GatewayB, Peer, PeerKind, Taskbell, When, wait_until,
};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::Dice;

/// For what must come in the end: a loaded machine may take long.
pub const PATIENCE: Duration = Duration::from_secs(90);

const TOKEN: &str = "token-of-alice";
const PUBLIC: &str = "https://hooks.example.com";
/// Tasks that one round starts with each agent.
const TASKS: usize = 6;
const ROUND: Duration = Duration::from_secs(12);

/// What one task should have come to.
#[derive(Debug, Clone)]
pub struct Expected {
    pub round: usize,
    /// `completed` or `failed`, once it is known.
    pub end: Option<&'static str>,
    pub text: Option<String>,
    /// How often the task began to wait for an answer, at most.
    pub questions: usize,
}

#[derive(Debug, Default)]
pub struct Counts {
    pub tasks: usize,
    pub sends_unknown: usize,
    pub cuts: usize,
    pub faults: usize,
    pub outages: usize,
    pub engine_kills: usize,
    pub agent_kills: usize,
    pub replies: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tasks, sends_unknown, cuts, faults, outages, engine_kills, agent_kills, replies } = self;
        write!(
            f,
            "{tasks} tasks, {sends_unknown} sends with unknown outcome, {cuts} cuts, {faults} faults, {outages} outages, \
             {engine_kills} kills of the engine, {agent_kills} of an agent, {replies} replies"
        )
    }
}

pub struct World {
    pub taskbell: Taskbell,
    pub dice: Dice,
    /// The documents' gateways, whose tasks move when this test says so.
    pub a: GatewayA,
    pub b: GatewayB,
    demo: DemoAgent,
    /// Held for their tasks' sake.
    pub peers: Vec<(&'static str, Peer)>,
    pub proxies: BTreeMap<&'static str, FaultProxy>,
    pub expected: BTreeMap<String, Expected>,
    /// Memory and descriptors at the end of the rounds of this engine's life.
    pub measured: Vec<(u64, usize)>,
    pub counts: Counts,
}

/// The built-in agent, which keeps its tasks over a kill.
struct DemoAgent {
    port: u16,
    state: TempDir,
    process: Option<Process>,
}

impl DemoAgent {
    async fn start() -> Self {
        let state = TempDir::with_prefix("taskbell-test-").expect("a folder");
        let mut agent = Self { port: free_port(), state, process: None };
        agent.come_up().await;
        agent
    }

    async fn come_up(&mut self) {
        let (port, state) = (self.port, self.state.path().join("tasks"));
        self.process = Some(Process::start("demo agent", binary(), |command| {
            command.args(["demo-agent", "--addr", &format!("127.0.0.1:{port}"), "--state"]).arg(state);
        }));
        let card = format!("http://127.0.0.1:{port}/.well-known/agent-card.json");
        let http = taskbell_tests::a2a::http();
        wait_until(PATIENCE, "the demo agent answers", async || http.get(&card).send().await.ok()).await;
    }

    async fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().await;
        }
    }

    fn direct(&self) -> Direct {
        Direct::new(&format!("http://127.0.0.1:{}/", self.port), Dialect::V1)
    }
}

impl World {
    pub async fn begin(dice: Dice) -> Self {
        let (a, b) = (GatewayA::start(TOKEN).await, GatewayB::start(TOKEN).await);
        let demo = DemoAgent::start().await;
        let peers = vec![
            ("py03", Peer::start(PeerKind::Py03).await),
            ("py1", Peer::start(PeerKind::Py1).await),
            ("js1", Peer::start(PeerKind::Js1).await),
        ];
        let mut ports: Vec<_> = peers.iter().map(|(name, peer)| (*name, peer.port())).collect();
        ports.extend([("a", a.port()), ("b", b.port()), ("demo", demo.port)]);
        let mut proxies = BTreeMap::new();
        for (name, port) in ports {
            proxies.insert(name, FaultProxy::before(port).await);
        }
        let setup =
            Taskbell::setup().credential_file("of this test").arg("--public-url").arg(PUBLIC).silence(2);
        let taskbell = setup.start().await;
        for (name, proxy) in &proxies {
            let url = proxy.url();
            let mut add = vec!["agent", "add", &url, "--name", name];
            let command = format!("echo {TOKEN}");
            if matches!(*name, "a" | "b") {
                add.extend(["--token-command", &command]);
            }
            taskbell.cli(&add).await.ok();
        }
        let (expected, measured) = (BTreeMap::new(), Vec::new());
        let mut world = Self {
            taskbell,
            dice,
            a,
            b,
            demo,
            peers,
            proxies,
            expected,
            measured,
            counts: Counts::default(),
        };
        world.dig_tunnels();
        world
    }

    /// Callbacks to the public address lead to where the inbox is now.
    fn dig_tunnels(&mut self) {
        let tunnel = Tunnel { public: PUBLIC.to_owned(), local: self.taskbell.ready().inbox.clone() };
        self.a.set_tunnel(tunnel.clone());
        self.b.set_tunnel(tunnel);
    }

    /// Starts tasks, lets things happen for a while, and brings all to an end.
    pub async fn round(&mut self, round: usize) {
        self.start_tasks(round).await;
        let end = Instant::now() + ROUND;
        while Instant::now() < end {
            self.happen().await;
            let pause = self.dice.millis(300);
            sleep(pause).await;
        }
        for proxy in self.proxies.values() {
            proxy.heal();
        }
        self.end_tasks().await;
    }

    async fn start_tasks(&mut self, round: usize) {
        let mut wanted = Vec::new();
        for name in self.proxies.keys().copied() {
            for _ in 0..TASKS {
                let (steps, interval) = (self.dice.roll(12) + 1, self.dice.roll(9) + 1);
                let asks = self.dice.roll(3) == 0;
                let fails = self.dice.roll(4) == 0;
                let mut script = format!("steps={steps} interval=0.{interval}");
                if asks {
                    script.push_str(&format!(" ask={}", self.dice.roll(steps) + 1));
                }
                if fails {
                    script.push_str(" fail=yes");
                }
                let scripted = !matches!(name, "a" | "b");
                let expected = Expected {
                    round,
                    end: scripted.then_some(if fails { "failed" } else { "completed" }),
                    text: None,
                    questions: usize::from(asks && scripted),
                };
                wanted.push((name, format!("{script} round={round}"), expected));
            }
        }
        for some in wanted.chunks(6) {
            let sends = some.iter().map(|(agent, text, _)| {
                let taskbell = &self.taskbell;
                async move { taskbell.cli(&["send", agent, text]).await }
            });
            for (sent, (_, _, expected)) in join_all(sends).await.into_iter().zip(some) {
                match sent.code {
                    Some(0) => {
                        let name = TaskName::of(&sent.json()["task"]).as_str().to_owned();
                        self.expected.insert(name, expected.clone());
                        self.counts.tasks += 1;
                    }
                    // Bytes left and no answer came: nobody may repeat it.
                    Some(9) => self.counts.sends_unknown += 1,
                    _ => panic!("a send through a sound proxy failed: {sent:?}"),
                }
            }
        }
    }

    /// One thing that goes wrong, or on.
    async fn happen(&mut self) {
        let names: Vec<&'static str> = self.proxies.keys().copied().collect();
        let Some(&name) = self.dice.one_of(&names) else { return };
        match self.dice.roll(20) {
            0..=6 => self.move_a_task(),
            7..=9 => {
                let cut = *self.dice.one_of(&[Cut::CleanEnd, Cut::Reset, Cut::Silence]).expect("a choice");
                self.proxies[name].cut_streams(cut);
                self.counts.cuts += 1;
            }
            10..=12 => {
                let when = *self
                    .dice
                    .one_of(&[When::Subscribes, When::Gets, When::Registers, When::Calls])
                    .expect("a choice");
                let faults = [
                    Fault::bad_gateway(),
                    Fault::SwallowAnswer,
                    Fault::answer(429, "application/json", "{}"),
                    Fault::answer(200, "text/html", "<html>sign in</html>"),
                    Fault::CutAfter(self.dice.roll(900), Cut::Reset),
                    Fault::Drip(Duration::from_millis(1)),
                    Fault::Delay(Duration::from_millis(400)),
                ];
                let fault = self.dice.one_of(&faults).expect("a choice").clone();
                let times = self.dice.roll(4) + 1;
                // A send that meets a fault is another test's matter.
                let when = if when == When::Calls { When::Gets } else { when };
                self.proxies[name].set_times(when, fault, times);
                self.counts.faults += 1;
            }
            13 | 14 => {
                let outage = self.dice.millis(1_500);
                let proxy = self.proxies.get_mut(name).expect("a proxy");
                proxy.down().await;
                sleep(outage).await;
                proxy.up().await;
                self.counts.outages += 1;
            }
            15 => {
                self.demo.kill().await;
                let outage = self.dice.millis(800);
                sleep(outage).await;
                self.demo.come_up().await;
                self.counts.agent_kills += 1;
            }
            16 if self.dice.roll(2) == 0 => {
                self.taskbell.kill9().await;
                let outage = self.dice.millis(1_000);
                sleep(outage).await;
                self.taskbell.come_up().await;
                self.dig_tunnels();
                self.measured.clear();
                self.counts.engine_kills += 1;
            }
            _ => self.answer_one().await,
        }
    }

    /// A task of the documents' gateways goes on.
    fn move_a_task(&mut self) {
        let open: Vec<String> =
            self.expected.iter().filter(|(_, task)| task.end.is_none()).map(|(n, _)| n.clone()).collect();
        let Some(name) = self.dice.one_of(&open).cloned() else { return };
        match self.dice.roll(8) {
            0..=4 => self.tell(&name, "works", &format!("step {}", self.dice.0 % 1_000)),
            5 | 6 => {
                self.tell(&name, "asks", "which of the two?");
                self.expected.get_mut(&name).expect("it is open").questions += 1;
            }
            _ => self.end(&name),
        }
    }

    fn end(&mut self, name: &str) {
        let fails = self.dice.roll(3) == 0;
        let text = format!("the report of {name}");
        self.tell(name, if fails { "fails" } else { "finishes" }, &text);
        let expected = self.expected.get_mut(name).expect("it is open");
        expected.end = Some(if fails { "failed" } else { "completed" });
        expected.text = (!fails).then_some(text);
    }

    fn tell(&self, name: &str, what: &str, text: &str) {
        let (agent, id) = name.split_once('/').expect("AGENT/TASKID");
        match (agent, what) {
            ("a", "works") => self.a.work(id, text),
            ("a", "asks") => self.a.ask(id, text),
            ("a", "finishes") => self.a.finish(id, text),
            ("a", _) => self.a.fail(id),
            (_, "works") => self.b.work(id, text),
            (_, "asks") => self.b.ask(id, text),
            (_, "finishes") => self.b.finish(id, text),
            (_, _) => self.b.fail(id),
        }
    }

    /// Answers a task that waits, as its user would.
    async fn answer_one(&mut self) {
        let waiting = self.taskbell.cli(&["tasks", "--needs-you"]).await.items();
        let Some(task) = self.dice.one_of(&waiting) else { return };
        let name = TaskName::of(&task["task"]);
        // It may have gone on by itself, or its proxy be down: then it waits on, or does not.
        let replied = self.taskbell.cli(&["reply", name.as_str(), "the second one"]).await;
        assert!(replied.code.is_some(), "a command ends by itself: {replied:?}");
        self.counts.replies += 1;
        // A question that stands after a reply whose outcome nobody knows is told once more, and rightly.
        if replied.code != Some(0)
            && let Some(expected) = self.expected.get_mut(name.as_str())
        {
            expected.questions += 1;
        }
    }

    /// Nothing goes wrong any more, and everything comes to its end.
    async fn end_tasks(&mut self) {
        let open: Vec<String> =
            self.expected.iter().filter(|(_, task)| task.end.is_none()).map(|(n, _)| n.clone()).collect();
        for name in open {
            self.end(&name);
        }
        let limit = Instant::now() + PATIENCE;
        loop {
            let open = self.taskbell.cli(&["tasks", "--open"]).await.items();
            if open.is_empty() {
                return;
            }
            assert!(Instant::now() < limit, "these tasks do not come to an end: {open:#?}");
            self.answer_one().await;
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// What the agent itself says of a task that runs by a script.
    pub async fn told(&self, name: &str) -> Option<taskbell_tests::a2a::Told> {
        let (agent, id) = name.split_once('/').expect("AGENT/TASKID");
        let direct = match agent {
            "demo" => self.demo.direct(),
            _ => self.peers.iter().find(|(name, _)| *name == agent)?.1.direct(),
        };
        Some(direct.get(id).await)
    }

    pub async fn finish(&mut self) {
        self.taskbell.stop().await;
    }
}
