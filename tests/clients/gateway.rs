//! Every client through the gateway, in front of the agent of every SDK.

use std::collections::HashMap;

use taskbell_tests::sdk_clients::Story;
use taskbell_tests::{Peer, PeerKind, SdkClient, Taskbell, long_run};
use tokio::sync::OnceCell;

use crate::story::{
    HOOK_CREDENTIALS, HOOK_TOKEN, asks_and_is_answered, cancels, comes_back, is_told_what_is_not_there,
    keeps_callbacks, sends_and_reads, streams,
};
use crate::tell;

/// A test of one group of calls.
type Check = fn(&Story, SdkClient);

/// What a client hands over for its callbacks comes back to nobody.
pub fn is_not_told_its_own_secrets(story: &Story, _: SdkClient) {
    for name in ["registered", "registration", "registrations", "answered"] {
        let told = story.answer(name).to_string();
        for secret in [HOOK_TOKEN, HOOK_CREDENTIALS] {
            assert!(!told.contains(secret), "{name} tells {secret}: {told}");
        }
    }
}

/// All clients through one gateway in front of one agent.
async fn through_the_gateway(kind: PeerKind) -> HashMap<SdkClient, Story> {
    let peer = Peer::start(kind).await;
    let taskbell = Taskbell::start().await;
    taskbell.add_agent("peer", &peer.url()).await;
    // The Python SDK of 0.3 applies every event once more for each subscriber: the first task on which that
    // is found out may be damaged by it, and none after it.
    let first = taskbell.send("peer", "steps=4 interval=0.3").await;
    taskbell.wait(&first).await.exits(0);
    let key = taskbell.cli(&["client", "add", "sdk"]).await.ok();
    let key = key["key"].as_str().expect("a key").to_owned();
    let url = format!("{}/agents/peer/", taskbell.ready().gateway);
    let stories = SdkClient::ALL.map(|client| {
        let (url, key) = (url.clone(), key.clone());
        (client, tokio::spawn(async move { tell(client, &url, Some(&key)).await }))
    });
    let mut told = HashMap::new();
    for (client, story) in stories {
        // A client whose program failed fails the tests that look at it, not those of the others.
        if let Ok(story) = story.await {
            told.insert(client, story);
        }
    }
    told
}

/// The story is told once for all tests that look at it.
pub async fn check(
    kind: PeerKind,
    told: &OnceCell<HashMap<SdkClient, Story>>,
    client: SdkClient,
    what: Check,
) {
    // The reference server takes minutes to build.
    if kind == PeerKind::Rs && !long_run("the reference Rust server behind the gateway") {
        return;
    }
    let stories = told.get_or_init(|| through_the_gateway(kind)).await;
    what(stories.get(&client).expect("the client's program failed; it says above why"), client);
}

/// Every group of calls by every client, each a test of its own.
macro_rules! with_every_client {
    ($told:ident $kind:ident: $($client:ident = $sdk:ident),* $(,)?) => {
        $(with_every_client!(@ $told $kind $client $sdk
            sends_and_reads streams asks_and_is_answered comes_back cancels keeps_callbacks
            is_not_told_its_own_secrets is_told_what_is_not_there);)*
    };
    (@ $told:ident $kind:ident $client:ident $sdk:ident $($group:ident)*) => {
        mod $client {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $group() {
                    let (kind, client) = (taskbell_tests::PeerKind::$kind, taskbell_tests::SdkClient::$sdk);
                    crate::gateway::check(kind, &super::$told, client, crate::gateway::$group).await;
                }
            )*
        }
    };
}

/// Every client before the agent of one SDK.
macro_rules! before {
    ($($agent:ident = $kind:ident),* $(,)?) => {
        $(mod $agent {
            static TOLD: tokio::sync::OnceCell<
                std::collections::HashMap<taskbell_tests::SdkClient, taskbell_tests::sdk_clients::Story>,
            > = tokio::sync::OnceCell::const_new();
            with_every_client!(TOLD $kind:
                by_py03 = Py03, by_py1 = Py1, by_py1_in_0_3 = Py1Old,
                by_js03 = Js03, by_js1 = Js1, by_js1_in_0_3 = Js1Old);
        })*
    };
}

before!(agent_py03 = Py03, agent_py1 = Py1, agent_js03 = Js03, agent_js1 = Js1, agent_rs = Rs);
