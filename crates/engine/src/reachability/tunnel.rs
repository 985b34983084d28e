//! The tunnel: a command of the user's that is kept running, and the address that it prints.

use std::process::Stdio;
use std::time::{Duration, Instant};

use taskbell_core::text::one_line;
use taskbell_core::tunnel::{address_in, command_line, restart_after};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::sync::mpsc;

use super::{AddressSource, TunnelState};
use crate::parts::Parts;
use crate::settings;
use crate::shell::{self, GroupGuard};

/// One that ran for so long was a good one.
const STABLE: Duration = Duration::from_secs(60);
/// Octets of a line that are kept.
const LINE: usize = 8 * 1024;
const LINES_WAITING: usize = 64;

/// Keeps the tunnel that the settings name, and none where they name none. Runs for ever.
pub async fn run(parts: Parts) {
    let mut inbox = parts.reach().changes();
    loop {
        let wanted = match parts.store().read(settings::tunnel_command).await {
            Ok(wanted) => wanted,
            Err(error) => {
                tracing::warn!(%error, "the tunnel's setting could not be read");
                None
            }
        };
        let address = inbox.borrow_and_update().inbox;
        let command = wanted.zip(address).map(|(line, address)| command_line(&line, address));
        if command.is_none() {
            parts.reach().change(|state| state.tunnel = TunnelState::Off);
            parts.reach().set_source(AddressSource::Tunnel, None);
        }
        tokio::select! {
            () = keep(&parts, command) => {}
            () = parts.bells().tunnel.notified() => {}
            () = moved(&mut inbox, address) => {}
        }
    }
}

/// The inbox listens elsewhere, so the tunnel leads nowhere.
async fn moved(
    changes: &mut tokio::sync::watch::Receiver<super::ReachState>,
    address: Option<std::net::SocketAddr>,
) {
    if changes.wait_for(|state| state.inbox != address).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Starts the command again and again. Dropping this ends it with all that it started.
async fn keep(parts: &Parts, command: Option<String>) {
    let Some(line) = command else { return std::future::pending().await };
    let mut failures = 0;
    loop {
        parts.reach().change(|state| state.tunnel = TunnelState::Starting);
        let began = Instant::now();
        let detail = run_once(parts, &line).await;
        if began.elapsed() >= STABLE {
            failures = 0;
        }
        let wait = restart_after(failures);
        failures = failures.saturating_add(1);
        tracing::warn!(detail, wait_s = wait.as_secs(), "the tunnel ended and is started again");
        parts.reach().change(|state| state.tunnel = TunnelState::Down { detail });
        tokio::time::sleep(wait).await;
    }
}

/// Runs it until it ends; why it did, as far as it said.
async fn run_once(parts: &Parts, line: &str) -> String {
    let mut command = shell::command(line);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The credential file's passphrase is no business of a tunnel.
        .env_remove("TASKBELL_PASSPHRASE")
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return format!("it could not be started: {}", error.kind()),
    };
    let group = GroupGuard::of(&child);
    let (lines, mut said) = mpsc::channel(LINES_WAITING);
    let readers = [
        child.stdout.take().map(|out| tokio::spawn(read_lines(out, lines.clone()))),
        child.stderr.take().map(|out| tokio::spawn(read_lines(out, lines.clone()))),
    ];
    drop(lines);
    let has_address = parts.reach().has_source_before(AddressSource::Tunnel);
    if has_address {
        // It need not name one: that it works is what the self-test finds out.
        parts.reach().change(|state| state.tunnel = TunnelState::Up);
    }
    let mut last = String::new();
    while let Some(line) = said.recv().await {
        if let Some(address) = address_in(&line) {
            tracing::info!(%address, "the tunnel named its address");
            parts.reach().change(|state| state.tunnel = TunnelState::Up);
            parts.reach().set_source(AddressSource::Tunnel, Some(address));
        }
        let line = one_line(&line, 200);
        if !line.is_empty() {
            last = line;
        }
    }
    let status = child.wait().await;
    group.disarm();
    for reader in readers.into_iter().flatten() {
        reader.abort();
    }
    let status = status.map_or_else(|error| error.kind().to_string(), |status| status.to_string());
    if last.is_empty() { status } else { format!("{status}: {last}") }
}

/// Lines of any length; of a long one the beginning.
async fn read_lines(out: impl AsyncRead + Unpin, lines: mpsc::Sender<String>) {
    let mut out = BufReader::new(out);
    let mut line = Vec::new();
    loop {
        let (taken, ended) = match out.fill_buf().await {
            Ok([]) | Err(_) => break,
            Ok(octets) => {
                let end = octets.iter().position(|octet| *octet == b'\n' || *octet == b'\r');
                let part = octets.get(..end.unwrap_or(octets.len())).unwrap_or_default();
                let room = LINE.saturating_sub(line.len()).min(part.len());
                line.extend_from_slice(part.get(..room).unwrap_or_default());
                (end.map_or(octets.len(), |end| end + 1), end.is_some())
            }
        };
        out.consume(taken);
        if ended
            && lines.send(String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned()).await.is_err()
        {
            return;
        }
    }
    if !line.is_empty() {
        // Nobody reads on: the tunnel is given up.
        let _ = lines.send(String::from_utf8_lossy(&line).into_owned()).await;
    }
}
