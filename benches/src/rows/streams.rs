//! Memory and CPU time of followed streams, beside a client that only parses what it hears.
//!
//! Memory is what a fresh process has more after its streams are up and quiet. CPU time is that of a
//! window in which every task reports once a second, divided by the events heard in it.

use std::time::Duration;

use tokio::time::sleep;

use super::{Client, Fed, Kind};
use crate::table::{Figure, Table};
use crate::{Failure, Scale};

/// A task that does nothing for longer than any measurement.
pub const QUIET: &str = "steps=2 interval=86400";
const BUSY: &str = "steps=1000000 interval=1";
/// Until allocators and connections have come to rest.
const SETTLE: Duration = Duration::from_secs(3);
const BARE: &str = "bare reqwest";

#[derive(Default)]
struct Quiet {
    kib_a_stream: Vec<f64>,
    mib: Vec<f64>,
    idle_percent: Vec<f64>,
}

pub async fn run(scale: Scale, table: &mut Table) -> Result<(), Failure> {
    // Long enough for one keep-alive of every stream.
    let window = Duration::from_secs(scale.pick(15, 2));
    for streams in scale.pick(vec![1_000, 5_000], vec![50]) {
        let ours = quiet(Kind::Ours, streams, window, scale).await?;
        let bare = quiet(Kind::Bare, streams, window, scale).await?;
        let kib = |values| Figure::new(values, "KiB");
        table.add_beside(
            format!("{streams} quiet streams: memory (PSS) a stream"),
            kib(ours.kib_a_stream),
            (BARE, kib(bare.kib_a_stream)),
            "≤ 2 × bare",
        );
        table.add_beside(
            format!("{streams} quiet streams: memory of the process"),
            Figure::new(ours.mib, "MiB"),
            (BARE, Figure::new(bare.mib, "MiB")),
            "5,000: < 250 MB",
        );
        table.add_beside(
            format!("{streams} quiet streams: CPU of one core"),
            Figure::new(ours.idle_percent, "%"),
            (BARE, Figure::new(bare.idle_percent, "%")),
            "5,000: < 2 %",
        );
    }
    let streams = scale.pick(1_000, 50);
    let ours = busy(Kind::Ours, streams, window, scale).await?;
    let bare = busy(Kind::Bare, streams, window, scale).await?;
    table.add_beside(
        format!("{streams} streams with an event a second each: CPU an event, stored and merged"),
        Figure::new(ours, "µs"),
        (BARE, Figure::new(bare, "µs")),
        "≤ 3 × bare",
    );
    Ok(())
}

async fn quiet(kind: Kind, streams: usize, window: Duration, scale: Scale) -> Result<Quiet, Failure> {
    let mut quiet = Quiet::default();
    for _ in 0..scale.runs() {
        let mut fed = Fed::start(streams, QUIET).await?;
        let mut client = Client::start(kind).await?;
        client.meet(&fed).await?;
        sleep(SETTLE).await;
        let before = client.program.memory_kib()?;
        client.follow(&fed).await?;
        fed.attached(streams).await?;
        sleep(SETTLE).await;
        let after = client.program.memory_kib()?;
        let cpu_before = client.program.cpu_seconds()?;
        sleep(window).await;
        let cpu = client.program.cpu_seconds()? - cpu_before;
        quiet.kib_a_stream.push((after - before) / streams as f64);
        quiet.mib.push(after / 1024.0);
        quiet.idle_percent.push(cpu / window.as_secs_f64() * 100.0);
        client.program.kill().await?;
        fed.agent.kill().await?;
    }
    Ok(quiet)
}

/// Microseconds of CPU time an event.
async fn busy(kind: Kind, streams: usize, window: Duration, scale: Scale) -> Result<Vec<f64>, Failure> {
    let mut micros = Vec::new();
    for _ in 0..scale.runs() {
        let mut fed = Fed::start(streams, BUSY).await?;
        let mut client = Client::start(kind).await?;
        client.meet(&fed).await?;
        client.follow(&fed).await?;
        fed.attached(streams).await?;
        sleep(SETTLE).await;
        let (heard_before, cpu_before) = (client.heard().await?, client.program.cpu_seconds()?);
        sleep(window).await;
        let cpu = client.program.cpu_seconds()? - cpu_before;
        let heard = client.heard().await? - heard_before;
        let expected = streams as f64 * window.as_secs_f64();
        if heard < 0.8 * expected {
            return Err(format!("{kind:?} heard {heard} of about {expected} events").into());
        }
        micros.push(cpu * 1e6 / heard);
        client.program.kill().await?;
        fed.agent.kill().await?;
    }
    Ok(micros)
}
