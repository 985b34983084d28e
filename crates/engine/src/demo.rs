//! The built-in agent, started beside the engine and registered as `demo`.
//!
//! Its tasks are kept in the data folder, so that a restart of the engine is a restart of the agent with
//! its state. Its port is the one it had, where that is free.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use taskbell_core::agent::{CardOrigin, PlainHttp};
use taskbell_core::credential::Origin;
use taskbell_core::ids::AgentName;
use taskbell_demo_agent::{DemoAgent, Options};
use url::Url;

use crate::agents::manage::AgentWish;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::store::agents as rows;

const NAME: &str = "demo";
const STATE_FILE: &str = "demo-agent.json";

/// Starts the agent and registers it, or tells the engine where it is now.
pub async fn start(engine: &Engine, folder: &Path) -> Result<DemoAgent, EngineError> {
    let name = AgentName::new(NAME).expect("a name of letters");
    let known = engine.parts().agents().by_name(&name);
    let former = known.as_ref().and_then(|agent| Url::parse(&agent.now().row.registered_url).ok());
    if former.as_ref().is_some_and(|url| url.host_str() != Some("127.0.0.1")) {
        return Err(EngineError::new(
            "exists",
            "an agent of yours is named demo; remove it, or start without --demo",
        ));
    }
    let options = |port| Options {
        addr: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
        state: Some(folder.join(STATE_FILE)),
        ..Options::default()
    };
    let port = former.as_ref().and_then(Url::port).unwrap_or(0);
    let demo = match taskbell_demo_agent::start(options(port)).await {
        Ok(demo) => demo,
        Err(_) if port != 0 => taskbell_demo_agent::start(options(0)).await.map_err(not_started)?,
        Err(error) => return Err(not_started(error)),
    };
    let url = Url::parse(demo.base_url()).expect("an address of this machine");
    match known {
        None => {
            let wish = AgentWish {
                name,
                url,
                card_origin: CardOrigin::Record,
                plain_http: PlainHttp::LoopbackOnly,
                credential: None,
            };
            engine.add_agent(wish).await?;
        }
        Some(agent) if former.as_ref() != Some(&url) => {
            let key = agent.key;
            let origin = Origin::of(&url).expect("http on a port of this machine");
            engine
                .store()
                .write(move |context| rows::set_address(context, key, url.as_str(), &origin))
                .await?;
            engine.parts().agents().reload(key).await?;
            engine.test_agent(&name).await?;
        }
        Some(_) => {}
    }
    Ok(demo)
}

fn not_started(error: taskbell_demo_agent::DemoAgentError) -> EngineError {
    EngineError {
        code: "demo_agent",
        message: format!("the built-in agent did not start: {error}"),
        source: Some(Box::new(error)),
    }
}
