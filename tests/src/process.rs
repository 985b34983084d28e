//! Child processes that do not outlive their test.

use std::{
    path::Path,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, Command},
    sync::mpsc,
    time::timeout,
};

/// What a process wrote, standard output and standard error by line.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn push(&self, line: String) {
        self.0.lock().expect("nobody panics while holding the log").push(line);
    }

    /// All lines so far.
    pub fn text(&self) -> String {
        self.0.lock().expect("nobody panics while holding the log").join("\n")
    }
}

/// A running child in a process group of its own, killed with all it started
/// when dropped, and by the kernel when the test program itself dies.
pub struct Process {
    name: String,
    child: Child,
    group: Pid,
    log: Log,
    stdout: mpsc::UnboundedReceiver<String>,
}

impl Process {
    /// Starts `program`; `prepare` adds arguments and environment.
    ///
    /// # Panics
    /// When the program cannot be started.
    pub fn start(name: &str, program: impl AsRef<Path>, prepare: impl FnOnce(&mut Command)) -> Self {
        let mut command = guarded(program.as_ref());
        prepare(&mut command);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name} ({}): {error}", program.as_ref().display()));
        let raw = i32::try_from(child.id().expect("a child that was not awaited has an id")).expect("a pid");
        let group = Pid::from_raw(raw).expect("a pid is not zero");
        let log = Log::default();
        let (lines, stdout) = mpsc::unbounded_channel();
        drain(child.stdout.take().expect("piped"), log.clone(), Some(lines));
        drain(child.stderr.take().expect("piped"), log.clone(), None);
        Self { name: name.to_owned(), child, group, log, stdout }
    }

    /// Takes what standard input still needs: hands `text` over and closes it.
    /// Only for a process prepared with a piped standard input.
    pub async fn feed(&mut self, text: &[u8]) {
        use tokio::io::AsyncWriteExt;
        let mut stdin = self.child.stdin.take().expect("prepared with a piped standard input");
        stdin.write_all(text).await.expect("the child reads its standard input");
    }

    /// The next line of standard output, or none when it ended or `limit` passed.
    pub async fn next_line(&mut self, limit: Duration) -> Option<String> {
        timeout(limit, self.stdout.recv()).await.ok().flatten()
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    pub fn pid(&self) -> i32 {
        self.group.as_raw_nonzero().get()
    }

    /// Whether the process has not ended yet.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends `signal` to the process alone, not to what it started.
    pub fn signal(&self, signal: Signal) {
        if self.child.id().is_some() {
            kill_process(self.group, signal)
                .unwrap_or_else(|error| panic!("cannot send {signal:?} to {}: {error}", self.name));
        }
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// When `limit` passes first.
    pub async fn ended(&mut self, limit: Duration) -> ExitStatus {
        match timeout(limit, self.child.wait()).await {
            Ok(status) => status.expect("a child can be awaited"),
            Err(_) => panic!("{} did not end within {limit:?}; it wrote:\n{}", self.name, self.log.text()),
        }
    }

    /// SIGKILL to the whole group, and waits until it is gone.
    pub async fn kill(&mut self) {
        self.kill_group();
        self.ended(Duration::from_secs(10)).await;
    }

    fn kill_group(&self) {
        // After the child was awaited its number may belong to somebody else.
        if self.child.id().is_some() {
            // An error means that it has just ended by itself, which is what was wanted.
            let _ = kill_process_group(self.group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_group();
        if std::thread::panicking() {
            eprintln!("--- what {} wrote ---\n{}\n--- end of {} ---", self.name, self.log.text(), self.name);
        }
    }
}

/// A command for `program` that the kernel kills with the thread that started
/// it, where `setpriv` can ask for that: `Drop` does not run when a test
/// program is killed.
pub fn guarded(program: &Path) -> Command {
    let setpriv = Path::new("/usr/bin/setpriv");
    if !setpriv.exists() {
        return Command::new(program);
    }
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

fn drain(
    from: impl AsyncRead + Unpin + Send + 'static,
    log: Log,
    lines: Option<mpsc::UnboundedSender<String>>,
) {
    tokio::spawn(async move {
        let mut reader = BufReader::new(from);
        let mut line = Vec::new();
        while let Ok(1..) = reader.read_until(b'\n', &mut line).await {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            log.push(text.clone());
            if let Some(lines) = &lines {
                // Nobody may be waiting for a line any more.
                let _ = lines.send(text);
            }
            line.clear();
        }
    });
}
