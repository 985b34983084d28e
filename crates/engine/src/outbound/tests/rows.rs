//! Every row of the corpus through the client: text at registration, then each lookup, connection and answer.

use std::path::PathBuf;

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Row {
    id: String,
    url: String,
    expect: String,
    stage: Option<String>,
    reason: Option<String>,
    #[serde(default)]
    dns: Vec<Vec<IpAddr>>,
    connected_peer: Option<IpAddr>,
    #[serde(default)]
    local_prefixes: Vec<String>,
    #[serde(default)]
    own_addresses: Vec<IpAddr>,
    response_status: Option<u16>,
    response_location: Option<String>,
    #[serde(default)]
    retryable: bool,
}

/// Stage, reason, and whether it is our rule.
#[derive(Debug, PartialEq)]
enum Decided {
    Delivered,
    Refused { stage: &'static str, reason: &'static str, policy: bool },
    Other(AttemptResult),
}

impl Row {
    fn world(&self) -> World {
        let world = World::default();
        *world.0.answers.lock().unwrap() = self.dns.iter().cloned().map(Ok).collect();
        *world.0.peer.lock().unwrap() = self.connected_peer;
        let prefix = |text: &String| {
            let (base, length) = text.split_once('/').unwrap();
            (base.parse().unwrap(), length.parse().unwrap())
        };
        *world.0.surroundings.lock().unwrap() = Surroundings {
            own_addresses: self.own_addresses.clone(),
            on_link: self.local_prefixes.iter().map(prefix).collect(),
        };
        world
    }

    async fn decide(&self, world: &World, authority: &Authority) -> Decided {
        let target = match CallbackTarget::parse(&self.url) {
            Ok(target) => target,
            Err(refusal) => {
                return Decided::Refused { stage: "register", reason: refusal.code(), policy: true };
            }
        };
        let host = target.url().host_str().unwrap().trim_matches(['[', ']']).to_owned();
        let status = self.response_status.unwrap_or(200);
        let location = self.response_location.clone().unwrap_or_default();
        let answer = format!("HTTP/1.1 {status} x\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let receiver = over_tls(authority.sign(&host, |_| {}), saying(answer));
        let outbound = outbound(world, authority, receiver);
        if let Err(fault) = outbound.look(&target).await {
            return Decided::Refused { stage: "register", reason: fault.code(), policy: fault.is_policy() };
        }
        let mut callback = callback(URL);
        callback.destination = Destination::Public(target);
        match outbound.send(callback).await.result {
            AttemptResult::Done(outcome) if outcome.is_delivered() => Decided::Delivered,
            AttemptResult::Done(outcome) => {
                let policy = matches!(outcome, Outcome::Failed(failure) if failure.is_policy());
                Decided::Refused { stage: "deliver", reason: outcome.code().unwrap(), policy }
            }
            other => Decided::Other(other),
        }
    }
}

#[tokio::test]
async fn every_row_is_decided_at_its_stage_and_nothing_is_connected_to_before() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile/webhook_targets.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let authority = Authority::new();
    let mut wrong = Vec::new();
    let mut rows = 0;
    for line in text.lines() {
        let row: Row = serde_json::from_str(line).unwrap();
        rows += 1;
        let world = row.world();
        let decided = row.decide(&world, &authority).await;
        let right = match &decided {
            Decided::Delivered => row.expect == "allow" && world.connections() == 1,
            Decided::Refused { stage, reason, policy } => {
                // Who answers, and with what, is known only once somebody was connected to.
                let connects = matches!(*reason, "peer_mismatch" | "redirect_not_followed");
                row.expect == "refuse"
                    && row.stage.as_deref() == Some(stage)
                    && row.reason.as_deref() == Some(reason)
                    && (!row.retryable || !policy)
                    && world.connections() == usize::from(connects)
            }
            Decided::Other(_) => false,
        };
        if !right {
            wrong.push(format!("{} {:?}: {decided:?}, {} connections", row.id, row.url, world.connections()));
        }
    }
    assert_eq!(rows, 170, "none is left out");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_number_is_never_looked_up() {
    let authority = Authority::new();
    let world = World::default().answer(&["127.0.0.1"]);
    let receiver = over_tls(authority.sign("8.8.8.8", |_| {}), saying("HTTP/1.1 204 x\r\n\r\n"));
    let outbound = outbound(&world, &authority, receiver);
    assert_eq!(outbound.look(&CallbackTarget::parse("https://8.8.8.8/").unwrap()).await, Ok(Look::Fine));
    let attempted = outbound.send(callback("https://8.8.8.8/")).await;
    assert_eq!((attempted.result, attempted.address), (status(204), Some("8.8.8.8".parse().unwrap())));
    assert_eq!(world.0.looked_up.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_target_on_this_machine_is_neither_looked_up_nor_sent_over_tls() {
    let authority = Authority::new();
    let world = World::default();
    let (seen, mut requests) = tokio::sync::mpsc::channel(1);
    let receiver = move |mut stream: DuplexStream| {
        let seen = seen.clone();
        async move {
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).await.unwrap();
            request.truncate(read);
            seen.send(String::from_utf8(request).unwrap()).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
        .boxed()
    };
    let outbound = outbound(&world, &authority, receiver);
    let mut callback = callback(URL);
    let target = LoopbackTarget::parse("http://localhost:9000/hook?x=1").unwrap().unwrap();
    callback.destination = Destination::Loopback(target);
    let attempted = outbound.send(callback).await;
    assert_eq!((attempted.result, attempted.address), (status(200), Some("127.0.0.1".parse().unwrap())));
    let request = requests.recv().await.unwrap();
    assert!(request.starts_with("POST /hook?x=1 HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("host: localhost:9000\r\n"), "{request}");
    assert_eq!(world.0.looked_up.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_machine_without_a_network_blames_nobody() {
    let authority = Authority::new();
    let world = World::default();
    *world.0.offline.lock().unwrap() = true;
    let receiver = over_tls(authority.sign("hooks.example.com", |_| {}), saying(""));
    let attempted = outbound(&world, &authority, receiver).send(callback(URL)).await;
    assert_eq!(attempted.result, AttemptResult::NotTried(NotTried::Offline));
    *world.0.offline.lock().unwrap() = false;
    let receiver = over_tls(authority.sign("hooks.example.com", |_| {}), saying(""));
    let attempted = outbound(&world, &authority, receiver).send(callback(URL)).await;
    assert_eq!(attempted.result, failed(Failure::DnsFailed));
}
