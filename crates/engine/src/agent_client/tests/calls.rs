//! Single calls.

use std::sync::atomic::{AtomicUsize, Ordering};

use taskbell_core::fault::FaultKind;
use taskbell_core::state::TaskState;
use taskbell_core::task::SendAnswer;
use tokio::io::AsyncWriteExt as _;

use super::raw::{RawAgent, answer, answer_with, chunk, finish, json_answer};
use super::*;
use crate::agent_client::{CallError, CallFault, Outcome, Unreachable};

async fn get_error(octets: Vec<u8>) -> CallError {
    let agent = RawAgent::always(octets).await;
    client(&agent.url).get_task(&task_id()).await.unwrap_err()
}

#[tokio::test]
async fn a_call_is_written_as_its_dialect_wants_it() {
    let agent = RawAgent::with_result(working()).await;
    let task = client(&agent.url).get_task(&task_id()).await.unwrap();
    assert_eq!(task.status.state, TaskState::Working);
    let old = AgentClient::new(
        Http::new(HttpSettings::default()).unwrap(),
        AgentEndpoint { dialect: Dialect::V03, ..endpoint(&agent.url) },
        Arc::new(FixedCredential(None)),
    );
    old.get_task(&task_id()).await.unwrap();
    let [new, old] = [agent.request(0), agent.request(1)];
    assert_eq!(new.header("a2a-version"), Some("1.0"));
    assert_eq!(old.header("a2a-version"), Some("0.3"));
    assert_eq!(new.json()["method"], "GetTask");
    assert_eq!(old.json()["method"], "tasks/get");
    for request in [new, old] {
        assert_eq!(request.line, "POST /a2a HTTP/1.1");
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("accept"), Some("application/json"));
        assert_eq!(request.header("accept-encoding"), Some("identity"));
        assert_eq!(request.header("user-agent"), Some(concat!("taskbell/", env!("CARGO_PKG_VERSION"))));
        assert_eq!(request.header("authorization"), None);
    }
}

#[tokio::test]
async fn http_json_puts_the_tenant_before_the_route() {
    let agent = RawAgent::always(json_answer(&working())).await;
    let rest = AgentClient::new(
        Http::new(HttpSettings::default()).unwrap(),
        AgentEndpoint {
            binding: Binding::Rest,
            tenant: Some("ac me/1".into()),
            ..endpoint(&format!("{}/", agent.url))
        },
        Arc::new(FixedCredential(None)),
    );
    rest.get_task(&task_id()).await.unwrap();
    let request = agent.request(0);
    assert_eq!(request.line, "GET /a2a/ac%20me%2F1/tasks/t-1?historyLength=100 HTTP/1.1");
    assert_eq!(request.header("accept"), Some("application/a2a+json, application/json"));
    assert_eq!(request.header("content-type"), None, "there is no body");
}

#[tokio::test]
async fn a_web_page_is_not_an_agent_whatever_its_status() {
    let page = b"<html>\n<body><h1>Sign in to\x1b[2J the caf\xc3\xa9</h1></body></html>";
    for (status, code) in [
        ("200 OK", "upstream_not_a2a"),
        ("404 Not Found", "upstream_not_a2a"),
        ("502 Bad Gateway", "agent_unavailable"),
    ] {
        let error = get_error(answer(status, "text/html; charset=utf-8", page)).await;
        assert_eq!(error.code(), code, "{status}: {error}");
    }
    let error = get_error(answer("200 OK", "text/html", page)).await;
    let CallFault::NotA2a { status: 200, excerpt } = &error.fault else { panic!("{error:?}") };
    assert_eq!(excerpt, "<html> <body><h1>Sign in to the café</h1></body></html>");
    let long = get_error(answer("200 OK", "text/html", &b"x".repeat(5000))).await;
    assert!(matches!(long.fault, CallFault::NotA2a { excerpt, .. } if excerpt.chars().count() == 200));
}

#[tokio::test]
async fn a_web_frameworks_404_never_makes_a_task_lost() {
    let error = get_error(answer("404 Not Found", "application/json", br#"{"detail":"Not Found"}"#)).await;
    assert_ne!(error.kind(), Some(FaultKind::TaskNotFound));
    assert_eq!(error.code(), "upstream_not_a2a");
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_token_goes_out_once() {
    let elsewhere = RawAgent::with_result(working()).await;
    let there = elsewhere.url.clone();
    let agent = RawAgent::always(answer_with(
        "307 Temporary Redirect",
        &format!("location: {there}?secret=1\r\n"),
        b"",
    ))
    .await;
    let client = client_with(&agent.url, Limits::default(), bearer(&agent.url, "canary-token"));
    for error in [
        client.get_task(&task_id()).await.unwrap_err(),
        client.send(&hello()).await.unwrap_err(),
        client.subscribe(&task_id()).await.map(drop).unwrap_err(),
    ] {
        assert_eq!(error.code(), "upstream_redirect");
        let CallFault::Redirect { status: 307, location_host: Some(host) } = &error.fault else { panic!() };
        assert_eq!(host, "127.0.0.1");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("canary") && !shown.contains("secret"), "{shown}");
    }
    assert_eq!((agent.count(), elsewhere.count()), (3, 0));
    assert_eq!(agent.request(0).header("authorization"), Some("Bearer canary-token"));
}

#[tokio::test]
async fn a_credential_of_another_origin_is_never_attached() {
    let agent = RawAgent::with_result(working()).await;
    let other = RawAgent::with_result(working()).await;
    let client = client_with(&agent.url, Limits::default(), bearer(&other.url, "canary-token"));
    client.get_task(&task_id()).await.unwrap();
    assert_eq!(agent.request(0).header("authorization"), None);
}

#[tokio::test]
async fn plain_http_beyond_this_machine_is_refused_before_any_name_is_looked_up() {
    let error = client("http://agent.invalid/a2a").get_task(&task_id()).await.unwrap_err();
    assert_eq!((error.code(), error.outcome), ("insecure_http", Outcome::NotSent));
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_gigabyte_is_stopped_at_the_limit() {
    let written = Arc::new(AtomicUsize::new(0));
    let counter = written.clone();
    let agent = RawAgent::start(move |_, mut socket| {
        let counter = counter.clone();
        async move {
            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n").await?;
            let block = chunk(&vec![b' '; 64 * 1024]);
            for _ in 0..16 * 1024 {
                socket.write_all(&block).await?;
                counter.fetch_add(block.len(), Ordering::Relaxed);
            }
            Ok(())
        }
    })
    .await;
    let before = resident_kib();
    let error = client(&agent.url).get_task(&task_id()).await.unwrap_err();
    assert_eq!(error.code(), "upstream_too_large");
    assert!(matches!(error.fault, CallFault::TooLarge { limit } if limit == 16 << 20));
    assert!(written.load(Ordering::Relaxed) < 32 << 20, "reading goes on: {written:?}");
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 64 * 1024, "memory grew by {grown} KiB");
}

#[tokio::test]
async fn a_length_over_the_limit_is_refused_unread() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1073741824\r\n\r\n{";
    assert_eq!(get_error(head.into()).await.code(), "upstream_too_large");
}

#[tokio::test]
async fn a_content_coding_is_refused_and_not_decoded() {
    let octets = answer_with(
        "200 OK",
        "content-type: application/json\r\ncontent-encoding: gzip\r\n",
        b"\x1f\x8b\x08",
    );
    let error = get_error(octets).await;
    assert_eq!(error.code(), "upstream_encoded");
    let plain = json_answer(&json!({"jsonrpc":"2.0","id":1,"result":working()}));
    let marked = String::from_utf8(plain).unwrap().replacen("\r\n", "\r\ncontent-encoding: identity\r\n", 1);
    let agent = RawAgent::always(marked.into()).await;
    client(&agent.url).get_task(&task_id()).await.unwrap();
}

#[tokio::test]
async fn too_many_requests_says_for_how_long() {
    for (header, expected) in [("retry-after: 7\r\n", Some(7)), ("retry-after: soon\r\n", None), ("", None)] {
        let error = get_error(answer_with("429 Too Many Requests", header, b"slow down")).await;
        assert_eq!(error.code(), "rate_limited");
        assert_eq!(error.retry_after(), expected.map(Duration::from_secs), "{header}");
    }
    let error = get_error(answer_with("503 Service Unavailable", "retry-after: 3\r\n", b"")).await;
    assert_eq!((error.code(), error.retry_after()), ("agent_unavailable", Some(Duration::from_secs(3))));
}

#[tokio::test]
async fn an_octet_a_second_does_not_outlast_the_total_limit() {
    let agent = RawAgent::start(|received, mut socket| async move {
        for octet in received.result(working()) {
            socket.write_all(&[octet]).await?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    })
    .await;
    let started = std::time::Instant::now();
    let error = hasty_client(&agent.url).get_task(&task_id()).await.unwrap_err();
    assert_eq!(error.code(), "agent_timed_out");
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn an_answer_that_stalls_after_its_head_times_out() {
    let agent = RawAgent::start(|_, mut socket| async move {
        socket
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{")
            .await?;
        std::future::pending().await
    })
    .await;
    let error = hasty_client(&agent.url).get_task(&task_id()).await.unwrap_err();
    assert!(matches!(error.fault, CallFault::Unreachable(Unreachable::TimedOut)), "{error:?}");
}

#[tokio::test]
async fn a_connection_cut_within_the_body_is_a_reset_and_no_bad_json() {
    let agent =
        RawAgent::always(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"jsonrpc\":".to_vec()).await;
    let error = client(&agent.url).get_task(&task_id()).await.unwrap_err();
    assert!(matches!(error.fault, CallFault::Unreachable(Unreachable::Reset)), "{error:?}");
}

#[tokio::test]
async fn what_speaks_no_http_is_told_from_what_does_not_answer() {
    let error = get_error(b"220 mail.example ESMTP\r\n".to_vec()).await;
    assert_eq!(error.code(), "upstream_not_http");
}

#[tokio::test]
async fn the_answer_of_another_task_is_thrown_away() {
    let agent = RawAgent::with_result(json!({"id":"t-2","status":{"state":"TASK_STATE_COMPLETED"}})).await;
    let error = client(&agent.url).get_task(&task_id()).await.unwrap_err();
    assert!(matches!(&error.fault, CallFault::WrongTask { answered } if answered.as_str() == "t-2"));
}

#[tokio::test]
async fn the_answer_to_another_request_is_thrown_away() {
    let error = get_error(json_answer(&json!({"jsonrpc":"2.0","id":99,"result":working()}))).await;
    assert_eq!(error.code(), "upstream_wrong_answer");
}

#[tokio::test]
async fn json_with_repeated_keys_or_endless_nesting_is_refused() {
    let repeated = br#"{"jsonrpc":"2.0","id":1,"id":1,"result":{}}"#;
    assert_eq!(get_error(answer("200 OK", "application/json", repeated)).await.code(), "upstream_bad_json");
    let deep = "[".repeat(100_000);
    assert_eq!(
        get_error(answer("200 OK", "application/json", deep.as_bytes())).await.code(),
        "upstream_bad_json"
    );
}

#[tokio::test]
async fn an_error_behind_http_500_is_read_for_what_it_says() {
    let body = json!({"jsonrpc":"2.0","id":1,"error":{"code":-32009,"message":"no"}}).to_string();
    let error = get_error(answer("500 Internal Server Error", "application/json", body.as_bytes())).await;
    assert_eq!(error.kind(), Some(FaultKind::VersionNotSupported));
}

#[tokio::test]
async fn a_refused_connection_sent_nothing() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", closed.local_addr().unwrap());
    drop(closed);
    let error = client(&url).send(&hello()).await.unwrap_err();
    assert_eq!(error.outcome, Outcome::NotSent);
    assert_eq!(error.code(), "agent_unreachable");
    assert_eq!(
        error.to_string(),
        "SendMessage at agent builder: connection refused; check that the agent runs"
    );
}

#[tokio::test]
async fn a_name_without_address_sent_nothing() {
    let error = client("https://agent.invalid/").send(&hello()).await.unwrap_err();
    assert_eq!((error.code(), error.outcome), ("agent_name_not_resolved", Outcome::NotSent));
}

#[tokio::test]
async fn a_send_whose_answer_is_lost_is_unknown_and_never_repeated() {
    let agent = RawAgent::start(|_, socket| async move {
        drop(socket);
        Ok(())
    })
    .await;
    let error = client(&agent.url).send(&hello()).await.unwrap_err();
    assert_eq!(error.outcome, Outcome::Unknown);
    let half = RawAgent::always(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{".to_vec()).await;
    let error = client(&half.url).send(&hello()).await.unwrap_err();
    assert_eq!(error.outcome, Outcome::Unknown);
    let error = hasty_client(&half.url).send_streaming(&hello()).await.map(drop).unwrap_err();
    assert_eq!(error.outcome, Outcome::Unknown);
    assert_eq!((agent.count(), half.count()), (1, 2));
}

#[tokio::test]
async fn a_send_over_a_kept_connection_that_dies_is_sent_once() {
    // Keeps the first connection open after its answer and drops it on the second request.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let sends = Arc::new(AtomicUsize::new(0));
    let counter = sends.clone();
    let serving = tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            while let Some(received) = super::raw::read_request(&mut socket).await {
                if received.json()["method"] == "SendMessage" {
                    counter.fetch_add(1, Ordering::Relaxed);
                    break;
                }
                socket.write_all(&received.result(working())).await.unwrap();
            }
        }
    });
    let client = client(&url);
    client.get_task(&task_id()).await.unwrap();
    let error = client.send(&hello()).await.unwrap_err();
    assert_eq!((error.outcome, sends.load(Ordering::Relaxed)), (Outcome::Unknown, 1));
    serving.abort();
}

#[tokio::test]
async fn an_error_answer_to_a_send_is_an_answer() {
    let agent = RawAgent::start(|received, mut socket| async move {
        let body = json!({"jsonrpc":"2.0","id":received.json()["id"],"error":{"code":-32602,"message":"no"}});
        finish(&mut socket, &json_answer(&body)).await
    })
    .await;
    let error = client(&agent.url).send(&hello()).await.unwrap_err();
    assert_eq!((error.outcome, error.kind()), (Outcome::Answered, Some(FaultKind::InvalidParams)));
    assert!(error.to_string().ends_with(r#"the agent answered an error (-32602): "no""#), "{error}");
}

#[tokio::test]
async fn a_send_is_answered_by_a_task_or_a_message() {
    let agent = RawAgent::with_result(json!({"task":working()})).await;
    let answered = client(&agent.url).send(&hello()).await.unwrap();
    assert!(matches!(answered, SendAnswer::Task(task) if task.id == task_id()));
    assert_eq!(agent.request(0).json()["params"]["configuration"]["returnImmediately"], true);
    let agent =
        RawAgent::with_result(json!({"kind":"message","messageId":"a","role":"agent","parts":[]})).await;
    assert!(matches!(client(&agent.url).send(&hello()).await, Ok(SendAnswer::Message(_))));
}

#[tokio::test]
async fn what_an_agent_taught_is_handed_out_once() {
    let agent = RawAgent::with_result(json!({"id":"t-1","status":{"state":"working"}})).await;
    let client = client(&agent.url);
    assert_eq!(client.take_quirk_changes(), None);
    client.get_task(&task_id()).await.unwrap();
    assert!(client.take_quirk_changes().unwrap().mixed_vocabulary);
    client.get_task(&task_id()).await.unwrap();
    assert_eq!(client.take_quirk_changes(), None);
}

#[tokio::test]
async fn a_message_for_people_is_one_clean_line() {
    let message = "boom\n\u{1b}[31m\u{202e}evil";
    let agent = RawAgent::start(move |received, mut socket| async move {
        let body =
            json!({"jsonrpc":"2.0","id":received.json()["id"],"error":{"code":-32603,"message":message}});
        finish(&mut socket, &json_answer(&body)).await
    })
    .await;
    let error = client(&agent.url).cancel(&task_id()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"CancelTask at agent builder: the agent answered an error (-32603): "boom evil""#
    );
}
