//! One agent, a proxy in front of it and an engine that knows it as `peer`.

use std::time::Duration;

use taskbell_tests::{
    FaultProxy, Output, Peer, PeerKind, Taskbell, eventually,
    taskbell::{Shown, TaskName},
};

/// Long enough for any script here on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// A script whose steps take about three seconds: time to be cut, and time to
/// find out how the agent reattaches before its artifact comes.
pub const THREE_SECONDS: &str = "steps=10 interval=0.3 chunks=3";

/// What that script leaves behind.
pub const THREE_CHUNKS: &str = "chunk 1/3;chunk 2/3;chunk 3/3;";

pub struct Stage {
    pub taskbell: Taskbell,
    pub proxy: FaultProxy,
    pub peer: Peer,
}

impl Stage {
    pub async fn set(kind: PeerKind) -> Self {
        Self::with(kind, &[]).await
    }

    /// With flags of the agent.
    pub async fn with(kind: PeerKind, flags: &[&str]) -> Self {
        let peer = Peer::with(kind, flags, None).await;
        let proxy = FaultProxy::before(peer.port()).await;
        let taskbell = Taskbell::setup().silence(2).start().await;
        taskbell.add_agent("peer", &proxy.url()).await;
        Self { taskbell, proxy, peer }
    }

    pub async fn send(&self, script: &str) -> TaskName {
        self.taskbell.send("peer", script).await
    }

    /// Waits until the task has a working step to show.
    pub async fn works(&self, task: &TaskName) -> Shown {
        self.taskbell.shows(task, PATIENCE, "the task works", |shown| shown.state() == "working").await
    }

    /// Waits until the task works and, where the agent's streams are used, flows.
    ///
    /// The Python SDK of 0.3 sends no task on reattach and applies every event
    /// once more for each subscriber, so its tasks are polled.
    pub async fn flows(&self, task: &TaskName) {
        self.works(task).await;
        if self.peer.kind() != PeerKind::Py03 {
            eventually(PATIENCE, "the stream flows", || self.proxy.open_streams() == 1).await;
        }
    }

    /// Waits for the end and asserts that what is shown is what the script
    /// promised and what the agent itself says.
    pub async fn completes_with(&self, task: &TaskName, text: &str) -> Shown {
        self.taskbell.wait(task).await.exits(0);
        let shown = self.taskbell.show(task).await;
        let told = self.peer.direct().get(task.id()).await;
        assert_eq!((told.state.as_str(), told.text.as_str()), ("completed", text), "the script's promise");
        assert_eq!((shown.state(), shown.text().as_str()), ("completed", text), "what the agent says");
        shown
    }

    /// As `completes_with`, for an agent whose artifact may be another than its script's: whatever it says.
    pub async fn completes_as_told(&self, task: &TaskName) {
        self.taskbell.wait(task).await.exits(0);
        let shown = self.taskbell.show(task).await;
        let told = self.peer.direct().get(task.id()).await;
        assert_eq!((shown.state(), shown.text().as_str()), ("completed", told.text.as_str()));
    }

    /// Waits for the end or a waiting state and asserts the exit code.
    pub async fn waits_with(&self, task: &TaskName, code: i32) -> Output {
        let output = self.taskbell.wait(task).await;
        output.exits(code);
        output
    }
}
