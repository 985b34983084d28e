//! Token commands.

use futures::future::join_all;

use super::raw::{RawAgent, answer_with, finish};
use super::*;
use crate::agent_client::Outcome;

/// Lets in only the tokens given; anything else gets a challenge.
async fn guarded_agent(good: &'static [&'static str]) -> RawAgent {
    RawAgent::start(move |received, mut socket| async move {
        let token = received.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        if token.is_some_and(|token| good.contains(&token)) {
            return finish(&mut socket, &received.result(working())).await;
        }
        let challenge =
            "www-authenticate: Bearer realm=\"x\", resource_metadata=\"https://evil.example/\"\r\n";
        finish(&mut socket, &answer_with("401 Unauthorized", challenge, b"")).await
    })
    .await
}

/// A command that counts its runs in a file and prints `token-<run>`.
struct CountedCommand {
    folder: tempfile::TempDir,
}

impl CountedCommand {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn line(&self) -> String {
        let file = self.folder.path().join("runs");
        let file = file.display();
        format!(
            "echo run >> '{file}'; sleep 0.05; echo \"  token-$(grep -c run '{file}')  \"; echo second line"
        )
    }

    fn runs(&self) -> usize {
        match std::fs::read_to_string(self.folder.path().join("runs")) {
            Ok(text) => text.lines().count(),
            Err(_) => 0,
        }
    }

    fn source(&self, url: &str) -> Arc<dyn CredentialSource> {
        bound(url, Credential::TokenCommand(self.line()))
    }
}

#[tokio::test]
async fn the_token_is_the_first_line_and_the_command_runs_once_for_many_calls() {
    let agent = guarded_agent(&["token-1"]).await;
    let command = CountedCommand::new();
    let client = client_with(&agent.url, Limits::default(), command.source(&agent.url));
    let answers = join_all((0..20).map(|_| {
        let client = client.clone();
        async move { client.get_task(&task_id()).await }
    }))
    .await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!((command.runs(), agent.count()), (1, 20));
}

#[tokio::test]
async fn an_expired_token_is_renewed_once_for_twenty_concurrent_calls() {
    let expired = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = expired.clone();
    let agent = RawAgent::start(move |received, mut socket| {
        let wanted =
            if flag.load(std::sync::atomic::Ordering::Relaxed) { "Bearer token-2" } else { "Bearer token-1" };
        async move {
            match received.header("authorization") == Some(wanted) {
                true => finish(&mut socket, &received.result(working())).await,
                false => finish(&mut socket, &answer_with("401 Unauthorized", "", b"")).await,
            }
        }
    })
    .await;
    let command = CountedCommand::new();
    let client = client_with(&agent.url, Limits::default(), command.source(&agent.url));
    client.get_task(&task_id()).await.unwrap();
    expired.store(true, std::sync::atomic::Ordering::Relaxed);
    let answers = join_all((0..20).map(|_| {
        let client = client.clone();
        async move { client.get_task(&task_id()).await }
    }))
    .await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(command.runs(), 2);
    assert!(agent.count() <= 1 + 40, "each call is repeated once at most");
}

#[tokio::test]
async fn a_token_that_never_works_runs_no_loop() {
    let agent = guarded_agent(&[]).await;
    let command = CountedCommand::new();
    let client = client_with(&agent.url, Limits::default(), command.source(&agent.url));
    for _ in 0..5 {
        let error = client.get_task(&task_id()).await.unwrap_err();
        assert_eq!((error.code(), error.outcome), ("unauthorized", Outcome::Answered));
        assert!(!error.to_string().contains("token-"), "{error}");
    }
    assert_eq!(
        (command.runs(), agent.count()),
        (1, 5),
        "a fresh token that is refused is not asked for again"
    );
    let pauseless = Limits { token_pause: Duration::ZERO, ..Limits::default() };
    let client = client_with(&agent.url, pauseless, command.source(&agent.url));
    client.get_task(&task_id()).await.unwrap_err();
    assert_eq!((command.runs(), agent.count()), (3, 7), "run again once, the call repeated once");
}

#[tokio::test]
async fn a_stream_is_opened_with_a_renewed_token_too() {
    let agent = RawAgent::start(|received, mut socket| async move {
        match received.header("authorization") == Some("Bearer token-2") {
            true => finish(&mut socket, &received.result(json!({"task":working()}))).await,
            false => finish(&mut socket, &answer_with("401 Unauthorized", "", b"")).await,
        }
    })
    .await;
    let command = CountedCommand::new();
    let limits = Limits { token_pause: Duration::ZERO, ..Limits::default() };
    let client = client_with(&agent.url, limits, command.source(&agent.url));
    client.subscribe(&task_id()).await.unwrap();
    assert_eq!((command.runs(), agent.count()), (2, 2));
}

#[tokio::test]
async fn a_command_that_fails_hangs_or_prints_nothing_is_told_without_its_output() {
    let agent = guarded_agent(&[]).await;
    for (line, expected) in [
        ("echo canary-out; echo canary-err >&2; exit 3", "failed"),
        ("sleep 600 | cat", "did not end within 1 s"),
        ("true", "printed nothing"),
        ("printf '\\n token'", "printed nothing"),
        ("printf 'a\\001b'", "printed nothing"),
        ("/no/such/program-canary", "failed"),
    ] {
        let limits = Limits { token_command: Duration::from_secs(1), ..Limits::default() };
        let source = bound(&agent.url, Credential::TokenCommand(line.into()));
        let client = client_with(&agent.url, limits, source);
        let error = client.get_task(&task_id()).await.unwrap_err();
        assert_eq!((error.code(), error.outcome), ("token_command_failed", Outcome::NotSent), "{line}");
        let shown = format!("{error} {error:?}");
        assert!(shown.contains(expected) && !shown.contains("canary"), "{shown}");
        client.get_task(&task_id()).await.unwrap_err();
    }
    assert_eq!(agent.count(), 0, "without a token nothing is sent");
}

#[tokio::test]
async fn what_a_hanging_command_started_is_gone_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let line = format!("sleep 600 & echo $! > '{}'; wait", file.display());
    let agent = guarded_agent(&[]).await;
    let limits = Limits { token_command: Duration::from_millis(500), ..Limits::default() };
    let client = client_with(&agent.url, limits, bound(&agent.url, Credential::TokenCommand(line)));
    client.get_task(&task_id()).await.unwrap_err();
    let pid = std::fs::read_to_string(file).unwrap();
    let stat = format!("/proc/{}/stat", pid.trim());
    wait_until(Duration::from_secs(5), || match std::fs::read_to_string(&stat) {
        Ok(text) => text.contains(") Z "),
        Err(_) => true,
    })
    .await;
}

#[tokio::test]
async fn a_refusal_names_the_challenge_and_goes_nowhere() {
    let agent = guarded_agent(&[]).await;
    let client = client_with(&agent.url, Limits::default(), bearer(&agent.url, "canary-token"));
    let error = client.send(&hello()).await.unwrap_err();
    assert_eq!((error.code(), error.outcome), ("unauthorized", Outcome::Answered));
    assert!(error.to_string().contains("Bearer realm="), "{error}");
    assert!(!format!("{error:?}").contains("canary"));
    assert_eq!(agent.count(), 1);
}
