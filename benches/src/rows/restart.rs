//! All streams back after the agent's restart with its state, beside a client that tries again every 250 ms.
//!
//! Refused connections reach nobody who could count them but the kernel. So the row runs in a network
//! namespace of its own where the system allows one, and reads the kernel's count there.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::sleep;

use super::streams::QUIET;
use super::{Client, Fed, Kind, number};
use crate::program::{self, Program, text};
use crate::roles::agent;
use crate::table::{Figure, Table};
use crate::{Failure, Scale};

const PEER: &str = "reqwest, again every 250 ms";

/// What the runs of one client found.
#[derive(Default)]
struct Back {
    ms: Vec<f64>,
    attempts: Vec<f64>,
    subscribes: Vec<f64>,
}

pub async fn run(scale: Scale, table: &mut Table) -> Result<(), Failure> {
    let found = measured(scale).await?;
    let streams = streams(scale);
    let figure = |kind: &str, name: &str, unit| Figure::new(super::numbers(&found[kind], name), unit);
    let pair = |name: &str, unit| (figure("ours", name, unit), (PEER, figure("bare", name, unit)));
    let (ours, peer) = pair("ms", "ms");
    let what = format!("{streams} streams back: from the agent listening until all are attached");
    table.add_beside(what, ours, peer, "≤ 2 s");
    let (ours, peer) = pair("attempts", "");
    table.add_beside("refused connections a stream and second of outage", ours, peer, "< 2");
    let (ours, peer) = pair("subscribes", "");
    table.add_beside("subscriptions a stream that reached the agent after it", ours, peer, "1");
    Ok(())
}

fn streams(scale: Scale) -> usize {
    scale.pick(1_000, 50)
}

/// Runs in a namespace of its own, or here where there is none to be had.
async fn measured(scale: Scale) -> Result<Value, Failure> {
    let alone = "ip link set lo up && exec \"$0\" \"$@\"";
    for unshare in [&["--net"][..], &["--map-root-user", "--net"][..]] {
        let mut tried = Command::new("unshare");
        tried.args(unshare).args(["sh", "-c", "ip link set lo up"]).stderr(Stdio::null());
        if !tried.status().await.is_ok_and(|status| status.success()) {
            continue;
        }
        let mut command = Command::new("unshare");
        command.args(unshare).args(["sh", "-c", alone]).arg(std::env::current_exe()?);
        command.arg("restart-alone").args(scale.pick(None, Some("--quick")));
        return Program::start("restart", command)?.answer().await;
    }
    eprintln!("no network namespace: refused connections of the whole machine are counted");
    restart_all(scale).await
}

pub async fn run_alone(scale: Scale) -> Result<(), Failure> {
    let answer = restart_all(scale).await.unwrap_or_else(|error| json!({ "failed": error.to_string() }));
    println!("{answer}");
    Ok(())
}

async fn restart_all(scale: Scale) -> Result<Value, Failure> {
    let ours = restart(Kind::Ours, scale).await?;
    let bare = restart(Kind::Bare, scale).await?;
    let value =
        |back: Back| json!({ "ms": back.ms, "attempts": back.attempts, "subscribes": back.subscribes });
    Ok(json!({ "ours": value(ours), "bare": value(bare) }))
}

async fn restart(kind: Kind, scale: Scale) -> Result<Back, Failure> {
    let (streams, outage) = (streams(scale), Duration::from_secs(scale.pick(5, 2)));
    let mut back = Back::default();
    for _ in 0..scale.runs() {
        let folder = program::folder()?;
        let state = folder.path().join("agent");
        let state = ["--state", text(&state)?];
        let tasks = streams.to_string();
        let mut fed =
            Fed::start_with(&[&state[..], &["--tasks", &tasks, "--script", QUIET]].concat()).await?;
        let addr = fed.url.trim_start_matches("http://").to_owned();
        let mut client = Client::start(kind).await?;
        client.meet(&fed).await?;
        client.follow(&fed).await?;
        fed.attached(streams).await?;
        // Ended and not killed: the state file is then whole.
        fed.agent.end().await?;
        let (down, refused) = (Instant::now(), refused_connections()?);
        sleep(outage).await;
        let refused = refused_connections()? - refused;
        let seconds = down.elapsed().as_secs_f64();
        let mut again = Fed::start_with(&[&state[..], &["--addr", &addr]].concat()).await?;
        back.ms.push(again.attached(streams).await?);
        let counts = again.agent.ask(&agent::Question::Counts).await?;
        back.attempts.push(refused / streams as f64 / seconds);
        back.subscribes.push(number(&counts, "subscribes")? / streams as f64);
        client.program.kill().await?;
        again.agent.kill().await?;
    }
    Ok(back)
}

/// Connections of this network namespace that were tried and failed.
fn refused_connections() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/net/snmp")?;
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (lines.next().ok_or("no Tcp line")?, lines.next().ok_or("no Tcp values")?);
    let place = names.split(' ').position(|name| name == "AttemptFails").ok_or("no AttemptFails")?;
    Ok(values.split(' ').nth(place).ok_or("no value of AttemptFails")?.parse()?)
}
