//! The SDKs' own clients, unmodified: straight to the agent of their SDK, which proves the programs, and
//! through the gateway to the agents of every SDK.
//!
//! Each client takes all of its steps in one run; the tests of a pair look at what came of them.

mod gateway;
mod story;

use story::steps;
use taskbell_tests::sdk_clients::Story;
use taskbell_tests::{Peer, PeerKind, SdkClient};
use tokio::sync::Semaphore;

/// Programs at once: each takes a second of a processor to start, and then mostly waits.
static PLACES: Semaphore = Semaphore::const_new(6);

async fn tell(client: SdkClient, url: &str, key: Option<&str>) -> Story {
    let _place = PLACES.acquire().await.expect("never closed");
    client.run(url, key, &steps(client)).await
}

/// The programs do what they are told: each straight to the agent of its own SDK.
mod direct {
    use super::*;

    async fn told(client: SdkClient, kind: PeerKind) -> Story {
        let peer = Peer::start(kind).await;
        tell(client, &peer.url(), None).await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn py1_in_both_dialects() {
        for client in [SdkClient::Py1, SdkClient::Py1Old] {
            let story = told(client, PeerKind::Py1).await;
            for group in
                [story::sends_and_reads, story::streams, story::asks_and_is_answered, story::comes_back]
            {
                group(&story, client);
            }
            story::keeps_callbacks(&story, client);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn js1_in_both_dialects() {
        for client in [SdkClient::Js1, SdkClient::Js1Old] {
            let story = told(client, PeerKind::Js1).await;
            for group in
                [story::sends_and_reads, story::streams, story::asks_and_is_answered, story::comes_back]
            {
                group(&story, client);
            }
            story::keeps_callbacks(&story, client);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn js03() {
        let (client, kind) = (SdkClient::Js03, PeerKind::Js03);
        let story = told(client, kind).await;
        for group in [story::streams, story::asks_and_is_answered, story::comes_back, story::cancels] {
            group(&story, client);
        }
        story::keeps_callbacks(&story, client);
        story::is_told_what_is_not_there(&story, client);
    }

    /// Its agent sends no task on reattach and damages the one it resubscribes.
    #[tokio::test(flavor = "multi_thread")]
    async fn py03() {
        let (client, kind) = (SdkClient::Py03, PeerKind::Py03);
        let story = told(client, kind).await;
        for group in [story::sends_and_reads, story::streams, story::asks_and_is_answered] {
            group(&story, client);
        }
        story::keeps_callbacks(&story, client);
        story::is_told_what_is_not_there(&story, client);
    }
}
