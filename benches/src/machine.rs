//! What the figures were measured on.

use std::fs;
use std::process::Command;

/// One line, without a name or a date.
pub fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = value_of("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown CPU".to_owned());
    let memory = value_of("/proc/meminfo", "MemTotal")
        .and_then(|text| text.trim_end_matches(" kB").parse::<f64>().ok())
        .map_or(0.0, |kilobytes| kilobytes / 1_048_576.0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let folder = std::env::temp_dir();
    let disk = said("stat", &["-f", "-c", "%T", &folder.to_string_lossy()]);
    format!(
        "{cores} cores ({model}), {memory:.1} GiB, Linux {}, stores on {disk}, {}; load before {}\n",
        kernel.trim(),
        said("rustc", &["--version"]),
        load()
    )
}

/// Programs that want to run, over the last minute.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}

fn value_of(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| format!("no {program}"))
}
