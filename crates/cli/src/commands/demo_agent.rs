//! `demo-agent`: the built-in agent on its own, in the foreground. Needs no engine.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use taskbell_demo_agent::{Options, start};

use crate::failure::Failure;
use crate::session::{Session, chain};
use crate::signals::Signals;

/// Run the demo agent in the foreground
///
/// It does no work: it does what the words of a message say, such as 'steps=12 interval=0.5 cut=5'.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  taskbell demo-agent --addr 127.0.0.1:7430")]
pub struct DemoAgent {
    /// Where it listens; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:0")]
    addr: SocketAddr,
    /// Keep its tasks in this file, so that a restart goes on with them
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
}

impl DemoAgent {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let failed = |error| Failure::new("demo_agent_failed", chain(&error));
        let mut signals = Signals::listen()?;
        let options = Options { addr: self.addr, state: self.state, ..Options::default() };
        let agent = start(options).await.map_err(failed)?;
        let url = agent.base_url();
        if session.out.is_json() {
            session.out.json(&json!({"ready": true, "pid": std::process::id(), "url": url}))?;
        } else {
            session.out.line(url)?;
            session.out.remark(&format!("add it with: taskbell agent add {url} --name demo"));
        }
        signals.next().await;
        signals.second_leaves_at_once();
        agent.stop().await.map_err(failed)?;
        Ok(0)
    }
}
