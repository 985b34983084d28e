//! `demo-agent`: the built-in agent on its own, in the foreground. Needs no engine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use taskbell_demo_agent::{DeclaredExtension, Options, Presets, start};

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
    /// Run the scripts of this JSON object for messages whose id begins with one of its names
    #[arg(long, value_name = "FILE")]
    presets: Option<PathBuf>,
    /// Declare this extension in its card, and tell who asks for it that it is active; may be given more than once
    #[arg(long, value_name = "URI")]
    extension: Vec<String>,
    /// The same, and refuse messages that do not ask for it
    #[arg(long, value_name = "URI")]
    require_extension: Vec<String>,
}

impl DemoAgent {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let failed = |error| Failure::new("demo_agent_failed", chain(&error));
        let mut signals = Signals::listen()?;
        let presets = match &self.presets {
            Some(path) => read_presets(path)?,
            None => Presets::default(),
        };
        let declared = |uris: Vec<String>, required| {
            uris.into_iter().map(move |uri| DeclaredExtension { uri, required })
        };
        let extensions =
            declared(self.extension, false).chain(declared(self.require_extension, true)).collect();
        let options =
            Options { addr: self.addr, state: self.state, presets, extensions, ..Options::default() };
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

fn read_presets(path: &Path) -> Result<Presets, Failure> {
    let failed = |reason: String| {
        let text = format!("failed to read presets from {}: {reason}", path.display());
        Failure::new("bad_presets", text)
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    Presets::read(&text).map_err(|error| failed(format!("{error}; give an object of scripts")))
}
